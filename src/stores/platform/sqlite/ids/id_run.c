/* Reading runs: see id_run.h. Everything in the file is taken as hostile until its sum fits. */
#include "stores/platform/sqlite/ids/id_run.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/file.h"
#include "base/memory.h"

_Static_assert(sizeof(struct id_block) == ID_BLOCK_SIZE, "a block is written as it is");
_Static_assert(sizeof(struct id_run_header) <= ID_BLOCK_SIZE, "the header has a block's room");

/* Far more than a ledger has; keeps sizes computed from it within 64 bits. */
#define COUNT_MAX ((uint64_t)1 << 32)

uint64_t id_run_header_sum(const struct id_run_header *header)
{
    return checksum_add(ID_RUN_MAGIC, header, offsetof(struct id_run_header, sum));
}

uint64_t id_run_block_sum(const struct id_run_header *header, uint64_t at,
                          const struct id_block *block)
{
    return checksum_add(header->seed + at, block, offsetof(struct id_block, sum));
}

size_t id_run_memory(const struct id_run *run)
{
    return sizeof *run + run->blocks * sizeof(uint64_t) + run->header.lines * ID_LINE_SIZE;
}

static uint64_t file_size(uint64_t blocks, uint64_t lines)
{
    return (1 + blocks) * ID_BLOCK_SIZE + blocks * sizeof(uint64_t) + lines * ID_LINE_SIZE;
}

uint64_t id_run_file_size(const struct id_run *run)
{
    return file_size(run->blocks, run->header.lines);
}

/* ---- the filter ------------------------------------------------------------------------------ */

