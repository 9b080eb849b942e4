/* Names, and the chain's hash; see ledger_record.h. Both are in every store: never change them. */
#include "records/ledger_entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <openssl/sha.h>

static const char *const operations[LEDGER_OPERATION_COUNT] = {
    [LEDGER_DEBIT] = "DEBIT",
    [LEDGER_CREDIT] = "CREDIT",
    [LEDGER_ROLLBACK] = "ROLLBACK",
};

static const char *const outcomes[LEDGER_OUTCOME_COUNT] = {
    [LEDGER_APPLIED] = "applied",
    [LEDGER_VOIDED] = "voided",
    [LEDGER_REFERENCE_NOT_FOUND] = "reference_not_found",
    [LEDGER_TRANSACTION_ROLLED_BACK] = "transaction_rolled_back",
    [LEDGER_ALREADY_ROLLED_BACK] = "already_rolled_back",
    [LEDGER_ALREADY_SETTLED] = "already_settled",
    [LEDGER_NOT_ROLLBACKABLE] = "not_rollbackable",
    [LEDGER_INSUFFICIENT_FUNDS] = "insufficient_funds",
    [LEDGER_BALANCE_LIMIT_EXCEEDED] = "balance_limit_exceeded",
};

const char *ledger_operation_name(enum ledger_operation operation)
{
    CHECK((unsigned)operation < LEDGER_OPERATION_COUNT);
    return operations[operation];
}

bool ledger_operation_parse(struct text name, enum ledger_operation *operation)
{
    for (unsigned i = 0; i < LEDGER_OPERATION_COUNT; i++) {
        if (text_equals(name, text_of(operations[i]))) {
            *operation = (enum ledger_operation)i;
            return true;
        }
    }
    return false;
}

const char *ledger_outcome_name(enum ledger_outcome outcome)
{
    CHECK((unsigned)outcome < LEDGER_OUTCOME_COUNT);
    return outcomes[outcome];
}

bool ledger_outcome_parse(struct text name, enum ledger_outcome *outcome)
{
    for (unsigned i = 0; i < LEDGER_OUTCOME_COUNT; i++) {
        if (text_equals(name, text_of(outcomes[i]))) {
            *outcome = (enum ledger_outcome)i;
            return true;
        }
    }
    return false;
}

bool ledger_is_entry(const struct ledger_transaction *transaction)
{
    return transaction->outcome == LEDGER_APPLIED || transaction->outcome == LEDGER_VOIDED;
}

/* No field can hold a line feed, so no two entries have the same text. */
void ledger_entry_hash(const struct ledger_transaction *entry,
                       const uint8_t previous[LEDGER_HASH_SIZE], uint8_t hash[LEDGER_HASH_SIZE])
{
    char bytes[LEDGER_HASH_SIZE + 1024];
    CHECK(ledger_is_entry(entry));
    memcpy(bytes, previous, LEDGER_HASH_SIZE);
    int size = snprintf(bytes + LEDGER_HASH_SIZE, sizeof bytes - LEDGER_HASH_SIZE,
                        "%s\n%s\n%" PRIu64 "\n%s\n%s\n%s\n%s\n%u\n%" PRId64 "\n%" PRId64
                        "\n%" PRId64 "\n%s\n%s\n%s\n%" PRId64 "\n",
                        entry->customer_id, entry->player_id, entry->sequence,
                        entry->transaction_id, operations[entry->operation],
                        outcomes[entry->outcome], entry->currency, entry->currency_exponent,
                        entry->amount_minor, entry->movement_minor, entry->balance_minor,
                        entry->reference, entry->game_id, entry->round_id, entry->created_ms);
    CHECK(size > 0 && (size_t)size < sizeof bytes - LEDGER_HASH_SIZE);
    CHECK(SHA256((const unsigned char *)bytes, LEDGER_HASH_SIZE + (size_t)size, hash) != NULL);
}
