/*
 * What is PostgreSQL's own, beyond the contract that every engine passes (platform_contract/):
 * servers that are frozen, gone or somebody else, transactions that collide, commits whose end
 * no one hears of. Runs against the server that TEST_POSTGRES_URI names (tests/servers.py), whose
 * processes it signals.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "base/clock.h"
#include "stores/platform/schema.h"
#include "stores/platform/texts.h"
#include "stores/platform_changes.h"
#include "stores/platform_ledger.h"
#include "stores/platform_players.h"
#include "stores/platform_records.h"
#include "stores/platform_sums.h"
#include "tests.h"

#define TIMEOUT_MS 2700

/* ---- fixture --------------------------------------------------------------------------------- */

struct fixture {
    char schema[64];
    char uri[512];
    PGconn *admin; /* in the same schema, beside the store */
    struct platform_facts facts;
    struct platform_store *store;
    struct error error;
};

static const char *server_uri(void)
{
    const char *uri = getenv("TEST_POSTGRES_URI");
    if (uri == NULL)
        fail_msg("TEST_POSTGRES_URI names no database");
    return uri;
}

static void run(struct fixture *fixture, const char *sql)
{
    PGresult *result = PQexec(fixture->admin, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(fixture->admin));
    PQclear(result);
}

static long ask(struct fixture *fixture, const char *sql)
{
    PGresult *result = PQexec(fixture->admin, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1)
        fail_msg("%s: %s", sql, PQerrorMessage(fixture->admin));
    long answer = strtol(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return answer;
}

/* "host=…" of the server under test, for URIs of one's own. */
static void server_place(struct fixture *fixture, char *host, size_t room, const char **port)
{
    PGresult *result = PQexec(fixture->admin, "SHOW unix_socket_directories");
    (void)snprintf(host, room, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    *port = PQport(fixture->admin);
}

static enum status open_with(struct fixture *fixture, const char *uri, bool create,
                             struct platform_store **store)
{
    struct platform_store_options options = {
        .uri = uri, .timeout_ms = TIMEOUT_MS, .create = create, .facts = &fixture->facts};
    return platform_store_open(store, &options, &fixture->error);
}

#define OK(call) ASSERT_OK(call, fixture->error)

#define SAYS(fixture, part)                                               \
    do {                                                                  \
        if (strstr((fixture)->error.text, (part)) == NULL)                \
            fail_msg("\"%s\" lacks \"%s\"", (fixture)->error.text, part); \
    } while (0)

static int set_up_schema(void **state)
{
    static unsigned made;
    struct fixture *fixture = calloc(1, sizeof *fixture);
    char sql[128];
    (void)snprintf(fixture->schema, sizeof fixture->schema, "own_%ld_%u", (long)getpid(), ++made);
    (void)snprintf(fixture->uri, sizeof fixture->uri, "%s%coptions=-csearch_path%%3D%s",
                   server_uri(), strchr(server_uri(), '?') == NULL ? '?' : '&', fixture->schema);
    fixture->admin = PQconnectdb(server_uri());
    assert_int_equal(PQstatus(fixture->admin), CONNECTION_OK);
    run(fixture, "SET client_min_messages = warning");
    (void)snprintf(sql, sizeof sql, "CREATE SCHEMA %s", fixture->schema);
    run(fixture, sql);
    (void)snprintf(sql, sizeof sql, "SET search_path = %s", fixture->schema);
    run(fixture, sql);
    *state = fixture;
    return 0;
}

static int set_up(void **state)
{
    uint32_t before;
    uint32_t after;
    (void)set_up_schema(state);
    struct fixture *fixture = *state;
    OK(open_with(fixture, fixture->uri, true, &fixture->store));
    OK(platform_store_migrate(fixture->store, &before, &after, &fixture->error));
    platform_store_close(&fixture->store);
    OK(open_with(fixture, fixture->uri, false, &fixture->store));
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    char sql[128];
    platform_store_close(&fixture->store);
    assert_int_equal(atomic_load(&fixture->facts.connections), 0);
    (void)snprintf(sql, sizeof sql, "DROP SCHEMA %s CASCADE", fixture->schema);
    run(fixture, sql);
    PQfinish(fixture->admin);
    free(fixture);
    return 0;
}

static uint64_t count(atomic_uint_least64_t *of)
{
    return atomic_load(of);
}

/* The server's process that serves the store of this fixture. */
static pid_t backend(struct fixture *fixture)
{
    return (pid_t)ask(fixture, "SELECT max(pid) FROM pg_stat_activity"
                               " WHERE application_name = 'croupier' AND state = 'idle'");
}

static struct customer_record customer(const char *id)
{
    struct customer_record record = {.enabled = true, .sports = SPORT_SET_ALL, .created_ms = 1};
    (void)snprintf(record.id, sizeof record.id, "%s", id);
    (void)snprintf(record.name, sizeof record.name, "%s", id);
    return record;
}

static enum status add(struct fixture *fixture, const char *id)
{
    struct customer_record record = customer(id);
    return platform_add(fixture->store, &customer_table, &record, &fixture->error);
}

/* A socket that takes connections and never says a word. */
static int black_hole(char *uri, size_t room)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(uri, room, "127.0.0.1:%u", (unsigned)ntohs(address.sin_port));
    return listener;
}

/* How many have connected to it since the last time. */
static unsigned swallowed(int listener)
{
    unsigned count = 0;
    struct pollfd wanted = {.fd = listener, .events = POLLIN};
    while (poll(&wanted, 1, 0) == 1) {
        (void)close(accept(listener, NULL, NULL));
        count++;
    }
    return count;
}

/* ---- servers that do not answer -------------------------------------------------------------- */

TEST_OF(fixture, a_frozen_server_is_a_timeout_in_time)
{
    pid_t frozen = backend(fixture);
    assert_true(frozen > 0);
    assert_int_equal(kill(frozen, SIGSTOP), 0);
    uint64_t began_ms = clock_monotonic_ms();
    enum status status = platform_store_ping(fixture->store, &fixture->error);
    uint64_t took_ms = clock_monotonic_ms() - began_ms;
    enum status next = platform_store_ping(fixture->store, &fixture->error); /* on another one */
    assert_int_equal(kill(frozen, SIGCONT), 0);
    assert_int_equal(status, STATUS_TIMEOUT);
    assert_true(took_ms >= TIMEOUT_MS - 1);
    assert_int_equal(next, STATUS_OK);
    assert_int_equal(count(&fixture->facts.timeouts), 1);
}

TEST_OF(fixture, a_frozen_server_in_a_change_leaves_no_lock_behind)
{
    run(fixture, "CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS"
                 " $$ BEGIN PERFORM pg_sleep(30); RETURN NEW; END $$");
    run(fixture, "CREATE TRIGGER sleep BEFORE INSERT ON customer"
                 " FOR EACH ROW EXECUTE FUNCTION sleep()");
    assert_int_equal(add(fixture, "cus_1"), STATUS_TIMEOUT);
    run(fixture, "DROP TRIGGER sleep ON customer"); /* waits for whoever still holds the table */
    OK(add(fixture, "cus_1"));
    assert_int_equal(ask(fixture, "SELECT revision FROM store_revision"), 1);
}

TEST_OF_WITH(fixture, a_listener_that_says_nothing_is_a_timeout_in_time, set_up_schema, tear_down)
{
    struct platform_store *store = NULL;
    char place[64];
    char uri[128];
    int listener = black_hole(place, sizeof place);
    (void)snprintf(uri, sizeof uri, "postgresql://u:hunter2@%s/d", place);
    uint64_t began_ms = clock_monotonic_ms();
    assert_int_equal(open_with(fixture, uri, false, &store), STATUS_TIMEOUT);
    assert_true(clock_monotonic_ms() - began_ms >= TIMEOUT_MS - 1);
    assert_null(store);
    assert_null(strstr(fixture->error.text, "hunter2"));
    (void)close(listener);
}

TEST_OF_WITH(fixture, a_server_that_is_not_there_is_unavailable_at_once, set_up_schema, tear_down)
{
    struct platform_store *store = NULL;
    assert_int_equal(open_with(fixture, "postgresql://u:hunter2@127.0.0.1:1/d", false, &store),
                     STATUS_UNAVAILABLE);
    SAYS(fixture, "postgresql://127.0.0.1:1/d: cannot be reached");
    SAYS(fixture, "refused");
    assert_null(strstr(fixture->error.text, "hunter2"));
}

TEST_OF(fixture, of_several_hosts_the_one_that_answers_is_used)
{
    char place[64];
    char host[256];
    char uri[1024];
    const char *port;
    int listener = black_hole(place, sizeof place);
    server_place(fixture, host, sizeof host, &port);
    (void)snprintf(uri, sizeof uri,
                   "postgresql:///%s?host=127.0.0.1,127.0.0.1,%s&port=1,%s,%s&user=%s"
                   "&options=-csearch_path%%3D%s",
                   PQdb(fixture->admin), host, strchr(place, ':') + 1, port, PQuser(fixture->admin),
                   fixture->schema);
    platform_store_close(&fixture->store);
    OK(open_with(fixture, uri, false, &fixture->store)); /* one refuses, one swallows */
    OK(platform_store_ping(fixture->store, &fixture->error));
    run(fixture, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                 " WHERE application_name = 'croupier'");
    assert_true(swallowed(listener) > 0);
    OK(platform_store_ping(fixture->store, &fixture->error));
    assert_int_equal(swallowed(listener), 0); /* it begins with the one that answered */
    (void)close(listener);
}

/* The old primary is back beside the promoted one, which another connection has met. */
TEST_OF(fixture, a_server_of_an_older_timeline_than_one_that_was_seen_is_passed_over)
{
    struct platform_store *other = NULL;
    (void)atomic_fetch_add(&fixture->facts.timeline, 1);
    assert_int_equal(platform_store_ping(fixture->store, &fixture->error), STATUS_UNAVAILABLE);
    SAYS(fixture, "is an older primary (timeline 1; 2 was seen");
    assert_int_equal(open_with(fixture, fixture->uri, false, &other), STATUS_UNAVAILABLE);
    SAYS(fixture, "is an older primary (timeline 1; 2 was seen");
    (void)atomic_fetch_add(&fixture->facts.timeline, UINT64_C(1) << 32); /* of another server */
    OK(open_with(fixture, fixture->uri, false, &other));
    OK(platform_store_ping(fixture->store, &fixture->error));
    platform_store_close(&other);
}

/* ---- connections that end -------------------------------------------------------------------- */

TEST_OF(fixture, a_connection_that_was_ended_is_made_again_by_the_next_call)
{
    for (int i = 0; i < 3; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "cus_%d", i);
        run(fixture, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                     " WHERE application_name = 'croupier'");
        OK(add(fixture, id));
        run(fixture, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                     " WHERE application_name = 'croupier'");
        OK(platform_store_ping(fixture->store, &fixture->error));
    }
    assert_int_equal(ask(fixture, "SELECT count(*) FROM customer"), 3);
}

