/*
 * A pending request is one request with the ledger. It is on one of the handler's queues until its
 * mail is delivered, which frees it. Before that its HTTP request may be abandoned, or answered
 * because it took too long.
 *
 * The handler submits all requests of one loop iteration to the ledger together, before the loop
 * waits again. So under load a batch starts with all requests that were ready to read, and a single
 * request does not wait.
 */
#include "wallet/handler.h"

#include "admission/error_rows.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "games/errors.h"
#include "http/deferral.h"
#include "wallet/error_rows.h"

#define ENTRY_USUAL 512U /* bytes: most answers fit */

struct pending_request {
    struct ledger_job job; /* first */
    struct wallet_handler *handler;
    struct http_deferral deferral;
};

struct wallet_handler {
    struct ledger *ledger;
    struct mailbox *mailbox;
    uv_prepare_t before_waiting;
    struct mail_list gathered;        /* of this loop iteration, for the ledger */
    struct http_deferral_queue early; /* perhaps still in the ledger's queue */
    struct http_deferral_queue in_batch;
    int parts; /* queues and handle that are not closed yet */
};

/* ---- answers --------------------------------------------------------------------------------- */

static void write_balance(struct json_writer *json, const char *currency, unsigned exponent,
                          int64_t balance_minor, uint64_t sequence)
{
    json_string(json, "currency", currency);
    json_unsigned(json, "currency_exponent", exponent);
    json_integer(json, "balance_minor", balance_minor);
    json_unsigned(json, "sequence", sequence);
}

/* The player's name at the client. */
static const char *name_of_player(const struct wallet_request *asked)
{
    return asked->provider_id[0] != '\0' ? asked->subject : asked->player_id;
}

static void reply_balance(struct http_request *request, const struct wallet_request *asked,
                          const struct ledger_account *account)
{
    struct buffer out = {0};
    struct json_writer json = {.out = &out};
    json_object(&json, NULL);
    json_string(&json, "operation", ledger_operation_name(LEDGER_BALANCE));
    json_string(&json, "player_id", name_of_player(asked));
    write_balance(&json, account->player.currency, account->player.currency_exponent,
                  account->balance_minor, account->sequence);
    json_end(&json);
    http_reply_json(request, 200, buffer_text(&out));
    buffer_free(&out);
}

static void reply_entry(struct http_request *request, const struct wallet_request *asked,
                        const struct ledger_transaction *entry, bool replayed)
{
    struct buffer out = {0};
    struct json_writer json = {.out = &out};
    buffer_reserve(&out, ENTRY_USUAL);
    json_object(&json, NULL);
    json_string(&json, "operation", ledger_operation_name(entry->operation));
    json_string(&json, "player_id", name_of_player(asked));
    json_string(&json, "transaction_id", entry->transaction_id);
    json_string_or_null(&json, "reference_transaction_id", entry->reference);
    json_string(&json, "status", ledger_outcome_name(entry->outcome));
    json_integer(&json, "amount_minor", entry->amount_minor);
    write_balance(&json, entry->currency, entry->currency_exponent, entry->balance_minor,
                  entry->sequence);
    json_time(&json, "created_at", entry->created_ms);
    json_bool(&json, "replayed", replayed);
    json_end(&json);
    http_reply_json(request, 200, buffer_text(&out));
    buffer_free(&out);
}

static void reply_transaction(struct http_request *request, const struct wallet_request *asked,
                              const struct ledger_transaction *transaction, bool replayed)
{
    static const struct http_error *const declines[LEDGER_OUTCOME_COUNT] = {
        [LEDGER_REFERENCE_NOT_FOUND] = &error_reference_not_found,
        [LEDGER_TRANSACTION_ROLLED_BACK] = &error_transaction_rolled_back,
        [LEDGER_ALREADY_ROLLED_BACK] = &error_already_rolled_back,
        [LEDGER_ALREADY_SETTLED] = &error_already_settled,
        [LEDGER_NOT_ROLLBACKABLE] = &error_not_rollbackable,
        [LEDGER_INSUFFICIENT_FUNDS] = &error_insufficient_funds,
        [LEDGER_BALANCE_LIMIT_EXCEEDED] = &error_balance_limit_exceeded,
    };
    if (replayed)
        http_request_add_field(request, TEXT("Idempotent-Replayed"), TEXT("true"));
    if (ledger_is_entry(transaction))
        reply_entry(request, asked, transaction, replayed);
    else
        http_reply_error(request, declines[transaction->outcome]);
}

