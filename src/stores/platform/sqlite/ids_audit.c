/*
 * See ids_audit.h. Keys are collected in chunks, each sorted and then written to the file; the last
 * one stays in memory. Then all chunks are read side by side, so that two rows of one id come one
 * after the other; and beside them the runs of the index, which have to hold the same.
 */
#include "stores/platform/sqlite/ids_audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "stores/platform/sqlite/id_directory.h"
#include "stores/platform/sqlite/id_run_write.h"

#ifndef CHUNK_IDS /* a test makes it small, to see many chunks */
#define CHUNK_IDS 262144
#endif
#define READ_IDS 1024 /* of a chunk at once */
#define LISTINGS_MAX 10
#define SAME_MAX 64 /* rows of one key, of different ids: more than there ever are */

/* Sorted ids of some rows: in memory, or to be read from the file. */
struct chunk {
    struct id_entry *ids; /* at hand */
    size_t at, count;
    off_t offset; /* of those after them in the file, */
    size_t left;  /* and how many they are */
};

struct ids_audit {
    struct sqlite_store *store;
    int64_t last; /* the newest row of the snapshot */
    /* An id's number is 2 * the row's, and 1 more where the key is a settling one. */
    struct id_entry *added;
    size_t added_count;
    int descriptor; /* -1: no file was needed yet */
    off_t size;
    struct chunk *chunks;
    size_t chunk_count;
    size_t *heap; /* of chunks: by their next id, the first one on top */
    size_t heap_count;
    struct id_run **runs; /* in order of their rows */
    size_t run_count;
    struct id_stream *streams; /* of the runs */
    uint64_t same_key;         /* rows of one key that is no settling one */
    int64_t same[SAME_MAX];
    size_t same_count;
};

static enum status broken_index(struct error *error, const char *what)
{
    char text[160];
    (void)snprintf(text, sizeof text,
                   "%s; stop croupier and delete the files of the index, which are made again",
                   what);
    return ledger_broken_row(error, TEXT("the index of ids"), text);
}

/* ---- the runs -------------------------------------------------------------------------------- */

/* Whether a run is of this ledger as it is now. A run that ends after the snapshot is newer than
 * it, so its last row cannot be checked. */
static enum status is_of_history(struct ids_audit *audit, const struct id_run *run, bool *is,
                                 struct error *error)
{
    struct ledger_row row;
    *is = false;
    if (run->header.last > audit->last)
        return STATUS_OK;
    enum status status = sqlite_row_load(audit->store, run->header.last, &row, error);
    *is = status == STATUS_OK && memcmp(row.hash, run->header.proof, ID_PROOF_SIZE) == 0;
    return status == STATUS_NOT_FOUND || status == STATUS_MALFORMED ? STATUS_OK : status;
}

/* A run that is too damaged to open is made again before its next use, so the audit skips it.
 * STATUS_NOT_FOUND: another process has just merged it into another. */
static enum status open_run(struct ids_audit *audit, const struct id_directory *directory,
                            const struct id_file *file, struct error *error)
{
    struct id_run *run = NULL;
    bool is_ours = false;
    enum status status =
        id_run_open(&run, directory->descriptor, file->name, audit->store->ledger, error);
    if (status != STATUS_OK)
        return status == STATUS_MALFORMED ? STATUS_OK : status;
    memory_free(run->filter); /* was verified, and takes memory */
    run->filter = NULL;
    status = is_of_history(audit, run, &is_ours, error);
    if (status == STATUS_OK && is_ours)
        audit->runs[audit->run_count++] = run;
    else
        id_run_close(&run);
    return status;
}

static void close_runs(struct ids_audit *audit)
{
    for (size_t i = 0; i < audit->run_count; i++)
        id_run_close(&audit->runs[i]);
    memory_free(audit->runs);
    audit->runs = NULL;
    audit->run_count = 0;
}

