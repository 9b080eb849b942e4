/*
 * Drives the index of transaction ids for test_id_index.py, with rows that follow from their
 * numbers (tests/stores/id_rows.h). Built with tables so small that all merges happen.
 *
 *   id_tool run DATABASE FROM TO    opens the index of a ledger whose newest row is FROM, and adds
 *                                   rows to TO; says the number of each row that is committed,
 *                                   before the index hears of it
 *   id_tool check DATABASE LAST     opens it with the newest row LAST, looks all ids up, and says
 *                                   how many runs were not sound
 *
 * Both exit with 0 when every id is found that is there, and no other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../stores/id_rows.h"

#define BATCH 7
#define ROOM 512
#define AHEAD 100 /* ids that are looked up and are not there */

static struct id_rows rows = {.forked = INT64_MAX};

static void fail(const char *what, const struct error *error)
{
    (void)fprintf(stderr, "id_tool: %s: %s\n", what, error->text);
    exit(1);
}

/* A look-up may find that a run is damaged, or cannot be read; then ready makes it again. */
static size_t find(struct id_index *index, uint64_t key, int64_t numbers[ROOM])
{
    struct id_source source = id_rows_source(&rows);
    struct error error = {0};
    size_t count = 0;
    for (int attempt = 0; attempt < 3; attempt++) {
        if (id_index_find(index, key, 0, numbers, ROOM, &count, &error) == STATUS_OK)
            return count;
        if (id_index_ready(index, &source, rows.last, &error) != STATUS_OK)
            fail("ready", &error);
    }
    fail("find", &error);
    return 0;
}

static void check(struct id_index *index)
{
    int64_t numbers[ROOM];
    struct error error = {.text = "a wrong answer"};
    for (int64_t number = 1; number <= rows.last + AHEAD; number++) {
        uint64_t keys[ID_ROW_KEYS];
        size_t key_count = number <= rows.last ? id_rows_keys(&rows, number, keys) : 1;
        keys[0] = id_rows_key(&rows, number);
        for (size_t i = 0; i < key_count; i++) {
            size_t count = find(index, keys[i], numbers);
            size_t at = 0;
            while (at < count && numbers[at] != number)
                at++;
            if ((at < count) != (number <= rows.last))
                fail("find", &error);
        }
    }
}

static struct id_index *open_index(const char *database)
{
    struct id_index_options options = {.database = database};
    struct id_source source = id_rows_source(&rows);
    struct id_index *index = NULL;
    struct error error = {0};
    if (id_index_open(&index, &options, &source, rows.last, &error) != STATUS_OK)
        fail("open", &error);
    return index;
}

static void say(int64_t number)
{
    char line[32];
    int size = snprintf(line, sizeof line, "%lld\n", (long long)number);
    if (write(STDOUT_FILENO, line, (size_t)size) != size)
        exit(2);
}

static void run(const char *database, int64_t to)
{
    struct id_index *index = open_index(database);
    struct id_source source = id_rows_source(&rows);
    struct error error = {0};
    while (rows.last < to) {
        if (id_index_ready(index, &source, rows.last, &error) != STATUS_OK)
            fail("ready", &error);
        say(rows.last + BATCH);
        id_rows_add(&rows, index, rows.last + BATCH);
        id_index_upkeep(index);
    }
    check(index);
    id_index_close(&index);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "run") == 0) {
        rows.last = strtoll(argv[3], NULL, 10);
        run(argv[2], strtoll(argv[4], NULL, 10));
        return 0;
    }
    if (argc != 4 || strcmp(argv[1], "check") != 0)
        return 2;
    struct id_index_facts facts;
    rows.last = strtoll(argv[3], NULL, 10);
    struct id_index *index = open_index(argv[2]);
    check(index);
    id_index_facts(index, &facts);
    say((int64_t)facts.made_again);
    id_index_close(&index);
    return 0;
}
