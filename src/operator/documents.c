/* Tables of fields; see documents.h. */
#include "operator/documents.h"

/* ---- a transaction --------------------------------------------------------------------------- */

#define OF_ENTRY(member) FIELD_OF(ledger_transaction, member)

static bool write_kind(const struct field *field, const void *transaction,
                       const struct field_output *out)
{
    json_string_or_null(out->json, field->name, ledger_kind_name(transaction));
    return true;
}

static const struct field_type kind_type = {write_kind, NULL};

const struct field ledger_transaction_fields[] = {
    {"customer", .type = &field_text, OF_ENTRY(customer_id)},
    {"player_id", .type = &field_text, OF_ENTRY(player_id)},
    {"transaction_id", .type = &field_text, OF_ENTRY(transaction_id)},
    {"operation", .type = &field_word, OF_ENTRY(operation), .names = &ledger_operations},
    {"outcome", .type = &field_word, OF_ENTRY(outcome), .names = &ledger_outcomes},
    {"amount_minor", .type = &field_amount, OF_ENTRY(amount_minor)},
    {"currency", .type = &field_text_or_null, OF_ENTRY(currency)},
    {"currency_exponent", .type = &field_exponent, OF_ENTRY(currency_exponent)},
    {"reference_transaction_id", .type = &field_text_or_null, OF_ENTRY(reference)},
    {"game_id", .type = &field_text_or_null, OF_ENTRY(game_id)},
    {"round_id", .type = &field_text_or_null, OF_ENTRY(round_id)},
    {"provider", .type = &field_text_or_null, OF_ENTRY(provider_id)},
    {"launch_id", .type = &field_text_or_null, OF_ENTRY(launch_id)},
    {"kind", .type = &kind_type, OF_ENTRY(kind), .names = &ledger_kinds},
    {"round_ended", .type = &field_yes_no, OF_ENTRY(round_ended)},
    {"sandbox", .type = &field_if_true, OF_ENTRY(sandbox)},
    {"created_at", .type = &field_time, OF_ENTRY(created_ms)},
    {0},
};

const struct field ledger_entry_fields[] = {
    {"sequence", .type = &field_count, OF_ENTRY(sequence)},
    {"movement_minor", .type = &field_amount, OF_ENTRY(movement_minor)},
    {"balance_minor", .type = &field_amount, OF_ENTRY(balance_minor)},
    {"hash", .type = &field_hex, OF_ENTRY(hash)},
    {0},
};

void wallet_write_transaction(struct json_writer *json,
                              const struct ledger_transaction *transaction)
{
    fields_write(ledger_transaction_fields, transaction, json);
    if (ledger_is_entry(transaction))
        fields_write(ledger_entry_fields, transaction, json);
}

bool wallet_list_entry(void *json, const struct ledger_transaction *entry)
{
    json_object(json, NULL);
    wallet_write_transaction(json, entry);
    json_end(json);
    return true;
}

void wallet_write_fact(struct json_writer *json, const struct ledger_fact *fact)
{
    if (fact->id.known) {
        wallet_write_transaction(json, &fact->id.transaction);
    } else {
        json_string(json, ledger_owner_is_provider(fact->owner_id) ? "provider" : "customer",
                    fact->owner_id);
        json_string(json, "transaction_id", fact->transaction_id);
    }
    json_bool(json, "rolled_back", fact->id.rolled_back);
    json_string_or_null(json, "rolled_back_by", fact->id.rolled_back_by);
    json_integer(json, "standing_credits", fact->id.standing_credits);
    json_string_or_null(json, "settled_by", fact->id.settled_by);
}

/* ---- requests -------------------------------------------------------------------------------- */

#define OF_USAGE(member) FIELD_OF(usage_record, member)

const struct field usage_request_fields[] = {
    {"customer", NULL, "CUSTOMER", &field_text_or_null, OF_USAGE(customer_id), .width = -20,
     .words = "(further ones)"},
    {NULL, NULL, "NAME", &field_text, OF_USAGE(customer_name), .width = -20},
    {"day", NULL, "DAY", &field_day, OF_USAGE(day), .width = -10},
    {"route_group", NULL, "REQUESTS", &field_word, OF_USAGE(group), .width = -8,
     .names = &usage_groups},
    {"2xx", NULL, "2XX", &field_count, OF_USAGE(requests[0]), .width = 12},
    {"3xx", NULL, "3XX", &field_count, OF_USAGE(requests[1]), .width = 12},
    {"4xx", NULL, "4XX", &field_count, OF_USAGE(requests[2]), .width = 12},
    {"5xx", NULL, "5XX", &field_count, OF_USAGE(requests[3]), .width = 12},
    {0},
};

/* ---- sums of the ledger ---------------------------------------------------------------------- */

static const struct ledger_sum *sum_of(const void *sum)
{
    return sum;
}

