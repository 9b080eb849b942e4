#ifndef CROUPIER_CLI_DOCUMENT_H
#define CROUPIER_CLI_DOCUMENT_H

#include "base/json_writer.h"

/*
 * The JSON document that a command prints with --json. It is printed at once when it is whole, so
 * that a command that fails halfway prints none.
 */
struct document {
    struct buffer text;
    struct json_writer json;
};

/* Begins one, which is an object, an array, or whatever is written. The writer works as long as the
 * document stays where it is. */
struct json_writer *document_begin(struct document *document, enum json_layout layout);
struct json_writer *document_object(struct document *document, enum json_layout layout);
/* Ends what is open, and prints it with a line end on standard output; and frees it. */
void document_print(struct document *document);
/* Prints what a buffer holds, and clears it. False: standard output fails. */
bool buffer_print(struct buffer *text);
/* Of one that is not printed; a zeroed one is fine. */
void document_free(struct document *document);

#endif
