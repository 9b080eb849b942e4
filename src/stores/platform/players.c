/*
 * Players and currencies in any engine; see platform_players.h. Rows are only ever added. If two
 * calls open the same player at once, both end with the same row: each adds the row unless it is
 * there, then reads it.
 *
 * With PostgreSQL, a player that is found may not be on a synchronous standby yet
 * (postgres/ledger.c). The launch that opened it makes sure (launches.c): its commit waits for all
 * commits before it.
 */

#include "base/clock.h"
#include "records/currency.h"
#include "stores/platform/ledger/reads.h"
#include "stores/platform/records.h"
#include "stores/platform_players.h"
#include "stores/platform_records.h"

static void bind_currency(struct sql_parameters *parameters, const struct player_record *player)
{
    SQL_ADD(parameters, SQL_STRING(player->currency), SQL_INTEGER(player->currency_exponent),
            SQL_INTEGER(player->created_ms));
}

/* The parameters of the table's search; `currency` "": any. */
static void bind_names(struct sql_parameters *parameters, const char *customer_id,
                       const char *reference, const char *currency, size_t most)
{
    SQL_ADD(parameters, SQL_STRING(customer_id), SQL_STRING(reference), SQL_STRING(currency),
            SQL_INTEGER(most));
}

/* ---- opening --------------------------------------------------------------------------------- */

struct opening {
    const struct player_record *wanted;
    struct player_record opened;
};

static enum status add_player(struct sql_flight *flight, void *context, struct error *error)
{
    struct opening *opening = context;
    struct record_look_up look_up = {.table = &player_table, .record = &opening->opened};
    bind_currency(sql_flight_add(flight, flight->store->engine->texts->add_currency)->parameters,
                  opening->wanted);
    (void)sql_flight_of(flight, &player_table, STATEMENT_ADD_ONCE, opening->wanted);
    struct sql_query *added = /* with the frozen exponent */
        sql_flight_of(flight, &player_table, STATEMENT_SEARCH, NULL);
    const struct player_record *wanted = opening->wanted;
    bind_names(added->parameters, wanted->customer_id, wanted->reference, wanted->currency, 1);
    added->row = record_on_row;
    added->context = &look_up;
    enum status status = sql_flight_run(flight, true, error);
    return status == STATUS_OK ? record_looked_up(flight->store, &look_up, error) : status;
}

enum status platform_player_open(struct platform_store *store, const char *customer_id,
                                 const char *reference, const char *currency, uint8_t exponent,
                                 struct player_record *player, struct error *error)
{
    struct player_record wanted = {.currency_exponent = exponent, .created_ms = clock_wall_ms()};
    struct opening opening = {.wanted = &wanted};
    struct sql_parameters names = {0};
    if (!text_copy_plain(text_of(customer_id), wanted.customer_id, sizeof wanted.customer_id) ||
        !text_copy_plain(text_of(reference), wanted.reference, sizeof wanted.reference) ||
        !text_copy_plain(text_of(currency), wanted.currency, sizeof wanted.currency))
        return error_invalid(error, "player: a field is too long, or no plain text");
    record_id_generate("ply_", wanted.id, sizeof wanted.id);
    enum status status = player_table.check(&wanted, error);
    if (status != STATUS_OK)
        return status;
    bind_names(&names, customer_id, reference, currency, 1); /* nearly always there already */
    status = record_find(store, &player_table, STATEMENT_SEARCH, &names, player, error);
    if (status != STATUS_NOT_FOUND)
        return status;
    if (currency_is_withdrawn(text_of(currency)))
        return error_invalid(error, "currency: %s is withdrawn", currency);
    status = sql_transact(store, add_player, &opening, error);
    if (status == STATUS_OK)
        *player = opening.opened;
    return status;
}

/* ---- blocking -------------------------------------------------------------------------------- */

enum status platform_block_put(struct platform_store *store, const struct block_record *next,
                               const struct block_record *before, struct error *error)
{
    struct record_change change = {.table = &block_table, .sql = store->engine->texts->put_block};
    enum status status = block_table.check(next, error);
    if (status != STATUS_OK)
        return status;
    statement_bind(&block_table, STATEMENT_ADD, next, &change.parameters);
    SQL_ADD(&change.parameters, SQL_INTEGER(before->blocked_ms), SQL_INTEGER(before->until_ms));
    return record_change(store, &change, error);
}

enum status platform_players_named(struct platform_store *store, const char *customer_id,
                                   const char *reference, struct player_record *players,
                                   size_t most, size_t *count, struct error *error)
{
    struct sql_parameters parameters = {0};
    bind_names(&parameters, customer_id, reference, "", most);
    return record_find_several(store, &player_table, &parameters, players, count, error);
}

/* ---- lists ----------------------------------------------------------------------------------- */

#define COUNTED 10000 /* players are counted up to the next one (sql/statements/records.sql) */

