/*
 * The index of ids: opening it, asking it, adding to it, and reading the rows that no run covers.
 * id_index.h describes the index, id_parts.h its locks, id_merge.c the making of runs.
 */
#include "stores/platform/sqlite/id_index.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "stores/platform/sqlite/id_parts.h"
#include "stores/platform/sqlite/id_run_write.h"

#define OPEN_PATIENCE_MS 60000 /* another process may be making runs again */
#define READY_PATIENCE_MS 5000
#define PROGRESS_ROWS 65536
#define RUNS_UNMERGED 64 /* unmerged runs that a rebuild leaves to upkeep; each has a descriptor */
#define LISTINGS_MAX 10

/* ---- reading rows ---------------------------------------------------------------------------- */

struct id_feed {
    struct id_index *index;
    bool makes_parts;                     /* under `upkeep`: tables are written at once */
    const struct id_directory *directory; /* for that: locked; NULL: it is not there */
    const struct id_source *source;
    const atomic_bool *end; /* not NULL: gives up when it is set */
    int64_t next, last;     /* rows that may come */
    int64_t done, all;      /* for progress */
    enum status status;     /* why it was stopped */
    struct error *error;
};

static bool stop(struct id_feed *feed, enum status status)
{
    feed->status = status;
    return false;
}

/* How many tables there are; and whether there are so many runs that merging cannot wait. */
static size_t count_tables(struct id_index *index, bool *merges)
{
    uv_mutex_lock(&index->lock);
    size_t tables = id_tables(index);
    *merges = index->count - tables > RUNS_UNMERGED;
    uv_mutex_unlock(&index->lock);
    return tables;
}

/* Under `upkeep`. STATUS_FULL: it comes to nothing, and memory is at its bound. */
static enum status write_tables(struct id_index *index, const struct id_directory *directory,
                                struct error *error)
{
    enum status status = STATUS_OK;
    bool merges = false;
    (void)count_tables(index, &merges);
    while (status == STATUS_OK)
        status = id_merge_step(index, merges, directory, error);
    if (count_tables(index, &merges) <= ID_INDEX_TABLES_MAX)
        return STATUS_OK;
    error_prefix(error, "the index of transaction ids cannot be written, and memory has no room");
    return STATUS_FULL;
}

/* Writing tables is upkeep's, unless that comes to nothing for too long. */
static enum status bound_tables(struct id_index *index, struct error *error)
{
    bool merges = false;
    if (index->reads_only || count_tables(index, &merges) <= ID_INDEX_TABLES_MAX)
        return STATUS_OK;
    uv_mutex_lock(&index->upkeep);
    enum status status = write_tables(index, NULL, error);
    uv_mutex_unlock(&index->upkeep);
    return status;
}

bool id_feed_row(struct id_feed *feed, int64_t number, const uint64_t *keys, size_t count,
                 const uint8_t proof[ID_PROOF_SIZE])
{
    struct id_index *index = feed->index;
    if (feed->status != STATUS_OK)
        return false;
    CHECK(count <= ID_ADDED_MAX);
    if (feed->end != NULL && atomic_load_explicit(feed->end, memory_order_relaxed))
        return stop(feed, error_set(feed->error, STATUS_CONFLICT, "it is to end"));
    if (number < feed->next || number > feed->last)
        return stop(feed, error_set(feed->error, STATUS_MALFORMED,
                                    "rows of the ledger are not in order of their numbers"));
    uv_mutex_lock(&index->lock);
    struct id_part *part = id_newest(index);
    for (size_t i = 0; i < count; i++)
        if (!index->reads_only || keys[i] == index->only)
            id_table_add(part->table, &(struct id_entry){keys[i], number});
    part->last = number;
    memcpy(part->proof, proof, ID_PROOF_SIZE);
    bool full = part->table->count >= ID_INDEX_TABLE_IDS;
    if (full)
        (void)id_part_append(index, number + 1);
    uv_mutex_unlock(&index->lock);
    feed->next = number + 1;
    const struct id_source *source = feed->source;
    if (++feed->done % PROGRESS_ROWS == 0 && source->progress != NULL)
        source->progress(source->context, feed->done, feed->all);
    if (!full)
        return true;
    id_parts_wake(index);
    enum status status = feed->makes_parts ? write_tables(index, feed->directory, feed->error)
                                           : bound_tables(index, feed->error);
    return status == STATUS_OK || stop(feed, status);
}

