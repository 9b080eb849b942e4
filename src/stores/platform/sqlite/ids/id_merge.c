/*
 * Writes full tables of the index of ids as runs, and merges runs: upkeep, and the thread that does
 * it.
 *
 * A run that replaces others is durable, under its name, before these are deleted. A crash in
 * between leaves too many runs and never too few; the next process that opens the directory takes
 * the longest run and deletes the ones that it covers.
 */

#include "base/clock.h"
#include "stores/platform/sqlite/ids/id_index.h"
#include "stores/platform/sqlite/ids/id_parts.h"
#include "stores/platform/sqlite/ids/id_run_write.h"

#define LOCK_PATIENCE_MS 5000
#define RETRY_NS ((uint64_t)5 * 1000000000)
#define MERGED_MAX (4 * ID_INDEX_FANOUT) /* runs at once */

/* ---- the choice ------------------------------------------------------------------------------ */

struct choice {
    size_t from, count;
};

static int level_of(const struct id_part *part)
{
    int level = 0;
    uint64_t bound = (uint64_t)ID_INDEX_TABLE_IDS * ID_INDEX_FANOUT;
    for (; level < ID_INDEX_LEVELS - 1 && part->run->header.count >= bound; level++)
        bound *= ID_INDEX_FANOUT;
    return level;
}

/* Full tables first, since they take memory. Otherwise it merges the newest runs of at most some
 * level's size, once there are ID_INDEX_FANOUT of it. Under `lock`. */
static bool choose(const struct id_index *index, bool merges, struct choice *choice)
{
    const size_t runs = index->count - id_tables(index);
    if (runs + 1 < index->count) {
        *choice = (struct choice){runs, 1};
        return true;
    }
    for (int level = 0; level < ID_INDEX_LEVELS - 1 && merges; level++) {
        size_t from = runs;
        size_t of_level = 0;
        for (; from > 0 && level_of(&index->parts[from - 1]) <= level; from--)
            of_level += level_of(&index->parts[from - 1]) == level;
        if (of_level >= ID_INDEX_FANOUT) {
            *choice = (struct choice){from, runs - from < MERGED_MAX ? runs - from : MERGED_MAX};
            return true;
        }
    }
    return false;
}

/* ---- one step -------------------------------------------------------------------------------- */

struct step {
    struct id_index *index;
    const struct id_directory *directory;
    struct choice choice;
    struct id_part parts[MERGED_MAX]; /* those chosen: tables that are full, and runs */
    char temporary[ID_NAME_SIZE], name[ID_NAME_SIZE];
};

/* The ids of the parts as one run, under its temporary name. */
static enum status write_parts(const struct step *step, struct id_run **run, struct error *error)
{
    struct id_stream streams[MERGED_MAX];
    size_t count = step->choice.count;
    const struct id_part *last = &step->parts[count - 1];
    struct id_run_plan plan = {.identity = step->index->identity,
                               .row_hash = last->row_hash,
                               .first = step->parts[0].first,
                               .last = last->last,
                               .end = &step->index->hurry};
    for (size_t i = 0; i < count; i++) {
        const struct id_part *part = &step->parts[i];
        if (part->table != NULL)
            id_stream_of_table(&streams[i], part->table);
        else
            id_stream_of_run(&streams[i], part->run);
        plan.count += part->table != NULL ? part->table->count : part->run->header.count;
    }
    enum status status = id_run_write(run, step->directory->descriptor, step->temporary,
                                      &step->directory->database, &plan, streams, count, error);
    for (size_t i = 0; i < count; i++) {
        const struct id_run *read = step->parts[i].run;
        id_stream_end(&streams[i]);
        if (status == STATUS_MALFORMED && read != NULL && relaxed_load(&read->damaged))
            id_run_reject(step->index, read);
    }
    return status;
}

/* Gives the run its name, so that it stays there. */
static enum status publish(const struct step *step, struct error *error)
{
    int directory = step->directory->descriptor;
    if (renameat(directory, step->temporary, directory, step->name) != 0)
        return error_unavailable(error, "rename: %s", strerror(errno));
    enum status status = id_directory_sync(step->directory, error);
    if (status != STATUS_OK)
        (void)unlinkat(directory, step->name, 0);
    return status;
}

/* Puts the run in the place of its parts. Newer parts follow it. */
static void replace(const struct step *step, struct id_run **run)
{
    struct id_index *index = step->index;
    size_t at = step->choice.from;
    uv_mutex_lock(&index->lock);
    index->written_bytes += id_run_file_size(*run);
    index->merges += step->choice.count > 1;
    id_part_set_run(&index->parts[at], run);
    id_parts_remove(index, at + 1, step->choice.count - 1);
    uv_mutex_unlock(&index->lock);
}

