/*
 * The least that a ledger in SQLite can cost: one row appended for each operation, with the columns
 * that croupier's have, and one update for each account that a batch changed, in one transaction a
 * batch, in WAL with synchronous=FULL. No look-up of ids, no decision, no hash, no thread, no CHECK
 * and no trigger. What bench/ledger.c takes is compared with this.
 *
 *   bare_ledger FILE [--batch N] [--operations N] [--players N]
 *
 * Writes one line of JSON.
 */
#include <getopt.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

#define BATCH_MAX 4096

struct options {
    uint64_t batch, operations, players;
};

static const char schema[] =
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
    "CREATE TABLE entry (number INTEGER PRIMARY KEY, customer_number INTEGER, player_number "
    "INTEGER,"
    " sequence INTEGER, previous INTEGER, amount_minor INTEGER, movement_minor INTEGER,"
    " balance_minor INTEGER, created_ms INTEGER, settles INTEGER, transaction_id TEXT,"
    " operation TEXT, outcome TEXT, reference TEXT, game TEXT, round_id TEXT, hash BLOB) STRICT;"
    "CREATE TABLE account (player_number INTEGER PRIMARY KEY, balance_minor INTEGER,"
    " sequence INTEGER, head BLOB, last_number INTEGER) STRICT;";

struct bare {
    sqlite3 *database;
    sqlite3_stmt *insert, *update;
    struct options options;
    uint64_t number;
    bool *changed; /* by player, in this batch */
    size_t players[BATCH_MAX];
};

static void check(const struct bare *bare, int code)
{
    if (code == SQLITE_OK || code == SQLITE_DONE)
        return;
    (void)fprintf(stderr, "bare_ledger: %s\n", sqlite3_errmsg(bare->database));
    exit(1);
}

static void execute(const struct bare *bare, const char *sql)
{
    check(bare, sqlite3_exec(bare->database, sql, NULL, NULL, NULL));
}

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9U;
    value = (value ^ value >> 27) * 0x94d049bb133111ebU;
    return value ^ value >> 31;
}

static void name_operation(uint64_t number, char out[33])
{
    (void)snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, mix(number), mix(~number));
}

static void run(const struct bare *bare, sqlite3_stmt *statement)
{
    check(bare, sqlite3_step(statement));
    check(bare, sqlite3_reset(statement));
}

static void insert_entry(struct bare *bare, size_t player)
{
    static const uint8_t hash[32] = {1};
    sqlite3_stmt *statement = bare->insert;
    bool debit = bare->number % 2 == 0;
    char id[33];
    char reference[33];
    char round[32];
    int64_t number = (int64_t)++bare->number;
    name_operation((uint64_t)number, id);
    name_operation((uint64_t)number - 1, reference);
    (void)snprintf(round, sizeof round, "r-%" PRId64, number / 2);
    const int64_t integers[] = {number,        1,         (int64_t)player,    number,
                                number - 1,    100,       debit ? -100 : 100, 1000000000000,
                                1700000000000, number - 1};
    for (int i = 0; i < 10; i++)
        if (i < 9 || !debit)
            check(bare, sqlite3_bind_int64(statement, i + 1, integers[i]));
    check(bare, sqlite3_bind_text(statement, 11, id, 32, SQLITE_STATIC));
    check(bare, sqlite3_bind_text(statement, 12, debit ? "DEBIT" : "CREDIT", -1, SQLITE_STATIC));
    check(bare, sqlite3_bind_text(statement, 13, "applied", -1, SQLITE_STATIC));
    check(bare, sqlite3_bind_text(statement, 14, debit ? NULL : reference, 32, SQLITE_STATIC));
    check(bare, sqlite3_bind_text(statement, 15, "northbridge-roulette", -1, SQLITE_STATIC));
    check(bare, sqlite3_bind_text(statement, 16, round, -1, SQLITE_STATIC));
    check(bare, sqlite3_bind_blob(statement, 17, hash, sizeof hash, SQLITE_STATIC));
    run(bare, statement);
    check(bare, sqlite3_clear_bindings(statement));
}

