/* See document.h. */
#include "cli/document.h"

#include <stdio.h>
#include <string.h>

struct json_writer *document_begin(struct document *document, enum json_layout layout)
{
    *document = (struct document){.json = {.out = &document->text, .layout = layout}};
    return &document->json;
}

struct json_writer *document_object(struct document *document, enum json_layout layout)
{
    json_object(document_begin(document, layout), NULL);
    return &document->json;
}

void document_print(struct document *document)
{
    while (document->json.depth > 0)
        json_end(&document->json);
    buffer_append_char(&document->text, '\n');
    (void)fwrite(document->text.data, 1, document->text.size, stdout);
    explicit_bzero(document->text.data, document->text.size); /* there may be a key in it */
    document_free(document);
}

bool buffer_print(struct buffer *text)
{
    if (text->size > 0)
        (void)fwrite(text->data, 1, text->size, stdout);
    buffer_clear(text);
    return ferror(stdout) == 0;
}

void document_free(struct document *document)
{
    buffer_free(&document->text);
    document->json = (struct json_writer){0};
}
