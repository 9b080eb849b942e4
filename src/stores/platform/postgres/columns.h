#ifndef CROUPIER_STORES_PLATFORM_POSTGRES_COLUMNS_H
#define CROUPIER_STORES_PLATFORM_POSTGRES_COLUMNS_H

#include <string.h>

#include "stores/platform/postgres/postgres.h"

/*
 * Parameters into queries and columns out of rows, for the files that hold the PostgreSQL engine's
 * statements. Parameters count from 1 ($1), columns from 0. Numbers go out as text, whose type the
 * server infers, strings and blobs as they are; columns come in binary.
 */

static inline int parameter_at(struct postgres_parameters *parameters, int at)
{
    CHECK(at >= 1 && at <= POSTGRES_PARAMETERS_MAX);
    if (parameters->count < at)
        parameters->count = at;
    return at - 1;
}

static inline void set_null(struct postgres_parameters *parameters, int at)
{
    parameters->values[parameter_at(parameters, at)] = NULL;
}

static inline void set_blob(struct postgres_parameters *parameters, int at, const void *bytes,
                            size_t size)
{
    int index = parameter_at(parameters, at);
    CHECK(size <= INT32_MAX);
    parameters->values[index] = size > 0 ? bytes : "";
    parameters->lengths[index] = (int)size;
    parameters->formats[index] = 1;
}

/* Its binary form is the text itself, which needs no NUL. */
static inline void set_text(struct postgres_parameters *parameters, int at, struct text text)
{
    set_blob(parameters, at, text.at, text.size);
}

static inline void set_string(struct postgres_parameters *parameters, int at, const char *string)
{
    set_text(parameters, at, text_of(string));
}

static inline void set_integer(struct postgres_parameters *parameters, int at, int64_t value)
{
    int index = parameter_at(parameters, at);
    char *digits = parameters->digits[index];
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    digits[0] = '-';
    digits[1 + decimal_write(digits + 1, size)] = '\0';
    parameters->values[index] = value < 0 ? digits : digits + 1;
    parameters->formats[index] = 0;
}

static inline void set_flag(struct postgres_parameters *parameters, int at, bool flag)
{
    int index = parameter_at(parameters, at);
    parameters->values[index] = flag ? "t" : "f";
    parameters->formats[index] = 0;
}

/*
 * An array parameter ($1::bigint[], ::text[], ::bytea[]), for statements that write or look up many
 * rows at once by unnest. Zeroed with its kind it is empty; array_free gives the memory back, and
 * the parameter borrows it until then.
 */
enum postgres_array_kind { ARRAY_BYTEA = 17, ARRAY_BIGINT = 20, ARRAY_TEXT = 25 };
struct postgres_array {
    enum postgres_array_kind kind;
    struct buffer bytes;
    uint32_t count;
};

static inline void array_append_u32(struct buffer *bytes, uint32_t value)
{
    const unsigned char big_endian[4] = {(unsigned char)(value >> 24), (unsigned char)(value >> 16),
                                         (unsigned char)(value >> 8), (unsigned char)value};
    buffer_append(bytes, big_endian, sizeof big_endian);
}

/* The head of an array's binary form, whose number of items is filled in later (array_recv in
 * PostgreSQL's arrayfuncs.c): dimensions, flags, type, items, first index. */
static inline void array_begin_item(struct postgres_array *array)
{
    if (array->count++ > 0)
        return;
    array_append_u32(&array->bytes, 1);
    array_append_u32(&array->bytes, 1); /* may hold NULLs */
    array_append_u32(&array->bytes, array->kind);
    array_append_u32(&array->bytes, 0);
    array_append_u32(&array->bytes, 1);
}

static inline void array_add_bytes(struct postgres_array *array, const void *bytes, size_t size)
{
    CHECK(array->kind != ARRAY_BIGINT && size <= INT32_MAX);
    array_begin_item(array);
    array_append_u32(&array->bytes, (uint32_t)size);
    buffer_append(&array->bytes, bytes, size);
}

