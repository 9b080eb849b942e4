/* See id_run_write.h. */
#include "stores/platform/sqlite/ids/id_run_write.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/hash.h"
#include "base/memory.h"

/* ---- streams --------------------------------------------------------------------------------- */

void id_stream_of_run(struct id_stream *stream, struct id_run *run)
{
    *stream = (struct id_stream){.run = run};
    stream->blocks = memory_alloc(ID_STREAM_BLOCKS * sizeof *stream->blocks);
}

static int compare(const void *one, const void *other)
{
    const struct id_entry *a = one;
    const struct id_entry *b = other;
    return id_entry_is_before(a, b) ? -1 : id_entry_is_before(b, a);
}

void id_stream_of_table(struct id_stream *stream, const struct id_table *table)
{
    const size_t size = table->count * sizeof table->entries[0];
    *stream =
        (struct id_stream){.count = table->count, .sorted = memory_copy(table->entries, size)};
    qsort(stream->sorted, stream->count, sizeof stream->sorted[0], compare);
    stream->ids = stream->sorted;
}

void id_stream_end(struct id_stream *stream)
{
    memory_free(stream->blocks);
    memory_free(stream->sorted);
    *stream = (struct id_stream){0};
}

/* Makes the next block of a run the ids at hand; without any at its end. */
static enum status refill(struct id_stream *stream)
{
    struct id_run *run = stream->run;
    if (stream->refill != NULL)
        return stream->refill(stream->context, stream);
    stream->at = stream->count = 0;
    if (run == NULL)
        return STATUS_OK;
    if (stream->blocks_at == stream->blocks_count) {
        uint64_t left = run->blocks - stream->next_block;
        size_t some = left < ID_STREAM_BLOCKS ? (size_t)left : ID_STREAM_BLOCKS;
        if (some == 0)
            return STATUS_OK;
        if (!id_run_read(run, stream->next_block, some, stream->blocks))
            return STATUS_MALFORMED;
        stream->next_block += some;
        stream->blocks_at = 0;
        stream->blocks_count = some;
    }
    const struct id_block *block = &stream->blocks[stream->blocks_at++];
    stream->ids = block->ids;
    stream->count = block->count;
    return STATUS_OK;
}

