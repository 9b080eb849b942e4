/* A player, and a block of players: their rules and their columns; see player.h. */
#include "records/player.h"

static enum status check(const void *checked, struct error *error)
{
    const struct player_record *record = checked;
    if (!record_id_is_sound(record->id, sizeof record->id, "ply_"))
        return error_invalid(error, "id: is not a player id (ply_…)");
    if (!record_id_is_sound(record->customer_id, sizeof record->customer_id, "cus_"))
        return error_invalid(error, "customer: is not a customer id (cus_…)");
    if (!is_outside_name(record_field_text(record->reference, sizeof record->reference)))
        return error_invalid(error,
                             "reference: must be 1 to 64 letters, digits, '.', '_', ':' or '-'");
    if (!currency_is_sound(record_field_text(record->currency, sizeof record->currency)))
        return error_invalid(error, "currency: must be three capitals");
    if (record->currency_exponent > CURRENCY_EXPONENT_MAX)
        return error_invalid(error, "currency: its exponent must be at most %d",
                             CURRENCY_EXPONENT_MAX);
    return STATUS_OK;
}

static const struct column columns[] = {
    COLUMN(player_record, id, column_text, 0),
    COLUMN(player_record, customer_id, column_text, 0),
    COLUMN(player_record, reference, column_text, 0),
    COLUMN(player_record, currency, column_text, 0),
    COLUMN_OF("currency.exponent", player_record, currency_exponent, column_small, COLUMN_JOINED),
    COLUMN(player_record, created_ms, column_integer, 0),
    COLUMN_OF("(" PLAYER_BLOCKED_UNTIL ")", player_record, blocked_until_ms, column_integer,
              COLUMN_JOINED | COLUMN_NULLABLE),
};

static bool settle(void *record, bool sound)
{
    return sound && ((struct player_record *)record)->currency_exponent <= CURRENCY_EXPONENT_MAX;
}

const struct record_table player_table = {
    RECORD_TABLE(RECORD_PLAYER, "player", "players", "player", player_record, columns),
    .join = "currency ON currency.code = player.currency",
    .order = "player.number",
    /* With the plus, SQLite finds them by their reference; else it walks in the order of numbers
     * through all players of the customer. */
    .search = "player.customer_id = $1 AND player.reference = $2"
              " AND ($3 = '' OR player.currency = $3) ORDER BY +player.number LIMIT $4",
    .check = check,
    .settle = settle,
};

/* ---- blocks ---------------------------------------------------------------------------------- */

void block_name(char id[BLOCK_ID_SIZE], const char *customer_id, const char *reference, bool own)
{
    (void)snprintf(id, BLOCK_ID_SIZE, own ? "%s/%s" : "%s:%s", customer_id, reference);
}

bool block_is_own(const struct block_record *record)
{
    return strchr(record->id, '/') != NULL;
}

static enum status check_block(const void *checked, struct error *error)
{
    const struct block_record *record = checked;
    if (!record_id_is_sound(record->customer_id, sizeof record->customer_id, "cus_"))
        return error_invalid(error, "customer: is not a customer id (cus_…)");
    if (!is_outside_name(record_field_text(record->reference, sizeof record->reference)))
        return error_invalid(
            error, "player_reference: must be 1 to 64 letters, digits, '.', '_', ':' or '-'");
    if (record->player_id[0] != '\0' &&
        !record_id_is_sound(record->player_id, sizeof record->player_id, "ply_"))
        return error_invalid(error, "player_id: is not a player id (ply_…)");
    return record_text_check("reason", record->reason, sizeof record->reason, 0, error);
}

static const struct column block_columns[] = {
    COLUMN(block_record, id, column_text, 0),
    COLUMN(block_record, player_id, column_text, COLUMN_NULLABLE),
    COLUMN(block_record, customer_id, column_text, 0),
    COLUMN(block_record, reference, column_text, 0),
    COLUMN(block_record, blocked_ms, column_integer, COLUMN_NULLABLE),
    COLUMN(block_record, until_ms, column_integer, COLUMN_NULLABLE),
    COLUMN(block_record, reason, column_text, 0),
};

/* A row that cannot be read is an error: it must not look like a player who may play. */
const struct record_table block_table = {
    RECORD_TABLE(RECORD_BLOCK, "block", "blocks", "player_block", block_record, block_columns),
    .listed = "player_block.blocked_ms IS NOT NULL",
    .order = "player_block.blocked_ms, player_block.id",
    .check = check_block,
    .strict = true,
};
