/*
 * A waiter is one request with the ledger: it belongs to the desk's list until its mail is delivered,
 * which frees it. Its request may be gone before (abandoned, or answered because it took too long).
 * Waiters are in the order in which they came, so the oldest is the first to be too late.
 */
#include "casino/wallet_routes.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "casino/wallet_request.h"

#define TICK_MS 50U

struct waiter {
    struct ledger_job job; /* first */
    struct wallet_desk *desk;
    struct http_request *request; /* NULL: answered or gone */
    struct waiter *newer, *older;
    uint64_t arrived_ms; /* of the loop's clock */
    bool in_batch;       /* it cannot be taken back any more */
};

struct wallet_desk {
    struct ledger *ledger;
    struct mailbox *mailbox;
    struct waiter *newest, *oldest;
    uv_timer_t tick; /* runs while somebody waits */
    bool closed, tick_closed;
};

/* ---- answers ----------------------------------------------------------------------------------- */

static void append_member(struct buffer *out, const char *name, const char *value)
{
    buffer_append_format(out, "%c\"%s\":", out->size == 0 ? '{' : ',', name);
    if (value[0] == '\0')
        buffer_append_string(out, "null");
    else
        buffer_append_json_string(out, text_of(value));
}

static void append_balance(struct buffer *out, const char *currency, unsigned exponent,
                           int64_t balance_minor, uint64_t sequence)
{
    append_member(out, "currency", currency);
    buffer_append_format(
        out, ",\"currency_exponent\":%u,\"balance_minor\":%" PRId64 ",\"sequence\":%" PRIu64,
        exponent, balance_minor, sequence);
}

static void reply_balance(struct http_request *request, const struct ledger_account *account)
{
    struct buffer out = {0};
    append_member(&out, "operation", wallet_operation_name(WALLET_BALANCE));
    append_member(&out, "player_id", account->player.id);
    append_balance(&out, account->player.currency, account->player.currency_exponent,
                   account->balance_minor, account->sequence);
    buffer_append_char(&out, '}');
    http_reply_json(request, 200, buffer_text(&out));
    buffer_free(&out);
}

static void reply_entry(struct http_request *request, const struct ledger_transaction *entry,
                        bool replayed)
{
    struct buffer out = {0};
    char created_at[CLOCK_TEXT_SIZE];
    clock_format_rfc3339(entry->created_ms, created_at);
    append_member(&out, "operation", ledger_operation_name(entry->operation));
    append_member(&out, "player_id", entry->player_id);
    append_member(&out, "transaction_id", entry->transaction_id);
    append_member(&out, "reference_transaction_id", entry->reference);
    append_member(&out, "status", ledger_outcome_name(entry->outcome));
    buffer_append_format(&out, ",\"amount_minor\":%" PRId64, entry->amount_minor);
    append_balance(&out, entry->currency, entry->currency_exponent, entry->balance_minor,
                   entry->sequence);
    append_member(&out, "created_at", created_at);
    buffer_append_format(&out, ",\"replayed\":%s}", replayed ? "true" : "false");
    http_reply_json(request, 200, buffer_text(&out));
    buffer_free(&out);
}

static void reply_transaction(struct http_request *request,
                              const struct ledger_transaction *transaction, bool replayed)
{
    static const enum http_error declines[LEDGER_OUTCOME_COUNT] = {
        [LEDGER_REFERENCE_NOT_FOUND] = HTTP_ERROR_REFERENCE_NOT_FOUND,
        [LEDGER_TRANSACTION_ROLLED_BACK] = HTTP_ERROR_TRANSACTION_ROLLED_BACK,
        [LEDGER_ALREADY_ROLLED_BACK] = HTTP_ERROR_ALREADY_ROLLED_BACK,
        [LEDGER_ALREADY_SETTLED] = HTTP_ERROR_ALREADY_SETTLED,
        [LEDGER_NOT_ROLLBACKABLE] = HTTP_ERROR_NOT_ROLLBACKABLE,
        [LEDGER_INSUFFICIENT_FUNDS] = HTTP_ERROR_INSUFFICIENT_FUNDS,
        [LEDGER_BALANCE_LIMIT_EXCEEDED] = HTTP_ERROR_BALANCE_LIMIT_EXCEEDED,
    };
    if (replayed)
        http_request_add_field(request, TEXT("Idempotent-Replayed"), TEXT("true"));
    if (ledger_is_entry(transaction))
        reply_entry(request, transaction, replayed);
    else
        http_reply_error(request, declines[transaction->outcome]);
}

