/*
 * Customers, keys and legacy addresses in SQLite: the statements, and rows to records.
 *
 * Every change is one transaction: BEGIN IMMEDIATE, the next revision, the row stamped with it,
 * COMMIT. SQLite has one writer at a time, so revisions become visible in their order. Reading a
 * row never fails on account of what it holds: a row that makes no sense (a column that somebody
 * edited, a sport of a later version) is `usable = false` and admits nobody, while its neighbours
 * go on working.
 */
#include <string.h>

#include "base/memory.h"
#include "stores/platform/sqlite/columns.h"
#include "stores/platform/sqlite/sqlite.h"
#include "stores/platform_record.h"

/* ---- policies in columns --------------------------------------------------------------------- */

static void bind_rate(sqlite3_stmt *statement, int at, const struct rate_limit *rate)
{
    if (!rate->enabled)
        return;
    bind_integer(statement, at, rate->requests);
    bind_integer(statement, at + 1, rate->window_seconds);
}

static bool read_sports(sqlite3_stmt *row, int column, sport_set *sports)
{
    return sport_set_parse(read_text(row, column), sports, NULL) == STATUS_OK;
}

static bool read_rate(sqlite3_stmt *row, int column, struct rate_limit *rate)
{
    bool off = sqlite3_column_type(row, column) == SQLITE_NULL &&
               sqlite3_column_type(row, column + 1) == SQLITE_NULL;
    if (off)
        return true;
    int64_t requests = sqlite3_column_int64(row, column);
    int64_t window = sqlite3_column_int64(row, column + 1);
    if (requests < 0 || requests > UINT32_MAX || window < 0 || window > UINT32_MAX)
        return false;
    *rate = (struct rate_limit){true, (uint32_t)requests, (uint32_t)window};
    return rate_limit_is_sound(rate);
}

#define REVISION "SELECT revision FROM store_revision"
#define NEXT_REVISION "UPDATE store_revision SET revision = revision + 1 RETURNING revision"

/* ---- customers ------------------------------------------------------------------------------- */

#define CUSTOMER_COLUMNS                                                                         \
    "id, name, enabled, casino, sports, rate_requests, rate_window_seconds, cidrs, created_ms, " \
    "revision"

/* `blocks` has room for CIDRS_MAX; the record borrows it. */
static void read_customer(sqlite3_stmt *row, struct cidr *blocks, struct customer_record *record)
{
    *record = (struct customer_record){.usable = true, .cidrs = blocks};
    record->usable &= read_string(row, 0, record->id, sizeof record->id);
    record->usable &= read_string(row, 1, record->name, sizeof record->name);
    record->usable &= read_flag(row, 2, &record->enabled);
    record->usable &= read_flag(row, 3, &record->casino);
    record->usable &= read_sports(row, 4, &record->sports);
    record->usable &= read_rate(row, 5, &record->rate);
    record->usable &= cidr_list_read(read_text(row, 7), blocks, CIDRS_MAX, &record->cidr_count);
    record->created_ms = sqlite3_column_int64(row, 8);
    record->revision = (uint64_t)sqlite3_column_int64(row, 9);
}

/* Parameters 1 to 9, in the order of CUSTOMER_COLUMNS less created_ms. */
static void bind_customer(sqlite3_stmt *statement, const struct customer_record *record,
                          struct buffer *sports, struct buffer *cidrs, int64_t revision)
{
    sport_set_append(sports, record->sports);
    cidr_list_append(cidrs, record->cidrs, record->cidr_count);
    bind_string(statement, 1, record->id);
    bind_string(statement, 2, record->name);
    bind_integer(statement, 3, record->enabled);
    bind_integer(statement, 4, record->casino);
    bind_string(statement, 5, buffer_string(sports));
    bind_rate(statement, 6, &record->rate);
    bind_string(statement, 8, buffer_string(cidrs));
    bind_integer(statement, 9, revision);
}

