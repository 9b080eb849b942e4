/* See last_verifications.h. No decision depends on these values, so they may be some seconds
 * old. */
#include "operator/last_verifications.h"

#include <stdio.h>

#include "base/memory.h"
#include "stores/refresher.h"

#define REFRESH_MS 2000

struct last_verifications {
    struct refresher *refresher;
    struct table_hold hold; /* of the thread that asks */
};

static enum status read_all(void *context, struct platform_store *store, bool all,
                            uint64_t *revision, void **table, struct error *error)
{
    struct verifications *found = memory_alloc_zeroed(1, sizeof *found);
    (void)context;
    (void)all;
    /* Reads the number first, so that a change in between is read again. */
    enum status status = platform_verifications_revision(store, revision, error);
    if (status == STATUS_OK)
        status = platform_verifications(store, found, error);
    if (status == STATUS_OK)
        *table = found;
    else
        memory_free(found);
    return status;
}

struct last_verifications *last_verifications_create(const struct platform_store_options *store,
                                                     struct log *log)
{
    struct last_verifications *last = memory_alloc_zeroed(1, sizeof *last);
    const struct refresher_options options = {
        .name = "verifications",
        .failing = "verifications cannot be read",
        .again = "verifications read again",
        .store = *store,
        .refresh_ms = REFRESH_MS,
        .revision = platform_verifications_revision,
        .read = read_all,
        .log = log,
    };
    last->refresher = refresher_create(&options);
    return last;
}

void last_verifications_destroy(struct last_verifications **at)
{
    struct last_verifications *last = *at;
    if (last == NULL)
        return;
    *at = NULL;
    refresher_release(last->refresher, &last->hold);
    refresher_destroy(&last->refresher);
    memory_free(last);
}

struct verifications last_verifications_read(struct last_verifications *last)
{
    const struct verifications *newest = refresher_newest(last->refresher, &last->hold);
    return newest != NULL ? *newest : (struct verifications){0};
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void label_scope(char labels[32], int scope)
{
    (void)snprintf(labels, 32, "{scope=\"%s\"}",
                   verification_scope_name((enum verification_scope)scope));
}

static void write_ended(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct verifications *last = facts;
    for (int i = 0; i < VERIFICATION_SCOPE_COUNT; i++) {
        char labels[32];
        label_scope(labels, i);
        metric_age(out, metric->name, labels,
                   last->of[i].started_ms > 0 ? last->of[i].ended_ms : -1, "NaN");
    }
}

static void write_sound(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct verifications *last = facts;
    for (int i = 0; i < VERIFICATION_SCOPE_COUNT; i++) {
        char labels[32];
        label_scope(labels, i);
        if (last->of[i].started_ms > 0)
            metric_number(out, metric->name, labels, last->of[i].sound ? 1 : 0);
    }
}

const struct metric verification_metrics[] = {
    METRIC_WRITTEN("croupier_ledger_verification_timestamp_seconds", "gauge", write_ended,
                   "When wallet verify last came to an end, by what it proved; NaN: never"),
    METRIC_WRITTEN("croupier_ledger_verification_sound", "gauge", write_sound,
                   "1 when that found the ledger sound, 0 when it found it broken"),
    {0},
};
