/*
 * Turns a launch request into a URL, which croupier signs or the provider gives; see launch.h.
 *
 * The game is looked up again when the player has been found: a game disabled in between is not
 * launched, and no table has to be kept alive for a request that waits.
 */
#include "launch/launch.h"

#include "admission/error_rows.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "base/threads.h"
#include "games/errors.h"
#include "http/deferral.h"
#include "launch/document.h"
#include "launch/error_rows.h"
#include "records/currency.h"
#include "stores/platform_players.h"

#define TOKEN_SECONDS 300
#define QUEUE_LIMIT 256U
#define AT_ONCE 64U         /* launches of one transaction */
#define WAIT_NS 2000000000U /* in the queue */

struct pending_launch;
STAILQ_HEAD(pending_queue, pending_launch);

struct launcher {
    struct platform_store_options store_options;
    struct platform_store *store; /* this and the next: the thread's */
    bool failing;
    struct provider_calls *calls;
    struct background thread; /* its lock guards the next two */
    struct pending_queue queue;
    size_t queued; /* those that wait for the thread, and those that it works on */
};

/* A launch until it is replied to: while its player is looked up and it is written down, then while
 * its provider is asked for a URL. */
struct pending_launch {
    struct provider_call call; /* first; its mail also comes back from the store */
    STAILQ_ENTRY(pending_launch) link;
    struct launcher *launcher;
    struct games_pages *pages;
    struct http_deferral deferral;
    uint64_t submitted_ns;
    struct launch_request launch;
    bool sandbox;
    uint8_t exponent;
    uint8_t subject_key[SECRETS_KEY_SIZE];
    enum status status;          /* of the store */
    struct player_record player; /* zeros in demo */
    bool blocked;                /* it is, when it was looked up */
    struct launch_record record;
    int64_t expires_ms;
};

/* ---- the answer ------------------------------------------------------------------------------ */

static void free_pending(struct pending_launch *pending)
{
    buffer_free(&pending->call.document);
    explicit_bzero(pending->subject_key, sizeof pending->subject_key);
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
    json_string(&json, "launch_id", pending->record.id);
    json_string_or_null(&json, "player_id", player->id);
    json_string(&json, "game_id", pending->record.game_id);
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
    relaxed_store(&pending->call.abandoned, true);
}

/* ---- a URL of the provider's ----------------------------------------------------------------- */

static const struct http_error *const faults[PROVIDER_OUTCOME_COUNT] = {
    [PROVIDER_REFUSED] = &error_provider_refused,
    [PROVIDER_MALFORMED] = &error_provider_malformed,
    [PROVIDER_TIMEOUT] = &error_provider_timeout,
    [PROVIDER_UNREACHABLE] = &error_provider_unreachable,
    [PROVIDER_UNTRUSTED] = &error_provider_untrusted,
    [PROVIDER_BROKEN] = &error_provider_broken,
    [PROVIDER_OVERLOADED] = &error_provider_calls_full,
    [PROVIDER_ABANDONED] = &error_provider_cancelled,
    [PROVIDER_CANCELLED] = &error_provider_cancelled,
};

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
        reply_error(pending, request, faults[call->outcome]);
}

static void call_provider(struct pending_launch *pending, struct http_request *request,
                          const struct games_provider *provider, const struct launch_facts *facts)
{
    struct provider_call *call = &pending->call;
    const struct games_secret *secret = &provider->secrets[0];
    call->delivered = deliver_call;
    (void)snprintf(call->provider_id, sizeof call->provider_id, "%s", provider->record.id);
    (void)snprintf(call->url, sizeof call->url, "%s", provider->record.launch_url);
    launch_document_append(&call->document, facts);
    launch_fields_make(&call->fields, facts->issued_seconds, buffer_text(&call->document),
                       secret->kid, buffer_text(&secret->bytes));
    char trace[HTTP_TRACE_SIZE];
    if (http_request_trace(request, trace))
        (void)snprintf(call->fields.lines[3], sizeof call->fields.lines[3], "traceparent: %s",
                       trace);
    http_defer(&pending->deferral, request);
    if (provider_calls_submit(pending->launcher->calls, call) != STATUS_OK) {
        (void)http_deferral_take(&pending->deferral);
        reply_error(pending, request, &error_provider_calls_full);
    }
}

