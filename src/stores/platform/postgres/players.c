/*
 * Players and currencies in PostgreSQL. Rows are only ever added. Two who open the same player at
 * once end with the same row: ON CONFLICT waits for the other's commit, does nothing, and the next
 * statement, which has a snapshot of its own, finds what the other made.
 *
 * A player that is found may not be on a synchronous standby yet (platform_postgres_ledger.c), and
 * a launch does not wait for that: it would cost each a commit. A failover that loses the player
 * loses no money, because the first entry of the player's waits for all before it.
 */
#include <string.h>

#include "stores/platform/postgres/columns.h"
#include "stores/platform/postgres/postgres.h"

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

/* ---- copying --------------------------------------------------------------------------------- */

struct player_reading {
    struct postgres_store *store;
    player_visitor *visit;
    void *context;
    enum status status;
    struct error *error;
};

static bool on_player(void *context, const struct postgres_row *row)
{
    struct player_reading *reading = context;
    struct player_record player;
    reading->status = read_player(reading->store, row, &player, reading->error);
    return reading->status == STATUS_OK && reading->visit(reading->context, &player);
}

enum status postgres_player_list(struct platform_store *base, player_visitor *visit, void *context,
                                 struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct player_reading reading = {store, visit, context, STATUS_OK, error};
    struct postgres_query query = {.sql = "SELECT " PLAYER_ROWS " ORDER BY player.number",
                                   .row = on_player,
                                   .context = &reading};
    enum status status = postgres_read_snapshot(store, &query, 1, error);
    return status == STATUS_OK ? reading.status : status;
}

/* The columns of many players, as arrays. */
struct player_arrays {
    struct postgres_array ids, customers, references, currencies, exponents, times;
};

static void fill_arrays(struct player_arrays *arrays, const struct player_record *records,
                        size_t count)
{
    *arrays = (struct player_arrays){.ids.kind = ARRAY_TEXT,
                                     .customers.kind = ARRAY_TEXT,
                                     .references.kind = ARRAY_TEXT,
                                     .currencies.kind = ARRAY_TEXT,
                                     .exponents.kind = ARRAY_BIGINT,
                                     .times.kind = ARRAY_BIGINT};
    for (size_t i = 0; i < count; i++) {
        array_add_string(&arrays->ids, records[i].id);
        array_add_string(&arrays->customers, records[i].customer_id);
        array_add_string(&arrays->references, records[i].reference);
        array_add_string(&arrays->currencies, records[i].currency);
        array_add_integer(&arrays->exponents, records[i].currency_exponent);
        array_add_integer(&arrays->times, records[i].created_ms);
    }
}

static void free_arrays(struct player_arrays *arrays)
{
    array_free(&arrays->ids);
    array_free(&arrays->customers);
    array_free(&arrays->references);
    array_free(&arrays->currencies);
    array_free(&arrays->exponents);
    array_free(&arrays->times);
}

static enum status put_players(struct postgres_store *store, void *context, struct error *error)
{
    struct player_arrays *arrays = context;
    struct postgres_parameters currencies = {0};
    struct postgres_parameters players = {0};
    struct postgres_query queries[] = {
        {.sql = postgres_begin},
        {.sql = "INSERT INTO currency (code, exponent, created_ms)"
                " SELECT DISTINCT ON (code) code, exponent, created_ms"
                " FROM unnest($1::text[], $2::bigint[], $3::bigint[])"
                "  AS given (code, exponent, created_ms) ORDER BY code, created_ms"
                " ON CONFLICT (code) DO NOTHING",
         .parameters = &currencies},
        {.sql = "SELECT currency.code FROM unnest($1::text[], $2::bigint[], $3::bigint[])"
                "  AS given (code, exponent, created_ms)"
                " JOIN currency ON currency.code = given.code"
                " WHERE currency.exponent <> given.exponent LIMIT 1",
         .parameters = &currencies},
        {.sql = "INSERT INTO player (id, customer_id, reference, currency, created_ms)"
                " SELECT id, customer_id, reference, currency, created_ms"
                " FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[])"
                "  WITH ORDINALITY"
                "  AS given (id, customer_id, reference, currency, created_ms, place)"
                " ORDER BY place",
         .parameters = &players}};
    set_array(&currencies, 1, &arrays->currencies);
    set_array(&currencies, 2, &arrays->exponents);
    set_array(&currencies, 3, &arrays->times);
    set_array(&players, 1, &arrays->ids);
    set_array(&players, 2, &arrays->customers);
    set_array(&players, 3, &arrays->references);
    set_array(&players, 4, &arrays->currencies);
    set_array(&players, 5, &arrays->times);
    enum status status = postgres_run(store, queries, 4, error);
    if (status == STATUS_OK && row_count(&queries[2]) > 0) {
        const struct postgres_row row = row_at(&queries[2], 0);
        struct text code = row_text(&row, 0);
        status = error_set(error, STATUS_INVALID,
                           "%s: %.*s has another exponent here; it was frozen when first used",
                           store->place, (int)code.size, code.at);
    }
    postgres_clear(queries, 4);
    return status;
}

enum status postgres_player_put(struct platform_store *base, const struct player_record *records,
                                size_t count, struct error *error)
{
    struct player_arrays arrays;
    fill_arrays(&arrays, records, count);
    enum status status = postgres_transact(postgres_store_of(base), put_players, &arrays, error);
    free_arrays(&arrays);
    return status;
}
