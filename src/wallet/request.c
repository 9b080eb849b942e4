/*
 * The members that a wallet request may have are a table. base/strict_json.h cuts the body into
 * slices of itself, so a number is judged by its text and never passes through a double.
 */
#include "wallet/request.h"

#include <stddef.h>
#include <string.h>

#include "base/json_text.h"
#include "records/records.h"

#define BIT(operation) (1U << (unsigned)(operation))
#define EVERY (BIT(WALLET_BALANCE) | BIT(WALLET_DEBIT) | BIT(WALLET_CREDIT) | BIT(WALLET_ROLLBACK))
#define MONEY (BIT(WALLET_DEBIT) | BIT(WALLET_CREDIT))
#define WRITING (MONEY | BIT(WALLET_ROLLBACK))

static bool read_operation(struct text value, void *operation)
{
    char name[16];
    if (!strict_json_string(value, name, sizeof name))
        return false;
    for (unsigned i = 0; i < WALLET_OPERATION_COUNT; i++) {
        if (strcmp(name, wallet_operation_name((enum wallet_operation)i)) == 0) {
            *(enum wallet_operation *)operation = (enum wallet_operation)i;
            return true;
        }
    }
    return false;
}

static bool read_amount(struct text value, void *amount_minor)
{
    uint64_t amount = 0;
    if (json_text_kind(value) != JSON_TEXT_NUMBER ||
        text_to_u64(value, (uint64_t)LEDGER_AMOUNT_MAX, &amount) != STATUS_OK)
        return false;
    *(int64_t *)amount_minor = (int64_t)amount;
    return true;
}

static unsigned operation_of(const void *request)
{
    return BIT(((const struct wallet_request *)request)->operation);
}

/* What the members together must not say. */
static bool is_sound(const struct wallet_request *request)
{
    return (request->operation != WALLET_DEBIT || request->amount_minor != 0) &&
           (request->operation != WALLET_ROLLBACK ||
            strcmp(request->reference, request->transaction_id) != 0);
}

#define FIELD(field) STRICT_JSON_FIELD(wallet_request, field)
static const struct strict_json_field fields[] = {
    {TEXT_INIT("operation"), EVERY, EVERY, FIELD(operation), NULL, read_operation},
    {TEXT_INIT("player_id"), EVERY, EVERY, FIELD(player_id), is_outside_name, NULL},
    {TEXT_INIT("transaction_id"), WRITING, WRITING, FIELD(transaction_id), is_outside_name, NULL},
    {TEXT_INIT("amount_minor"), MONEY, MONEY, FIELD(amount_minor), NULL, read_amount},
    {TEXT_INIT("currency"), MONEY, MONEY, FIELD(currency), currency_is_sound, NULL},
    {TEXT_INIT("reference_transaction_id"), BIT(WALLET_ROLLBACK),
     BIT(WALLET_CREDIT) | BIT(WALLET_ROLLBACK), FIELD(reference), is_outside_name, NULL},
    {TEXT_INIT("game_id"), 0, MONEY, FIELD(game_id), NULL, NULL},
    {TEXT_INIT("round_id"), 0, MONEY, FIELD(round_id), NULL, NULL},
};

enum strict_json wallet_request_decode(struct text content_type, struct text body,
                                       struct wallet_request *request)
{
    struct wallet_request decoded = {0};
    enum strict_json result = strict_json_decode(
        content_type, body, fields, sizeof fields / sizeof fields[0], operation_of, &decoded);
    if (result == STRICT_JSON_OK && !is_sound(&decoded))
        result = STRICT_JSON_INVALID;
    if (result == STRICT_JSON_OK)
        *request = decoded;
    return result;
}
