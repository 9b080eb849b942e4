/*
 * The hash of all three names leads to a slot; a later session replaces the one in its slot. So
 * nothing needs upkeep, and the memory is fixed.
 */
#include "wallet/sessions.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

#define SLOTS 4096 /* a power of two; some 1 MB */

/* The meaning of one provider's subject and launch. */
struct meant {
    bool known; /* else the slot is empty */
    bool launched;
    char provider_id[PROVIDER_ID_SIZE];
    char subject[LAUNCH_SUBJECT_SIZE];
    char launch_id[LAUNCH_ID_SIZE];
    char player_id[PLAYER_ID_SIZE];
    int64_t launched_ms;
};

struct sessions {
    uint64_t seed; /* providers choose the names */
    struct meant *slots;
    struct launch_look_up asked[LEDGER_BATCH_MAX];
    struct ledger_job *askers[LEDGER_BATCH_MAX];
};
_Static_assert(LEDGER_BATCH_MAX <= LAUNCH_LOOK_UPS_MAX, "one question for a batch");

struct sessions *sessions_create(void)
{
    struct sessions *sessions = memory_alloc_zeroed(1, sizeof *sessions);
    sessions->seed = hash_random_seed();
    sessions->slots = memory_alloc_zeroed(SLOTS, sizeof sessions->slots[0]);
    return sessions;
}

void sessions_destroy(struct sessions **at)
{
    struct sessions *sessions = *at;
    *at = NULL;
    if (sessions == NULL)
        return;
    memory_free(sessions->slots);
    memory_free(sessions);
}

void sessions_forget(struct sessions *sessions)
{
    memset(sessions->slots, 0, SLOTS * sizeof sessions->slots[0]);
}

static struct meant *slot_of(const struct sessions *sessions, const struct wallet_request *request)
{
    uint64_t hash = hash_string(sessions->seed, request->provider_id);
    hash = hash_string(hash_string(hash, request->subject), request->launch_id);
    return &sessions->slots[hash % SLOTS];
}

static bool is_meant(const struct meant *meant, const struct wallet_request *request)
{
    return meant->known && strcmp(meant->provider_id, request->provider_id) == 0 &&
           strcmp(meant->subject, request->subject) == 0 &&
           strcmp(meant->launch_id, request->launch_id) == 0;
}

static void take(struct ledger_job *job, const struct meant *meant)
{
    job->launched = meant->launched;
    job->launched_ms = meant->launched_ms;
    memset(job->request.player_id, 0, sizeof job->request.player_id);
    memcpy(job->request.player_id, meant->player_id, sizeof meant->player_id);
}

/* False: the store has to be asked. A text that cannot be a provider's subject means no player. */
static bool take_known(const struct sessions *sessions, struct ledger_job *job)
{
    static const struct meant no_player = {0};
    const struct meant *slot = slot_of(sessions, &job->request);
    if (is_meant(slot, &job->request))
        take(job, slot);
    else if (strlen(job->request.subject) == sizeof slot->subject - 1)
        return false;
    else
        take(job, &no_player);
    return true;
}

static void take_found(struct sessions *sessions, struct ledger_job *job,
                       const struct launch_look_up *found)
{
    const struct wallet_request *request = &job->request;
    struct meant meant = {
        .known = found->known, .launched = found->launched, .launched_ms = found->launched_ms};
    if (meant.known)
        memcpy(meant.player_id, found->player_id, sizeof meant.player_id);
    if (meant.known && (meant.launched || request->launch_id[0] == '\0')) {
        memcpy(meant.provider_id, request->provider_id, sizeof meant.provider_id);
        memcpy(meant.subject, request->subject, sizeof meant.subject);
        memcpy(meant.launch_id, request->launch_id, sizeof meant.launch_id);
        *slot_of(sessions, request) = meant;
    }
    take(job, &meant);
}

enum status sessions_find(struct sessions *sessions, struct platform_store *store,
                          struct ledger_job **jobs, size_t count, struct error *error)
{
    size_t asked = 0;
    CHECK(count <= LEDGER_BATCH_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct wallet_request *request = &jobs[i]->request;
        if (request->provider_id[0] == '\0' || take_known(sessions, jobs[i]))
            continue;
        sessions->askers[asked] = jobs[i];
        sessions->asked[asked++] = (struct launch_look_up){.provider_id = request->provider_id,
                                                           .subject = request->subject,
                                                           .launch_id = request->launch_id};
    }
    if (asked == 0)
        return STATUS_OK;
    enum status status = platform_launches_find(store, sessions->asked, asked, error);
    for (size_t i = 0; i < asked && status == STATUS_OK; i++)
        take_found(sessions, sessions->askers[i], &sessions->asked[i]);
    return status;
}
