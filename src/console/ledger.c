/* The ledger's figures are this instance's since its start; verifications are the store's. */
#include "console/handlers.h"

#include "base/json_writer.h"
#include "operator/verification.h"
#include "wallet/ledger.h"

static void write_figures(struct json_writer *json, const struct ledger_facts *facts)
{
    uint64_t operations = 0;
    uint64_t batches = 0;
    uint64_t commits = 0;
    json_object(json, "operations");
    for (size_t i = 0; i < WALLET_OPERATION_COUNT; i++) {
        uint64_t count = 0;
        for (size_t j = 0; j < LEDGER_COUNTED_COUNT; j++)
            count += facts->operations[i][j];
        json_unsigned(json, ledger_operation_name((enum ledger_operation)i), count);
        operations += count;
    }
    json_end(json);
    for (size_t i = 0; i < LEDGER_BATCH_BUCKETS; i++)
        batches += facts->batches[i];
    for (size_t i = 0; i < LEDGER_COMMIT_BUCKETS; i++)
        commits += facts->commits[i];
    json_unsigned(json, "operations_in_all", operations);
    json_unsigned(json, "batches", batches);
    json_unsigned(json, "operations_in_batches", facts->batched);
    json_unsigned(json, "commits", commits);
    json_unsigned(json, "commit_microseconds", commits > 0 ? facts->commit_ns / commits / 1000 : 0);
    json_unsigned(json, "waiting", facts->depth);
    json_unsigned(json, "begun_again", facts->conflicts);
    json_unsigned(json, "opened_again", facts->reopened);
}

static void write_last(struct json_writer *json, const struct verification_record *record)
{
    const char *name = enum_name(&verification_scopes, record->scope);
    if (record->started_ms == 0) {
        json_null(json, name);
        return;
    }
    json_object(json, name);
    json_time(json, "started_at", record->started_ms);
    json_time(json, "ended_at", record->ended_ms);
    json_time(json, "since", record->since_ms);
    json_bool(json, "sound", record->sound);
    json_unsigned(json, "entries", record->entries);
    json_unsigned(json, "players", record->players);
    json_string_or_null(json, "reason", record->reason);
    json_end(json);
}

/* A break has the members that `croupier wallet verify` prints. */
static void write_run(struct json_writer *json, const char *name,
                      const struct verification_state *state)
{
    const struct audit_break *broken = &state->result.broken;
    json_object(json, name);
    json_string(json, "state", enum_name(&verification_stages, state->stage));
    json_string_or_null(json, "by", state->who);
    json_time(json, "started_at", state->started_ms);
    json_time(json, "ended_at", state->ended_ms);
    json_unsigned(json, "done", state->done);
    json_unsigned(json, "total", state->total);
    json_unsigned(json, "entries", state->result.entries);
    json_unsigned(json, "players", state->result.players);
    json_string_or_null(json, "how", state->result.how);
    json_string_or_null(json, "message", state->message);
    json_string_or_null(json, "player_id", broken->player_id);
    json_unsigned_or_null(json, "sequence", broken->sequence);
    json_unsigned_or_null(json, "decline", broken->decline);
    json_end(json);
}

enum status console_ledger(struct console_call *call, struct error *error)
{
    struct verifications last;
    struct verification_state run;
    struct ledger_facts facts = {0};
    enum status status = platform_verifications(call->store, &last, error);
    if (status != STATUS_OK)
        return status;
    ledger_facts(call->services->sources.ledger, &facts);
    verification_look(call->services->verification, &run);
    json_object(&call->json, NULL);
    write_figures(&call->json, &facts);
    json_object(&call->json, "verified");
    for (size_t i = 0; i < VERIFICATION_SCOPE_COUNT; i++)
        write_last(&call->json, &last.of[i]);
    json_end(&call->json);
    write_run(&call->json, "run", &run);
    console_tag_answer(call);
    return STATUS_OK;
}

enum status console_verify(struct console_call *call, struct error *error)
{
    struct verification_state run;
    const struct author *author = &call->store->author;
    enum status status = verification_start(call->services->verification, author->who,
                                            author->command, call->now_ms, error);
    if (status != STATUS_OK)
        return status;
    verification_look(call->services->verification, &run);
    write_run(&call->json, NULL, &run);
    call->status = 202;
    return STATUS_OK;
}