struct ending {
    struct fixture *fixture;
    atomic_bool stop;
};

static void *end_connections(void *argument)
{
    struct ending *ending = argument;
    PGconn *connection = PQconnectdb(server_uri());
    while (!atomic_load(&ending->stop))
        PQclear(PQexec(connection, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                                   " WHERE application_name = 'croupier'"));
    PQfinish(connection);
    return NULL;
}

/* What was acknowledged is there; what was refused for sure is not. */
TEST_OF(fixture, a_loop_of_endings_loses_nothing_that_was_acknowledged)
{
    struct ending ending = {fixture, false};
    pthread_t thread;
    long acknowledged = 0;
    long unknown = 0;
    assert_int_equal(pthread_create(&thread, NULL, end_connections, &ending), 0);
    for (int i = 0; i < 200; i++) {
        char id[24];
        (void)snprintf(id, sizeof id, "cus_%d", i);
        enum status status = add(fixture, id);
        if (status == STATUS_OK)
            acknowledged++;
        else
            unknown += strstr(fixture->error.text, "check whether") != NULL;
    }
    atomic_store(&ending.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    long there = ask(fixture, "SELECT count(*) FROM customer");
    assert_in_range(there, acknowledged, acknowledged + unknown);
    assert_int_equal(ask(fixture, "SELECT revision FROM store_revision"), there);
    OK(platform_store_ping(fixture->store, &fixture->error));
}

TEST_OF(fixture, a_commit_that_no_one_heard_the_end_of_is_said_to_be_open)
{
    run(fixture, "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS"
                 " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid());"
                 " PERFORM pg_sleep(10); RETURN NULL; END $$");
    run(fixture, "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON customer"
                 " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()");
    assert_int_equal(add(fixture, "cus_1"), STATUS_UNAVAILABLE);
    SAYS(fixture, "check whether the change was kept");
    assert_int_equal(count(&fixture->facts.repeats), 0); /* it might happen twice */
    run(fixture, "DROP TRIGGER die ON customer");
    OK(add(fixture, "cus_1"));
}

TEST_OF(fixture, a_commit_with_a_warning_is_not_taken_for_one)
{
    run(fixture, "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS"
                 " $$ BEGIN RAISE WARNING 'nobody waited for the standby'; RETURN NULL; END $$");
    run(fixture, "CREATE CONSTRAINT TRIGGER warn AFTER INSERT ON customer"
                 " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION warn()");
    assert_int_equal(add(fixture, "cus_1"), STATUS_UNAVAILABLE);
    SAYS(fixture, "warned while it committed");
    OK(platform_store_ping(fixture->store, &fixture->error));
}

/* Until the server has read its configuration again. */
static void await_setting(struct fixture *fixture, const char *question)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    uint64_t until_ms = clock_monotonic_ms() + 60000;
    run(fixture, "SELECT pg_reload_conf()");
    while (ask(fixture, question) != 1) {
        assert_true(clock_monotonic_ms() < until_ms);
        (void)nanosleep(&pause, NULL);
    }
}

