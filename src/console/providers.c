/* A secret that is given is never answered; one that is made here is answered once, as a key is. */
#include "console/handlers.h"

#include "base/base62.h"
#include "base/json_text.h"
#include "base/strict_json.h"
#include "console/resources.h"
#include "operator/provider_trial.h"
#include "operator/providers.h"

#define MADE_SIZE 43 /* digits of base62: 256 bits */

struct secret {
    struct secrets *secrets; /* the key to seal it with */
    struct buffer plain;
    bool made;
    struct provider_sealing sealing;
};

static void free_secret(struct secret *secret)
{
    buffer_wipe(&secret->plain);
    secrets_destroy(&secret->secrets);
}

/* ---- the body -------------------------------------------------------------------------------- */

/* Reads the member `secret`, or makes a secret when it is not there or null. `alone`: it may be the
 * only member. */
static enum status read_secret(const struct console_call *call, bool alone, struct secret *secret,
                               struct error *error)
{
    static const struct text names[] = {TEXT_INIT("secret")};
    struct text value = {NULL, 0};
    char made[MADE_SIZE];
    enum strict_json read = alone && json_text_trim(call->body).size == 0
                                ? STRICT_JSON_OK
                                : strict_json_object(call->body, names, 1, &value);
    if (read == STRICT_JSON_INVALID || (alone && read != STRICT_JSON_OK))
        return error_invalid(error, alone
                                        ? "the body may have a secret, and nothing else"
                                        : "the body must be a JSON object, with each member once");
    /* Unescaped text is never longer, so the buffer does not grow and leave a copy behind. */
    buffer_reserve(&secret->plain, value.size + MADE_SIZE + 1);
    secret->made = value.at == NULL || json_text_kind(value) == JSON_TEXT_NULL;
    if (secret->made) {
        base62_random(made, sizeof made);
        buffer_append(&secret->plain, made, sizeof made);
        explicit_bzero(made, sizeof made);
        return STATUS_OK;
    }
    return json_text_kind(value) == JSON_TEXT_STRING && json_text_unescape(value, &secret->plain) &&
                   secret->plain.size > 0 && secret->plain.size <= SECRETS_PLAIN_MAX
               ? STATUS_OK
               : error_invalid(error, "secret: must be a text of 1 to %u bytes", SECRETS_PLAIN_MAX);
}

/* The key of a file that is wrong is the server's fault, not the request's. */
static enum status open_key(const struct console_call *call, struct secrets **secrets,
                            struct error *error)
{
    enum status status = secrets_open_key(secrets, call->config->secrets_key_file, error);
    return status == STATUS_OK ? status : STATUS_UNAVAILABLE;
}

static enum status take_secret(struct console_call *call, bool alone, struct secret *secret,
                               struct error *error)
{
    enum status status = read_secret(call, alone, secret, error);
    if (status == STATUS_OK)
        status = open_key(call, &secret->secrets, error);
    if (status == STATUS_OK)
        status =
            providers_try_key(call->store, secret->secrets, call->config->secrets_key_file, error);
    secret->sealing = (struct provider_sealing){
        .secrets = secret->secrets, .secret = buffer_text(&secret->plain), .now_ms = call->now_ms};
    return status;
}

static void answer(struct console_call *call, const struct secret *secret)
{
    console_answer(call);
    if (secret->made)
        console_answer_once(call, "secret", buffer_text(&secret->plain));
    call->status = 201;
}

/* ---- adding and retiring --------------------------------------------------------------------- */

enum status console_add_provider(struct console_call *call, struct error *error)
{
    struct secret secret = {.made = false};
    const struct console_making making = {
        .required = {"id", "name"}, .edit = provider_seal, .context = &secret.sealing};
    enum status status = take_secret(call, false, &secret, error);
    if (status == STATUS_OK)
        status = console_make(call, &making, error);
    if (status == STATUS_OK)
        status = console_insert(call, error);
    if (status == STATUS_OK)
        answer(call, &secret);
    free_secret(&secret);
    return status;
}

static enum status change_secrets(struct console_call *call, resource_editor *edit,
                                  const void *context, struct error *error)
{
    const struct resource_edit whole = {.edit = edit, .context = context};
    return resource_change(&provider_resource, call->store, call->id, &whole, call->record, error);
}

enum status console_add_secret(struct console_call *call, struct error *error)
{
    struct secret secret = {.made = false};
    enum status status = take_secret(call, true, &secret, error);
    if (status == STATUS_OK)
        status = change_secrets(call, provider_add_secret, &secret.sealing, error);
    if (status == STATUS_OK)
        answer(call, &secret);
    free_secret(&secret);
    return status;
}

enum status console_retire_secret(struct console_call *call, struct error *error)
{
    enum status status = change_secrets(call, provider_retire_secret, call->part, error);
    if (status == STATUS_OK)
        console_answer(call);
    return status;
}

/* ---- a trial --------------------------------------------------------------------------------- */

static enum status read_game(struct console_call *call, char id[GAME_ID_SIZE], struct error *error)
{
    static const struct text names[] = {TEXT_INIT("game")};
    struct text value = TEXT("");
    id[0] = '\0';
    if (json_text_trim(call->body).size == 0)
        return STATUS_OK;
    if (strict_json_object(call->body, names, 1, &value) == STRICT_JSON_OK &&
        (value.at == NULL || strict_json_string(value, id, GAME_ID_SIZE)))
        return STATUS_OK;
    return error_invalid(error, "game: must be the id of a game");
}

static enum status run_trial(struct console_call *call, const char *game_id,
                             struct provider_trial *trial, struct error *error)
{
    struct secrets *secrets = NULL;
    enum status status = open_key(call, &secrets, error);
    const struct provider_trial_options options = {
        .secrets = secrets,
        .provider_id = call->id,
        .game_id = game_id[0] != '\0' ? game_id : NULL,
        .ca_file = call->config->launch_ca_file,
        .timeout_ms = call->config->launch_timeout_ms,
        .urls = true,
    };
    if (status == STATUS_OK)
        status = provider_trial_run(call->store, &options, trial, error);
    secrets_destroy(&secrets);
    return status;
}

enum status console_try_provider(struct console_call *call, struct error *error)
{
    char game_id[GAME_ID_SIZE];
    struct provider_trial trial;
    enum status status = read_game(call, game_id, error);
    if (status == STATUS_OK)
        status = console_begin(call, CONSOLE_TRIAL, error);
    if (status != STATUS_OK)
        return status;
    status = run_trial(call, game_id, &trial, error);
    console_end(call, CONSOLE_TRIAL);
    if (status != STATUS_OK)
        return status;
    json_object(&call->json, NULL);
    provider_trial_write(&call->json, call->id, &trial);
    return STATUS_OK;
}
