/*
 * The demo's provider: its records in the platform store, its page and its rounds; see casino.h.
 *
 * It checks a token as a provider must: first the signature with the shared secret, then the
 * audience and the time. Only then does it trust the claims.
 */
#include "demo/casino.h"

#include <openssl/rand.h>

#include "base/base62.h"
#include "base/base64url.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "demo/texts.h"
#include "http/deferral.h"
#include "launch/document.h"
#include "launch/outgoing.h"
#include "operator/games.h"
#include "operator/providers.h"
#include "sealing/provider_secret.h"

#define SECRET_SIZE 44 /* base62, so that a shell can hand it on */
#define TOKEN_MAX 6000U
#define ATTEMPTS 4U
#define ATTEMPT_MS 2000U
#define ANSWER_MAX 16384U
#define ROUND_ID_SIZE 17

static const char provider_field[] = "X-Croupier-Provider: " DEMO_PROVIDER;

/* Each sector pays this many times the stake. The page has the same list. The wheel returns 90 % on
 * average. */
static const int64_t sectors[] = {0, 2, 0, 1, 0, 3, 0, 1, 0, 2};
#define SECTOR_COUNT (sizeof sectors / sizeof sectors[0])

/* ---- the provider's records ------------------------------------------------------------------ */

static enum status add_provider(struct platform_store *store, const struct secrets *secrets,
                                int64_t now_ms, struct provider_record *record, struct error *error)
{
    char secret[SECRET_SIZE];
    struct games_put_result games;
    base62_random(secret, sizeof secret - 1);
    const struct setting settings[] = {
        {"id", DEMO_PROVIDER},
        {"name", "Dune Studio"},
        {"launch_url", "http://127.0.0.1:9090" DEMO_PAGE}, /* until the demo knows its port */
        {0},
    };
    const struct provider_sealing sealing = {secrets, {secret, sizeof secret - 1}, now_ms};
    const struct resource_edit edit = {
        .settings = settings, .edit = provider_seal, .context = &sealing};
    enum status status = resource_add(&provider_resource, store, &edit, now_ms, record, error);
    explicit_bzero(secret, sizeof secret);
    return status == STATUS_OK
               ? games_import(store, "games.json", text_of(demo_games), now_ms, &games, error)
               : status;
}

enum status demo_casino_prepare(struct demo_casino *casino, struct platform_store *store,
                                int64_t now_ms, struct error *error)
{
    struct provider_record record;
    enum status status = platform_get(store, &provider_table, DEMO_PROVIDER, &record, error);
    return status == STATUS_NOT_FOUND ? add_provider(store, casino->secrets, now_ms, &record, error)
                                      : status;
}

enum status demo_casino_open(struct demo_casino *casino,
                             const struct platform_store_options *platform, const char *page_url,
                             const char *wallet_url, struct error *error)
{
    struct platform_store *store = NULL;
    struct provider_record record;
    enum status status = platform_store_open(&store, platform, error);
    if (status != STATUS_OK)
        return status;
    platform_store_act_as(store, "croupier", "demo");
    status = resource_change(&provider_resource, store, DEMO_PROVIDER,
                             EDIT({"launch_url", page_url}), &record, error);
    platform_store_close(&store);
    casino->platform = *platform;
    casino->wallet_url = memory_copy_string(wallet_url);
    return status;
}

void demo_casino_clear(struct demo_casino *casino)
{
    secrets_destroy(&casino->secrets);
    memory_free(casino->wallet_url);
    casino->wallet_url = NULL;
}

/* ---- the token ------------------------------------------------------------------------------- */

/* A POST with a token, which a thread of libuv's pool answers. It copies its texts, because the
 * request ends when its client closes. */
struct visit {
    uv_work_t work;
    struct http_deferral deferral;
    const struct demo_casino *casino;
    struct buffer query, body;
    struct buffer json; /* the token's claims */
    struct text claims; /* in it; at == NULL: the signature is wrong */
    struct provider_record provider;
    struct buffer secret; /* of the provider; the newest, which signs */
    int status;
    struct buffer answer;
};

struct claim {
    char text[80]; /* "": the token has none */
};

