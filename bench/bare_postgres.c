/*
 * The least that a ledger in PostgreSQL can cost: one row inserted for each operation, with the
 * columns that croupier's have and a primary key alone, and one update for each account that a
 * batch changed, in one transaction and one round trip a batch. Statements are prepared, and values
 * go as binary arrays. No look-up of ids, no lock before the write, no decision, no hash, no CHECK,
 * no trigger and no other index.
 *
 *   bare_postgres URI [--batch N] [--operations N]
 *
 * URI names an empty database. Writes one line of JSON. bench/run.py adds what it cost the server.
 */
#include <getopt.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "stores/platform/postgres/arrays.h"
#include "stores/platform_ledger.h"

#define BATCH_MAX 4096
#define PLAYERS 1000
#define COLUMNS 17 /* of an entry */

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS entry (number bigint PRIMARY KEY, owner_number bigint NOT NULL,"
    " player_number bigint NOT NULL, sequence bigint, amount_minor bigint NOT NULL,"
    " movement_minor bigint, balance_minor bigint, created_ms bigint NOT NULL,"
    " late boolean NOT NULL, transaction_id text COLLATE \"C\" NOT NULL,"
    " operation text COLLATE \"C\", outcome text COLLATE \"C\", reference text COLLATE \"C\","
    " game_id text COLLATE \"C\", round_id text COLLATE \"C\", hash bytea,"
    " launch_id text COLLATE \"C\");"
    "CREATE TABLE IF NOT EXISTS account (player_number bigint PRIMARY KEY,"
    " balance_minor bigint NOT NULL, sequence bigint NOT NULL, head bytea NOT NULL)"
    " WITH (fillfactor = 50);"
    "INSERT INTO account SELECT at, 0, 0, '' FROM generate_series(0, 999) AS at"
    " ON CONFLICT DO NOTHING";

/* The next two take their arrays in the order of the columns. */
static const char insert[] =
    "INSERT INTO entry (number, owner_number, player_number, sequence, amount_minor,"
    " movement_minor, balance_minor, created_ms, late, transaction_id, operation, outcome,"
    " reference, game_id, round_id, hash, launch_id)"
    " SELECT number, owner, player, sequence, amount, movement, balance, created, late = 1, id,"
    " operation, outcome, reference, game, round, hash, launch"
    " FROM (SELECT unnest($1::bigint[]) AS number, unnest($2::bigint[]) AS owner,"
    "  unnest($3::bigint[]) AS player, unnest($4::bigint[]) AS sequence,"
    "  unnest($5::bigint[]) AS amount, unnest($6::bigint[]) AS movement,"
    "  unnest($7::bigint[]) AS balance, unnest($8::bigint[]) AS created,"
    "  unnest($9::bigint[]) AS late, unnest($10::text[]) AS id,"
    "  unnest($11::text[]) AS operation, unnest($12::text[]) AS outcome,"
    "  unnest($13::text[]) AS reference, unnest($14::text[]) AS game,"
    "  unnest($15::text[]) AS round, unnest($16::bytea[]) AS hash,"
    "  unnest($17::text[]) AS launch) AS kept";
static const char update[] =
    "UPDATE account SET balance_minor = changed.balance, sequence = changed.sequence,"
    " head = changed.head FROM (SELECT unnest($1::bigint[]) AS player,"
    "  unnest($2::bigint[]) AS balance, unnest($3::bigint[]) AS sequence,"
    "  unnest($4::bytea[]) AS head) AS changed WHERE account.player_number = changed.player";

struct bare {
    PGconn *connection;
    uint64_t batch, operations;
    uint64_t first, number; /* before this run, and so far */
};

static void check(const struct bare *bare, bool sound)
{
    if (sound)
        return;
    (void)fprintf(stderr, "bare_postgres: %s\n", PQerrorMessage(bare->connection));
    exit(1);
}

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9U;
    value = (value ^ value >> 27) * 0x94d049bb133111ebU;
    return value ^ value >> 31;
}

static void name_operation(char id[33], uint64_t number)
{
    (void)snprintf(id, 33, "%016" PRIx64 "%016" PRIx64, mix(number), mix(~number));
}

static void add_entry(struct row_arrays *entries, uint64_t number, uint64_t player)
{
    static const uint8_t hash[LEDGER_HASH_SIZE] = {1};
    const struct column_value none = {.kind = COLUMN_TEXT, .null = true};
    const bool debit = number % 2 == 0;
    char round[32], id[33], debit_id[33];
    (void)snprintf(round, sizeof round, "r-%" PRIu64, number / 2);
    name_operation(id, number);
    name_operation(debit_id, number - 1);
    ARRAYS_ADD(entries, SQL_INTEGER(number), SQL_INTEGER(1), SQL_INTEGER(player),
               SQL_INTEGER(number), SQL_INTEGER(100), SQL_INTEGER(debit ? -100 : 100),
               SQL_INTEGER(1000000000000), SQL_INTEGER(1700000000000), SQL_INTEGER(0),
               SQL_STRING(id), SQL_STRING(debit ? "DEBIT" : "CREDIT"), SQL_STRING("applied"),
               debit ? none : SQL_STRING(debit_id), SQL_STRING("northbridge-roulette"),
               SQL_STRING(round), SQL_HASH(hash), none);
}