static enum status list_runs(struct ids_audit *audit, const struct id_directory *directory,
                             struct error *error)
{
    struct id_file *files = NULL;
    size_t count = 0;
    enum status status = id_directory_list(directory, &files, &count, error);
    if (status != STATUS_OK)
        return status;
    close_runs(audit);
    audit->runs = memory_alloc_zeroed(count + 1, sizeof(struct id_run *));
    int64_t next = 1;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        size_t before = audit->run_count;
        if (files[i].first >= next)
            status = open_run(audit, directory, &files[i], error);
        if (audit->run_count > before)
            next = files[i].last + 1;
    }
    memory_free(files);
    return status;
}

static enum status open_runs(struct ids_audit *audit, struct error *error)
{
    struct id_directory directory = {.descriptor = -1};
    enum status status = id_directory_open(&directory, audit->store->path, false, error);
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK;
    if (status != STATUS_OK)
        return status;
    status = STATUS_NOT_FOUND;
    for (int listing = 0; listing < LISTINGS_MAX && status == STATUS_NOT_FOUND; listing++)
        status = list_runs(audit, &directory, error);
    id_directory_close(&directory);
    audit->streams = memory_alloc_zeroed(audit->run_count + 1, sizeof *audit->streams);
    for (size_t i = 0; i < audit->run_count; i++)
        id_stream_of_run(&audit->streams[i], audit->runs[i]);
    return status == STATUS_NOT_FOUND ? STATUS_CONFLICT : status;
}

static bool is_covered(const struct ids_audit *audit, int64_t number)
{
    for (size_t i = 0; i < audit->run_count; i++)
        if (number >= audit->runs[i]->header.first && number <= audit->runs[i]->header.last)
            return true;
    return false;
}

/* ---- the ids of the rows --------------------------------------------------------------------- */

enum status ids_audit_begin(struct ids_audit **audit, struct sqlite_store *store,
                            struct error *error)
{
    struct ids_audit *begun = memory_alloc_zeroed(1, sizeof *begun);
    begun->store = store;
    begun->descriptor = -1;
    begun->added = memory_alloc(CHUNK_IDS * sizeof *begun->added);
    enum status status = sqlite_ids_last(store, &begun->last, error);
    if (status == STATUS_OK)
        status = open_runs(begun, error);
    if (status == STATUS_OK)
        *audit = begun;
    else
        ids_audit_end(&begun);
    return status;
}

void ids_audit_end(struct ids_audit **audit)
{
    struct ids_audit *ended = *audit;
    if (ended == NULL)
        return;
    for (size_t i = 0; i < ended->run_count && ended->streams != NULL; i++)
        id_stream_end(&ended->streams[i]);
    close_runs(ended);
    for (size_t i = 0; i < ended->chunk_count; i++)
        memory_free(ended->chunks[i].ids);
    if (ended->descriptor >= 0)
        (void)close(ended->descriptor);
    memory_free(ended->streams);
    memory_free(ended->chunks);
    memory_free(ended->heap);
    memory_free(ended->added);
    memory_free(ended);
    *audit = NULL;
}

/* Without a name, so that nothing is left whenever this process ends; where the file system knows
 * no such files, with one for a moment. */
