/*
 * Fuzzes what reads the feed's documents: json_text, and the catalogs and event bodies made of it.
 *
 * Holds for every input: SQLite has the same verdict (but for the encoding and the bounds
 * that are ours); what is accepted is accepted again when minified, and minifies to itself; slices
 * put together are the minified text; a catalog's list and an event's body are strict JSON, and
 * each row is found under its id.
 */
#include <string.h>

#include "../second_opinion.h"
#include "base/json_text.h"
#include "sports/catalog.h"
#include "sports/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void rebuild(struct text value, struct buffer *out)
{
    enum json_text_kind kind = json_text_kind(value);
    struct text name = {NULL, 0};
    struct text inner;
    const char *separator = "";
    if (kind == JSON_TEXT_STRING) {
        struct buffer plain = {0};
        json_text_unescape(value, &plain);
        if (memchr(value.at, '\\', value.size) == NULL)
            CHECK(json_text_string_equals(value, buffer_text(&plain)));
        buffer_free(&plain);
    }
    if (kind != JSON_TEXT_ARRAY && kind != JSON_TEXT_OBJECT) {
        buffer_append_text(out, value);
        return;
    }
    struct json_text_cursor cursor = json_text_open(value);
    buffer_append_char(out, kind == JSON_TEXT_ARRAY ? '[' : '{');
    while (kind == JSON_TEXT_ARRAY ? json_text_next_element(&cursor, &inner)
                                   : json_text_next_member(&cursor, &name, &inner)) {
        buffer_append_string(out, separator);
        if (kind == JSON_TEXT_OBJECT) {
            buffer_append_text(out, name);
            buffer_append_char(out, ':');
        }
        rebuild(inner, out);
        separator = ",";
    }
    buffer_append_char(out, kind == JSON_TEXT_ARRAY ? ']' : '}');
}

static void check_slices(struct text text, struct text minified)
{
    struct buffer rebuilt = {0};
    rebuild(json_text_trim(text), &rebuilt);
    CHECK(text_equals(buffer_text(&rebuilt), minified));
    buffer_free(&rebuilt);
}

static void check_strict(struct text text)
{
    struct buffer minified = {0};
    CHECK(json_text_check(text, &minified, NULL) == STATUS_OK);
    CHECK(text_equals(buffer_text(&minified), text));
    buffer_free(&minified);
}

static void check_verdict(struct text text, enum status status, const struct json_text_error *error)
{
    if (status == STATUS_OK)
        CHECK(sqlite_takes_json(text));
    else if (is_utf8(text) && memchr(text.at, '\0', text.size) == NULL &&
             strstr(error->reason, "deep") == NULL)
        CHECK(!sqlite_takes_json(text));
}

static void check_catalog(struct text stored, struct text odds)
{
    struct catalog *catalog;
    struct json_text_error error;
    if (catalog_create(stored, &catalog, &error) != STATUS_OK) {
        CHECK(error.reason != NULL);
        return;
    }
    check_strict(catalog_list(catalog));
    static const struct event_id id = {1, "7"};
    const struct catalog_row *row = catalog_find(catalog, &id);
    struct buffer body = {0};
    size_t row_at;
    if (row != NULL) {
        check_strict(row->text);
        if (event_body_append(SPORT_TENNIS, row, odds, &body, &row_at, NULL) == STATUS_OK) {
            check_strict(buffer_text(&body));
            CHECK(text_equals((struct text){body.data + row_at, row->text.size}, row->text));
        }
    }
    buffer_free(&body);
    catalog_destroy(&catalog);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct text text = {(const char *)bytes, size};
    struct buffer minified = {0};
    struct json_text_error error;
    enum status status = json_text_check(text, &minified, &error);
    check_verdict(text, status, &error);
    if (status == STATUS_OK) {
        check_strict(buffer_text(&minified));
        check_slices(text, buffer_text(&minified));
    } else {
        CHECK(error.reason != NULL && error.offset <= size && error.line > 0 && error.column > 0);
        CHECK(minified.size == 0);
    }
    check_catalog(text, text);
    check_catalog(TEXT("[{\"gmid\":7}]"), text);
    buffer_free(&minified);
    return 0;
}