/* Into the newest table, and others after it. Afterwards the newest ends with `last`. */
static enum status read_rows(struct id_feed *feed, const struct id_source *source, int64_t first,
                             int64_t last)
{
    struct id_index *index = feed->index;
    if (last < first)
        return STATUS_OK;
    feed->source = source;
    feed->next = first;
    feed->last = last;
    feed->status = STATUS_OK;
    enum status status = source->read(source->context, first, last, feed, feed->error);
    if (feed->status != STATUS_OK)
        status = feed->status;
    if (status != STATUS_OK)
        return status;
    uv_mutex_lock(&index->lock);
    id_newest(index)->last = last;
    uv_mutex_unlock(&index->lock);
    return STATUS_OK;
}

enum status id_span_read(struct id_index *index, const struct id_source *source,
                         struct id_span *span, const struct id_directory *directory,
                         const atomic_bool *end, struct error *error)
{
    struct id_feed feed = {.index = index,
                           .makes_parts = true,
                           .directory = directory,
                           .end = end,
                           .done = span->done,
                           .all = span->all,
                           .error = error};
    enum status status = read_rows(&feed, source, span->first, span->last);
    span->done = feed.done;
    return status;
}

/* ---- the runs of the directory --------------------------------------------------------------- */

/* Runs that are to be parts, in order of their rows. */
struct selection {
    struct id_run **runs;
    size_t count;
};

static void end_selection(struct selection *selection)
{
    for (size_t i = 0; i < selection->count; i++)
        id_run_close(&selection->runs[i]);
    memory_free(selection->runs);
    *selection = (struct selection){0};
}

/* Whether a run is of this ledger as it is now: then `sound`. A row that cannot be read, or is
 * damaged itself, proves nothing against the run. */
static enum status check_history(const struct id_run *run, const struct id_file *file,
                                 const struct id_source *source, bool *sound, struct error *error)
{
    const struct id_run_header *header = &run->header;
    uint8_t proof[ID_PROOF_SIZE];
    *sound = false;
    if (header->first != file->first || header->last != file->last) {
        (void)error_set(error, STATUS_MALFORMED, "it has another run's name");
        return STATUS_OK;
    }
    enum status status = source->proof(source->context, header->last, proof, error);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND)
        return status;
    *sound = status == STATUS_OK && memcmp(proof, header->proof, sizeof proof) == 0;
    if (!*sound)
        (void)error_set(error, STATUS_MALFORMED, "it is from another history of the ledger");
    return STATUS_OK;
}

/* Opens a run and takes it if it is sound. */
static enum status select_run(struct id_index *index, const struct id_directory *directory,
                              const struct id_file *file, const struct id_source *source,
                              struct selection *selection, struct error *error)
{
    struct id_run *run = NULL;
    bool sound = false;
    enum status status =
        id_run_open(&run, directory->descriptor, file->name, index->identity, error);
    if (status == STATUS_OK)
        status = check_history(run, file, source, &sound, error);
    else if (status == STATUS_MALFORMED)
        status = STATUS_OK;
    if (status == STATUS_OK && sound) {
        selection->runs[selection->count++] = run;
        return STATUS_OK;
    }
    id_run_close(&run);
    if (status != STATUS_OK)
        return status;
    log_event(index->log, LOG_WARNING, "part of the index of transaction ids is made again",
              LOG_STRING("file", file->name), LOG_STRING("reason", error->text));
    atomic_fetch_add_explicit(&index->made_again, 1, memory_order_relaxed);
    if (!index->reads_only)
        (void)unlinkat(directory->descriptor, file->name, 0);
    return STATUS_OK;
}

