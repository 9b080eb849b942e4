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

struct json_writer *document_array(struct document *document, enum json_layout layout)
{
    json_array(document_begin(document, layout), NULL);
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

void document_print_counts(const struct document_count *counts, enum json_layout layout)
{
    struct document document;
    struct json_writer *json = document_object(&document, layout);
    for (; counts->name != NULL; counts++)
        json_unsigned(json, counts->name, counts->count);
    document_print(&document);
}

void document_free(struct document *document)
{
    buffer_free(&document->text);
}
