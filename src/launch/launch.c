/*
 * From a launch request to a URL, signed by us or given by the provider; see launch.h.
 *
 * The game is looked up again when the player has been found: what was disabled meanwhile is not
 * launched, and no table has to be kept alive for a request that waits.
 */
#include "launch/launch.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "admission/errors.h"
#include "admission/key.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "base/work_pool.h"
#include "games/errors.h"
#include "http/deferral.h"
#include "launch/document.h"
#include "launch/errors.h"
#include "records/currency.h"

#define TOKEN_SECONDS 300
#define QUEUE_LIMIT 256
#define WAIT_NS 2000000000U /* in the queue */
#define LAUNCH_ID_SIZE 24

struct launcher {
    struct launcher_options options;
    struct work_pool *pool; /* of one thread, which has `store` to itself */
    struct platform_store *store;
    bool failing;
    struct provider_calls *calls;
};

/* A launch until it is replied to: while its player is looked up, then while its provider is asked
 * for a URL. */
struct pending_launch {
    struct provider_call call; /* first; its mail also brings back the look-up */
    struct work work;
    struct launcher *launcher;
    struct games_pages *pages;
    struct http_deferral deferral;
    uint64_t submitted_ns;
    struct launch_request launch;
    char customer_id[CUSTOMER_ID_SIZE];
    char game_id[GAME_ID_SIZE];
    uint8_t exponent;
    enum status status;          /* of the look-up */
    struct player_record player; /* zeros in demo */
    char launch_id[LAUNCH_ID_SIZE];
    int64_t expires_ms;
};

/* ---- the answer ------------------------------------------------------------------------------ */

static void free_pending(struct pending_launch *pending)
{
    buffer_free(&pending->call.document);
    memory_free(pending);
}

static void reply_error(struct pending_launch *pending, struct http_request *request,
                        const struct http_error *error)
{
    http_reply_error(request, error);
    free_pending(pending);
}

static void reply_launched(struct pending_launch *pending, struct http_request *request,
                           struct text url, int64_t expires_ms)
{
    const struct player_record *player = &pending->player;
    struct buffer body = {0};
    struct json_writer json = {.out = &body};
    json_object(&json, NULL);
    json_text(&json, "launch_url", url);
    json_string(&json, "launch_id", pending->launch_id);
    json_string_or_null(&json, "player_id", player->id);
    json_string(&json, "game_id", pending->game_id);
    json_string(&json, "mode", pending->launch.real ? "real" : "demo");
    json_string_or_null(&json, "currency", player->currency);
    if (pending->launch.real)
        json_unsigned(&json, "currency_exponent", player->currency_exponent);
    else
        json_null(&json, "currency_exponent");
    json_time(&json, "expires_at", expires_ms);
    json_end(&json);
    http_reply_json(request, 200, buffer_text(&body));
    buffer_free(&body);
    free_pending(pending);
}

static void on_gone(struct http_deferral *deferral)
{
    struct pending_launch *pending = CONTAINER_OF(deferral, struct pending_launch, deferral);
    atomic_store_explicit(&pending->call.abandoned, true, memory_order_relaxed);
}

/* ---- a URL with a token ---------------------------------------------------------------------- */

static void append_url(struct buffer *out, const struct games_provider *provider,
                       const struct launch_facts *facts)
{
    struct buffer claims = {0};
    launch_claims_append(&claims, facts);
    const char *launch_url = provider->record.launch_url;
    buffer_append_string(out, launch_url);
    buffer_append_string(out, strchr(launch_url, '?') == NULL ? "?token=" : "&token=");
    launch_token_append(out, buffer_text(&claims), buffer_text(&provider->secret));
    buffer_free(&claims);
}

/* ---- a URL of the provider's ----------------------------------------------------------------- */

/* Back on the serving thread. */
static void deliver_call(struct mail *mail)
{
    struct pending_launch *pending = (struct pending_launch *)(void *)mail;
    const struct provider_call *call = &pending->call;
    struct http_request *request = http_deferral_take(&pending->deferral);
    int64_t theirs = call->answer.expires_ms;
    bool sooner = theirs != 0 && theirs < pending->expires_ms;
    if (request == NULL)
        free_pending(pending);
    else if (call->outcome == PROVIDER_LAUNCHED)
        reply_launched(pending, request, text_of(call->answer.launch_url),
                       sooner ? theirs : pending->expires_ms);
    else
        reply_error(pending, request, &error_provider_unavailable);
}

static void call_provider(struct pending_launch *pending, struct http_request *request,
                          const struct games_provider *provider, const struct launch_facts *facts)
{
    struct provider_call *call = &pending->call;
    char timestamp[24];
    char signature[LAUNCH_SIGNATURE_SIZE];
    call->delivered = deliver_call;
    (void)snprintf(call->provider_id, sizeof call->provider_id, "%s", provider->record.id);
    (void)snprintf(call->url, sizeof call->url, "%s", provider->record.launch_url);
    launch_document_append(&call->document, facts);
    (void)snprintf(timestamp, sizeof timestamp, "%lld", (long long)facts->issued_seconds);
    launch_document_sign(text_of(timestamp), buffer_text(&call->document),
                         buffer_text(&provider->secret), signature);
    (void)snprintf(call->fields[0], sizeof call->fields[0], "X-Croupier-Timestamp: %s", timestamp);
    (void)snprintf(call->fields[1], sizeof call->fields[1], "X-Croupier-Signature: %s", signature);
    http_defer(&pending->deferral, request);
    if (provider_calls_submit(pending->launcher->calls, call) != STATUS_OK) {
        (void)http_deferral_take(&pending->deferral);
        reply_error(pending, request, &error_provider_unavailable);
    }
}

