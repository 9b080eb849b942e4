/*
 * The demo's provider, its games and its page; see casino.h.
 *
 * The page does what a provider must do with a token: check the signature with the shared secret,
 * then the audience and the time, and only then believe what it says.
 */
#include "demo/casino.h"

#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <yyjson.h>

#include "base/base64url.h"
#include "base/clock.h"
#include "base/memory.h"
#include "demo/texts.h"
#include "games/table.h"
#include "launch/document.h"
#include "operator/games.h"
#include "operator/providers.h"
#include "records/currency.h"
#include "records/provider_secret.h"
#include "stores/platform_ledger.h"

#define SECRET_SIZE 32
#define TOKEN_MAX 6000U

/* ---- the store ------------------------------------------------------------------------------- */

static enum status add_provider(struct platform_store *store, const struct secrets *secrets,
                                int64_t now_ms, struct provider_record *record, struct error *error)
{
    char secret[SECRET_SIZE];
    CHECK(RAND_bytes((unsigned char *)secret, sizeof secret) == 1);
    const struct setting settings[] = {
        {"id", DEMO_PROVIDER},
        {"name", "Dune Studio"},
        {"launch_url", "http://127.0.0.1:9090" DEMO_PAGE_PATH}, /* until the demo knows its port */
        {0},
    };
    const struct provider_sealing sealing = {secrets, {secret, sizeof secret}};
    const struct resource_edit edit = {settings, provider_seal, &sealing};
    enum status status = resource_add(&provider_resource, store, &edit, now_ms, record, error);
    OPENSSL_cleanse(secret, sizeof secret);
    return status;
}

enum status demo_casino_prepare(struct demo_casino *casino, struct platform_store *store,
                                const struct secrets *secrets, int64_t now_ms, bool *added,
                                struct error *error)
{
    struct provider_record record;
    struct games_put_result games;
    enum status status = platform_get(store, &provider_table, DEMO_PROVIDER, &record, error);
    *added = status == STATUS_NOT_FOUND;
    if (*added) {
        status = add_provider(store, secrets, now_ms, &record, error);
        if (status == STATUS_OK)
            status = games_import(store, "games.json", text_of(demo_games), now_ms, &games, error);
    }
    if (status != STATUS_OK)
        return status;
    secrets_derive(secrets, GAMES_SUBJECT_PURPOSE, casino->subject_key);
    buffer_reserve(&casino->secret, SECRETS_PLAIN_MAX);
    if (provider_secret_unseal(secrets, &record, &casino->secret) != STATUS_OK)
        return error_set(error, STATUS_MALFORMED,
                         "the secret of provider " DEMO_PROVIDER " was stored under another key; "
                         "remove the demo's directory to start over");
    return STATUS_OK;
}

/* NULL: it cannot be opened now. */
static struct platform_store *open_store(const struct demo_casino *casino, struct error *error)
{
    struct platform_store *store = NULL;
    const struct platform_store_options options = {.uri = casino->platform_uri,
                                                   .timeout_ms = casino->platform_timeout_ms};
    return platform_store_open(&store, &options, error) == STATUS_OK ? store : NULL;
}

enum status demo_casino_set_url(struct demo_casino *casino, const char *platform_uri,
                                uint32_t timeout_ms, const char *url, struct error *error)
{
    struct provider_record record;
    memory_free(casino->platform_uri);
    casino->platform_uri = memory_copy_string(platform_uri);
    casino->platform_timeout_ms = timeout_ms;
    struct platform_store *store = open_store(casino, error);
    if (store == NULL)
        return STATUS_UNAVAILABLE;
    enum status status = resource_change(&provider_resource, store, DEMO_PROVIDER,
                                         EDIT({"launch_url", url}), &record, error);
    platform_store_close(&store);
    return status;
}

void demo_casino_clear(struct demo_casino *casino)
{
    if (casino->secret.data != NULL)
        OPENSSL_cleanse(casino->secret.data, casino->secret.capacity);
    buffer_free(&casino->secret);
    OPENSSL_cleanse(casino->subject_key, sizeof casino->subject_key);
    memory_free(casino->platform_uri);
    casino->platform_uri = NULL;
}

/* ---- the balance ----------------------------------------------------------------------------- */

/* The player whom the token names, among so many. */
#define PLAYERS_MAX 10000U

struct player_search {
    const struct demo_casino *casino;
    const char *subject;
    size_t seen;
    char id[PLAYER_ID_SIZE]; /* "" while not found */
};

static bool match_subject(void *context, const void *visited)
{
    const struct player_record *record = visited;
    struct player_search *search = context;
    char subject[GAMES_SUBJECT_SIZE];
    games_subject(search->casino->subject_key, DEMO_PROVIDER, record->id, subject);
    if (strcmp(subject, search->subject) == 0)
        memcpy(search->id, record->id, sizeof search->id);
    return search->id[0] == '\0' && ++search->seen < PLAYERS_MAX;
}

static enum status find_account(const struct demo_casino *casino, struct platform_store *store,
                                const char *subject, struct ledger_account *account)
{
    struct player_search search = {.casino = casino, .subject = subject};
    enum status status = platform_list(store, &player_table, NULL, match_subject, &search, NULL);
    if (status == STATUS_OK && search.id[0] == '\0')
        status = STATUS_NOT_FOUND;
    return status == STATUS_OK ? platform_ledger_balance(store, search.id, account, NULL) : status;
}

static const char *claim(yyjson_val *claims, const char *name)
{
    const char *text = yyjson_get_str(yyjson_obj_get(claims, name));
    return text != NULL ? text : "";
}

