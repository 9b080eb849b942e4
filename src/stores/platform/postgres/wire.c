/*
 * The conversation with PostgreSQL: libpq without blocking, poll, a deadline, and the meaning of
 * failures.
 *
 * Everything goes through pipeline mode: one Sync follows the queries of one postgres_run, so they
 * cost one round trip, and after the first failure the server skips the rest. A flight prepares the
 * statements that it uses first.
 *
 * If a server is silent past the deadline, the connection is closed, and any later answer is lost.
 * The server's own timeouts are a little shorter (uri.c), so that a server that is merely busy can
 * answer, and the connection survives.
 */
#include <poll.h>

#include <openssl/ssl.h>

#include "base/clock.h"
#include "base/memory.h"
#include "stores/platform/postgres/postgres.h"

#define STOP_LOOK_MS 100  /* between two checks whether the caller still waits */
#define DISCARD_MAX 10000 /* unwanted rows, before hanging up is cheaper */

const char postgres_begin[] = "BEGIN ISOLATION LEVEL READ COMMITTED";
const char postgres_begin_snapshot[] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const char postgres_commit[] = "COMMIT";
const char postgres_rollback[] = "ROLLBACK";

/* ---- failures -------------------------------------------------------------------------------- */

/* libpq's texts have several lines; the ones that begin with a tab are advice. */
static void flatten(const char *message, char *out, size_t room)
{
    size_t used = 0;
    struct text rest = text_of(message);
    while (rest.size > 0) {
        struct text line = text_cut(&rest, '\n');
        if (line.size == 0 || line.at[0] == '\t')
            continue;
        int wrote = snprintf(out + used, room - used, "%s%.*s", used > 0 ? "; " : "",
                             (int)line.size, line.at);
        if (wrote < 0 || (size_t)wrote >= room - used)
            break;
        used += (size_t)wrote;
    }
    out[used < room ? used : room - 1] = '\0';
}

static const char *outcome(const struct postgres_store *store)
{
    return store->commit_sent ? "; check whether the change was kept before you repeat it" : "";
}

/* Nothing more will come of this connection. */
static enum status lost(struct postgres_store *store, struct error *error)
{
    char reason[ERROR_TEXT_SIZE] = "";
    flatten(PQerrorMessage(store->connection), reason, sizeof reason);
    store->failed = true;
    store->unknown = store->commit_sent;
    store->repeatable = !store->commit_sent;
    return error_unavailable(error, "%s: the connection was lost (%.300s)%s", store->location,
                             reason[0] != '\0' ? reason : "closed by the server", outcome(store));
}

static void mark_failed(struct postgres_store *store)
{
    store->failed = true;
    store->unknown = store->commit_sent;
    store->doubtful = store->doubtful || store->commit_sent;
}

static enum status timed_out(struct postgres_store *store, struct error *error)
{
    relaxed_add(&store->facts->timeouts, 1);
    mark_failed(store);
    return error_set(error, STATUS_TIMEOUT, "%s: did not answer within %u ms%s", store->location,
                     store->patient ? POSTGRES_PATIENCE_MS : store->timeout_ms, outcome(store));
}

/* The caller does not wait any more: the server hears of it by the end of the connection. */
static enum status stopped(struct postgres_store *store, struct error *error)
{
    mark_failed(store);
    return error_unavailable(error, "%s: it is not waited for any more%s", store->location,
                             outcome(store));
}

/* The handling of each SQLSTATE (PostgreSQL manual, appendix A); the longest matching row
 * counts. */
