#pragma once

#include <sqlite3.h>

#include "stores/platform/sql.h"

/*
 * Parameters into statements and columns out of rows, for the files that hold the SQLite engine's
 * statements. Parameters count from 1, columns from 0.
 */

/* Binding fails only for want of memory or by a bug. The bytes must live until the statement
 * ran. */
static inline void bind_value(sqlite3_stmt *statement, int at, const struct column_value *value)
{
    const char *bytes = value->bytes.at != NULL ? value->bytes.at : "";
    int size = (int)value->bytes.size;
    CHECK(value->bytes.size <= INT32_MAX);
    if (value->null)
        return; /* as after clearing the bindings */
    if (value->kind == COLUMN_TEXT)
        CHECK(sqlite3_bind_text(statement, at, bytes, size, SQLITE_STATIC) == SQLITE_OK);
    else if (value->kind == COLUMN_BYTES)
        CHECK(sqlite3_bind_blob(statement, at, bytes, size, SQLITE_STATIC) == SQLITE_OK);
    else
        CHECK(sqlite3_bind_int64(statement, at, value->integer) == SQLITE_OK);
}

static inline struct text read_text(sqlite3_stmt *row, int column)
{
    const char *at = (const char *)sqlite3_column_text(row, column);
    return (struct text){at, at == NULL ? 0 : (size_t)sqlite3_column_bytes(row, column)};
}
