#pragma once

#include <sys/types.h>

#include "base/relaxed.h"
#include "base/status.h"
#include "stores/platform/sqlite/ids/id_entry.h"

/*
 * A run: a file with the ids of the rows from one number to another, in order of key, then number.
 * It is written once (id_run_write.h), never changed, and read by pread.
 *
 *     header     ID_BLOCK_SIZE bytes: struct id_run_header, zeros
 *     blocks     ID_BLOCK_SIZE bytes each: 127 ids (the last has fewer, and zeros), their count, a
 *                checksum over that and the block's position
 *     first keys 8 bytes a block
 *     filter     ID_LINE_SIZE bytes a line
 *
 * A look-up first reads the line of the filter to which its key belongs. If the key is in the run,
 * all its 8 bits are set there (a split block Bloom filter: Putze, Sanders, Singler, "Cache-, Hash-
 * and Space-Efficient Bloom Filters", 2007). If it is not, they are all set in one case of two
 * hundred. Then the first keys give the block, and the block proves its contents. Header, first
 * keys and filter are verified when the run is opened, and stay in memory but for the header's
 * zeros. Integers are in the machine's byte order; a machine of the other order reads another magic
 * number.
 */

#ifndef ID_BLOCK_IDS /* a test makes it small, to see many blocks */
#define ID_BLOCK_IDS 127
#endif
#define ID_BLOCK_SIZE (16 * (ID_BLOCK_IDS + 1))
#define ID_LINE_SIZE 32
#define ID_LINE_WORDS 8
#define ID_FILTER_BITS 12 /* an id */
#define ID_RUN_MAGIC 0x31736469756F7263U
#define ID_RUN_VERSION 3 /* 2 had keys without a key of their own */

struct id_block {
    struct id_entry ids[ID_BLOCK_IDS];
    uint64_t count;
    uint64_t sum;
};

struct id_run_header {
    uint64_t magic;
    uint32_t version;
    uint32_t block_size;
    uint8_t identity[ID_IDENTITY_SIZE]; /* of the ledger */
    uint8_t row_hash[ID_ROW_HASH_SIZE]; /* of the row `last` */
    int64_t first, last;                /* rows that it covers */
    uint64_t count;                     /* of ids */
    uint64_t lines;                     /* of the filter */
    uint64_t seed;                      /* random: no block fits into another run */
    uint64_t first_keys_sum;
    uint64_t filter_sum;
    uint64_t sum; /* of all before */
};

struct id_run {
    struct id_run_header header;
    int descriptor;
    uint64_t blocks;
    uint64_t *first_keys;
    uint32_t *filter;    /* NULL: it was not read */
    atomic_bool damaged; /* found so since it was opened: it proves nothing any more */
};

static inline uint64_t id_run_blocks(uint64_t count)
{
    return (count + ID_BLOCK_IDS - 1) / ID_BLOCK_IDS;
}

static inline uint64_t id_run_lines(uint64_t count)
{
    return 1 + count * ID_FILTER_BITS / (8 * ID_LINE_SIZE);
}

uint64_t id_run_header_sum(const struct id_run_header *header);
uint64_t id_run_block_sum(const struct id_run_header *header, uint64_t at,
                          const struct id_block *block);
size_t id_run_memory(const struct id_run *run);      /* bytes */
uint64_t id_run_file_size(const struct id_run *run); /* bytes */

/* The first word of the line of a filter that a key belongs to, and which bits of it. Lines are in
 * order of keys, so that writing or merging a run fills the filter in order, too. */
static inline uint64_t id_filter_line(uint64_t lines, uint64_t key)
{
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)key * lines >> 64) * ID_LINE_WORDS;
}
/* A key's bits are the same in all runs of a ledger, so that a look-up computes them once. */
struct id_bits {
    uint32_t words[ID_LINE_WORDS];
};
struct id_bits id_filter_bits(const uint8_t identity[ID_IDENTITY_SIZE], uint64_t key);

/* `filtered`: with its filter; without it each look-up reads a block. STATUS_NOT_FOUND: no such
 * file. STATUS_MALFORMED: it is damaged, of another ledger, or cannot be read. STATUS_UNAVAILABLE:
 * this process has no more files or memory. `error` says why. */
MUST_CHECK enum status id_run_open(struct id_run **run, int directory, const char *name,
                                   const uint8_t identity[ID_IDENTITY_SIZE], bool filtered,
                                   struct error *error);
void id_run_close(struct id_run **run);

/* Brings the key's line of the filter nearer. */
static inline void id_run_prefetch(const struct id_run *run, uint64_t key)
{
    if (run->filter != NULL)
        __builtin_prefetch(run->filter + id_filter_line(run->header.lines, key));
}

/* May the run have the key? */
static inline bool id_run_may_have(const struct id_run *run, uint64_t key,
                                   const struct id_bits *bits)
{
    uint32_t missing = 0;
    if (run->filter == NULL)
        return true;
    const uint32_t *line = run->filter + id_filter_line(run->header.lines, key);
    for (int i = 0; i < ID_LINE_WORDS; i++)
        missing |= bits->words[i] & ~line[i];
    return missing == 0;
}

/* As id_table_find. STATUS_MALFORMED: the block is damaged, and the run counts as damaged from now
 * on. */
MUST_CHECK enum status id_run_find(struct id_run *run, uint64_t key, int64_t after,
                                   int64_t *numbers, size_t room, size_t *count);

/* Reads `count` blocks from block `at`. False: they are damaged, and so is the run. */
MUST_CHECK bool id_run_read(struct id_run *run, uint64_t at, size_t count, struct id_block *blocks);