#define REFERENCE_CONFLICT "The referenced transaction belongs to another player."
static const struct http_error *const refusals[] = {
    [WALLET_KEPT] = &error_bug,
    [WALLET_REPLAYED] = &error_bug,
    [WALLET_TRANSACTION_CONFLICT] = &error_transaction_conflict,
    [WALLET_PLAYER_NOT_FOUND] = &error_player_not_found,
    [WALLET_CURRENCY_MISMATCH] = &error_currency_mismatch,
    [WALLET_SESSION_IS_OVER] = &error_session_expired,
    [WALLET_PLAYER_BLOCKED] = &error_player_blocked,
    [WALLET_GAME_NOT_FOUND] = &error_game_not_found,
    [WALLET_GAMES_UNAVAILABLE] = &error_games_unconfirmed,
};

static void reply(struct http_request *request, const struct ledger_job *job)
{
    const struct wallet_answer *answer = &job->answer;
    switch (answer->kind) {
    case WALLET_ANSWER_BALANCE:
        reply_balance(request, &job->request, &answer->account);
        return;
    case WALLET_ANSWER_TRANSACTION:
        reply_transaction(request, &job->request, &answer->transaction, answer->replayed);
        return;
    case WALLET_ANSWER_REFUSED:
        if (answer->verdict == WALLET_PLAYER_BLOCKED) /* no transaction is kept to look up */
            http_request_note(request, TEXT("player"), job->request.player_id);
        if (answer->verdict == WALLET_REFERENCE_CONFLICT)
            http_reply_error_as(request, &error_transaction_conflict, REFERENCE_CONFLICT);
        else
            http_reply_error(request, refusals[answer->verdict]);
        return;
    case WALLET_ANSWER_UNAVAILABLE:
        http_reply_error(request, games_ledger_error(answer->trouble));
        return;
    case WALLET_ANSWER_UNKNOWN:
        http_reply_error(request, &error_wallet_outcome_unknown);
        return;
    }
}

/* ---- pending requests ------------------------------------------------------------------------ */

static void deliver(struct mail *mail)
{
    struct pending_request *pending = (struct pending_request *)(void *)mail;
    struct http_request *request = http_deferral_take(&pending->deferral);
    if (request != NULL)
        reply(request, &pending->job);
    http_deferral_remove(&pending->deferral); /* this may free the handler */
    memory_free(pending);
}

/* For a request that the ledger does not have. */
static void fail_request(struct pending_request *pending, const struct http_error *error)
{
    http_deferral_remove(&pending->deferral);
    struct http_request *request = http_deferral_take(&pending->deferral);
    if (request != NULL)
        http_reply_error(request, error);
    memory_free(pending);
}

/* Takes the job back, whether its client still waits or not, unless it is in a batch by now. */
static void on_queued_too_long(struct http_deferral *deferral)
{
    struct pending_request *pending = CONTAINER_OF(deferral, struct pending_request, deferral);
    struct wallet_handler *handler = pending->handler;
    if (ledger_withdraw(handler->ledger, &pending->job)) {
        fail_request(pending, &error_ledger_queued_too_long);
        return;
    }
    http_deferral_remove(deferral);
    http_deferral_append(&handler->in_batch, deferral);
}

/* A reply here may start the next request of its connection, which is gathered too. */
static void hand_over(struct wallet_handler *handler)
{
    struct mail_list jobs = STAILQ_HEAD_INITIALIZER(jobs);
    while (!STAILQ_EMPTY(&handler->gathered)) {
        STAILQ_CONCAT(&jobs, &handler->gathered);
        ledger_submit(handler->ledger, &jobs);
        while (!STAILQ_EMPTY(&jobs)) { /* the queue is full */
            struct pending_request *pending = (struct pending_request *)(void *)STAILQ_FIRST(&jobs);
            STAILQ_REMOVE_HEAD(&jobs, link);
            fail_request(pending, &error_ledger_queue_full);
        }
    }
}

static void on_before_waiting(uv_prepare_t *prepare)
{
    hand_over(prepare->data);
}

static void on_unanswered(struct http_deferral *deferral)
{
    struct http_request *request = http_deferral_take(deferral);
    if (request != NULL)
        http_reply_error(request, &error_wallet_unanswered);
}

/* ---- the route ------------------------------------------------------------------------------- */

/* Looks the game up here, where the table is in memory; the ledger decides whether the result
 * matters. */