/* Of runs with the same rows the longest comes first: it was merged from the others, and a crash
 * has left those behind. STATUS_NOT_FOUND: another process has just deleted one. */
static enum status select_runs(struct id_index *index, const struct id_directory *directory,
                               const struct id_source *source, int64_t last_number,
                               struct selection *selection, struct error *error)
{
    struct id_file *files = NULL;
    size_t count = 0;
    enum status status = id_directory_list(directory, &files, &count, error);
    if (status != STATUS_OK)
        return status;
    selection->runs = memory_alloc_zeroed(count + 1, sizeof(struct id_run *));
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        /* Another process has just written it, or the ledger has lost rows (ledger_end.c). */
        if (files[i].last > last_number)
            continue;
        const struct id_run *before =
            selection->count > 0 ? selection->runs[selection->count - 1] : NULL;
        if (before != NULL && files[i].first <= before->header.last) {
            if (!index->reads_only)
                (void)unlinkat(directory->descriptor, files[i].name, 0);
        } else {
            status = select_run(index, directory, &files[i], source, selection, error);
        }
    }
    memory_free(files);
    return status;
}

/* A handle that only reads has no lock, so another process may merge runs at the same time. */
static enum status select_beside(struct id_index *index, const struct id_directory *directory,
                                 const struct id_source *source, int64_t last_number,
                                 struct selection *selection, struct error *error)
{
    enum status status = STATUS_NOT_FOUND;
    for (int listing = 0; listing < LISTINGS_MAX && status == STATUS_NOT_FOUND; listing++) {
        end_selection(selection);
        status = select_runs(index, directory, source, last_number, selection, error);
    }
    return status == STATUS_NOT_FOUND ? STATUS_CONFLICT : status;
}

/* ---- making the parts ------------------------------------------------------------------------ */

static void drop_parts(struct id_index *index)
{
    uv_mutex_lock(&index->lock);
    for (size_t i = 0; i < index->count; i++)
        id_part_end(&index->parts[i]);
    index->count = 0;
    index->last_number = 0;
    uv_mutex_unlock(&index->lock);
}

static void append_table(struct id_index *index, int64_t first)
{
    uv_mutex_lock(&index->lock);
    (void)id_part_append(index, first);
    uv_mutex_unlock(&index->lock);
}

/* When the table before it was full with the last of the rows: only the newest part may be
 * empty. */
static void drop_empty_table(struct id_index *index)
{
    uv_mutex_lock(&index->lock);
    id_parts_drop_empty(index);
    uv_mutex_unlock(&index->lock);
}

/* The runs, and the rows between and after them. */
static enum status make_parts(struct id_feed *feed, struct selection *selection,
                              const struct id_source *source, int64_t last_number)
{
    struct id_index *index = feed->index;
    int64_t next = 1;
    enum status status = STATUS_OK;
    feed->all = last_number;
    for (size_t i = 0; i < selection->count; i++)
        feed->all -= selection->runs[i]->header.last - selection->runs[i]->header.first + 1;
    if (feed->all >= PROGRESS_ROWS && source->progress != NULL)
        source->progress(source->context, 0, feed->all);
    for (size_t i = 0; i < selection->count && status == STATUS_OK; i++) {
        struct id_run *run = selection->runs[i];
        int64_t after = run->header.last + 1;
        if (run->header.first > next) {
            append_table(index, next);
            status = read_rows(feed, source, next, run->header.first - 1);
            drop_empty_table(index);
        }
        uv_mutex_lock(&index->lock);
        if (status == STATUS_OK)
            id_part_append_run(index, &selection->runs[i]);
        uv_mutex_unlock(&index->lock);
        next = after;
    }
    if (status != STATUS_OK)
        return status;
    append_table(index, next);
    status = read_rows(feed, source, next, last_number);
    if (status == STATUS_OK && feed->all >= PROGRESS_ROWS && source->progress != NULL)
        source->progress(source->context, feed->all, feed->all);
    return status;
}

