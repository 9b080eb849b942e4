/*
 * Faults that sandbox callers ask for, and facts of their requests; see sandbox.h. Nothing secret
 * stays in a fact: names are hashed.
 */
#include "api/sandbox.h"

#include "admission/error_rows.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "games/errors.h"
#include "http/deferral.h"
#include "wallet/request.h"

#define DELAY_MAX_MS 60000U

static const struct fault {
    const char *asked;
    bool sports;                    /* on sports routes; else on the others */
    const struct http_error *error; /* the reply, at once; NULL: the request is handled */
    enum http_instead instead;      /* of the reply, whose it may be */
} faults[] = {
    {"429", true, &error_asked_for_limit, HTTP_INSTEAD_NONE},
    {"close-before", false, &error_asked_for_error, HTTP_INSTEAD_NOTHING},
    {"close-after", false, NULL, HTTP_INSTEAD_NOTHING},
    {"503", false, &error_asked_for_unavailable, HTTP_INSTEAD_NONE},
    {"500;applied=yes", false, NULL, HTTP_INSTEAD_500},
    {"500;applied=no", false, &error_asked_for_error, HTTP_INSTEAD_NONE},
};

/* ---- delays ---------------------------------------------------------------------------------- */

struct delayed {
    struct http_deferral deferral;    /* first */
    struct http_deferral_queue queue; /* it is alone on it */
    void (*go_on)(void *context, struct http_request *request);
    void *context;
};

/* The delay is over, or the client has closed. */
static void end_delay(struct http_deferral *deferral)
{
    struct delayed *delayed = (struct delayed *)deferral;
    struct http_request *request = http_deferral_take(deferral);
    http_deferral_remove(deferral);
    http_deferral_queue_close(&delayed->queue, memory_free,
                              delayed); /* not before the loop's next turn */
    if (request != NULL)
        delayed->go_on(delayed->context, request);
}

/* ---- the field ------------------------------------------------------------------------------- */

bool fault_pass(struct http_request *request, const struct route *route, uv_loop_t *loop,
                void (*go_on)(void *context, struct http_request *request), void *context)
{
    uint64_t delay_ms;
    const bool sports = route->usage == USAGE_SPORTS;
    const struct text asked = http_request_only_field(request, HTTP_FIELD_X_CROUPIER_FAULT);
    struct text value = asked;
    if (!sports && (route->method != METHOD_POST || route->account != NULL))
        return true;
    if (!sports && text_equals(text_cut(&value, '='), TEXT("delay")) &&
        text_to_u64(value, DELAY_MAX_MS, &delay_ms) == STATUS_OK) {
        struct delayed *delayed = memory_alloc_zeroed(1, sizeof *delayed);
        delayed->deferral.gone = end_delay;
        delayed->go_on = go_on;
        delayed->context = context;
        http_deferral_queue_init(&delayed->queue, loop, delay_ms, end_delay);
        http_defer(&delayed->deferral, request);
        http_deferral_append(&delayed->queue, &delayed->deferral);
        return false;
    }
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        if (faults[i].sports != sports || !text_equals(asked, text_of(faults[i].asked)))
            continue;
        request->instead = faults[i].instead;
        if (sports)
            http_request_add_field(request, TEXT("Retry-After"), TEXT("1"));
        if (faults[i].error != NULL)
            http_reply_error(request, faults[i].error);
        return faults[i].error == NULL;
    }
    games_reply_fault(request, STRICT_JSON_INVALID,
                      "The header X-Croupier-Fault must be 429 on sports routes, else delay=MS "
                      "(at most 60000), close-before, close-after, 503, 500;applied=yes or "
                      "500;applied=no.");
    return false;
}

/* ---- facts ----------------------------------------------------------------------------------- */

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
