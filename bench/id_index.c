/*
 * What the embedded ledger's index of transaction ids costs by itself, without the ledger: keys are
 * made from numbers, and rows are made up when it reads them.
 *
 *   id_index DIRECTORY [--entries N]... [--batch N] [--probes N]
 *
 * For each number of entries (by default 10^5, 10^6, 10^7), in ascending order, writes one line of
 * JSON: what it costs to add an id; upkeep's time an id and what it wrote; to look up a
 * key that is not there, one of the oldest and one of the newest; to open it when all runs are
 * sound; to make them again from the rows; and memory. Nanoseconds are of processor time, seconds
 * of the clock on the wall. Exit 1 when an answer is wrong.
 */
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "stores/platform/sqlite/ids/id_index.h"

#define SIZES_MAX 16

struct bench {
    char *database;
    struct id_index *index;
    int64_t last;
    size_t batch;
    uint64_t probes;
    uint64_t random;
    uint64_t add_ns, upkeep_ns;
};

static void fail(const char *what, const struct error *error)
{
    (void)fprintf(stderr, "id_index: %s: %s\n", what, error == NULL ? "wrong" : error->text);
    exit(1);
}

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9U;
    value = (value ^ value >> 27) * 0x94d049bb133111ebU;
    return value ^ value >> 31;
}

static uint64_t key_of(int64_t number)
{
    return mix((uint64_t)number * 0x9e3779b97f4a7c15U);
}

static void row_hash_of(int64_t number, uint8_t row_hash[ID_ROW_HASH_SIZE])
{
    memset(row_hash, 0, ID_ROW_HASH_SIZE);
    memcpy(row_hash, &number, sizeof number);
}

static enum status read_rows(void *context, int64_t first, int64_t last, struct id_feed *feed,
                             struct error *error)
{
    (void)context;
    (void)error;
    for (int64_t number = first; number <= last; number++) {
        uint8_t row_hash[ID_ROW_HASH_SIZE];
        uint64_t key = key_of(number);
        row_hash_of(number, row_hash);
        if (!id_feed_row(feed, number, &key, 1, row_hash))
            break;
    }
    return STATUS_OK;
}

static enum status read_row_hash(void *context, int64_t number, uint8_t row_hash[ID_ROW_HASH_SIZE],
                                 struct error *error)
{
    (void)context;
    (void)error;
    row_hash_of(number, row_hash);
    return STATUS_OK;
}

static const struct id_source rows = {.read = read_rows, .row_hash = read_row_hash};

