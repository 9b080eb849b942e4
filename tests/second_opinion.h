#pragma once

#include <sqlite3.h>

#include "base/status.h"
#include "base/text.h"

static inline bool is_utf8(struct text text)
{
    for (size_t i = 0; i < text.size;) {
        size_t size = utf8_sequence(text.at + i, text.size - i);
        if (size == 0)
            return false;
        i += size;
    }
    return true;
}

/*
 * Whether SQLite takes a text for strict JSON. It does not look at the encoding, stops at a NUL, and
 * bounds the depth otherwise, so those are the caller's.
 */
static inline bool sqlite_takes_json(struct text text)
{
    static sqlite3 *database;
    static sqlite3_stmt *statement;
    if (database == NULL) {
        CHECK(sqlite3_open(":memory:", &database) == SQLITE_OK);
        CHECK(sqlite3_prepare_v2(database, "SELECT json_valid(?)", -1, &statement, NULL) ==
              SQLITE_OK);
    }
    CHECK(sqlite3_bind_text(statement, 1, text.at, (int)text.size, SQLITE_STATIC) == SQLITE_OK);
    CHECK(sqlite3_step(statement) == SQLITE_ROW);
    bool taken = sqlite3_column_int(statement, 0) == 1;
    CHECK(sqlite3_reset(statement) == SQLITE_OK);
    return taken;
}
