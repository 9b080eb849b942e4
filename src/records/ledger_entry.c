/* Names, and the chain's hash; see ledger_entry.h. Both are in every store: never change them. */
#include "records/ledger_entry.h"

#include "base/digest.h"

#define LINES_SIZE 1024 /* of what is hashed, at most */
#define NUMBER_SIZE 21  /* a number's digits and its line feed */

static const char *const operations[WALLET_OPERATION_COUNT] = {
    [LEDGER_DEBIT] = "DEBIT",
    [LEDGER_CREDIT] = "CREDIT",
    [LEDGER_ROLLBACK] = "ROLLBACK",
    [LEDGER_BALANCE] = "BALANCE",
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

static const char *const kinds[LEDGER_KIND_COUNT] = {
    [LEDGER_WIN] = "win",
    [LEDGER_PROMO] = "promo",
    [LEDGER_JACKPOT] = "jackpot",
    [LEDGER_ADJUSTMENT] = "adjustment",
};

const struct enum_names ledger_operations = ENUM_NAMES(operations);
const struct enum_names ledger_outcomes = ENUM_NAMES(outcomes);
const struct enum_names ledger_kinds = ENUM_NAMES(kinds);

const char *ledger_operation_name(enum ledger_operation operation)
{
    return enum_name(&ledger_operations, operation);
}

bool ledger_operation_parse(struct text name, enum ledger_operation *operation)
{
    static const struct enum_names kept = {operations, LEDGER_OPERATION_COUNT};
    return enum_read(&kept, name, operation);
}

const char *ledger_outcome_name(enum ledger_outcome outcome)
{
    return enum_name(&ledger_outcomes, outcome);
}

const char *ledger_kind_name(const struct ledger_transaction *transaction)
{
    bool has_kind = transaction->operation == LEDGER_CREDIT && transaction->provider_id[0] != '\0';
    return has_kind ? enum_name(&ledger_kinds, transaction->kind) : "";
}

bool ledger_is_entry(const struct ledger_transaction *transaction)
{
    return transaction->outcome == LEDGER_APPLIED || transaction->outcome == LEDGER_VOIDED;
}

bool ledger_settles(const struct ledger_transaction *transaction)
{
    return transaction->operation == LEDGER_CREDIT && transaction->outcome == LEDGER_APPLIED &&
           transaction->reference[0] != '\0';
}

bool ledger_rolls_back(const struct ledger_transaction *transaction)
{
    return transaction->operation == LEDGER_ROLLBACK && ledger_is_entry(transaction);
}

const char *ledger_owner(const struct ledger_transaction *transaction)
{
    return transaction->provider_id[0] != '\0' ? transaction->provider_id
                                               : transaction->customer_id;
}

bool ledger_owner_is_provider(const char *owner_id)
{
    return strchr(owner_id, '_') == NULL;
}

bool launch_id_is_sound(struct text id)
{
    char terminated[LAUNCH_ID_SIZE] = "";
    if (id.size >= sizeof terminated)
        return false;
    memcpy(terminated, id.at, id.size);
    return record_id_is_sound(terminated, sizeof terminated, "lau_");
}

/* What is hashed: the hash before, then a line a field. No field can hold a line feed, so no two
 * have the same text. Written by hand and not by printf, which would take longer than hashing. */
struct lines {
    size_t size;
    char bytes[LEDGER_HASH_SIZE + LINES_SIZE];
};

static void add_line(struct lines *lines, const char *text)
{
    size_t size = strlen(text);
    CHECK(size < sizeof lines->bytes - lines->size);
    memcpy(lines->bytes + lines->size, text, size);
    lines->size += size;
    lines->bytes[lines->size++] = '\n';
}

static void add_unsigned(struct lines *lines, uint64_t number)
{
    CHECK(sizeof lines->bytes - lines->size > NUMBER_SIZE);
    lines->size += decimal_write(lines->bytes + lines->size, number);
    lines->bytes[lines->size++] = '\n';
}

static void add_signed(struct lines *lines, int64_t number)
{
    CHECK(lines->size < sizeof lines->bytes);
    if (number < 0)
        lines->bytes[lines->size++] = '-';
    add_unsigned(lines, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

/* The first line of a decline keeps it apart from every entry. The lines that all have end with the
 * time. Groups of lines may follow, each with a first line that names it, so that text in the
 * fields of one group cannot stand for another group: a transaction of a customer hashes as it did
 * before there were providers, and a transaction without kind and end of round as it did before
 * there were those. The migrations of PostgreSQL write the same in SQL, and docs/day-two.md
 * describes it. */
static void hash_transaction(const struct ledger_transaction *transaction,
                             const uint8_t previous[LEDGER_HASH_SIZE],
                             uint8_t hash[LEDGER_HASH_SIZE])
{
    bool is_entry = ledger_is_entry(transaction);
    struct lines lines;
    memcpy(lines.bytes, previous, LEDGER_HASH_SIZE);
    lines.size = LEDGER_HASH_SIZE;
    if (!is_entry)
        add_line(&lines, "decline");
    add_line(&lines, transaction->customer_id);
    add_line(&lines, transaction->player_id);
    add_unsigned(&lines, is_entry ? transaction->sequence : transaction->decline);
    add_line(&lines, transaction->transaction_id);
    add_line(&lines, operations[transaction->operation]);
    add_line(&lines, outcomes[transaction->outcome]);
    add_line(&lines, transaction->currency);
    add_unsigned(&lines, transaction->currency_exponent);
    add_signed(&lines, transaction->amount_minor);
    if (is_entry) {
        add_signed(&lines, transaction->movement_minor);
        add_signed(&lines, transaction->balance_minor);
    }
    add_line(&lines, transaction->reference);
    add_line(&lines, transaction->game_id);
    add_line(&lines, transaction->round_id);
    add_signed(&lines, transaction->created_ms);
    if (transaction->provider_id[0] != '\0' || transaction->launch_id[0] != '\0') {
        add_line(&lines, "provider");
        add_line(&lines, transaction->provider_id);
        add_line(&lines, transaction->launch_id);
    }
    if (transaction->kind != LEDGER_WIN || transaction->round_ended) {
        add_line(&lines, "play");
        add_line(&lines, kinds[transaction->kind]);
        add_unsigned(&lines, transaction->round_ended);
    }
    digest_sha256(lines.bytes, lines.size, hash);
}

void ledger_entry_hash(const struct ledger_transaction *entry,
                       const uint8_t previous[LEDGER_HASH_SIZE], uint8_t hash[LEDGER_HASH_SIZE])
{
    CHECK(ledger_is_entry(entry));
    hash_transaction(entry, previous, hash);
}

const char *ledger_entry_flaw(const struct ledger_transaction *entry,
                              const struct ledger_account *account, const uint8_t *previous)
{
    static const uint8_t zeros[LEDGER_HASH_SIZE];
    uint8_t hash[LEDGER_HASH_SIZE];
    if (entry->sequence > 1 && previous == NULL)
        return "the player's entry before it is not there";
    ledger_entry_hash(entry, entry->sequence > 1 ? previous : zeros, hash);
    if (memcmp(hash, entry->hash, sizeof hash) != 0)
        return "it does not fit its chain";
    if (account->sequence < entry->sequence)
        return "the player's account has an earlier last entry";
    if (account->sequence == entry->sequence && (memcmp(hash, account->head, sizeof hash) != 0 ||
                                                 account->balance_minor != entry->balance_minor))
        return "the player's account does not say what it says";
    return NULL;
}

void ledger_decline_hash(const struct ledger_transaction *decline,
                         const uint8_t previous[LEDGER_HASH_SIZE], uint8_t hash[LEDGER_HASH_SIZE])
{
    CHECK(!ledger_is_entry(decline) && decline->decline > 0);
    hash_transaction(decline, previous, hash);
}

void ledger_chain_decline(struct ledger_account *account, struct ledger_transaction *decline)
{
    decline->decline = ++account->declines;
    ledger_decline_hash(decline, account->declines_head, decline->hash);
    memcpy(account->declines_head, decline->hash, sizeof account->declines_head);
}
