/*
 * The index of ids: opening it, asking it, adding to it, and reading the rows that no run covers.
 * id_index.h describes the index, id_parts.h its locks, id_merge.c the making of runs.
 */
#include "stores/platform/sqlite/ids/id_index.h"

#include "base/clock.h"
#include "base/memory.h"
#include "stores/platform/sqlite/ids/id_parts.h"
#include "stores/platform/sqlite/ids/id_run_write.h"

#define OPEN_PATIENCE_MS 60000 /* another process may be making runs again */
#define READY_PATIENCE_MS 5000
#define PROGRESS_ROWS 65536
#define LOG_EVERY_MS 2000
#define RUNS_UNMERGED 64 /* unmerged runs that a rebuild leaves to upkeep; each has a descriptor */

/* ---- reading rows ---------------------------------------------------------------------------- */

struct id_feed {
    struct id_index *index;
    const struct id_source *source;
    bool loads;                           /* holds `upkeep`: full tables are written at once, */
    const struct id_directory *directory; /* which is locked; NULL: it cannot be used */
    int64_t next, last;                   /* rows that may come */
    int64_t done, all;                    /* for the log */
    uint64_t logged_ms; /* when progress was last logged: only long reads log it */
    enum status status; /* why it was stopped */
    struct error *error;
};

static bool stop(struct id_feed *feed, enum status status)
{
    feed->status = status;
    return false;
}

/* Counts the tables; and says whether there are so many runs that merging cannot wait. */
static size_t count_tables(struct id_index *index, bool *merges)
{
    uv_mutex_lock(&index->lock);
    size_t tables = id_tables(index);
    *merges = index->count - tables > RUNS_UNMERGED;
    uv_mutex_unlock(&index->lock);
    return tables;
}

/* Under `upkeep`. STATUS_FULL: no table can be written, and memory is at its bound. */
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

/* Upkeep writes tables, unless it has failed to for too long. */
static enum status bound_tables(struct id_index *index, struct error *error)
{
    bool merges = false;
    if (count_tables(index, &merges) <= ID_INDEX_TABLES_MAX)
        return STATUS_OK;
    uv_mutex_lock(&index->upkeep);
    enum status status = write_tables(index, NULL, error);
    uv_mutex_unlock(&index->upkeep);
    return status;
}

bool id_feed_row(struct id_feed *feed, int64_t number, const uint64_t *keys, size_t count,
                 const uint8_t row_hash[ID_ROW_HASH_SIZE])
{
    struct id_index *index = feed->index;
    if (feed->status != STATUS_OK)
        return false;
    CHECK(count <= ID_ADDED_MAX);
    if (number < feed->next || number > feed->last)
        return stop(feed, error_set(feed->error, STATUS_MALFORMED,
                                    "rows of the ledger are not in order of their numbers"));
    uv_mutex_lock(&index->lock);
    struct id_part *part = id_newest(index);
    for (size_t i = 0; i < count; i++)
        id_table_add(part->table, &(struct id_entry){keys[i], number});
    part->last = number;
    memcpy(part->row_hash, row_hash, ID_ROW_HASH_SIZE);
    bool full = part->table->count >= ID_INDEX_TABLE_IDS;
    if (full)
        id_part_append(index, number + 1);
    uv_mutex_unlock(&index->lock);
    feed->next = number + 1;
    if (++feed->done % PROGRESS_ROWS == 0 &&
        clock_monotonic_ms() >= feed->logged_ms + LOG_EVERY_MS) {
        feed->logged_ms = clock_monotonic_ms();
        log_event(index->log, LOG_INFO, "the ledger's index of ids is being made from its rows",
                  LOG_INTEGER("done", feed->done), LOG_INTEGER("rows", feed->all));
    }
    if (!full)
        return true;
    if (index->once)
        return stop(feed, STATUS_FULL);
    id_parts_wake(index);
    enum status status = feed->loads ? write_tables(index, feed->directory, feed->error)
                                     : bound_tables(index, feed->error);
    return status == STATUS_OK || stop(feed, status);
}

