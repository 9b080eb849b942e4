/* Documents of the console that no table of fields describes. */
#include "console/handlers.h"

#include "base/clock.h"
#include "base/json_text.h"
#include "base/strict_json.h"
#include "base/version.h"
#include "operator/documents.h"
#include "operator/games.h"
#include "operator/tables.h"
#include "operator/times.h"
#include "operator/viewer.h"

/* ---- games ----------------------------------------------------------------------------------- */

static void write_policy(struct console_call *call, const struct game_policy_record *record,
                         bool casino)
{
    json_object(&call->json, NULL);
    json_string(&call->json, "customer", record->customer_id);
    json_bool(&call->json, "casino", casino);
    json_bool(&call->json, "every_game", record->every_game);
    json_lines(&call->json, "games", record->games);
}

static enum status name_customer(struct console_call *call, struct game_policy_record *record,
                                 struct error *error)
{
    return text_copy_plain(text_of(call->id), record->customer_id, sizeof record->customer_id)
               ? STATUS_OK
               : error_not_found(error, "there is no such customer");
}

enum status console_allowed_games(struct console_call *call, struct error *error)
{
    struct game_policy_record record = {.every_game = true};
    struct buffer games = {0};
    bool casino = false;
    enum status status = name_customer(call, &record, error);
    if (status == STATUS_OK)
        status = games_allowed(call->store, &record, &games, &casino, error);
    if (status == STATUS_OK)
        write_policy(call, &record, casino);
    buffer_free(&games);
    return status;
}

static enum status read_games(struct text value, struct buffer *games, struct error *error)
{
    struct text item;
    if (value.at == NULL || json_text_kind(value) != JSON_TEXT_ARRAY)
        return error_invalid(error, "games: must be a list of ids of games");
    struct json_text_cursor cursor = json_text_open(value);
    while (json_text_next_element(&cursor, &item)) {
        char id[GAME_ID_SIZE];
        if (!strict_json_string(item, id, sizeof id))
            return error_invalid(error, "games: must be a list of ids of games");
        buffer_append_format(games, "%s%s", games->size > 0 ? "\n" : "", id);
    }
    return STATUS_OK;
}

enum status console_allow_games(struct console_call *call, struct error *error)
{
    static const struct text names[] = {TEXT_INIT("games"), TEXT_INIT("every_game")};
    struct text values[2] = {TEXT(""), TEXT("")};
    struct game_policy_record record = {.every_game = false};
    struct buffer games = {0};
    bool casino = false;
    enum status status = name_customer(call, &record, error);
    if (status == STATUS_OK && strict_json_object(call->body, names, 2, values) != STRICT_JSON_OK)
        status = error_invalid(error, "games: must be given, or every_game");
    record.every_game = text_equals(values[1], TEXT("true"));
    if (status == STATUS_OK && !record.every_game)
        status = read_games(values[0], &games, error);
    record.games = buffer_text(&games);
    if (status == STATUS_OK)
        status = games_allow(call->store, &record, &casino, error);
    if (status == STATUS_OK)
        write_policy(call, &record, casino);
    buffer_free(&games);
    return status;
}

enum status console_import_games(struct console_call *call, struct error *error)
{
    struct games_put_result result;
    enum status status =
        games_import(call->store, "the document", call->body, call->now_ms, &result, error);
    if (status == STATUS_MALFORMED)
        status = STATUS_INVALID; /* it is the request's fault, not the store's */
    if (status != STATUS_OK)
        return status;
    json_object(&call->json, NULL);
    json_unsigned(&call->json, "added", result.added);
    json_unsigned(&call->json, "changed", result.changed);
    json_unsigned(&call->json, "unchanged", result.unchanged);
    return STATUS_OK;
}

/* ---- days ------------------------------------------------------------------------------------ */

/* The days that are asked for; `scope` points into the query. */
static enum status read_days(struct console_call *call, int64_t before, int64_t most,
                             struct ledger_scope *scope)
{
    struct console_query *query = &call->query;
    const struct viewer_days given = {.customer_id = console_parameter(query, "customer"),
                                      .provider_id = console_parameter(query, "provider"),
                                      .from = console_parameter(query, "from"),
                                      .to = console_parameter(query, "to"),
                                      .before = before,
                                      .most = most};
    return query->status == STATUS_OK ? viewer_ask_days(&given, call->now_ms, scope, query->error)
                                      : query->status;
}

/* ---- a statement ----------------------------------------------------------------------------- */

#define ENTRIES 100
#define EVER 1000000 /* days */

