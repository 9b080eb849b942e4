/* See document.h. */
#include "cli/document.h"

#include <stdio.h>
#include <string.h>

struct json_writer *document_begin(struct document *document, enum json_layout layout)
{
    *document = (struct document){.json = {.out = &document->text, .layout = layout}};
    return &document->json;
}

void document_print(struct document *document)
{
    CHECK(document->json.depth == 0);
    buffer_append_char(&document->text, '\n');
    (void)fwrite(document->text.data, 1, document->text.size, stdout);
    explicit_bzero(document->text.data, document->text.size); /* there may be a key in it */
    document_free(document);
}

void document_print_counts(const struct document_count *counts, enum json_layout layout)
{
    struct document document;
    struct json_writer *json = document_begin(&document, layout);
    json_object(json, NULL);
    for (; counts->name != NULL; counts++)
        json_unsigned(json, counts->name, counts->count);
    json_end(json);
    document_print(&document);
}

void document_free(struct document *document)
{
    buffer_free(&document->text);
}
