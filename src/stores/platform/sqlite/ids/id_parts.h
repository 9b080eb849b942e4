#pragma once

#include "base/log.h"
#include "base/threads.h"
#include "stores/platform/sqlite/ids/id_directory.h"
#include "stores/platform/sqlite/ids/id_run.h"
#include "stores/platform/sqlite/ids/id_table.h"

/*
 * The parts of the index, for id_index.c, which asks and adds and reads the rows, and id_merge.c,
 * which writes runs: a list of parts, in order of the rows that they cover. Each part is a table or
 * a run, and all runs come before the tables. The last part is always a table, the one that gets
 * new ids.
 *
 * Two locks, `upkeep` before `lock`:
 *
 *   upkeep  is held while runs are written or the list is made again from the directory. Only its
 *           holder removes parts.
 *   lock    guards the list and the last table. The writer's thread asks and adds under it; upkeep
 *           takes it only to look at the list and to replace tables and runs by the run made of
 *           them. Full tables, and runs, do not change, and are read without it.
 */

struct id_part {
    int64_t first, last; /* rows; `last` is one less than `first` while there are none */
    uint8_t row_hash[ID_ROW_HASH_SIZE];
    struct id_run *run;     /* one of the two */
    struct id_table *table; /* is not NULL */
};

struct id_index {
    char *database;
    uint8_t identity[ID_IDENTITY_SIZE];
    struct log *log;
    bool once; /* id_index.h */

    uv_mutex_t upkeep, lock;
    struct id_part *parts; /* by `lock` */
    size_t count, room;
    int64_t last_number; /* by `lock`; of the newest row */
    bool whole;          /* the writer's thread's: the parts cover all rows up to that */

    uint64_t state;       /* by `upkeep`: of the directory, as this process left it */
    atomic_bool outdated; /* the parts are to be made again: another process has changed the
                               directory, or a run is damaged */
    atomic_bool hurry;    /* upkeep must give up: the writer waits for it */

    atomic_uint_fast64_t made_again;
    uint64_t written_bytes, merges, write_failures; /* by `lock` */
    bool failing;
    struct error reason; /* the last one logged; by `upkeep` */

    bool has_thread;
    struct background thread;
    bool woken; /* by its lock */
};

/* id_parts.c. The caller holds `lock`, except before another thread can use the index. */
void id_part_append(struct id_index *index, int64_t first);              /* with an empty table */
void id_part_set_run(struct id_part *part, struct id_run **run);         /* takes it, */
void id_part_append_run(struct id_index *index, struct id_run **run);    /* as does this */
void id_part_end(struct id_part *part);                                  /* frees what it has */
void id_parts_remove(struct id_index *index, size_t from, size_t count); /* of the list */
struct id_part *id_newest(struct id_index *index);
size_t id_tables(const struct id_index *index); /* how many of the parts are tables */

/* STATUS_CONFLICT, and all parts are to be made again: another process has changed the directory,
 * and may have written or merged the same rows. */
MUST_CHECK enum status id_parts_compare(struct id_index *index,
                                        const struct id_directory *directory, struct error *error);
void id_parts_wake(struct id_index *index); /* the index's own thread, for upkeep */

/* Logs and counts a file that is not sound, and that the caller deletes. Any lock. */
void id_parts_reject(struct id_index *index, const struct id_file *file, const char *why);

/* A run turned out to be damaged: deletes its file, and has all parts made again. Any lock. */
void id_run_reject(struct id_index *index, const struct id_run *run);

/* id_merge.c: writes a table as a run, or else merges runs if it may; STATUS_NOT_FOUND: there is
 * nothing to do. Under `upkeep`. `directory`, when given, is open and locked. */
MUST_CHECK enum status id_merge_step(struct id_index *index, bool merges,
                                     const struct id_directory *directory, struct error *error);
