/* Members of documents; see documents.h. */
#include "operator/documents.h"

#include "base/clock.h"

void wallet_write_transaction(struct json_writer *json,
                              const struct ledger_transaction *transaction)
{
    json_string(json, "customer", transaction->customer_id);
    json_string(json, "player_id", transaction->player_id);
    json_string(json, "transaction_id", transaction->transaction_id);
    json_string(json, "operation", ledger_operation_name(transaction->operation));
    json_string(json, "outcome", ledger_outcome_name(transaction->outcome));
    json_integer(json, "amount_minor", transaction->amount_minor);
    json_string_or_null(json, "currency", transaction->currency);
    json_integer(json, "currency_exponent", transaction->currency_exponent);
    json_string_or_null(json, "reference_transaction_id", transaction->reference);
    json_string_or_null(json, "game_id", transaction->game_id);
    json_string_or_null(json, "round_id", transaction->round_id);
    json_string_or_null(json, "provider", transaction->provider_id);
    json_string_or_null(json, "launch_id", transaction->launch_id);
    json_time(json, "created_at", transaction->created_ms);
    if (!ledger_is_entry(transaction))
        return;
    json_unsigned(json, "sequence", transaction->sequence);
    json_integer(json, "movement_minor", transaction->movement_minor);
    json_integer(json, "balance_minor", transaction->balance_minor);
    json_hex(json, "hash", transaction->hash, LEDGER_HASH_SIZE);
}

static void begin_row(struct json_writer *json, const char *customer_id, int64_t day)
{
    char date[CLOCK_DAY_SIZE];
    clock_format_day(day, date);
    json_object(json, NULL);
    json_string_or_null(json, "customer", customer_id);
    json_string(json, "day", date);
}

void usage_write_requests(struct json_writer *json, const struct usage_record *record)
{
    begin_row(json, record->customer_id, record->day);
    json_string(json, "route_group", usage_group_name(record->group));
    json_unsigned(json, "2xx", record->requests[0]);
    json_unsigned(json, "3xx", record->requests[1]);
    json_unsigned(json, "4xx", record->requests[2]);
    json_unsigned(json, "5xx", record->requests[3]);
    json_end(json);
}

void usage_write_movement(struct json_writer *json, const struct ledger_sum *line)
{
    begin_row(json, line->customer_id, line->day);
    json_string(json, "currency", line->currency);
    json_integer(json, "currency_exponent", line->currency_exponent);
    json_unsigned(json, "debits", line->entries[LEDGER_DEBIT]);
    json_integer(json, "debits_minor", line->debits_minor);
    json_unsigned(json, "credits", line->entries[LEDGER_CREDIT]);
    json_integer(json, "credits_minor", line->credits_minor);
    json_unsigned(json, "rollbacks", line->entries[LEDGER_ROLLBACK]);
    json_integer(json, "rollbacks_minor", ledger_sum_rollbacks_minor(line));
    json_integer(json, "movement_minor", ledger_sum_movement_minor(line));
    json_end(json);
}
