/*
 * The jobs that pool threads run for the sports: read a value, make an entry of it, make its
 * answer.
 *
 * A job does not make an answer again when the value is the one before: another version of the same
 * bytes, or a catalog in which this event's row is the same. The new entry shares the old answer,
 * with its gzipped form and its entity tag.
 *
 * The list of a catalog takes longer to make than its index, and every request for an event waits
 * for the index alone. So a job publishes a catalog as soon as it is indexed. When a client asks
 * for the list, a second job makes it, and a third the gzipped form.
 */
#include "base/clock.h"
#include "sports/event.h"
#include "sports/shared.h"

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_unchanged(struct job *job);
static enum status make_entry(struct job *job, enum status read);

/* On a thread of the store's. The pool makes new entries; an unchanged value needs none. */
static void on_read(struct odds_read *read)
{
    struct job *job = (struct job *)(void *)((char *)read - offsetof(struct job, read));
    if (is_unchanged(job)) {
        sports_finish(job, make_entry(job, STATUS_OK));
        return;
    }
    enum status status = work_pool_submit(job->sports->pool, &job->work);
    if (status != STATUS_OK)
        sports_finish(job, status);
}

/* STATUS_PENDING: the job runs again later, perhaps already does. The caller must not touch it any
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
        job->read.catalog_version = job->both ? 0 : job->source->version;
    }
    job->read.done = on_read;
    return odds_store_read(job->sports->odds, &job->read);
}

/* A damaged value is logged when the damage begins, and again when it returns after a good read. A
 * malformed document is logged once for each version that is made ready. */
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
    relaxed_store(&entry->published_ms, job->read.value.published_ms);
    return entry;
}

static struct text read_bytes(const struct job *job)
{
    return (struct text){job->read.value.bytes, job->read.value.size};
}

/* Makes the forms of the answer that clients wanted of it, or of the one before it. */
static void complete(const struct job *job, struct answer *answer, const struct answer *before)
{
    bool gzip = answer_gzip_wanted(answer) || (before != NULL && answer_gzip_wanted(before));
    if (gzip && !answer_compressed(answer)) {
        answer_compress(answer);
        metrics_add(job->counters, SPORTS_GZIP_REBUILDS, 1);
    }
    metrics_add(job->counters, SPORTS_DIFFERENCES, answer_make_differences(answer));
}

/* An answer with this body: `before` when it has the same one. */
static struct answer *make_answer(const struct job *job, struct text body, struct answer *before)
{
    if (before != NULL && text_equals(answer_body(before), body))
        return answer_hold(before);
    metrics_add(job->counters, SPORTS_READY_REBUILDS, 1);
    struct answer *answer = answer_create_after(before, body, &job->sports->counts);
    complete(job, answer, before);
    return answer;
}

static struct entry *make_catalog(struct job *job, const struct entry *before)
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
    struct answer *list = before == NULL                 ? NULL
                          : entry_answer(before) != NULL ? entry_answer(before)
                                                         : before->list_before;
    entry_set_catalog(entry, catalog);
    if (list != NULL && text_equals(answer_body(list), catalog_list(catalog)))
        entry_set_answer(entry, answer_hold(list));
    else if (list != NULL && answer_differences_wanted(list))
        entry->list_before = answer_hold(list);
    metrics_add(job->counters, SPORTS_READY_REBUILDS, 1);
    return entry;
}

static struct entry *make_event(struct job *job, const struct entry *before)
{
    uint64_t version = job->read.value.version;
    if (version == 0)
        return make_empty(job, STATUS_NOT_FOUND, 0);
    struct buffer body = {0};
    size_t row_at;
    struct json_text_error error;
    if (event_body_append(job->sport, job->row, read_bytes(job), &body, &row_at, &error) !=
        STATUS_OK) {
        log_malformed(job, &error);
        buffer_free(&body);
        return make_empty(job, STATUS_MALFORMED, version);
    }
    struct answer *answer =
        make_answer(job, buffer_text(&body), before == NULL ? NULL : entry_answer(before));
    buffer_free(&body);
    struct entry *entry = make_empty(job, STATUS_OK, version);
    entry->row = (struct text){answer_body(answer).at + row_at, job->row->text.size};
    entry_set_answer(entry, answer);
    return entry;
}

