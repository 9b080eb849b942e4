/*
 * Players and currencies in PostgreSQL. Rows are only ever added. Two who open the same player at once
 * end with the same row: ON CONFLICT waits for the other's commit, does nothing, and the next
 * statement, which has a snapshot of its own, finds what the other made.
 */
#include <string.h>

#include "stores/platform_postgres.h"
#include "stores/platform_postgres_columns.h"

#define PLAYER_ROWS                                                     \
    "player.id, player.customer_id, player.reference, player.currency," \
    " currency.exponent, player.created_ms FROM player"                 \
    " JOIN currency ON currency.code = player.currency"

/* Money is at stake: a row that makes no sense is an error, not a player. */
static enum status read_player(struct postgres_store *store, const struct postgres_row *row,
                               struct player_record *player, struct error *error)
{
    struct player_record read = {0};
    bool sound = row_string(row, 0, read.id, sizeof read.id);
    sound &= row_string(row, 1, read.customer_id, sizeof read.customer_id);
    sound &= row_string(row, 2, read.reference, sizeof read.reference);
    sound &= row_string(row, 3, read.currency, sizeof read.currency);
    int64_t exponent = row_integer(row, 4);
    read.created_ms = row_integer(row, 5);
    if (!sound || exponent < 0 || exponent > CURRENCY_EXPONENT_MAX)
        return postgres_damaged(store, "a player makes no sense", error);
    read.currency_exponent = (uint8_t)exponent;
    *player = read;
    return STATUS_OK;
}

/* The player that a look-up brought, if it did. */
static enum status first_player(struct postgres_store *store, const struct postgres_query *query,
                                struct player_record *player, struct error *error)
{
    if (row_count(query) == 0)
        return error_set(error, STATUS_NOT_FOUND, "%s: there is no such player", store->place);
    const struct postgres_row row = row_at(query, 0);
    return read_player(store, &row, player, error);
}

static const char find_player[] = "SELECT " PLAYER_ROWS " WHERE player.customer_id = $1"
                                  " AND player.reference = $2 AND player.currency = $3";

static void set_names(struct postgres_parameters *parameters, const struct player_record *wanted)
{
    set_string(parameters, 1, wanted->customer_id);
    set_string(parameters, 2, wanted->reference);
    set_string(parameters, 3, wanted->currency);
}

struct opening {
    const struct player_record *wanted;
    struct player_record opened;
};

static enum status add_player(struct postgres_store *store, void *context, struct error *error)
{
    struct opening *opening = context;
    const struct player_record *wanted = opening->wanted;
    struct postgres_parameters currency = {0};
    struct postgres_parameters player = {0};
    struct postgres_parameters names = {0};
    struct postgres_query queries[] = {
        {.sql = postgres_begin},
        {.sql = "INSERT INTO currency (code, exponent, created_ms) VALUES ($1, $2, $3)"
                " ON CONFLICT (code) DO NOTHING",
         .parameters = &currency},
        {.sql = "INSERT INTO player (id, customer_id, reference, currency, created_ms)"
                " VALUES ($1, $2, $3, $4, $5)"
                " ON CONFLICT (customer_id, reference, currency) DO NOTHING",
         .parameters = &player},
        {.sql = find_player, .parameters = &names}, /* with the exponent that was frozen */
        {.sql = postgres_commit}};
    set_string(&currency, 1, wanted->currency);
    set_integer(&currency, 2, wanted->currency_exponent);
    set_integer(&currency, 3, wanted->created_ms);
    set_string(&player, 1, wanted->id);
    set_string(&player, 2, wanted->customer_id);
    set_string(&player, 3, wanted->reference);
    set_string(&player, 4, wanted->currency);
    set_integer(&player, 5, wanted->created_ms);
    set_names(&names, wanted);
    enum status status = postgres_run(store, queries, 5, error);
    if (status == STATUS_OK)
        status = first_player(store, &queries[3], &opening->opened, error);
    postgres_clear(queries, 5);
    return status;
}

enum status postgres_player_open(struct platform_store *base, const struct player_record *wanted,
                                 struct player_record *player, struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct opening opening = {.wanted = wanted};
    struct postgres_parameters names = {0};
    struct postgres_query query = {.sql = find_player, .parameters = &names};
    set_names(&names, wanted);
    enum status status = postgres_read(store, &query, 1, error);
    if (status != STATUS_OK)
        return status;
    bool found = row_count(&query) > 0;
    if (found)
        status = first_player(store, &query, &opening.opened, error);
    postgres_clear(&query, 1);
    if (!found)
        status = postgres_transact(store, add_player, &opening, error);
    if (status == STATUS_OK)
        *player = opening.opened;
    return status;
}

enum status postgres_player_get(struct platform_store *base, const char *player_id,
                                struct player_record *player, struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_parameters parameters = {0};
    struct postgres_query query = {.sql = "SELECT " PLAYER_ROWS " WHERE player.id = $1",
                                   .parameters = &parameters};
    set_string(&parameters, 1, player_id);
    enum status status = postgres_read(store, &query, 1, error);
    if (status == STATUS_OK)
        status = first_player(store, &query, player, error);
    postgres_clear(&query, 1);
    return status;
}
