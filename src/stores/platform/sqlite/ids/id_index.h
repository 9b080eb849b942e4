#pragma once

#include "base/log.h"
#include "base/status.h"
#include "stores/platform/sqlite/ids/id_entry.h"

/*
 * The index of the embedded ledger's transaction ids: from a key to the numbers of the rows that
 * concern it. It is derived from the rows and knows no SQL. A key is a digest that the caller
 * makes, of a customer and an id, or of the DEBIT that a CREDIT settles. A number is a candidate:
 * the caller loads the row, and the row decides. So different ids may have equal keys, and a key
 * may lead to several rows, even to thousands.
 *
 * The ids of the newest rows are in tables in memory, older ones in runs: files in the directory
 * DATABASE-ids that are written once and never changed (id_run.h). Each table and each run covers
 * the rows from one number to another, and together they cover all of them, without gap or overlap.
 * When a table is full, upkeep writes it as a run; when ID_INDEX_FANOUT neighbouring runs are about
 * as large, it merges them into one. Neither is ever on the path of a commit.
 *
 * Sizes: an id takes 16 bytes, and 28 in memory. A table is full with T = 131,072 ids. Runs have T,
 * 4 T, 16 T, 64 T or 256 T ids (33 million), and the largest are not merged any further. So an id
 * is written at most 5 times, some 90 bytes in all. 10^7 ids (76 T) are in at most 12 runs, 10^8
 * (763 T) in at most 14. Memory holds a filter of 12 bits an id and 8 bytes a block of 127 ids,
 * together 1.6 bytes an id; while runs are merged, that of the new one as well.
 *
 * The index never reports an added id as absent. A run names the ledger that it belongs to, the
 * numbers that it covers and the hash of the last row (`row_hash`), under checksums that also cover
 * the filter. Every block of ids has a checksum, which is verified whenever the block is read. A
 * run that is missing, truncated, altered, of another ledger or of another history is noticed, at
 * the latest by the look-up that needs the block in question. It is deleted, with the runs after
 * it, and the next id_index_ready reads the rows from there on again: 10^7 in some 25 s. Deleting
 * the directory loses nothing but time.
 *
 * Several processes may have the same database open. They write and delete runs under a lock on the
 * directory; a process that finds runs changed by another reads them again.
 *
 * Threads: one thread, the writer's, opens, closes, asks and adds. At the same time one other
 * thread may call id_index_upkeep; or id_index_start gives the index its own thread for that.
 */

/* ---- the rows -------------------------------------------------------------------------------- */

/* A reading of rows. */
struct id_feed;

/*
 * The functions by which the index reads the rows, whenever it has to. Called from id_index_open
 * and id_index_ready only, in their thread; `context` may hold another handle each time.
 */
struct id_source {
    /* Calls id_feed_row for each row from number `first` to `last`, in order, and returns. If it
     * fails, the call that needed the rows fails with the same status. */
    MUST_CHECK enum status (*read)(void *context, int64_t first, int64_t last, struct id_feed *feed,
                                   struct error *error);
    /* The hash of one row: STATUS_NOT_FOUND when it is not there. */
    MUST_CHECK enum status (*row_hash)(void *context, int64_t number,
                                       uint8_t row_hash[ID_ROW_HASH_SIZE], struct error *error);
    void *context;
};

/* The keys that lead to a row, at most ID_ADDED_MAX, and what tells it from any other row that
 * could have its number in another history of the ledger: its hash. False: do not go on
 * (id_source.read then returns STATUS_OK). */
MUST_CHECK bool id_feed_row(struct id_feed *feed, int64_t number, const uint64_t *keys,
                            size_t count, const uint8_t row_hash[ID_ROW_HASH_SIZE]);

/* ---- the index ------------------------------------------------------------------------------- */

struct id_index;

struct id_index_options {
    const char *database; /* path; the directory is beside it, with mode and owner of that file */
    uint8_t identity[ID_IDENTITY_SIZE]; /* random, made with the ledger, and kept in it */
    struct log *log;
    /* Opens the index for one look-up: it reads no filter, takes no lock and writes no file. The
     * source feeds only the rows that the look-up may need, of those that no run covers.
     * STATUS_FULL: these are too many for memory. Such an index is asked and closed, and nothing
     * else. */
    bool once;
};

