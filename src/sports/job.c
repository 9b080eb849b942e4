/*
 * What pool threads do for the sports: read a value, make an entry of it, make its answer.
 *
 * A value that is found to be what was made ready before (another version of the same bytes, or a
 * catalog in which this event's row is the same) is not made again: the new entry shares the old
 * answer, with its gzipped form and its entity tag.
 *
 * The list of a catalog takes longer to make than its index, and everybody who asks for an event
 * waits for the index alone. So a catalog is published as soon as it is indexed, and its list
 * follows as a job of its own: at once when the last list was asked for lately, otherwise on
 * demand. The gzipped list follows the plain one in the same way.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "sports/event.h"
#include "sports/shared.h"

/* ---- reading --------------------------------------------------------------------------------- */

static void on_read(struct odds_read *read)
{
    struct job *job = (struct job *)(void *)((char *)read - offsetof(struct job, read));
    enum status status = work_pool_submit(job->sports->pool, &job->work);
    if (status != STATUS_OK)
        sports_finish(job, status);
}

/* STATUS_PENDING: the job will be run again, perhaps already is: it must not be touched any
 * more. */
static enum status read_value(struct job *job, enum odds_kind kind)
{
    if (job->reading)
        return job->read.result;
    job->reading = true;
    job->started_ns = clock_monotonic_ns();
    job->read.kind = kind;
    job->read.sport = job->sport;
    if (kind == ODDS_MARKETS) {
        job->read.event = job->row->id;
        job->read.catalog.at = job->both ? 0 : job->row->at;
        job->read.catalog.max = job->both ? ODDS_VALUE_MAX : job->row->size;
    }
    job->read.done = on_read;
    return odds_store_read(job->sports->odds, &job->read);
}

/* Damage is logged when it comes up, and again when it comes back after something readable; a
 * malformed document as often as a version of it is made ready, which is once. */
static void log_damage(const struct job *job)
{
    log_event(
        job->sports->log, LOG_WARNING, "a stored value is damaged",
        LOG_STRING("sport", sport_key(job->sport)),
        LOG_STRING("value", job->kind == JOB_CATALOG ? "catalog" : "odds"),
        LOG_TEXT("event", job->kind == JOB_CATALOG ? TEXT("") : event_id_text(&job->row->id)));
}

static void log_malformed(const struct job *job, const struct json_text_error *error)
{
    log_event(job->sports->log, LOG_WARNING, "a stored document is malformed",
              LOG_STRING("sport", sport_key(job->sport)),
              LOG_STRING("value", job->kind == JOB_CATALOG ? "catalog" : "odds"),
              LOG_TEXT("event", job->kind == JOB_CATALOG ? TEXT("") : event_id_text(&job->row->id)),
              LOG_INTEGER("line", error->line), LOG_INTEGER("column", error->column),
              LOG_STRING("reason", error->reason));
}

/* ---- making ---------------------------------------------------------------------------------- */

static struct entry *make_empty(const struct job *job, enum status status, uint64_t version)
{
    struct entry *entry = entry_create(status, version, job->started_ns, &job->sports->counts);
    atomic_store_explicit(&entry->published_ms, job->read.value.published_ms, memory_order_relaxed);
    return entry;
}

static struct text read_bytes(const struct job *job)
{
    return (struct text){job->read.value.bytes, job->read.value.size};
}

static struct entry *make_catalog(struct job *job)
{
    uint64_t version = job->read.value.version;
    if (version == 0)
        return make_empty(job, STATUS_NOT_FOUND, 0);
    struct catalog *catalog;
    struct json_text_error error;
    if (catalog_create(read_bytes(job), &catalog, &error) != STATUS_OK) {
        log_malformed(job, &error);
        return make_empty(job, STATUS_MALFORMED, version);
    }
    struct entry *entry = make_empty(job, STATUS_OK, version);
    entry_set_catalog(entry, catalog);
    metrics_add(job->counters, SPORTS_READY_REBUILDS, 1);
    return entry;
}

/* An answer of this body: the one from before when it has the same. */
static struct answer *make_answer(const struct job *job, struct text body, struct answer *before)
{
    if (before != NULL && text_equals(answer_body(before), body))
        return answer_hold(before);
    metrics_add(job->counters, SPORTS_READY_REBUILDS, 1);
    return answer_create(body, &job->sports->counts);
}

static void compress(const struct job *job, struct answer *answer)
{
    if (answer_compressed(answer))
        return;
    answer_compress(answer);
    metrics_add(job->counters, SPORTS_GZIP_REBUILDS, 1);
}

static struct entry *make_event(struct job *job, const struct entry *before)
{
    uint64_t version = job->read.value.version;
    if (version == 0)
        return make_empty(job, STATUS_NOT_FOUND, 0);
    struct buffer body = {0};
    struct event_row_place place;
    struct json_text_error error;
    if (event_body_append(job->sport, job->row, read_bytes(job), &body, &place, &error) !=
        STATUS_OK) {
        log_malformed(job, &error);
        buffer_free(&body);
        return make_empty(job, STATUS_MALFORMED, version);
    }
    struct answer *answer_before = before == NULL ? NULL : entry_answer(before);
    struct answer *answer = make_answer(job, buffer_text(&body), answer_before);
    buffer_free(&body);
    if (answer_before != NULL && answer_gzip_wanted(answer_before))
        compress(job, answer);
    struct entry *entry = make_empty(job, STATUS_OK, version);
    entry->row = (struct text){answer_body(answer).at + place.offset, place.size};
    entry_set_answer(entry, answer);
    return entry;
}