static struct claim claim(const struct visit *visit, const char *name)
{
    struct claim claim;
    if (!strict_json_string(json_text_member(visit->claims, text_of(name)), claim.text,
                            sizeof claim.text))
        claim.text[0] = '\0';
    return claim;
}

/* Does signing the claims with one of the provider's secrets give this token? No other token is
 * valid for them. */
static bool is_signed(struct visit *visit, struct text token)
{
    bool good = false;
    for (size_t i = 0; i < PROVIDER_SECRETS_MAX && visit->provider.secrets[i].size > 0; i++) {
        struct buffer expected = {0}, secret = {0};
        buffer_reserve(&secret, SECRETS_PLAIN_MAX); /* growing would leave a copy behind */
        if (provider_secret_unseal(visit->casino->secrets, &visit->provider, i, &secret) ==
            STATUS_OK) {
            launch_token_append(&expected, buffer_text(&visit->json),
                                visit->provider.secrets[i].kid, buffer_text(&secret));
            good = good || (expected.size == token.size &&
                            CRYPTO_memcmp(expected.data, token.at, token.size) == 0);
        }
        buffer_free(&expected);
        if (i == 0)
            visit->secret = secret;
        else
            buffer_wipe(&secret);
    }
    return good;
}

/* NULL: the token is valid. Otherwise the fault, for people: a token may expire between the opening
 * of the page and a round. */
static const char *check_token(struct visit *visit)
{
    struct platform_store *store = NULL;
    struct error error;
    struct text token = buffer_text(&visit->query), parameter = TEXT("token=");
    if (text_starts_with(token, parameter))
        token = (struct text){token.at + parameter.size, token.size - parameter.size};
    enum status status = platform_store_open(&store, &visit->casino->platform, &error);
    if (status == STATUS_OK)
        status = platform_get(store, &provider_table, DEMO_PROVIDER, &visit->provider, &error);
    platform_store_close(&store);
    if (status != STATUS_OK)
        return "The provider's secrets cannot be read now.";
    struct text rest = token;
    (void)text_cut(&rest, '.');
    struct text claims = text_cut(&rest, '.');
    if (token.size <= TOKEN_MAX && rest.at != NULL && base64url_read(claims, &visit->json) &&
        is_signed(visit, token))
        visit->claims = buffer_text(&visit->json);
    if (visit->claims.at == NULL || json_text_check(visit->claims, NULL, NULL) != STATUS_OK)
        return "The token's signature is not good.";
    if (strcmp(claim(visit, "aud").text, DEMO_PROVIDER) != 0)
        return "The token is for another provider.";
    int64_t until_s;
    (void)json_text_integer(json_text_member(visit->claims, TEXT("exp")), &until_s);
    if (visit->body.size == 0 && until_s <= clock_wall_ms() / 1000)
        return "The token has expired: it is good for five minutes. Launch the game again.";
    return NULL;
}

/* ---- money ----------------------------------------------------------------------------------- */

struct round {
    char id[ROUND_ID_SIZE];
    int64_t stake_minor, won_minor;
    size_t sector;
};

/* Signs the call for each attempt, because a timestamp is valid for a minute, and retries with the
 * same ids while there is no answer (docs/wallet.md, "After a time-out"). 0: the outcome is
 * unknown; a 500 or 503 counts as no answer. */
static long call_wallet(const struct visit *visit, struct text document, struct buffer *answer)
{
    struct outgoing *outgoing = outgoing_create("", 1);
    long status = 0;
    for (size_t i = 0; i < ATTEMPTS && status == 0; i++) {
        struct launch_fields fields;
        launch_fields_make(&fields, clock_wall_ms() / 1000, document,
                           visit->provider.secrets[0].kid, buffer_text(&visit->secret));
        struct outgoing_post post = {.url = visit->casino->wallet_url,
                                     .body = document,
                                     .fields = {"Content-Type: application/json", provider_field,
                                                fields.lines[0], fields.lines[1], fields.lines[2]},
                                     .timeout_ms = ATTEMPT_MS,
                                     .answer_max = ANSWER_MAX};
        buffer_clear(answer);
        if (outgoing_wait(outgoing, &post, answer) && post.status < 500)
            status = post.status;
    }
    outgoing_destroy(&outgoing);
    return status;
}

