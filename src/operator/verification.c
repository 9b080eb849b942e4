/*
 * The state is written by the run's thread and read by any, under the lock. The thread of a run
 * that has ended is joined by the next start, or at the end.
 */
#include "operator/verification.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "stores/refresher.h"

#define REFRESH_MS 2000 /* of the last ones: no decision depends on them */

struct verification {
    struct platform_store_options options;
    atomic_bool stop;
    uv_mutex_t lock; /* guards: */
    struct verification_state state;
    char command[TRAIL_COMMAND_SIZE];
    uv_thread_t thread;
    bool has_thread; /* to be joined */
};

static const char *const stages[] = {"none", "running", "sound", "broken", "failed"};
const struct enum_names verification_stages = ENUM_NAMES(stages);

struct verification *verification_create(const struct platform_store_options *store)
{
    struct verification *verification = memory_alloc_zeroed(1, sizeof *verification);
    verification->options = *store;
    atomic_init(&verification->stop, false);
    CHECK(uv_mutex_init(&verification->lock) == 0);
    return verification;
}

void verification_destroy(struct verification **at)
{
    struct verification *verification = memory_take(at);
    if (verification == NULL)
        return;
    atomic_store(&verification->stop, true);
    if (verification->has_thread)
        CHECK(uv_thread_join(&verification->thread) == 0);
    uv_mutex_destroy(&verification->lock);
    memory_free(verification);
}

/* ---- the run --------------------------------------------------------------------------------- */

static void note_progress(void *context, const char *what, uint64_t done, uint64_t total)
{
    struct verification *verification = context;
    (void)what;
    uv_mutex_lock(&verification->lock);
    verification->state.total = total;
    verification->state.done = done;
    uv_mutex_unlock(&verification->lock);
}

static enum status open_store(struct verification *verification, struct platform_store **store,
                              struct error *error)
{
    enum status status = platform_store_open(store, &verification->options, error);
    if (status == STATUS_OK)
        (*store)->stop = &verification->stop;
    return status;
}

static enum status verify(struct verification *verification, struct audit_result *result,
                          struct error *unkept, struct error *error)
{
    struct platform_store *store = NULL;
    struct platform_store *beside = NULL;
    const struct progress_watch watch = {note_progress, verification};
    struct audit_options options = {.watch = &watch};
    enum status status = open_store(verification, &store, error);
    if (status == STATUS_OK)
        status = open_store(verification, &beside, error);
    if (status == STATUS_OK) {
        /* Both are written by the start alone, before there was this thread. */
        platform_store_act_as(store, verification->state.who, verification->command);
        options.beside = beside;
        status = wallet_verify(store, &options, result, unkept, error);
    }
    platform_store_close(&beside);
    platform_store_close(&store);
    return status;
}

static void run(void *argument)
{
    struct verification *verification = argument;
    struct audit_result result = {0};
    struct error unkept = {0};
    struct error error = {0};
    enum status status = verify(verification, &result, &unkept, &error);
    struct verification_state *state = &verification->state;
    uv_mutex_lock(&verification->lock);
    state->stage = status == STATUS_OK          ? VERIFICATION_SOUND
                   : status == STATUS_MALFORMED ? VERIFICATION_BROKEN
                                                : VERIFICATION_FAILED;
    state->ended_ms = clock_wall_ms();
    state->result = result;
    if (status != STATUS_OK)
        memcpy(state->message, error.text, sizeof state->message);
    else if (unkept.text[0] != '\0')
        (void)snprintf(state->message, sizeof state->message,
                       "the outcome could not be kept: %.200s", unkept.text);
    uv_mutex_unlock(&verification->lock);
}

enum status verification_start(struct verification *verification, const char *who,
                               const char *command, int64_t now_ms, struct error *error)
{
    struct verification_state *state = &verification->state;
    enum status status = STATUS_OK;
    uv_mutex_lock(&verification->lock);
    if (state->stage == VERIFICATION_RUNNING) {
        status = error_conflict(error, "a verification is under way");
    } else {
        if (verification->has_thread)
            CHECK(uv_thread_join(&verification->thread) == 0); /* it does nothing more */
        *state = (struct verification_state){.stage = VERIFICATION_RUNNING, .started_ms = now_ms};
        (void)snprintf(state->who, sizeof state->who, "%s", who);
        (void)snprintf(verification->command, sizeof verification->command, "%s", command);
        thread_start(&verification->thread, "verification", run, verification);
        verification->has_thread = true;
    }
    uv_mutex_unlock(&verification->lock);
    return status;
}

void verification_look(struct verification *verification, struct verification_state *state)
{
    uv_mutex_lock(&verification->lock);
    *state = verification->state;
    uv_mutex_unlock(&verification->lock);
}

/* ---- the last ones --------------------------------------------------------------------------- */

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

struct refresher *last_verifications_create(const struct platform_store_options *store)
{
    const struct refresher_options options = {
        .name = "verifications",
        .failing = "verifications cannot be read",
        .again = "verifications read again",
        .store = *store,
        .refresh_ms = REFRESH_MS,
        .revision = platform_verifications_revision,
        .read = read_all,
        .destroy = memory_free,
    };
    return refresher_create(&options);
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void write_ended(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct verifications *last = facts;
    for (int i = 0; i < VERIFICATION_SCOPE_COUNT; i++) {
        char labels[32];
        (void)snprintf(labels, sizeof labels, "{scope=\"%s\"}", verification_scopes.list[i]);
        metric_age(out, metric->name, labels,
                   last->of[i].started_ms > 0 ? last->of[i].ended_ms : -1, "NaN");
    }
}

static void write_sound(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct verifications *last = facts;
    for (int i = 0; i < VERIFICATION_SCOPE_COUNT; i++) {
        char labels[32];
        (void)snprintf(labels, sizeof labels, "{scope=\"%s\"}", verification_scopes.list[i]);
        if (last->of[i].started_ms > 0)
            metric_number(out, metric->name, labels, last->of[i].sound ? 1 : 0);
    }
}

const struct metric verification_metrics[] = {
    METRIC_WRITTEN("croupier_ledger_verification_timestamp_seconds", write_ended),
    METRIC_WRITTEN("croupier_ledger_verification_sound", write_sound),
    {0},
};
