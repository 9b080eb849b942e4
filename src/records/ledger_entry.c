/* Names, and the chain's hash; see ledger_record.h. Both are in every store: never change them. */
#include "records/ledger_entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <openssl/sha.h>

#define LINES_SIZE 1024 /* of what is hashed, at most */

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

/* The hash of `previous` and a line a field. No field can hold a line feed, so no two have the same
 * text. */
static void hash_lines(const uint8_t previous[LEDGER_HASH_SIZE], const char *lines, int size,
                       uint8_t hash[LEDGER_HASH_SIZE])
{
    char bytes[LEDGER_HASH_SIZE + LINES_SIZE];
    CHECK(size > 0 && size < LINES_SIZE);
    memcpy(bytes, previous, LEDGER_HASH_SIZE);
    memcpy(bytes + LEDGER_HASH_SIZE, lines, (size_t)size);
    CHECK(SHA256((const unsigned char *)bytes, LEDGER_HASH_SIZE + (size_t)size, hash) != NULL);
}

void ledger_entry_hash(const struct ledger_transaction *entry,
                       const uint8_t previous[LEDGER_HASH_SIZE], uint8_t hash[LEDGER_HASH_SIZE])
{
    char lines[LINES_SIZE];
    CHECK(ledger_is_entry(entry));
    int size = snprintf(lines, sizeof lines,
                        "%s\n%s\n%" PRIu64 "\n%s\n%s\n%s\n%s\n%u\n%" PRId64 "\n%" PRId64
                        "\n%" PRId64 "\n%s\n%s\n%s\n%" PRId64 "\n",
                        entry->customer_id, entry->player_id, entry->sequence,
                        entry->transaction_id, operations[entry->operation],
                        outcomes[entry->outcome], entry->currency, entry->currency_exponent,
                        entry->amount_minor, entry->movement_minor, entry->balance_minor,
                        entry->reference, entry->game_id, entry->round_id, entry->created_ms);
    hash_lines(previous, lines, size, hash);
}

/* The first line keeps it apart from every entry. The migrations of PostgreSQL write the same in
 * SQL. */
void ledger_decline_hash(const struct ledger_transaction *decline,
                         const uint8_t previous[LEDGER_HASH_SIZE], uint8_t hash[LEDGER_HASH_SIZE])
{
    char lines[LINES_SIZE];
    CHECK(!ledger_is_entry(decline) && decline->decline > 0);
    int size = snprintf(
        lines, sizeof lines,
        "decline\n%s\n%s\n%" PRIu64 "\n%s\n%s\n%s\n%s\n%u\n%" PRId64 "\n%s\n%s\n%s\n%" PRId64 "\n",
        decline->customer_id, decline->player_id, decline->decline, decline->transaction_id,
        operations[decline->operation], outcomes[decline->outcome], decline->currency,
        decline->currency_exponent, decline->amount_minor, decline->reference, decline->game_id,
        decline->round_id, decline->created_ms);
    hash_lines(previous, lines, size, hash);
}

void ledger_chain_decline(struct ledger_account *account, struct ledger_transaction *decline)
{
    decline->decline = ++account->declines;
    ledger_decline_hash(decline, account->declines_head, decline->hash);
    memcpy(account->declines_head, decline->hash, sizeof account->declines_head);
}