/* A directory that is not there is made when there is something to put there. One that cannot be
 * used, or locked (a file system need not have flock), is as good as none, as long as memory has
 * room. */
static enum status open_directory(struct id_index *index, int64_t last_number,
                                  struct id_directory *directory, uint32_t patience_ms,
                                  struct error *error)
{
    bool create = !index->reads_only && last_number >= ID_INDEX_TABLE_IDS;
    enum status status = id_directory_open(directory, index->database, create, error);
    if (status == STATUS_OK && !index->reads_only)
        status = id_directory_lock(directory, patience_ms, error);
    if (status == STATUS_OK || status == STATUS_NOT_FOUND)
        return STATUS_OK;
    if (status == STATUS_TIMEOUT)
        return STATUS_UNAVAILABLE;
    log_event(index->log, LOG_WARNING, "index of transaction ids has no directory",
              LOG_STRING("reason", error->text));
    id_directory_close(directory);
    return STATUS_OK;
}

/* Makes all parts again: from the runs in the directory, and for the other rows from the rows
 * themselves. Under `upkeep`. */
static enum status load(struct id_index *index, const struct id_source *source, int64_t last_number,
                        uint32_t patience_ms, struct error *error)
{
    struct id_directory directory = {.descriptor = -1};
    struct selection selection = {0};
    index->whole = false;
    drop_parts(index);
    atomic_store_explicit(&index->outdated, false, memory_order_relaxed);
    index->state = 0;
    enum status status = open_directory(index, last_number, &directory, patience_ms, error);
    bool is_open = directory.descriptor >= 0;
    struct id_feed feed = {.index = index,
                           .makes_parts = !index->reads_only,
                           .directory = is_open && !index->reads_only ? &directory : NULL,
                           .error = error};
    if (status == STATUS_OK && is_open)
        status = select_beside(index, &directory, source, last_number, &selection, error);
    if (status == STATUS_OK && feed.directory != NULL) {
        id_directory_tidy(&directory);
        status = id_directory_state(&directory, &index->state, error);
    }
    if (status == STATUS_OK)
        status = make_parts(&feed, &selection, source, last_number);
    uv_mutex_lock(&index->lock);
    index->last_number = last_number;
    uv_mutex_unlock(&index->lock);
    end_selection(&selection);
    id_directory_close(&directory);
    index->whole = status == STATUS_OK;
    return status;
}

/* ---- opening and closing --------------------------------------------------------------------- */

enum status id_index_open(struct id_index **index, const struct id_index_options *options,
                          const struct id_source *source, int64_t last_number, struct error *error)
{
    struct id_index *opened = memory_alloc_zeroed(1, sizeof *opened);
    opened->database = memory_copy_string(options->database);
    memcpy(opened->identity, options->identity, sizeof opened->identity);
    opened->log = options->log;
    opened->reads_only = options->only != NULL;
    opened->only = options->only != NULL ? *options->only : 0;
    opened->beside = options->beside;
    CHECK(uv_mutex_init(&opened->upkeep) == 0 && uv_mutex_init(&opened->lock) == 0);
    uv_mutex_lock(&opened->upkeep);
    enum status status = load(opened, source, last_number, OPEN_PATIENCE_MS, error);
    uv_mutex_unlock(&opened->upkeep);
    if (status == STATUS_OK)
        *index = opened;
    else
        id_index_close(&opened);
    return status;
}

