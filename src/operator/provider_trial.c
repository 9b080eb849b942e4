/* A launch document as the server sends it, posted and waited for; see provider_trial.h. */
#include "operator/provider_trial.h"

#include "base/base62.h"
#include "base/clock.h"
#include "operator/providers.h"
#include "sealing/provider_secret.h"

#define GOOD_SECONDS 300

/* ---- which game ------------------------------------------------------------------------------ */

struct game_search {
    const struct provider_trial_options *options;
    char found[GAME_ID_SIZE];
    bool demo;
};

static bool see_game(void *context, const void *record)
{
    const struct game_record *game = record;
    struct game_search *search = context;
    const struct provider_trial_options *options = search->options;
    bool named = options->game_id != NULL && strcmp(game->id, options->game_id) == 0;
    bool better =
        options->game_id == NULL && (search->found[0] == '\0' || (game->demo && !search->demo));
    if (strcmp(game->provider_id, options->provider_id) == 0 && (named || better)) {
        memcpy(search->found, game->id, sizeof search->found);
        search->demo = game->demo;
    }
    return true;
}

static enum status find_game(struct platform_store *store,
                             const struct provider_trial_options *options, char id[GAME_ID_SIZE],
                             struct error *error)
{
    struct game_search search = {.options = options};
    enum status status = platform_list(store, &game_table, NULL, see_game, &search, error);
    if (status == STATUS_OK && search.found[0] == '\0')
        return error_not_found(error, "provider '%s' has no %s%s%s", options->provider_id,
                               options->game_id != NULL ? "game '" : "game",
                               options->game_id != NULL ? options->game_id : "",
                               options->game_id != NULL ? "'" : " to launch");
    memcpy(id, search.found, sizeof search.found);
    return status;
}

/* ---- the call -------------------------------------------------------------------------------- */

static void make_url(const struct provider_record *provider, const struct launch_facts *facts,
                     struct text secret, struct provider_trial *trial)
{
    struct buffer url = {0};
    launch_url_append(&url, provider->launch_url, facts, provider->secrets[0].kid, secret);
    CHECK(url.size < sizeof trial->answer.launch_url);
    memcpy(trial->answer.launch_url, buffer_string(&url), url.size + 1);
    trial->answer.expires_ms = facts->expires_seconds * 1000;
    trial->outcome = PROVIDER_LAUNCHED;
    buffer_free(&url);
}

static void call(const struct provider_record *provider, const struct launch_facts *facts,
                 struct text secret, const struct provider_trial_options *options,
                 struct provider_trial *trial)
{
    struct launch_fields fields;
    struct buffer document = {0};
    struct buffer answer = {0};
    uint64_t begun_ns = clock_monotonic_ns();
    struct outgoing *outgoing = outgoing_create(options->ca_file, 1);
    launch_document_append(&document, facts);
    launch_fields_make(&fields, facts->issued_seconds, buffer_text(&document),
                       provider->secrets[0].kid, secret);
    struct outgoing_post post =
        provider_post(provider->launch_url, buffer_text(&document), &fields);
    post.timeout_ms = options->timeout_ms;
    if (outgoing_wait(outgoing, &post, &answer))
        post.answer = answer;
    trial->outcome = provider_outcome_of(&post, &trial->answer);
    trial->status = post.status;
    trial->took_ms = (clock_monotonic_ns() - begun_ns) / 1000000U;
    if (trial->outcome != PROVIDER_LAUNCHED)
        (void)snprintf(trial->reason, sizeof trial->reason, "%s", post.reason);
    outgoing_destroy(&outgoing);
    buffer_free(&document);
    buffer_free(&answer);
}

static void launch(const struct provider_record *provider, struct text secret,
                   const struct provider_trial_options *options, struct provider_trial *trial)
{
    char launch_id[LAUNCH_ID_SIZE];
    char subject[LAUNCH_SUBJECT_SIZE] = "";
    int64_t now_seconds = clock_wall_ms() / 1000;
    record_id_generate("lau_", launch_id, sizeof launch_id);
    base62_random(subject, sizeof subject - 1);
    const struct launch_facts facts = {
        .launch_id = launch_id,
        .game_id = trial->game_id,
        .subject = subject,
        .audience = provider->audience,
        .currency = "",
        .language = "",
        .device = "",
        .return_url = provider->return_url,
        .country = "",
        .player_ip = "",
        .issued_seconds = now_seconds,
        .expires_seconds = now_seconds + GOOD_SECONDS,
    };
    if (provider->launch_call)
        call(provider, &facts, secret, options, trial);
    else
        make_url(provider, &facts, secret, trial);
}

enum status provider_trial_run(struct platform_store *store,
                               const struct provider_trial_options *options,
                               struct provider_trial *trial, struct error *error)
{
    struct provider_record provider;
    struct buffer secret = {0};
    memset(trial, 0, sizeof *trial);
    enum status status =
        resource_get(&provider_resource, store, options->provider_id, &provider, error);
    if (status == STATUS_OK && !provider.launch_call && !options->urls)
        return error_conflict(
            error, "provider '%s' has a launch URL and no launch endpoint: it is not called",
            provider.id);
    if (status == STATUS_OK)
        status = find_game(store, options, trial->game_id, error);
    if (status != STATUS_OK)
        return status;
    memcpy(trial->endpoint, provider.launch_url, sizeof trial->endpoint);
    buffer_reserve(&secret, SECRETS_PLAIN_MAX);
    status = provider_secret_unseal(options->secrets, &provider, 0, &secret);
    if (status == STATUS_OK)
        launch(&provider, buffer_text(&secret), options, trial);
    else
        status = error_set(error, status,
                           "the secret of provider '%s' was stored under another key", provider.id);
    buffer_wipe(&secret);
    return status;
}

void provider_trial_write(struct json_writer *json, const char *provider_id,
                          const struct provider_trial *trial)
{
    bool launched = trial->outcome == PROVIDER_LAUNCHED;
    json_string(json, "provider", provider_id);
    json_string(json, "launch_endpoint", trial->endpoint);
    json_string(json, "game_id", trial->game_id);
    json_string(json, "outcome", enum_name(&provider_outcomes, trial->outcome));
    json_unsigned_or_null(json, "status", (uint64_t)trial->status);
    json_unsigned(json, "milliseconds", trial->took_ms);
    json_string_or_null(json, "reason", trial->reason);
    json_string_or_null(json, "launch_url", launched ? trial->answer.launch_url : "");
    json_time(json, "expires_at", launched ? trial->answer.expires_ms : 0);
}
