/*
 * A session with PostgreSQL: connecting to the same database as before, transactions, snapshots.
 *
 * Each new connection answers two questions, in one round trip. The table store_identity names the
 * store. Together with the server's own identifier, its timeline and the database's number it tells
 * the database from another that has taken its place: a restored backup, a standby that took over.
 * The table schema_migration gives the schema, with a checksum of each step, as in SQLite.
 *
 * Everything is in the first schema of the search_path; no statement names the schema.
 */
#include "stores/platform/postgres/postgres.h"

#include "base/clock.h"
#include "base/hash.h"
#include "stores/platform/schema.h"
#include "stores/platform/texts.h"

#define ATTEMPTS_MAX 8U
#define PAUSE_MS_MAX 32U

/* ---- the schema ------------------------------------------------------------------------------ */

/* Appends behind what the buffer holds already. */
static bool add_identity(void *context, const struct sql_row *row)
{
    char *identity = context;
    size_t used = strlen(identity);
    struct text id = sql_text(row, 0);
    (void)snprintf(identity + used, POSTGRES_IDENTITY_SIZE - used, " %.*s", (int)id.size, id.at);
    return false;
}

/* Reads the schema and the identity of the store, which show that this is croupier's database. */
static enum status examine(struct postgres_store *store, char identity[POSTGRES_IDENTITY_SIZE],
                           struct error *error)
{
    struct schema schema = {postgres_migrations, postgres_migration_count, 0, false};
    struct sql_query queries[] = {
        {.sql = schema_read, .row = schema_on_row, .context = &schema},
        {.sql = "SELECT id::text FROM store_identity", .row = add_identity, .context = identity}};
    uint32_t version = 0;
    enum status status = postgres_run(store, queries, 2, error);
    if (status != STATUS_OK && strcmp(store->sqlstate, "42P01") == 0)
        return error_invalid(error, "%s: is empty; run: croupier migrate", store->location);
    if (status == STATUS_OK)
        status = schema_check(&store->base, &schema, true, &version, error);
    return status == STATUS_OK && queries[1].rows != 1
               ? platform_damaged(&store->base, "it has no identity", error)
               : status;
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* croupier still uses the server: it may be a test's, or other means may protect its disk. Logged
 * once for all handles of a program, and again if the settings were right in between. */
static void judge_durability(struct postgres_store *store, bool fsync, bool full_page_writes)
{
    const char *unsafe = !fsync && !full_page_writes ? "fsync = off, full_page_writes = off"
                         : !fsync                    ? "fsync = off"
                         : !full_page_writes         ? "full_page_writes = off"
                                                     : NULL;
    store->base.unsafe = unsafe;
    if (atomic_exchange(&store->facts->unsafe, unsafe != NULL) || unsafe == NULL)
        return;
    log_event(store->log, LOG_WARNING,
              "PostgreSQL may lose money that was acknowledged, when its machine fails",
              LOG_STRING("store", store->location), LOG_STRING("settings", unsafe));
}

/* A pooler gives its client a number of its own in place of the session's, so that no cancellation
 * meets another client. One that ignores the settings of a session may find them in the role. */
static bool is_pooler(const struct postgres_store *store, const struct sql_row *row)
{
    return !sql_flag(row, 2) || sql_integer(row, 7) != PQbackendPID(store->connection);
}

static bool is_older(uint64_t timeline, uint64_t than)
{
    return timeline >> 32 == than >> 32 && timeline < than;
}

/* An old primary that is back beside the promoted one still takes writes. All connections of a
 * program use the newest that one of them has seen. `identity` is "SYSTEM TIMELINE DATABASE". */
static enum status judge_timeline(struct postgres_store *store, const char *identity,
                                  struct error *error)
{
    struct text rest = text_of(identity);
    uint64_t system = hash_text(0, text_cut(&rest, ' '));
    uint64_t seen = atomic_load(&store->facts->timeline);
    store->timeline = system << 32 | (uint32_t)strtoul(rest.at, NULL, 16);
    while (!is_older(store->timeline, seen))
        if (atomic_compare_exchange_weak(&store->facts->timeline, &seen, store->timeline))
            return STATUS_OK;
    return error_unavailable(error,
                             "%s: is an older primary (timeline %u; %u was seen; to give that up, "
                             "restart croupier)",
                             store->location, (unsigned)store->timeline, (unsigned)seen);
}

/* The answer to the greeting, on its way. */
struct greeting {
    struct postgres_store *store;
    char *identity; /* of POSTGRES_IDENTITY_SIZE */
    enum status status;
    struct error *error;
};

static enum status judge(struct postgres_store *store, const struct sql_row *row, char *identity,
                         struct error *error)
{
    if (is_pooler(store, row))
        return error_invalid(error, "%s: " POSTGRES_POOLER, store->location);
    atomic_store(&store->facts->read_only, sql_flag(row, 0) || sql_flag(row, 8) ? 1U : 0U);
    if (sql_flag(row, 0))
        return error_unavailable(
            error, "%s: is a standby, which can only be read%s", store->location,
            store->target->host_count > 1 ? "" : "; name the primary in [platform] store");
    if (!sql_flag(row, 1))
        return error_invalid(error,
                             "%s: the database's encoding is not UTF8; make one with: createdb "
                             "--encoding=UTF8 --template=template0",
                             store->location);
    if (!text_copy_plain(sql_text(row, 4), identity, POSTGRES_IDENTITY_SIZE))
        return platform_damaged(&store->base, "the server does not say who it is", error);
    judge_durability(store, sql_flag(row, 5), sql_flag(row, 6));
    enum status status = judge_timeline(store, identity, error);
    store->base.timeline = sql_flag(row, 8) ? 0 : (uint32_t)store->timeline;
    store->base.alone = sql_flag(row, 9);
    store->base.started_us = sql_integer(row, 10);
    store->base.clock_off_ms = sql_integer(row, 11) - clock_wall_ms();
    return status;
}

static bool on_greeting(void *context, const struct sql_row *row)
{
    struct greeting *greeting = context;
    greeting->status = judge(greeting->store, row, greeting->identity, greeting->error);
    return false;
}

/* Connects to one host, and checks its server and database. */
static enum status connect_and_check(struct postgres_store *store, size_t host, bool create,
                                     char identity[POSTGRES_IDENTITY_SIZE], struct error *error)
{
    struct greeting greeting = {store, identity, STATUS_OK, error};
    struct sql_query query = {
        .sql = postgres_texts.greeting, .row = on_greeting, .context = &greeting};
    enum status status = postgres_connect(store, host, error);
    if (status != STATUS_OK)
        return status;
    status = postgres_run(store, &query, 1, error);
    if (status == STATUS_OK)
        status = greeting.status;
    if (status == STATUS_OK && !create)
        status = examine(store, identity, error);
    if (status != STATUS_OK)
        postgres_disconnect(store);
    return status;
}

/* Tries the hosts, beginning with the one that answered last, each with its share of the time that
 * is left: one that swallows everything must not keep us from the others. The error of several
 * hosts has the reason of each: a standby does not say why the primary does not answer. */
static enum status meet_any(struct postgres_store *store, bool create,
                            char identity[POSTGRES_IDENTITY_SIZE], struct error *error)
{
    const uint64_t deadline_ms = store->deadline_ms;
    const size_t named = store->target->host_count, count = store->only > 0 ? 1 : named;
    struct error reason, all = {.text = ""};
    enum status status = STATUS_UNAVAILABLE;
    bool passed_over = true;
    size_t first = store->only > 0 ? store->only - 1 : store->host;
    if (first >= named)
        return error_set(error, STATUS_NOT_FOUND, "%s: names no more servers", store->location);
    for (size_t i = 0; i < count && passed_over; i++) {
        uint64_t now_ms = clock_monotonic_ms();
        uint64_t left_ms = deadline_ms > now_ms ? deadline_ms - now_ms : 0;
        store->host = (first + i) % named;
        store->deadline_ms = now_ms + left_ms / (count - i);
        store->location = named > 1 ? store->target->hosts[store->host] : store->location;
        status = connect_and_check(store, store->host, create, identity, &reason);
        passed_over =
            status == STATUS_UNAVAILABLE || status == STATUS_TIMEOUT || status == STATUS_READ_ONLY;
        if (status != STATUS_OK)
            error_append(&all, "%s%s", i > 0 ? "; " : "", reason.text);
    }
    if (count > 1)
        error_prefix(&all, "%s", store->target->location);
    if (status != STATUS_OK && error != NULL)
        *error = all;
    store->location = store->target->location;
    store->base.server = named > 1 ? store->target->hosts[store->host] : NULL;
    store->deadline_ms = deadline_ms;
    return status;
}

/* Connects if there is no connection. The server may now hold another database than before. The
 * call reports such a change once by failing, because the new state does not follow from the old
 * one. */
enum status postgres_connect_any(struct postgres_store *store, bool create, struct error *error)
{
    char identity[POSTGRES_IDENTITY_SIZE] = "";
    enum status status = meet_any(store, create, identity, error);
    if (status != STATUS_OK)
        return status;
    bool replaced = !create && store->identity[0] != '\0' && strcmp(identity, store->identity) != 0;
    if (!create)
        memcpy(store->identity, identity, sizeof store->identity);
    if (store->connects++ > 0)
        log_event(store->log, LOG_WARNING, "platform store connected again",
                  LOG_STRING("store", store->location));
    if (replaced)
        return error_unavailable(
            error,
            "%s: another database, or another state of it, has taken its place (a promoted "
            "standby, or a restored backup)",
            store->location);
    return STATUS_OK;
}

static enum status ensure_connection(struct postgres_store *store, struct error *error)
{
    if (store->connection != NULL &&
        (!postgres_is_alive(store) ||
         is_older(store->timeline, atomic_load(&store->facts->timeline))))
        postgres_disconnect(store);
    if (store->connection != NULL)
        return STATUS_OK;
    if (store->snapshot)
        return error_unavailable(error, "%s: the connection was lost, and with it the snapshot",
                                 store->location);
    return postgres_connect_any(store, false, error);
}

void postgres_forget_outcome(struct postgres_store *store)
{
    store->commit_sent = false;
    store->warned = false;
    store->unknown = false;
    store->repeatable = false;
    store->sqlstate[0] = '\0';
}

enum status postgres_ready(struct postgres_store *store, struct error *error)
{
    postgres_forget_outcome(store);
    store->patient = store->snapshot;
    postgres_renew(store);
    enum status status = ensure_connection(store, error);
    if (status == STATUS_OK && !store->snapshot)
        CHECK(PQtransactionStatus(store->connection) == PQTRANS_IDLE);
    return status;
}

enum status postgres_resume(struct postgres_store *store, struct error *error)
{
    postgres_forget_outcome(store);
    postgres_renew(store);
    if (store->connection != NULL)
        return STATUS_OK;
    return error_unavailable(error, "%s: the connection was lost, and with it the transaction",
                             store->location);
}

/* ---- transactions ---------------------------------------------------------------------------- */

enum status postgres_end(struct postgres_store *store, enum status status, struct error *error)
{
    bool locked = status != STATUS_OK && strcmp(store->sqlstate, "55P03") == 0;
    if (status == STATUS_OK && store->connection != NULL &&
        PQtransactionStatus(store->connection) != PQTRANS_IDLE) {
        struct sql_query commit = {.sql = postgres_commit};
        status = postgres_run(store, &commit, 1, error);
    }
    if (status == STATUS_OK && store->warned) {
        store->unknown = true;
        status = error_unavailable(
            error,
            "%s: the server warned while it committed; check whether the change was "
            "kept before you repeat it",
            store->location);
    }
    if (status != STATUS_OK && store->connection != NULL &&
        PQtransactionStatus(store->connection) != PQTRANS_IDLE) {
        bool repeatable = store->repeatable;
        struct sql_query rollback = {.sql = postgres_rollback};
        if (postgres_run(store, &rollback, 1, NULL) != STATUS_OK)
            postgres_disconnect(store); /* which the server takes for one */
        store->repeatable = repeatable;
    }
    if (locked && store->connection != NULL) {
        postgres_renew(store); /* the lock took most of the time */
        /* Where a commit that waits for a standby has the lock, that is the reason. */
        if (postgres_may_commit(store, error) != STATUS_OK)
            return STATUS_UNAVAILABLE;
    }
    return status;
}

/* Pauses before a repeat: a little longer each time, and never past the deadline. */
static bool may_repeat(struct postgres_store *store, uint32_t attempt)
{
    uint64_t now_ns = clock_monotonic_ns();
    uint32_t ceiling_ms = 1U << attempt < PAUSE_MS_MAX ? 1U << attempt : PAUSE_MS_MAX;
    uint64_t pause_ns = now_ns % ((uint64_t)ceiling_ms * 1000000U); /* differs between processes */
    if (!store->repeatable || attempt >= ATTEMPTS_MAX ||
        (now_ns + pause_ns) / 1000000U >= store->deadline_ms)
        return false;
    relaxed_add(&store->facts->repeats, 1);
    clock_pause_ns(pause_ns);
    return true;
}

enum status postgres_may_commit(struct postgres_store *store, struct error *error)
{
    struct sql_parameters parameters = SQL_PARAMETERS(
        SQL_INTEGER(store->timeout_ms / 2)); /* the rest of it went before the commit */
    int64_t waiting = 0;
    struct sql_query query = {.sql = postgres_texts.waiting_commits,
                              .parameters = &parameters,
                              .row = sql_take_integer,
                              .context = &waiting};
    enum status status = postgres_run(store, &query, 1, error);
    if (status != STATUS_OK)
        return status;
    store->doubtful = waiting > 0;
    if (!store->doubtful)
        return STATUS_OK;
    return error_unavailable(
        error,
        "%s: a commit waits for a synchronous standby that does not answer; until it "
        "does, nothing is written",
        store->location);
}

enum status postgres_transact(struct platform_store *base, sql_body *body, void *context,
                              struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    CHECK(!store->snapshot);
    enum status status = postgres_ready(store, error);
    for (uint32_t attempt = 1; status == STATUS_OK; attempt++) {
        if (store->doubtful)
            status = postgres_may_commit(store, error);
        if (status == STATUS_OK)
            status = postgres_end(store, body(base, context, error), error);
        if (status == STATUS_OK || !may_repeat(store, attempt))
            break;
        postgres_forget_outcome(store);
        status = ensure_connection(store, error);
    }
    return status;
}

enum status postgres_read(struct postgres_store *store, struct sql_query *queries, size_t count,
                          struct error *error)
{
    enum status status = postgres_ready(store, error);
    if (status != STATUS_OK)
        return status;
    status = postgres_run(store, queries, count, error);
    if (status == STATUS_OK || store->connection != NULL || store->snapshot ||
        !may_repeat(store, 1))
        return status;
    status = ensure_connection(store, error);
    return status == STATUS_OK ? postgres_run(store, queries, count, error) : status;
}

enum status postgres_read_snapshot(struct postgres_store *store, struct sql_query *queries,
                                   size_t count, struct error *error)
{
    struct sql_query all[FLIGHT_MAX + 3] = {{.sql = postgres_begin_snapshot},
                                            {.sql = postgres_texts.no_timeout}};
    if (store->snapshot)
        return postgres_read(store, queries, count, error);
    CHECK(count <= FLIGHT_MAX);
    memcpy(all + 2, queries, count * sizeof queries[0]);
    all[count + 2] = (struct sql_query){.sql = postgres_rollback};
    enum status status = postgres_read(store, all, count + 3, error);
    memcpy(queries, all + 2, count * sizeof queries[0]);
    return status == STATUS_OK ? STATUS_OK : postgres_end(store, status, error);
}

enum status postgres_snapshot_begin(struct platform_store *base, struct error *error)
{
    static const char keep_open[] = "SET LOCAL idle_in_transaction_session_timeout = 600000";
    struct postgres_store *store = postgres_store_of(base);
    struct sql_query queries[] = {{.sql = postgres_begin_snapshot},
                                  {.sql = postgres_texts.no_timeout},
                                  {.sql = keep_open},
                                  {.sql = "SELECT 1"}}; /* takes the snapshot */
    CHECK(!store->snapshot);
    enum status status = postgres_read(store, queries, 4, error);
    if (status != STATUS_OK)
        return postgres_end(store, status, error);
    store->snapshot = true;
    return STATUS_OK;
}

void postgres_snapshot_end(struct platform_store *base)
{
    struct postgres_store *store = postgres_store_of(base);
    store->snapshot = false;
    store->patient = false;
    postgres_renew(store);
    enum status status = postgres_end(store, STATUS_UNAVAILABLE, NULL); /* nothing to commit */
    CHECK(status == STATUS_UNAVAILABLE);
}