/*
 * An event's answer holds its row of the catalog beside its odds, and the two must have been stored
 * together at some moment. The catalog was read before the odds. So the row is looked at again as
 * of the moment when the odds were read: at its place in the stored catalog, which costs little.
 * When it is no longer there, the catalog has moved on; and when that happens again and again, both
 * are read as of one moment. False: they were not stored together, as far as is known.
 */
static bool was_stored_together(struct job *job)
{
    struct event_id event = job->row->id;
    return event_row_as_of(&job->read.catalog, job->both, &event, &job->row, &job->read_catalog);
}

/* Is what was read what `before` was made of? */
static bool is_still(const struct job *job, const struct entry *before)
{
    if (before == NULL || before->version != job->read.value.version)
        return false;
    return job->kind == JOB_CATALOG || before->status != STATUS_OK ||
           text_equals(before->row, job->row->text);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* The list of a catalog that was just published, when the one before it was asked for lately. */
static struct job *list_follow_up(const struct job *job, struct entry *entry, struct entry *before)
{
    if (entry->status != STATUS_OK || before == NULL || entry_answer(before) == NULL)
        return NULL;
    uint64_t asked_ms = atomic_load_explicit(&before->asked_ms, memory_order_relaxed);
    if (asked_ms + SPORTS_KEEP_MS < clock_monotonic_ms())
        return NULL;
    return sports_follow_up(job->sports, &(struct job){.sports = job->sports,
                                                       .counters = job->counters,
                                                       .kind = JOB_ANSWER,
                                                       .place = &entry->job,
                                                       .source = entry,
                                                       .before = before});
}

static struct entry *make_what_was_read(struct job *job, enum status read,
                                        const struct entry *before)
{
    if (read == STATUS_MALFORMED)
        return make_empty(job, STATUS_MALFORMED, job->expected);
    return job->kind == JOB_CATALOG ? make_catalog(job) : make_event(job, before);
}

/* STATUS_OK: an entry of what was read is in the slot. STATUS_CONFLICT: what was read does not
 * belong together. A damaged value has no version to be remembered by, unless it is known from
 * before. */
static enum status make_entry(struct job *job, enum status read, struct job **follow_up)
{
    struct sports *sports = job->sports;
    bool damaged = read == STATUS_MALFORMED;
    if (read != STATUS_OK && !damaged)
        return read;
    if (damaged && !job->slot->damaged)
        log_damage(job);
    job->slot->damaged = damaged;
    if (damaged && job->expected == 0)
        return read;
    if (job->kind == JOB_EVENT && !damaged && !was_stored_together(job))
        return STATUS_CONFLICT;
    struct entry *before = sports_hold_current(sports, job->slot);
    if (!damaged && is_still(job, before)) {
        /* The same bytes may have been published again. */
        atomic_store_explicit(&before->published_ms, job->read.value.published_ms,
                              memory_order_relaxed);
        entry_confirm(before, job->started_ns);
        entry_release(&before);
        return STATUS_OK;
    }
    struct entry *entry = make_what_was_read(job, read, before);
    /* Who asks is noted once a second, which may have been of the one before. */
    if (before != NULL)
        atomic_store_explicit(&entry->asked_ms,
                              atomic_load_explicit(&before->asked_ms, memory_order_relaxed),
                              memory_order_relaxed);
    if (job->kind == JOB_CATALOG)
        *follow_up = list_follow_up(job, entry, before);
    sports_publish(sports, job->slot, entry);
    entry_release(&before);
    return STATUS_OK;
}

/* Makes the list when it is missing, and the gzipped form when it is wanted. */
static struct job *run_answer(struct job *job)
{
    struct sports *sports = job->sports;
    struct entry *entry = entry_hold(job->source);
    struct answer *before = job->before == NULL ? NULL : entry_answer(job->before);
    if (entry_answer(entry) == NULL)
        entry_set_answer(entry, make_answer(job, catalog_list(entry->catalog), before));
    if (job->gzip)
        compress(job, entry_answer(entry));
    bool gzip_next = !job->gzip && before != NULL && answer_gzip_wanted(before);
    struct job gzip = {.sports = sports,
                       .counters = job->counters,
                       .kind = JOB_ANSWER,
                       .place = &entry->job,
                       .source = entry,
                       .gzip = true};
    sports_finish(job, STATUS_OK);
    struct job *follow_up = gzip_next ? sports_follow_up(sports, &gzip) : NULL;
    entry_release(&entry);
    return follow_up;
}

static struct job *run_entry(struct job *job)
{
    struct job *follow_up = NULL;
    enum status status = read_value(job, job->kind == JOB_CATALOG ? ODDS_CATALOG : ODDS_MARKETS);
    if (status == STATUS_PENDING)
        return NULL;
    status = make_entry(job, status, &follow_up);
    sports_finish(job, status);
    return follow_up;
}

/* What follows is run by the same thread: a pool that is about to end takes nothing new. */
void job_run(struct work *work)
{
    struct job *job = (struct job *)work;
    while (job != NULL)
        job = job->kind == JOB_ANSWER ? run_answer(job) : run_entry(job);
}
