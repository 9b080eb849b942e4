/* Readers of the ledger's rows, and what the engines' writers share; see rows.h. */
#include "stores/platform/ledger/rows.h"

bool ledger_read_string(const struct sql_row *row, int column, char *out, size_t room)
{
    return text_copy_plain(sql_text(row, column), out, room);
}

static bool read_optional(const struct sql_row *row, int column, char *out, size_t room)
{
    struct column_value value = row->value(row, column, COLUMN_TEXT);
    out[0] = '\0';
    return value.null || text_copy_plain(value.bytes, out, room);
}

bool ledger_read_hash(const struct sql_row *row, int column, uint8_t hash[LEDGER_HASH_SIZE])
{
    struct column_value value = row->value(row, column, COLUMN_BYTES);
    bool sound = !value.null && value.bytes.size == LEDGER_HASH_SIZE;
    memset(hash, 0, LEDGER_HASH_SIZE);
    if (sound)
        memcpy(hash, value.bytes.at, LEDGER_HASH_SIZE);
    return sound;
}

/* NULL is LEDGER_WIN, and only NULL: one kind has one form. */
static bool read_kind(const struct sql_row *row, int column, enum ledger_kind *kind)
{
    *kind = LEDGER_WIN;
    return ledger_read_null(row, column) ||
           (enum_read(&ledger_kinds, sql_text(row, column), kind) && *kind != LEDGER_WIN);
}

/* NULL or 1, for the same reason. */
static bool read_round_ended(const struct sql_row *row, int column, bool *ended)
{
    *ended = !ledger_read_null(row, column);
    return !*ended || sql_integer(row, column) == 1;
}

static bool read_exponent(const struct sql_row *row, int column, uint8_t *exponent)
{
    int64_t read = sql_integer(row, column);
    *exponent = (uint8_t)read;
    return read >= 0 && read <= CURRENCY_EXPONENT_MAX;
}

bool ledger_read_player(const struct sql_row *row, int first, struct player_record *player)
{
    bool sound = ledger_read_string(row, first, player->id, sizeof player->id);
    sound &= ledger_read_string(row, first + 1, player->customer_id, sizeof player->customer_id);
    sound &= ledger_read_string(row, first + 2, player->reference, sizeof player->reference);
    sound &= ledger_read_string(row, first + 3, player->currency, sizeof player->currency);
    sound &= read_exponent(row, first + 4, &player->currency_exponent);
    player->created_ms = sql_integer(row, first + 5);
    return sound;
}

bool ledger_read_balance(const struct sql_row *row, int first, struct ledger_account *account)
{
    int64_t sequence = sql_integer(row, first + 1);
    account->balance_minor = sql_integer(row, first);
    account->sequence = (uint64_t)sequence;
    bool stored = ledger_read_hash(row, first + 2, account->head);
    return account->balance_minor >= 0 && account->balance_minor <= LEDGER_BALANCE_MAX &&
           (stored ? sequence >= 1 : sequence == 0 && ledger_read_null(row, first + 2));
}

bool ledger_read_account(const struct sql_row *row, int first, struct ledger_account *account)
{
    struct ledger_account read = {0};
    bool sound = ledger_read_player(row, first, &read.player);
    sound &= ledger_read_balance(row, first + 6, &read);
    if (sound)
        *account = read;
    return sound;
}

bool ledger_read_declined(const struct sql_row *row, int first, struct ledger_account *account)
{
    int64_t declines = sql_integer(row, first);
    account->declines = (uint64_t)declines;
    bool stored = ledger_read_hash(row, first + 1, account->declines_head);
    return stored ? declines >= 1 : declines == 0 && ledger_read_null(row, first + 1);
}

static bool read_whose(const struct sql_row *row, int first, const struct player_record *player,
                       struct ledger_transaction *read)
{
    if (player == NULL) {
        bool sound = ledger_read_string(row, first, read->customer_id, sizeof read->customer_id);
        sound &= ledger_read_string(row, first + 1, read->player_id, sizeof read->player_id);
        sound &= ledger_read_string(row, first + 2, read->currency, sizeof read->currency);
        read->sandbox = sql_integer(row, first + 20) != 0;
        return sound && read_exponent(row, first + 3, &read->currency_exponent);
    }
    memcpy(read->customer_id, player->customer_id, sizeof read->customer_id);
    memcpy(read->player_id, player->id, sizeof read->player_id);
    memcpy(read->currency, player->currency, sizeof read->currency);
    read->currency_exponent = player->currency_exponent;
    read->sandbox = player->sandbox;
    return true;
}

bool ledger_read_transaction(const struct sql_row *row, int first,
                             const struct player_record *player,
                             struct ledger_transaction *transaction)
{
    struct ledger_transaction read = {0};
    bool sound = read_whose(row, first, player, &read);
    sound &= ledger_read_string(row, first + 4, read.transaction_id, sizeof read.transaction_id);
    sound &= read_optional(row, first + 5, read.reference, sizeof read.reference);
    sound &= read_optional(row, first + 6, read.game_id, sizeof read.game_id);
    sound &= read_optional(row, first + 7, read.round_id, sizeof read.round_id);
    sound &= ledger_operation_parse(sql_text(row, first + 8), &read.operation);
    sound &= enum_read(&ledger_outcomes, sql_text(row, first + 9), &read.outcome);
    read.amount_minor = sql_integer(row, first + 10);
    read.created_ms = sql_integer(row, first + 11);
    sound &= read_optional(row, first + 16, read.provider_id, sizeof read.provider_id);
    sound &= read_optional(row, first + 17, read.launch_id, sizeof read.launch_id);
    sound &= read_kind(row, first + 18, &read.kind);
    sound &= read_round_ended(row, first + 19, &read.round_ended);
    if (sound && ledger_is_entry(&read)) {
        int64_t sequence = sql_integer(row, first + 12);
        read.sequence = (uint64_t)sequence;
        read.movement_minor = sql_integer(row, first + 13);
        read.balance_minor = sql_integer(row, first + 14);
        sound = sequence >= 1 && ledger_read_hash(row, first + 15, read.hash);
    }
    if (sound)
        *transaction = read;
    return sound;
}

static bool is_of_player(const struct ledger_batch *batch, size_t player,
                         const struct ledger_transaction *kept)
{
    return player < batch->player_count && batch->players[player].found &&
           strcmp(batch->players[player].player_id, kept->player_id) == 0;
}

size_t ledger_player_of_kept(const struct ledger_batch *batch, size_t at)
{
    const struct ledger_transaction *kept = &batch->kept[at];
    size_t player = batch->kept_of[at].player;
    if (!is_of_player(batch, player, kept))
        for (player = 0; player < batch->player_count && !is_of_player(batch, player, kept);)
            player++;
    return player;
}

bool ledger_find_clearing(struct ledger_batch *batch, struct ledger_batch_player *player)
{
    const struct player_record *record = &player->account.player;
    size_t at = 0;
    while (at < batch->clearing_count &&
           (strcmp(batch->clearings[at].customer_id, record->customer_id) != 0 ||
            strcmp(batch->clearings[at].currency, record->currency) != 0))
        at++;
    player->clearing = at;
    if (at < batch->clearing_count)
        return false;
    struct ledger_clearing *clearing = &batch->clearings[batch->clearing_count++];
    *clearing = (struct ledger_clearing){0};
    memcpy(clearing->customer_id, record->customer_id, sizeof clearing->customer_id);
    memcpy(clearing->currency, record->currency, sizeof clearing->currency);
    return true;
}
