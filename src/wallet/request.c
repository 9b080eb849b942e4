/*
 * The members that a wallet request may have are a table. base/strict_json.h cuts the body into
 * slices of itself, so a number is judged by its text and never passes through a double.
 */
#include "wallet/request.h"

#include <stddef.h>
#include <string.h>

#include "base/json_text.h"
#include "base/strict_json.h"
#include "records/records.h"

#define BIT(operation) (1U << (unsigned)(operation))
#define EVERY (BIT(WALLET_BALANCE) | BIT(WALLET_DEBIT) | BIT(WALLET_CREDIT) | BIT(WALLET_ROLLBACK))
#define MONEY (BIT(WALLET_DEBIT) | BIT(WALLET_CREDIT))

enum kind { KIND_OPERATION, KIND_NAME, KIND_PLAIN, KIND_CURRENCY, KIND_AMOUNT };

struct member {
    struct text name;
    enum kind kind;
    uint8_t required; /* operations that must have it */
    uint8_t allowed;  /* operations that may have it */
    size_t offset;    /* in struct wallet_request */
    size_t size;
};

#define FIELD(field) \
    offsetof(struct wallet_request, field), sizeof(((struct wallet_request *)NULL)->field)
static const struct member members[] = {
    {TEXT_INIT("operation"), KIND_OPERATION, EVERY, EVERY, FIELD(operation)},
    {TEXT_INIT("player_id"), KIND_NAME, EVERY, EVERY, FIELD(player_id)},
    {TEXT_INIT("transaction_id"), KIND_NAME, MONEY | BIT(WALLET_ROLLBACK),
     MONEY | BIT(WALLET_ROLLBACK), FIELD(transaction_id)},
    {TEXT_INIT("amount_minor"), KIND_AMOUNT, MONEY, MONEY, FIELD(amount_minor)},
    {TEXT_INIT("currency"), KIND_CURRENCY, MONEY, MONEY, FIELD(currency)},
    {TEXT_INIT("reference_transaction_id"), KIND_NAME, BIT(WALLET_ROLLBACK),
     BIT(WALLET_CREDIT) | BIT(WALLET_ROLLBACK), FIELD(reference)},
    {TEXT_INIT("game_id"), KIND_PLAIN, 0, MONEY, FIELD(game_id)},
    {TEXT_INIT("round_id"), KIND_PLAIN, 0, MONEY, FIELD(round_id)},
};
#define MEMBER_COUNT (sizeof members / sizeof members[0])

static bool read_operation(struct text value, enum wallet_operation *operation)
{
    char name[16];
    if (!strict_json_string(value, name, sizeof name))
        return false;
    for (unsigned i = 0; i < WALLET_OPERATION_COUNT; i++) {
        if (strcmp(name, wallet_operation_name((enum wallet_operation)i)) == 0) {
            *operation = (enum wallet_operation)i;
            return true;
        }
    }
    return false;
}

static bool read_amount(struct text value, int64_t *amount_minor)
{
    uint64_t amount = 0;
    if (json_text_kind(value) != JSON_TEXT_NUMBER ||
        text_to_u64(value, (uint64_t)LEDGER_AMOUNT_MAX, &amount) != STATUS_OK)
        return false;
    *amount_minor = (int64_t)amount;
    return true;
}

static bool read_currency(struct text value, char *out)
{
    if (!strict_json_string(value, out, CURRENCY_SIZE))
        return false;
    for (size_t i = 0; i < CURRENCY_SIZE - 1; i++)
        if (out[i] < 'A' || out[i] > 'Z')
            return false;
    return true;
}

static bool read_member(const struct member *member, struct text value,
                        struct wallet_request *request)
{
    void *field = (char *)request + member->offset;
    switch (member->kind) {
    case KIND_OPERATION:
        return read_operation(value, field);
    case KIND_NAME:
        return strict_json_string(value, field, member->size) && is_outside_name(text_of(field));
    case KIND_PLAIN:
        return strict_json_string(value, field, member->size);
    case KIND_CURRENCY:
        return read_currency(value, field);
    case KIND_AMOUNT:
        return read_amount(value, field);
    }
    return false;
}

static bool fields_suit_operation(const struct text *values, const struct wallet_request *request)
{
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        bool present = values[i].at != NULL;
        unsigned operation = BIT(request->operation);
        if (present ? (members[i].allowed & operation) == 0
                    : (members[i].required & operation) != 0)
            return false;
    }
    if (request->operation == WALLET_DEBIT && request->amount_minor == 0)
        return false;
    return request->operation != WALLET_ROLLBACK ||
           strcmp(request->reference, request->transaction_id) != 0;
}

enum wallet_decoding wallet_request_decode(struct text content_type, struct text body,
                                           struct wallet_request *request)
{
    struct wallet_request decoded = {0};
    struct text names[MEMBER_COUNT];
    struct text values[MEMBER_COUNT];
    if (!content_type_is_json(content_type))
        return WALLET_INVALID;
    for (size_t i = 0; i < MEMBER_COUNT; i++)
        names[i] = members[i].name;
    switch (strict_json_object(body, names, MEMBER_COUNT, values)) {
    case STRICT_JSON_OK:
        break;
    case STRICT_JSON_INVALID:
        return WALLET_INVALID;
    case STRICT_JSON_UNKNOWN_FIELD:
        return WALLET_UNKNOWN_FIELD;
    }
    for (size_t i = 0; i < MEMBER_COUNT; i++)
        if (values[i].at != NULL && !read_member(&members[i], values[i], &decoded))
            return WALLET_INVALID;
    if (!fields_suit_operation(values, &decoded))
        return WALLET_INVALID;
    *request = decoded;
    return WALLET_DECODED;
}
