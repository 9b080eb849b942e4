/* A launch: its rules and its columns; see launch.h. */
#include "records/launch.h"

static enum status check(const void *checked, struct error *error)
{
    const struct launch_record *record = checked;
    if (!record_id_is_sound(record->id, sizeof record->id, "lau_"))
        return error_invalid(error, "id: is not a launch id (lau_…)");
    if (!record_id_is_sound(record->customer_id, sizeof record->customer_id, "cus_"))
        return error_invalid(error, "customer: is not a customer id (cus_…)");
    if (record->player_id[0] != '\0' &&
        !record_id_is_sound(record->player_id, sizeof record->player_id, "ply_"))
        return error_invalid(error, "player: is not a player id (ply_…)");
    if (strnlen(record->subject, sizeof record->subject) != LAUNCH_SUBJECT_SIZE - 1)
        return error_invalid(error, "subject: must have 22 characters");
    enum status status = game_id_check(record->provider_id, error);
    return status == STATUS_OK ? game_id_check(record->game_id, error) : status;
}

static const struct column columns[] = {
    COLUMN(launch_record, id, column_text, 0),
    COLUMN(launch_record, customer_id, column_text, 0),
    COLUMN(launch_record, player_id, column_text, COLUMN_NULLABLE),
    COLUMN(launch_record, provider_id, column_text, 0),
    COLUMN(launch_record, subject, column_text, 0),
    COLUMN(launch_record, game_id, column_text, 0),
    COLUMN(launch_record, created_ms, column_integer, 0),
};

const struct record_table launch_table = {
    RECORD_TABLE(RECORD_LAUNCH, "launch", "launches", "launch", launch_record, columns),
    .order = "launch.number",
    .search = "player_id = $1 ORDER BY number DESC LIMIT $2",
    .check = check,
    .strict = true,
};
