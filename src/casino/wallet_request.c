/*
 * The members that a wallet request may have are a table; the body is checked once by base/json_text.h
 * and cut into slices of itself, so a number is judged by its text and never passes through a double.
 */
#include "casino/wallet_request.h"

#include <stddef.h>
#include <string.h>

#include "base/json_text.h"
#include "stores/platform_record.h"

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

bool content_type_is_json(struct text content_type)
{
    struct text rest = content_type;
    struct text type = text_trim(text_cut(&rest, ';'));
    if (!text_equals_ignore_case(type, TEXT("application/json")))
        return false;
    struct text parameter = text_trim(rest);
    return parameter.size == 0 || text_equals_ignore_case(parameter, TEXT("charset=utf-8")) ||
           text_equals_ignore_case(parameter, TEXT("charset=\"utf-8\""));
}

/* Unescapes a string of at most `room` - 1 bytes; false when it is longer. An escaped byte takes at
 * most six, so what is longer as written cannot fit. */
static bool read_string_value(struct text value, char *out, size_t room)
{
    struct buffer plain = {0};
    if (json_text_kind(value) != JSON_TEXT_STRING || value.size > 6 * room + 2)
        return false;
    json_text_unescape(value, &plain);
    /* A lone surrogate stands for nothing, so it equals nothing, not even what it was unescaped to. */
    bool fits = plain.size >= 1 && plain.size < room && text_is_plain(buffer_text(&plain)) &&
                json_text_string_equals(value, buffer_text(&plain));
    if (fits) {
        memcpy(out, plain.data, plain.size);
        out[plain.size] = '\0';
    }
    buffer_free(&plain);
    return fits;
}

static bool read_operation(struct text value, enum wallet_operation *operation)
{
    char name[16];
    if (!read_string_value(value, name, sizeof name))
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
    if (!read_string_value(value, out, CURRENCY_SIZE))
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
        return read_string_value(value, field, member->size) && is_outside_name(text_of(field));
    case KIND_PLAIN:
        return read_string_value(value, field, member->size);
    case KIND_CURRENCY:
        return read_currency(value, field);
    case KIND_AMOUNT:
        return read_amount(value, field);
    }
    return false;
}

/* Two members of one name, whether the wallet knows the name or not. Bodies are at most 16 KiB, but
 * that is thousands of members, so a body of more than any honest one has is refused by its count. */
#define MEMBERS_MAX 64

static bool find_members(struct text body, struct text *values, bool *unknown)
{
    struct text seen[MEMBERS_MAX];
    struct buffer names = {0};
    size_t offsets[MEMBERS_MAX + 1] = {0};
    size_t count = 0;
    bool sound = true;
    struct text name;
    struct text value;
    struct json_text_cursor cursor = json_text_open(body);
    while (sound && json_text_next_member(&cursor, &name, &value)) {
        if (count == MEMBERS_MAX) {
            sound = false;
            break;
        }
        json_text_unescape(name, &names);
        offsets[++count] = names.size;
        bool known = false;
        for (size_t i = 0; i < MEMBER_COUNT; i++) {
            if (json_text_string_equals(name, members[i].name)) {
                values[i] = value;
                known = true;
            }
        }
        *unknown |= !known;
    }
    for (size_t i = 0; sound && i < count; i++) {
        seen[i] = (struct text){names.data + offsets[i], offsets[i + 1] - offsets[i]};
        for (size_t j = 0; j < i; j++)
            sound &= !text_equals(seen[i], seen[j]);
    }
    buffer_free(&names);
    return sound;
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
    struct text values[MEMBER_COUNT] = {{0}};
    bool unknown = false;
    if (!content_type_is_json(content_type) || json_text_check(body, NULL, NULL) != STATUS_OK)
        return WALLET_INVALID;
    struct text document = json_text_trim(body);
    if (json_text_kind(document) != JSON_TEXT_OBJECT)
        return WALLET_INVALID;
    if (!find_members(document, values, &unknown))
        return WALLET_INVALID;
    if (unknown)
        return WALLET_UNKNOWN_FIELD;
    for (size_t i = 0; i < MEMBER_COUNT; i++)
        if (values[i].at != NULL && !read_member(&members[i], values[i], &decoded))
            return WALLET_INVALID;
    if (!fields_suit_operation(values, &decoded))
        return WALLET_INVALID;
    *request = decoded;
    return WALLET_DECODED;
}