static void update_account(struct bare *bare, size_t player)
{
    static const uint8_t head[32] = {2};
    check(bare, sqlite3_bind_int64(bare->update, 1, (int64_t)player));
    check(bare, sqlite3_bind_int64(bare->update, 2, 1000000000000));
    check(bare, sqlite3_bind_int64(bare->update, 3, (int64_t)bare->number));
    check(bare, sqlite3_bind_blob(bare->update, 4, head, sizeof head, SQLITE_STATIC));
    check(bare, sqlite3_bind_int64(bare->update, 5, (int64_t)bare->number));
    run(bare, bare->update);
}

static void write_batch(struct bare *bare)
{
    size_t count = 0;
    CHECK(bare->changed != NULL);
    execute(bare, "BEGIN IMMEDIATE");
    for (uint64_t i = 0; i < bare->options.batch; i++) {
        size_t player = (size_t)(mix(bare->number / 2) % bare->options.players);
        insert_entry(bare, player);
        if (!bare->changed[player])
            bare->players[count++] = player;
        bare->changed[player] = true;
    }
    for (size_t i = 0; i < count; i++) {
        update_account(bare, bare->players[i]);
        bare->changed[bare->players[i]] = false;
    }
    execute(bare, "COMMIT");
}

static void prepare(struct bare *bare, const char *path)
{
    check(bare,
          sqlite3_open_v2(path, &bare->database,
                          SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL));
    execute(bare, schema);
    check(bare, sqlite3_prepare_v2(bare->database,
                                   "INSERT INTO entry VALUES"
                                   " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                                   -1, &bare->insert, NULL));
    check(bare,
          sqlite3_prepare_v2(bare->database,
                             "UPDATE account SET balance_minor = ?2, sequence = ?3, head = ?4,"
                             " last_number = ?5 WHERE player_number = ?1",
                             -1, &bare->update, NULL));
    execute(bare, "BEGIN");
    for (uint64_t i = 0; i < bare->options.players; i++) {
        char sql[128];
        (void)snprintf(
            sql, sizeof sql,
            "INSERT INTO account VALUES (%" PRIu64 ", 1000000000000, 1, zeroblob(32), 1)", i);
        execute(bare, sql);
    }
    execute(bare, "COMMIT");
}

static double cpu_seconds(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static uint64_t read_number(const char *given, uint64_t most)
{
    uint64_t number = 0;
    if (text_to_u64(text_of(given), most, &number) != STATUS_OK || number == 0) {
        (void)fprintf(stderr, "bare_ledger: usage: see the head of bench/bare_ledger.c\n");
        exit(2);
    }
    return number;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"batch", required_argument, NULL, 'b'},
                                          {"operations", required_argument, NULL, 'o'},
                                          {"players", required_argument, NULL, 'p'},
                                          {0}};
    static struct bare bare = {.options = {256, 100000, 1000}};
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (option == 'b')
            bare.options.batch = read_number(optarg, BATCH_MAX);
        else if (option == 'o')
            bare.options.operations = read_number(optarg, 1000000000);
        else
            bare.options.players = read_number(option == 'p' ? optarg : "", 10000000);
    }
    if (optind + 1 != argc)
        (void)read_number("", 0);
    bare.changed = memory_alloc_zeroed(bare.options.players, sizeof bare.changed[0]);
    prepare(&bare, argv[optind]);
    double cpu_before = cpu_seconds();
    uint64_t started_ns = clock_monotonic_ns();
    while (bare.number < bare.options.operations)
        write_batch(&bare);
    double elapsed_us = (double)(clock_monotonic_ns() - started_ns) / 1e3;
    double cpu_us = (cpu_seconds() - cpu_before) * 1e6;
    (void)printf("{\"batch\":%" PRIu64 ",\"operations\":%" PRIu64
                 ",\"per_second\":%.1f,\"operation_us\":%.2f,\"cpu_us\":%.2f}\n",
                 bare.options.batch, bare.number, (double)bare.number * 1e6 / elapsed_us,
                 elapsed_us / (double)bare.number, cpu_us / (double)bare.number);
    check(&bare, sqlite3_finalize(bare.insert));
    check(&bare, sqlite3_finalize(bare.update));
    check(&bare, sqlite3_close(bare.database));
    memory_free(bare.changed);
    return 0;
}