static uint64_t processor_ns(void)
{
    struct timespec time;
    CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Seconds. */
static double open_index(struct bench *bench)
{
    struct id_index_options options = {.database = bench->database};
    struct error error;
    id_index_close(&bench->index);
    uint64_t start_ns = clock_monotonic_ns();
    if (id_index_open(&bench->index, &options, &rows, bench->last, &error) != STATUS_OK)
        fail("open", &error);
    return (double)(clock_monotonic_ns() - start_ns) / 1e9;
}

static void add_batch(struct bench *bench, size_t count)
{
    struct id_entry entries[ID_ADDED_MAX];
    uint8_t row_hash[ID_ROW_HASH_SIZE];
    for (size_t i = 0; i < count; i++)
        entries[i] =
            (struct id_entry){key_of(bench->last + 1 + (int64_t)i), bench->last + 1 + (int64_t)i};
    bench->last += (int64_t)count;
    row_hash_of(bench->last, row_hash);
    uint64_t start_ns = processor_ns();
    id_index_add(bench->index, entries, count, bench->last, row_hash);
    bench->add_ns += processor_ns() - start_ns;
}

/* Upkeep comes in between, in the same thread, so that each is measured for itself. */
static void grow(struct bench *bench, int64_t entries)
{
    while (bench->last < entries) {
        int64_t left = entries - bench->last;
        add_batch(bench, left < (int64_t)bench->batch ? (size_t)left : bench->batch);
        if (!id_index_wants_upkeep(bench->index))
            continue;
        uint64_t start_ns = processor_ns();
        id_index_upkeep(bench->index);
        bench->upkeep_ns += processor_ns() - start_ns;
    }
}

/* Nanoseconds a look-up of keys of the numbers from `first`, `count` of them, which are there or
 * not. */
static double probe(struct bench *bench, int64_t first, int64_t count, bool there)
{
    struct error error;
    uint64_t start_ns = processor_ns();
    for (uint64_t i = 0; i < bench->probes; i++) {
        int64_t number = first + (int64_t)(mix(bench->random++) % (uint64_t)count);
        int64_t found[4];
        size_t some = 0;
        if (id_index_find(bench->index, key_of(number), 0, found, 4, &some, &error) != STATUS_OK)
            fail("find", &error);
        if (some != there || (there && found[0] != number))
            fail("find", NULL);
    }
    return (double)(processor_ns() - start_ns) / (double)bench->probes;
}

static void delete_runs(const struct bench *bench)
{
    struct buffer command = {0};
    buffer_append_format(&command, "%s-ids", bench->database);
    pid_t child = fork();
    if (child == 0) {
        (void)execlp("rm", "rm", "-r", "-f", buffer_string(&command), (char *)NULL);
        _exit(127);
    }
    buffer_free(&command);
    (void)waitpid(child, NULL, 0);
}

static void measure(struct bench *bench, int64_t entries)
{
    struct id_index_facts facts;
    struct id_index_facts after;
    int64_t newest = bench->last + 1;
    bench->add_ns = bench->upkeep_ns = 0;
    id_index_facts(bench->index, &facts);
    uint64_t written_before = facts.written_bytes;
    grow(bench, entries);
    int64_t added = bench->last - newest + 1;
    id_index_facts(bench->index, &facts);
    double miss = probe(bench, entries + 1, INT64_MAX / 2, false);
    double oldest = probe(bench, 1, entries / 2, true);
    int64_t recent = entries < 50000 ? entries : 50000;
    double young = probe(bench, entries - recent + 1, recent, true);
    double opened = open_index(bench);
    id_index_close(&bench->index);
    delete_runs(bench);
    double rebuilt = open_index(bench);
    id_index_facts(bench->index, &after);
    uint64_t start_ns = clock_monotonic_ns();
    id_index_upkeep(bench->index);
    double merged = (double)(clock_monotonic_ns() - start_ns) / 1e9;
    (void)printf("{\"entries\":%" PRId64 ",\"added\":%" PRId64
                 ",\"add_ns\":%.0f,\"upkeep_ns\":%.0f,\"written_bytes_an_id\":%.0f"
                 ",\"miss_ns\":%.0f,\"hit_old_ns\":%.0f,\"hit_new_ns\":%.0f,\"runs\":%" PRIu64
                 ",\"memory_mb\":%.1f,\"open_s\":%.3f,\"rebuild_s\":%.2f,\"runs_rebuilt\":%" PRIu64
                 ",\"merge_s\":%.2f}\n",
                 entries, added, (double)bench->add_ns / (double)added,
                 (double)bench->upkeep_ns / (double)added,
                 (double)(facts.written_bytes - written_before) / (double)added, miss, oldest,
                 young, facts.runs, (double)facts.memory_bytes / 1e6, opened, rebuilt, after.runs,
                 merged);
    (void)fflush(stdout);
}

static int64_t number_of(const char *text)
{
    uint64_t number = 0;
    if (text_to_u64(text_of(text), 10000000000U, &number) != STATUS_OK || number == 0)
        fail(text, NULL);
    return (int64_t)number;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"entries", required_argument, NULL, 'e'},
                                          {"batch", required_argument, NULL, 'b'},
                                          {"probes", required_argument, NULL, 'p'},
                                          {0}};
    int64_t sizes[SIZES_MAX] = {100000, 1000000, 10000000};
    size_t count = 0;
    struct bench bench = {.batch = 256, .probes = 1000000, .random = 1};
    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (option == 'e' && count < SIZES_MAX)
            sizes[count++] = number_of(optarg);
        else if (option == 'b')
            bench.batch = (size_t)number_of(optarg);
        else if (option == 'p')
            bench.probes = (uint64_t)number_of(optarg);
        else
            fail("usage: id_index DIRECTORY [--entries N]... [--batch N] [--probes N]", NULL);
    }
    if (optind + 1 != argc || bench.batch > ID_ADDED_MAX)
        fail("usage: id_index DIRECTORY [--entries N]... [--batch N] [--probes N]", NULL);
    struct buffer path = {0};
    buffer_append_format(&path, "%s/ledger", argv[optind]);
    bench.database = memory_copy_string(buffer_string(&path));
    int descriptor = open(bench.database, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (descriptor < 0 || close(descriptor) != 0)
        fail(bench.database, NULL);
    delete_runs(&bench);
    (void)open_index(&bench);
    for (size_t i = 0; i < (count > 0 ? count : 3); i++)
        measure(&bench, sizes[i]);
    id_index_close(&bench.index);
    delete_runs(&bench);
    memory_free(bench.database);
    buffer_free(&path);
    return 0;
}
