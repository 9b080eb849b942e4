/*
 * The store is asked once for all requests of a batch. Nothing is remembered: the store may be
 * another one when it is opened again, such as a restored backup, and one look-up in an index costs
 * less than the commit that follows.
 */
#include "wallet/sessions.h"

#include <string.h>

#include "base/memory.h"
#include "stores/platform_players.h"

_Static_assert(LEDGER_BATCH_MAX <= LAUNCH_LOOK_UPS_MAX, "one question for a batch");

static void take_found(struct ledger_job *job, const struct launch_look_up *found)
{
    char *player_id = job->request.player_id;
    job->launched = found->launched;
    job->launched_ms = found->launched_ms;
    memset(player_id, 0, sizeof job->request.player_id);
    if (found->known)
        memcpy(player_id, found->player_id, sizeof found->player_id);
}

enum status sessions_find(struct platform_store *store, struct ledger_job **jobs, size_t count,
                          struct error *error)
{
    struct launch_look_up *asked = memory_alloc_zeroed(count, sizeof *asked);
    size_t asked_count = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count; i++) {
        const struct wallet_request *request = &jobs[i]->request;
        if (request->provider_id[0] != '\0')
            asked[asked_count++] = (struct launch_look_up){.provider_id = request->provider_id,
                                                           .subject = request->subject,
                                                           .launch_id = request->launch_id};
    }
    if (asked_count > 0)
        status = platform_launches_find(store, asked, asked_count, error);
    const struct launch_look_up *found = asked;
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        if (jobs[i]->request.provider_id[0] != '\0')
            take_found(jobs[i], found++);
    memory_free(asked);
    return status;
}