struct listing {
    struct players_page *page;
    uint64_t limit, last;
    size_t completed;
};

static bool on_player(void *context, const struct sql_row *row)
{
    struct listing *listing = context;
    struct players_page *page = listing->page;
    if (page->count == listing->limit) {
        page->next = listing->last;
        return false;
    }
    struct player_record *player = &page->players[page->count++].account.player;
    (void)text_copy_plain(sql_text(row, 0), player->id, sizeof player->id);
    player->blocked_until_ms = sql_integer(row, 2);
    listing->last = (uint64_t)sql_integer(row, 1);
    return true;
}

/* Rows come in the order of the page. */
static enum status take_listed(void *context, const struct sql_row *row, struct error *error)
{
    struct listing *listing = context;
    struct listed_player *listed = &listing->page->players[listing->completed++];
    const struct player_record found = listed->account.player;
    if (!ledger_read_account(row, 0, &listed->account) ||
        strcmp(listed->account.player.id, found.id) != 0)
        return error_set(error, STATUS_MALFORMED, "the account of a player is malformed");
    listed->account.player.blocked_until_ms = found.blocked_until_ms;
    listed->active_ms = sql_integer(row, LEDGER_ACCOUNT_COLUMN_COUNT);
    return STATUS_OK;
}

/* All accounts of the page by one query. */
static enum status complete_page(struct platform_store *store, struct listing *listing,
                                 struct error *error)
{
    const struct players_page *page = listing->page;
    struct buffer ids = {0};
    for (size_t i = 0; i < page->count; i++)
        buffer_append_format(&ids, "%s%s", i > 0 ? "," : "", page->players[i].account.player.id);
    struct sql_parameters parameters = SQL_PARAMETERS(SQL_TEXT(buffer_text(&ids)));
    enum status status = page->count == 0
                             ? STATUS_OK
                             : ledger_read_page(store, store->engine->texts->listed, &parameters,
                                                take_listed, listing, error);
    buffer_free(&ids);
    return status == STATUS_OK && listing->completed != page->count
               ? platform_damaged(store, "the account of a player is not there", error)
               : status;
}

enum status platform_players_active(struct platform_store *store, const char *customer_id,
                                    const char *words, uint64_t cursor, uint64_t limit,
                                    struct players_page *page, struct error *error)
{
    const bool search = words[0] != '\0', of_one = customer_id[0] != '\0';
    const uint64_t before[] = {cursor == 0       ? INT64_MAX
                               : cursor % 2 == 0 ? cursor / 2
                                                 : 0,
                               cursor % 2 == 0 ? INT64_MAX : cursor / 2};
    const struct sql_texts *texts = store->engine->texts;
    const struct player_list_texts *list = search   ? &texts->players_found
                                           : of_one ? &texts->players_of_customer
                                                    : &texts->players;
    struct listing listing = {.page = page, .limit = limit};
    struct sql_parameters parameters[3] = {0};
    struct sql_query queries[] = {
        {.sql = list->count, .row = sql_take_integer, .context = &page->found},
        {.sql = list->first, .row = on_player, .context = &listing},
        {.sql = list->rest, .row = on_player, .context = &listing}};
    CHECK(limit <= PLAYERS_PAGE_MAX);
    *page = (struct players_page){.count = 0};
    for (size_t i = 0; i < 3; i++) {
        queries[i].parameters = &parameters[i];
        SQL_ADD(&parameters[i], SQL_STRING(customer_id));
        if (search)
            SQL_ADD(&parameters[i], SQL_STRING(words));
        if (i > 0)
            SQL_ADD(&parameters[i], SQL_INTEGER(search ? cursor : before[i - 1]),
                    SQL_INTEGER(limit + 1));
    }
    enum status status = store->engine->sql->read(store, queries, 3, error);
    if (page->found > COUNTED)
        page->found = UINT64_MAX;
    return status == STATUS_OK ? complete_page(store, &listing, error) : status;
}

/* ---- copying --------------------------------------------------------------------------------- */

/* A currency goes before the players that have it. */
static enum status put_players(struct sql_flight *flight, void *context, struct error *error)
{
    const struct sql_records *putting = context;
    const char *currency = "";
    for (size_t i = 0; i < putting->count; i++) {
        const struct player_record *record = (const struct player_record *)putting->at + i;
        if (strcmp(record->currency, currency) != 0)
            bind_currency(
                sql_flight_add(flight, flight->store->engine->texts->add_currency)->parameters,
                record);
        currency = record->currency;
        (void)sql_flight_of(flight, &player_table, STATEMENT_ADD, record);
    }
    return sql_flight_run(flight, true, error);
}

enum status platform_player_put(struct platform_store *store, const struct player_record *records,
                                size_t count, struct error *error)
{
    struct sql_records putting = {records, count};
    enum status status = records_check(&player_table, records, count, error);
    return status != STATUS_OK || count == 0 ? status
                                             : sql_transact(store, put_players, &putting, error);
}