void id_index_close(struct id_index **index)
{
    struct id_index *closed = *index;
    if (closed == NULL)
        return;
    if (closed->has_thread) {
        atomic_store_explicit(&closed->hurry, true, memory_order_relaxed);
        background_stop(&closed->thread);
    }
    drop_parts(closed);
    memory_free(closed->parts);
    memory_free(closed->database);
    uv_mutex_destroy(&closed->upkeep);
    uv_mutex_destroy(&closed->lock);
    memory_free(closed);
    *index = NULL;
}

/* Upkeep that is at a long merge gives up, since the writer waits. */
static void take_upkeep(struct id_index *index)
{
    atomic_store_explicit(&index->hurry, true, memory_order_relaxed);
    uv_mutex_lock(&index->upkeep);
    atomic_store_explicit(&index->hurry, false, memory_order_relaxed);
}

static enum status load_again(struct id_index *index, const struct id_source *source,
                              int64_t last_number, struct error *error)
{
    take_upkeep(index);
    enum status status = load(index, source, last_number, READY_PATIENCE_MS, error);
    uv_mutex_unlock(&index->upkeep);
    id_parts_wake(index);
    return status;
}

static bool is_outdated(const struct id_index *index)
{
    return atomic_load_explicit(&index->outdated, memory_order_relaxed);
}

/* The rows that another process has added. */
static enum status catch_up(struct id_index *index, const struct id_source *source,
                            int64_t last_number, struct error *error)
{
    struct id_feed feed = {.index = index, .all = last_number - index->last_number, .error = error};
    index->whole = false;
    enum status status = read_rows(&feed, source, index->last_number + 1, last_number);
    if (status != STATUS_OK)
        return status;
    uv_mutex_lock(&index->lock);
    index->last_number = last_number;
    uv_mutex_unlock(&index->lock);
    index->whole = true;
    return STATUS_OK;
}

enum status id_index_ready(struct id_index *index, const struct id_source *source,
                           int64_t last_number, struct error *error)
{
    enum status status = STATUS_OK;
    if (index->whole && last_number >= index->last_number && !is_outdated(index)) {
        if (last_number > index->last_number)
            status = catch_up(index, source, last_number, error);
        if (status == STATUS_OK)
            status = bound_tables(index, error);
        if (status != STATUS_FULL || !is_outdated(index))
            return status;
        /* There is no room because another process has written the same rows. */
    }
    return load_again(index, source, last_number, error);
}

/* ---- asking and adding ----------------------------------------------------------------------- */

/* The numbers of one key, as id_index_find was asked for them. */
struct search {
    uint64_t key;
    struct id_bits bits; /* of the filters */
    int64_t after;
    int64_t *numbers;
    size_t room, found;
};

static enum status find_in(struct id_index *index, const struct id_part *part,
                           struct search *search, struct error *error)
{
    int64_t *numbers = search->numbers + search->found;
    size_t room = search->room - search->found;
    size_t some = 0;
    if (part->last <= search->after)
        return STATUS_OK;
    if (part->table != NULL) {
        search->found += id_table_find(part->table, search->key, search->after, numbers, room);
        return STATUS_OK;
    }
    if (!id_run_may_have(part->run, search->key, &search->bits))
        return STATUS_OK;
    if (id_run_find(part->run, search->key, search->after, numbers, room, &some) == STATUS_OK) {
        search->found += some;
        return STATUS_OK;
    }
    id_run_reject(index, part->run);
    return error_set(error, index->beside.open != NULL ? STATUS_PENDING : STATUS_UNAVAILABLE,
                     "%s-ids/%lld-%lld.run: the index of transaction ids is damaged there, and "
                     "will be made again",
                     index->database, (long long)part->first, (long long)part->last);
}

