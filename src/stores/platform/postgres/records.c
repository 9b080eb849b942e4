/*
 * Customers, keys and legacy addresses in PostgreSQL: the statements, and rows to records.
 *
 * Every change is one transaction whose first statement takes the next revision and, with it, the
 * lock on the counter's row until the commit: revisions become visible in their order, whoever
 * writes. What follows stamps its row with `(SELECT revision FROM store_revision)`, so that an
 * addition goes out as one flight, commit included. Reading a row never fails on account of what it
 * holds: a row that makes no sense is `usable = false` and admits nobody, while its neighbours go
 * on working.
 */
#include <string.h>

#include "base/memory.h"
#include "stores/platform/postgres/columns.h"
#include "stores/platform/postgres/postgres.h"
#include "stores/platform_record.h"

#define NEXT_REVISION "(SELECT revision FROM store_revision)"

static const char take_revision[] = "UPDATE store_revision SET revision = revision + 1";

static enum status no_revision(struct postgres_store *store, struct error *error)
{
    return postgres_damaged(store, "it has no revision", error);
}

/* After a conditional write that touched no row: is the row not there, or newer than expected? */
static enum status explain_no_change(struct postgres_store *store, bool exists, const char *what,
                                     struct error *error)
{
    if (exists)
        return error_set(error, STATUS_EXISTS, "%s: the %s was changed meanwhile; try again",
                         store->place, what);
    return error_set(error, STATUS_NOT_FOUND, "%s: there is no such %s", store->place, what);
}

/* Adds a row, in one flight: the statement and its parameters are the context. */
static enum status add_row(struct postgres_store *store, void *context, struct error *error)
{
    const struct postgres_query *insert = context;
    struct postgres_query queries[] = {
        {.sql = postgres_begin}, {.sql = take_revision}, *insert, {.sql = postgres_commit}};
    enum status status = postgres_run(store, queries, 4, error);
    if (status == STATUS_OK && queries[1].affected != 1)
        status = no_revision(store, error);
    postgres_clear(queries, 4);
    return status;
}

/* A write that may find nothing to do, and the look-up that says why. */
struct change {
    struct postgres_query write;
    struct postgres_query look_up; /* its row exists when the write was refused for its revision */
    const char *what;
    bool idempotent; /* there, but nothing to do: that is fine, and nothing has changed */
};

/* Writes, and before it commits looks whether anything was written. */
static enum status change_row(struct postgres_store *store, void *context, struct error *error)
{
    const struct change *change = context;
    struct postgres_query queries[] = {
        {.sql = postgres_begin}, {.sql = take_revision}, change->write, change->look_up};
    enum status status = postgres_run(store, queries, 4, error);
    if (status != STATUS_OK)
        return status;
    bool exists = row_count(&queries[3]) > 0;
    if (queries[1].affected != 1)
        status = no_revision(store, error);
    else if (queries[2].affected == 0 && !(change->idempotent && exists))
        status = explain_no_change(store, exists, change->what, error);
    postgres_clear(queries, 4);
    return status;
}

/* ---- policies in columns --------------------------------------------------------------------- */

static void set_rate(struct postgres_parameters *parameters, int at, const struct rate_limit *rate)
{
    if (rate->enabled) {
        set_integer(parameters, at, rate->requests);
        set_integer(parameters, at + 1, rate->window_seconds);
    } else {
        set_null(parameters, at);
        set_null(parameters, at + 1);
    }
}

static bool read_sports(const struct postgres_row *row, int column, sport_set *sports)
{
    return sport_set_parse(row_text(row, column), sports, NULL) == STATUS_OK;
}

static bool read_rate(const struct postgres_row *row, int column, struct rate_limit *rate)
{
    if (row_is_null(row, column) && row_is_null(row, column + 1))
        return true;
    int64_t requests = row_integer(row, column);
    int64_t window = row_integer(row, column + 1);
    if (requests < 0 || requests > UINT32_MAX || window < 0 || window > UINT32_MAX)
        return false;
    *rate = (struct rate_limit){true, (uint32_t)requests, (uint32_t)window};
    return rate_limit_is_sound(rate);
}

/* ---- customers ------------------------------------------------------------------------------- */

#define CUSTOMER_COLUMNS                                                                         \
    "id, name, enabled, casino, sports, rate_requests, rate_window_seconds, cidrs, created_ms, " \
    "revision"

