#pragma once

#include <string.h>

#include "stores/platform/ledger/rows.h"

/*
 * Array parameters ($1::bigint[], $2::text[], $3::bytea[]) of statements that write or look up many
 * rows at once by unnest: an array for each column. Values are added row by row, each to the column
 * after the last one's. Zeroed with its `width` it has no rows; its arrays are NULL then, of which
 * unnest makes no row.
 */

#define ARRAYS_MAX 20

struct array_column {
    struct buffer bytes;
    uint32_t count;
    bool has_values; /* else all are NULL, and so is the array: unnest makes NULLs of it for less */
};

struct row_arrays {
    size_t width; /* columns */
    size_t next;  /* the column that the next value is for */
    struct array_column columns[ARRAYS_MAX];
    struct sql_parameters parameters;
};

static inline size_t arrays_count(const struct row_arrays *arrays)
{
    return arrays->columns[0].count;
}

/* Object identifiers of types (pg_type.h). */
enum array_type { ARRAY_BYTEA = 17, ARRAY_BIGINT = 20, ARRAY_TEXT = 25 };

static inline void array_append_u32(struct buffer *bytes, uint32_t value)
{
    const unsigned char big_endian[4] = {(unsigned char)(value >> 24), (unsigned char)(value >> 16),
                                         (unsigned char)(value >> 8), (unsigned char)value};
    buffer_append(bytes, big_endian, sizeof big_endian);
}

/* Adds a value in its binary form; `bytes` NULL: NULL. The head of an array's binary form
 * (array_recv in PostgreSQL's arrayfuncs.c) is its dimensions, flags, type, number of items, which
 * arrays_bind fills in, and first index. */
static inline void arrays_add(struct row_arrays *arrays, enum array_type type, const void *bytes,
                              size_t size)
{
    struct array_column *column = &arrays->columns[arrays->next];
    CHECK(arrays->width <= ARRAYS_MAX && size <= INT32_MAX);
    arrays->next = (arrays->next + 1) % arrays->width;
    if (column->count++ == 0) {
        const uint32_t head[] = {1, 1 /* may hold NULLs */, type, 0, 1};
        for (size_t i = 0; i < sizeof head / sizeof head[0]; i++)
            array_append_u32(&column->bytes, head[i]);
    }
    array_append_u32(&column->bytes, bytes == NULL ? UINT32_MAX : (uint32_t)size);
    column->has_values |= bytes != NULL;
    if (bytes != NULL)
        buffer_append(&column->bytes, bytes, size);
}

static inline void arrays_add_integer(struct row_arrays *arrays, int64_t value)
{
    unsigned char big_endian[8];
    for (size_t i = 0; i < sizeof big_endian; i++)
        big_endian[i] = (unsigned char)((uint64_t)value >> (56 - 8 * i));
    arrays_add(arrays, ARRAY_BIGINT, big_endian, sizeof big_endian);
}

static inline void arrays_add_string(struct row_arrays *arrays, const char *string)
{
    arrays_add(arrays, ARRAY_TEXT, string, strlen(string));
}

/* "" is NULL. */
static inline void arrays_add_optional(struct row_arrays *arrays, const char *string)
{
    arrays_add(arrays, ARRAY_TEXT, string[0] != '\0' ? string : NULL, strlen(string));
}

static inline void arrays_add_hash(struct row_arrays *arrays, const uint8_t hash[LEDGER_HASH_SIZE])
{
    arrays_add(arrays, ARRAY_BYTEA, hash, LEDGER_HASH_SIZE);
}

/* The parameters of a statement about the rows; they are the arrays', and hold until the next row
 * is added. */
static inline struct sql_parameters *arrays_bind(struct row_arrays *arrays)
{
    arrays->parameters.count = 0;
    CHECK(arrays->next == 0);
    for (size_t i = 0; i < arrays->width; i++) {
        struct array_column *column = &arrays->columns[i];
        SQL_ADD(&arrays->parameters, SQL_BYTES(column->bytes.data, column->bytes.size));
        arrays->parameters.at[i].null = !column->has_values;
        for (size_t j = 0; j < 4 && column->count > 0; j++)
            column->bytes.data[12 + j] = (char)(column->count >> (24 - 8 * j));
    }
    return &arrays->parameters;
}

static inline void arrays_free(struct row_arrays *arrays)
{
    for (size_t i = 0; i < arrays->width; i++)
        buffer_free(&arrays->columns[i].bytes);
}
