/*
 * The demo's provider, its games and its page; see demo_casino.h.
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
#include "games/table.h"
#include "launch/request.h"
#include "operator/providers.h"
#include "records/currency.h"
#include "records/provider_secret.h"
#include "stores/platform_ledger.h"

#define SECRET_SIZE 32
#define TOKEN_MAX 6000U

static const struct sample {
    const char *id, *name, *category, *features;
    int16_t rtp_bps;
    enum game_volatility volatility;
    bool demo;
} samples[] = {
    {"anubis-falls", "Anubis Falls", "slots", "free-spins\njackpot", 9612, GAME_HIGH, true},
    {"arctic-reels", "Arctic Reels", "slots", "free-spins", 9550, GAME_MEDIUM, true},
    {"aurora-keno", "Aurora Keno", "keno", "", 9400, GAME_HIGH, true},
    {"baccarat-lagoon", "Baccarat Lagoon", "table", "live", 9894, GAME_LOW, false},
    {"bamboo-garden", "Bamboo Garden", "slots", "megaways", 9640, GAME_MEDIUM, true},
    {"bingo-boulevard", "Bingo Boulevard", "bingo", "jackpot", 9200, GAME_MEDIUM, true},
    {"blackjack-atrium", "Blackjack Atrium", "table", "live", 9950, GAME_LOW, false},
    {"book-of-sand", "Book of Sand", "slots", "free-spins\nbuy-bonus", 9621, GAME_HIGH, true},
    {"brass-and-steam", "Brass & Steam", "slots", "buy-bonus", 9602, GAME_HIGH, true},
    {"cactus-canyon-gold", "Cactus Canyon Gold", "slots", "free-spins", 9580, GAME_MEDIUM, true},
    {"candy-orchard", "Candy Orchard", "slots", "cascades", 9650, GAME_MEDIUM, true},
    {"comet-crash", "Comet Crash", "crash", "autoplay", 9700, GAME_HIGH, true},
    {"coral-kingdom", "Coral Kingdom", "slots", "free-spins\ncascades", 9633, GAME_MEDIUM, true},
    {"dice-duel", "Dice Duel", "dice", "autoplay", 9800, GAME_LOW, true},
    {"dune-roulette", "Dune Roulette", "table", "", 9730, GAME_LOW, true},
    {"emerald-express", "Emerald Express", "slots", "hold-and-win", 9590, GAME_MEDIUM, true},
    {"firefly-forest", "Firefly Forest", "slots", "free-spins", 9616, GAME_LOW, true},
    {"fjord-fishing", "Fjord Fishing", "slots", "free-spins", 9605, GAME_HIGH, true},
    {"gondola-nights", "Gondola Nights", "slots", "", 9570, GAME_LOW, true},
    {"harbour-holdem", "Harbour Hold'em", "poker", "live", 9780, GAME_MEDIUM, false},
    {"jade-mahjong-ways", "Jade Mahjong Ways", "slots", "cascades", 9692, GAME_MEDIUM, true},
    {"kraken-vault", "Kraken Vault", "slots", "jackpot\nhold-and-win", 9500, GAME_HIGH, true},
    {"lantern-lane", "Lantern Lane", "slots", "free-spins", 9615, GAME_LOW, true},
    {"lucky-lighthouse", "Lucky Lighthouse", "scratch", "", 9000, GAME_MEDIUM, true},
    {"marble-mines", "Marble Mines", "mines", "autoplay", 9700, GAME_HIGH, true},
    {"meteor-megaways", "Meteor Megaways", "slots", "megaways\nbuy-bonus", 9648, GAME_HIGH, true},
    {"midnight-baccarat", "Midnight Baccarat", "table", "live", 9894, GAME_LOW, false},
    {"neon-plinko", "Neon Plinko", "plinko", "autoplay", 9900, GAME_MEDIUM, true},
    {"oasis-roulette-live", "Oasis Roulette Live", "table", "live", 9730, GAME_LOW, false},
    {"paper-dragons", "Paper Dragons", "slots", "free-spins", 9611, GAME_MEDIUM, true},
    {"pharaohs-picnic", "Pharaoh's Picnic", "slots", "cascades", 9620, GAME_LOW, true},
    {"pirate-parrot-pays", "Pirate Parrot Pays", "slots", "", 9560, GAME_MEDIUM, true},
    {"quartz-quarry", "Quartz Quarry", "slots", "hold-and-win", 9606, GAME_HIGH, true},
    {"raven-riches", "Raven Riches", "slots", "free-spins", 9594, GAME_HIGH, true},
    {"sakura-storm", "Sakura Storm", "slots", "cascades\nfree-spins", 9645, GAME_MEDIUM, true},
    {"tango-twist", "Tango Twist", "slots", "", 9575, GAME_LOW, true},
};
#define SAMPLE_COUNT (sizeof samples / sizeof samples[0])

/* ---- the store ------------------------------------------------------------------------------- */