enum status sqlite_customer_add(struct platform_store *base, const struct customer_record *record,
                                struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct buffer sports = {0};
    struct buffer cidrs = {0};
    sqlite3_stmt *statement;
    int64_t revision = 0;
    enum status status = sqlite_change_begin(store, NEXT_REVISION, &revision, error);
    if (status != STATUS_OK)
        return status;
    status = sqlite_statement(store,
                              "INSERT INTO customer (id, name, enabled, casino, sports,"
                              " rate_requests, rate_window_seconds, cidrs, revision, created_ms)"
                              " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                              &statement, error);
    if (status == STATUS_OK) {
        bind_customer(statement, record, &sports, &cidrs, revision);
        bind_integer(statement, 10, record->created_ms);
        status = sqlite_run(store, statement, error);
    }
    status = sqlite_end(store, status, error);
    buffer_free(&sports);
    buffer_free(&cidrs);
    return status;
}

static enum status update_customer(struct sqlite_store *store, const struct customer_record *record,
                                   int64_t revision, struct error *error)
{
    struct buffer sports = {0};
    struct buffer cidrs = {0};
    bool found = false;
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(
        store,
        "UPDATE customer SET name = ?2, enabled = ?3, casino = ?4, sports = ?5, rate_requests = ?6,"
        " rate_window_seconds = ?7, cidrs = ?8, revision = ?9"
        " WHERE id = ?1 AND (?10 = 0 OR revision = ?10)",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_customer(statement, record, &sports, &cidrs, revision);
    bind_integer(statement, 10, (int64_t)record->revision);
    status = sqlite_run(store, statement, error);
    buffer_free(&sports);
    buffer_free(&cidrs);
    if (status != STATUS_OK || sqlite3_changes(store->database) > 0)
        return status;
    status = sqlite_exists(store, "SELECT 1 FROM customer WHERE id = ?1", text_of(record->id),
                           &found, error);
    return status == STATUS_OK ? sqlite_no_change(store, found, "customer", error) : status;
}

enum status sqlite_customer_update(struct platform_store *base,
                                   const struct customer_record *record, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    int64_t revision = 0;
    enum status status = sqlite_change_begin(store, NEXT_REVISION, &revision, error);
    if (status != STATUS_OK)
        return status;
    return sqlite_end(store, update_customer(store, record, revision, error), error);
}

enum status sqlite_customer_get(struct platform_store *base, const char *id,
                                struct customer_record *record, struct error *error)
{
    struct cidr blocks[CIDRS_MAX];
    sqlite3_stmt *row;
    enum status status = sqlite_find(sqlite_store_of(base),
                                     "SELECT " CUSTOMER_COLUMNS " FROM customer WHERE id = ?1", id,
                                     "customer", &row, error);
    if (status != STATUS_OK)
        return status;
    read_customer(row, blocks, record);
    record->cidrs = memory_copy(blocks, record->cidr_count * sizeof blocks[0]);
    (void)sqlite3_reset(row);
    return STATUS_OK;
}

static enum status visit_customers(struct sqlite_store *store, sqlite3_stmt *statement,
                                   customer_visitor *visit, void *context, struct error *error)
{
    struct cidr blocks[CIDRS_MAX];
    struct customer_record record;
    bool found = false;
    enum status status;
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found) {
        read_customer(statement, blocks, &record);
        if (!visit(context, &record))
            break;
    }
    (void)sqlite3_reset(statement);
    return status;
}

enum status sqlite_customer_list(struct platform_store *base, customer_visitor *visit,
                                 void *context, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_statement(
            store, "SELECT " CUSTOMER_COLUMNS " FROM customer ORDER BY number", &statement, error);
    return status == STATUS_OK ? visit_customers(store, statement, visit, context, error) : status;
}

/* ---- keys ------------------------------------------------------------------------------------ */

#define KEY_COLUMNS                                                                              \
    "id, customer_id, label, prefix, digest, created_ms, expires_ms, last_used_ms, revoked_ms, " \
    "revision"

static void read_key(sqlite3_stmt *row, struct key_record *record)
{
    *record = (struct key_record){0};
    bool usable = read_string(row, 0, record->id, sizeof record->id);
    usable &= read_string(row, 1, record->customer_id, sizeof record->customer_id);
    usable &= read_string(row, 2, record->label, sizeof record->label);
    usable &= read_string(row, 3, record->prefix, sizeof record->prefix);
    const void *digest = sqlite3_column_blob(row, 4);
    usable &= sqlite3_column_bytes(row, 4) == KEY_DIGEST_SIZE;
    if (usable)
        memcpy(record->digest, digest, KEY_DIGEST_SIZE);
    record->created_ms = sqlite3_column_int64(row, 5);
    record->expires_ms = sqlite3_column_int64(row, 6); /* NULL reads as 0: never */
    record->last_used_ms = sqlite3_column_int64(row, 7);
    record->revoked_ms = sqlite3_column_int64(row, 8);
    record->revision = (uint64_t)sqlite3_column_int64(row, 9);
    if (!usable && record->revoked_ms == 0)
        record->revoked_ms = 1; /* a key that makes no sense opens nothing */
}

static enum status insert_key(struct sqlite_store *store, const struct key_record *record,
                              int64_t revision, struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(store,
                                          "INSERT INTO api_key (" KEY_COLUMNS ")"
                                          " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                                          &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, record->id);
    bind_string(statement, 2, record->customer_id);
    bind_string(statement, 3, record->label);
    bind_string(statement, 4, record->prefix);
    bind_blob(statement, 5, record->digest, KEY_DIGEST_SIZE);
    bind_integer(statement, 6, record->created_ms);
    bind_time(statement, 7, record->expires_ms);
    bind_time(statement, 8, record->last_used_ms);
    bind_time(statement, 9, record->revoked_ms);
    bind_integer(statement, 10, revision);
    return sqlite_run(store, statement, error);
}

enum status sqlite_key_add(struct platform_store *base, const struct key_record *record,
                           struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    int64_t revision = 0;
    enum status status = sqlite_change_begin(store, NEXT_REVISION, &revision, error);
    if (status != STATUS_OK)
        return status;
    return sqlite_end(store, insert_key(store, record, revision, error), error);
}

static enum status revoke_key(struct sqlite_store *store, const char *key_id, int64_t now_ms,
                              int64_t revision, struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_statement(
        store,
        "UPDATE api_key SET revoked_ms = ?2, revision = ?3 WHERE id = ?1 AND revoked_ms IS NULL",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, key_id);
    bind_integer(statement, 2, now_ms);
    bind_integer(statement, 3, revision);
    status = sqlite_run(store, statement, error);
    if (status != STATUS_OK || sqlite3_changes(store->database) > 0)
        return status;
    status =
        sqlite_exists(store, "SELECT 1 FROM api_key WHERE id = ?1", text_of(key_id), &found, error);
    if (status == STATUS_OK && !found)
        status = sqlite_no_change(store, false, "key", error);
    return status; /* revoked before: the first time stands */
}

enum status sqlite_key_revoke(struct platform_store *base, const char *key_id, int64_t now_ms,
                              struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    int64_t revision = 0;
    enum status status = sqlite_change_begin(store, NEXT_REVISION, &revision, error);
    if (status != STATUS_OK)
        return status;
    return sqlite_end(store, revoke_key(store, key_id, now_ms, revision, error), error);
}

static enum status visit_keys(struct sqlite_store *store, sqlite3_stmt *statement,
                              key_visitor *visit, void *context, struct error *error)
{
    struct key_record record;
    bool found = false;
    enum status status;
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found) {
        read_key(statement, &record);
        if (!visit(context, &record))
            break;
    }
    (void)sqlite3_reset(statement);
    return status;
}

enum status sqlite_key_list(struct platform_store *base, const char *customer_id,
                            key_visitor *visit, void *context, struct error *error)
{
    static const char all[] = "SELECT " KEY_COLUMNS " FROM api_key ORDER BY number";
    static const char one[] =
        "SELECT " KEY_COLUMNS " FROM api_key WHERE customer_id = ?1 ORDER BY number";
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_statement(store, customer_id == NULL ? all : one, &statement, error);
    if (status != STATUS_OK)
        return status;
    if (customer_id != NULL)
        bind_string(statement, 1, customer_id);
    return visit_keys(store, statement, visit, context, error);
}

enum status sqlite_key_touch(struct platform_store *base, const struct key_use *uses, size_t count,
                             struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_execute(store, "BEGIN IMMEDIATE", error);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        sqlite3_stmt *statement;
        status = sqlite_statement(store,
                                  "UPDATE api_key SET last_used_ms = ?2 WHERE digest = ?1"
                                  " AND coalesce(last_used_ms, 0) < ?2",
                                  &statement, error);
        if (status != STATUS_OK)
            break;
        bind_blob(statement, 1, uses[i].digest, KEY_DIGEST_SIZE);
        bind_integer(statement, 2, uses[i].used_ms);
        status = sqlite_run(store, statement, error);
    }
    return sqlite_end(store, status, error);
}

