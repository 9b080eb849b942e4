#pragma once

#include "stores/platform/ledger/rows.h"

/*
 * Array parameters ($1::bigint[], $2::text[], $3::bytea[]) of statements that write or look up many
 * rows at once by unnest: an array for each column. Zeroed it has no rows; its arrays are NULL
 * then, of which unnest makes no row.
 */

#define ARRAYS_MAX 20

struct array_column {
    struct buffer bytes;
    uint32_t count;
    bool has_values; /* else all are NULL, and so is the array: unnest makes NULLs of it for less */
};

struct row_arrays {
    struct array_column columns[ARRAYS_MAX];
    struct sql_parameters parameters;
};

static inline size_t arrays_count(const struct row_arrays *arrays)
{
    return arrays->columns[0].count;
}

static inline void array_append_u32(struct buffer *bytes, uint32_t value)
{
    const unsigned char big_endian[4] = {(unsigned char)(value >> 24), (unsigned char)(value >> 16),
                                         (unsigned char)(value >> 8), (unsigned char)value};
    buffer_append(bytes, big_endian, sizeof big_endian);
}

/* Adds a row: ARRAYS_ADD(&rows, SQL_INTEGER(number), SQL_STRING(id)). */
#define ARRAYS_ADD(arrays_, ...) \
    arrays_add((arrays_), (const struct column_value[]){__VA_ARGS__}, SQL_COUNT(__VA_ARGS__))

/* The values go in their binary forms. The head of an array's binary form (array_recv in
 * PostgreSQL's arrayfuncs.c) is its dimensions, flags, type, number of items, which arrays_bind
 * fills in, and first index. */
static inline void arrays_add(struct row_arrays *arrays, const struct column_value *values,
                              int count)
{
    /* Object identifiers of bytea, bigint and text (pg_type.h). */
    static const uint32_t types[] = {
        [COLUMN_BYTES] = 17, [COLUMN_INTEGER] = 20, [COLUMN_TEXT] = 25};
    CHECK(count <= ARRAYS_MAX);
    for (int i = 0; i < count; i++) {
        const struct column_value *value = &values[i];
        struct array_column *column = &arrays->columns[i];
        const uint32_t head[] = {1, 1 /* may hold NULLs */, types[value->kind], 0, 1};
        for (size_t j = 0; column->count == 0 && j < sizeof head / sizeof head[0]; j++)
            array_append_u32(&column->bytes, head[j]);
        column->count++;
        column->has_values |= !value->null;
        if (value->null) {
            array_append_u32(&column->bytes, UINT32_MAX);
        } else if (value->kind == COLUMN_INTEGER) {
            array_append_u32(&column->bytes, sizeof value->integer);
            array_append_u32(&column->bytes, (uint32_t)((uint64_t)value->integer >> 32));
            array_append_u32(&column->bytes, (uint32_t)value->integer);
        } else {
            CHECK(value->bytes.size <= INT32_MAX);
            array_append_u32(&column->bytes, (uint32_t)value->bytes.size);
            buffer_append_text(&column->bytes, value->bytes);
        }
    }
}

/* The parameters of a statement about the rows, which have so many columns; they are the arrays',
 * and hold until the next row is added. */
static inline struct sql_parameters *arrays_bind(struct row_arrays *arrays, int columns)
{
    arrays->parameters.count = 0;
    for (int i = 0; i < columns; i++) {
        struct array_column *column = &arrays->columns[i];
        CHECK(column->count == arrays_count(arrays));
        SQL_ADD(&arrays->parameters, SQL_BYTES(column->bytes.data, column->bytes.size));
        arrays->parameters.at[i].null = !column->has_values;
        for (size_t j = 0; j < 4 && column->count > 0; j++)
            column->bytes.data[12 + j] = (char)(column->count >> (24 - 8 * j));
    }
    return &arrays->parameters;
}

static inline void arrays_free(struct row_arrays *arrays)
{
    for (size_t i = 0; i < ARRAYS_MAX; i++)
        buffer_free(&arrays->columns[i].bytes);
}