/* Launches what has been judged. In demo every player is a new one. */
static void launch_game(struct pending_launch *pending, struct http_request *request,
                        const struct games_table *table, const struct games_game *game)
{
    const struct launch_request *launch = &pending->launch;
    const struct games_provider *provider = game->provider;
    char subject[GAMES_SUBJECT_SIZE];
    int64_t now_seconds = clock_wall_ms() / 1000;
    identity_generate("lau_", pending->launch_id, sizeof pending->launch_id);
    pending->expires_ms = (now_seconds + TOKEN_SECONDS) * 1000;
    games_table_subject(table, provider->record.id,
                        launch->real ? pending->player.id : pending->launch_id, subject);
    const struct launch_facts facts = {
        .launch_id = pending->launch_id,
        .game_id = game->id,
        .subject = subject,
        .audience = provider->record.audience,
        .currency = launch->currency,
        .language = launch->language,
        .device = launch->device,
        .return_url = provider->record.return_url,
        .currency_exponent = pending->player.currency_exponent,
        .real = launch->real,
        .issued_seconds = now_seconds,
        .expires_seconds = now_seconds + TOKEN_SECONDS,
    };
    if (provider->record.launch_call) {
        call_provider(pending, request, provider, &facts);
        return;
    }
    struct buffer url = {0};
    append_url(&url, provider, &facts);
    reply_launched(pending, request, buffer_text(&url), pending->expires_ms);
    buffer_free(&url);
}

/* ---- judging --------------------------------------------------------------------------------- */

static bool offers(const char *list, const char *wanted)
{
    return wanted[0] == '\0' || game_list_has(text_of(list), text_of(wanted));
}

/* The game, when it can be launched like that; else NULL, and replied. */
static const struct games_game *judge(struct pending_launch *pending, struct http_request *request,
                                      const struct games_table *table, struct text game_id)
{
    const struct http_error *error;
    const struct launch_request *launch = &pending->launch;
    const struct games_game *game =
        table == NULL ? NULL : games_table_find(table, pending->customer_id, game_id);
    if (table == NULL)
        error = &error_security_config_unavailable;
    else if (game == NULL)
        error = &error_game_not_found;
    else if (!launch->real && !game->demo)
        error = &error_mode_not_supported;
    else if (!offers(game->currencies, launch->currency))
        error = &error_currency_not_supported;
    else if (!offers(game->languages, launch->language))
        error = &error_language_not_supported;
    else if (!offers(game->devices, launch->device))
        error = &error_device_not_supported;
    else if (game->provider->secret.size == 0)
        error = &error_provider_unavailable;
    else
        return game;
    reply_error(pending, request, error);
    return NULL;
}

/* ---- the player ------------------------------------------------------------------------------ */

static void note(struct launcher *launcher, enum status status, const struct error *error)
{
    bool failing = status != STATUS_OK;
    if (failing && !launcher->failing)
        log_event(launcher->options.log, LOG_ERROR, "players cannot be opened",
                  LOG_STRING("reason", error->text), LOG_STRING("status", status_name(status)));
    if (!failing && launcher->failing)
        log_event(launcher->options.log, LOG_INFO, "players can be opened again");
    launcher->failing = failing;
}

/* While the store does not answer, each job that asks it holds up those behind it for all of its
 * deadline. So the store is not asked for requests that have waited too long or are gone. That
 * goes for all that are queued at the end: by then no request is left. */
static bool is_worth_asking(const struct pending_launch *pending)
{
    return !atomic_load_explicit(&pending->call.abandoned, memory_order_relaxed) &&
           clock_monotonic_ns() - pending->submitted_ns < WAIT_NS;
}

static enum status find_player(struct pending_launch *pending)
{
    struct launcher *launcher = pending->launcher;
    const struct launch_request *launch = &pending->launch;
    struct error error = {.text = ""};
    enum status status = STATUS_OK;
    if (launcher->store == NULL)
        status = platform_store_open(&launcher->store, &launcher->options.store, &error);
    if (status == STATUS_OK)
        status =
            platform_player_open(launcher->store, pending->customer_id, launch->player_reference,
                                 launch->currency, pending->exponent, &pending->player, &error);
    note(launcher, status, &error);
    if (status == STATUS_UNAVAILABLE || status == STATUS_MALFORMED)
        platform_store_close(&launcher->store);
    return status;
}

