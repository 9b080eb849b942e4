/* Documents on their way into the odds store. Checking is a pure function of the bytes. */
#include "feed/check.h"

#include "base/memory.h"
#include "sports/catalog.h"
#include "stores/odds_read.h"

/* ---- checking -------------------------------------------------------------------------------- */

/* Counts the rows. False: `wrong` says where something else than an object stands. */
static bool count_rows(struct text document, size_t *rows, struct json_text_error *wrong)
{
    struct text array = json_text_trim(document), element;
    size_t count = 0;
    if (json_text_kind(array) != JSON_TEXT_ARRAY) {
        json_text_locate(wrong, document, (size_t)(array.at - document.at),
                         "expected an array of objects");
        return false;
    }
    struct json_text_cursor cursor = json_text_open(array);
    for (; json_text_next_element(&cursor, &element); count++) {
        if (json_text_kind(element) != JSON_TEXT_OBJECT) {
            json_text_locate(wrong, document, (size_t)(element.at - document.at),
                             "expected an object: every element is one");
            return false;
        }
    }
    *rows = count;
    return true;
}

static size_t line_of(struct text document, struct text row)
{
    struct json_text_error place;
    json_text_locate(&place, document, (size_t)(row.at - document.at), NULL);
    return place.line;
}

/* The server's own index of the catalog decides which rows can be asked for. */
static void count_unaddressable(struct text document, struct feed_report *report)
{
    struct catalog *catalog = NULL;
    CHECK(catalog_create(document, &catalog, NULL) == STATUS_OK); /* it was checked before */
    struct json_text_cursor cursor = json_text_open(json_text_trim(document));
    struct text row;
    size_t usable = 0;
    while (json_text_next_element(&cursor, &row)) {
        const struct catalog_row *here = catalog_row(catalog, usable);
        if (here == NULL || here->at != (size_t)(row.at - document.at)) {
            if (report->without_id++ == 0)
                report->without_id_line = line_of(document, row);
            continue;
        }
        usable++;
        if (catalog_find(catalog, &here->id) != here && report->repeated++ == 0) {
            report->repeated_line = line_of(document, row);
            report->repeated_id = here->id;
        }
    }
    catalog_destroy(&catalog);
}

enum status feed_check_value(enum odds_kind kind, struct text document, struct feed_report *report,
                             struct json_text_error *wrong)
{
    struct feed_report found = {.bytes = document.size};
    if (!count_rows(document, &found.rows, wrong))
        return STATUS_MALFORMED;
    if (kind == ODDS_CATALOG)
        count_unaddressable(document, &found);
    *report = found;
    return STATUS_OK;
}

enum status feed_check(enum odds_kind kind, const char *name, struct text document,
                       struct feed_report *report, struct error *error)
{
    struct json_text_error wrong;
    if (document.size > ODDS_VALUE_MAX)
        return error_set(error, STATUS_MALFORMED, "%s: more than 32 MiB", name);
    if (json_text_check(document, NULL, &wrong) != STATUS_OK ||
        feed_check_value(kind, document, report, &wrong) != STATUS_OK)
        return error_set(error, STATUS_MALFORMED, "%s:%zu:%zu: %s", name, wrong.line, wrong.column,
                         wrong.reason);
    return STATUS_OK;
}

/* ---- what is published ----------------------------------------------------------------------- */

enum status feed_catalog_lists(struct odds_store *store, enum sport sport,
                               const struct event_id *event, bool *listed, struct error *error)
{
    struct odds_read read = {.kind = ODDS_CATALOG, .sport = sport};
    enum status status = odds_store_read_and_wait(store, &read);
    if (status == STATUS_MALFORMED) {
        *listed = false;
        return STATUS_OK;
    }
    if (status != STATUS_OK)
        return error_set(error, status, "cannot read the catalog of %s: %s", sport_key(sport),
                         status_name(status));
    struct catalog *catalog = NULL;
    const struct text stored = {read.value.bytes, read.value.size};
    *listed = read.value.version != 0 && catalog_create(stored, &catalog, NULL) == STATUS_OK &&
              catalog_find(catalog, event) != NULL;
    catalog_destroy(&catalog);
    memory_free(read.value.bytes);
    return STATUS_OK;
}
