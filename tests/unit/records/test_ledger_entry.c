/* records/ledger_entry: what the chain's hashes are of. They are in every store, for ever. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/sha.h>

#include "records/ledger_entry.h"

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

static void an_entry_is_hashed_a_line_a_field(void **state)
{
    (void)state;
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

static void a_decline_is_hashed_a_line_a_field(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_hashed_a_line_a_field),
        cmocka_unit_test(a_decline_is_hashed_a_line_a_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
