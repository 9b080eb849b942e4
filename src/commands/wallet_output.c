/* Output of the commands about the ledger; see wallet_output.h. */
#include "commands/wallet_output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wallet_flush(struct buffer *text)
{
    (void)fwrite(text->data, 1, text->size, stdout);
    buffer_clear(text);
}

int wallet_finish(const struct command_line *line)
{
    errno = 0;
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return EXIT_DONE;
    return command_refuse(line, "could not write it all (%s)",
                          errno != 0 ? strerror(errno) : "output error");
}