/* ---- legacy addresses ------------------------------------------------------------------------ */

#define LEGACY_COLUMNS \
    "address, enabled, removed, sports, rate_requests, rate_window_seconds, created_ms, revision"

static void read_legacy(sqlite3_stmt *row, struct legacy_record *record)
{
    *record = (struct legacy_record){.usable = true};
    const void *address = sqlite3_column_blob(row, 0);
    if (sqlite3_column_bytes(row, 0) == sizeof record->address.bytes)
        memcpy(record->address.bytes, address, sizeof record->address.bytes);
    else
        record->usable = false;
    record->usable &= read_flag(row, 1, &record->enabled);
    record->usable &= read_flag(row, 2, &record->removed);
    record->usable &= read_sports(row, 3, &record->sports);
    record->usable &= read_rate(row, 4, &record->rate);
    record->created_ms = sqlite3_column_int64(row, 6);
    record->revision = (uint64_t)sqlite3_column_int64(row, 7);
}

static enum status put_legacy(struct sqlite_store *store, const struct legacy_record *record,
                              int64_t revision, struct error *error)
{
    struct buffer sports = {0};
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(
        store,
        "INSERT INTO legacy_address (" LEGACY_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
        " ON CONFLICT (address) DO UPDATE SET enabled = excluded.enabled,"
        " removed = excluded.removed, sports = excluded.sports,"
        " rate_requests = excluded.rate_requests,"
        " rate_window_seconds = excluded.rate_window_seconds,"
        " created_ms = excluded.created_ms, revision = excluded.revision"
        " WHERE ?9 = 0 OR legacy_address.revision = ?9",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    sport_set_append(&sports, record->sports);
    bind_blob(statement, 1, record->address.bytes, sizeof record->address.bytes);
    bind_integer(statement, 2, record->enabled);
    bind_integer(statement, 3, record->removed);
    bind_string(statement, 4, buffer_string(&sports));
    bind_rate(statement, 5, &record->rate);
    bind_integer(statement, 7, record->created_ms);
    bind_integer(statement, 8, revision);
    bind_integer(statement, 9, (int64_t)record->revision);
    status = sqlite_run(store, statement, error);
    buffer_free(&sports);
    if (status == STATUS_OK && sqlite3_changes(store->database) == 0)
        status = sqlite_no_change(store, true, "address", error);
    return status;
}

enum status sqlite_legacy_put(struct platform_store *base, const struct legacy_record *record,
                              struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    int64_t revision = 0;
    enum status status = sqlite_change_begin(store, NEXT_REVISION, &revision, error);
    if (status != STATUS_OK)
        return status;
    return sqlite_end(store, put_legacy(store, record, revision, error), error);
}

enum status sqlite_legacy_get(struct platform_store *base, const struct address *address,
                              struct legacy_record *record, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_statement(
            store, "SELECT " LEGACY_COLUMNS " FROM legacy_address WHERE address = ?1", &statement,
            error);
    if (status != STATUS_OK)
        return status;
    bind_blob(statement, 1, address->bytes, sizeof address->bytes);
    status = sqlite_first(store, statement, &found, error);
    if (status != STATUS_OK)
        return status;
    if (found)
        read_legacy(statement, record);
    else
        status = sqlite_no_change(store, false, "address", error);
    (void)sqlite3_reset(statement);
    return status;
}

static enum status visit_legacy(struct sqlite_store *store, sqlite3_stmt *statement,
                                legacy_visitor *visit, void *context, struct error *error)
{
    struct legacy_record record;
    bool found = false;
    enum status status;
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found) {
        read_legacy(statement, &record);
        if (!visit(context, &record))
            break;
    }
    (void)sqlite3_reset(statement);
    return status;
}