static inline void array_add_string(struct postgres_array *array, const char *string)
{
    array_add_bytes(array, string, strlen(string));
}

static inline void array_add_integer(struct postgres_array *array, int64_t value)
{
    CHECK(array->kind == ARRAY_BIGINT);
    array_begin_item(array);
    array_append_u32(&array->bytes, 8);
    array_append_u32(&array->bytes, (uint32_t)((uint64_t)value >> 32));
    array_append_u32(&array->bytes, (uint32_t)(uint64_t)value);
}

static inline void array_add_null(struct postgres_array *array)
{
    array_begin_item(array);
    array_append_u32(&array->bytes, UINT32_MAX); /* a length of -1 */
}

static inline void set_array(struct postgres_parameters *parameters, int at,
                             struct postgres_array *array)
{
    if (array->count == 0) { /* no dimensions */
        buffer_clear(&array->bytes);
        array_append_u32(&array->bytes, 0);
        array_append_u32(&array->bytes, 0);
        array_append_u32(&array->bytes, array->kind);
    } else {
        unsigned char *items = (unsigned char *)array->bytes.data + 12;
        for (size_t i = 0; i < 4; i++)
            items[i] = (unsigned char)(array->count >> (24 - 8 * i));
    }
    set_blob(parameters, at, array->bytes.data, array->bytes.size);
}

static inline void array_free(struct postgres_array *array)
{
    buffer_free(&array->bytes);
    array->count = 0;
}

/* ---- columns --------------------------------------------------------------------------------- */

static inline int row_count(const struct postgres_query *query)
{
    return query->result == NULL ? 0 : PQntuples(query->result);
}

static inline struct postgres_row row_at(const struct postgres_query *query, int at)
{
    CHECK(at >= 0 && at < row_count(query));
    return (struct postgres_row){query->result, at};
}

static inline bool row_is_null(const struct postgres_row *row, int column)
{
    return PQgetisnull(row->result, row->at, column) == 1;
}

/* Borrowed from the row; of NULL, {NULL, 0}. Of a bytea, its bytes. */
static inline struct text row_text(const struct postgres_row *row, int column)
{
    if (row_is_null(row, column))
        return (struct text){NULL, 0};
    return (struct text){PQgetvalue(row->result, row->at, column),
                         (size_t)PQgetlength(row->result, row->at, column)};
}

/* Of a smallint, integer or bigint; NULL reads as 0. */
static inline int64_t row_integer(const struct postgres_row *row, int column)
{
    struct text bytes = row_text(row, column);
    uint64_t value = 0;
    CHECK(bytes.size == 0 || bytes.size == 2 || bytes.size == 4 || bytes.size == 8);
    for (size_t i = 0; i < bytes.size; i++)
        value = value << 8 | (unsigned char)bytes.at[i];
    return bytes.size == 2 ? (int16_t)value : bytes.size == 4 ? (int32_t)value : (int64_t)value;
}

/* Of a boolean; NULL reads as false. */
static inline bool row_flag(const struct postgres_row *row, int column)
{
    struct text byte = row_text(row, column);
    return byte.size == 1 && byte.at[0] != 0;
}

/* As text_copy_plain. */
static inline bool row_string(const struct postgres_row *row, int column, char *out, size_t room)
{
    return text_copy_plain(row_text(row, column), out, room);
}

static inline bool row_optional(const struct postgres_row *row, int column, char *out, size_t room)
{
    out[0] = '\0';
    return row_is_null(row, column) || row_string(row, column, out, room);
}

/* Copies a bytea of exactly `size` bytes; false, and zeros, when it has another size. */
static inline bool row_blob(const struct postgres_row *row, int column, void *out, size_t size)
{
    struct text bytes = row_text(row, column);
    memset(out, 0, size);
    if (bytes.at == NULL || bytes.size != size)
        return false;
    memcpy(out, bytes.at, size);
    return true;
}

#endif