static int make_file(struct ids_audit *audit)
{
    const char *path = audit->store->path;
    const char *slash = strrchr(path, '/');
    struct buffer name = {0};
    buffer_append(&name, path, slash == NULL ? 0 : (size_t)(slash - path) + 1);
    buffer_append_char(&name, '.');
    audit->descriptor =
        open(buffer_string(&name), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (audit->descriptor < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
        buffer_clear(&name);
        buffer_append_format(&name, "%s-audit-XXXXXX", path);
        audit->descriptor = mkostemp(name.data, O_CLOEXEC);
        if (audit->descriptor >= 0)
            (void)unlink(name.data);
    }
    int reason = audit->descriptor < 0 ? errno : 0;
    buffer_free(&name);
    return reason;
}

static struct chunk *append_chunk(struct ids_audit *audit)
{
    audit->chunks =
        memory_resize(audit->chunks, (audit->chunk_count + 1) * sizeof audit->chunks[0]);
    struct chunk *chunk = &audit->chunks[audit->chunk_count++];
    *chunk = (struct chunk){.ids = id_entries_sorted(audit->added, audit->added_count),
                            .count = audit->added_count};
    audit->added_count = 0;
    return chunk;
}

static enum status write_chunk(struct ids_audit *audit, struct error *error)
{
    struct chunk *chunk = append_chunk(audit);
    size_t size = chunk->count * sizeof chunk->ids[0];
    int reason = audit->descriptor < 0 ? make_file(audit) : 0;
    if (reason == 0)
        reason = id_write_exactly(audit->descriptor, chunk->ids, size, audit->size);
    memory_free(chunk->ids);
    *chunk = (struct chunk){.offset = audit->size, .left = chunk->count};
    audit->size += (off_t)size;
    if (reason == 0)
        return STATUS_OK;
    return error_set(error, reason == ENOSPC ? STATUS_FULL : STATUS_UNAVAILABLE,
                     "%s: the ids cannot be sorted in a file beside it (%s)", audit->store->path,
                     strerror(reason));
}

enum status ids_audit_add(struct ids_audit *audit, uint64_t key, int64_t number, bool settling,
                          struct error *error)
{
    audit->added[audit->added_count++] = (struct id_entry){key, 2 * number + settling};
    return audit->added_count < CHUNK_IDS ? STATUS_OK : write_chunk(audit, error);
}

/* ---- all ids in order ------------------------------------------------------------------------ */

/* False: the file cannot be read. */
static bool refill(struct ids_audit *audit, struct chunk *chunk)
{
    size_t some = chunk->left < READ_IDS ? chunk->left : READ_IDS;
    if (chunk->ids == NULL)
        chunk->ids = memory_alloc(READ_IDS * sizeof chunk->ids[0]);
    chunk->at = 0;
    chunk->count = some;
    chunk->left -= some;
    off_t offset = chunk->offset;
    chunk->offset += (off_t)(some * sizeof chunk->ids[0]);
    return some == 0 ||
           id_read_exactly(audit->descriptor, chunk->ids, some * sizeof chunk->ids[0], offset);
}

static bool chunk_is_before(const struct ids_audit *audit, size_t one, size_t other)
{
    const struct chunk *a = &audit->chunks[one];
    const struct chunk *b = &audit->chunks[other];
    return id_entry_is_before(&a->ids[a->at], &b->ids[b->at]);
}

/* Restores the heap below a place whose chunk has another next id. */
static void sift_down(struct ids_audit *audit, size_t at)
{
    size_t *heap = audit->heap;
    for (size_t child = 2 * at + 1; child < audit->heap_count; child = 2 * at + 1) {
        if (child + 1 < audit->heap_count && chunk_is_before(audit, heap[child + 1], heap[child]))
            child++;
        if (!chunk_is_before(audit, heap[child], heap[at]))
            return;
        size_t moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

static enum status unreadable(const struct ids_audit *audit, struct error *error)
{
    return error_set(error, STATUS_UNAVAILABLE,
                     "%s: the ids that were sorted beside it cannot be read", audit->store->path);
}

static enum status begin_reading(struct ids_audit *audit, struct error *error)
{
    (void)append_chunk(audit); /* the last one, which stays in memory */
    audit->heap = memory_alloc(audit->chunk_count * sizeof audit->heap[0]);
    for (size_t i = 0; i < audit->chunk_count; i++) {
        struct chunk *chunk = &audit->chunks[i];
        if (chunk->count == 0 && !refill(audit, chunk))
            return unreadable(audit, error);
        if (chunk->count > 0)
            audit->heap[audit->heap_count++] = i;
    }
    for (size_t at = audit->heap_count / 2; at-- > 0;)
        sift_down(audit, at);
    return STATUS_OK;
}

/* STATUS_NOT_FOUND: that were all. */
static enum status next_of_rows(struct ids_audit *audit, struct id_entry *id, struct error *error)
{
    if (audit->heap_count == 0)
        return STATUS_NOT_FOUND;
    struct chunk *chunk = &audit->chunks[audit->heap[0]];
    *id = chunk->ids[chunk->at++];
    if (chunk->at == chunk->count && !refill(audit, chunk))
        return unreadable(audit, error);
    if (chunk->count == 0)
        audit->heap[0] = audit->heap[--audit->heap_count];
    sift_down(audit, 0);
    return STATUS_OK;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Two rows of one key: have they the same id, or roll back the same? */
static enum status compare_rows(struct ids_audit *audit, int64_t one, int64_t other,
                                struct error *error)
{
    sqlite3_stmt *row;
    bool found = false;
    enum status status = sqlite_find(
        audit->store,
        "SELECT one.transaction_id, one.transaction_id = two.transaction_id"
        " FROM ledger_transaction AS one, ledger_transaction AS two"
        " WHERE one.number = ?1 AND two.number = ?2"
        " AND coalesce(one.provider, one.customer_number)"
        "  = coalesce(two.provider, two.customer_number)" /* a text of a provider, else a number */
        " AND (one.transaction_id = two.transaction_id OR (one.reference = two.reference"
        "  AND one.operation = 'ROLLBACK' AND one.sequence IS NOT NULL"
        "  AND two.operation = 'ROLLBACK' AND two.sequence IS NOT NULL))",
        (const int64_t[]){one, other}, &row, &found, error);
    if (status != STATUS_OK)
        return status;
    if (found)
        status =
            ledger_broken_row(error, read_text(row, 0),
                              sqlite3_column_int(row, 1) != 0 ? "two transactions have this id"
                                                              : "what it rolls back, another does");
    (void)sqlite3_reset(row);
    return status;
}

static enum status take_key(struct ids_audit *audit, const struct id_entry *id, struct error *error)
{
    int64_t number = id->number / 2;
    enum status status = STATUS_OK;
    if (id->number % 2 != 0)
        return STATUS_OK;
    if (audit->same_key != id->key)
        audit->same_count = 0;
    audit->same_key = id->key;
    for (size_t i = 0; i < audit->same_count && status == STATUS_OK; i++)
        if (audit->same[i] != number)
            status = compare_rows(audit, audit->same[i], number, error);
    if (audit->same_count < SAME_MAX)
        audit->same[audit->same_count++] = number;
    return status;
}

static enum status next_of_index(struct ids_audit *audit, struct id_entry *id, struct error *error)
{
    enum status status = id_streams_next(audit->streams, audit->run_count, id);
    return status == STATUS_MALFORMED ? broken_index(error, "a file of it is damaged") : status;
}

/* An id of the rows must be the index's next one, where the index covers the row. */
static enum status compare_index(struct ids_audit *audit, const struct id_entry *id,
                                 struct error *error)
{
    struct id_entry indexed;
    if (!is_covered(audit, id->number / 2))
        return STATUS_OK;
    enum status status = next_of_index(audit, &indexed, error);
    if (status == STATUS_NOT_FOUND ||
        (status == STATUS_OK && (indexed.key != id->key || indexed.number != id->number / 2)))
        return broken_index(error, "it is not that of the rows");
    return status;
}

enum status ids_audit_finish(struct ids_audit *audit, struct error *error)
{
    struct id_entry id;
    enum status status = begin_reading(audit, error);
    while (status == STATUS_OK && (status = next_of_rows(audit, &id, error)) == STATUS_OK) {
        status = take_key(audit, &id, error);
        if (status == STATUS_OK)
            status = compare_index(audit, &id, error);
    }
    if (status != STATUS_NOT_FOUND)
        return status;
    status = audit->run_count == 0 ? STATUS_NOT_FOUND : next_of_index(audit, &id, error);
    if (status == STATUS_OK)
        return broken_index(error, "it leads to more than the rows have");
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}
