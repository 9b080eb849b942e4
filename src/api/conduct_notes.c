/* Makes facts of requests; see conduct_notes.h. Nothing secret stays in them: names are hashed. */
#include "api/conduct_notes.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "wallet/request.h"

/* Hashes the buffer, if there is something in it, and clears it. */
static int64_t hash(struct buffer *text)
{
    uint8_t digest[DIGEST_SIZE];
    uint64_t start = 0;
    digest_sha256(text->data, text->size, digest);
    if (text->size > 0)
        memcpy(&start, digest, sizeof start);
    buffer_clear(text);
    return (int64_t)be64toh(start);
}

static void note_move(struct conduct_fact *fact, const struct http_request *request, bool provider,
                      struct buffer *text)
{
    struct wallet_request move = {.operation = LEDGER_BALANCE};
    struct strict_json_fault fault;
    if (wallet_request_decode(http_request_only_field(request, HTTP_FIELD_CONTENT_TYPE),
                              request->body, provider ? WALLET_PROVIDER : WALLET_CUSTOMER, &move,
                              &fault) != STRICT_JSON_OK ||
        move.operation == LEDGER_BALANCE)
        return;
    fact->act = move.operation;
    fact->ends_round = move.round_ended;
    buffer_append_string(text, move.transaction_id);
    fact->subject = hash(text);
    buffer_append_string(text, move.reference);
    fact->reference = hash(text);
    buffer_append_format(text, "%s%s %s", move.subject, move.player_id, move.launch_id);
    fact->player = hash(text);
    buffer_append_format(text, "%s %s", move.subject, move.round_id);
    fact->round = hash(text);
    buffer_append_format(text, "%d %d %d %" PRId64 " %s %s%s %s %s\n%s\n%s", move.operation,
                         move.kind, move.round_ended, move.amount_minor, move.currency,
                         move.subject, move.player_id, move.launch_id, move.reference, move.game_id,
                         move.round_id);
    fact->content = hash(text);
}

struct conduct_fact *conduct_note(const struct http_request *request, const struct caller *caller,
                                  const struct route *route, const struct address *client,
                                  bool first)
{
    struct conduct_fact *fact = memory_alloc_zeroed(1, sizeof *fact);
    const bool provider = caller->provider_id[0] != '\0';
    const uint64_t age_ms = (clock_monotonic_ns() - request->started_ns) / 1000000;
    struct buffer text = {0};
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
    buffer_append_string(&text, caller->of.key_prefix);
    buffer_append(&text, (const char *)client, sizeof *client);
    fact->client = hash(&text);
    buffer_append_text(&text, request->path);
    buffer_append_text(&text, request->query);
    buffer_append_text(&text, request->body);
    fact->subject = hash(&text);
    if (route != NULL && request->method == METHOD_POST)
        note_move(fact, request, provider, &text);
    buffer_free(&text);
    return fact;
}

void conduct_note_end(struct conduct *conduct, struct conduct_fact **at,
                      const struct http_outcome *outcome)
{
    struct conduct_fact *fact = memory_take(at);
    if (fact == NULL)
        return;
    fact->until_ms = clock_wall_ms();
    if (outcome != NULL) {
        const struct http_request *request = outcome->request;
        memcpy(fact->request_id, request->id, sizeof fact->request_id);
        fact->status = outcome->complete ? outcome->status : 0;
        fact->waited_ms = (int64_t)(outcome->waited_ns / 1000000);
        if (request->error != NULL)
            (void)snprintf(fact->reason, sizeof fact->reason, "%s", request->error->reason);
        if (fact->pause_s == 0 &&
            (outcome->status == 429 || outcome->status == 503 || outcome->status == 504))
            fact->pause_s = 1;
    }
    conduct_add(conduct, fact);
    memory_free(fact);
}