static int64_t entries_of(const void *sum)
{
    return (int64_t)ledger_entries(&sum_of(sum)->all);
}

static int64_t rollbacks_of(const void *sum)
{
    return ledger_rollbacks_minor(&sum_of(sum)->all);
}

static int64_t movement_of(const void *sum)
{
    return ledger_movement_minor(&sum_of(sum)->all);
}

/* The sum of rolled back stakes and wins. */
static int64_t play_rolled_back(const void *sum)
{
    return ledger_less(sum_of(sum)->play.debits_back_minor,
                       sum_of(sum)->kinds[LEDGER_WIN].credits_back_minor);
}

/* Stakes less all CREDITs. */
static int64_t result_of(const void *sum)
{
    return ledger_less(0, ledger_movement_minor(&sum_of(sum)->play));
}

/* Less what was rolled back, as people see it. */
static int64_t paid_in(const void *sum)
{
    const struct ledger_movements *transfers = &sum_of(sum)->transfers;
    return ledger_less(transfers->credits_minor, transfers->credits_back_minor);
}

static int64_t paid_out(const void *sum)
{
    const struct ledger_movements *transfers = &sum_of(sum)->transfers;
    return ledger_less(transfers->debits_minor, transfers->debits_back_minor);
}

/* Promos, jackpots and adjustments, less what was rolled back. */
static int64_t other_credits(const void *sum)
{
    int64_t minor = 0;
    for (size_t i = LEDGER_PROMO; i < LEDGER_KIND_COUNT; i++)
        minor = ledger_less(minor, ledger_less(sum_of(sum)->kinds[i].credits_back_minor,
                                               sum_of(sum)->kinds[i].credits_minor));
    return minor;
}

#define OF_SUM(member) FIELD_OF(ledger_sum, member)
#define AMOUNT &field_amount, .beside = offsetof(struct ledger_sum, currency_exponent), .width = 16

const struct field usage_movement_fields[] = {
    {"customer", NULL, "CUSTOMER", &field_text_or_null, OF_SUM(customer_id), .width = -20},
    {NULL, NULL, "NAME", &field_text, OF_SUM(customer_name), .width = -20},
    {"day", NULL, "DAY", &field_day, OF_SUM(day), .width = -10},
    {"currency", NULL, "WALLET", &field_text, OF_SUM(currency), .width = -8},
    {"currency_exponent", .type = &field_exponent, OF_SUM(currency_exponent)},
    {"sandbox", .type = &field_if_true, OF_SUM(sandbox)},
    {NULL, NULL, "OPERATIONS", &field_count, .compute = entries_of, .width = 12},
    {"debits", .type = &field_count, OF_SUM(all.entries[LEDGER_DEBIT])},
    {"debits_minor", NULL, "DEBITS", AMOUNT, OF_SUM(all.debits_minor)},
    {"credits", .type = &field_count, OF_SUM(all.entries[LEDGER_CREDIT])},
    {"credits_minor", NULL, "CREDITS", AMOUNT, OF_SUM(all.credits_minor)},
    {"rollbacks", .type = &field_count, OF_SUM(all.entries[LEDGER_ROLLBACK])},
    {"rollbacks_minor", NULL, "ROLLED BACK", AMOUNT, .compute = rollbacks_of},
    {"transfers_in_minor", NULL, "PAID IN", AMOUNT, OF_SUM(transfers.credits_minor)},
    {"transfers_out_minor", NULL, "PAID OUT", AMOUNT, OF_SUM(transfers.debits_minor)},
    {"movement_minor", NULL, "MOVEMENT", AMOUNT, .compute = movement_of},
    {0},
};

bool usage_list_requests(void *json, const struct usage_record *record)
{
    fields_write_object(usage_request_fields, record, json);
    return true;
}

bool usage_list_movement(void *json, const struct ledger_sum *sum)
{
    fields_write_object(usage_movement_fields, sum, json);
    return true;
}

/* Stakes and wins as they were entered, the other kinds of CREDITs apart, rollbacks of these and of
 * earlier ones, and the result. For people, what was rolled back of stakes and wins is one number,
 * and all other kinds are one. */
#define KIND_FIELDS(word, kind)                                                     \
    {word "s", .type = &field_count, OF_SUM(kinds[kind].entries)},                  \
        {word "s_minor", .type = &field_amount, OF_SUM(kinds[kind].credits_minor)}, \
    {                                                                               \
        "rolled_back_" word "s_minor", .type = &field_amount,                       \
                                       OF_SUM(kinds[kind].credits_back_minor)       \
    }