static void make_game(const struct sample *sample, struct game_record *record)
{
    *record = (struct game_record){.rtp_bps = sample->rtp_bps,
                                   .volatility = sample->volatility,
                                   .demo = sample->demo,
                                   .enabled = true,
                                   .usable = true};
    (void)snprintf(record->id, sizeof record->id, "%s", sample->id);
    (void)snprintf(record->provider_id, sizeof record->provider_id, DEMO_PROVIDER);
    (void)snprintf(record->name, sizeof record->name, "%s", sample->name);
    (void)snprintf(record->category, sizeof record->category, "%s", sample->category);
    (void)snprintf(record->features, sizeof record->features, "%s", sample->features);
    (void)snprintf(record->currencies, sizeof record->currencies, "EUR\nUSD\nINR\nJPY");
    (void)snprintf(record->languages, sizeof record->languages, "en\nde\nhi");
    (void)snprintf(record->devices, sizeof record->devices, "desktop\nmobile");
}

static enum status add_games(struct platform_store *store, int64_t now_ms, struct error *error)
{
    static const bool set_enabled[SAMPLE_COUNT];
    struct games_put_result result;
    struct game_record *records = memory_alloc_zeroed(SAMPLE_COUNT, sizeof records[0]);
    for (size_t i = 0; i < SAMPLE_COUNT; i++)
        make_game(&samples[i], &records[i]);
    enum status status =
        platform_games_put(store, records, set_enabled, SAMPLE_COUNT, now_ms, &result, error);
    memory_free(records);
    return status;
}

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
    enum status status = platform_get(store, &provider_table, DEMO_PROVIDER, &record, error);
    *added = status == STATUS_NOT_FOUND;
    if (*added) {
        status = add_provider(store, secrets, now_ms, &record, error);
        if (status == STATUS_OK)
            status = add_games(store, now_ms, error);
    }
    if (status != STATUS_OK)
        return status;
    secrets_derive(secrets, GAMES_SUBJECT_PURPOSE, casino->subject_key);
    buffer_reserve(&casino->secret, SECRETS_PLAIN_MAX);
    if (provider_secret_unseal(secrets, &record, &casino->secret) != STATUS_OK)
        return error_set(error, STATUS_MALFORMED,
                         "the secret of provider " DEMO_PROVIDER " was stored under another key; "
                         "remove the demo's directory to begin anew");
    return STATUS_OK;
}