/* The rows from `next` on, into the newest table and others after it. */
static enum status read_rows(struct id_feed *feed, int64_t last)
{
    struct id_index *index = feed->index;
    const struct id_source *source = feed->source;
    enum status status = STATUS_OK;
    feed->last = last;
    feed->all = last - feed->next + 1;
    feed->logged_ms = clock_monotonic_ms();
    if (feed->all > 0)
        status = source->read(source->context, feed->next, last, feed, feed->error);
    if (feed->status != STATUS_OK)
        status = feed->status;
    if (status != STATUS_OK)
        return status;
    uv_mutex_lock(&index->lock);
    id_newest(index)->last = index->last_number = last;
    uv_mutex_unlock(&index->lock);
    index->whole = true;
    return STATUS_OK;
}

/* ---- the runs of the directory --------------------------------------------------------------- */

/* Is a run of this ledger as it is now? Then it is `sound`. A row that cannot be read, or is
 * damaged itself, proves nothing against the run. */
static enum status check_history(const struct id_run *run, const struct id_file *file,
                                 const struct id_source *source, bool *sound, struct error *error)
{
    const struct id_run_header *header = &run->header;
    uint8_t row_hash[ID_ROW_HASH_SIZE];
    if (header->first != file->first || header->last != file->last) {
        (void)error_set(error, STATUS_MALFORMED, "it has another run's name");
        return STATUS_OK;
    }
    enum status status = source->row_hash(source->context, header->last, row_hash, error);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND)
        return status;
    *sound = status == STATUS_OK && memcmp(row_hash, header->row_hash, sizeof row_hash) == 0;
    if (!*sound)
        (void)error_set(error, STATUS_MALFORMED, "it is from another history of the ledger");
    return STATUS_OK;
}

/* Opens a run that begins with row `next`, if it is sound; else `error` says why it is not. */
static enum status open_run(struct id_index *index, const struct id_directory *directory,
                            const struct id_file *file, const struct id_source *source,
                            struct id_run **run, struct error *error)
{
    bool sound = false;
    enum status status =
        id_run_open(run, directory->descriptor, file->name, index->identity, !index->once, error);
    if (status == STATUS_OK)
        status = check_history(*run, file, source, &sound, error);
    else if (status == STATUS_MALFORMED || status == STATUS_NOT_FOUND)
        status = STATUS_OK;
    if (!sound)
        id_run_close(run);
    return status;
}

/*
 * Takes the runs that cover the rows from the first on, up to the row before `next`. Among runs
 * that begin with the same row the longest comes first: it was merged from the others, and a crash
 * has left those behind. A run that is not sound is deleted, and so are those after it: the rows
 * from there on are read again.
 */
