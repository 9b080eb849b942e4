/*
 * The age of the odds and catalogs that customers see; see sports.h. It shows a feed that has
 * stopped in part: the catalog changes, but some odds do not.
 *
 * A job reads a value only when a request asks for it. So an entry's age counts up to the last
 * request for it. This file does not know of later publications, and no client has seen them.
 */

#include "base/clock.h"
#include "sports/shared.h"

/* Negative: no request asked for it within the minute, or the time of its publication is not
 * known. */
static int64_t age_ms(const struct entry *entry, uint64_t used_ms, uint64_t now_ms, int64_t wall_ms)
{
    if (entry == NULL || entry->status != STATUS_OK || used_ms == 0 ||
        used_ms + SPORTS_KEEP_MS < now_ms)
        return -1;
    int64_t published_ms = relaxed_load(&entry->published_ms);
    if (published_ms <= 0)
        return -1;
    int64_t asked_ms = wall_ms - (now_ms > used_ms ? (int64_t)(now_ms - used_ms) : 0);
    return asked_ms > published_ms ? asked_ms - published_ms : 0;
}

void sports_ages(struct sports *sports, struct sports_ages ages[SPORT_COUNT])
{
    uint64_t now_ms = clock_monotonic_ms();
    int64_t wall_ms = clock_wall_ms();
    int64_t stale_ms = (int64_t)relaxed_load(&sports->stale_after_s) * 1000;
    struct event_node *node;
    uv_mutex_lock(&sports->lock);
    for (size_t i = 0; i < SPORT_COUNT; i++) {
        const struct slot *slot = &sports->catalogs[i];
        ages[i] = (struct sports_ages){.odds_ms = -1};
        ages[i].catalog_ms = age_ms(slot->current, sports_slot_used_ms(slot), now_ms, wall_ms);
    }
    TAILQ_FOREACH (node, &sports->events.order, order) {
        const struct slot *slot = (const struct slot *)node;
        struct sports_ages *sport = &ages[node->sport];
        int64_t age = age_ms(slot->current, sports_slot_used_ms(slot), now_ms, wall_ms);
        if (age > sport->odds_ms)
            sport->odds_ms = age;
        if (stale_ms > 0 && age > stale_ms)
            sport->stale++;
    }
    uv_mutex_unlock(&sports->lock);
}

void sports_look_at_ages(struct sports *sports)
{
    struct sports_ages ages[SPORT_COUNT];
    sports_ages(sports, ages);
    for (size_t i = 0; i < SPORT_COUNT; i++) {
        bool stale = ages[i].stale > 0;
        const char *sport = sport_key((enum sport)i);
        if (stale && !sports->stale_logged[i])
            log_event(sports->log, LOG_WARNING, "odds are stale", LOG_STRING("sport", sport),
                      LOG_INTEGER("events", ages[i].stale),
                      LOG_INTEGER("oldest_seconds", ages[i].odds_ms / 1000));
        else if (!stale && sports->stale_logged[i])
            log_event(sports->log, LOG_INFO, "odds are not stale any more",
                      LOG_STRING("sport", sport));
        sports->stale_logged[i] = stale;
    }
}

/* ---- metrics --------------------------------------------------------------------------------- */

/* Writes for each sport the age at the row's place in its struct sports_ages. */
void sports_write_ages(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct sports_facts *sports = facts;
    for (size_t i = 0; i < SPORT_COUNT; i++) {
        char labels[64];
        int64_t number;
        memcpy(&number, (const char *)&sports->ages[i] + metric->offset, sizeof number);
        (void)snprintf(labels, sizeof labels, "{sport=\"%s\"}", sport_key((enum sport)i));
        if (metric->never != NULL)
            metric_age(out, metric->name, labels, number, metric->never);
        else
            metric_number(out, metric->name, labels, (uint64_t)number);
    }
}