enum failure_kind { PLAIN, REPEAT, HANG_UP };
static const struct failure_rule {
    const char *state; /* its beginning */
    enum status status;
    enum failure_kind kind;
    const char *meaning;
} failure_rules[] = {
    {"40001", STATUS_UNAVAILABLE, REPEAT, "others kept changing the same; try again"},
    {"40P01", STATUS_UNAVAILABLE, REPEAT, "others kept changing the same; try again"},
    {"23505", STATUS_EXISTS, PLAIN, "it is there already"},
    {"23503", STATUS_NOT_FOUND, PLAIN, "what it refers to is not there"},
    {"23", STATUS_INVALID, PLAIN, "not acceptable"},
    {"22", STATUS_INVALID, PLAIN, "not acceptable"},
    {"25006", STATUS_READ_ONLY, HANG_UP,
     "can only be read (a standby?); name the primary in [platform] store"},
    {"25P03", STATUS_UNAVAILABLE, HANG_UP, "the transaction was kept open for too long"},
    {"26000", STATUS_INVALID, HANG_UP,
     POSTGRES_POOLER}, /* its prepared statements are another's, */
    {"42P05", STATUS_INVALID, HANG_UP, POSTGRES_POOLER}, /* and it has another's */
    {"28", STATUS_UNAVAILABLE, HANG_UP, "this user may not connect; see pg_hba.conf"},
    {"3D", STATUS_UNAVAILABLE, HANG_UP, "there is no such database; make it with createdb"},
    {"42501", STATUS_UNAVAILABLE, PLAIN,
     "this user may not do that; see docs/postgresql.md for the rights it needs"},
    {"42P01", STATUS_INVALID, HANG_UP, "its schema is not this program's; run: croupier migrate"},
    {"42703", STATUS_INVALID, HANG_UP, "its schema is not this program's; run: croupier migrate"},
    {"42883", STATUS_INVALID, HANG_UP, "its schema is not this program's; run: croupier migrate"},
    {"53100", STATUS_FULL, PLAIN,
     "the server's disk is full and nothing was changed; free some space and try again"},
    {"53", STATUS_UNAVAILABLE, HANG_UP, "the server has run out of something"},
    {"55P03", STATUS_TIMEOUT, PLAIN, "others kept it locked for too long; try again"},
    {"57014", STATUS_TIMEOUT, PLAIN, "did not finish in time, or was cancelled; try again"},
    {"57", STATUS_UNAVAILABLE, HANG_UP, "the server ended the connection"},
    {"08", STATUS_UNAVAILABLE, HANG_UP, "the connection broke"},
    {"08P01", STATUS_INTERNAL, HANG_UP, "unexpected"},
    {"58", STATUS_UNAVAILABLE, HANG_UP, "the server has trouble with its files"},
    {"XX001", STATUS_MALFORMED, HANG_UP, "is damaged; restore a backup"},
    {"XX002", STATUS_MALFORMED, HANG_UP, "is damaged; restore a backup"},
    {"", STATUS_INTERNAL, HANG_UP, "unexpected"},
};

static const struct failure_rule *failure_rule_of(const char *state)
{
    const struct failure_rule *best = NULL;
    for (size_t i = 0; i < sizeof failure_rules / sizeof failure_rules[0]; i++)
        if (strncmp(failure_rules[i].state, state, strlen(failure_rules[i].state)) == 0 &&
            (best == NULL || strlen(failure_rules[i].state) > strlen(best->state)))
            best = &failure_rules[i];
    return best;
}

/* Sets status and text for an error that the server answered. It does not repeat the error's
 * detail, which quotes values. */
static enum status failure(struct postgres_store *store, const PGresult *result,
                           struct error *error)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (state == NULL) /* libpq's own: the connection broke under it */
        return lost(store, error);
    const struct failure_rule *rule = failure_rule_of(state);
    (void)snprintf(store->sqlstate, sizeof store->sqlstate, "%s", state);
    /* A server that ends the connection may have committed before. */
    bool open = rule->kind == HANG_UP && store->commit_sent;
    if (rule->status == STATUS_READ_ONLY)
        atomic_store(&store->facts->read_only, 1);
    store->failed = store->failed || rule->kind == HANG_UP;
    store->unknown = open;
    store->commit_sent = open; /* else it was refused, or skipped */
    store->repeatable = rule->kind == REPEAT || (rule->status == STATUS_UNAVAILABLE && !open &&
                                                 strncmp(state, "57", 2) == 0);
    return error_set(error, rule->status, "%s: %s (%.200s, SQLSTATE %s)%s", store->location,
                     rule->meaning, message != NULL ? message : "no message", state,
                     outcome(store));
}

/* A warning during a commit means that the transaction is not as safe as it should be: the commit
 * did not wait for the standby, or there was no transaction. */
static void on_notice(void *context, const PGresult *notice)
{
    struct postgres_store *store = context;
    const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *message = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
    bool warning = severity != NULL && strcmp(severity, "WARNING") == 0;
    if (severity != NULL && strcmp(severity, "FATAL") == 0)
        store->dismissed = true;
    store->warned = store->warned || (warning && store->commit_sent);
    log_event(store->log, warning ? LOG_WARNING : LOG_DEBUG, "PostgreSQL has something to say",
              LOG_STRING("store", store->location), LOG_STRING("text", message));
}