const struct field ledger_play_fields[] = {
    {"customer", NULL, "CUSTOMER", &field_text, OF_SUM(customer_id), .words = "total",
     .width = -20},
    {NULL, NULL, "NAME", &field_text, OF_SUM(customer_name), .width = -20},
    {"provider", NULL, "PROVIDER", &field_text_or_null, OF_SUM(provider_id), .words = "-",
     .width = -16},
    {"game_id", NULL, "GAME", &field_text_or_null, OF_SUM(game_id), .words = "-", .width = -24},
    {"round_id", .type = &field_text_if_any, OF_SUM(round_id)},
    [LEDGER_PLAY_AT] = {"currency", NULL, "CURRENCY", &field_text, OF_SUM(currency), .width = -8},
    {"currency_exponent", .type = &field_exponent, OF_SUM(currency_exponent)},
    {"sandbox", .type = &field_if_true, OF_SUM(sandbox)},
    {"entries", .type = &field_count, .compute = entries_of},
    {"stakes", NULL, "STAKES", &field_count, OF_SUM(play.entries[LEDGER_DEBIT]), .width = 8},
    {"stakes_minor", NULL, "STAKED", AMOUNT, OF_SUM(play.debits_minor)},
    {"wins", .type = &field_count, OF_SUM(kinds[LEDGER_WIN].entries)},
    {"wins_minor", NULL, "WON", AMOUNT, OF_SUM(kinds[LEDGER_WIN].credits_minor)},
    {"rolled_back_stakes_minor", .type = &field_amount, OF_SUM(play.debits_back_minor)},
    {"rolled_back_wins_minor", .type = &field_amount, OF_SUM(kinds[LEDGER_WIN].credits_back_minor)},
    {NULL, NULL, "ROLLED BACK", AMOUNT, .compute = play_rolled_back},
    KIND_FIELDS("promo", LEDGER_PROMO),
    KIND_FIELDS("jackpot", LEDGER_JACKPOT),
    KIND_FIELDS("adjustment", LEDGER_ADJUSTMENT),
    {NULL, NULL, "OTHER CREDITS", AMOUNT, .compute = other_credits},
    {"transfers_in_minor", .type = &field_amount, OF_SUM(transfers.credits_minor)},
    {"transfers_out_minor", .type = &field_amount, OF_SUM(transfers.debits_minor)},
    {"rolled_back_transfers_in_minor", .type = &field_amount, OF_SUM(transfers.credits_back_minor)},
    {"rolled_back_transfers_out_minor", .type = &field_amount, OF_SUM(transfers.debits_back_minor)},
    {NULL, NULL, "PAID IN", AMOUNT, .compute = paid_in},
    {NULL, NULL, "PAID OUT", AMOUNT, .compute = paid_out},
    {"result_minor", NULL, "RESULT", AMOUNT, .compute = result_of},
    {0},
};

/* ---- rounds ---------------------------------------------------------------------------------- */

#define OF_ROUND(member) FIELD_OF(ledger_round, member)
#define ROUND_AMOUNT \
    &field_amount, .beside = offsetof(struct ledger_round, currency_exponent), .width = 16

const struct field ledger_round_fields[] = {
    {"began_at", NULL, "BEGAN", &field_time, OF_ROUND(began_ms), .width = -24},
    {"last_at", .type = &field_time, OF_ROUND(last_ms)},
    {"ended_at", .type = &field_time, OF_ROUND(ended_ms)},
    {"state", NULL, "STATE", &field_word, OF_ROUND(state), .names = &ledger_round_states,
     .width = -7},
    {"customer", NULL, "CUSTOMER", &field_text, OF_ROUND(customer_id), .width = -20},
    {"player_id", NULL, "PLAYER", &field_text, OF_ROUND(player_id), .width = -20},
    {"player_reference", .type = &field_text, OF_ROUND(reference)},
    {"provider", NULL, "PROVIDER", &field_text_or_null, OF_ROUND(provider_id), .words = "-",
     .width = -16},
    {"game_id", NULL, "GAME", &field_text_or_null, OF_ROUND(game_id), .words = "-", .width = -20},
    {"currency", NULL, "CURRENCY", &field_text, OF_ROUND(currency), .width = -8},
    {"currency_exponent", .type = &field_exponent, OF_ROUND(currency_exponent)},
    {"bets", NULL, "BETS", &field_count, OF_ROUND(bets), .width = 5},
    {"stake_minor", NULL, "STAKE", ROUND_AMOUNT, OF_ROUND(stake_minor)},
    {"wins", NULL, "WINS", &field_count, OF_ROUND(wins), .width = 5},
    {"win_minor", NULL, "WIN", ROUND_AMOUNT, OF_ROUND(win_minor)},
    {"ends", NULL, "ENDS", &field_count, OF_ROUND(ends), .width = 5},
    {"sandbox", .type = &field_if_true, OF_ROUND(sandbox)},
    {"bet_after_end", NULL, "LATE BET", &field_yes_no, OF_ROUND(bet_after_end), .width = -8},
    {"round_id", NULL, "ROUND", &field_text, OF_ROUND(round_id)},
    {0},
};