enum status id_streams_next(struct id_stream *streams, size_t count, struct id_entry *entry)
{
    struct id_stream *first = NULL;
    for (size_t i = 0; i < count; i++) {
        struct id_stream *stream = &streams[i];
        if (stream->at == stream->count) {
            enum status status = refill(stream);
            if (status != STATUS_OK)
                return status;
            if (stream->count == 0)
                continue;
        }
        if (first == NULL || id_entry_is_before(&stream->ids[stream->at], &first->ids[first->at]))
            first = stream;
    }
    if (first == NULL)
        return STATUS_NOT_FOUND;
    *entry = first->ids[first->at++];
    return STATUS_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

#define BUFFER_BLOCKS 128                /* written at once */
#define SYNCED_EVERY ((uint64_t)1 << 20) /* bytes: so that no commit's sync waits for more */

struct writing {
    struct id_run *run;
    uint64_t written; /* bytes that are not synced */
    uint64_t full;    /* blocks, of which the last ones are in the buffer */
    size_t buffered;
    struct id_block *buffer; /* and behind them the one that is being filled */
};

/* 0, or why it cannot be written. */
static int write_exactly(struct writing *writing, const void *bytes, size_t size, off_t at)
{
    int descriptor = writing->run->descriptor;
    const char *from = bytes;
    while (size > 0) {
        ssize_t some = pwrite(descriptor, from, size < SYNCED_EVERY ? size : SYNCED_EVERY, at);
        if (some < 0 && errno == EINTR)
            continue;
        if (some <= 0)
            return some == 0 ? ENOSPC : errno;
        from += some;
        at += some;
        size -= (size_t)some;
        writing->written += (size_t)some;
        if (writing->written < SYNCED_EVERY)
            continue;
        writing->written = 0;
        if (fdatasync(descriptor) != 0)
            return errno;
    }
    return 0;
}

/* Writes the buffer; 0, or why not. */
static int flush(struct writing *writing)
{
    size_t size = writing->buffered * sizeof writing->buffer[0];
    int reason = write_exactly(writing, writing->buffer, size,
                               (off_t)((1 + writing->full - writing->buffered) * ID_BLOCK_SIZE));
    writing->buffered = 0;
    return reason;
}

static int finish_block(struct writing *writing)
{
    struct id_run *run = writing->run;
    struct id_block *block = &writing->buffer[writing->buffered];
    memset(&block->ids[block->count], 0, (ID_BLOCK_IDS - block->count) * sizeof block->ids[0]);
    block->sum = id_run_block_sum(&run->header, writing->full, block);
    run->first_keys[writing->full++] = block->ids[0].key;
    writing->buffered++;
    int reason = writing->buffered == BUFFER_BLOCKS ? flush(writing) : 0;
    writing->buffer[writing->buffered].count = 0;
    return reason;
}

static int add(struct writing *writing, const struct id_entry *entry)
{
    struct id_run *run = writing->run;
    struct id_block *block = &writing->buffer[writing->buffered];
    uint32_t *line = run->filter + id_filter_line(run->header.lines, entry->key);
    struct id_bits bits = id_filter_bits(run->header.identity, entry->key);
    for (int i = 0; i < ID_LINE_WORDS; i++)
        line[i] |= bits.words[i];
    block->ids[block->count++] = *entry;
    return block->count == ID_BLOCK_IDS ? finish_block(writing) : 0;
}

/* Writes after the last block: positions, filter, and the header, which makes it a run. */
static int finish(struct writing *writing)
{
    struct id_run *run = writing->run;
    struct id_run_header *header = &run->header;
    char start[ID_BLOCK_SIZE] = {0};
    int reason = writing->buffer[writing->buffered].count > 0 ? finish_block(writing) : 0;
    if (reason == 0)
        reason = flush(writing);
    if (reason != 0)
        return reason;
    CHECK(writing->full == run->blocks);
    size_t keys_size = run->blocks * sizeof(uint64_t);
    size_t filter_size = header->lines * ID_LINE_SIZE;
    off_t at = (off_t)((1 + run->blocks) * ID_BLOCK_SIZE);
    header->first_keys_sum = checksum_add(header->seed, run->first_keys, keys_size);
    header->filter_sum = checksum_add(header->seed, run->filter, filter_size);
    header->sum = id_run_header_sum(header);
    memcpy(start, header, sizeof *header);
    reason = write_exactly(writing, run->first_keys, keys_size, at);
    if (reason == 0)
        reason = write_exactly(writing, run->filter, filter_size, at + (off_t)keys_size);
    if (reason == 0)
        reason = write_exactly(writing, start, sizeof start, 0);
    return reason != 0 ? reason : fsync(run->descriptor) == 0 ? 0 : errno;
}

static struct id_run *make_run(const struct id_run_plan *plan, int descriptor)
{
    struct id_run *run = memory_alloc_zeroed(1, sizeof *run);
    struct id_run_header *header = &run->header;
    CHECK(plan->first >= 1 && plan->first <= plan->last);
    *header = (struct id_run_header){.magic = ID_RUN_MAGIC,
                                     .version = ID_RUN_VERSION,
                                     .block_size = ID_BLOCK_SIZE,
                                     .first = plan->first,
                                     .last = plan->last,
                                     .count = plan->count,
                                     .lines = id_run_lines(plan->count),
                                     .seed = hash_random_seed()};
    memcpy(header->identity, plan->identity, sizeof header->identity);
    memcpy(header->row_hash, plan->row_hash, sizeof header->row_hash);
    run->descriptor = descriptor;
    run->blocks = id_run_blocks(plan->count);
    run->first_keys = memory_alloc(run->blocks * sizeof(uint64_t) + 1);
    run->filter = memory_alloc_zeroed(header->lines, ID_LINE_SIZE);
    return run;
}

/* Writes all ids, in order. */
static enum status copy(struct writing *writing, const struct id_run_plan *plan,
                        struct id_stream *streams, size_t count, int *reason)
{
    struct id_entry entry;
    uint64_t copied = 0;
    enum status status;
    while ((status = id_streams_next(streams, count, &entry)) == STATUS_OK) {
        CHECK(copied++ < plan->count);
        *reason = add(writing, &entry);
        if (*reason != 0)
            return STATUS_UNAVAILABLE;
        if (copied % 4096 == 0 && plan->end != NULL && relaxed_load(plan->end))
            return STATUS_CONFLICT;
    }
    if (status != STATUS_NOT_FOUND)
        return status;
    CHECK(copied == plan->count); /* of blocks that were verified */
    *reason = finish(writing);
    return *reason == 0 ? STATUS_OK : STATUS_UNAVAILABLE;
}

static int create_file(int directory, const char *name, const struct stat *like, int *descriptor)
{
    *descriptor =
        openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR);
    if (*descriptor < 0)
        return errno;
    struct stat facts;
    if (flock(*descriptor, LOCK_EX | LOCK_NB) != 0 || fstat(*descriptor, &facts) != 0)
        return errno;
    /* Gives the file to the database's owner, as SQLite does with its log: a command run by root
     * must not lock the service out. */
    if ((facts.st_uid != like->st_uid || facts.st_gid != like->st_gid) && geteuid() == 0 &&
        fchown(*descriptor, like->st_uid, like->st_gid) != 0)
        return errno;
    return fchmod(*descriptor, like->st_mode & (S_IRWXU | S_IRWXG | S_IRWXO)) == 0 ? 0 : errno;
}

enum status id_run_write(struct id_run **run, int directory, const char *temporary,
                         const struct stat *like, const struct id_run_plan *plan,
                         struct id_stream *streams, size_t stream_count, struct error *error)
{
    int descriptor = -1;
    int reason = create_file(directory, temporary, like, &descriptor);
    struct writing writing = {0};
    enum status status = reason == 0 ? STATUS_OK : STATUS_UNAVAILABLE;
    if (descriptor >= 0) {
        writing.run = make_run(plan, descriptor);
        writing.buffer = memory_alloc((BUFFER_BLOCKS + 1) * sizeof *writing.buffer);
        writing.buffer[0].count = 0;
    }
    if (status == STATUS_OK)
        status = copy(&writing, plan, streams, stream_count, &reason);
    memory_free(writing.buffer);
    if (status == STATUS_OK) {
        *run = writing.run;
        return STATUS_OK;
    }
    id_run_close(&writing.run);
    if (descriptor >= 0)
        (void)unlinkat(directory, temporary, 0);
    if (status == STATUS_UNAVAILABLE)
        return error_set(error, status, "%s", strerror(reason));
    return error_set(error, status, status == STATUS_CONFLICT ? "it is to end" : "damaged");
}