enum status id_index_find(struct id_index *index, uint64_t key, int64_t after, int64_t *numbers,
                          size_t room, size_t *count, struct error *error)
{
    enum status status = STATUS_OK;
    struct search search = {key, id_filter_bits(index->identity, key), after, numbers, room, 0};
    CHECK(after < INT64_MAX && room > 0);
    if (!index->whole)
        return error_set(error, STATUS_UNAVAILABLE, "the index of transaction ids is not complete");
    uv_mutex_lock(&index->lock);
    /* Fetches the memory of all parts at once, rather than one after the other. */
    for (size_t i = 0; i < index->count; i++)
        if (index->parts[i].run != NULL)
            id_run_prefetch(index->parts[i].run, key);
    id_table_prefetch(id_newest(index)->table, key);
    /* Parts are in order of their rows, so the numbers are found in order. */
    for (size_t i = 0; i < index->count && search.found < room && status == STATUS_OK; i++)
        status = find_in(index, &index->parts[i], &search, error);
    uv_mutex_unlock(&index->lock);
    if (status == STATUS_OK)
        *count = search.found;
    return status;
}

void id_index_add(struct id_index *index, const struct id_entry *entries, size_t count,
                  int64_t last_number, const uint8_t proof[ID_PROOF_SIZE])
{
    CHECK(index->whole && !index->reads_only && count <= ID_ADDED_MAX &&
          last_number > index->last_number);
    uv_mutex_lock(&index->lock);
    struct id_part *part = id_newest(index);
    for (size_t i = 0; i < count; i++) {
        CHECK(entries[i].number > index->last_number && entries[i].number <= last_number);
        id_table_add(part->table, &entries[i]);
    }
    part->last = index->last_number = last_number;
    memcpy(part->proof, proof, ID_PROOF_SIZE);
    bool full = part->table->count >= ID_INDEX_TABLE_IDS;
    if (full)
        (void)id_part_append(index, last_number + 1);
    uv_mutex_unlock(&index->lock);
    if (full)
        id_parts_wake(index);
}

/* ---- rows that the ledger has lost ----------------------------------------------------------- */

enum status id_index_beyond(const char *database, const uint8_t identity[ID_IDENTITY_SIZE],
                            int64_t last_number, bool deletes, int64_t *last, struct error *error)
{
    struct id_directory directory = {.descriptor = -1};
    struct id_file *files = NULL;
    size_t count = 0;
    enum status status = id_directory_open(&directory, database, false, error);
    if (status == STATUS_OK && deletes)
        status = id_directory_lock(&directory, READY_PATIENCE_MS, error);
    if (status == STATUS_OK)
        status = id_directory_list(&directory, &files, &count, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct id_run *run = NULL;
        if (files[i].last <= last_number)
            continue;
        if (id_run_open(&run, directory.descriptor, files[i].name, identity, error) == STATUS_OK &&
            run->header.last > *last)
            *last = run->header.last;
        id_run_close(&run);
        if (deletes && unlinkat(directory.descriptor, files[i].name, 0) != 0 && errno != ENOENT)
            status = error_set(error, STATUS_UNAVAILABLE, "%s-ids/%s: cannot be deleted (%s)",
                               database, files[i].name, strerror(errno));
    }
    memory_free(files);
    id_directory_close(&directory);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- metrics --------------------------------------------------------------------------------- */

void id_index_facts(struct id_index *index, struct id_index_facts *facts)
{
    *facts = (struct id_index_facts){0};
    uv_mutex_lock(&index->lock);
    for (size_t i = 0; i < index->count; i++) {
        const struct id_part *part = &index->parts[i];
        facts->runs += part->run != NULL;
        facts->ids_in_runs += part->run != NULL ? part->run->header.count : 0;
        facts->ids_in_memory += part->table != NULL ? part->table->count : 0;
        facts->memory_bytes += part->run != NULL ? id_run_memory(part->run) : id_table_memory();
    }
    facts->last_number = (uint64_t)index->last_number;
    facts->written_bytes = index->written_bytes;
    facts->merges = index->merges;
    facts->made_again = atomic_load_explicit(&index->made_again, memory_order_relaxed);
    facts->write_failures = index->write_failures;
    facts->failing = index->failing;
    uv_mutex_unlock(&index->lock);
}