/* BALANCE (without a round), the DEBIT of a round, its CREDIT or its ROLLBACK. */
static long operate(const struct visit *visit, const char *operation, const struct round *round,
                    struct buffer *answer)
{
    struct buffer document = {0};
    struct json_writer json = {.out = &document};
    bool debit = strcmp(operation, "DEBIT") == 0, credit = strcmp(operation, "CREDIT") == 0;
    char id[48];
    json_object(&json, NULL);
    json_string(&json, "operation", operation);
    json_string(&json, "player_id", claim(visit, "sub").text);
    if (round != NULL) {
        (void)snprintf(id, sizeof id, "%s-%s", operation, round->id);
        json_string(&json, "transaction_id", id);
        (void)snprintf(id, sizeof id, "DEBIT-%s", round->id);
        if (!debit) { /* the win, or the rollback, is the end of it */
            json_string(&json, "reference_transaction_id", id);
            json_bool(&json, "round_ended", true);
        }
    }
    if (debit || credit) {
        json_integer(&json, "amount_minor", debit ? round->stake_minor : round->won_minor);
        json_string(&json, "currency", claim(visit, "currency").text);
        json_string(&json, "launch_id", claim(visit, "jti").text);
        json_string(&json, "game_id", claim(visit, "game").text);
        json_string(&json, "round_id", round->id);
    }
    json_end(&json);
    long status = call_wallet(visit, buffer_text(&document), answer);
    buffer_free(&document);
    return status;
}

/* ---- a session and its rounds ---------------------------------------------------------------- */

static void refuse(struct visit *visit, int status, const char *code, const char *message)
{
    visit->status = status;
    http_error_write(&(struct http_error){status, code, message, code}, NULL, &visit->answer);
}

/* Uniform and unpredictable. */
static size_t draw_sector(void)
{
    uint8_t byte;
    do
        CHECK(RAND_bytes(&byte, 1) == 1);
    while (byte >= UINT8_MAX / SECTOR_COUNT * SECTOR_COUNT);
    return byte % SECTOR_COUNT;
}

/* `wallet` is croupier's answer to the CREDIT; empty without money. */
static void write_round(struct visit *visit, const struct round *round, const struct buffer *wallet)
{
    struct json_writer json = {.out = &visit->answer};
    visit->status = 200;
    json_object(&json, NULL);
    json_string(&json, "round_id", round->id);
    json_unsigned(&json, "sector", round->sector);
    json_integer(&json, "stake_minor", round->stake_minor);
    json_integer(&json, "won_minor", round->won_minor);
    json_raw(&json, "wallet", wallet->size > 0 ? buffer_text(wallet) : TEXT("null"));
    json_end(&json);
}

static void play(struct visit *visit, struct round *round)
{
    struct buffer wallet = {0};
    bool money = strcmp(claim(visit, "mode").text, "real") == 0;
    long status = money ? operate(visit, "DEBIT", round, &wallet) : 200;
    if (status == 200) {
        round->sector = draw_sector();
        round->won_minor = round->stake_minor * sectors[round->sector];
        if (!money || operate(visit, "CREDIT", round, &wallet) == 200)
            write_round(visit, round, &wallet);
        else
            refuse(visit, 503, "win_not_answered",
                   "The stake was taken, and the wallet does not take its win.");
    } else if (status != 0) {
        visit->status = (int)status;
        buffer_append_text(&visit->answer, buffer_text(&wallet));
    } else {
        refuse(visit, 503, "wallet_unavailable",
               operate(visit, "ROLLBACK", round, &wallet) == 200
                   ? "The wallet did not answer in time. The stake was rolled back."
                   : "The wallet does not answer. Whether the stake was taken is not known.");
    }
    buffer_free(&wallet);
}