/* `blocks` has room for CIDRS_MAX; the record borrows it. */
static void read_customer(const struct postgres_row *row, struct cidr *blocks,
                          struct customer_record *record)
{
    *record = (struct customer_record){.usable = true, .cidrs = blocks};
    record->usable &= row_string(row, 0, record->id, sizeof record->id);
    record->usable &= row_string(row, 1, record->name, sizeof record->name);
    record->enabled = row_flag(row, 2);
    record->casino = row_flag(row, 3);
    record->usable &= read_sports(row, 4, &record->sports);
    record->usable &= read_rate(row, 5, &record->rate);
    record->usable &= cidr_list_read(row_text(row, 7), blocks, CIDRS_MAX, &record->cidr_count);
    record->created_ms = row_integer(row, 8);
    record->revision = (uint64_t)row_integer(row, 9);
}

/* The texts that the parameters of one write borrow. */
struct texts {
    struct buffer sports;
    struct buffer cidrs;
};

static void free_texts(struct texts *texts)
{
    buffer_free(&texts->sports);
    buffer_free(&texts->cidrs);
}

/* Parameters 1 to 8, in the order of CUSTOMER_COLUMNS. */
static void set_customer(struct postgres_parameters *parameters, struct texts *texts,
                         const struct customer_record *record)
{
    sport_set_append(&texts->sports, record->sports);
    cidr_list_append(&texts->cidrs, record->cidrs, record->cidr_count);
    set_string(parameters, 1, record->id);
    set_string(parameters, 2, record->name);
    set_flag(parameters, 3, record->enabled);
    set_flag(parameters, 4, record->casino);
    set_text(parameters, 5, buffer_text(&texts->sports));
    set_rate(parameters, 6, &record->rate);
    set_text(parameters, 8, buffer_text(&texts->cidrs));
}

enum status postgres_customer_add(struct platform_store *base, const struct customer_record *record,
                                  struct error *error)
{
    struct postgres_parameters parameters = {0};
    struct texts texts = {0};
    struct postgres_query insert = {
        .sql = "INSERT INTO customer (" CUSTOMER_COLUMNS ")"
               " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, " NEXT_REVISION ")",
        .parameters = &parameters};
    set_customer(&parameters, &texts, record);
    set_integer(&parameters, 9, record->created_ms);
    enum status status = postgres_transact(postgres_store_of(base), add_row, &insert, error);
    free_texts(&texts);
    return status;
}

enum status postgres_customer_update(struct platform_store *base,
                                     const struct customer_record *record, struct error *error)
{
    struct postgres_parameters parameters = {0};
    struct postgres_parameters id = {0};
    struct texts texts = {0};
    struct change change = {
        .write = {.sql = "UPDATE customer SET name = $2, enabled = $3, casino = $4, sports = $5,"
                         " rate_requests = $6, rate_window_seconds = $7, cidrs = $8,"
                         " revision = " NEXT_REVISION
                         " WHERE id = $1 AND ($9::bigint = 0 OR revision = $9::bigint)",
                  .parameters = &parameters},
        .look_up = {.sql = "SELECT 1 FROM customer WHERE id = $1", .parameters = &id},
        .what = "customer"};
    set_customer(&parameters, &texts, record);
    set_integer(&parameters, 9, (int64_t)record->revision);
    set_string(&id, 1, record->id);
    enum status status = postgres_transact(postgres_store_of(base), change_row, &change, error);
    free_texts(&texts);
    return status;
}

enum status postgres_customer_get(struct platform_store *base, const char *id,
                                  struct customer_record *record, struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_parameters parameters = {0};
    struct postgres_query query = {.sql = "SELECT " CUSTOMER_COLUMNS " FROM customer WHERE id = $1",
                                   .parameters = &parameters};
    set_string(&parameters, 1, id);
    enum status status = postgres_read(store, &query, 1, error);
    if (status != STATUS_OK)
        return status;
    if (row_count(&query) > 0) {
        struct cidr blocks[CIDRS_MAX];
        const struct postgres_row row = row_at(&query, 0);
        read_customer(&row, blocks, record);
        record->cidrs = memory_copy(blocks, record->cidr_count * sizeof blocks[0]);
    } else {
        status = explain_no_change(store, false, "customer", error);
    }
    postgres_clear(&query, 1);
    return status;
}

struct customer_reading {
    customer_visitor *visit;
    void *context;
};