/*
 * An event's answer holds its catalog row beside its odds, and the store must have held the two
 * together at some moment. The catalog was read before the odds. So the store returned, as of the
 * moment of the odds, the bytes at the row's place in the catalog as well, which costs little. If
 * they are not the row any more, the catalog has changed. If the store still holds that catalog, it
 * may say so instead. After several conflicts the job reads the whole catalog and the odds as of
 * one moment. False: as far as the job knows, the store did not hold them together.
 */
static bool was_stored_together(struct job *job)
{
    return job->read.same_catalog || event_row_as_of(&job->read.catalog, job->both, &job->row->id,
                                                     &job->row, &job->read_catalog);
}

/* Was `before` made of the same value? */
static bool is_still(const struct job *job, const struct entry *before)
{
    if (before == NULL || before->version != job->read.value.version)
        return false;
    return job->kind == JOB_CATALOG || before->status != STATUS_OK ||
           text_equals(before->row, job->row->text);
}

/* Will make_entry only confirm the entry of before? */
static bool is_unchanged(struct job *job)
{
    if (job->read.result != STATUS_OK || job->both)
        return false;
    struct entry *before = sports_hold_current(job->sports, job->slot);
    bool unchanged =
        is_still(job, before) && (job->kind == JOB_CATALOG || was_stored_together(job));
    entry_release(&before);
    return unchanged;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* STATUS_OK: the slot has an entry of the value. STATUS_CONFLICT: the row and the odds do not
 * belong together. A damaged value has no readable version, so its entry gets the expected one;
 * without that there is no entry. */
static enum status make_entry(struct job *job, enum status read)
{
    struct sports *sports = job->sports;
    bool damaged = read == STATUS_MALFORMED;
    if (read != STATUS_OK && !damaged)
        return read;
    if (damaged && !job->slot->damaged)
        log_damage(job);
    job->slot->damaged = damaged;
    if (damaged && job->expected == ODDS_VERSION_UNKNOWN)
        return read;
    if (job->kind == JOB_EVENT && !damaged && !was_stored_together(job))
        return STATUS_CONFLICT;
    struct entry *before = sports_hold_current(sports, job->slot);
    if (!damaged && is_still(job, before)) {
        /* The same bytes may have been published again. */
        relaxed_store(&before->published_ms, job->read.value.published_ms);
        entry_confirm(before, job->started_ns);
        entry_release(&before);
        return STATUS_OK;
    }
    struct entry *entry = damaged ? make_empty(job, STATUS_MALFORMED, job->expected)
                          : job->kind == JOB_CATALOG ? make_catalog(job, before)
                                                     : make_event(job, before);
    /* A cache notes its use once a second, and may have noted it in the entry before. */
    if (before != NULL)
        relaxed_store(&entry->asked_ms, relaxed_load(&before->asked_ms));
    sports_publish(sports, job->slot, entry);
    entry_release(&before);
    return STATUS_OK;
}

/* Makes the list, or, when it is there, the forms of it that are wanted. */
static void run_answer(struct job *job)
{
    struct entry *entry = job->source;
    if (entry_answer(entry) == NULL)
        entry_set_answer(entry, make_answer(job, catalog_list(entry->catalog), entry->list_before));
    else
        complete(job, entry_answer(entry), NULL);
    sports_finish(job, STATUS_OK);
}

void job_run(struct work *work)
{
    struct job *job = (struct job *)work;
    if (job->kind == JOB_ANSWER) {
        run_answer(job);
        return;
    }
    enum status status = read_value(job, job->kind == JOB_CATALOG ? ODDS_CATALOG : ODDS_MARKETS);
    if (status != STATUS_PENDING)
        sports_finish(job, make_entry(job, status));
}