/* Launches what has been judged and written down. */
static void launch_game(struct pending_launch *pending, struct http_request *request,
                        const struct games_game *game)
{
    const struct launch_request *launch = &pending->launch;
    const struct games_provider *provider = game->provider;
    int64_t now_seconds = clock_wall_ms() / 1000;
    pending->expires_ms = (now_seconds + TOKEN_SECONDS) * 1000;
    const struct launch_facts facts = {
        .launch_id = pending->record.id,
        .game_id = game->id,
        .subject = pending->record.subject,
        .audience = provider->record.audience,
        .currency = launch->currency,
        .language = launch->language,
        .device = launch->device,
        .return_url = provider->record.return_url,
        .country = launch->country,
        .player_ip = launch->player_ip,
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
    launch_url_append(&url, provider->record.launch_url, &facts, provider->secrets[0].kid,
                      buffer_text(&provider->secrets[0].bytes));
    reply_launched(pending, request, buffer_text(&url), pending->expires_ms);
    buffer_free(&url);
}

/* ---- judging --------------------------------------------------------------------------------- */

/* May the game be offered where the player is? A country is not needed in demo. */
static bool is_offered_in(const struct games_game *game, const char *country)
{
    const char *provider = game->provider->record.blocked_countries;
    return country[0] == '\0' ||
           (!game_list_has(text_of(game->blocked_countries), text_of(country)) &&
            !game_list_has(text_of(provider), text_of(country)));
}

static bool needs_country(const struct games_game *game, const struct launch_request *launch)
{
    return launch->real && launch->country[0] == '\0' &&
           (game->blocked_countries[0] != '\0' ||
            game->provider->record.blocked_countries[0] != '\0');
}

static const struct games_game *refuse_without_country(struct pending_launch *pending,
                                                       struct http_request *request)
{
    games_reply_fault(request, STRICT_JSON_INVALID, "The field country is missing.");
    free_pending(pending);
    return NULL;
}

/* The game, when it can be launched like that; else NULL, and replied. */
static const struct games_game *judge(struct pending_launch *pending, struct http_request *request,
                                      const struct games_table *table, struct text game_id)
{
    const struct http_error *error;
    const struct launch_request *launch = &pending->launch;
    const struct games_game *game =
        table == NULL
            ? NULL
            : games_table_find(table, pending->record.customer_id, pending->sandbox, game_id);
    if (table == NULL)
        error = &error_games_unconfirmed;
    else if (game == NULL)
        error = &error_game_not_found;
    else if (!launch->real && !game->demo)
        error = &error_mode_not_supported;
    else if (!game_list_offers(game->currencies, launch->currency))
        error = &error_currency_not_supported;
    else if (!game_list_offers(game->languages, launch->language))
        error = &error_language_not_supported;
    else if (!game_list_offers(game->devices, launch->device))
        error = &error_device_not_supported;
    else if (needs_country(game, launch))
        return refuse_without_country(pending, request);
    else if (!is_offered_in(game, launch->country))
        error = &error_country_not_supported;
    else if (game->provider->secret_count == 0)
        error = &error_provider_without_secret;
    else
        return game;
    reply_error(pending, request, error);
    return NULL;
}

/* ---- the store: on the launcher's thread ----------------------------------------------------- */

/* While the store does not answer, each launch that asks it holds up those behind it for all of its
 * deadline. So the store is not asked for requests that have waited too long or are gone. At the
 * end this holds for all queued launches, because no request is left. */
static bool is_wanted(const struct pending_launch *pending)
{
    return !relaxed_load(&pending->call.abandoned) &&
           clock_monotonic_ns() - pending->submitted_ns < WAIT_NS;
}

/* Logs when the store begins to fail, and when it answers again. */
static void see_status(struct launcher *launcher, enum status status, const struct error *error)
{
    bool failing = status != STATUS_OK;
    if (failing && !launcher->failing)
        log_event(launcher->store_options.log, LOG_ERROR, "players cannot be opened",
                  LOG_STRING("reason", error->text), LOG_STRING("status", status_name(status)));
    if (!failing && launcher->failing)
        log_event(launcher->store_options.log, LOG_INFO, "players can be opened again");
    launcher->failing = failing;
    if (status == STATUS_UNAVAILABLE || status == STATUS_MALFORMED)
        platform_store_close(&launcher->store);
}

/* The player of a launch for money, and what the provider knows it as. In demo every player is a
 * new one. */
static enum status find_player(struct pending_launch *pending)
{
    struct launcher *launcher = pending->launcher;
    const struct launch_request *launch = &pending->launch;
    struct launch_record *record = &pending->record;
    struct error error = {.text = ""};
    enum status status = platform_store_open(&launcher->store, &launcher->store_options, &error);
    if (status == STATUS_OK && launch->real)
        status =
            platform_player_open(launcher->store, record->customer_id, launch->player_reference,
                                 launch->currency, pending->exponent, &pending->player, &error);
    see_status(launcher, status == STATUS_INVALID ? STATUS_OK : status, &error);
    if (status != STATUS_OK)
        return status;
    memcpy(record->player_id, pending->player.id, sizeof record->player_id);
    games_subject(pending->subject_key, record->provider_id,
                  launch->real ? record->player_id : record->id, record->subject);
    record->created_ms = clock_wall_ms();
    pending->blocked = player_is_blocked(&pending->player, record->created_ms);
    return STATUS_OK;
}

static bool is_to_be_kept(const struct pending_launch *pending)
{
    return pending->status == STATUS_OK && !pending->blocked;
}

/* Writes down those whose player was found, in one transaction. */
static void write_launches(struct launcher *launcher, struct pending_launch *const *pending,
                           size_t count)
{
    struct launch_record records[AT_ONCE];
    struct error error = {.text = ""};
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (is_to_be_kept(pending[i]))
            records[found++] = pending[i]->record;
    if (found == 0)
        return;
    enum status status = platform_store_open(&launcher->store, &launcher->store_options, &error);
    if (status == STATUS_OK)
        status = platform_launches_add(launcher->store, records, found, &error);
    see_status(launcher, status, &error);
    for (size_t i = 0; i < count; i++)
        if (is_to_be_kept(pending[i]))
            pending[i]->status = status;
}

/* Back on the serving thread. */
static void deliver_kept(struct mail *mail)
{
    struct pending_launch *pending = (struct pending_launch *)(void *)mail;
    struct http_request *request = http_deferral_take(&pending->deferral);
    if (request == NULL) {
        free_pending(pending);
    } else if (pending->status != STATUS_OK) {
        reply_error(pending, request,
                    pending->status == STATUS_INVALID ? &error_currency_not_supported
                                                      : games_ledger_error(pending->status));
    } else if (pending->blocked) {
        reply_error(pending, request, &error_player_blocked);
    } else {
        const struct games_table *table = games_pages_table(pending->pages, clock_monotonic_ms());
        const struct games_game *game =
            judge(pending, request, table, text_of(pending->record.game_id));
        if (game != NULL)
            launch_game(pending, request, game);
    }
}

/* Waits for launches, when `done` of those taken last are posted. 0: the end. */
static size_t take_queued(struct launcher *launcher, struct pending_launch *taken[AT_ONCE],
                          size_t done)
{
    size_t count = 0;
    uv_mutex_lock(&launcher->thread.lock);
    launcher->queued -= done;
    while (STAILQ_EMPTY(&launcher->queue) && !launcher->thread.stopping)
        uv_cond_wait(&launcher->thread.wake, &launcher->thread.lock);
    while (count < AT_ONCE && !STAILQ_EMPTY(&launcher->queue)) {
        taken[count++] = STAILQ_FIRST(&launcher->queue);
        STAILQ_REMOVE_HEAD(&launcher->queue, link);
    }
    uv_mutex_unlock(&launcher->thread.lock);
    return count;
}

/* Launches that arrive while others are written down share the next transaction. */
static void run(void *argument)
{
    struct launcher *launcher = argument;
    struct pending_launch *taken[AT_ONCE];
    size_t count = 0;
    while ((count = take_queued(launcher, taken, count)) > 0) {
        for (size_t i = 0; i < count; i++)
            taken[i]->status = is_wanted(taken[i]) ? find_player(taken[i]) : STATUS_UNAVAILABLE;
        write_launches(launcher, taken, count);
        for (size_t i = 0; i < count; i++) {
            taken[i]->call.mail.deliver = deliver_kept;
            mailbox_post(taken[i]->call.mailbox, &taken[i]->call.mail);
        }
    }
    platform_store_close(&launcher->store);
}

/* ---- a request ------------------------------------------------------------------------------- */

/* False: there are too many already. */
static bool enqueue(struct launcher *launcher, struct pending_launch *pending)
{
    uv_mutex_lock(&launcher->thread.lock);
    bool room = launcher->queued < QUEUE_LIMIT;
    if (room) {
        launcher->queued++;
        STAILQ_INSERT_TAIL(&launcher->queue, pending, link);
        uv_cond_signal(&launcher->thread.wake);
    }
    uv_mutex_unlock(&launcher->thread.lock);
    return room;
}

static void submit(struct pending_launch *pending, struct http_request *request)
{
    bool known = !pending->launch.real ||
                 currency_exponent(text_of(pending->launch.currency), &pending->exponent);
    pending->submitted_ns = clock_monotonic_ns();
    http_defer(&pending->deferral, request);
    if (known && enqueue(pending->launcher, pending))
        return;
    (void)http_deferral_take(&pending->deferral);
    reply_error(pending, request, known ? &error_launches_full : &error_currency_not_supported);
}

void launch_route(struct launcher *launcher, struct games_pages *pages, struct mailbox *mailbox,
                  struct http_request *request, const char *customer_id, bool sandbox,
                  struct text game_id)
{
    struct pending_launch *pending = memory_alloc_zeroed(1, sizeof *pending);
    struct launch_record *record = &pending->record;
    struct text content_type = http_request_only_field(request, HTTP_FIELD_CONTENT_TYPE);
    struct strict_json_fault fault;
    enum strict_json decoded =
        launch_request_decode(content_type, request->body, &pending->launch, &fault);
    if (decoded != STRICT_JSON_OK) {
        games_reply_fault(request, decoded, fault.message);
        free_pending(pending);
        return;
    }
    pending->launcher = launcher;
    pending->sandbox = sandbox;
    pending->pages = pages;
    pending->call.mailbox = mailbox;
    pending->deferral.gone = on_gone;
    memcpy(record->customer_id, customer_id, strlen(customer_id) + 1);
    const struct games_table *table = games_pages_table(pages, clock_monotonic_ms());
    const struct games_game *game = judge(pending, request, table, game_id);
    if (game == NULL)
        return;
    record_id_generate("lau_", record->id, sizeof record->id);
    http_request_note(request, TEXT("launch"), record->id);
    memcpy(record->game_id, game->id, strlen(game->id) + 1);
    memcpy(record->provider_id, game->provider->record.id, sizeof record->provider_id);
    games_table_subject_key(table, pending->subject_key);
    submit(pending, request);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct launcher *launcher_create(const struct platform_store_options *store,
                                 uint32_t call_timeout_ms, const char *call_ca_file)
{
    struct launcher *launcher = memory_alloc_zeroed(1, sizeof *launcher);
    launcher->store_options = *store;
    STAILQ_INIT(&launcher->queue);
    launcher->calls = provider_calls_create(call_timeout_ms, call_ca_file, store->log);
    background_start(&launcher->thread, "launches", run, launcher);
    return launcher;
}

void launcher_facts(struct launcher *launcher, struct launcher_facts *facts)
{
    uv_mutex_lock(&launcher->thread.lock);
    facts->queue_depth = launcher->queued;
    uv_mutex_unlock(&launcher->thread.lock);
    provider_calls_facts(launcher->calls, &facts->calls);
}

void launcher_destroy(struct launcher **at)
{
    struct launcher *launcher = memory_take(at);
    if (launcher == NULL)
        return;
    background_stop(&launcher->thread);
    provider_calls_destroy(&launcher->calls);
    memory_free(launcher);
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void write_call_times(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct launcher_facts *launcher = facts;
    metric_histogram(out, metric->name,
                     &(struct metric_histogram){provider_call_bounds_ms, launcher->calls.durations,
                                                PROVIDER_CALL_BUCKETS, launcher->calls.duration_ns,
                                                1000, NULL});
}

const struct metric launcher_metrics[] = {
    METRIC_FACT("croupier_launch_queue_depth", struct launcher_facts, queue_depth),
    METRIC_EACH("croupier_launch_calls_total", struct launcher_facts, calls.outcomes, "outcome",
                &provider_outcomes),
    METRIC_FACT("croupier_launch_calls_in_flight", struct launcher_facts, calls.in_flight),
    METRIC_FACT("croupier_launch_calls_waiting", struct launcher_facts, calls.waiting),
    METRIC_WRITTEN("croupier_launch_call_seconds", write_call_times),
    {0},
};
