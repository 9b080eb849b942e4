/*
 * The page of the demo's provider and its rounds; see wheel.h.
 *
 * It does what a provider must do with a token: check the signature with the shared secret, then
 * the audience and the time, and only then believe what it says.
 */
#include "demo/wheel.h"

#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <yyjson.h>

#include "base/base62.h"
#include "base/base64url.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "demo/texts.h"
#include "demo/wallet_call.h"
#include "http/deferral.h"
#include "launch/document.h"
#include "records/currency.h"

#define TOKEN_MAX 6000U

/* What a sector pays for one of the stake; the page draws them in this order. 90 % comes back. */
static const int64_t sectors[] = {0, 2, 0, 1, 0, 3, 0, 1, 0, 2};
#define SECTOR_COUNT (sizeof sectors / sizeof sectors[0])

/* A request with a token, whose answer a thread of libuv's pool makes. It has texts of its own, for
 * the request goes when its client does. */
struct visit {
    uv_work_t work;
    struct http_deferral deferral;
    const struct demo_casino *casino;
    bool opening; /* of the page; else a round */
    struct buffer query, body;
    int status;
    struct buffer answer; /* the page, or JSON */
};

/* Somebody at the wheel. */
struct seat {
    const struct demo_casino *casino;
    struct demo_secrets secrets;
    struct buffer json; /* the claims, which are */
    yyjson_doc *doc;    /* NULL: there is no good token */
    yyjson_val *claims;
    const char *wrong; /* for people; NULL: nothing is */
};

static const char *claim(const struct seat *seat, const char *name)
{
    const char *text = yyjson_get_str(yyjson_obj_get(seat->claims, name));
    return text != NULL ? text : "";
}

static bool for_money(const struct seat *seat)
{
    return strcmp(claim(seat, "mode"), "real") == 0;
}

/* ---- the token ------------------------------------------------------------------------------- */

/* Whether it is what the secret signs the claims as: the only good token for them. */
static bool is_signed(struct text token, const struct buffer *claims,
                      const struct demo_secret *secret)
{
    struct buffer expected = {0};
    launch_token_append(&expected, buffer_text(claims), secret->kid, buffer_text(&secret->plain));
    bool good =
        expected.size == token.size && CRYPTO_memcmp(expected.data, token.at, token.size) == 0;
    buffer_free(&expected);
    return good;
}

/* The claims of a token whose signature is good, as JSON; false: it is not. */
static bool verify(const struct demo_secrets *secrets, struct text token, struct buffer *claims)
{
    struct text rest = token;
    (void)text_cut(&rest, '.');
    struct text encoded = text_cut(&rest, '.');
    bool readable = token.size <= TOKEN_MAX && rest.at != NULL && base64url_read(encoded, claims);
    for (size_t i = 0; readable && i < secrets->count; i++)
        if (is_signed(token, claims, &secrets->each[i]))
            return true;
    return false;
}

/* A token that was good when the page was opened may have expired before a round. */
static void sit_down(struct seat *seat, const struct visit *visit)
{
    static const struct text parameter = TEXT_INIT("token=");
    struct text token = buffer_text(&visit->query);
    struct error error;
    if (text_starts_with(token, parameter))
        token = (struct text){token.at + parameter.size, token.size - parameter.size};
    *seat = (struct seat){.casino = visit->casino};
    enum status status = demo_secrets_read(visit->casino, &seat->secrets, &error);
    if (status == STATUS_OK && verify(&seat->secrets, token, &seat->json))
        seat->doc = yyjson_read(seat->json.data, seat->json.size, 0);
    seat->claims = yyjson_doc_get_root(seat->doc);
    if (status != STATUS_OK)
        seat->wrong = "The provider's secrets cannot be read now.";
    else if (seat->doc == NULL)
        seat->wrong = "The token's signature is not good.";
    else if (strcmp(claim(seat, "aud"), DEMO_PROVIDER) != 0)
        seat->wrong = "The token is for another provider.";
    else if (visit->opening &&
             yyjson_get_sint(yyjson_obj_get(seat->claims, "exp")) <= clock_wall_ms() / 1000)
        seat->wrong = "The token has expired: it is good for five minutes. Launch the game again.";
}

static void stand_up(struct seat *seat)
{
    yyjson_doc_free(seat->doc);
    buffer_free(&seat->json);
    demo_secrets_wipe(&seat->secrets);
}

/* ---- money ----------------------------------------------------------------------------------- */

/* What the wallet says of the player; without a currency it has refused, or has not answered. */
struct holding {
    struct wallet_answer answer;
    int64_t balance_minor;
    unsigned exponent;
    char currency[CURRENCY_SIZE];
};