/*
 * Opens the index of a ledger whose newest row is `last_number` (0: it is empty). Reads headers and
 * filters of the runs, makes again those that are not sound, and reads the rows that none covers.
 * Fails only when the rows cannot be read, or with STATUS_FULL when there are more of these than
 * memory may hold and runs cannot be written.
 */
MUST_CHECK enum status id_index_open(struct id_index **index,
                                     const struct id_index_options *options,
                                     const struct id_source *source, int64_t last_number,
                                     struct error *error);
/* Stops the index's own thread where it is; any other thread must have ended upkeep. Ids that are
 * not in a run yet will be read from the rows again. */
void id_index_close(struct id_index **index);

/*
 * Every batch calls it first, under the write lock: it brings the index to the newest row,
 * `last_number`, and reads the rows that another process has written. After damage, it makes the
 * index again from there on. Costs nothing when there is no work. STATUS_FULL: for so long no run
 * could be written that memory is at its bound. Then nothing may be decided until a run can be
 * written again, and this call tries it. On failure the index must not be asked.
 */
MUST_CHECK enum status id_index_ready(struct id_index *index, const struct id_source *source,
                                      int64_t last_number, struct error *error);

/*
 * The numbers above `after` (0: all) that a key leads to, each once and in ascending order, as many
 * as there is `room` for. When all of it is taken there may be more, after the last.
 * STATUS_UNAVAILABLE: a run that had to be read is damaged or cannot be read; nothing may be
 * decided from the key. The file is deleted, and the next id_index_ready or id_index_open reads its
 * rows again.
 */
MUST_CHECK enum status id_index_find(struct id_index *index, uint64_t key, int64_t after,
                                     int64_t *numbers, size_t room, size_t *count,
                                     struct error *error);

/*
 * The batch calls it once its commit is durable. It adds the keys of its rows, numbers ascending,
 * at most ID_ADDED_MAX. Its first number is the one after the last that was added; `last_number`
 * and `row_hash` are those of its last row. Cannot fail. After a commit whose outcome is unknown
 * the index is closed.
 */
void id_index_add(struct id_index *index, const struct id_entry *entries, size_t count,
                  int64_t last_number, const uint8_t row_hash[ID_ROW_HASH_SIZE]);

/* Raises `last` to the newest row that a sound run of this ledger covers, where the ledger itself
 * ends with `last_number`. `deletes`: such runs, since the ledger goes on without these rows. */
MUST_CHECK enum status id_index_beyond(const char *database,
                                       const uint8_t identity[ID_IDENTITY_SIZE],
                                       int64_t last_number, bool deletes, int64_t *last,
                                       struct error *error);

/* ---- upkeep ---------------------------------------------------------------------------------- */

/* Gives the index a thread that does upkeep whenever it is wanted, until id_index_close. */
void id_index_start(struct id_index *index);

/* An index without its own thread needs these calls: any thread, one at a time. Writes tables as
 * runs and merges runs until no work is left. A failure is logged, once a reason, and counted. The
 * next call tries again, and no id is lost. */
MUST_CHECK bool id_index_wants_upkeep(struct id_index *index);
void id_index_upkeep(struct id_index *index);

/* ---- metrics --------------------------------------------------------------------------------- */

struct id_index_facts {
    uint64_t ids_in_memory;  /* in tables */
    uint64_t ids_in_runs;    /* in files */
    uint64_t runs;           /* files */
    uint64_t memory_bytes;   /* of tables, filters and positions of blocks */
    uint64_t written_bytes;  /* to runs, since it was opened */
    uint64_t merges;         /* likewise */
    uint64_t made_again;     /* runs found to be damaged, or not the ledger's, and made again */
    uint64_t write_failures; /* runs that could not be written */
    bool failing;            /* and the last one could not */
};
/* Any thread. */
void id_index_facts(struct id_index *index, struct id_index_facts *facts);