/* Nothing in demo mode, which has no player. */
static void append_balance(struct buffer *out, const struct demo_casino *casino,
                           struct platform_store *store, yyjson_val *claims)
{
    struct ledger_account account;
    char amount[CURRENCY_AMOUNT_SIZE];
    if (strcmp(claim(claims, "mode"), "real") != 0)
        return;
    if (store == NULL || find_account(casino, store, claim(claims, "sub"), &account) != STATUS_OK) {
        buffer_append_string(out, "<p>The balance cannot be read now.</p>\n");
        return;
    }
    currency_format(account.balance_minor, account.player.currency_exponent, amount);
    buffer_append_format(out, "<p>Balance: <strong>%s %s</strong></p>\n", amount,
                         account.player.currency);
}

/* ---- the page -------------------------------------------------------------------------------- */

static void append_html(struct buffer *out, const char *text)
{
    for (; *text != '\0'; text++) {
        const char *entity = *text == '<'   ? "&lt;"
                             : *text == '>' ? "&gt;"
                             : *text == '&' ? "&amp;"
                             : *text == '"' ? "&quot;"
                                            : NULL;
        if (entity != NULL)
            buffer_append_string(out, entity);
        else
            buffer_append_char(out, *text);
    }
}

/* The claims of a token whose signature is good, as JSON; false: it is not. */
static bool verify(const struct demo_casino *casino, struct text token, struct buffer *claims)
{
    struct buffer expected = {0};
    struct text rest = token;
    (void)text_cut(&rest, '.');
    struct text encoded = text_cut(&rest, '.');
    bool good = token.size <= TOKEN_MAX && rest.at != NULL && base64url_read(encoded, claims);
    if (good) { /* signs the same claims again: the only good token for them */
        launch_token_append(&expected, buffer_text(claims), buffer_text(&casino->secret));
        good =
            expected.size == token.size && CRYPTO_memcmp(expected.data, token.at, token.size) == 0;
    }
    buffer_free(&expected);
    return good;
}

/* Why the claims are not to be believed now, or NULL. */
static const char *refuse(yyjson_val *claims)
{
    if (strcmp(claim(claims, "aud"), DEMO_PROVIDER) != 0)
        return "The token is for another provider.";
    if (yyjson_get_sint(yyjson_obj_get(claims, "exp")) <= clock_wall_ms() / 1000)
        return "The token has expired: it is good for five minutes. Launch the game again.";
    return NULL;
}

static void append_claims(struct buffer *out, yyjson_val *claims)
{
    size_t at, count;
    yyjson_val *name, *value;
    yyjson_obj_foreach(claims, at, count, name, value)
    {
        buffer_append_string(out, "<tr><th>");
        append_html(out, yyjson_get_str(name));
        buffer_append_string(out, "</th><td>");
        if (yyjson_is_str(value))
            append_html(out, yyjson_get_str(value));
        else
            buffer_append_u64(out, yyjson_get_uint(value));
        buffer_append_string(out, "</td></tr>\n");
    }
}

static void begin_page(struct buffer *out, const char *title)
{
    buffer_append_string(
        out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
    append_html(out, title);
    buffer_append_string(
        out, "</title>\n<style>body{font:16px sans-serif;margin:3em auto;max-width:40em}"
             "th{text-align:left;padding-right:2em}td{overflow-wrap:anywhere}</style></head>\n"
             "<body><h1>");
    append_html(out, title);
    buffer_append_string(out, "</h1>\n");
}

/* The page of a launch whose token is good. */
static void append_launch(struct buffer *out, const struct demo_casino *casino, yyjson_val *claims)
{
    struct platform_store *store = open_store(casino, NULL);
    struct game_record game;
    const char *id = claim(claims, "game");
    bool known = store != NULL && platform_get(store, &game_table, id, &game, NULL) == STATUS_OK;
    begin_page(out, known ? game.name : id);
    append_balance(out, casino, store, claims);
    buffer_append_string(out, "<p>This is the provider's side of a launch: here the game would be. "
                              "The token's signature, audience and time are good. It says:</p>\n"
                              "<table>\n");
    append_claims(out, claims);
    buffer_append_string(out, "</table>\n");
    platform_store_close(&store);
}

/* Writes the page; returns its HTTP status. */
static int write_page(const struct demo_casino *casino, struct text token, struct buffer *out)
{
    struct buffer json = {0};
    yyjson_doc *doc = verify(casino, token, &json) ? yyjson_read(json.data, json.size, 0) : NULL;
    yyjson_val *claims = yyjson_doc_get_root(doc);
    const char *wrong = doc == NULL ? "The token's signature is not good." : refuse(claims);
    if (wrong == NULL) {
        append_launch(out, casino, claims);
    } else {
        begin_page(out, "Not launched");
        buffer_append_format(out, "<p>%s</p>\n", wrong);
    }
    buffer_append_string(out, "</body></html>\n");
    yyjson_doc_free(doc);
    buffer_free(&json);
    return wrong == NULL ? 200 : 403;
}

bool demo_casino_page(void *context, struct http_request *request)
{
    static const struct text parameter = TEXT_INIT("token=");
    struct buffer page = {0};
    struct text token = request->query;
    if (!text_equals(request->path, TEXT(DEMO_PAGE_PATH)))
        return false;
    if (text_starts_with(token, parameter))
        token = (struct text){token.at + parameter.size, token.size - parameter.size};
    int status = write_page(context, token, &page);
    http_request_add_field(request, TEXT("Content-Security-Policy"),
                           TEXT("default-src 'none'; style-src 'unsafe-inline'"));
    http_reply_text(request, status, "text/html; charset=utf-8", buffer_text(&page));
    buffer_free(&page);
    return true;
}
