/* Makes facts of requests; see conduct_notes.h. Nothing secret stays in them: names are hashed. */
#include "api/conduct_notes.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "wallet/request.h"

/* A hash of `before` and the bytes. Any key will do: nothing is looked up by it in memory. */
static int64_t hash(int64_t before, const void *bytes, size_t size)
{
    uint8_t key[HASH_KEY_SIZE] = {0};
    memcpy(key, &before, sizeof before);
    return (int64_t)hash_keyed(key, bytes, size);
}

static int64_t hash_name(int64_t before, const char *name)
{
    return hash(before, name, strlen(name) + 1);
}

static void note_move(struct conduct_fact *fact, const struct http_request *request, bool provider)
{
    struct wallet_request move = {.operation = LEDGER_BALANCE};
    struct strict_json_fault fault;
    if (wallet_request_decode(http_request_only_field(request, HTTP_FIELD_CONTENT_TYPE),
                              request->body, provider ? WALLET_PROVIDER : WALLET_CUSTOMER, &move,
                              &fault) != STRICT_JSON_OK ||
        move.operation == LEDGER_BALANCE)
        return;
    const int64_t numbers[] = {move.operation, move.kind, move.round_ended, move.amount_minor};
    const char *const names[] = {move.reference, move.game_id, move.round_id, move.currency};
    fact->act = move.operation;
    fact->ends_round = move.round_ended;
    fact->subject = hash_name(0, move.transaction_id);
    fact->reference = move.reference[0] != '\0' ? hash_name(0, move.reference) : 0;
    fact->round = hash_name(hash_name(0, move.subject), move.round_id);
    fact->player = hash_name(hash_name(hash_name(0, move.subject), move.player_id), move.launch_id);
    fact->content = hash(fact->player, numbers, sizeof numbers);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        fact->content = hash_name(fact->content, names[i]);
}

struct conduct_fact *conduct_note(const struct http_request *request, const struct caller *caller,
                                  const struct route *route, const struct address *client,
                                  bool first)
{
    struct conduct_fact *fact = memory_alloc_zeroed(1, sizeof *fact);
    const bool provider = caller->provider_id[0] != '\0';
    const uint64_t age_ms = (clock_monotonic_ns() - request->started_ns) / 1000000;
    (void)snprintf(fact->caller, sizeof fact->caller, "%s",
                   provider ? caller->provider_id : caller->of.customer_id);
    memcpy(fact->request_id, request->id, sizeof fact->request_id);
    fact->from_ms = clock_wall_ms() - (int64_t)age_ms;
    fact->act = CONDUCT_OTHER;
    if (route != NULL && route->usage == USAGE_SPORTS && request->method == METHOD_GET) {
        fact->act = CONDUCT_POLL;
        fact->wanted_s = http_preferred_wait(request, HTTP_WAIT_SECONDS_MAX);
    }
    if (address_equals(client, &request->peer))
        fact->connection = first ? CONDUCT_FIRST : CONDUCT_KEPT;
    fact->names_tag =
        request->field_count[HTTP_FIELD_IF_NONE_MATCH] + request->field_count[HTTP_FIELD_IF_MATCH];
    fact->client = hash(hash_name(0, caller->of.key_prefix), client, sizeof *client);
    fact->subject = hash(0, request->path.at, request->path.size);
    fact->subject = hash(fact->subject, request->query.at, request->query.size);
    fact->subject = hash(fact->subject, request->body.at, request->body.size);
    if (route != NULL && request->method == METHOD_POST)
        note_move(fact, request, provider);
    return fact;
}

void conduct_note_end(struct usage *usage, struct conduct_fact **at,
                      const struct http_outcome *outcome)
{
    struct conduct_fact *fact = memory_take(at);
    if (fact == NULL)
        return;
    fact->until_ms = clock_wall_ms();
    if (outcome != NULL) {
        const struct http_request *request = outcome->request;
        fact->status = outcome->complete ? outcome->status : 0;
        fact->waited_ms = (int64_t)(outcome->waited_ns / 1000000);
        if (request->error != NULL)
            (void)snprintf(fact->reason, sizeof fact->reason, "%s", request->error->reason);
        if (fact->pause_s == 0 &&
            (outcome->status == 429 || outcome->status == 503 || outcome->status == 504))
            fact->pause_s = 1;
    }
    usage_add_conduct(usage, fact);
    memory_free(fact);
}
