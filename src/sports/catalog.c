/*
 * The rows are slices of the list's text. The index is open addressing over row numbers, at most
 * half full, built once and never changed.
 */
#include "sports/catalog.h"

#include "base/hash.h"
#include "base/memory.h"
#include "sports/filter.h"
#include "stores/odds.h"

_Static_assert(ODDS_VALUE_MAX <= JSON_TEXT_SIZE_MAX, /* NOLINT(misc-redundant-expression) */
               "whatever the store holds can be checked");

struct catalog {
    struct buffer list;
    struct catalog_row *rows; /* those with a usable id, in order */
    size_t row_count;
    uint32_t *index; /* row number + 1, or 0; a power of two of slots, at least one of them free */
    size_t index_mask;
};

static const struct object_filter row_filter = {
    .hidden = {TEXT_INIT("providerEventId"), TEXT_INIT("feed_source")},
    .wanted = TEXT_INIT("gmid"),
};

/* ---- making ---------------------------------------------------------------------------------- */

/* Filtering only shortens, so a list with room for the whole source never moves, and rows can point
 * into it from the start. */
static void add_rows(struct catalog *catalog, struct text stored, struct text minified)
{
    struct buffer *list = &catalog->list;
    struct json_text_cursor cursor = json_text_open(minified);
    /* The same rows in the stored document, which is minified in most feeds. */
    struct json_text_cursor places = json_text_open(stored);
    bool spaced = stored.size != minified.size;
    struct text element;
    struct buffer rows = {0};
    list->data = memory_alloc(minified.size);
    list->capacity = minified.size;
    const char *start = list->data;
    buffer_append_char(list, '[');
    while (json_text_next_element(&cursor, &element)) {
        struct text place = {stored.at + (element.at - minified.at), element.size};
        if (spaced)
            CHECK(json_text_next_element(&places, &place));
        if (list->size > 1)
            buffer_append_char(list, ',');
        struct catalog_row row = {.text.at = start + list->size,
                                  .at = (uint32_t)(place.at - stored.at),
                                  .size = (uint32_t)place.size};
        struct text gmid;
        object_filter_append(&row_filter, element, list, &gmid);
        row.text.size = (size_t)(start + list->size - row.text.at);
        if (event_id_read(gmid, &row.id) == STATUS_OK)
            buffer_append(&rows, &row, sizeof row);
    }
    catalog->rows = (struct catalog_row *)(void *)rows.data;
    catalog->row_count = rows.size / sizeof *catalog->rows;
    buffer_append_char(list, ']');
    CHECK(list->data == start);
}

/* The slot of this id, or the empty one where it belongs. */
static uint32_t *find_slot(const struct catalog *catalog, const struct event_id *id)
{
    size_t at = hash_text(0, event_id_text(id)) & catalog->index_mask;
    while (catalog->index[at] != 0 &&
           !event_id_equals(&catalog->rows[catalog->index[at] - 1].id, id))
        at = (at + 1) & catalog->index_mask;
    return &catalog->index[at];
}

static void build_index(struct catalog *catalog)
{
    size_t slots = 2;
    while (slots < 2 * catalog->row_count)
        slots *= 2;
    catalog->index = memory_alloc_zeroed(slots, sizeof catalog->index[0]);
    catalog->index_mask = slots - 1;
    for (size_t i = 0; i < catalog->row_count; i++) {
        uint32_t *slot = find_slot(catalog, &catalog->rows[i].id);
        if (*slot == 0) /* else the first row of that id stays */
            *slot = (uint32_t)i + 1;
    }
}

enum status catalog_create(struct text stored, struct catalog **catalog,
                           struct json_text_error *error)
{
    struct buffer minified = {0};
    enum status status = feed_array_minify(stored, &minified, error);
    if (status == STATUS_OK) {
        *catalog = memory_alloc_zeroed(1, sizeof **catalog);
        add_rows(*catalog, stored, buffer_text(&minified));
        build_index(*catalog);
    }
    buffer_free(&minified);
    return status;
}

void catalog_destroy(struct catalog **catalog)
{
    struct catalog *mine = memory_take(catalog);
    if (mine == NULL)
        return;
    buffer_free(&mine->list);
    memory_free(mine->rows);
    memory_free(mine->index);
    memory_free(mine);
}

/* ---- asking ---------------------------------------------------------------------------------- */

struct text catalog_list(const struct catalog *catalog)
{
    return buffer_text(&catalog->list);
}

const struct catalog_row *catalog_find(const struct catalog *catalog, const struct event_id *id)
{
    uint32_t row = *find_slot(catalog, id);
    return row == 0 ? NULL : &catalog->rows[row - 1];
}

bool catalog_row_is(const struct catalog_row *row, struct text stored)
{
    struct buffer minified = {0};
    struct buffer filtered = {0};
    bool same = json_text_check(stored, &minified, NULL) == STATUS_OK &&
                json_text_kind(buffer_text(&minified)) == JSON_TEXT_OBJECT;
    if (same) {
        struct text gmid;
        object_filter_append(&row_filter, buffer_text(&minified), &filtered, &gmid);
        same = text_equals(buffer_text(&filtered), row->text);
    }
    buffer_free(&minified);
    buffer_free(&filtered);
    return same;
}

const struct catalog_row *catalog_row(const struct catalog *catalog, size_t number)
{
    return number < catalog->row_count ? &catalog->rows[number] : NULL;
}

size_t catalog_bytes(const struct catalog *catalog)
{
    return sizeof *catalog + catalog->list.capacity + catalog->row_count * sizeof catalog->rows[0] +
           (catalog->index_mask + 1) * sizeof catalog->index[0];
}
