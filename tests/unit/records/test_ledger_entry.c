/* records/ledger_entry: what the chain's hashes are of. They are in every store, for ever. */
#include <inttypes.h>

#include <openssl/sha.h>

#include "records/ledger_entry.h"
#include "tests.h"

static const uint8_t before[LEDGER_HASH_SIZE] = "the hash of the entry before, 32";

/* A DEBIT whose fields are as long as they can be. */
static struct ledger_transaction longest(enum ledger_outcome outcome)
{
    struct ledger_transaction made = {.operation = LEDGER_DEBIT,
                                      .outcome = outcome,
                                      .currency = "KWD",
                                      .currency_exponent = 3,
                                      .amount_minor = LEDGER_AMOUNT_MAX,
                                      .created_ms = INT64_MAX,
                                      .sequence = UINT64_MAX,
                                      .movement_minor = INT64_MIN,
                                      .balance_minor = LEDGER_BALANCE_MAX,
                                      .decline = UINT64_MAX};
    memset(made.customer_id, 'c', sizeof made.customer_id - 1);
    memset(made.player_id, 'p', sizeof made.player_id - 1);
    memset(made.transaction_id, 't', sizeof made.transaction_id - 1);
    memset(made.reference, 'r', sizeof made.reference - 1);
    memset(made.game_id, 'g', sizeof made.game_id - 1);
    memset(made.round_id, 'o', sizeof made.round_id - 1);
    return made;
}

static void assert_is_hash_of(const uint8_t hash[LEDGER_HASH_SIZE], const char *lines)
{
    unsigned char bytes[2048];
    uint8_t expected[SHA256_DIGEST_LENGTH];
    size_t size = strlen(lines);
    memcpy(bytes, before, sizeof before);
    memcpy(bytes + sizeof before, lines, size);
    assert_non_null(SHA256(bytes, sizeof before + size, expected));
    assert_memory_equal(hash, expected, sizeof expected);
}

TEST(an_entry_is_hashed_a_line_a_field)
{
    uint8_t hash[LEDGER_HASH_SIZE];
    const struct ledger_transaction small = {.customer_id = "cus_1",
                                             .player_id = "ply_2",
                                             .transaction_id = "bet",
                                             .currency = "JPY",
                                             .operation = LEDGER_DEBIT,
                                             .outcome = LEDGER_APPLIED,
                                             .amount_minor = 250,
                                             .created_ms = -1,
                                             .sequence = 7,
                                             .movement_minor = -250,
                                             .balance_minor = 0};
    ledger_entry_hash(&small, before, hash);
    assert_is_hash_of(hash,
                      "cus_1\nply_2\n7\nbet\nDEBIT\napplied\nJPY\n0\n250\n-250\n0\n\n\n\n-1\n");

    const struct ledger_transaction large = longest(LEDGER_VOIDED);
    char lines[1024];
    int size = snprintf(lines, sizeof lines,
                        "%s\n%s\n%" PRIu64 "\n%s\nDEBIT\nvoided\nKWD\n3\n%" PRId64 "\n%" PRId64
                        "\n%" PRId64 "\n%s\n%s\n%s\n%" PRId64 "\n",
                        large.customer_id, large.player_id, large.sequence, large.transaction_id,
                        large.amount_minor, large.movement_minor, large.balance_minor,
                        large.reference, large.game_id, large.round_id, large.created_ms);
    assert_in_range(size, 1, sizeof lines - 1);
    ledger_entry_hash(&large, before, hash);
    assert_is_hash_of(hash, lines);
}

TEST(what_a_provider_moved_is_hashed_with_who_it_was)
{
    uint8_t hash[LEDGER_HASH_SIZE];
    struct ledger_transaction entry = {.customer_id = "cus_1",
                                       .player_id = "ply_2",
                                       .transaction_id = "bet",
                                       .currency = "JPY",
                                       .provider_id = "acme",
                                       .launch_id = "lau_3",
                                       .operation = LEDGER_DEBIT,
                                       .outcome = LEDGER_APPLIED,
                                       .amount_minor = 250,
                                       .sequence = 7,
                                       .movement_minor = -250};
    assert_string_equal(ledger_owner(&entry), "acme");
    assert_true(ledger_owner_is_provider("acme") && !ledger_owner_is_provider("cus_1"));
    ledger_entry_hash(&entry, before, hash);
    assert_is_hash_of(hash, "cus_1\nply_2\n7\nbet\nDEBIT\napplied\nJPY\n0\n250\n-250\n0\n\n\n\n0\n"
                            "provider\nacme\nlau_3\n");
    entry.launch_id[0] = '\0'; /* as of a CREDIT that names none */
    ledger_entry_hash(&entry, before, hash);
    assert_is_hash_of(hash, "cus_1\nply_2\n7\nbet\nDEBIT\napplied\nJPY\n0\n250\n-250\n0\n\n\n\n0\n"
                            "provider\nacme\n\n");
    entry.outcome = LEDGER_INSUFFICIENT_FUNDS;
    entry.decline = 1;
    ledger_decline_hash(&entry, before, hash);
    assert_is_hash_of(
        hash, "decline\ncus_1\nply_2\n1\nbet\nDEBIT\ninsufficient_funds\nJPY\n0\n250\n\n\n\n0\n"
              "provider\nacme\n\n");
}