static enum http_error refusal(enum wallet_verdict verdict)
{
    switch (verdict) {
    case WALLET_PLAYER_NOT_FOUND:
        return HTTP_ERROR_PLAYER_NOT_FOUND;
    case WALLET_CURRENCY_MISMATCH:
        return HTTP_ERROR_CURRENCY_MISMATCH;
    case WALLET_TRANSACTION_CONFLICT:
        return HTTP_ERROR_TRANSACTION_CONFLICT;
    case WALLET_GAME_NOT_FOUND:
        return HTTP_ERROR_GAME_NOT_FOUND;
    case WALLET_GAMES_UNAVAILABLE:
        return HTTP_ERROR_SECURITY_CONFIG_UNAVAILABLE;
    case WALLET_KEPT:
    case WALLET_REPLAYED:
        break;
    }
    return HTTP_ERROR_INTERNAL_ERROR;
}

static void reply(struct http_request *request, const struct wallet_answer *answer)
{
    switch (answer->kind) {
    case WALLET_ANSWER_BALANCE:
        reply_balance(request, &answer->account);
        return;
    case WALLET_ANSWER_TRANSACTION:
        reply_transaction(request, &answer->transaction, answer->replayed);
        return;
    case WALLET_ANSWER_REFUSED:
        http_reply_error(request, refusal(answer->verdict));
        return;
    case WALLET_ANSWER_UNAVAILABLE:
        http_reply_error(request, HTTP_ERROR_LEDGER_UNAVAILABLE);
        return;
    case WALLET_ANSWER_UNKNOWN:
        http_reply_error(request, HTTP_ERROR_INTERNAL_ERROR);
        return;
    }
}

/* ---- waiters ----------------------------------------------------------------------------------- */

static void free_desk_when_over(struct wallet_desk *desk)
{
    if (desk->closed && desk->tick_closed && desk->oldest == NULL)
        memory_free(desk);
}

static void free_waiter(struct waiter *waiter)
{
    struct wallet_desk *desk = waiter->desk;
    if (waiter->older == NULL)
        desk->oldest = waiter->newer;
    else
        waiter->older->newer = waiter->newer;
    if (waiter->newer == NULL)
        desk->newest = waiter->older;
    else
        waiter->newer->older = waiter->older;
    memory_free(waiter);
    if (desk->oldest == NULL && !desk->closed)
        (void)uv_timer_stop(&desk->tick);
}

/* The request, which is about to be replied to; NULL when it is gone. */
static struct http_request *release_request(struct waiter *waiter)
{
    struct http_request *request = waiter->request;
    waiter->request = NULL;
    if (request != NULL) {
        request->abandoned = NULL;
        request->aside = NULL;
    }
    return request;
}

static void deliver(struct mail *mail)
{
    struct waiter *waiter = (struct waiter *)(void *)mail;
    struct wallet_desk *desk = waiter->desk;
    struct http_request *request = release_request(waiter);
    if (request != NULL)
        reply(request, &waiter->job.answer);
    free_waiter(waiter);
    free_desk_when_over(desk);
}

static void abandoned(struct http_request *request)
{
    struct waiter *waiter = request->aside;
    waiter->request = NULL; /* the operation goes on */
}

static void give_up_waiting(struct waiter *waiter, uint64_t waited_ms)
{
    if (!waiter->in_batch && waited_ms >= WALLET_QUEUE_MS) {
        if (ledger_withdraw(waiter->desk->ledger, &waiter->job)) {
            struct http_request *request = release_request(waiter);
            if (request != NULL)
                http_reply_error(request, HTTP_ERROR_LEDGER_UNAVAILABLE);
            free_waiter(waiter);
            return;
        }
        waiter->in_batch = true;
    }
    if (waited_ms >= WALLET_ANSWER_MS && waiter->request != NULL)
        http_reply_error(release_request(waiter), HTTP_ERROR_INTERNAL_ERROR);
}

static void on_tick(uv_timer_t *tick)
{
    struct wallet_desk *desk = tick->data;
    uint64_t now_ms = uv_now(tick->loop);
    struct waiter *newer;
    for (struct waiter *waiter = desk->oldest; waiter != NULL; waiter = newer) {
        newer = waiter->newer;
        if (now_ms - waiter->arrived_ms < WALLET_QUEUE_MS)
            return;
        give_up_waiting(waiter, now_ms - waiter->arrived_ms);
    }
}