TEST_OF(fixture, a_session_waits_for_the_disk_whatever_the_server_is_told_later)
{
    run(fixture, "CREATE TABLE seen (setting text)");
    run(fixture, "CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                 " INSERT INTO seen VALUES (current_setting('synchronous_commit'));"
                 " RETURN NEW; END $$");
    run(fixture, "CREATE TRIGGER look BEFORE INSERT ON customer"
                 " FOR EACH ROW EXECUTE FUNCTION look()");
    OK(add(fixture, "cus_1")); /* found it on */
    run(fixture, "ALTER SYSTEM SET synchronous_commit = off");
    await_setting(fixture, "SELECT (current_setting('synchronous_commit') = 'off')::int");
    enum status status = add(fixture, "cus_2");
    run(fixture, "ALTER SYSTEM RESET synchronous_commit");
    await_setting(fixture, "SELECT (current_setting('synchronous_commit') = 'on')::int");
    OK(status);
    assert_int_equal(count(&fixture->facts.connects), 2); /* to migrate, and since */
    assert_int_equal(ask(fixture, "SELECT count(*) FROM seen WHERE setting = 'on'"), 2);
}

TEST_OF(fixture, another_database_in_the_same_place_fails_one_call)
{
    uint64_t revision;
    OK(add(fixture, "cus_1"));
    run(fixture, "UPDATE store_identity SET id = gen_random_uuid()"); /* as a restored one has */
    OK(platform_revision(fixture->store, &revision, &fixture->error));
    run(fixture, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                 " WHERE application_name = 'croupier'");
    assert_int_equal(platform_revision(fixture->store, &revision, &fixture->error),
                     STATUS_UNAVAILABLE);
    SAYS(fixture, "taken its place");
    OK(platform_revision(fixture->store, &revision, &fixture->error));
    assert_int_equal(revision, 1);
}