TEST(a_kind_and_the_end_of_a_round_are_hashed_where_they_are_said)
{
    static const char all_have[] =
        "cus_1\nply_2\n7\nwon\nCREDIT\napplied\nJPY\n0\n250\n250\n0\n\n\n\n0\n";
    uint8_t hash[LEDGER_HASH_SIZE];
    char lines[256];
    struct ledger_transaction entry = {.customer_id = "cus_1",
                                       .player_id = "ply_2",
                                       .transaction_id = "won",
                                       .currency = "JPY",
                                       .provider_id = "acme",
                                       .operation = LEDGER_CREDIT,
                                       .outcome = LEDGER_APPLIED,
                                       .kind = LEDGER_JACKPOT,
                                       .amount_minor = 250,
                                       .sequence = 7,
                                       .movement_minor = 250};
    ledger_entry_hash(&entry, before, hash);
    (void)snprintf(lines, sizeof lines, "%sprovider\nacme\n\nplay\njackpot\n0\n", all_have);
    assert_is_hash_of(hash, lines);
    entry.kind = LEDGER_WIN;
    entry.round_ended = true;
    ledger_entry_hash(&entry, before, hash);
    (void)snprintf(lines, sizeof lines, "%sprovider\nacme\n\nplay\nwin\n1\n", all_have);
    assert_is_hash_of(hash, lines);

    /* A customer's row that was given both by hand: its lines are no provider's. */
    struct ledger_transaction other = entry;
    uint8_t hash_of_other[LEDGER_HASH_SIZE];
    memcpy(entry.provider_id, "win", 4);
    memcpy(entry.launch_id, "1", 2);
    entry.round_ended = false;
    other.provider_id[0] = '\0';
    ledger_entry_hash(&entry, before, hash);
    ledger_entry_hash(&other, before, hash_of_other);
    assert_memory_not_equal(hash, hash_of_other, sizeof hash);
}

TEST(a_decline_is_hashed_a_line_a_field)
{
    uint8_t hash[LEDGER_HASH_SIZE];
    const struct ledger_transaction large = longest(LEDGER_INSUFFICIENT_FUNDS);
    char lines[1024];
    int size = snprintf(
        lines, sizeof lines,
        "decline\n%s\n%s\n%" PRIu64 "\n%s\nDEBIT\ninsufficient_funds\nKWD\n3\n%" PRId64
        "\n%s\n%s\n%s\n%" PRId64 "\n",
        large.customer_id, large.player_id, large.decline, large.transaction_id, large.amount_minor,
        large.reference, large.game_id, large.round_id, large.created_ms);
    assert_in_range(size, 1, sizeof lines - 1);
    ledger_decline_hash(&large, before, hash);
    assert_is_hash_of(hash, lines);
}

/* ---- the newest entries ---------------------------------------------------------------------- */

static struct ledger_account account_of(const struct ledger_transaction *entry)
{
    struct ledger_account account = {.sequence = entry->sequence,
                                     .balance_minor = entry->balance_minor};
    memcpy(account.head, entry->hash, sizeof account.head);
    return account;
}

TEST(an_entry_is_flawed_where_it_does_not_fit_what_is_around_it)
{
    struct ledger_transaction entry = {.player_id = "ply_2",
                                       .transaction_id = "bet",
                                       .operation = LEDGER_DEBIT,
                                       .sequence = 7,
                                       .movement_minor = -250,
                                       .balance_minor = 50};
    ledger_entry_hash(&entry, before, entry.hash);
    struct ledger_account account = account_of(&entry);
    assert_null(ledger_entry_flaw(&entry, &account, before));
    assert_non_null(strstr(ledger_entry_flaw(&entry, &account, NULL), "before it is not there"));

    struct ledger_transaction altered = entry;
    altered.balance_minor++;
    assert_non_null(strstr(ledger_entry_flaw(&altered, &account, before), "its chain"));
    const uint8_t zeros[LEDGER_HASH_SIZE] = {0};
    assert_non_null(strstr(ledger_entry_flaw(&entry, &account, zeros), "its chain"));

    account.balance_minor++;
    assert_non_null(strstr(ledger_entry_flaw(&entry, &account, before), "account does not say"));
    account = account_of(&entry);
    account.head[31] ^= 1;
    assert_non_null(strstr(ledger_entry_flaw(&entry, &account, before), "account does not say"));
    account.sequence = 8; /* of a later entry, which says what the account has to be */
    assert_null(ledger_entry_flaw(&entry, &account, before));
    account.sequence = 6;
    assert_non_null(strstr(ledger_entry_flaw(&entry, &account, before), "earlier last entry"));
}

TEST(a_first_entry_follows_zeros)
{
    const uint8_t zeros[LEDGER_HASH_SIZE] = {0};
    struct ledger_transaction entry = {.transaction_id = "funds", .sequence = 1};
    ledger_entry_hash(&entry, zeros, entry.hash);
    struct ledger_account account = account_of(&entry);
    assert_null(ledger_entry_flaw(&entry, &account, NULL));
}