struct id_bits id_filter_bits(const uint8_t identity[ID_IDENTITY_SIZE], uint64_t key)
{
    static const uint32_t factors[ID_LINE_WORDS] = {
        /* odd, otherwise arbitrary */
        0x9E3779B1U, 0x85EBCA77U, 0xC2B2AE3DU, 0x27D4EB2FU,
        0x165667B1U, 0xD3A2646DU, 0xFD7046C5U, 0xB55A4F09U,
    };
    struct id_bits bits;
    uint64_t seed; /* clients cannot know it */
    memcpy(&seed, identity, sizeof seed);
    /* The first bits of the key have chosen the line. */
    uint64_t mixed = (key ^ seed) * 0x9E3779B97F4A7C15U;
    uint32_t word = (uint32_t)((mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9U >> 32);
    for (int i = 0; i < ID_LINE_WORDS; i++)
        bits.words[i] = 1U << (word * factors[i] >> 27);
    return bits;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* False: it is shorter, or cannot be read. */
static bool read_exactly(int descriptor, void *bytes, size_t size, off_t at)
{
    char *to = bytes;
    while (size > 0) {
        ssize_t got = pread(descriptor, to, size, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static enum status malformed(struct error *error, const char *what)
{
    return error_set(error, STATUS_MALFORMED, "%s", what);
}

/* Checks the header before its numbers size any allocation. */
static enum status check_header(const struct id_run_header *header, const struct stat *facts,
                                const uint8_t identity[ID_IDENTITY_SIZE], struct error *error)
{
    if (header->magic != ID_RUN_MAGIC || header->sum != id_run_header_sum(header))
        return malformed(error, "its header is damaged");
    if (header->version != ID_RUN_VERSION || header->block_size != ID_BLOCK_SIZE)
        return malformed(error, "it has the format of another version");
    if (memcmp(header->identity, identity, ID_IDENTITY_SIZE) != 0)
        return malformed(error, "it belongs to another ledger");
    if (header->count > COUNT_MAX || header->lines != id_run_lines(header->count) ||
        header->first < 1 || header->last < header->first)
        return malformed(error, "its header is malformed");
    if ((uint64_t)facts->st_size != file_size(id_run_blocks(header->count), header->lines))
        return malformed(error, "it is not as long as it was written");
    return STATUS_OK;
}

/* False: it cannot be read, or what follows the header is not zeros. */
static bool read_header(const struct id_run *run, struct id_run_header *header)
{
    char block[ID_BLOCK_SIZE];
    if (!read_exactly(run->descriptor, block, sizeof block, 0))
        return false;
    memcpy(header, block, sizeof *header);
    for (size_t i = sizeof *header; i < sizeof block; i++)
        if (block[i] != 0)
            return false;
    return true;
}

static enum status load(struct id_run *run, const uint8_t identity[ID_IDENTITY_SIZE], bool filtered,
                        struct error *error)
{
    struct stat facts;
    struct id_run_header *header = &run->header;
    if (fstat(run->descriptor, &facts) != 0)
        return error_unavailable(error, "%s", strerror(errno));
    if (!S_ISREG(facts.st_mode) || facts.st_size < ID_BLOCK_SIZE || !read_header(run, header))
        return malformed(error, "it is truncated, or its header is damaged");
    enum status status = check_header(header, &facts, identity, error);
    if (status != STATUS_OK)
        return status;
    run->blocks = id_run_blocks(header->count);
    size_t keys_size = run->blocks * sizeof(uint64_t);
    size_t filter_size = header->lines * ID_LINE_SIZE;
    off_t at = (off_t)((1 + run->blocks) * ID_BLOCK_SIZE);
    run->first_keys = memory_alloc(keys_size + 1);
    if (!read_exactly(run->descriptor, run->first_keys, keys_size, at) ||
        checksum_add(header->seed, run->first_keys, keys_size) != header->first_keys_sum)
        return malformed(error, "the positions of its blocks are damaged");
    if (!filtered)
        return STATUS_OK;
    run->filter = memory_alloc(filter_size);
    if (!read_exactly(run->descriptor, run->filter, filter_size, at + (off_t)keys_size) ||
        checksum_add(header->seed, run->filter, filter_size) != header->filter_sum)
        return malformed(error, "its filter is damaged");
    return STATUS_OK;
}

enum status id_run_open(struct id_run **run, int directory, const char *name,
                        const uint8_t identity[ID_IDENTITY_SIZE], bool filtered,
                        struct error *error)
{
    /* The open does not block: the file may be anything, a pipe for instance. */
    int descriptor = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0)
        return error_set(error,
                         errno == ENOENT ? STATUS_NOT_FOUND
                         : errno == EMFILE || errno == ENFILE || errno == ENOMEM
                             ? STATUS_UNAVAILABLE
                             : STATUS_MALFORMED,
                         "%s", strerror(errno));
    struct id_run *opened = memory_alloc_zeroed(1, sizeof *opened);
    opened->descriptor = descriptor;
    enum status status = load(opened, identity, filtered, error);
    if (status == STATUS_OK)
        *run = opened;
    else
        id_run_close(&opened);
    return status;
}

void id_run_close(struct id_run **run)
{
    struct id_run *closed = memory_take(run);
    if (closed == NULL)
        return;
    file_close(&closed->descriptor);
    memory_free(closed->first_keys);
    memory_free(closed->filter);
    memory_free(closed);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The block's sum proves that these bytes were written at this position. Its first key ties it to
 * the run's first keys, which have their own sum. */
static bool block_is_sound(const struct id_run *run, uint64_t at, const struct id_block *block)
{
    uint64_t count = at + 1 < run->blocks ? ID_BLOCK_IDS : run->header.count - at * ID_BLOCK_IDS;
    return block->sum == id_run_block_sum(&run->header, at, block) && block->count == count &&
           block->ids[0].key == run->first_keys[at];
}

bool id_run_read(struct id_run *run, uint64_t at, size_t count, struct id_block *blocks)
{
    CHECK(at + count <= run->blocks);
    bool sound = read_exactly(run->descriptor, blocks, count * sizeof blocks[0],
                              (off_t)((1 + at) * ID_BLOCK_SIZE));
    for (size_t i = 0; i < count && sound; i++)
        sound = block_is_sound(run, at + i, &blocks[i]);
    if (!sound)
        relaxed_store(&run->damaged, true);
    return sound;
}

/* The last block that begins before the key, or the first: no earlier block can have the key. */
static uint64_t first_block_of(const struct id_run *run, uint64_t key)
{
    uint64_t from = 0;
    uint64_t until = run->blocks;
    while (until - from > 1) {
        uint64_t middle = from + (until - from) / 2;
        if (run->first_keys[middle] < key)
            from = middle;
        else
            until = middle;
    }
    return from;
}

/* The first id of a block that is not before the one given. */
static size_t first_id_of(const struct id_block *block, const struct id_entry *id)
{
    size_t from = 0;
    size_t until = block->count;
    while (from < until) {
        size_t middle = from + (until - from) / 2;
        if (id_entry_is_before(&block->ids[middle], id))
            from = middle + 1;
        else
            until = middle;
    }
    return from;
}

enum status id_run_find(struct id_run *run, uint64_t key, int64_t after, int64_t *numbers,
                        size_t room, size_t *count)
{
    const struct id_entry sought = {key, after + 1};
    struct id_block block;
    size_t found = 0;
    int64_t last = after;
    for (uint64_t at = first_block_of(run, key);
         at < run->blocks && run->first_keys[at] <= key && found < room; at++) {
        if (!id_run_read(run, at, 1, &block))
            return STATUS_MALFORMED;
        for (size_t i = first_id_of(&block, &sought);
             i < block.count && block.ids[i].key == key && found < room; i++) {
            if (block.ids[i].number != last)
                numbers[found++] = last = block.ids[i].number;
        }
    }
    *count = found;
    return STATUS_OK;
}