/* {"stake_minor": 100}; 0: malformed. */
static int64_t read_stake(struct text body)
{
    const struct text name = TEXT("stake_minor");
    struct text stake;
    int64_t minor;
    return strict_json_object(body, &name, 1, &stake) == STRICT_JSON_OK &&
                   json_text_integer(stake, &minor) && minor > 0 && minor <= DEMO_STAKE_MAX
               ? minor
               : 0;
}

static void write_session(struct visit *visit)
{
    struct json_writer json = {.out = &visit->answer};
    struct buffer wallet = {0};
    bool money = strcmp(claim(visit, "mode").text, "real") == 0;
    bool known = money && operate(visit, "BALANCE", NULL, &wallet) == 200;
    visit->status = 200;
    json_object(&json, NULL);
    json_raw(&json, "claims", buffer_text(&visit->json));
    json_raw(&json, "wallet", known ? buffer_text(&wallet) : TEXT("null"));
    json_end(&json);
    buffer_free(&wallet);
}

static void run_visit(uv_work_t *work)
{
    struct visit *visit = work->data;
    struct round round = {.stake_minor = read_stake(buffer_text(&visit->body))};
    const char *wrong = check_token(visit);
    base62_random(round.id, ROUND_ID_SIZE - 1);
    if (wrong != NULL)
        refuse(visit, 403, "not_launched", wrong);
    else if (visit->body.size == 0)
        write_session(visit);
    else if (round.stake_minor == 0)
        refuse(visit, 400, "bad_stake", "stake_minor is an integer from 1 to 100000.");
    else
        play(visit, &round);
    buffer_wipe(&visit->secret);
}

/* The round is complete even if its player has left. */
static void end_visit(uv_work_t *work, int result)
{
    struct visit *visit = work->data;
    struct http_request *request = http_deferral_take(&visit->deferral);
    CHECK(result == 0); /* work is never cancelled */
    if (request != NULL)
        http_reply_json(request, visit->status, buffer_text(&visit->answer));
    buffer_free(&visit->query);
    buffer_free(&visit->body);
    buffer_free(&visit->json);
    buffer_free(&visit->answer);
    memory_free(visit);
}

static void begin_visit(const struct demo_casino *casino, uv_loop_t *loop,
                        struct http_request *request)
{
    struct visit *visit = memory_alloc_zeroed(1, sizeof *visit);
    visit->work.data = visit;
    visit->casino = casino;
    buffer_append_text(&visit->query, request->query);
    buffer_append_text(&visit->body, request->body);
    http_defer(&visit->deferral, request);
    CHECK(uv_queue_work(loop, &visit->work, run_visit, end_visit) == 0);
}

bool demo_casino_handle(void *context, uv_loop_t *loop, struct http_request *request)
{
    static const struct {
        struct text path;
        const char *type, *content;
    } files[] = {
        {TEXT_INIT(DEMO_PAGE), "text/html; charset=utf-8", demo_page},
        {TEXT_INIT(DEMO_PAGE ".json"), "application/json", demo_games},
        {TEXT_INIT(DEMO_PAGE ".css"), "text/css; charset=utf-8", demo_page_style},
        {TEXT_INIT(DEMO_PAGE ".js"), "text/javascript; charset=utf-8", demo_page_script},
    };
    bool reads = request->method == METHOD_GET || request->method == METHOD_HEAD;
    size_t file = 0, count = sizeof files / sizeof files[0];
    while (file < count && !text_equals(request->path, files[file].path))
        file++;
    if (file == count || (file > 0 && !reads))
        return false;
    if (reads) {
        http_request_add_field(request, TEXT("Content-Security-Policy"),
                               TEXT("default-src 'none'; script-src 'self'; style-src 'self'; "
                                    "connect-src 'self'; base-uri 'none'; form-action 'none'; "
                                    "frame-ancestors 'none'"));
        http_request_add_field(request, TEXT("Referrer-Policy"), TEXT("no-referrer"));
        http_reply_text(request, 200, files[file].type, text_of(files[file].content));
    } else if (request->method == METHOD_POST) {
        begin_visit(context, loop, request);
    } else {
        http_request_add_field(request, TEXT("Allow"), TEXT("GET, HEAD, POST"));
        http_reply_error(request, &error_method_not_allowed);
    }
    return true;
}