static void send_statement(const struct bare *bare, const char *name, struct row_arrays *rows,
                           int columns)
{
    const struct sql_parameters *parameters = rows != NULL ? arrays_bind(rows, columns) : NULL;
    const int count = parameters != NULL ? parameters->count : 0;
    const char *values[COLUMNS];
    int sizes[COLUMNS];
    int formats[COLUMNS];
    for (int i = 0; i < count; i++) {
        values[i] = parameters->at[i].bytes.at;
        sizes[i] = (int)parameters->at[i].bytes.size;
        formats[i] = 1;
    }
    check(bare, PQsendQueryPrepared(bare->connection, name, count, values, sizes, formats, 1) == 1);
}

/* Until the result of the sync. */
static void read_results(const struct bare *bare)
{
    for (bool synced = false; !synced;) {
        PGresult *result = PQgetResult(bare->connection);
        const ExecStatusType status = PQresultStatus(result); /* NULL ends a query's results */
        check(bare, result == NULL || status == PGRES_COMMAND_OK || status == PGRES_PIPELINE_SYNC);
        synced = result != NULL && status == PGRES_PIPELINE_SYNC;
        PQclear(result);
    }
}

static void write_batch(struct bare *bare)
{
    static const uint8_t head[LEDGER_HASH_SIZE] = {2};
    struct row_arrays entries = {0};
    struct row_arrays accounts = {0};
    bool changed[PLAYERS] = {false};
    for (uint64_t i = 0; i < bare->batch; i++, bare->number++) {
        const uint64_t player = mix(bare->number / 2) % PLAYERS;
        add_entry(&entries, bare->number, player);
        if (changed[player])
            continue;
        changed[player] = true;
        ARRAYS_ADD(&accounts, SQL_INTEGER(player), SQL_INTEGER(1000000000000),
                   SQL_INTEGER(bare->number), SQL_HASH(head));
    }
    send_statement(bare, "begin", NULL, 0);
    send_statement(bare, "insert", &entries, COLUMNS);
    send_statement(bare, "update", &accounts, 4);
    send_statement(bare, "commit", NULL, 0);
    check(bare, PQpipelineSync(bare->connection) == 1);
    read_results(bare);
    arrays_free(&entries);
    arrays_free(&accounts);
}

static void prepare(struct bare *bare, const char *uri)
{
    const char *const statements[][2] = {
        {"begin", "BEGIN"}, {"insert", insert}, {"update", update}, {"commit", "COMMIT"}};
    bare->connection = PQconnectdb(uri);
    check(bare, PQstatus(bare->connection) == CONNECTION_OK);
    PQclear(PQexec(bare->connection, "SET client_min_messages = warning"));
    PGresult *result = PQexec(bare->connection, schema);
    check(bare, PQresultStatus(result) == PGRES_COMMAND_OK);
    PQclear(result);
    result = PQexec(bare->connection, "SELECT coalesce(max(number) + 1, 0) FROM entry");
    check(bare, PQresultStatus(result) == PGRES_TUPLES_OK);
    bare->first = bare->number = strtoull(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        result = PQprepare(bare->connection, statements[i][0], statements[i][1], 0, NULL);
        check(bare, PQresultStatus(result) == PGRES_COMMAND_OK);
        PQclear(result);
    }
    check(bare, PQenterPipelineMode(bare->connection) == 1);
}

static uint64_t read_number(const char *given, uint64_t most)
{
    uint64_t number = 0;
    if (text_to_u64(text_of(given), most, &number) != STATUS_OK || number == 0) {
        (void)fprintf(stderr, "bare_postgres: usage: see the head of bench/bare_postgres.c\n");
        exit(2);
    }
    return number;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"batch", required_argument, NULL, 'b'}, {"operations", required_argument, NULL, 'o'}, {0}};
    struct bare bare = {.batch = LEDGER_BATCH_MAX, .operations = 100000};
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (option == 'b')
            bare.batch = read_number(optarg, BATCH_MAX);
        else
            bare.operations = read_number(option == 'o' ? optarg : "", 1000000000);
    }
    if (optind + 1 != argc)
        (void)read_number("", 0);
    prepare(&bare, argv[optind]);
    const uint64_t started_ns = clock_monotonic_ns();
    while (bare.number - bare.first < bare.operations)
        write_batch(&bare);
    const double elapsed_s = (double)(clock_monotonic_ns() - started_ns) / 1e9;
    const double done = (double)(bare.number - bare.first);
    (void)printf("{\"batch\":%" PRIu64 ",\"operations\":%.0f,\"per_second\":%.1f}\n", bare.batch,
                 done, done / elapsed_s);
    PQfinish(bare.connection);
    return 0;
}