static enum status take_runs(struct id_index *index, const struct id_directory *directory,
                             const struct id_source *source, int64_t last_number, int64_t *next,
                             struct error *error)
{
    struct id_file *files = NULL;
    size_t count = 0;
    enum status status = id_directory_list(directory, &files, &count, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct id_run *run = NULL;
        /* Another process has just written it, or the ledger has lost rows (ledger_end.c). */
        if (files[i].last > last_number)
            continue;
        if (files[i].first > *next)
            (void)error_set(error, STATUS_MALFORMED, "the part before it is missing");
        else if (files[i].first == *next)
            status = open_run(index, directory, &files[i], source, &run, error);
        if (run != NULL) {
            *next = files[i].last + 1;
            uv_mutex_lock(&index->lock);
            id_part_append_run(index, &run);
            uv_mutex_unlock(&index->lock);
        } else if (status == STATUS_OK && !index->once) {
            if (files[i].first >= *next)
                id_parts_reject(index, &files[i], error->text);
            (void)unlinkat(directory->descriptor, files[i].name, 0);
        }
    }
    memory_free(files);
    return status;
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

/* A directory that is not there is made when there is something to put there. One that cannot be
 * used, or locked (a file system need not have flock), is as good as none, as long as memory has
 * room. */
static enum status open_directory(struct id_index *index, int64_t last_number,
                                  struct id_directory *directory, uint32_t patience_ms,
                                  struct error *error)
{
    bool create = last_number >= ID_INDEX_TABLE_IDS && !index->once;
    enum status status = id_directory_open(directory, index->database, create, error);
    if (status == STATUS_OK && !index->once)
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

/* Makes all parts: of the runs in the directory, and of the rows after them. Under `upkeep`. */
static enum status load(struct id_index *index, const struct id_source *source, int64_t last_number,
                        uint32_t patience_ms, struct error *error)
{
    struct id_directory directory = {.descriptor = -1};
    struct id_feed feed = {
        .index = index, .source = source, .loads = true, .next = 1, .error = error};
    index->whole = false;
    drop_parts(index);
    relaxed_store(&index->outdated, false);
    index->state = 0;
    enum status status = open_directory(index, last_number, &directory, patience_ms, error);
    if (status == STATUS_OK && directory.descriptor >= 0) {
        feed.directory = &directory;
        status = take_runs(index, &directory, source, last_number, &feed.next, error);
    }
    if (status == STATUS_OK && feed.directory != NULL && !index->once) {
        id_directory_tidy(&directory);
        status = id_directory_state(&directory, &index->state, error);
    }
    uv_mutex_lock(&index->lock);
    id_part_append(index, feed.next);
    uv_mutex_unlock(&index->lock);
    if (status == STATUS_OK)
        status = read_rows(&feed, last_number);
    id_directory_close(&directory);
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
    opened->once = options->once;
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
    struct id_index *closed = memory_take(index);
    if (closed == NULL)
        return;
    if (closed->has_thread) {
        relaxed_store(&closed->hurry, true);
        background_stop(&closed->thread);
    }
    drop_parts(closed);
    memory_free(closed->parts);
    memory_free(closed->database);
    uv_mutex_destroy(&closed->upkeep);
    uv_mutex_destroy(&closed->lock);
    memory_free(closed);
}

static enum status load_again(struct id_index *index, const struct id_source *source,
                              int64_t last_number, struct error *error)
{
    relaxed_store(&index->hurry, true); /* a long merge gives up, since the writer waits */
    uv_mutex_lock(&index->upkeep);
    relaxed_store(&index->hurry, false);
    enum status status = load(index, source, last_number, READY_PATIENCE_MS, error);
    uv_mutex_unlock(&index->upkeep);
    id_parts_wake(index);
    return status;
}

static bool is_outdated(const struct id_index *index)
{
    return relaxed_load(&index->outdated);
}

/* The rows that another process has added. */
static enum status catch_up(struct id_index *index, const struct id_source *source,
                            int64_t last_number, struct error *error)
{
    struct id_feed feed = {
        .index = index, .source = source, .next = index->last_number + 1, .error = error};
    index->whole = false;
    return read_rows(&feed, last_number);
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
    return error_unavailable(
        error,
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
        return error_unavailable(error, "the index of transaction ids is not complete");
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
                  int64_t last_number, const uint8_t row_hash[ID_ROW_HASH_SIZE])
{
    CHECK(index->whole && count <= ID_ADDED_MAX && last_number > index->last_number);
    uv_mutex_lock(&index->lock);
    struct id_part *part = id_newest(index);
    for (size_t i = 0; i < count; i++) {
        CHECK(entries[i].number > index->last_number && entries[i].number <= last_number);
        id_table_add(part->table, &entries[i]);
    }
    part->last = index->last_number = last_number;
    memcpy(part->row_hash, row_hash, ID_ROW_HASH_SIZE);
    bool full = part->table->count >= ID_INDEX_TABLE_IDS;
    if (full)
        id_part_append(index, last_number + 1);
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
        if (id_run_open(&run, directory.descriptor, files[i].name, identity, true, error) ==
                STATUS_OK &&
            run->header.last > *last)
            *last = run->header.last;
        id_run_close(&run);
        if (deletes && unlinkat(directory.descriptor, files[i].name, 0) != 0 && errno != ENOENT)
            status = error_unavailable(error, "%s-ids/%s: cannot be deleted (%s)", database,
                                       files[i].name, strerror(errno));
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
        facts->memory_bytes += part->run != NULL ? id_run_memory(part->run) : sizeof *part->table;
    }
    facts->written_bytes = index->written_bytes;
    facts->merges = index->merges;
    facts->made_again = relaxed_load(&index->made_again);
    facts->write_failures = index->write_failures;
    facts->failing = index->failing;
    uv_mutex_unlock(&index->lock);
}