static bool on_customer(void *context, const struct postgres_row *row)
{
    struct customer_reading *reading = context;
    struct cidr blocks[CIDRS_MAX];
    struct customer_record record;
    read_customer(row, blocks, &record);
    return reading->visit(reading->context, &record);
}

enum status postgres_customer_list(struct platform_store *base, customer_visitor *visit,
                                   void *context, struct error *error)
{
    struct customer_reading reading = {visit, context};
    struct postgres_query query = {.sql =
                                       "SELECT " CUSTOMER_COLUMNS " FROM customer ORDER BY number",
                                   .row = on_customer,
                                   .context = &reading};
    return postgres_read_snapshot(postgres_store_of(base), &query, 1, error);
}

/* ---- keys ------------------------------------------------------------------------------------ */

#define KEY_COLUMNS                                                                              \
    "id, customer_id, label, prefix, digest, created_ms, expires_ms, last_used_ms, revoked_ms, " \
    "revision"

static void read_key(const struct postgres_row *row, struct key_record *record)
{
    *record = (struct key_record){0};
    bool usable = row_string(row, 0, record->id, sizeof record->id);
    usable &= row_string(row, 1, record->customer_id, sizeof record->customer_id);
    usable &= row_string(row, 2, record->label, sizeof record->label);
    usable &= row_string(row, 3, record->prefix, sizeof record->prefix);
    usable &= row_blob(row, 4, record->digest, KEY_DIGEST_SIZE);
    record->created_ms = row_integer(row, 5);
    record->expires_ms = row_integer(row, 6); /* NULL reads as 0: never */
    record->last_used_ms = row_integer(row, 7);
    record->revoked_ms = row_integer(row, 8);
    record->revision = (uint64_t)row_integer(row, 9);
    if (!usable && record->revoked_ms == 0)
        record->revoked_ms = 1; /* a key that makes no sense opens nothing */
}

enum status postgres_key_add(struct platform_store *base, const struct key_record *record,
                             struct error *error)
{
    struct postgres_parameters parameters = {0};
    struct postgres_query insert = {
        .sql = "INSERT INTO api_key (" KEY_COLUMNS ")"
               " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, " NEXT_REVISION ")",
        .parameters = &parameters};
    set_string(&parameters, 1, record->id);
    set_string(&parameters, 2, record->customer_id);
    set_string(&parameters, 3, record->label);
    set_string(&parameters, 4, record->prefix);
    set_blob(&parameters, 5, record->digest, KEY_DIGEST_SIZE);
    set_integer(&parameters, 6, record->created_ms);
    set_time(&parameters, 7, record->expires_ms);
    set_time(&parameters, 8, record->last_used_ms);
    set_time(&parameters, 9, record->revoked_ms);
    return postgres_transact(postgres_store_of(base), add_row, &insert, error);
}

enum status postgres_key_revoke(struct platform_store *base, const char *key_id, int64_t now_ms,
                                struct error *error)
{
    struct postgres_parameters parameters = {0};
    struct postgres_parameters id = {0};
    struct change change = {
        .write = {.sql = "UPDATE api_key SET revoked_ms = $2, revision = " NEXT_REVISION
                         " WHERE id = $1 AND revoked_ms IS NULL",
                  .parameters = &parameters},
        .look_up = {.sql = "SELECT 1 FROM api_key WHERE id = $1", .parameters = &id},
        .what = "key",
        .idempotent = true}; /* revoked before: the first time stands */
    set_string(&parameters, 1, key_id);
    set_integer(&parameters, 2, now_ms);
    set_string(&id, 1, key_id);
    return postgres_transact(postgres_store_of(base), change_row, &change, error);
}

struct key_reading {
    key_visitor *visit;
    void *context;
};

static bool on_key(void *context, const struct postgres_row *row)
{
    struct key_reading *reading = context;
    struct key_record record;
    read_key(row, &record);
    return reading->visit(reading->context, &record);
}

enum status postgres_key_list(struct platform_store *base, const char *customer_id,
                              key_visitor *visit, void *context, struct error *error)
{
    static const char all[] = "SELECT " KEY_COLUMNS " FROM api_key ORDER BY number";
    static const char one[] =
        "SELECT " KEY_COLUMNS " FROM api_key WHERE customer_id = $1 ORDER BY number";
    struct key_reading reading = {visit, context};
    struct postgres_parameters parameters = {0};
    struct postgres_query query = {.sql = customer_id == NULL ? all : one,
                                   .parameters = &parameters,
                                   .row = on_key,
                                   .context = &reading};
    if (customer_id != NULL)
        set_string(&parameters, 1, customer_id);
    return postgres_read_snapshot(postgres_store_of(base), &query, 1, error);
}

