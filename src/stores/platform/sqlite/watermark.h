#pragma once

#include <stdint.h>

#include "records/ledger_entry.h"

/*
 * The newest transaction that the ledger acknowledged, in a small file beside the database
 * (DATABASE-last): one flipped bit in the log makes SQLite drop every transaction after it, and
 * this file then says that they were there. Why: docs/decisions/lost-rows.md.
 *
 * A batch is marked when it is durable and before it is answered. The write reaches the kernel at
 * once, so the mark survives the process; it is synced once a second, so a power cut may take it
 * back by a second. So the ledger may be ahead of the mark, and never behind it.
 *
 * Several processes may write. Each has a slot of the file, by its process id; the highest number
 * is the mark.
 */
#define WATERMARK_LEDGER_SIZE 16

struct watermark {
    uint8_t ledger[WATERMARK_LEDGER_SIZE]; /* which one it is */
    int64_t number;                        /* 0: of an empty ledger */
    uint8_t hash[LEDGER_HASH_SIZE];        /* of that transaction */
    uint64_t sum;                          /* the checksum of the rest: watermark.c's */
};

/* STATUS_NOT_FOUND: there is no file. STATUS_MALFORMED: it is damaged. */
MUST_CHECK enum status watermark_read(const char *database, struct watermark *mark,
                                      struct error *error);

/* Makes this the mark, in place of all others; the file is made when there is none, and synced.
 * `file`: its descriptor, for watermark_write and close. */
MUST_CHECK enum status watermark_set(const char *database, const struct watermark *mark, int *file,
                                     struct error *error);

/* Returns 0 or an errno; ENOENT: the file has lost its name, which is looked at with each sync.
 * `synced_ms`: when that was last, on the monotonic clock. */
int watermark_write(const char *database, struct watermark *mark, int file, uint64_t *synced_ms);
