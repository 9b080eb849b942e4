/*
 * The shared side of the sports: where entries are found, and how one job serves all who wait for
 * it; see shared.h.
 *
 * One lock guards the tables. It is held for a few look-ups at a time, never while anything is read
 * or made, and not at all for a request that a cache answers from what it has at hand. A job cannot
 * be missed: it is found, joined and ended under the lock, and completions are posted under it too,
 * so that a cache that has called its completions back may take its mailbox away.
 */
#include "sports/shared.h"

#include "base/json_writer.h"
#include "base/memory.h"

/* ---- life ------------------------------------------------------------------------------------ */

/* {"sports":[{"key":…,"name":…}, …]}, in canonical order. */
static struct answer *make_list(sport_set allowed, struct answer_counts *counts)
{
    struct buffer body = {0};
    struct json_writer json = {.out = &body};
    json_object(&json, NULL);
    json_array(&json, "sports");
    for (int i = 0; i < SPORT_COUNT; i++) {
        if ((allowed & SPORT_BIT(i)) == 0)
            continue;
        json_object(&json, NULL);
        json_string(&json, "key", sport_key((enum sport)i));
        json_string(&json, "name", sport_name((enum sport)i));
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
    struct answer *answer = answer_create(buffer_text(&body), counts);
    answer_compress(answer);
    buffer_free(&body);
    return answer;
}

struct sports *sports_create(struct odds_store *odds, uint32_t read_ms, struct work_pool *pool,
                             struct log *log)
{
    struct sports *sports = memory_alloc_zeroed(1, sizeof *sports);
    CHECK(pthread_mutex_init(&sports->lock, NULL) == 0);
    CHECK(pthread_cond_init(&sports->no_jobs, NULL) == 0);
    sports->odds = odds;
    sports->read_ms = read_ms;
    sports->pool = pool;
    sports->log = log;
    atomic_init(&sports->counts.answers, 0);
    atomic_init(&sports->counts.bytes, 0);
    event_table_init(&sports->events);
    for (sport_set set = 0; set <= SPORT_SET_ALL; set++)
        sports->lists[set] = make_list(set, &sports->counts);
    return sports;
}

static void drop_event(struct sports *sports, struct slot *slot)
{
    CHECK(slot->job == NULL);
    event_table_remove(&sports->events, &slot->node);
    entry_release(&slot->current);
    memory_free(slot);
}

void sports_drain(struct sports *sports)
{
    CHECK(pthread_mutex_lock(&sports->lock) == 0);
    while (sports->job_count > 0)
        CHECK(pthread_cond_wait(&sports->no_jobs, &sports->lock) == 0);
    CHECK(pthread_mutex_unlock(&sports->lock) == 0);
}

void sports_destroy(struct sports **sports)
{
    struct sports *mine = *sports;
    *sports = NULL;
    if (mine == NULL)
        return;
    while (mine->events.oldest != NULL)
        drop_event(mine, (struct slot *)mine->events.oldest);
    event_table_free(&mine->events);
    for (int i = 0; i < SPORT_COUNT; i++) {
        CHECK(mine->catalogs[i].job == NULL);
        entry_release(&mine->catalogs[i].current);
    }
    for (sport_set set = 0; set <= SPORT_SET_ALL; set++)
        answer_release(&mine->lists[set]);
    CHECK(atomic_load(&mine->counts.answers) == 0 && atomic_load(&mine->counts.bytes) == 0);
    CHECK(mine->job_count == 0);
    CHECK(pthread_cond_destroy(&mine->no_jobs) == 0);
    CHECK(pthread_mutex_destroy(&mine->lock) == 0);
    memory_free(mine);
}

void sports_facts(struct sports *sports, struct sports_facts *facts)
{
    *facts = (struct sports_facts){
        .answers = atomic_load_explicit(&sports->counts.answers, memory_order_relaxed),
        .bytes = atomic_load_explicit(&sports->counts.bytes, memory_order_relaxed),
    };
}

bool sports_too_large(const struct sports *sports)
{
    return atomic_load_explicit(&sports->counts.bytes, memory_order_relaxed) > SPORTS_BYTES_MAX;
}

static void lock(struct sports *sports)
{
    CHECK(pthread_mutex_lock(&sports->lock) == 0);
}

static void unlock(struct sports *sports)
{
    CHECK(pthread_mutex_unlock(&sports->lock) == 0);
}

/* ---- entries --------------------------------------------------------------------------------- */

struct entry *sports_hold_current(struct sports *sports, struct slot *slot)
{
    lock(sports);
    struct entry *entry = slot->current == NULL ? NULL : entry_hold(slot->current);
    unlock(sports);
    return entry;
}

struct entry *sports_newest_catalog(struct sports *sports, enum sport sport)
{
    return sports_hold_current(sports, &sports->catalogs[sport]);
}

struct entry *sports_newest_event(struct sports *sports, enum sport sport,
                                  const struct event_id *id, uint64_t now_ms)
{
    struct entry *entry = NULL;
    lock(sports);
    struct slot *slot = (struct slot *)event_table_find(&sports->events, sport, id);
    if (slot != NULL) {
        event_table_touch(&sports->events, &slot->node, now_ms);
        if (slot->current != NULL)
            entry = entry_hold(slot->current);
    }
    unlock(sports);
    return entry;
}

void sports_publish(struct sports *sports, struct slot *slot, struct entry *entry)
{
    lock(sports);
    struct entry *replaced = slot->current;
    slot->current = entry;
    unlock(sports);
    entry_release(&replaced);
}

/* When it was last asked for: caches that answer from an entry say so in it, not in the slot. */
static uint64_t slot_used_ms(const struct slot *slot)
{
    uint64_t asked_ms = slot->current == NULL
                            ? 0
                            : atomic_load_explicit(&slot->current->asked_ms, memory_order_relaxed);
    return asked_ms > slot->node.used_ms ? asked_ms : slot->node.used_ms;
}

/* Releases what was not asked for lately, a few at a time, and of the oldest when there are
 * too many or they are too large. Each new event comes by here, so the table cannot outgrow its
 * bound by more than the jobs in flight. */
static void drop_old_events(struct sports *sports, uint64_t now_ms)
{
    for (int i = 0; i < 4 && sports->events.oldest != NULL; i++) {
        struct slot *slot = (struct slot *)sports->events.oldest;
        bool too_many = sports->events.count >= SPORTS_EVENTS_MAX || sports_too_large(sports);
        uint64_t used_ms = slot_used_ms(slot);
        bool old = used_ms + SPORTS_KEEP_MS < now_ms;
        if (!too_many && slot->node.used_ms + SPORTS_KEEP_MS >= now_ms)
            return; /* nor are the others: they were used later */
        if (slot->job == NULL && (too_many || old))
            drop_event(sports, slot);
        else
            event_table_touch(&sports->events, &slot->node, now_ms);
    }
}

/* ---- jobs and completions -------------------------------------------------------------------- */

/* The lock is held. */
static struct job *start_job(const struct job *draft)
{
    struct job *job = memory_copy(draft, sizeof *draft);
    job->sports->job_count++;
    job->work.run = job_run;
    if (job->source != NULL)
        job->source = entry_hold(job->source);
    if (job->before != NULL)
        job->before = entry_hold(job->before);
    *job->place = job;
    return job;
}

static void free_job(struct job *job)
{
    entry_release(&job->source);
    entry_release(&job->before);
    catalog_release(&job->read_catalog);
    memory_free(job->read.value.bytes);
    memory_free(job->read.catalog.bytes);
    memory_free(job);
}

/* After the last that it does, since whoever waits for it takes everything down. The lock is
 * held. */
static void count_ended(struct sports *sports)
{
    CHECK(sports->job_count > 0);
    if (--sports->job_count == 0)
        CHECK(pthread_cond_broadcast(&sports->no_jobs) == 0);
}

/* Joins the job that is in the draft's place, or starts it. The lock is held. */
static enum status join(struct sports *sports, const struct job *draft,
                        struct completion *completion)
{
    struct job *job = *draft->place;
    if (job == NULL) {
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

/* Has a job put something into the slot since its owner looked? The lock is held. */
static bool has_news(const struct slot *slot, const struct completion_for *whom)
{
    if (slot->job != NULL || slot->current == NULL)
        return false;
    return slot->current != whom->seen ||
           atomic_load_explicit(&slot->current->checked_ns, memory_order_acquire) !=
               whom->seen_checked_ns;
}

enum status sports_want_catalog(struct sports *sports, enum sport sport, uint64_t expected,
                                struct completion_for whom)
{
    struct slot *slot = &sports->catalogs[sport];
    enum status status = STATUS_OK;
    lock(sports);
    if (!has_news(slot, &whom))
        status = join(sports,
                      &(struct job){.sports = sports,
                                    .metrics = whom.metrics,
                                    .kind = JOB_CATALOG,
                                    .sport = sport,
                                    .place = &slot->job,
                                    .slot = slot,
                                    .expected = expected},
                      whom.completion);
    unlock(sports);
    return status;
}

enum status sports_want_event(struct sports *sports, enum sport sport, struct entry *catalog,
                              const struct catalog_row *row, uint64_t expected, uint64_t now_ms,
                              struct completion_for whom)
{
    enum status status = STATUS_OK;
    lock(sports);
    struct slot *slot = (struct slot *)event_table_find(&sports->events, sport, &row->id);
    if (slot == NULL) {
        drop_old_events(sports, now_ms);
        slot = memory_alloc_zeroed(1, sizeof *slot);
        event_table_add(&sports->events, &slot->node, sport, &row->id, now_ms);
    }
    if (!has_news(slot, &whom))
        status = join(sports,
                      &(struct job){.sports = sports,
                                    .metrics = whom.metrics,
                                    .kind = JOB_EVENT,
                                    .sport = sport,
                                    .place = &slot->job,
                                    .slot = slot,
                                    .source = catalog,
                                    .row = row,
                                    .both = whom.both,
                                    .expected = expected},
                      whom.completion);
    unlock(sports);
    return status;
}

enum status sports_want_answer(struct sports *sports, struct entry *entry, bool gzip,
                               struct completion_for whom)
{
    lock(sports);
    enum status status = join(sports,
                              &(struct job){.sports = sports,
                                            .metrics = whom.metrics,
                                            .kind = JOB_ANSWER,
                                            .place = &entry->job,
                                            .source = entry,
                                            .gzip = gzip},
                              whom.completion);
    unlock(sports);
    return status;
}

struct job *sports_follow_up(struct sports *sports, const struct job *draft)
{
    lock(sports);
    struct job *job = *draft->place == NULL ? start_job(draft) : NULL;
    unlock(sports);
    return job;
}

void sports_finish(struct job *job, enum status result)
{
    struct sports *sports = job->sports;
    lock(sports);
    *job->place = NULL;
    struct completion *completion = job->completions;
    while (completion != NULL) {
        struct completion *next = completion->next;
        completion->job = NULL;
        completion->result = result;
        mailbox_post(completion->mailbox, &completion->mail); /* from here on it is the cache's */
        completion = next;
    }
    unlock(sports);
    free_job(job);
    lock(sports);
    count_ended(sports);
    unlock(sports);
}

bool sports_forget(struct sports *sports, struct completion *completion)
{
    bool forgotten = false;
    lock(sports);
    if (completion->job != NULL) {
        struct completion **link = &completion->job->completions;
        while (*link != completion)
            link = &(*link)->next;
        *link = completion->next;
        completion->job = NULL;
        forgotten = true;
    }
    unlock(sports);
    return forgotten;
}