/* ---- waiting --------------------------------------------------------------------------------- */

void postgres_renew(struct postgres_store *store)
{
    store->deadline_ms =
        clock_monotonic_ms() + (store->patient ? POSTGRES_PATIENCE_MS : store->timeout_ms);
}

/* OpenSSL takes a record in as a whole, up to 16 KiB, and libpq perhaps only its beginning: the
 * rest can be read though the socket has nothing more. (libpq's own waiting looks at this too.) */
static bool holds_decrypted(const struct postgres_store *store)
{
    SSL *ssl = PQsslStruct(store->connection, "OpenSSL"); /* NULL: there is no TLS */
    return ssl != NULL && SSL_pending(ssl) > 0;
}

/* Something to read or write, or the deadline. */
static enum status wait_socket(struct postgres_store *store, short events, struct error *error)
{
    for (;;) {
        uint64_t now_ms = clock_monotonic_ms();
        if (now_ms >= store->deadline_ms)
            return timed_out(store, error);
        if (platform_store_is_stopped(&store->base))
            return stopped(store, error);
        if ((events & POLLIN) != 0 && holds_decrypted(store))
            return STATUS_OK;
        struct pollfd socket = {.fd = PQsocket(store->connection), .events = events};
        if (store->base.on_wait != NULL)
            store->base.on_wait(store->base.on_wait_context);
        uint64_t left_ms = store->deadline_ms - now_ms;
        uint64_t most_ms = store->base.stop != NULL ? STOP_LOOK_MS : INT32_MAX;
        if (poll(&socket, 1, (int)(left_ms > most_ms ? most_ms : left_ms)) > 0)
            return STATUS_OK;
    }
}