static bool see(void *context, const void *record)
{
    ++*(unsigned *)context;
    return true;
}

TEST_OF(fixture, a_snapshot_that_lost_its_connection_brings_no_mixture)
{
    unsigned seen = 0;
    OK(add(fixture, "cus_1"));
    OK(fixture->store->ledger->snapshot_begin(fixture->store, &fixture->error));
    run(fixture, "INSERT INTO customer (id, name, enabled, casino, sports, cidrs, created_ms,"
                 " revision) VALUES ('cus_2', 'n', true, true, 'all', '', 1, 2)");
    OK(platform_list(fixture->store, &customer_table, NULL, see, &seen, &fixture->error));
    assert_int_equal(seen, 1);
    run(fixture, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                 " WHERE application_name = 'croupier'");
    assert_int_equal(
        platform_list(fixture->store, &customer_table, NULL, see, &seen, &fixture->error),
        STATUS_UNAVAILABLE);
    assert_int_equal(
        platform_list(fixture->store, &customer_table, NULL, see, &seen, &fixture->error),
        STATUS_UNAVAILABLE);
    fixture->store->ledger->snapshot_end(fixture->store);
    OK(platform_list(fixture->store, &customer_table, NULL, see, &seen, &fixture->error));
    assert_int_equal(seen, 3);
}

/* ---- transactions that collide --------------------------------------------------------------- */

TEST_OF(fixture, collisions_are_repeated_and_not_for_ever)
{
    run(fixture, "CREATE SEQUENCE tries");
    run(fixture, "CREATE FUNCTION collide() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                 " IF nextval('tries') % 3 <> 0 THEN"
                 "  RAISE EXCEPTION USING ERRCODE = 'deadlock_detected'; END IF;"
                 " RETURN NEW; END $$");
    run(fixture, "CREATE TRIGGER collide BEFORE INSERT ON customer"
                 " FOR EACH ROW EXECUTE FUNCTION collide()");
    OK(add(fixture, "cus_1"));
    assert_int_equal(count(&fixture->facts.repeats), 2);
    assert_int_equal(ask(fixture, "SELECT revision FROM store_revision"), 1);
    run(fixture, "CREATE OR REPLACE FUNCTION collide() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                 " RAISE EXCEPTION USING ERRCODE = 'serialization_failure'; END $$");
    assert_int_equal(add(fixture, "cus_2"), STATUS_UNAVAILABLE);
    assert_true(count(&fixture->facts.repeats) <= 2 + 8);
}

TEST_OF(fixture, what_the_server_says_becomes_a_status)
{
    static const struct {
        const char *condition;
        enum status status;
    } cases[] = {{"disk_full", STATUS_FULL},
                 {"query_canceled", STATUS_TIMEOUT},
                 {"lock_not_available", STATUS_TIMEOUT},
                 {"read_only_sql_transaction", STATUS_READ_ONLY},
                 {"cannot_connect_now", STATUS_UNAVAILABLE},
                 {"insufficient_privilege", STATUS_UNAVAILABLE},
                 {"io_error", STATUS_UNAVAILABLE},
                 {"data_corrupted", STATUS_MALFORMED},
                 {"undefined_table", STATUS_INVALID},
                 {"check_violation", STATUS_INVALID},
                 {"unique_violation", STATUS_EXISTS},
                 {"foreign_key_violation", STATUS_NOT_FOUND},
                 {"division_by_zero", STATUS_INVALID},
                 {"internal_error", STATUS_INTERNAL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql,
                       "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
                       " $$ BEGIN RAISE EXCEPTION USING ERRCODE = '%s'; END $$",
                       cases[i].condition);
        run(fixture, sql);
        if (i == 0)
            run(fixture, "CREATE TRIGGER refuse BEFORE INSERT ON customer"
                         " FOR EACH ROW EXECUTE FUNCTION refuse()");
        enum status status = add(fixture, "cus_1");
        if (status != cases[i].status)
            fail_msg("%s: %s: %s", cases[i].condition, status_name(status), fixture->error.text);
        OK(platform_store_ping(fixture->store, &fixture->error));
    }
}

TEST_OF(fixture, a_lock_that_others_keep_is_a_timeout_and_the_connection_stays)
{
    struct platform_store_options patient = {.uri = fixture->uri, .timeout_ms = 3000};
    platform_store_close(&fixture->store);
    OK(platform_store_open(&fixture->store, &patient, &fixture->error));
    pid_t before = backend(fixture);
    run(fixture, "BEGIN");
    run(fixture, "UPDATE store_revision SET revision = revision");
    assert_int_equal(add(fixture, "cus_1"), STATUS_TIMEOUT);
    SAYS(fixture, "locked");
    run(fixture, "COMMIT");
    OK(add(fixture, "cus_1"));
    assert_int_equal(backend(fixture), before);
}

static void *add_in_thread(void *argument)
{
    return add(argument, "cus_2") == STATUS_OK ? argument : NULL;
}

/* Whoever has taken a revision and not yet committed holds back all later ones. */
TEST_OF(fixture, revisions_become_visible_in_their_order)
{
    struct platform_store *reader = NULL;
    pthread_t writer;
    uint64_t revision = 9;
    void *added = NULL;
    OK(open_with(fixture, fixture->uri, false, &reader));
    run(fixture, "BEGIN");
    run(fixture, "UPDATE store_revision SET revision = revision + 1");
    run(fixture, "INSERT INTO customer (id, name, enabled, casino, sports, cidrs, created_ms,"
                 " revision) VALUES ('cus_1', 'n', true, true, 'all', '', 1, 1)");
    assert_int_equal(pthread_create(&writer, NULL, add_in_thread, fixture), 0);
    for (int i = 0; i < 10; i++) {
        const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
        OK(platform_revision(reader, &revision, &fixture->error));
        assert_int_equal(revision, 0);
        (void)nanosleep(&pause, NULL);
    }
    run(fixture, "COMMIT");
    assert_int_equal(pthread_join(writer, &added), 0);
    assert_non_null(added);
    assert_int_equal(ask(fixture, "SELECT revision FROM customer WHERE id = 'cus_2'"), 2);
    platform_store_close(&reader);
}

/* ---- schemas --------------------------------------------------------------------------------- */

struct migration_run {
    const char *uri;
    enum status status;
    uint32_t before, after;
    struct error error;
};

static void *migrate(void *argument)
{
    struct migration_run *one = argument;
    struct platform_store *store = NULL;
    struct platform_store_options options = {.uri = one->uri, .timeout_ms = 5000, .create = true};
    one->status = platform_store_open(&store, &options, &one->error);
    if (one->status == STATUS_OK)
        one->status = platform_store_migrate(store, &one->before, &one->after, &one->error);
    platform_store_close(&store);
    return NULL;
}

TEST_OF_WITH(fixture, migrations_at_once_make_one_schema, set_up_schema, tear_down)
{
    struct migration_run runs[4] = {
        {.uri = fixture->uri}, {.uri = fixture->uri}, {.uri = fixture->uri}, {.uri = fixture->uri}};
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, migrate, &runs[i]), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < 4; i++) {
        if (runs[i].status != STATUS_OK)
            fail_msg("%s", runs[i].error.text);
        assert_int_equal(runs[i].after, runs[0].after);
    }
    assert_int_equal(ask(fixture, "SELECT max(number) FROM schema_migration"), runs[0].after);
    OK(open_with(fixture, fixture->uri, false, &fixture->store));
}

