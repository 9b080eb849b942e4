/* A block of players: its rules and its columns; see block.h. */
#include "records/block.h"

#include <stdio.h>
#include <string.h>

void block_name(struct block_record *record)
{
    (void)snprintf(record->id, sizeof record->id, "%s:%s", record->customer_id, record->reference);
}

static enum status check(const void *checked, struct error *error)
{
    const struct block_record *record = checked;
    if (!record_id_is_sound(record->customer_id, sizeof record->customer_id, "cus_"))
        return error_set(error, STATUS_INVALID, "customer: is not a customer id (cus_…)");
    if (!is_outside_name(record_field_text(record->reference, sizeof record->reference)))
        return error_set(error, STATUS_INVALID,
                         "player_reference: must be 1 to 64 letters, digits, '.', '_', ':' or '-'");
    if (record->player_id[0] != '\0' &&
        !record_id_is_sound(record->player_id, sizeof record->player_id, "ply_"))
        return error_set(error, STATUS_INVALID, "player_id: is not a player id (ply_…)");
    return record_text_check("reason", record->reason, sizeof record->reason, 0, error);
}

static const struct column columns[] = {
    COLUMN(block_record, id, column_text, 0),
    COLUMN(block_record, player_id, column_text, COLUMN_NULLABLE),
    COLUMN(block_record, customer_id, column_text, 0),
    COLUMN(block_record, reference, column_text, 0),
    COLUMN(block_record, blocked_ms, column_integer, COLUMN_NULLABLE),
    COLUMN(block_record, until_ms, column_integer, COLUMN_NULLABLE),
    COLUMN(block_record, reason, column_text, 0),
};

/* A row that cannot be read is an error: it must not look like a player who may play. */
static bool settle(void *record, bool sound)
{
    (void)record;
    return sound;
}

const struct record_table block_table = {
    .kind = RECORD_BLOCK,
    .what = "block",
    .plural = "blocks",
    .name = "player_block",
    .listed = "player_block.blocked_ms IS NOT NULL",
    .order = "player_block.blocked_ms, player_block.id",
    RECORD_COLUMNS(block_record, columns),
    .check = check,
    .settle = settle,
};