/* Makes the written run known. The caller holds the directory's lock. */
static enum status install(struct step *step, struct id_run **run, struct error *error)
{
    enum status status = id_parts_compare(step->index, step->directory, error);
    if (status == STATUS_OK)
        status = publish(step, error);
    if (status != STATUS_OK)
        return status;
    replace(step, run);
    for (size_t i = 0; i < step->choice.count; i++) {
        char name[ID_NAME_SIZE];
        id_run_name(step->parts[i].first, step->parts[i].last, name);
        if (step->parts[i].run != NULL)
            (void)unlinkat(step->directory->descriptor, name, 0);
        id_part_end(&step->parts[i]);
    }
    /* Should this fail, the next step finds that the directory has changed. */
    (void)!id_directory_state(step->directory, &step->index->state, NULL);
    return STATUS_OK;
}

static enum status run_step(struct step *step, bool locked, struct error *error)
{
    struct id_run *run = NULL;
    const struct id_part *last = &step->parts[step->choice.count - 1];
    id_temporary_name(step->temporary);
    id_run_name(step->parts[0].first, last->last, step->name);
    enum status status = write_parts(step, &run, error);
    if (status != STATUS_OK)
        return status;
    if (!locked)
        status = id_directory_lock(step->directory, LOCK_PATIENCE_MS, error);
    if (status == STATUS_OK)
        status = install(step, &run, error);
    if (run != NULL) { /* after a rename it is not there any more */
        (void)unlinkat(step->directory->descriptor, step->temporary, 0);
        id_run_close(&run);
    }
    return status;
}

/* A reason is logged once, until it is another one or gone. */
static void note(struct id_index *index, enum status status, const struct error *error)
{
    bool failed =
        status == STATUS_UNAVAILABLE || status == STATUS_TIMEOUT || status == STATUS_READ_ONLY;
    if (status != STATUS_OK && !failed)
        return;
    uv_mutex_lock(&index->lock);
    bool was_failing = index->failing;
    index->failing = failed;
    index->write_failures += failed;
    uv_mutex_unlock(&index->lock);
    if (failed && strcmp(index->reason.text, error->text) != 0) {
        index->reason = *error;
        log_event(index->log, LOG_WARNING,
                  "index of transaction ids cannot be written, and stays in memory",
                  LOG_STRING("reason", error->text));
    } else if (!failed && was_failing) {
        index->reason.text[0] = '\0';
        log_event(index->log, LOG_INFO, "index of transaction ids is written again");
    }
}

enum status id_merge_step(struct id_index *index, bool merges, const struct id_directory *directory,
                          struct error *error)
{
    struct id_directory own = {.descriptor = -1};
    struct step step = {.index = index, .directory = directory != NULL ? directory : &own};
    uv_mutex_lock(&index->lock);
    bool wanted = choose(index, merges, &step.choice);
    if (wanted)
        memcpy(step.parts, &index->parts[step.choice.from],
               step.choice.count * sizeof step.parts[0]);
    uv_mutex_unlock(&index->lock);
    if (!wanted)
        return STATUS_NOT_FOUND;
    enum status status = STATUS_OK;
    if (directory == NULL)
        status = id_directory_open(&own, index->database, true, error);
    if (status == STATUS_OK)
        status = run_step(&step, directory != NULL, error);
    id_directory_close(&own);
    note(index, status, error);
    return status;
}

/* ---- upkeep ---------------------------------------------------------------------------------- */

bool id_index_wants_upkeep(struct id_index *index)
{
    struct choice choice = {0};
    if (relaxed_load(&index->outdated))
        return false;
    uv_mutex_lock(&index->lock);
    bool wanted = choose(index, true, &choice);
    uv_mutex_unlock(&index->lock);
    return wanted;
}

void id_index_upkeep(struct id_index *index)
{
    enum status status = STATUS_OK;
    struct error error = {0};
    uv_mutex_lock(&index->upkeep);
    while (status == STATUS_OK && !relaxed_load(&index->hurry) && !relaxed_load(&index->outdated))
        status = id_merge_step(index, true, NULL, &error);
    uv_mutex_unlock(&index->upkeep);
}

static void run(void *argument)
{
    struct id_index *index = argument;
    struct background *thread = &index->thread;
    uv_mutex_lock(&thread->lock);
    while (!thread->stopping) {
        uint64_t retry_ns = clock_monotonic_ns() + RETRY_NS;
        while (!index->woken && !thread->stopping &&
               condition_wait_until(&thread->wake, &thread->lock, retry_ns)) {
        }
        bool ends = thread->stopping;
        index->woken = false;
        uv_mutex_unlock(&thread->lock);
        if (!ends && id_index_wants_upkeep(index))
            id_index_upkeep(index);
        uv_mutex_lock(&thread->lock);
    }
    uv_mutex_unlock(&thread->lock);
}

void id_index_start(struct id_index *index)
{
    CHECK(!index->has_thread);
    index->has_thread = true;
    background_start(&index->thread, "ledger-ids", run, index);
    id_parts_wake(index);
}
