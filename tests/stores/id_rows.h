#pragma once

#include <string.h>

#include "stores/platform/sqlite/ids/id_index.h"

/*
 * A ledger for tests of its index of ids: what a row is follows from its number, so that nothing
 * is stored. Rows after `forked` are those of another history.
 */
struct id_rows {
    int64_t last;
    int64_t forked;   /* INT64_MAX: nowhere */
    uint64_t history; /* of the rows after that */
    uint64_t mask;    /* of keys; 0: all bits */
    uint64_t read;    /* rows, since it was set to 0 */
};

#define ID_ROW_KEYS 2

static inline uint64_t id_rows_mix(uint64_t value)
{
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9U;
    value = (value ^ value >> 27) * 0x94D049BB133111EBU;
    return value ^ value >> 31;
}

static inline uint64_t id_rows_digest(const struct id_rows *rows, int64_t number)
{
    uint64_t history = number > rows->forked ? rows->history : 0;
    return id_rows_mix(id_rows_mix(history + 1) ^ (uint64_t)number * 0x9E3779B97F4A7C15U);
}

/* The key of the id that a row uses. */
static inline uint64_t id_rows_key(const struct id_rows *rows, int64_t number)
{
    return id_rows_digest(rows, number) & (rows->mask != 0 ? rows->mask : UINT64_MAX);
}

/* One row of three has a second key: that of a row shortly before it, or of one that very many
 * refer to. */
static inline size_t id_rows_keys(const struct id_rows *rows, int64_t number,
                                  uint64_t keys[ID_ROW_KEYS])
{
    uint64_t digest = id_rows_digest(rows, number) >> 7;
    keys[0] = id_rows_key(rows, number);
    if (digest % 3 != 0 || number < 10)
        return 1;
    int64_t before = digest % 5 == 0 ? 1 + number / 4096 : number - 1 - (int64_t)(digest % 8);
    keys[1] = id_rows_key(rows, before);
    return 2;
}

static inline void id_rows_hash(const struct id_rows *rows, int64_t number,
                                uint8_t row_hash[ID_ROW_HASH_SIZE])
{
    uint64_t digest = id_rows_mix(id_rows_digest(rows, number));
    for (size_t i = 0; i < ID_ROW_HASH_SIZE; i++)
        row_hash[i] = (uint8_t)(digest >> (i % 8 * 8));
}

static inline enum status id_rows_read(void *context, int64_t first, int64_t last,
                                       struct id_feed *feed, struct error *error)
{
    struct id_rows *rows = context;
    uint8_t row_hash[ID_ROW_HASH_SIZE];
    uint64_t keys[ID_ROW_KEYS];
    (void)error;
    for (int64_t number = first; number <= last && number <= rows->last; number++) {
        rows->read++;
        id_rows_hash(rows, number, row_hash);
        if (!id_feed_row(feed, number, keys, id_rows_keys(rows, number, keys), row_hash))
            break;
    }
    return STATUS_OK;
}

static inline enum status id_rows_read_hash(void *context, int64_t number,
                                            uint8_t row_hash[ID_ROW_HASH_SIZE], struct error *error)
{
    const struct id_rows *rows = context;
    if (number > rows->last)
        return error_set(error, STATUS_NOT_FOUND, "there is no such row");
    id_rows_hash(rows, number, row_hash);
    return STATUS_OK;
}

static inline struct id_source id_rows_source(struct id_rows *rows)
{
    return (struct id_source){.read = id_rows_read, .row_hash = id_rows_read_hash, .context = rows};
}

/* Adds the rows from the one after `rows->last` to `last`, a batch that was committed. */
static inline void id_rows_add(struct id_rows *rows, struct id_index *index, int64_t last)
{
    struct id_entry entries[ID_ADDED_MAX];
    uint8_t row_hash[ID_ROW_HASH_SIZE];
    size_t count = 0;
    CHECK((last - rows->last) * ID_ROW_KEYS <= ID_ADDED_MAX);
    while (rows->last < last) {
        uint64_t keys[ID_ROW_KEYS];
        size_t some = id_rows_keys(rows, ++rows->last, keys);
        for (size_t i = 0; i < some; i++)
            entries[count++] = (struct id_entry){keys[i], rows->last};
    }
    id_rows_hash(rows, last, row_hash);
    id_index_add(index, entries, count, last, row_hash);
}
