/* A secret that is given is taken out of the body before the fields are read, and never answered;
 * one that is made here is answered once, as a key is. */
#include "console/providers.h"

#include <openssl/crypto.h>
#include <string.h>

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
    struct buffer rest; /* the body without it */
    struct provider_sealing sealing;
};

static void free_secret(struct secret *secret)
{
    if (secret->plain.data != NULL)
        OPENSSL_cleanse(secret->plain.data, secret->plain.capacity);
    buffer_free(&secret->plain);
    buffer_free(&secret->rest);
    secrets_destroy(&secret->secrets);
}

/* ---- the body -------------------------------------------------------------------------------- */

static enum status wrong(struct console_call *call, struct error *error)
{
    memcpy(call->field, "secret", sizeof "secret");
    return error_set(error, STATUS_INVALID, "secret: must be a text of 1 to %u bytes, once",
                     SECRETS_PLAIN_MAX);
}

/* Moves the member `secret` into `plain`, and all others into `rest`. */
static enum status split_body(struct console_call *call, struct secret *secret, struct error *error)
{
    struct text body = json_text_trim(call->body);
    struct text name;
    struct text value;
    bool seen = false;
    if (body.size == 0)
        body = TEXT("{}");
    if (json_text_check(body, NULL, NULL) != STATUS_OK || json_text_kind(body) != JSON_TEXT_OBJECT)
        return error_set(error, STATUS_INVALID, "the body must be a JSON object");
    struct json_text_cursor cursor = json_text_open(body);
    /* Unescaped text is never longer, so neither buffer grows and leaves a copy behind. */
    buffer_reserve(&secret->plain, body.size + 1);
    buffer_reserve(&secret->rest, body.size + 2);
    buffer_append_char(&secret->rest, '{');
    while (json_text_next_member(&cursor, &name, &value)) {
        if (!json_text_string_equals(name, TEXT("secret"))) {
            buffer_append_string(&secret->rest, secret->rest.size > 1 ? "," : "");
            buffer_append_text(&secret->rest, name);
            buffer_append_char(&secret->rest, ':');
            buffer_append_text(&secret->rest, value);
            continue;
        }
        if (seen ||
            (json_text_kind(value) != JSON_TEXT_STRING && json_text_kind(value) != JSON_TEXT_NULL))
            return wrong(call, error);
        seen = true;
        secret->made = json_text_kind(value) == JSON_TEXT_NULL;
        if (!secret->made && !json_text_unescape(value, &secret->plain))
            return wrong(call, error);
    }
    buffer_append_char(&secret->rest, '}');
    secret->made = secret->made || !seen;
    return STATUS_OK;
}

static enum status take_secret(struct console_call *call, struct secret *secret,
                               struct error *error)
{
    char made[MADE_SIZE];
    enum status status = split_body(call, secret, error);
    if (status == STATUS_OK && secret->made) {
        base62_random(made, sizeof made);
        buffer_clear(&secret->plain);
        buffer_append(&secret->plain, made, sizeof made);
        OPENSSL_cleanse(made, sizeof made);
    }
    if (status == STATUS_OK && (secret->plain.size == 0 || secret->plain.size > SECRETS_PLAIN_MAX))
        status = wrong(call, error);
    if (status == STATUS_OK)
        status = secrets_open_key(&secret->secrets, call->config->secrets_key_file, error);
    if (status == STATUS_INVALID && call->field[0] == '\0')
        status = STATUS_UNAVAILABLE; /* of the key's file: the request is not to blame */
    call->body = buffer_text(&secret->rest);
    secret->sealing = (struct provider_sealing){
        .secrets = secret->secrets, .secret = buffer_text(&secret->plain), .now_ms = call->now_ms};
    return status;
}

static void answer(struct console_call *call, const struct provider_record *provider,
                   const struct secret *secret)
{
    console_answer(call, &provider_resource, provider);
    if (secret->made)
        console_answer_once(call, "secret", buffer_text(&secret->plain));
    call->status = 201;
}

/* ---- adding and retiring --------------------------------------------------------------------- */

enum status console_add_provider(struct console_call *call, struct error *error)
{
    struct secret secret = {.made = false};
    struct provider_record provider;
    const struct console_making making = {
        .required = {"id", "name"}, .edit = provider_seal, .context = &secret.sealing};
    enum status status = take_secret(call, &secret, error);
    if (status == STATUS_OK) {
        status = console_make(call, &making, &provider, error);
        if (status == STATUS_INVALID && call->field[0] == '\0')
            memcpy(call->field, "launch_url", sizeof "launch_url"); /* neither URL was given */
    }
    if (status == STATUS_OK)
        status = console_insert(call, &provider, error);
    if (status == STATUS_OK)
        answer(call, &provider, &secret);
    free_secret(&secret);
    return status;
}

static enum status change_secrets(struct console_call *call, resource_editor *edit,
                                  const void *context, struct provider_record *provider,
                                  struct error *error)
{
    static const struct setting none[] = {{0}};
    const struct resource_edit whole = {.settings = none, .edit = edit, .context = context};
    return resource_change(&provider_resource, call->store, call->id, &whole, provider, error);
}

enum status console_add_secret(struct console_call *call, struct error *error)
{
    struct secret secret = {.made = false};
    struct provider_record provider;
    enum status status = take_secret(call, &secret, error);
    if (status == STATUS_OK && !text_equals(call->body, TEXT("{}")))
        status = error_set(error, STATUS_INVALID, "the body may have a secret, and nothing else");
    if (status == STATUS_OK)
        status = change_secrets(call, provider_add_secret, &secret.sealing, &provider, error);
    if (status == STATUS_OK)
        answer(call, &provider, &secret);
    free_secret(&secret);
    return status;
}

enum status console_retire_secret(struct console_call *call, struct error *error)
{
    struct provider_record provider;
    enum status status = change_secrets(call, provider_retire_secret, call->part, &provider, error);
    if (status == STATUS_OK)
        console_answer(call, &provider_resource, &provider);
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
    memcpy(call->field, "game", sizeof "game");
    return error_set(error, STATUS_INVALID, "game: must be the id of a game");
}

static enum status run_trial(struct console_call *call, const char *game_id,
                             struct provider_trial *trial, struct error *error)
{
    struct secrets *secrets = NULL;
    enum status status = secrets_open_key(&secrets, call->config->secrets_key_file, error);
    const struct provider_trial_options options = {
        .secrets = secrets,
        .provider_id = call->id,
        .game_id = game_id[0] != '\0' ? game_id : NULL,
        .ca_file = call->config->launch_ca_file,
        .timeout_ms = call->config->launch_timeout_ms,
        .urls = true,
    };
    if (status == STATUS_INVALID)
        status = STATUS_UNAVAILABLE;
    if (status == STATUS_OK)
        status = provider_trial_run(call->store, &options, trial, error);
    secrets_destroy(&secrets);
    return status;
}

enum status console_try_provider(struct console_call *call, struct error *error)
{
    struct json_writer json = {.out = &call->answer};
    char game_id[GAME_ID_SIZE];
    struct provider_trial trial;
    enum status status = read_game(call, game_id, error);
    if (status != STATUS_OK)
        return status;
    if (!console_begin(call, CONSOLE_TRIAL))
        return error_set(error, STATUS_CONFLICT, "another trial is under way");
    status = run_trial(call, game_id, &trial, error);
    console_end(call, CONSOLE_TRIAL);
    if (status != STATUS_OK)
        return status;
    json_object(&json, NULL);
    provider_trial_write(&json, call->id, &trial);
    json_end(&json);
    return STATUS_OK;
}