/* Rows are locked in the order of their digests: two instances that write the uses of the same keys
 * wait for each other and do not meet in a deadlock. */
static enum status touch_keys(struct postgres_store *store, void *context, struct error *error)
{
    struct postgres_query *queries = context;
    enum status status = postgres_run(store, queries, 3, error);
    postgres_clear(queries, 3);
    return status;
}

enum status postgres_key_touch(struct platform_store *base, const struct key_use *uses,
                               size_t count, struct error *error)
{
    struct postgres_parameters parameters = {0};
    struct postgres_array digests = {.kind = ARRAY_BYTEA};
    struct postgres_array times = {.kind = ARRAY_BIGINT};
    struct postgres_query queries[] = {
        {.sql = postgres_begin},
        {.sql = "WITH used AS (SELECT digest, max(used_ms) AS used_ms"
                "  FROM unnest($1::bytea[], $2::bigint[]) AS given (digest, used_ms)"
                "  GROUP BY digest),"
                " locked AS (SELECT api_key.number, used.used_ms"
                "  FROM api_key JOIN used ON used.digest = api_key.digest"
                "  WHERE coalesce(api_key.last_used_ms, 0) < used.used_ms"
                "  ORDER BY api_key.digest FOR NO KEY UPDATE OF api_key)"
                " UPDATE api_key SET last_used_ms = locked.used_ms FROM locked"
                " WHERE api_key.number = locked.number"
                " AND coalesce(api_key.last_used_ms, 0) < locked.used_ms",
         .parameters = &parameters},
        {.sql = postgres_commit}};
    for (size_t i = 0; i < count; i++) {
        array_add_bytes(&digests, uses[i].digest, KEY_DIGEST_SIZE);
        array_add_integer(&times, uses[i].used_ms);
    }
    set_array(&parameters, 1, &digests);
    set_array(&parameters, 2, &times);
    enum status status = postgres_transact(postgres_store_of(base), touch_keys, queries, error);
    array_free(&digests);
    array_free(&times);
    return status;
}

/* ---- legacy addresses ------------------------------------------------------------------------ */

#define LEGACY_COLUMNS \
    "address, enabled, removed, sports, rate_requests, rate_window_seconds, created_ms, revision"

static void read_legacy(const struct postgres_row *row, struct legacy_record *record)
{
    *record = (struct legacy_record){.usable = true};
    record->usable &= row_blob(row, 0, record->address.bytes, sizeof record->address.bytes);
    record->enabled = row_flag(row, 1);
    record->removed = row_flag(row, 2);
    record->usable &= read_sports(row, 3, &record->sports);
    record->usable &= read_rate(row, 4, &record->rate);
    record->created_ms = row_integer(row, 6);
    record->revision = (uint64_t)row_integer(row, 7);
}

enum status postgres_legacy_put(struct platform_store *base, const struct legacy_record *record,
                                struct error *error)
{
    struct postgres_parameters parameters = {0};
    struct postgres_parameters address = {0};
    struct buffer sports = {0};
    struct change change = {
        .write = {.sql = "INSERT INTO legacy_address (" LEGACY_COLUMNS ")"
                         " VALUES ($1, $2, $3, $4, $5, $6, $7, " NEXT_REVISION ")"
                         " ON CONFLICT (address) DO UPDATE SET enabled = excluded.enabled,"
                         " removed = excluded.removed, sports = excluded.sports,"
                         " rate_requests = excluded.rate_requests,"
                         " rate_window_seconds = excluded.rate_window_seconds,"
                         " created_ms = excluded.created_ms, revision = excluded.revision"
                         " WHERE $8::bigint = 0 OR legacy_address.revision = $8::bigint",
                  .parameters = &parameters},
        .look_up = {.sql = "SELECT 1 FROM legacy_address WHERE address = $1",
                    .parameters = &address},
        .what = "address"};
    sport_set_append(&sports, record->sports);
    set_blob(&parameters, 1, record->address.bytes, sizeof record->address.bytes);
    set_flag(&parameters, 2, record->enabled);
    set_flag(&parameters, 3, record->removed);
    set_text(&parameters, 4, buffer_text(&sports));
    set_rate(&parameters, 5, &record->rate);
    set_integer(&parameters, 7, record->created_ms);
    set_integer(&parameters, 8, (int64_t)record->revision);
    set_blob(&address, 1, record->address.bytes, sizeof record->address.bytes);
    enum status status = postgres_transact(postgres_store_of(base), change_row, &change, error);
    buffer_free(&sports);
    return status;
}