TEST_OF_WITH(fixture, blocks_of_before_go_on_without_an_end, set_up_schema, tear_down)
{
    uint32_t before;
    uint32_t after;
    struct block_record block;
    char sql[256];
    run(fixture, "CREATE TABLE schema_migration (number bigint PRIMARY KEY CHECK (number > 0),"
                 " name text NOT NULL, checksum text NOT NULL, applied_ms bigint NOT NULL)");
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(sql, sizeof sql, "INSERT INTO schema_migration VALUES (%u, '%s', '%s', 1)",
                       postgres_migrations[i].number, postgres_migrations[i].name,
                       postgres_migrations[i].checksum);
        run(fixture, postgres_migrations[i].sql);
        run(fixture, sql);
    }
    run(fixture, "INSERT INTO customer (id, name, enabled, casino, sports, cidrs, created_ms,"
                 " revision) VALUES ('cus_One', 'One', true, true, 'all', '', 1, 1)");
    run(fixture, "INSERT INTO currency VALUES ('EUR', 2, 1)");
    run(fixture, "INSERT INTO player (id, customer_id, reference, currency, created_ms)"
                 " VALUES ('ply_1', 'cus_One', 'one', 'EUR', 1)");
    run(fixture, "INSERT INTO player_block SELECT number, 77 FROM player");
    OK(open_with(fixture, fixture->uri, true, &fixture->store));
    OK(platform_store_migrate(fixture->store, &before, &after, &fixture->error));
    assert_true(before == 6 && after > 6);
    OK(platform_get(fixture->store, &block_table, "ply_1", &block, &fixture->error));
    assert_string_equal(block.player_id, "ply_1");
    assert_string_equal(block.customer_id, "cus_One");
    assert_string_equal(block.reference, "one");
    assert_true(block.blocked_ms == 77 && block.until_ms == 0 && block.reason[0] == '\0');
}

TEST_OF_WITH(fixture, an_empty_database_says_what_to_do, set_up_schema, tear_down)
{
    struct platform_store *store = NULL;
    assert_int_equal(open_with(fixture, fixture->uri, false, &store), STATUS_INVALID);
    SAYS(fixture, "is empty; run: croupier migrate");
}

TEST_OF_WITH(fixture, somebody_elses_tables_are_left_alone, set_up_schema, tear_down)
{
    struct platform_store *store = NULL;
    uint32_t before;
    uint32_t after;
    run(fixture, "CREATE TABLE customer (name text)");
    run(fixture, "INSERT INTO customer VALUES ('theirs')");
    OK(open_with(fixture, fixture->uri, true, &store));
    assert_int_not_equal(platform_store_migrate(store, &before, &after, &fixture->error),
                         STATUS_OK);
    SAYS(fixture, "migration 5 (release_0_1_0)");
    platform_store_close(&store);
    assert_int_equal(ask(fixture, "SELECT count(*) FROM pg_tables WHERE schemaname ="
                                  " current_schema()"),
                     1);
}

