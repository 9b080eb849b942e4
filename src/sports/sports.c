/* The life of the shared state of the sports; see shared.h. */
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
    json_end_all(&json);
    struct answer *answer = answer_create(buffer_text(&body), counts);
    answer_compress(answer);
    buffer_free(&body);
    return answer;
}

struct sports *sports_create(struct odds_store *odds, uint32_t read_ms, struct work_pool *pool,
                             struct log *log)
{
    struct sports *sports = memory_alloc_zeroed(1, sizeof *sports);
    CHECK(uv_mutex_init(&sports->lock) == 0);
    CHECK(uv_cond_init(&sports->no_jobs) == 0);
    sports->odds = odds;
    sports->read_ms = read_ms;
    sports->pool = pool;
    sports->run_job = job_run;
    sports->log = log;
    sports->changes = changes_create(odds);
    event_table_init(&sports->events);
    for (sport_set set = 0; set <= SPORT_SET_ALL; set++)
        sports->lists[set] = make_list(set, &sports->counts);
    return sports;
}

void sports_drain(struct sports *sports)
{
    uv_mutex_lock(&sports->lock);
    while (sports->job_count > 0)
        uv_cond_wait(&sports->no_jobs, &sports->lock);
    uv_mutex_unlock(&sports->lock);
}

void sports_destroy(struct sports **sports)
{
    struct sports *mine = memory_take(sports);
    if (mine == NULL)
        return;
    changes_destroy(&mine->changes);
    CHECK(atomic_load(&mine->waiting) == 0);
    while (mine->events.count > 0)
        sports_drop_event(mine, (struct slot *)event_table_oldest(&mine->events));
    event_table_free(&mine->events);
    for (int i = 0; i < SPORT_COUNT; i++) {
        CHECK(mine->catalogs[i].job == NULL);
        entry_release(&mine->catalogs[i].current);
    }
    for (sport_set set = 0; set <= SPORT_SET_ALL; set++)
        answer_release(&mine->lists[set]);
    CHECK(atomic_load(&mine->counts.answers) == 0 && atomic_load(&mine->counts.bytes) == 0);
    CHECK(mine->job_count == 0);
    uv_cond_destroy(&mine->no_jobs);
    uv_mutex_destroy(&mine->lock);
    memory_free(mine);
}

void sports_set_limits(struct sports *sports, uint32_t waiting_max, uint32_t stale_after_s,
                       uint32_t differences_mib)
{
    relaxed_store(&sports->counts.kept_max, (uint64_t)differences_mib * 1024 * 1024);
    relaxed_store(&sports->waiting_max, waiting_max);
    relaxed_store(&sports->stale_after_s, stale_after_s);
}

void sports_facts(struct sports *sports, struct sports_facts *facts)
{
    *facts = (struct sports_facts){
        .answers = relaxed_load(&sports->counts.answers),
        .bytes = relaxed_load(&sports->counts.bytes),
        .kept = relaxed_load(&sports->counts.kept),
        .waiting = relaxed_load(&sports->waiting),
    };
    sports_ages(sports, facts->ages);
}

/* ---- metrics --------------------------------------------------------------------------------- */

#define AGES(name_, member_, never_)                                                         \
    {                                                                                        \
        .name = (name_), .offset = offsetof(struct sports_ages, member_), .never = (never_), \
        .write = sports_write_ages                                                           \
    }

const struct metric sports_metrics[] = {
    METRIC_FACT("croupier_ready_answers", struct sports_facts, answers),
    METRIC_FACT("croupier_ready_bytes", struct sports_facts, bytes),
    METRIC_FACT("croupier_differences_kept_bytes", struct sports_facts, kept),
    AGES("croupier_catalog_age_seconds", catalog_ms, "NaN"),
    AGES("croupier_odds_age_seconds", odds_ms, "NaN"),
    AGES("croupier_odds_stale_events", stale, NULL),
    METRIC_FACT("croupier_waiting_polls", struct sports_facts, waiting),
    {0},
};

#define STORE_ERROR(counter_, kind_)                                                        \
    METRIC_COUNTED_AS("croupier_store_errors_total", "{store=\"odds\",kind=\"" kind_ "\"}", \
                      counter_)

const struct metric sports_counted_metrics[] = {
    STORE_ERROR(SPORTS_ODDS_UNAVAILABLE, "unavailable"),
    STORE_ERROR(SPORTS_ODDS_TIMEOUT, "timeout"),
    STORE_ERROR(SPORTS_ODDS_MALFORMED, "malformed"),
    METRIC_COUNTED("croupier_ready_hits_total", SPORTS_READY_HITS),
    METRIC_COUNTED("croupier_ready_misses_total", SPORTS_READY_MISSES),
    METRIC_COUNTED("croupier_ready_rebuilds_total", SPORTS_READY_REBUILDS),
    METRIC_COUNTED("croupier_gzip_rebuilds_total", SPORTS_GZIP_REBUILDS),
    METRIC_COUNTED("croupier_differences_total", SPORTS_DIFFERENCES),
    METRIC_COUNTED("croupier_waiting_begun_total", SPORTS_WAITS),
    METRIC_COUNTED("croupier_waiting_refused_total", SPORTS_WAITS_REFUSED),
    METRIC_COUNTED("croupier_waiting_looks_total", SPORTS_WAITS_LOOKS),
    METRIC_COUNTED("croupier_waiting_left_total", SPORTS_WAITS_GONE),
    {0},
};