enum status sqlite_legacy_list(struct platform_store *base, legacy_visitor *visit, void *context,
                               struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_statement(store,
                                  "SELECT " LEGACY_COLUMNS
                                  " FROM legacy_address WHERE removed = 0 ORDER BY address",
                                  &statement, error);
    return status == STATUS_OK ? visit_legacy(store, statement, visit, context, error) : status;
}

/* ---- what changed ---------------------------------------------------------------------------- */

enum status sqlite_revision(struct platform_store *base, uint64_t *revision, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    int64_t now = 0;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_number(store, REVISION, &now, error);
    if (status == STATUS_OK)
        *revision = (uint64_t)now;
    return status;
}

/* The listing visitors may stop early, those of changes may not. */
static bool report_customer(void *context, const struct customer_record *record)
{
    const struct platform_changes *visit = context;
    visit->customer(visit->context, record);
    return true;
}

static bool report_key(void *context, const struct key_record *record)
{
    const struct platform_changes *visit = context;
    visit->key(visit->context, record);
    return true;
}

static bool report_legacy(void *context, const struct legacy_record *record)
{
    const struct platform_changes *visit = context;
    visit->legacy(visit->context, record);
    return true;
}

static enum status report_changes(struct sqlite_store *store, int64_t since,
                                  struct platform_changes *visit, struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(
        store, "SELECT " CUSTOMER_COLUMNS " FROM customer WHERE revision > ?1 ORDER BY revision",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, since);
    status = visit_customers(store, statement, report_customer, visit, error);
    if (status == STATUS_OK)
        status = sqlite_statement(
            store, "SELECT " KEY_COLUMNS " FROM api_key WHERE revision > ?1 ORDER BY revision",
            &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, since);
    status = visit_keys(store, statement, report_key, visit, error);
    if (status == STATUS_OK)
        status = sqlite_statement(store,
                                  "SELECT " LEGACY_COLUMNS
                                  " FROM legacy_address WHERE revision > ?1 ORDER BY revision",
                                  &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, since);
    return visit_legacy(store, statement, report_legacy, visit, error);
}

enum status sqlite_changes_since(struct platform_store *base, uint64_t since,
                                 const struct platform_changes *visit, uint64_t *revision,
                                 struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct platform_changes copy = *visit;
    int64_t now = 0;
    if (since > INT64_MAX)
        return error_set(error, STATUS_INVALID, "revision out of range");
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_execute(store, "BEGIN", error); /* its first read takes the snapshot */
    if (status != STATUS_OK)
        return status;
    status = sqlite_number(store, REVISION, &now, error);
    if (status == STATUS_OK)
        status = report_changes(store, (int64_t)since, &copy, error);
    status = sqlite_end(store, status, error);
    if (status == STATUS_OK)
        *revision = (uint64_t)now;
    return status;
}