enum status demo_casino_set_url(struct demo_casino *casino, const char *platform_uri,
                                uint32_t timeout_ms, const char *url, struct error *error)
{
    struct platform_store *store = NULL;
    struct provider_record record;
    const struct platform_store_options options = {.uri = platform_uri, .timeout_ms = timeout_ms};
    enum status status = platform_store_open(&store, &options, error);
    if (status == STATUS_OK)
        status = resource_change(&provider_resource, store, DEMO_PROVIDER,
                                 EDIT({"launch_url", url}), &record, error);
    platform_store_close(&store);
    memory_free(casino->platform_uri);
    casino->platform_uri = memory_copy_string(platform_uri);
    casino->platform_timeout_ms = timeout_ms;
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

static enum status find_account(const struct demo_casino *casino, const char *subject,
                                struct ledger_account *account)
{
    struct player_search search = {.casino = casino, .subject = subject};
    struct platform_store *store = NULL;
    const struct platform_store_options options = {.uri = casino->platform_uri,
                                                   .timeout_ms = casino->platform_timeout_ms};
    enum status status = casino->platform_uri == NULL ? STATUS_UNAVAILABLE
                                                      : platform_store_open(&store, &options, NULL);
    if (status == STATUS_OK)
        status = platform_list(store, &player_table, NULL, match_subject, &search, NULL);
    if (status == STATUS_OK && search.id[0] == '\0')
        status = STATUS_NOT_FOUND;
    if (status == STATUS_OK)
        status = platform_ledger_balance(store, search.id, account, NULL);
    platform_store_close(&store);
    return status;
}

/* Nothing in demo mode, which has no player. */
static void append_balance(struct buffer *out, const struct demo_casino *casino, yyjson_val *claims)
{
    const char *mode = yyjson_get_str(yyjson_obj_get(claims, "mode"));
    const char *subject = yyjson_get_str(yyjson_obj_get(claims, "sub"));
    struct ledger_account account;
    char amount[CURRENCY_AMOUNT_SIZE];
    if (mode == NULL || strcmp(mode, "real") != 0 || subject == NULL)
        return;
    if (find_account(casino, subject, &account) != STATUS_OK) {
        buffer_append_string(out, "<p>The balance cannot be read now.</p>\n");
        return;
    }
    currency_format(account.balance_minor, account.player.currency_exponent, amount);
    buffer_append_format(out, "<p>Balance: <strong>%s %s</strong></p>\n", amount,
                         account.player.currency);
}

/* ---- the page -------------------------------------------------------------------------------- */

static void append_html(struct buffer *out, struct text text)
{
    for (size_t i = 0; i < text.size; i++) {
        switch (text.at[i]) {
        case '<':
            buffer_append_string(out, "&lt;");
            break;
        case '>':
            buffer_append_string(out, "&gt;");
            break;
        case '&':
            buffer_append_string(out, "&amp;");
            break;
        case '"':
            buffer_append_string(out, "&quot;");
            break;
        default:
            buffer_append_char(out, text.at[i]);
        }
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
    const char *audience = yyjson_get_str(yyjson_obj_get(claims, "aud"));
    if (audience == NULL || strcmp(audience, DEMO_PROVIDER) != 0)
        return "The token is for another provider.";
    if (yyjson_get_sint(yyjson_obj_get(claims, "exp")) <= clock_wall_ms() / 1000)
        return "The token has expired: it is good for five minutes. Launch the game again.";
    return NULL;
}

static const char *game_name(const char *id)
{
    for (size_t i = 0; id != NULL && i < SAMPLE_COUNT; i++)
        if (strcmp(samples[i].id, id) == 0)
            return samples[i].name;
    return id != NULL ? id : "A game";
}

static void append_claims(struct buffer *out, yyjson_val *claims)
{
    size_t at, count;
    yyjson_val *name, *value;
    yyjson_obj_foreach(claims, at, count, name, value)
    {
        buffer_append_string(out, "<tr><th>");
        append_html(out, text_of(yyjson_get_str(name)));
        buffer_append_string(out, "</th><td>");
        if (yyjson_is_str(value))
            append_html(out, text_of(yyjson_get_str(value)));
        else
            buffer_append_u64(out, yyjson_get_uint(value));
        buffer_append_string(out, "</td></tr>\n");
    }
}

static void begin_page(struct buffer *out, const char *title)
{
    buffer_append_string(
        out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
    append_html(out, text_of(title));
    buffer_append_string(
        out, "</title>\n<style>body{font:16px sans-serif;margin:3em auto;max-width:40em}"
             "th{text-align:left;padding-right:2em}td{overflow-wrap:anywhere}</style></head>\n"
             "<body><h1>");
    append_html(out, text_of(title));
    buffer_append_string(out, "</h1>\n");
}

/* Writes the page; returns its HTTP status. */
static int write_page(const struct demo_casino *casino, struct text token, struct buffer *out)
{
    struct buffer json = {0};
    yyjson_doc *doc = NULL;
    const char *wrong = "The token's signature is not good.";
    if (verify(casino, token, &json))
        doc = yyjson_read(json.data, json.size, 0);
    yyjson_val *claims = yyjson_doc_get_root(doc);
    if (doc != NULL)
        wrong = refuse(claims);
    if (wrong != NULL) {
        begin_page(out, "Not launched");
        buffer_append_format(out, "<p>%s</p>\n", wrong);
    } else {
        begin_page(out, game_name(yyjson_get_str(yyjson_obj_get(claims, "game"))));
        append_balance(out, casino, claims);
        buffer_append_string(out, "<p>This is the provider's side of a launch: here the game would "
                                  "be. The token's signature, audience and time are good. It says:"
                                  "</p>\n<table>\n");
        append_claims(out, claims);
        buffer_append_string(out, "</table>\n");
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
