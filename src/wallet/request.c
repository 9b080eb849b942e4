/*
 * The members that a wallet request may have are a table, one for customers and one for
 * providers. base/strict_json.h cuts the body into slices of itself, so a number is judged by
 * its text and never passes through a double.
 */
#include "wallet/request.h"

#include "base/json_text.h"
#include "records/records.h"

#define BIT(operation) (1U << (unsigned)(operation))
#define EVERY (BIT(LEDGER_BALANCE) | BIT(LEDGER_DEBIT) | BIT(LEDGER_CREDIT) | BIT(LEDGER_ROLLBACK))
#define MONEY (BIT(LEDGER_DEBIT) | BIT(LEDGER_CREDIT))
#define WRITING (MONEY | BIT(LEDGER_ROLLBACK))
#define AMOUNT_TOO_LARGE (LEDGER_AMOUNT_MAX + 1)

static bool read_operation(struct text value, void *operation)
{
    return strict_json_name(value, &ledger_operations, operation);
}

/* Tells whole numbers out of bounds from other texts: a number below zero becomes -1, one that is
 * too large AMOUNT_TOO_LARGE. */
static bool read_amount(struct text value, void *amount_minor)
{
    uint64_t amount = 0;
    if (json_text_kind(value) != JSON_TEXT_NUMBER)
        return false;
    bool negative = value.at[0] == '-';
    for (size_t i = negative ? 1 : 0; i < value.size; i++)
        if (value.at[i] < '0' || value.at[i] > '9')
            return false;
    if (negative)
        *(int64_t *)amount_minor = -1;
    else if (text_to_u64(value, (uint64_t)LEDGER_AMOUNT_MAX, &amount) == STATUS_OK)
        *(int64_t *)amount_minor = (int64_t)amount;
    else
        *(int64_t *)amount_minor = AMOUNT_TOO_LARGE;
    return true;
}

static bool read_kind(struct text value, void *kind)
{
    return strict_json_name(value, &ledger_kinds, kind);
}

static unsigned operation_of(const void *request)
{
    return BIT(((const struct wallet_request *)request)->operation);
}

/* The first fault of the members; NULL: they are sound. */
static const char *flaw_of(const struct wallet_request *request, enum wallet_client client)
{
    if (request->amount_minor > LEDGER_AMOUNT_MAX)
        return "The field amount_minor must be an integer of at most 1000000000000.";
    if (request->amount_minor < 0)
        return "The field amount_minor must be an integer of at least 0.";
    if (client == WALLET_CUSTOMER && request->operation == LEDGER_DEBIT &&
        request->amount_minor == 0)
        return "The field amount_minor must be an integer of at least 1 in a DEBIT.";
    if (request->operation == LEDGER_ROLLBACK &&
        strcmp(request->reference, request->transaction_id) == 0)
        return "The field reference_transaction_id must name another transaction than "
               "transaction_id.";
    return NULL;
}

#define FIELD(field) STRICT_JSON_FIELD(wallet_request, field)
#define IS_NAME "must be a string of 1 to 64 characters of A-Z, a-z, 0-9, '.', '_', ':' and '-'"
#define IS_WORD "must be a string of 1 to 64 bytes without control characters"
#define IS_LAUNCH "must be the launch_id or jti of a launch"
/* Both have these rows. */
#define OPERATION                                                                 \
    TEXT_INIT("operation"), EVERY, EVERY, FIELD(operation), NULL, read_operation, \
        "must be BALANCE, DEBIT, CREDIT or ROLLBACK", false
#define TRANSACTION_ID                                                                           \
    TEXT_INIT("transaction_id"), WRITING, WRITING, FIELD(transaction_id), is_outside_name, NULL, \
        IS_NAME, false
#define AMOUNT                                                                       \
    TEXT_INIT("amount_minor"), MONEY, MONEY, FIELD(amount_minor), NULL, read_amount, \
        "must be an integer", false
#define CURRENCY                                                                   \
    TEXT_INIT("currency"), MONEY, MONEY, FIELD(currency), currency_is_sound, NULL, \
        "must be a string of three capital letters", false
#define REFERENCE                                                                           \
    TEXT_INIT("reference_transaction_id"), BIT(LEDGER_ROLLBACK),                            \
        BIT(LEDGER_CREDIT) | BIT(LEDGER_ROLLBACK), FIELD(reference), is_outside_name, NULL, \
        IS_NAME, true

static const struct strict_json_field fields[] = {
    {OPERATION},
    {TEXT_INIT("player_id"), EVERY, EVERY, FIELD(player_id), is_outside_name, NULL, IS_NAME, false},
    {TRANSACTION_ID},
    {AMOUNT},
    {CURRENCY},
    {REFERENCE},
    {TEXT_INIT("game_id"), 0, MONEY, FIELD(game_id), NULL, NULL, IS_WORD, false},
    {TEXT_INIT("round_id"), 0, MONEY, FIELD(round_id), NULL, NULL, IS_WORD, false},
};

static const struct strict_json_field provider_fields[] = {
    {OPERATION},
    {TEXT_INIT("player_id"), EVERY, EVERY, FIELD(subject), is_outside_name, NULL, IS_NAME, false},
    {TRANSACTION_ID},
    {AMOUNT},
    {CURRENCY},
    {REFERENCE},
    {TEXT_INIT("launch_id"), BIT(LEDGER_DEBIT), MONEY, FIELD(launch_id), launch_id_is_sound, NULL,
     IS_LAUNCH, false},
    {TEXT_INIT("game_id"), BIT(LEDGER_DEBIT), MONEY, FIELD(game_id), NULL, NULL, IS_WORD, false},
    {TEXT_INIT("round_id"), MONEY, MONEY, FIELD(round_id), NULL, NULL, IS_WORD, false},
    {TEXT_INIT("kind"), 0, BIT(LEDGER_CREDIT), FIELD(kind), NULL, read_kind,
     "must be win, promo, jackpot or adjustment", false},
    {TEXT_INIT("round_ended"), 0, WRITING, FIELD(round_ended), NULL, strict_json_flag,
     "must be true or false", false},
};

static const struct strict_json_form forms[] = {
    [WALLET_CUSTOMER] = {fields, sizeof fields / sizeof fields[0], operation_of},
    [WALLET_PROVIDER] = {provider_fields, sizeof provider_fields / sizeof provider_fields[0],
                         operation_of},
};

enum strict_json wallet_request_decode(struct text content_type, struct text body,
                                       enum wallet_client client, struct wallet_request *request,
                                       struct strict_json_fault *fault)
{
    struct wallet_request decoded = {0};
    enum strict_json result =
        strict_json_decode(content_type, body, &forms[client], &decoded, fault);
    const char *flaw = result == STRICT_JSON_OK ? flaw_of(&decoded, client) : NULL;
    if (flaw != NULL) {
        (void)snprintf(fault->message, sizeof fault->message, "%s", flaw);
        return STRICT_JSON_INVALID;
    }
    if (result == STRICT_JSON_OK)
        *request = decoded;
    return result;
}