static enum wallet_game game_of(struct wallet_handler *handler, struct games_pages *games,
                                const struct wallet_request *decoded)
{
    const struct games_game *game;
    if (decoded->operation != LEDGER_DEBIT || decoded->game_id[0] == '\0')
        return WALLET_GAME_VISIBLE;
    /* Now, and not when the request began: a client may send the rest of it slowly. */
    const struct games_table *table =
        games_pages_table(games, clock_loop_ms(mailbox_loop(handler->mailbox)));
    if (table == NULL)
        return WALLET_GAME_UNKNOWN;
    if (decoded->provider_id[0] != '\0')
        game = games_table_find_of_provider(table, decoded->provider_id, text_of(decoded->game_id));
    else
        game = games_table_find(table, decoded->customer_id, decoded->sandbox,
                                text_of(decoded->game_id));
    return game != NULL ? WALLET_GAME_VISIBLE : WALLET_GAME_INVISIBLE;
}

static bool decode(struct http_request *request, enum wallet_client client,
                   struct wallet_request *decoded)
{
    struct text type = http_request_only_field(request, HTTP_FIELD_CONTENT_TYPE);
    struct strict_json_fault fault;
    enum strict_json result = wallet_request_decode(type, request->body, client, decoded, &fault);
    if (result != STRICT_JSON_OK)
        games_reply_fault(request, result, fault.message);
    return result == STRICT_JSON_OK;
}

static void submit(struct wallet_handler *handler, struct games_pages *games,
                   struct http_request *request, const struct wallet_request *decoded)
{
    CHECK(!handler->early.closed);
    struct pending_request *pending = memory_alloc_zeroed(1, sizeof *pending);
    pending->job.mail.deliver = deliver;
    pending->job.mailbox = handler->mailbox;
    pending->job.request = *decoded;
    pending->job.game = game_of(handler, games, decoded);
    pending->handler = handler;
    if (decoded->transaction_id[0] != '\0')
        http_request_note(request, TEXT("transaction"), decoded->transaction_id);
    http_defer(&pending->deferral, request);
    http_deferral_append(&handler->early, &pending->deferral);
    STAILQ_INSERT_TAIL(&handler->gathered, &pending->job.mail, link);
}

void wallet_route(struct wallet_handler *handler, struct games_pages *games,
                  struct http_request *request, enum wallet_client client, const char *id,
                  bool sandbox)
{
    struct wallet_request decoded;
    CHECK(id[0] != '\0');
    if (!decode(request, client, &decoded))
        return;
    if (client == WALLET_CUSTOMER)
        memcpy(decoded.customer_id, id, strlen(id) + 1);
    else
        memcpy(decoded.provider_id, id, strlen(id) + 1);
    decoded.sandbox = sandbox;
    submit(handler, games, request, &decoded);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct wallet_handler *wallet_handler_create(struct ledger *ledger, struct mailbox *mailbox)
{
    struct wallet_handler *handler = memory_alloc_zeroed(1, sizeof *handler);
    handler->ledger = ledger;
    handler->mailbox = mailbox;
    http_deferral_queue_init(&handler->early, mailbox_loop(mailbox), WALLET_QUEUE_MS,
                             on_queued_too_long);
    http_deferral_queue_init(&handler->in_batch, mailbox_loop(mailbox),
                             WALLET_ANSWER_MS - WALLET_QUEUE_MS, on_unanswered);
    STAILQ_INIT(&handler->gathered);
    CHECK(uv_prepare_init(mailbox_loop(mailbox), &handler->before_waiting) == 0);
    CHECK(uv_prepare_start(&handler->before_waiting, on_before_waiting) == 0);
    handler->before_waiting.data = handler;
    uv_unref((uv_handle_t *)&handler->before_waiting);
    handler->parts = 3;
    return handler;
}

static void on_part_over(void *context)
{
    struct wallet_handler *handler = context;
    if (--handler->parts == 0)
        memory_free(handler);
}

static void on_prepare_closed(uv_handle_t *prepare)
{
    on_part_over(prepare->data);
}

void wallet_handler_destroy(struct wallet_handler **handler)
{
    struct wallet_handler *mine = memory_take(handler);
    if (mine == NULL)
        return;
    hand_over(mine); /* clients may have just closed, but accepted requests are completed */
    uv_close((uv_handle_t *)&mine->before_waiting, on_prepare_closed);
    http_deferral_queue_close(&mine->early, on_part_over, mine);
    http_deferral_queue_close(&mine->in_batch, on_part_over, mine);
}