enum status postgres_legacy_get(struct platform_store *base, const struct address *address,
                                struct legacy_record *record, struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_parameters parameters = {0};
    struct postgres_query query = {.sql = "SELECT " LEGACY_COLUMNS
                                          " FROM legacy_address WHERE address = $1",
                                   .parameters = &parameters};
    set_blob(&parameters, 1, address->bytes, sizeof address->bytes);
    enum status status = postgres_read(store, &query, 1, error);
    if (status != STATUS_OK)
        return status;
    if (row_count(&query) > 0) {
        const struct postgres_row row = row_at(&query, 0);
        read_legacy(&row, record);
    } else {
        status = explain_no_change(store, false, "address", error);
    }
    postgres_clear(&query, 1);
    return status;
}

struct legacy_reading {
    legacy_visitor *visit;
    void *context;
};

static bool on_legacy(void *context, const struct postgres_row *row)
{
    struct legacy_reading *reading = context;
    struct legacy_record record;
    read_legacy(row, &record);
    return reading->visit(reading->context, &record);
}

enum status postgres_legacy_list(struct platform_store *base, legacy_visitor *visit, void *context,
                                 struct error *error)
{
    struct legacy_reading reading = {visit, context};
    struct postgres_query query = {.sql = "SELECT " LEGACY_COLUMNS
                                          " FROM legacy_address WHERE NOT removed ORDER BY address",
                                   .row = on_legacy,
                                   .context = &reading};
    return postgres_read_snapshot(postgres_store_of(base), &query, 1, error);
}

/* ---- what changed ---------------------------------------------------------------------------- */

static const char read_revision[] = "SELECT revision FROM store_revision";

/* The revision that a query brought; clears it. */
static enum status take_answer(struct postgres_store *store, struct postgres_query *query,
                               uint64_t *revision, struct error *error)
{
    enum status status = STATUS_OK;
    if (row_count(query) == 1) {
        const struct postgres_row row = row_at(query, 0);
        *revision = (uint64_t)row_integer(&row, 0);
    } else {
        status = no_revision(store, error);
    }
    postgres_clear(query, 1);
    return status;
}

enum status postgres_revision(struct platform_store *base, uint64_t *revision, struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_query query = {.sql = read_revision};
    enum status status = postgres_read(store, &query, 1, error);
    return status == STATUS_OK ? take_answer(store, &query, revision, error) : status;
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

enum status postgres_changes_since(struct platform_store *base, uint64_t since,
                                   const struct platform_changes *visit, uint64_t *revision,
                                   struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct platform_changes copy = *visit;
    struct customer_reading customers = {report_customer, &copy};
    struct key_reading keys = {report_key, &copy};
    struct legacy_reading addresses = {report_legacy, &copy};
    struct postgres_parameters parameters = {0};
    struct postgres_query queries[] = {
        {.sql = read_revision},
        {.sql = "SELECT " CUSTOMER_COLUMNS
                " FROM customer WHERE revision > $1::bigint ORDER BY revision",
         .parameters = &parameters,
         .row = on_customer,
         .context = &customers},
        {.sql = "SELECT " KEY_COLUMNS " FROM api_key WHERE revision > $1::bigint ORDER BY revision",
         .parameters = &parameters,
         .row = on_key,
         .context = &keys},
        {.sql = "SELECT " LEGACY_COLUMNS
                " FROM legacy_address WHERE revision > $1::bigint ORDER BY revision",
         .parameters = &parameters,
         .row = on_legacy,
         .context = &addresses}};
    if (since > INT64_MAX)
        return error_set(error, STATUS_INVALID, "revision out of range");
    set_integer(&parameters, 1, (int64_t)since);
    enum status status = postgres_read_snapshot(store, queries, 4, error);
    if (status == STATUS_OK)
        status = take_answer(store, &queries[0], revision, error);
    return status;
}
