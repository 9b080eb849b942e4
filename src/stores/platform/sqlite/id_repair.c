/*
 * Makes a damaged run again from its rows, while all else goes on: on upkeep's thread, which reads
 * the rows by its own handle. The rows that a run covers never change.
 *
 * The new parts are in their own list, with runs in the index's directory, until they replace the
 * damaged run. Until then look-ups that meet the damage are refused, and all others are answered,
 * also from the sound blocks of that run. The damaged file is deleted first: if the process is
 * killed in between, the directory has too few runs, which the next process makes again, and never
 * a damaged one.
 */
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "stores/platform/sqlite/id_parts.h"

#define LOCK_PATIENCE_MS 5000
#define ROWS_AT_ONCE \
    65536 /* so that no long reading keeps the database's log from being restarted */

struct repair {
    struct id_index *index;
    struct id_index *made; /* its parts take the place of: */
    int64_t first, last;
    uint8_t proof[ID_PROOF_SIZE];
    struct id_directory directory;
};

/* A place in the list; its length: none is damaged. */
static size_t find_damaged(const struct id_index *index)
{
    size_t at = 0;
    while (at < index->count &&
           (index->parts[at].run == NULL ||
            !atomic_load_explicit(&index->parts[at].run->damaged, memory_order_relaxed)))
        at++;
    return at;
}

bool id_repair_is_wanted(const struct id_index *index)
{
    return index->beside.open != NULL && find_damaged(index) < index->count;
}

/* False: there is nothing to do. */
static bool choose(struct repair *repair)
{
    struct id_index *index = repair->index;
    uv_mutex_lock(&index->lock);
    bool wanted = id_repair_is_wanted(index);
    if (wanted) {
        const struct id_part *part = &index->parts[find_damaged(index)];
        repair->first = part->first;
        repair->last = part->last;
        memcpy(repair->proof, part->proof, sizeof repair->proof);
    }
    uv_mutex_unlock(&index->lock);
    return wanted;
}

/* ---- the new parts --------------------------------------------------------------------------- */

static void create_made(struct repair *repair)
{
    const struct id_index *index = repair->index;
    struct id_index *made = memory_alloc_zeroed(1, sizeof *made);
    made->database = index->database;
    memcpy(made->identity, index->identity, sizeof made->identity);
    made->log = index->log;
    made->state = index->state;
    CHECK(uv_mutex_init(&made->lock) == 0);
    (void)id_part_append(made, repair->first);
    repair->made = made;
}

static void destroy_made(struct repair *repair)
{
    struct id_index *made = repair->made;
    for (size_t i = 0; i < made->count; i++)
        id_part_end(&made->parts[i]);
    memory_free(made->parts);
    uv_mutex_destroy(&made->lock);
    memory_free(made);
}

static enum status read_rows(struct repair *repair, struct error *error)
{
    struct id_index *index = repair->index;
    struct id_source source;
    struct id_span span = {.all = repair->last - repair->first + 1};
    enum status status = index->beside.open(index->beside.context, index->identity, &source, error);
    if (status != STATUS_OK)
        return status;
    for (span.first = repair->first; span.first <= repair->last && status == STATUS_OK;
         span.first = span.last + 1) {
        int64_t left = repair->last - span.first;
        span.last = span.first + (left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE - 1);
        status =
            id_span_read(repair->made, &source, &span, &repair->directory, &index->hurry, error);
    }
    index->beside.close(&source);
    return status;
}

/* ---- in its place ---------------------------------------------------------------------------- */

/* Are these rows those that the run was made of? */
static enum status check_proof(const struct repair *repair, struct error *error)
{
    const struct id_index *made = repair->made;
    const struct id_part *last = &made->parts[made->count - 1];
    if (last->last == repair->last && memcmp(last->proof, repair->proof, ID_PROOF_SIZE) == 0)
        return STATUS_OK;
    atomic_store_explicit(&repair->index->outdated, true, memory_order_relaxed);
    return error_set(error, STATUS_CONFLICT, "it is from another history of the ledger");
}

static void replace(struct repair *repair)
{
    struct id_index *index = repair->index;
    struct id_index *made = repair->made;
    uv_mutex_lock(&index->lock);
    size_t at = 0; /* only upkeep removes parts, so it is still there */
    while (at < index->count && index->parts[at].first != repair->first)
        at++;
    CHECK(at < index->count && index->parts[at].run != NULL);
    struct id_run *damaged = index->parts[at].run;
    id_parts_put(index, at, made->parts, made->count);
    index->written_bytes += made->written_bytes;
    index->merges += made->merges;
    uv_mutex_unlock(&index->lock);
    id_run_close(&damaged);
    made->count = 0;
}

/* Its files, when they are not used. */
static void delete_made(const struct repair *repair)
{
    char name[ID_NAME_SIZE];
    for (size_t i = 0; i < repair->made->count; i++) {
        const struct id_part *part = &repair->made->parts[i];
        id_run_name(part->first, part->last, name);
        if (part->run != NULL)
            (void)unlinkat(repair->directory.descriptor, name, 0);
    }
}

/* With the directory's lock. */
static enum status make_again(struct repair *repair, struct error *error)
{
    char name[ID_NAME_SIZE];
    id_run_name(repair->first, repair->last, name);
    if (unlinkat(repair->directory.descriptor, name, 0) == 0)
        (void)!id_directory_state(&repair->directory, &repair->index->state, NULL);
    create_made(repair);
    enum status status = read_rows(repair, error);
    if (status == STATUS_OK) {
        id_parts_drop_empty(repair->made);
        status = check_proof(repair, error);
    }
    if (status == STATUS_OK)
        replace(repair);
    else
        delete_made(repair);
    /* Should this fail, the next step finds that the directory has changed. */
    (void)!id_directory_state(&repair->directory, &repair->index->state, NULL);
    destroy_made(repair);
    return status;
}

/* A reason is logged once, until it is another one. */
static void note(const struct repair *repair, enum status status, const struct error *error)
{
    struct id_index *index = repair->index;
    char name[ID_NAME_SIZE];
    id_run_name(repair->first, repair->last, name);
    if (status == STATUS_OK)
        log_event(index->log, LOG_INFO, "part of the index of transaction ids was made again",
                  LOG_STRING("file", name));
    else if (status != STATUS_CONFLICT && strcmp(index->reason.text, error->text) != 0)
        log_event(index->log, LOG_WARNING,
                  "part of the index of transaction ids cannot be made again, and requests that "
                  "need it are refused",
                  LOG_STRING("file", name), LOG_STRING("reason", error->text));
    index->reason = status == STATUS_OK ? (struct error){0} : *error;
}

enum status id_repair_step(struct id_index *index, struct error *error)
{
    struct repair repair = {.index = index, .directory = {.descriptor = -1}};
    if (!choose(&repair))
        return STATUS_NOT_FOUND;
    enum status status = id_directory_open(&repair.directory, index->database, true, error);
    if (status == STATUS_OK)
        status = id_directory_lock(&repair.directory, LOCK_PATIENCE_MS, error);
    if (status == STATUS_OK)
        status = id_parts_compare(index, &repair.directory, error);
    if (status == STATUS_OK)
        status = make_again(&repair, error);
    id_directory_close(&repair.directory);
    note(&repair, status, error);
    return status;
}
