/*
 * The tables that all serving threads share: which entry is current for each value, and which job
 * is making the next one; see shared.h.
 *
 * One lock guards the tables. It is held for a few look-ups at a time, never while anything is read
 * or made, and not at all for a request that a cache answers from what it holds. A job cannot be
 * missed: it is found, joined and ended under the lock, and completions are posted under it too, so
 * that a cache that has withdrawn its completions may take its mailbox away.
 */
#include "sports/shared.h"

#include "base/memory.h"

/* ---- entries --------------------------------------------------------------------------------- */

struct entry *sports_hold_current(struct sports *sports, struct slot *slot)
{
    uv_mutex_lock(&sports->lock);
    struct entry *entry = slot->current == NULL ? NULL : entry_hold(slot->current);
    uv_mutex_unlock(&sports->lock);
    return entry;
}

struct entry *sports_newest(struct sports *sports, enum sport sport, const struct event_id *event,
                            uint64_t now_ms)
{
    if (event == NULL)
        return sports_hold_current(sports, &sports->catalogs[sport]);
    struct entry *entry = NULL;
    uv_mutex_lock(&sports->lock);
    struct slot *slot = (struct slot *)event_table_find(&sports->events, sport, event);
    if (slot != NULL) {
        event_table_touch(&sports->events, &slot->node, now_ms);
        if (slot->current != NULL)
            entry = entry_hold(slot->current);
    }
    uv_mutex_unlock(&sports->lock);
    return entry;
}

void sports_publish(struct sports *sports, struct slot *slot, struct entry *entry)
{
    uv_mutex_lock(&sports->lock);
    struct entry *replaced = slot->current;
    slot->current = entry;
    uv_mutex_unlock(&sports->lock);
    entry_release(&replaced);
}

void sports_drop_event(struct sports *sports, struct slot *slot)
{
    CHECK(slot->job == NULL);
    event_table_remove(&sports->events, &slot->node);
    entry_release(&slot->current);
    memory_free(slot);
}

bool sports_too_large(const struct sports *sports)
{
    return relaxed_load(&sports->counts.bytes) > SPORTS_BYTES_MAX;
}

/* When a request last asked for it. Caches that answer from an entry note that in the entry, not in
 * the slot. */
uint64_t sports_slot_used_ms(const struct slot *slot)
{
    uint64_t asked_ms = slot->current == NULL ? 0 : relaxed_load(&slot->current->asked_ms);
    return asked_ms > slot->node.used_ms ? asked_ms : slot->node.used_ms;
}

/* Drops events that no request asked for lately, a few at a time, and the oldest ones when there
 * are too many or they are too large. Each new event calls this, so the table exceeds its bound by
 * no more than the jobs in flight. */
static void drop_old_events(struct sports *sports, uint64_t now_ms)
{
    for (int i = 0; i < 4 && sports->events.count > 0; i++) {
        struct slot *slot = (struct slot *)event_table_oldest(&sports->events);
        bool too_many = sports->events.count >= SPORTS_EVENTS_MAX || sports_too_large(sports);
        uint64_t used_ms = sports_slot_used_ms(slot);
        bool old = used_ms + SPORTS_KEEP_MS < now_ms;
        if (!too_many && slot->node.used_ms + SPORTS_KEEP_MS >= now_ms)
            return; /* the others were used later */
        if (slot->job == NULL && (too_many || old))
            sports_drop_event(sports, slot);
        else
            event_table_touch(&sports->events, &slot->node, now_ms);
    }
}

/* The lock is held. */
static struct slot *event_slot(struct sports *sports, enum sport sport, const struct event_id *id,
                               uint64_t now_ms)
{
    struct slot *slot = (struct slot *)event_table_find(&sports->events, sport, id);
    if (slot != NULL)
        return slot;
    drop_old_events(sports, now_ms);
    slot = memory_alloc_zeroed(1, sizeof *slot);
    event_table_add(&sports->events, &slot->node, sport, id, now_ms);
    return slot;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* The job is in its draft's place until sports_finish. The lock is held. */
static struct job *start_job(const struct job *draft)
{
    struct job *job = memory_copy(draft, sizeof *draft);
    job->work.run = job->sports->run_job;
    job->sports->job_count++;
    if (job->source != NULL)
        job->source = entry_hold(job->source);
    *job->place = job;
    return job;
}

static void free_job(struct job *job)
{
    entry_release(&job->source);
    catalog_destroy(&job->read_catalog);
    memory_free(job->read.value.bytes);
    memory_free(job->read.catalog.bytes);
    memory_free(job);
}

/* Last of all: sports_drain waits for it, and its caller then frees everything. The lock is
 * held. */
static void count_ended(struct sports *sports)
{
    CHECK(sports->job_count > 0);
    if (--sports->job_count == 0)
        uv_cond_broadcast(&sports->no_jobs);
}

/* Joins the job that is in the draft's place, or starts it. Sets `to_run` when the caller must run
 * the job, without the lock. The lock is held. */
static enum status join(struct sports *sports, const struct job *draft,
                        struct completion *completion, struct job **to_run)
{
    struct job *job = *draft->place;
    if (job == NULL && draft->here) {
        job = *to_run = start_job(draft);
        completion->here = true;
    } else if (job == NULL) {
        job = start_job(draft);
        enum status status = work_pool_submit(sports->pool, &job->work);
        if (status != STATUS_OK) {
            *job->place = NULL;
            free_job(job);
            count_ended(sports);
            return status;
        }
    }
    completion->job = job;
    completion->next = job->completions;
    job->completions = completion;
    return STATUS_PENDING;
}

enum status sports_want(struct sports *sports, struct job draft, struct completion *completion,
                        uint64_t now_ms)
{
    struct job *to_run = NULL;
    draft.sports = sports;
    uv_mutex_lock(&sports->lock);
    if (draft.kind == JOB_ANSWER) {
        draft.place = &draft.source->job;
    } else {
        draft.slot = draft.kind == JOB_CATALOG
                         ? &sports->catalogs[draft.sport]
                         : event_slot(sports, draft.sport, &draft.row->id, now_ms);
        draft.place = &draft.slot->job;
    }
    enum status status = join(sports, &draft, completion, &to_run);
    uv_mutex_unlock(&sports->lock);
    if (to_run == NULL)
        return status;
    sports->run_job(&to_run->work);
    uv_mutex_lock(&sports->lock);
    completion->here = false; /* a job that still waits for the store posts its mail */
    if (completion->job == NULL)
        status = STATUS_OK;
    uv_mutex_unlock(&sports->lock);
    return status;
}

void sports_finish(struct job *job, enum status result)
{
    struct sports *sports = job->sports;
    uv_mutex_lock(&sports->lock);
    *job->place = NULL;
    struct completion *completion = job->completions;
    while (completion != NULL) {
        struct completion *next = completion->next;
        completion->job = NULL;
        completion->result = result;
        if (!completion->here)
            mailbox_post(completion->mailbox, &completion->mail); /* now it is the cache's */
        completion = next;
    }
    uv_mutex_unlock(&sports->lock);
    free_job(job);
    uv_mutex_lock(&sports->lock);
    count_ended(sports);
    uv_mutex_unlock(&sports->lock);
}

bool sports_forget(struct sports *sports, struct completion *completion)
{
    bool forgotten = false;
    uv_mutex_lock(&sports->lock);
    if (completion->job != NULL) {
        struct completion **link = &completion->job->completions;
        while (*link != completion)
            link = &(*link)->next;
        *link = completion->next;
        completion->job = NULL;
        forgotten = true;
    }
    uv_mutex_unlock(&sports->lock);
    return forgotten;
}
