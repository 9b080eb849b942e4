/* Documents on their way into the odds store. Checking is a pure function of the bytes. */
#include "feed/publish.h"

#include "base/hash.h"
#include "base/json_text.h"
#include "base/memory.h"

/* ---- event ids of catalog rows --------------------------------------------------------------- */

/* A number or a string of digits; of several gmids in a row the last one counts, as for the
 * server. */
static bool read_row_id(struct text row, struct event_id *id)
{
    struct json_text_cursor cursor = json_text_open(row);
    struct text name, value, gmid = {NULL, 0};
    while (json_text_next_member(&cursor, &name, &value))
        if (json_text_string_equals(name, TEXT("gmid")))
            gmid = value;
    return event_id_read(gmid, id) == STATUS_OK;
}

struct id_set {
    struct event_id *slots; /* size 0: free */
    size_t mask;
};

static void id_set_create(struct id_set *set, size_t count)
{
    size_t slots = 2;
    while (slots < 2 * count)
        slots *= 2;
    set->slots = memory_alloc_zeroed(slots, sizeof *set->slots);
    set->mask = slots - 1;
}

/* False when it was there already. */
static bool id_set_add(struct id_set *set, const struct event_id *id)
{
    size_t at = hash_text(0, event_id_text(id)) & set->mask;
    for (; set->slots[at].size != 0; at = (at + 1) & set->mask)
        if (event_id_equals(&set->slots[at], id))
            return false;
    set->slots[at] = *id;
    return true;
}

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

static void count_unaddressable(struct text document, struct feed_report *report)
{
    struct json_text_cursor cursor = json_text_open(json_text_trim(document));
    struct text row;
    struct id_set seen;
    id_set_create(&seen, report->rows);
    while (json_text_next_element(&cursor, &row)) {
        struct event_id id;
        if (!read_row_id(row, &id)) {
            if (report->without_id++ == 0)
                report->without_id_line = line_of(document, row);
        } else if (!id_set_add(&seen, &id)) {
            if (report->repeated++ == 0) {
                report->repeated_line = line_of(document, row);
                report->repeated_id = id;
            }
        }
    }
    memory_free(seen.slots);
}

enum status feed_check_text(enum odds_kind kind, struct text document, struct feed_report *report,
                            struct json_text_error *wrong)
{
    struct feed_report found = {.bytes = document.size};
    if (json_text_check(document, NULL, wrong) != STATUS_OK ||
        !count_rows(document, &found.rows, wrong))
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
    if (feed_check_text(kind, document, report, &wrong) != STATUS_OK)
        return error_set(error, STATUS_MALFORMED, "%s:%zu:%zu: %s", name, wrong.line, wrong.column,
                         wrong.reason);
    return STATUS_OK;
}

/* ---- what is published ----------------------------------------------------------------------- */

static bool lists(struct text catalog, const struct event_id *event)
{
    if (json_text_check(catalog, NULL, NULL) != STATUS_OK)
        return false;
    struct text array = json_text_trim(catalog), row;
    if (json_text_kind(array) != JSON_TEXT_ARRAY)
        return false;
    struct json_text_cursor cursor = json_text_open(array);
    while (json_text_next_element(&cursor, &row)) {
        struct event_id id;
        if (json_text_kind(row) == JSON_TEXT_OBJECT && read_row_id(row, &id) &&
            event_id_equals(&id, event))
            return true;
    }
    return false;
}

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
    *listed =
        read.value.version != 0 && lists((struct text){read.value.bytes, read.value.size}, event);
    memory_free(read.value.bytes);
    return STATUS_OK;
}