#define ROUND_ID_SIZE 17
struct round {
    char id[ROUND_ID_SIZE];
    int64_t stake_minor, won_minor;
    size_t sector;
};

static void read_holding(struct holding *holding)
{
    const struct buffer *body = &holding->answer.body;
    yyjson_doc *doc = yyjson_read(body->data, body->size, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    struct text currency = text_of(yyjson_get_str(yyjson_obj_get(root, "currency")));
    uint64_t exponent = yyjson_get_uint(yyjson_obj_get(root, "currency_exponent"));
    if (holding->answer.status == 200 && currency.size == CURRENCY_SIZE - 1 && exponent <= 4) {
        memcpy(holding->currency, currency.at, currency.size);
        holding->exponent = (unsigned)exponent;
        holding->balance_minor = yyjson_get_sint(yyjson_obj_get(root, "balance_minor"));
    }
    yyjson_doc_free(doc);
}

static void append_amount(struct buffer *out, const struct holding *holding, int64_t minor)
{
    char amount[CURRENCY_AMOUNT_SIZE];
    currency_format(minor, holding->exponent, amount);
    buffer_append_format(out, "%s%s%s", amount, holding->currency[0] != '\0' ? " " : "",
                         holding->currency);
}

/* "bet-ID" and the like. */
static void write_id(struct json_writer *json, const char *name, const char *kind,
                     const struct round *round)
{
    char id[32];
    (void)snprintf(id, sizeof id, "%s-%s", kind, round->id);
    json_string(json, name, id);
}

static void begin_operation(struct json_writer *json, const struct seat *seat,
                            const char *operation)
{
    json_object(json, NULL);
    json_string(json, "operation", operation);
    json_string(json, "player_id", claim(seat, "sub"));
}

static void call(const struct seat *seat, struct json_writer *json, struct holding *holding)
{
    json_end(json);
    wallet_call(seat->casino->wallet_url, &seat->secrets.each[0], buffer_text(json->out),
                &holding->answer);
    read_holding(holding);
    buffer_free(json->out);
}

static void ask_balance(const struct seat *seat, struct holding *holding)
{
    struct buffer document = {0};
    struct json_writer json = {.out = &document};
    begin_operation(&json, seat, "BALANCE");
    call(seat, &json, holding);
}

/* The DEBIT of a round, or with `settles` its CREDIT. */
static void move(const struct seat *seat, const struct round *round, bool settles,
                 struct holding *holding)
{
    struct buffer document = {0};
    struct json_writer json = {.out = &document};
    begin_operation(&json, seat, settles ? "CREDIT" : "DEBIT");
    write_id(&json, "transaction_id", settles ? "win" : "bet", round);
    if (settles)
        write_id(&json, "reference_transaction_id", "bet", round);
    json_integer(&json, "amount_minor", settles ? round->won_minor : round->stake_minor);
    json_string(&json, "currency", claim(seat, "currency"));
    json_string(&json, "launch_id", claim(seat, "jti"));
    json_string(&json, "game_id", claim(seat, "game"));
    json_string(&json, "round_id", round->id);
    call(seat, &json, holding);
}

static void undo(const struct seat *seat, const struct round *round, struct holding *holding)
{
    struct buffer document = {0};
    struct json_writer json = {.out = &document};
    begin_operation(&json, seat, "ROLLBACK");
    write_id(&json, "transaction_id", "undo", round);
    write_id(&json, "reference_transaction_id", "bet", round);
    call(seat, &json, holding);
}

/* ---- a round --------------------------------------------------------------------------------- */

static void refuse(struct visit *visit, int status, const char *code, const char *message)
{
    struct json_writer json = {.out = &visit->answer};
    visit->status = status;
    json_object(&json, NULL);
    json_string(&json, "error", code);
    json_string(&json, "message", message);
    json_end(&json);
}

/* Each as likely as the other, and no one can foresee it. */
static size_t draw_sector(void)
{
    uint8_t byte;
    do
        CHECK(RAND_bytes(&byte, 1) == 1);
    while (byte >= UINT8_MAX / SECTOR_COUNT * SECTOR_COUNT);
    return byte % SECTOR_COUNT;
}

static void write_round(struct visit *visit, const struct round *round,
                        const struct holding *holding)
{
    struct json_writer json = {.out = &visit->answer};
    bool money = holding->currency[0] != '\0';
    json_object(&json, NULL);
    json_string(&json, "round_id", round->id);
    json_unsigned(&json, "sector", round->sector);
    json_integer(&json, "stake_minor", round->stake_minor);
    json_integer(&json, "won_minor", round->won_minor);
    json_string_or_null(&json, "currency", holding->currency);
    if (money) {
        struct buffer balance = {0};
        append_amount(&balance, holding, holding->balance_minor);
        json_integer(&json, "balance_minor", holding->balance_minor);
        json_text(&json, "balance", buffer_text(&balance));
        buffer_free(&balance);
    }
    json_end(&json);
    visit->status = 200;
}

/* The stake is not taken: the wallet says why, or there is no answer, and it is given up. */
static void refuse_stake(const struct seat *seat, const struct round *round,
                         const struct holding *debited, struct visit *visit)
{
    struct holding undone = {0};
    if (debited->answer.status != 0) {
        visit->status = (int)debited->answer.status;
        buffer_append_text(&visit->answer, buffer_text(&debited->answer.body));
        return;
    }
    undo(seat, round, &undone);
    refuse(visit, 503, "wallet_unavailable",
           undone.answer.status == 200
               ? "The wallet did not answer in time. The stake was rolled back."
               : "The wallet does not answer. Whether the stake was taken is not known.");
    buffer_free(&undone.answer.body);
}

static void play(const struct seat *seat, struct round *round, struct visit *visit)
{
    struct holding debited = {0}, settled = {0};
    bool money = for_money(seat);
    base62_random(round->id, ROUND_ID_SIZE - 1);
    if (money)
        move(seat, round, false, &debited);
    if (money && debited.answer.status != 200) {
        refuse_stake(seat, round, &debited, visit);
        buffer_free(&debited.answer.body);
        return;
    }
    round->sector = draw_sector();
    round->won_minor = round->stake_minor * sectors[round->sector];
    if (money)
        move(seat, round, true, &settled);
    if (money && settled.answer.status != 200)
        refuse(visit, 503, "win_not_answered",
               "The stake was taken, and the wallet does not take its win.");
    else
        write_round(visit, round, &settled);
    buffer_free(&debited.answer.body);
    buffer_free(&settled.answer.body);
}

/* {"stake_minor": 100}; 0: it is not that. */
static int64_t read_stake(struct text body)
{
    yyjson_doc *doc = yyjson_read(body.at, body.size, 0);
    yyjson_val *stake = yyjson_obj_get(yyjson_doc_get_root(doc), "stake_minor");
    uint64_t minor = yyjson_is_uint(stake) ? yyjson_get_uint(stake) : 0;
    yyjson_doc_free(doc);
    return minor <= WHEEL_STAKE_MAX ? (int64_t)minor : 0;
}

static void make_round(const struct seat *seat, struct visit *visit)
{
    struct round round = {.stake_minor = read_stake(buffer_text(&visit->body))};
    if (seat->wrong != NULL)
        refuse(visit, 403, "not_launched", seat->wrong);
    else if (round.stake_minor == 0)
        refuse(visit, 400, "bad_stake", "stake_minor is an integer from 1 to 100000.");
    else
        play(seat, &round, visit);
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

/* The name of a game of the provider's, or else its id. */
static void append_game(struct buffer *out, const char *id)
{
    yyjson_doc *doc = yyjson_read(demo_games, strlen(demo_games), 0);
    const char *name = id;
    size_t at, count;
    yyjson_val *game;
    yyjson_arr_foreach(yyjson_doc_get_root(doc), at, count,
                       game) if (yyjson_equals_str(yyjson_obj_get(game, "id"), id)) name =
        yyjson_get_str(yyjson_obj_get(game, "name"));
    append_html(out, name);
    yyjson_doc_free(doc);
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

static void append_stakes(struct buffer *out, const struct holding *holding)
{
    static const int64_t stakes[] = {100, 500, 2500, 10000};
    buffer_append_string(out, "<form id=\"bet\"><label>Stake <select id=\"stake\">");
    for (size_t i = 0; i < sizeof stakes / sizeof stakes[0]; i++) {
        buffer_append_format(out, "<option value=\"%lld\">", (long long)stakes[i]);
        append_amount(out, holding, stakes[i]);
        buffer_append_string(out, "</option>");
    }
    buffer_append_string(out, "</select></label> <button>Spin</button></form>\n");
}

static void append_wheel(struct buffer *out)
{
    buffer_append_string(out, "<div id=\"pointer\"></div>\n<div id=\"wheel\" data-pays=\"");
    for (size_t i = 0; i < SECTOR_COUNT; i++)
        buffer_append_format(out, "%s%lld", i > 0 ? " " : "", (long long)sectors[i]);
    buffer_append_string(out, "\"></div>\n");
}

/* The game of somebody whose token is good. */
static void append_game_page(struct buffer *out, const struct seat *seat)
{
    struct holding holding = {0};
    if (for_money(seat))
        ask_balance(seat, &holding);
    if (holding.currency[0] != '\0') {
        buffer_append_string(out, "<p>Balance: <strong id=\"balance\">");
        append_amount(out, &holding, holding.balance_minor);
        buffer_append_string(out, "</strong></p>\n");
    } else if (for_money(seat)) {
        buffer_append_string(out, "<p>The balance cannot be read now.</p>\n");
    } else {
        buffer_append_string(out, "<p>For fun: no money moves.</p>\n");
    }
    append_wheel(out);
    append_stakes(out, &holding);
    buffer_append_string(out, "<p id=\"said\" role=\"status\"></p>\n"
                              "<details><summary>What the provider knows: the token, whose "
                              "signature, audience and time are good</summary>\n<table>\n");
    append_claims(out, seat->claims);
    buffer_append_string(out, "</table></details>\n");
    buffer_free(&holding.answer.body);
}

static void make_page(const struct seat *seat, struct visit *visit)
{
    struct buffer title = {0};
    if (seat->wrong == NULL)
        append_game(&title, claim(seat, "game"));
    else
        buffer_append_string(&title, "Not launched");
    const char *shown = buffer_string(&title);
    buffer_append_format(
        &visit->answer,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<link rel=\"stylesheet\" href=\"" WHEEL_PATH ".css\">\n"
        "<script src=\"" WHEEL_PATH ".js\" defer></script></head>\n<body><h1>%s</h1>\n",
        shown, shown);
    if (seat->wrong == NULL)
        append_game_page(&visit->answer, seat);
    else
        buffer_append_format(&visit->answer, "<p>%s</p>\n", seat->wrong);
    buffer_append_string(&visit->answer, "</body></html>\n");
    buffer_free(&title);
    visit->status = seat->wrong == NULL ? 200 : 403;
}

static void reply_page(struct http_request *request, const struct visit *visit)
{
    http_request_add_field(request, TEXT("Content-Security-Policy"),
                           TEXT("default-src 'none'; script-src 'self'; style-src 'self'; "
                                "connect-src 'self'; base-uri 'none'; form-action 'none'; "
                                "frame-ancestors 'none'"));
    http_request_add_field(request, TEXT("Referrer-Policy"), TEXT("no-referrer"));
    http_reply_text(request, visit->status, "text/html; charset=utf-8",
                    buffer_text(&visit->answer));
}

/* ---- visits ---------------------------------------------------------------------------------- */

static void run_visit(uv_work_t *work)
{
    struct visit *visit = work->data;
    struct seat seat;
    sit_down(&seat, visit);
    if (visit->opening)
        make_page(&seat, visit);
    else
        make_round(&seat, visit);
    stand_up(&seat);
}

/* A round whose player has left is over all the same. */
static void end_visit(uv_work_t *work, int result)
{
    struct visit *visit = work->data;
    struct http_request *request = http_deferral_take(&visit->deferral);
    CHECK(result == 0); /* none is cancelled */
    if (request != NULL && visit->opening)
        reply_page(request, visit);
    else if (request != NULL)
        http_reply_json(request, visit->status, buffer_text(&visit->answer));
    buffer_free(&visit->query);
    buffer_free(&visit->body);
    buffer_free(&visit->answer);
    memory_free(visit);
}

static void begin_visit(const struct demo_casino *casino, uv_loop_t *loop,
                        struct http_request *request)
{
    struct visit *visit = memory_alloc_zeroed(1, sizeof *visit);
    visit->work.data = visit;
    visit->casino = casino;
    visit->opening = request->method != METHOD_POST;
    buffer_append_text(&visit->query, request->query);
    buffer_append_text(&visit->body, request->body);
    http_defer(&visit->deferral, request);
    CHECK(uv_queue_work(loop, &visit->work, run_visit, end_visit) == 0);
}

bool wheel_handle(void *context, uv_loop_t *loop, struct http_request *request)
{
    bool reads = request->method == METHOD_GET || request->method == METHOD_HEAD;
    bool page = text_equals(request->path, TEXT(WHEEL_PATH));
    if (page && (reads || request->method == METHOD_POST)) {
        begin_visit(context, loop, request);
    } else if (page) {
        http_request_add_field(request, TEXT("Allow"), TEXT("GET, HEAD, POST"));
        http_reply_error(request, &error_method_not_allowed);
    } else if (reads && text_equals(request->path, TEXT(WHEEL_PATH ".js"))) {
        http_reply_text(request, 200, "text/javascript; charset=utf-8", text_of(demo_wheel_script));
    } else if (reads && text_equals(request->path, TEXT(WHEEL_PATH ".css"))) {
        http_reply_text(request, 200, "text/css; charset=utf-8", text_of(demo_wheel_style));
    } else {
        return false;
    }
    return true;
}