/* Sends the queued bytes and reads until an answer can be taken without waiting. */
static enum status await_result(struct postgres_store *store, bool renew, struct error *error)
{
    PGconn *connection = store->connection;
    for (;;) {
        int queued = PQflush(connection);
        if (queued < 0)
            return lost(store, error);
        if (PQisBusy(connection) == 0)
            return STATUS_OK;
        enum status status =
            wait_socket(store, (short)(POLLIN | (queued > 0 ? POLLOUT : 0)), error);
        if (status != STATUS_OK)
            return status;
        if (PQconsumeInput(connection) == 0)
            return lost(store, error);
        if (renew || store->patient)
            postgres_renew(store);
    }
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* The target's options, with those of one of its hosts in place of the lists. */
static enum status start(struct postgres_store *store, size_t host, struct error *error)
{
    static const char *const lists[] = {"host", "hostaddr", "port"};
    const char *keywords[POSTGRES_OPTIONS_MAX + 1] = {NULL};
    const char *values[POSTGRES_OPTIONS_MAX + 1] = {NULL};
    struct buffer items[3] = {0};
    size_t count = 0;
    for (const PQconninfoOption *given = store->target->options; given->keyword != NULL; given++) {
        CHECK(count < POSTGRES_OPTIONS_MAX);
        keywords[count] = given->keyword;
        values[count] = given->val;
        for (size_t i = 0; i < 3; i++)
            if (strcmp(given->keyword, lists[i]) == 0) {
                buffer_append_text(&items[i], postgres_host_option(store->target, lists[i], host));
                values[count] = buffer_string(&items[i]);
            }
        count++;
    }
    store->connection = PQconnectStartParams(keywords, values, 0);
    for (size_t i = 0; i < 3; i++)
        buffer_free(&items[i]);
    if (store->connection == NULL)
        return error_set(error, STATUS_INTERNAL, "%s: no memory to connect", store->location);
    (void)PQsetNoticeReceiver(store->connection, on_notice, store);
    return STATUS_OK;
}

static enum status refused(struct postgres_store *store, struct error *error)
{
    char reason[ERROR_TEXT_SIZE] = "";
    flatten(PQerrorMessage(store->connection), reason, sizeof reason);
    store->failed = true;
    if (strstr(reason, "unsupported startup parameter") != NULL)
        return error_invalid(error, "%s: " POSTGRES_POOLER " (%.200s)", store->location, reason);
    return error_unavailable(error, "%s: cannot be reached (%.400s)", store->location, reason);
}

static enum status handshake(struct postgres_store *store, struct error *error)
{
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    while (PQstatus(store->connection) != CONNECTION_BAD && next != PGRES_POLLING_OK &&
           next != PGRES_POLLING_FAILED) {
        enum status status =
            wait_socket(store, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, error);
        if (status != STATUS_OK)
            return status;
        next = PQconnectPoll(store->connection);
    }
    if (next != PGRES_POLLING_OK)
        return refused(store, error);
    int version = PQserverVersion(store->connection);
    if (version < POSTGRES_VERSION_MIN)
        return error_invalid(error, "%s: is PostgreSQL %d.%d; croupier needs %d or newer",
                             store->location, version / 10000, version % 10000,
                             POSTGRES_VERSION_MIN / 10000);
    CHECK(PQsetnonblocking(store->connection, 1) == 0);
    CHECK(PQenterPipelineMode(store->connection) == 1);
    store->counted = true;
    relaxed_add(&store->facts->connects, 1);
    relaxed_add(&store->facts->connections, 1);
    return STATUS_OK;
}

enum status postgres_connect(struct postgres_store *store, size_t host, struct error *error)
{
    CHECK(store->connection == NULL && host < store->target->host_count);
    store->failed = false;
    enum status status = start(store, host, error);
    if (status == STATUS_OK)
        status = handshake(store, error);
    if (status != STATUS_OK)
        postgres_disconnect(store);
    return status;
}

void postgres_disconnect(struct postgres_store *store)
{
    if (store->connection != NULL)
        PQfinish(store->connection);
    store->connection = NULL;
    store->dismissed = false;
    if (store->counted)
        relaxed_subtract(&store->facts->connections, 1);
    store->counted = false;
    store->failed = false;
    for (size_t i = 0; i < store->statement_count; i++)
        store->statements[i].state = POSTGRES_NEW;
}

bool postgres_is_alive(struct postgres_store *store)
{
    if (store->connection == NULL || PQstatus(store->connection) != CONNECTION_OK)
        return false;
    struct pollfd socket = {.fd = PQsocket(store->connection), .events = POLLIN};
    while (!store->dismissed && poll(&socket, 1, 0) > 0) {
        /* The server has sent a farewell, the end of the stream, or a notice. PQisBusy parses the
         * bytes that PQconsumeInput has read. */
        if (PQconsumeInput(store->connection) == 0 || PQisBusy(store->connection) != 0 ||
            PQstatus(store->connection) != CONNECTION_OK)
            return false;
    }
    return !store->dismissed;
}

/* ---- queries --------------------------------------------------------------------------------- */

static size_t find_statement(struct postgres_store *store, const char *sql)
{
    for (size_t i = 0; i < store->statement_count; i++)
        if (store->statements[i].sql == sql)
            return i;
    CHECK(store->statement_count < POSTGRES_STATEMENTS_MAX);
    store->statements[store->statement_count].sql = sql;
    store->statements[store->statement_count].state = POSTGRES_NEW;
    return store->statement_count++;
}

/* Parameters as libpq takes them: numbers and flags as text, whose type the server infers; the
 * binary form of a text is the text itself, which needs no NUL. */
struct parameters {
    const char *values[SQL_PARAMETERS_MAX];
    int lengths[SQL_PARAMETERS_MAX];
    int formats[SQL_PARAMETERS_MAX]; /* 0: text, 1: binary */
    char digits[SQL_PARAMETERS_MAX][24];
};

static void set_parameter(struct parameters *parameters, int at, const struct column_value *value)
{
    const bool number = value->kind == COLUMN_INTEGER || value->kind == COLUMN_FLAG;
    const char *bytes = value->bytes.at != NULL ? value->bytes.at : "";
    char *digits = parameters->digits[at];
    CHECK(value->bytes.size <= INT32_MAX);
    if (number)
        (void)snprintf(digits, sizeof parameters->digits[at], "%" PRId64, value->integer);
    parameters->formats[at] = number ? 0 : 1;
    parameters->lengths[at] = (int)value->bytes.size;
    parameters->values[at] = value->null ? NULL : number ? digits : bytes;
}

/* Queues one query; `prepares` tells whether its preparation goes first. */
static bool send_query(struct postgres_store *store, const struct sql_query *query, bool *prepares)
{
    struct parameters parameters;
    int count = query->parameters != NULL ? query->parameters->count : 0;
    size_t slot = find_statement(store, query->sql);
    char name[16];
    (void)snprintf(name, sizeof name, "s%zu", slot);
    *prepares = store->statements[slot].state == POSTGRES_NEW;
    if (*prepares) {
        if (PQsendPrepare(store->connection, name, query->sql, 0, NULL) == 0)
            return false;
        store->statements[slot].state = POSTGRES_SENT;
    }
    if (query->sql == postgres_commit)
        store->commit_sent = true;
    for (int i = 0; i < count; i++)
        set_parameter(&parameters, i, &query->parameters->at[i]);
    return PQsendQueryPrepared(store->connection, name, count, parameters.values,
                               parameters.lengths, parameters.formats, 1) == 1;
}

/* One run's reading: which query is answered, and the first thing that went wrong. */
struct flight {
    struct postgres_store *store;
    struct error *error;
    enum status status;
    bool streamed; /* rows were handed on: not to be done again */
};

/* The next result; NULL ends those of one query, or is a failure that the flight has. */
static PGresult *next_result(struct flight *flight, bool renew)
{
    enum status status = await_result(flight->store, renew, flight->error);
    if (status == STATUS_OK)
        return PQgetResult(flight->store->connection);
    flight->status = status;
    return NULL;
}

/* Of a smallint, integer or bigint, in network byte order. */
static int64_t read_integer(struct text bytes)
{
    uint64_t value = 0;
    CHECK(bytes.size == 0 || bytes.size == 2 || bytes.size == 4 || bytes.size == 8);
    for (size_t i = 0; i < bytes.size; i++)
        value = value << 8 | (unsigned char)bytes.at[i];
    return bytes.size == 2 ? (int16_t)value : bytes.size == 4 ? (int32_t)value : (int64_t)value;
}

static struct column_value row_value(const struct sql_row *row, int column, enum column_kind kind)
{
    const PGresult *result = row->result;
    struct column_value value = {.kind = kind, .null = PQgetisnull(result, row->at, column) == 1};
    if (value.null)
        return value;
    const struct text bytes = {PQgetvalue(result, row->at, column),
                               (size_t)PQgetlength(result, row->at, column)};
    if (kind == COLUMN_INTEGER)
        value.integer = read_integer(bytes);
    else if (kind == COLUMN_FLAG)
        value.integer = bytes.size == 1 && bytes.at[0] != 0;
    else
        value.bytes = bytes;
    return value;
}

/* Hands one streamed row on. False: the rest need not be read. */
static bool deliver_row(const struct sql_query *query, const PGresult *result, uint64_t *discarded)
{
    const struct sql_row row = {row_value, result, 0};
    CHECK(query != NULL && query->row != NULL); /* only a query that is a stream has single rows */
    if (*discarded == 0 && query->row(query->context, &row))
        return true;
    return ++*discarded <= DISCARD_MAX;
}

/* The end of a stream, or all of a result. */
static void keep(struct flight *flight, struct sql_query *query, PGresult *result)
{
    uint64_t affected = 0;
    if (query->sql == postgres_commit && strcmp(PQcmdStatus(result), "COMMIT") != 0)
        flight->status = error_set(flight->error, STATUS_INTERNAL,
                                   "%s: the transaction had failed and was not committed",
                                   flight->store->location);
    else if (query->sql == postgres_commit)
        atomic_store(&flight->store->facts->read_only, 0);
    if (text_to_u64(text_of(PQcmdTuples(result)), UINT64_MAX, &affected) == STATUS_OK)
        query->affected = affected;
    if (query->stream || query->result != NULL)
        return;
    query->result = result;
    query->rows = (uint64_t)PQntuples(result);
}

/* Takes one result; false: nothing more is to be read. The first error is the flight's: the server
 * has skipped the queries after it. `query` is NULL for what has no rows. */
static bool take_result(struct flight *flight, struct sql_query *query, PGresult *result,
                        uint64_t *discarded)
{
    struct postgres_store *store = flight->store;
    switch (PQresultStatus(result)) {
    case PGRES_SINGLE_TUPLE:
        flight->streamed = true;
        if (!deliver_row(query, result, discarded))
            store->failed = true; /* hangs up: the reader wants no more rows */
        postgres_renew(store);    /* the time that the reader took is not the server's */
        break;
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
    case PGRES_PIPELINE_SYNC:
        if (query != NULL)
            keep(flight, query, result);
        break;
    default:
        if (flight->status == STATUS_OK)
            flight->status = failure(store, result, flight->error);
    }
    return !store->failed;
}

/* All results of one query; `query` NULL: of a preparation or a script. False: the connection is
 * gone. */
static bool read_results(struct flight *flight, struct sql_query *query)
{
    const bool stream = query != NULL && query->stream;
    uint64_t discarded = 0;
    PGresult *result;
    if (stream && flight->status == STATUS_OK &&
        PQsetSingleRowMode(flight->store->connection) == 0) {
        flight->status = lost(flight->store, flight->error);
        return false;
    }
    while ((result = next_result(flight, stream)) != NULL) {
        bool sound = take_result(flight, query, result, &discarded);
        if (query == NULL || query->result != result)
            PQclear(result);
        if (!sound)
            return false;
    }
    return !flight->store->failed;
}

static void read_sync(struct flight *flight)
{
    /* The first failure is the one that is reported. */
    struct flight rest = {.store = flight->store,
                          .error = flight->status == STATUS_OK ? flight->error : NULL,
                          .status = STATUS_OK};
    PGresult *result = next_result(&rest, false);
    if (rest.status == STATUS_OK && PQresultStatus(result) != PGRES_PIPELINE_SYNC)
        rest.status = lost(rest.store, rest.error);
    PQclear(result);
    if (flight->status == STATUS_OK)
        flight->status = rest.status;
}

static void count_round_trip(struct postgres_store *store, uint64_t began_ns)
{
    relaxed_add(&store->facts->round_trips, 1);
    relaxed_add(&store->facts->round_trip_ns, clock_monotonic_ns() - began_ns);
}

static void begin_run(struct postgres_store *store)
{
    CHECK(store->connection != NULL);
    store->sqlstate[0] = '\0';
    store->repeatable = false;
}

/* The answer to one query, and to its preparation where that went first. */
static bool read_query(struct flight *flight, struct sql_query *query, bool prepares)
{
    struct postgres_store *store = flight->store;
    const bool before = flight->status != STATUS_OK;
    bool sound = !prepares || read_results(flight, NULL);
    if (prepares && flight->status == STATUS_OK)
        store->statements[find_statement(store, query->sql)].state = POSTGRES_PREPARED;
    sound = sound && read_results(flight, query);
    query->failed = !before && flight->status != STATUS_OK;
    return sound;
}

/* Hands on the rows of a query that is no stream, where it has a reader. */
static void deliver(const struct sql_query *query)
{
    struct sql_row row = {row_value, query->result, 0};
    bool wanted = query->row != NULL && !query->stream;
    for (; wanted && (uint64_t)row.at < query->rows; row.at++)
        wanted = query->row(query->context, &row);
}

enum status postgres_run(struct postgres_store *store, struct sql_query *queries, size_t count,
                         struct error *error)
{
    struct flight flight = {.store = store, .error = error, .status = STATUS_OK};
    uint64_t began_ns = clock_monotonic_ns();
    bool *prepares = memory_alloc_zeroed(count, sizeof *prepares);
    bool sound = true;
    begin_run(store);
    for (size_t i = 0; i < count; i++) {
        queries[i].result = NULL;
        queries[i].affected = queries[i].rows = 0;
        queries[i].failed = false;
        sound = sound && send_query(store, &queries[i], &prepares[i]);
    }
    if (!sound || PQpipelineSync(store->connection) == 0) {
        sound = false;
        flight.status = lost(store, error);
    }
    for (size_t i = 0; sound && i < count; i++)
        sound = read_query(&flight, &queries[i], prepares[i]);
    if (sound)
        read_sync(&flight);
    count_round_trip(store, began_ns);
    memory_free(prepares);
    for (size_t i = 0; i < store->statement_count; i++)
        if (store->statements[i].state == POSTGRES_SENT)
            store->statements[i].state = POSTGRES_NEW;
    for (size_t i = 0; i < count && flight.status == STATUS_OK; i++)
        deliver(&queries[i]);
    for (size_t i = 0; i < count; i++) {
        PQclear(queries[i].result);
        queries[i].result = NULL;
    }
    if (flight.streamed)
        store->repeatable = false;
    if (store->failed)
        postgres_disconnect(store);
    return flight.status;
}

enum status postgres_execute(struct postgres_store *store, const char *script, struct error *error)
{
    struct flight flight = {.store = store, .error = error, .status = STATUS_OK};
    begin_run(store);
    CHECK(PQexitPipelineMode(store->connection) == 1);
    if (PQsendQuery(store->connection, script) == 1)
        (void)read_results(&flight, NULL);
    else
        flight.status = lost(store, error);
    if (!store->failed)
        CHECK(PQenterPipelineMode(store->connection) == 1);
    else
        postgres_disconnect(store);
    return flight.status;
}
