/* Looking things up in the tables of commands; see command_line.h. */

#include "cli/command_line.h"

const struct command_option command_common_options[] = {
    {"config", "FILE", "the configuration file; -c FILE for short", false},
    {"json", NULL, "one JSON document on standard output, for scripts", false},
    {"help", NULL, "what this does, with examples", false},
    {"version", NULL, "the version of the program", false},
    {0},
};

const struct command_group *command_find_group(const struct command_group *groups, const char *name)
{
    for (const struct command_group *group = groups; group->name != NULL; group++)
        if (strcmp(group->name, name) == 0)
            return group;
    return NULL;
}

const struct command *command_find(const struct command_group *group, const char *name)
{
    for (const struct command *command = group->commands; command->name != NULL; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

const struct command_option *command_find_option(const struct command_option *options,
                                                 struct text name)
{
    if (options == NULL)
        return NULL;
    for (const struct command_option *option = options; option->name != NULL; option++)
        if (text_equals(name, text_of(option->name)))
            return option;
    return NULL;
}

const struct command_option *command_options(const struct command_group *group,
                                             const struct command *command,
                                             struct command_option made[COMMAND_OPTIONS_MAX + 1])
{
    if (command->make_options == NULL)
        return command->help->options;
    size_t count = command->make_options(group->subject, made, COMMAND_OPTIONS_MAX);
    made[count] = (struct command_option){0};
    return made;
}

void command_count_arguments(const char *arguments, size_t *least, size_t *most)
{
    struct text rest = text_of(arguments);
    size_t words = 0;
    *least = 0;
    for (; rest.size > 0; words++)
        *least += text_cut(&rest, ' ').at[0] == '[' ? 0 : 1;
    *most = strstr(arguments, "…") != NULL ? SIZE_MAX : words;
}
