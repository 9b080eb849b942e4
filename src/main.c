/* The commands, nothing else. */
#include <stdio.h>

int main(void)
{
    (void)puts("croupier");
    return 0;
}