TEST_OF(fixture, schemas_of_other_programs_are_refused)
{
    struct platform_store *store = NULL;
    uint32_t before;
    uint32_t after;
    run(fixture, "INSERT INTO schema_migration SELECT generate_series(max(number) + 1, 99), 'x',"
                 " 'x', 1 FROM schema_migration");
    assert_int_equal(open_with(fixture, fixture->uri, false, &store), STATUS_INVALID);
    SAYS(fixture, "is newer than this program's");
    OK(open_with(fixture, fixture->uri, true, &store));
    assert_int_equal(platform_store_migrate(store, &before, &after, &fixture->error),
                     STATUS_INVALID);
    platform_store_close(&store);
    run(fixture, "UPDATE schema_migration SET checksum = 'x' WHERE number >"
                 " (SELECT min(number) FROM schema_migration)");
    assert_int_equal(open_with(fixture, fixture->uri, false, &store), STATUS_INVALID);
    SAYS(fixture, "is of no release");
    run(fixture, "DELETE FROM schema_migration WHERE checksum = 'x'");
    assert_int_equal(open_with(fixture, fixture->uri, false, &store), STATUS_INVALID);
    SAYS(fixture, "is older than this program's");
}

TEST_OF(fixture, what_only_grows_resists_hands)
{
    static const char *const tries[] = {
        "UPDATE player SET reference = 'x'",
        "DELETE FROM player",
        "TRUNCATE player CASCADE",
        "UPDATE currency SET exponent = 3",
        "DELETE FROM currency",
        "UPDATE audit_trail SET who = 'x'",
        "DELETE FROM audit_trail",
        "TRUNCATE audit_trail",
        "INSERT INTO audit_trail VALUES (3, 1, 'anna', '', 'customer', 'cus_1', NULL, '{}')"};
    struct player_record player;
    OK(add(fixture, "cus_1"));
    OK(platform_player_open(fixture->store, "cus_1", "alice", "EUR", 2, &player, &fixture->error));
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        PGresult *result = PQexec(fixture->admin, tries[i]);
        assert_int_equal(PQresultStatus(result), PGRES_FATAL_ERROR);
        assert_string_equal(PQresultErrorField(result, PG_DIAG_SQLSTATE), "23001");
        PQclear(result);
    }
}

/* ---- who may be asked ------------------------------------------------------------------------ */

#define READY "Z\0\0\0\x05I"

/* A server that has one answer to each client that connects; what follows READY in it answers the
 * client's first query. */
struct pretender {
    int listener;
    const char *answer;
    size_t size;
};

static void *pretend(void *argument)
{
    const struct pretender *pretender = argument;
    char bytes[1024];
    int peer = accept(pretender->listener, NULL, NULL);
    ssize_t got = recv(peer, bytes, sizeof bytes, 0);
    if (got == 8) { /* asks for TLS: no */
        (void)send(peer, "N", 1, MSG_NOSIGNAL);
        got = recv(peer, bytes, sizeof bytes, 0);
    }
    const char *end = pretender->answer + pretender->size;
    const char *ready = memmem(pretender->answer, pretender->size, READY, sizeof READY - 1);
    const char *rest = ready == NULL ? end : ready + sizeof READY - 1;
    (void)send(peer, pretender->answer, (size_t)(rest - pretender->answer), MSG_NOSIGNAL);
    if (rest < end && recv(peer, bytes, sizeof bytes, 0) > 0)
        (void)send(peer, rest, (size_t)(end - rest), MSG_NOSIGNAL);
    while (got > 0)
        got = recv(peer, bytes, sizeof bytes, 0);
    (void)close(peer);
    return NULL;
}

static enum status open_at(struct fixture *fixture, const char *answer, size_t size)
{
    struct platform_store *store = NULL;
    pthread_t server;
    char place[64];
    char uri[128];
    struct pretender pretender = {black_hole(place, sizeof place), answer, size};
    assert_int_equal(pthread_create(&server, NULL, pretend, &pretender), 0);
    (void)snprintf(uri, sizeof uri, "postgresql://u@%s/d?sslmode=disable", place);
    enum status status = open_with(fixture, uri, false, &store);
    assert_null(store);
    assert_int_equal(pthread_join(server, NULL), 0);
    (void)close(pretender.listener);
    return status;
}

TEST_OF_WITH(fixture, an_older_server_is_refused, set_up_schema, tear_down)
{
    static const char answer[] = "R\0\0\0\x08\0\0\0\0"
                                 "S\0\0\0\x18server_version\0"
                                 "14.9\0"
                                 "S\0\0\0\x19"
                                 "client_encoding\0"
                                 "UTF8\0" READY;
    assert_int_equal(open_at(fixture, answer, sizeof answer - 1), STATUS_INVALID);
    SAYS(fixture, "is PostgreSQL 14.9; croupier needs 15 or newer");
}

/* What PgBouncer answers to settings of the session that it could not keep for one client alone. */
TEST_OF_WITH(fixture, a_pooler_that_mixes_sessions_is_refused_by_its_name, set_up_schema, tear_down)
{
    static const char answer[] = "E\0\0\0\x3B"
                                 "SFATAL\0"
                                 "C08P01\0"
                                 "Munsupported startup parameter: options\0";
    assert_int_equal(open_at(fixture, answer, sizeof answer), STATUS_INVALID);
    SAYS(fixture, "a pooler such as PgBouncer answers there");
}