/* ---- the route --------------------------------------------------------------------------------- */

static bool decode(struct http_request *request, struct wallet_request *decoded)
{
    struct text type = request->field_count[HTTP_FIELD_CONTENT_TYPE] == 1
                           ? http_request_field(request, HTTP_FIELD_CONTENT_TYPE)
                           : TEXT("");
    switch (wallet_request_decode(type, request->body, decoded)) {
    case WALLET_DECODED:
        return true;
    case WALLET_INVALID:
        http_reply_error(request, HTTP_ERROR_INVALID_REQUEST);
        return false;
    case WALLET_UNKNOWN_FIELD:
        http_reply_error(request, HTTP_ERROR_UNKNOWN_FIELD);
        return false;
    }
    return false;
}

/* Asked here, where the table is in memory, and judged by the ledger, which knows whether it matters. */
static enum wallet_game game_of(struct wallet_desk *desk, struct games_desk *games,
                                const struct wallet_request *decoded, const char *customer_id)
{
    if (decoded->operation != WALLET_DEBIT || decoded->game_id[0] == '\0')
        return WALLET_GAME_VISIBLE;
    /* As of now: a client may take its time between the first byte of a request and the last. */
    const struct games_table *table = games_desk_table(games, uv_now(mailbox_loop(desk->mailbox)));
    if (table == NULL)
        return WALLET_GAME_UNKNOWN;
    return games_table_find(table, customer_id, text_of(decoded->game_id)) != NULL
               ? WALLET_GAME_VISIBLE
               : WALLET_GAME_INVISIBLE;
}

static void append_waiter(struct wallet_desk *desk, struct waiter *waiter)
{
    waiter->older = desk->newest;
    if (desk->newest == NULL)
        desk->oldest = waiter;
    else
        desk->newest->newer = waiter;
    desk->newest = waiter;
    if (!uv_is_active((uv_handle_t *)&desk->tick))
        CHECK(uv_timer_start(&desk->tick, on_tick, TICK_MS, TICK_MS) == 0);
}

void wallet_route(struct wallet_desk *desk, struct games_desk *games, struct http_request *request,
                  const char *customer_id)
{
    struct wallet_request decoded;
    CHECK(!desk->closed && customer_id[0] != '\0');
    if (!decode(request, &decoded))
        return;
    struct waiter *waiter = memory_alloc_zeroed(1, sizeof *waiter);
    waiter->job.mail.deliver = deliver;
    waiter->job.mailbox = desk->mailbox;
    waiter->job.request = decoded;
    waiter->job.game = game_of(desk, games, &decoded, customer_id);
    memcpy(waiter->job.request.customer_id, customer_id, strlen(customer_id) + 1);
    waiter->desk = desk;
    waiter->arrived_ms = uv_now(mailbox_loop(desk->mailbox));
    if (ledger_submit(desk->ledger, &waiter->job) != STATUS_OK) {
        memory_free(waiter);
        http_reply_error(request, HTTP_ERROR_LEDGER_UNAVAILABLE);
        return;
    }
    waiter->request = request; /* its mail comes on this thread, so not before we return */
    request->abandoned = abandoned;
    request->aside = waiter;
    append_waiter(desk, waiter);
}

/* ---- life -------------------------------------------------------------------------------------- */

struct wallet_desk *wallet_desk_create(struct ledger *ledger, struct mailbox *mailbox)
{
    struct wallet_desk *desk = memory_alloc_zeroed(1, sizeof *desk);
    desk->ledger = ledger;
    desk->mailbox = mailbox;
    CHECK(uv_timer_init(mailbox_loop(mailbox), &desk->tick) == 0);
    desk->tick.data = desk;
    return desk;
}

static void on_tick_closed(uv_handle_t *tick)
{
    struct wallet_desk *desk = tick->data;
    desk->tick_closed = true;
    free_desk_when_over(desk);
}

void wallet_desk_destroy(struct wallet_desk **desk)
{
    if (*desk == NULL)
        return;
    (*desk)->closed = true;
    uv_close((uv_handle_t *)&(*desk)->tick, on_tick_closed);
    *desk = NULL;
}
