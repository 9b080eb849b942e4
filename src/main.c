/* The commands, nothing else. */
#include "operator/commands.h"

static const struct command_group groups[] = {
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return command_main(groups, argc, argv);
}