/* Back on the serving thread. */
static void deliver_player(struct mail *mail)
{
    struct pending_launch *pending = (struct pending_launch *)(void *)mail;
    struct http_request *request = http_deferral_take(&pending->deferral);
    if (request == NULL) {
        free_pending(pending);
    } else if (pending->status != STATUS_OK) {
        reply_error(pending, request, &error_ledger_unavailable);
    } else {
        const struct games_table *table = games_pages_table(pending->pages, clock_monotonic_ms());
        const struct games_game *game = judge(pending, request, table, text_of(pending->game_id));
        if (game != NULL)
            launch_game(pending, request, table, game);
    }
}

/* On the launcher's thread. */
static void open_player(struct work *work)
{
    struct pending_launch *pending = CONTAINER_OF(work, struct pending_launch, work);
    pending->status = is_worth_asking(pending) ? find_player(pending) : STATUS_UNAVAILABLE;
    pending->call.mail.deliver = deliver_player;
    mailbox_post(pending->call.mailbox, &pending->call.mail);
}

static void submit(struct pending_launch *pending, struct http_request *request)
{
    bool known = currency_exponent(text_of(pending->launch.currency), &pending->exponent);
    pending->work.run = open_player;
    pending->submitted_ns = clock_monotonic_ns();
    http_defer(&pending->deferral, request);
    if (known && work_pool_submit(pending->launcher->pool, &pending->work) == STATUS_OK)
        return;
    (void)http_deferral_take(&pending->deferral);
    reply_error(pending, request, known ? &error_overloaded : &error_currency_not_supported);
}

void launch_route(struct launcher *launcher, struct games_pages *pages, struct mailbox *mailbox,
                  struct http_request *request, const char *customer_id, struct text game_id)
{
    struct pending_launch *pending = memory_alloc_zeroed(1, sizeof *pending);
    struct text content_type = http_request_only_field(request, HTTP_FIELD_CONTENT_TYPE);
    enum strict_json decoded = launch_request_decode(content_type, request->body, &pending->launch);
    if (decoded != STRICT_JSON_OK) {
        reply_error(pending, request,
                    decoded == STRICT_JSON_UNKNOWN_FIELD ? &error_unknown_field
                                                         : &error_invalid_request);
        return;
    }
    pending->launcher = launcher;
    pending->pages = pages;
    pending->call.mailbox = mailbox;
    pending->deferral.gone = on_gone;
    memcpy(pending->customer_id, customer_id, strlen(customer_id) + 1);
    const struct games_table *table = games_pages_table(pages, clock_monotonic_ms());
    const struct games_game *game = judge(pending, request, table, game_id);
    if (game == NULL)
        return;
    memcpy(pending->game_id, game->id, strlen(game->id) + 1);
    if (pending->launch.real)
        submit(pending, request);
    else
        launch_game(pending, request, table, game);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct launcher *launcher_create(const struct launcher_options *options)
{
    struct launcher *launcher = memory_alloc_zeroed(1, sizeof *launcher);
    launcher->options = *options;
    launcher->pool = work_pool_create("launches", 1, QUEUE_LIMIT);
    launcher->calls =
        provider_calls_create(options->call_timeout_ms, options->call_ca_file, options->log);
    return launcher;
}

void launcher_facts(struct launcher *launcher, struct launcher_facts *facts)
{
    facts->queue_depth = work_pool_depth(launcher->pool);
    provider_calls_facts(launcher->calls, &facts->calls);
}

void launcher_destroy(struct launcher **at)
{
    struct launcher *launcher = *at;
    *at = NULL;
    if (launcher == NULL)
        return;
    work_pool_destroy(&launcher->pool);
    provider_calls_destroy(&launcher->calls);
    platform_store_close(&launcher->store);
    memory_free(launcher);
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void write_calls(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct launcher_facts *launcher = facts;
    for (size_t i = 0; i < PROVIDER_OUTCOME_COUNT; i++) {
        buffer_append_format(out, "%s{outcome=\"%s", metric->name, provider_outcome_name(i));
        metric_number(out, "\"}", NULL, launcher->calls.outcomes[i]);
    }
}

static void write_call_times(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct launcher_facts *launcher = facts;
    metric_histogram(out, metric->name,
                     &(struct metric_histogram){provider_call_bounds_ms, launcher->calls.durations,
                                                PROVIDER_CALL_BUCKETS, launcher->calls.duration_ns,
                                                true});
}

const struct metric launcher_metrics[] = {
    METRIC_FACT("croupier_launch_queue_depth", "gauge", struct launcher_facts, queue_depth,
                "Launches waiting for their player to be looked up"),
    METRIC_WRITTEN("croupier_launch_calls_total", "counter", write_calls,
                   "Calls of providers' launch endpoints, by outcome"),
    METRIC_FACT("croupier_launch_calls_in_flight", "gauge", struct launcher_facts, calls.in_flight,
                "Calls of launch endpoints under way"),
    METRIC_FACT("croupier_launch_calls_waiting", "gauge", struct launcher_facts, calls.waiting,
                "Calls of launch endpoints waiting for others to end"),
    METRIC_WRITTEN("croupier_launch_call_seconds", "histogram", write_call_times,
                   "Time of calls of launch endpoints, waiting included"),
    {0},
};