/* One that drops the settings of a session, and leads it to a server's session that has had another
 * client. */
TEST_OF_WITH(fixture, a_pooler_with_prepared_statements_of_others_is_refused_by_its_name,
             set_up_schema, tear_down)
{
    static const char answer[] = "R\0\0\0\x08\0\0\0\0"
                                 "S\0\0\0\x18server_version\0"
                                 "15.9\0"
                                 "S\0\0\0\x19"
                                 "client_encoding\0"
                                 "UTF8\0" READY "E\0\0\0\x26"
                                 "SERROR\0"
                                 "C42P05\0"
                                 "Mit exists already\0\0" READY;
    assert_int_equal(open_at(fixture, answer, sizeof answer - 1), STATUS_INVALID);
    SAYS(fixture, "a pooler such as PgBouncer answers there");
}

TEST_OF_WITH(fixture, no_text_holds_a_part_of_the_password, set_up_schema, tear_down)
{
    static const char *const uris[] = {
        "postgresql://user:hunter2@127.0.0.1:1/db",
        "postgresql://user:hunter2@127.0.0.1:port/db",
        "postgresql://user:hunter2@127.0.0.1:99999/db",
        "postgresql://user:p@hunter2@127.0.0.1/db",
        "postgresql://user:p/hunter2@127.0.0.1/db",
        "postgresql://user:12/hunter2@127.0.0.1/db",
        "postgresql://user:p/hunter2",
        "postgresql://user:%zzhunter2@127.0.0.1/db",
        "postgresql://user:hunter2%@127.0.0.1/db",
        "postgresql://user:hunter2@[::1/db",
        "postgresql://user:hunter2@[::1]x/db",
        "postgresql://user:p?hunter2@127.0.0.1:1/db",
        "postgresql://127.0.0.1/db?password=hunter2&nonsense=1",
        "postgresql://127.0.0.1/db?user=a&password=%hunter2",
        "postgresql://127.0.0.1/db?hunter2",
        "postgresql://127.0.0.1:1/db?password=hunter2",
        "postgresql://u:hunter2@127.0.0.1:1,127.0.0.1:1/db",
        "postgresql://u:hunter2@127.0.0.1:1/db?connect_timeout=soon",
        "postgresql://u:hunter2@127.0.0.1:1/db?sslmode=hunter",
        "postgres://u:hunter2@127.0.0.1:1/db",
        "postgresql:user:hunter2@127.0.0.1/db",
        "postgresql:/user:hunter2@127.0.0.1/db",
    };
    for (size_t i = 0; i < sizeof uris / sizeof uris[0]; i++) {
        struct platform_store *store = NULL;
        fixture->error.text[0] = '\0';
        enum status status = open_with(fixture, uris[i], false, &store);
        if (status == STATUS_OK || fixture->error.text[0] == '\0' ||
            strstr(fixture->error.text, "hunter2") != NULL)
            fail_msg("%s: %s: %s", uris[i], status_name(status), fixture->error.text);
    }
}

/* ---- what it costs --------------------------------------------------------------------------- */

static bool ignore_customer(void *context, const void *record)
{
    return true;
}

static bool ignore_key(void *context, const void *record)
{
    return true;
}

static bool ignore_legacy(void *context, const void *record)
{
    return true;
}

TEST_OF(fixture, frequent_calls_are_one_round_trip_each)
{
    const struct record_visitor visit = {.see[RECORD_CUSTOMER] = ignore_customer,
                                         .see[RECORD_KEY] = ignore_key,
                                         .see[RECORD_ADDRESS] = ignore_legacy,
                                         .context = NULL};
    const struct key_use uses[2] = {{.used_ms = 5}, {.used_ms = 6}};
    struct player_record player;
    uint64_t revision;
    OK(add(fixture, "cus_1"));
    OK(platform_player_open(fixture->store, "cus_1", "alice", "EUR", 2, &player, &fixture->error));
    uint64_t before = count(&fixture->facts.round_trips);
    OK(platform_revision(fixture->store, &revision, &fixture->error));
    OK(platform_changes_since(fixture->store, 0, &visit, &revision, &fixture->error));
    OK(platform_player_open(fixture->store, "cus_1", "alice", "EUR", 2, &player, &fixture->error));
    OK(platform_key_touch(fixture->store, uses, 2, &fixture->error));
    OK(add(fixture, "cus_2"));
    assert_int_equal(count(&fixture->facts.round_trips), before + 5);
    assert_int_equal(count(&fixture->facts.connections), 1);
    assert_int_equal(count(&fixture->facts.connects), 2); /* one of them migrated */
}

static bool see_two(void *context, const void *record)
{
    return ++*(unsigned *)context < 2;
}

TEST_OF(fixture, a_long_list_that_no_one_reads_to_its_end_does_not_harm)
{
    unsigned seen = 0;
    run(fixture, "INSERT INTO customer (id, name, enabled, casino, sports, cidrs, created_ms,"
                 " revision) SELECT 'cus_' || n, 'n', true, true, 'all', '', 1, n"
                 " FROM generate_series(1, 30000) AS n");
    OK(platform_list(fixture->store, &customer_table, NULL, see_two, &seen, &fixture->error));
    assert_int_equal(seen, 2);
    seen = 0;
    OK(platform_list(fixture->store, &customer_table, NULL, see, &seen, &fixture->error));
    assert_int_equal(seen, 30000);
}