/* The newest entries, in their order; `next` is where the page before begins. */
enum status console_statement(struct console_call *call, struct error *error)
{
    struct console_query *query = &call->query;
    struct ledger_scope scope = {0};
    struct ledger_account account;
    uint64_t limit = console_number(query, "limit", VIEWER_PAGE_MAX, ENTRIES);
    uint64_t next = 0;
    struct viewer_statement asked = {.player_id = call->id,
                                     .before = console_number(query, "before", INT64_MAX, 0),
                                     .kind =
                                         viewer_kinds[console_choice(query, "kind", viewer_kinds)]};
    enum status status = read_days(call, EVER, 0, &scope);
    asked.from_ms = scope.from_ms;
    asked.to_ms = console_parameter(query, "to")[0] != '\0' ? scope.to_ms : 0;
    if (status == STATUS_OK)
        status = viewer_account(call->store, &viewer_operator, call->id, &account, error);
    if (status != STATUS_OK)
        return status;
    json_object(&call->json, NULL);
    json_string(&call->json, "player_id", account.player.id);
    json_string(&call->json, "currency", account.player.currency);
    json_integer(&call->json, "currency_exponent", account.player.currency_exponent);
    json_integer(&call->json, "balance_minor", account.balance_minor);
    json_array(&call->json, "items");
    status = viewer_read_page(call->store, &viewer_operator, &asked, limit, &next,
                              wallet_list_entry, &call->json, error);
    json_end(&call->json);
    json_unsigned_or_null(&call->json, "next", next);
    return status;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

struct listing {
    struct json_writer *json;
    struct console_page page;
    size_t state; /* 0: any, or the state behind it */
    uint64_t met;
    uint64_t last; /* the number of the last row of the trail */
};

/* Counts a row. Is it on the page? */
static bool count_row(struct listing *listing)
{
    const uint64_t before = listing->met++;
    return before >= listing->page.offset && before - listing->page.offset < listing->page.limit;
}

static bool list_round(void *context, const struct ledger_round *round)
{
    struct listing *listing = context;
    if ((listing->state == 0 || round->state == listing->state - 1) &&
        strstr(round->round_id, listing->page.words) != NULL && count_row(listing))
        fields_write_object(ledger_round_fields, round, listing->json);
    return true;
}

static enum status write_rounds(struct console_call *call, const struct ledger_rounds_asked *asked,
                                struct listing *listing, struct error *error)
{
    enum status status = console_begin(call, CONSOLE_SUMS, error);
    if (status != STATUS_OK)
        return status;
    json_object(listing->json, NULL);
    json_time(listing->json, "since", asked->scope.from_ms);
    json_array(listing->json, "items");
    status = viewer_read_rounds(call->store, &viewer_operator, asked, list_round, listing, error);
    console_end_page(listing->json, listing->met, console_next(&listing->page, listing->met));
    console_end(call, CONSOLE_SUMS);
    return status;
}

enum status console_rounds(struct console_call *call, struct error *error)
{
    static const char *const states[] = {"all", "open", "ended", "settled", NULL};
    struct listing listing = {.json = &call->json,
                              .state = console_choice(&call->query, "state", states)};
    struct ledger_rounds_asked asked = {.player_id = console_parameter(&call->query, "player"),
                                        .open = listing.state == LEDGER_ROUND_OPEN + 1,
                                        .newest_first = true};
    const char *older_than = console_parameter(&call->query, "older_than");
    console_page(&call->query, &listing.page);
    enum status status = read_days(call, VIEWER_ROUND_DAYS, 0, &asked.scope);
    if (status == STATUS_OK)
        status = viewer_ask_older(older_than, call->now_ms, &asked.scope, error);
    return status == STATUS_OK ? write_rounds(call, &asked, &listing, error) : status;
}

/* ---- the audit trail ------------------------------------------------------------------------- */

#define ROWS 100
#define ROWS_MAX 1000

static bool list_row(void *context, const void *record)
{
    struct listing *listing = context;
    listing->met++;
    listing->last = ((const struct trail_record *)record)->number;
    resource_write(&trail_resource, record, listing->json);
    return true;
}

static int64_t read_day(struct console_query *query, const char *name, int64_t otherwise)
{
    const char *text = console_parameter(query, name);
    int64_t day = otherwise;
    if (text[0] != '\0' && clock_parse_day(text_of(text), &day) != STATUS_OK)
        console_refuse_parameter(query, name, "must be a date, as 2026-11-21");
    return day;
}

enum status console_audit(struct console_call *call, struct error *error)
{
    static const char *const kinds[] = {"",           "customer", "key",           "address",
                                        "provider",   "game",     "list of games", "player",
                                        "block",      "token",    "verification",  "operator",
                                        "credential", "ledger",   "conduct",       NULL};
    struct console_query *query = &call->query;
    struct trail_search search = {.object = console_parameter(query, "object"),
                                  .who = console_parameter(query, "who"),
                                  .kind = kinds[console_choice(query, "kind", kinds)],
                                  .before = console_number(query, "before", INT64_MAX, 0),
                                  .limit = console_number(query, "limit", ROWS_MAX, ROWS),
                                  .operators = call->signed_in.who.role == ROLE_OWNER};
    struct listing listing = {.json = &call->json};
    const char *since = console_parameter(query, "since");
    const int64_t day = read_day(query, "day", -1);
    enum status status = query->status;
    if (status == STATUS_OK && since[0] != '\0')
        status = time_parse_past(text_of(since), call->now_ms, &search.since_ms, error);
    if (status != STATUS_OK)
        return status;
    if (day >= 0 && day * CLOCK_DAY_MS > search.since_ms)
        search.since_ms = day * CLOCK_DAY_MS;
    search.until_ms = (day + 1) * CLOCK_DAY_MS;
    json_object(&call->json, NULL);
    json_array(&call->json, "items");
    status = platform_trail_search(call->store, &search, list_row, &listing, error);
    json_end(&call->json);
    bool more = listing.met == search.limit && listing.last > 1;
    json_unsigned_or_null(&call->json, "next", more ? listing.last : 0);
    return status;
}

/* ---- usage ----------------------------------------------------------------------------------- */

#define DAYS_MAX 366 /* with the first and the last */

static void write_day(struct json_writer *json, const char *name, int64_t day)
{
    char date[CLOCK_DAY_SIZE];
    clock_format_day(day, date);
    json_string(json, name, date);
}

/* Begins a document, which is an object. */
static void write_days(struct json_writer *json, const struct ledger_scope *scope)
{
    json_object(json, NULL);
    write_day(json, "from", clock_day(scope->from_ms));
    write_day(json, "to", clock_day(scope->to_ms) - 1);
}

static enum status write_sums(struct console_call *call, const struct ledger_scope *scope,
                              bool lines, ledger_sum_visitor *visit, void *context,
                              struct error *error)
{
    enum status status = console_begin(call, CONSOLE_SUMS, error);
    if (status != STATUS_OK)
        return status;
    status = viewer_read_sums(call->store, &viewer_operator, scope, lines, visit, context, error);
    console_end(call, CONSOLE_SUMS);
    return status;
}

static enum status write_usage(struct console_call *call, const struct ledger_scope *scope,
                               bool wallet, struct error *error)
{
    write_days(&call->json, scope);
    json_array(&call->json, "requests");
    enum status status = viewer_read_requests(call->store, &viewer_operator, scope,
                                              usage_list_requests, &call->json, error);
    json_end(&call->json);
    if (wallet && status == STATUS_OK) {
        json_array(&call->json, "wallet");
        status = write_sums(call, scope, false, usage_list_movement, &call->json, error);
    } else {
        json_null(&call->json, "wallet");
    }
    return status;
}

enum status console_usage(struct console_call *call, struct error *error)
{
    static const char *const with_wallet[] = {"true", "false", NULL};
    struct ledger_scope scope;
    bool wallet = console_choice(&call->query, "wallet", with_wallet) == 0;
    enum status status = read_days(call, 0, DAYS_MAX, &scope);
    return status == STATUS_OK ? write_usage(call, &scope, wallet, error) : status;
}

/* ---- money ----------------------------------------------------------------------------------- */

#define SUMS_MAX 20000 /* of nearly 1 KB each */

static bool write_sum(void *context, const struct ledger_sum *sum)
{
    struct listing *listing = context;
    json_object(listing->json, NULL);
    if (sum->day != 0)
        write_day(listing->json, "day", sum->day);
    fields_write(ledger_play_fields, sum, listing->json);
    json_end(listing->json);
    return ++listing->met <= SUMS_MAX;
}

enum status console_report(struct console_call *call, struct error *error)
{
    struct ledger_scope scope;
    struct listing listing = {.json = &call->json};
    enum status status = read_days(call, 0, DAYS_MAX, &scope);
    if (status != STATUS_OK)
        return status;
    write_days(&call->json, &scope);
    json_array(&call->json, "items");
    status = write_sums(call, &scope, true, write_sum, &listing, error);
    if (listing.met > SUMS_MAX)
        return error_invalid(
            error, "from: there are more than %d sums; ask for fewer days, or of a customer",
            SUMS_MAX);
    return status;
}

static bool list_entry(void *context, const struct ledger_transaction *entry)
{
    struct listing *listing = context;
    if (count_row(listing))
        (void)wallet_list_entry(listing->json, entry);
    return listing->met <= listing->page.offset + listing->page.limit;
}

static enum status write_entries(struct console_call *call, const struct ledger_scope *scope,
                                 struct listing *listing, struct error *error)
{
    enum status status = console_begin(call, CONSOLE_SUMS, error);
    if (status != STATUS_OK)
        return status;
    json_object(listing->json, NULL);
    json_array(listing->json, "items");
    status = viewer_read_entries(call->store, &viewer_operator, scope, list_entry, listing, error);
    console_end(call, CONSOLE_SUMS);
    json_end(listing->json);
    json_unsigned_or_null(listing->json, "next", console_next(&listing->page, listing->met));
    return status;
}

enum status console_entries(struct console_call *call, struct error *error)
{
    static const char *const figures[] = {"",           "stake",   "win",      "promo", "jackpot",
                                          "adjustment", "paid_in", "paid_out", NULL};
    static const char *const without[] = {"", "game", "provider", "both", NULL};
    struct ledger_scope scope = {0};
    struct listing listing = {.json = &call->json};
    const size_t figure = console_choice(&call->query, "figure", figures);
    const size_t none = console_choice(&call->query, "without", without);
    const char *game = console_parameter(&call->query, "game");
    console_page(&call->query, &listing.page);
    enum status status = read_days(call, 0, DAYS_MAX, &scope);
    scope.figure = figures[figure];
    if (game[0] != '\0' || (none & 1) != 0)
        scope.game_id = game;
    if ((none & 2) != 0 && scope.provider_id == NULL)
        scope.provider_id = "";
    return status == STATUS_OK ? write_entries(call, &scope, &listing, error) : status;
}

/* ---- settings and health --------------------------------------------------------------------- */

enum status console_settings(struct console_call *call, struct error *error)
{
    struct buffer value = {0};
    const struct setting_description *setting;
    (void)error; /* it cannot fail */
    json_object(&call->json, NULL);
    json_array(&call->json, "items");
    for (size_t i = 0; (setting = config_setting(i)) != NULL; i++) {
        buffer_clear(&value);
        config_append_value(call->config, i, &value);
        json_object(&call->json, NULL);
        json_string(&call->json, "section", setting->section);
        json_string(&call->json, "name", setting->key);
        json_string(&call->json, "value", buffer_string(&value));
        json_bool(&call->json, "default",
                  strcmp(buffer_string(&value), setting->default_text) == 0);
        json_string(&call->json, "what", setting->what);
        json_bool(&call->json, "reloadable", setting->reloadable);
        json_end(&call->json);
    }
    buffer_free(&value);
    return STATUS_OK;
}

/* `bytes` 0: not known. */
static bool write_store(struct json_writer *json, const char *name, enum status status,
                        int64_t bytes, const struct error *error)
{
    json_object(json, name);
    json_string(json, "status",
                status == STATUS_OK          ? "ok"
                : status == STATUS_READ_ONLY ? "read_only"
                                             : "unreachable");
    json_unsigned_or_null(json, "bytes", (uint64_t)bytes);
    json_string_or_null(json, "message", status == STATUS_OK ? NULL : error->text);
    json_end(json);
    return status == STATUS_OK;
}

/* Counts the blocks of the embedded store's file, which has holes. A server keeps its own books. */
static int64_t odds_bytes(const struct config *config)
{
    char path[PATH_MAX];
    struct stat file;
    const char *directory = config_odds_directory(config);
    if (directory == NULL)
        return 0;
    (void)snprintf(path, sizeof path, "%s/values/data.mdb", directory);
    return stat(path, &file) == 0 ? (int64_t)file.st_blocks * 512 : 0;
}

enum status console_health(struct console_call *call, struct error *error)
{
    struct error reason = {0};
    int64_t bytes = 0;
    (void)error; /* the answer says what is wrong */
    json_object(&call->json, NULL);
    enum status status = odds_store_ping(call->services->sources.odds, ODDS_TO_READ, &reason);
    bool sound = write_store(&call->json, "odds_store", status, odds_bytes(call->config), &reason);
    status = platform_store_ping(call->store, &reason);
    if (status == STATUS_OK)
        status = platform_store_size(call->store, &bytes, &reason);
    if (status == STATUS_OK)
        status = platform_store_check_writes(call->store, &reason);
    sound &= write_store(&call->json, "platform_store", status, bytes, &reason);
    json_string(&call->json, "status", sound ? "ok" : "degraded");
    json_string(&call->json, "version", CROUPIER_VERSION);
    json_string(&call->json, "commit", croupier_commit);
    json_integer(&call->json, "pid", getpid());
    json_time(&call->json, "started_at", call->services->started_ms);
    return STATUS_OK;
}
