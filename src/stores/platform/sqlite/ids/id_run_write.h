#pragma once

#include "stores/platform/sqlite/ids/id_run.h"
#include "stores/platform/sqlite/ids/id_table.h"

/*
 * Writing a run, and reading several of them in order.
 *
 * A run is written under a temporary name, and is durable before it gets its final one. After any
 * failure the file is deleted. After a failed sync the contents of the disk are unknown, so the
 * sync is never tried again with the same file.
 */

/* ---- streams: ids in order ------------------------------------------------------------------- */

#define ID_STREAM_BLOCKS 32 /* read at once */

struct id_stream {
    const struct id_entry *ids; /* those in memory, */
    size_t at, count;           /* and how far it is with them */
    struct id_run *run;         /* NULL: there are no others */
    uint64_t next_block;        /* of the run, to be read */
    struct id_block *blocks;
    size_t blocks_at, blocks_count;
    struct id_entry *sorted; /* of a table */
    /* Unless it is NULL, it makes the next ids the ones at hand. */
    enum status (*refill)(void *context, struct id_stream *stream);
    void *context;
};

void id_stream_of_run(struct id_stream *stream, struct id_run *run);
void id_stream_of_table(struct id_stream *stream, const struct id_table *table);
void id_stream_end(struct id_stream *stream);

/* The next id of all, by key, then number. STATUS_NOT_FOUND: there is none. STATUS_MALFORMED: a
 * run is damaged. */
MUST_CHECK enum status id_streams_next(struct id_stream *streams, size_t count,
                                       struct id_entry *entry);

/* ---- writing --------------------------------------------------------------------------------- */

struct id_run_plan {
    const uint8_t *identity;
    const uint8_t *row_hash;
    int64_t first, last;
    uint64_t count;         /* of ids, exactly */
    const atomic_bool *end; /* not NULL: gives up when it is set */
};

/*
 * Writes the streams as one run under the name `temporary`, with the mode and owner of the file
 * that `like` describes. When this returns STATUS_OK the run is durable. It is also locked (flock),
 * so that no process takes it for a file left behind. STATUS_MALFORMED: a run that was read is
 * damaged. STATUS_CONFLICT: it gave up. STATUS_UNAVAILABLE: the run cannot be written.
 */
struct stat;
MUST_CHECK enum status id_run_write(struct id_run **run, int directory, const char *temporary,
                                    const struct stat *like, const struct id_run_plan *plan,
                                    struct id_stream *streams, size_t stream_count,
                                    struct error *error);