static bool see_slowly(void *context, const void *visited)
{
    const struct customer_record *record = visited;
    const struct timespec pause = {.tv_nsec = (TIMEOUT_MS / 3) * 1000000L};
    (void)nanosleep(&pause, NULL);
    return see(context, record);
}

static bool ignore_entry(void *context, int64_t number, const struct ledger_transaction *entry)
{
    (void)context, (void)number, (void)entry;
    return true;
}

static bool count_entries(void *context, const struct ledger_sum *sum)
{
    *(uint64_t *)context += ledger_entries(&sum->all);
    return true;
}

/* Rows of the ledger that sessions which have ended have read. */
static long rows_read(struct fixture *fixture)
{
    platform_store_close(&fixture->store);
    while (ask(fixture,
               "SELECT count(*) FROM pg_stat_activity"
               " WHERE application_name = 'croupier' AND datname = current_database()") > 0)
        clock_pause_ns(1000000);
    return ask(fixture, "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0)"
                        " FROM pg_stat_user_tables"
                        " WHERE relid = 'ledger_transaction'::regclass");
}

/* Nothing is known of the tables, as after pg_upgrade; one player has most entries. */
TEST_OF(fixture, few_entries_are_found_without_reading_all_where_there_are_no_statistics)
{
    struct ledger_tail tail = {.customer_id = "cus_One", .limit = 200};
    struct ledger_scope days = {.to_ms = INT64_MAX};
    uint64_t summed = 0;
    long before;
    run(fixture, "ALTER TABLE ledger_transaction SET (autovacuum_enabled = off)");
    run(fixture, "ALTER TABLE player SET (autovacuum_enabled = off)");
    OK(add(fixture, "cus_One"));
    run(fixture, "INSERT INTO currency VALUES ('EUR', 2, 1)");
    run(fixture, "INSERT INTO player (id, customer_id, reference, currency, created_ms)"
                 " VALUES ('ply_1', 'cus_One', 'one', 'EUR', 1)");
    run(fixture,
        "INSERT INTO ledger_transaction (number, owner_number, player_number, sequence,"
        " amount_minor, movement_minor, balance_minor, created_ms, late, transaction_id,"
        " operation, outcome, reference, game_id, round_id, hash, settles)"
        " SELECT n, (SELECT number FROM customer), player.number, n, 1,"
        " CASE n % 2 WHEN 1 THEN -1 ELSE 1 END, 9, n, false, n::text,"
        " CASE n % 2 WHEN 1 THEN 'DEBIT' ELSE 'CREDIT' END, 'applied',"
        " CASE n % 2 WHEN 0 THEN (n - 1)::text END, 'game', n::text, sha256(n::text::bytea), NULL"
        " FROM player, generate_series(1, 20000) AS n");
    run(fixture, "SELECT setval('ledger_number', 20000)");
    run(fixture, "UPDATE ledger_summed SET number = 19500");
    before = rows_read(fixture);
    OK(open_with(fixture, fixture->uri, false, &fixture->store));
    OK(platform_ledger_tail(fixture->store, &tail, ignore_entry, NULL, &fixture->error));
    OK(platform_ledger_sums(fixture->store, &days, (struct ledger_grouping){.by_day = true},
                            count_entries, &summed, &fixture->error));
    assert_int_equal(summed, 500);
    before = rows_read(fixture) - before;
    assert_in_range(before, 2500, 5000);
}

/* Where most players have few entries, PostgreSQL expects few of each. */
TEST_OF(fixture, a_player_of_many_entries_has_its_rounds_looked_up_in_a_hash)
{
    char sql[16384];
    const char *rounds = postgres_texts.rounds_of_player;
    assert_in_range(snprintf(sql, sizeof sql, "PREPARE rounds AS %s", rounds), 1, sizeof sql - 1);
    run(fixture, "SET plan_cache_mode = force_generic_plan");
    run(fixture, sql);
    PGresult *plan =
        PQexec(fixture->admin, "EXPLAIN (VERBOSE) EXECUTE rounds (0, 9, '', '', 0, 'ply_1', 1)");
    int looked_up = 0;
    int joined = 0;
    for (int i = 0; i < PQntuples(plan); i++) {
        const char *line = PQgetvalue(plan, i, 0);
        const char *compared = strstr(line, ".bet = "); /* PostgreSQL 17 writes a hash so, too */
        looked_up += strstr(line, "hashed SubPlan") != NULL;
        joined += compared != NULL && strncmp(compared, ".bet = (hashed", 14) != 0;
    }
    PQclear(plan);
    assert_true(looked_up >= 1 && joined == 0);
}

TEST_OF(fixture, a_slow_reader_is_not_a_slow_server)
{
    unsigned seen = 0;
    for (int i = 0; i < 5; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "cus_%d", i);
        OK(add(fixture, id));
    }
    OK(platform_list(fixture->store, &customer_table, NULL, see_slowly, &seen, &fixture->error));
    assert_int_equal(seen, 5);
}
