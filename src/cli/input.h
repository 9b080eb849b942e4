#ifndef CROUPIER_CLI_INPUT_H
#define CROUPIER_CLI_INPUT_H

#include "base/status.h"
#include "base/text.h"

/* What commands read: a document from a file or from standard input. Blocks. */

/* Appends all of `path` ("-": standard input), up to one byte more than `most`, so that the caller
 * can tell that it is too much. `name` is what to call it in errors. STATUS_INVALID: cannot be
 * read. */
MUST_CHECK enum status command_read_document(const char *path, size_t most, const char **name,
                                             struct buffer *out, struct error *error);

#endif
