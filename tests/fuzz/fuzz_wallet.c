/*
 * Fuzzes what reads wallet requests, of customers and of providers, and decides them.
 *
 * The first line of the input is the content type, the rest the body. Holds for every input: what
 * is decoded is one JSON object, without two members of a name, and its
 * amount is the text's; what has an unknown member has none twice; every field is within its
 * bounds; writing the request down again is decoded to the same. What is decided on it never leaves
 * a balance below zero or above its limit, and asking again is a replay.
 */
#include <string.h>

#include "base/json_text.h"
#include "wallet/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void append_member(struct buffer *out, const char *name, const char *value)
{
    if (value[0] == '\0')
        return;
    buffer_append_format(out, ",\"%s\":", name);
    buffer_append_json_string(out, text_of(value));
}

static void check_again(enum wallet_client client, const struct wallet_request *request)
{
    bool provider = client == WALLET_PROVIDER;
    struct wallet_request again;
    struct strict_json_fault fault;
    struct buffer out = {0};
    buffer_append_format(&out, "{\"operation\":\"%s\"", ledger_operation_name(request->operation));
    append_member(&out, "player_id", provider ? request->subject : request->player_id);
    append_member(&out, "launch_id", request->launch_id);
    append_member(&out, "transaction_id", request->transaction_id);
    append_member(&out, "reference_transaction_id", request->reference);
    append_member(&out, "game_id", request->game_id);
    append_member(&out, "round_id", request->round_id);
    append_member(&out, "currency", request->currency);
    if (request->operation == LEDGER_DEBIT || request->operation == LEDGER_CREDIT)
        buffer_append_format(&out, ",\"amount_minor\":%lld", (long long)request->amount_minor);
    buffer_append_char(&out, '}');
    CHECK(wallet_request_decode(TEXT("application/json"), buffer_text(&out), client, &again,
                                &fault) == STRICT_JSON_OK);
    CHECK(memcmp(&again, request, sizeof again) == 0);
    buffer_free(&out);
}

/* How many members of that name an object has, however the name is escaped; the last one. */
static size_t count_member(struct text object, const char *name, struct text *last)
{
    struct json_text_cursor cursor = json_text_open(object);
    struct text found, value;
    size_t count = 0;
    while (json_text_next_member(&cursor, &found, &value))
        if (json_text_string_equals(found, text_of(name))) {
            *last = value;
            count++;
        }
    return count;
}

static const char *const known[] = {
    "operation",    "player_id", "transaction_id", "reference_transaction_id",
    "amount_minor", "currency",  "game_id",        "round_id",
    "launch_id"};
#define KNOWN_COUNT (sizeof known / sizeof known[0])

/* How many of its members are known; none of those is there twice. */
static size_t check_known(struct text root, size_t count)
{
    struct text value;
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        size_t times = count_member(root, known[i], &value);
        CHECK(times <= 1);
        found += times;
    }
    return found;
}

static size_t count_members(struct text object)
{
    struct json_text_cursor cursor = json_text_open(object);
    struct text name, value;
    size_t count = 0;
    while (json_text_next_member(&cursor, &name, &value))
        count++;
    return count;
}

static void check_members(struct text body, const struct wallet_request *request)
{
    struct text root = json_text_trim(body), amount = {NULL, 0};
    CHECK(json_text_check(body, NULL, NULL) == STATUS_OK);
    CHECK(check_known(root, KNOWN_COUNT) == count_members(root));
    if (count_member(root, "amount_minor", &amount) == 1) {
        int64_t minor;
        CHECK(json_text_integer(amount, &minor) && minor == request->amount_minor);
    }
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        struct text value = json_text_member(root, text_of(known[i]));
        if (value.at == NULL || value.at == amount.at)
            continue;
        if (json_text_kind(value) == JSON_TEXT_NULL) { /* as if it was not there */
            CHECK(strcmp(known[i], "reference_transaction_id") == 0);
            CHECK(request->reference[0] == '\0');
        } else {
            struct buffer plain = {0};
            CHECK(json_text_kind(value) == JSON_TEXT_STRING && json_text_unescape(value, &plain));
            CHECK(plain.size >= 1 && plain.size <= 64);
            buffer_free(&plain);
        }
    }
}

/* Reported as unknown: so no known name is there twice, and one is none of the wallet's. */
static void check_unknown(struct text body, enum wallet_client client)
{
    struct text root = json_text_trim(body);
    CHECK(json_text_check(body, NULL, NULL) == STATUS_OK);
    CHECK(check_known(root, KNOWN_COUNT - (client == WALLET_PROVIDER ? 0 : 1)) <
          count_members(root));
}

static void check_decision(const struct wallet_request *request, int64_t balance_minor)
{
    struct ledger_account account = {.balance_minor = balance_minor};
    struct ledger_id id = {0};
    struct ledger_id reference = {0};
    struct wallet_state state = {.account = &account, .id = &id};
    memcpy(account.player.currency, request->currency, sizeof account.player.currency);
    state.reference = request->reference[0] != '\0' ? &reference : NULL;
    struct wallet_decision decision = wallet_decide(&state, request);
    CHECK(decision.verdict == WALLET_KEPT);
    state.game = WALLET_GAME_INVISIBLE;
    CHECK((wallet_decide(&state, request).verdict == WALLET_GAME_NOT_FOUND) ==
          (request->operation == LEDGER_DEBIT));
    int64_t after = balance_minor + decision.movement_minor;
    CHECK(after >= 0 && after <= LEDGER_BALANCE_MAX);
    CHECK(decision.outcome == LEDGER_APPLIED || decision.movement_minor == 0);
    id.known = true;
    id.transaction.operation = (enum ledger_operation)(request->operation - LEDGER_DEBIT);
    id.transaction.outcome = decision.outcome;
    id.transaction.amount_minor = decision.amount_minor;
    memcpy(id.transaction.player_id, request->player_id, sizeof id.transaction.player_id - 1);
    memcpy(id.transaction.reference, request->reference, sizeof request->reference);
    memcpy(id.transaction.game_id, request->game_id, sizeof request->game_id);
    memcpy(id.transaction.round_id, request->round_id, sizeof request->round_id);
    memcpy(id.transaction.currency, request->currency, sizeof request->currency);
    memcpy(id.transaction.launch_id, request->launch_id, sizeof request->launch_id);
    if (strlen(request->player_id) < sizeof id.transaction.player_id)
        CHECK(wallet_decide(&state, request).verdict == WALLET_REPLAYED);
}

/* Who is not the customer has a launch that entitles it to a stake, or is refused. */
static void check_session(const struct wallet_request *request)
{
    struct ledger_account account = {.balance_minor = 1000};
    struct ledger_id id = {0};
    struct ledger_id reference = {0};
    struct wallet_state state = {.account = &account, .id = &id, .session = WALLET_SESSION_EXPIRED};
    memcpy(account.player.currency, request->currency, sizeof account.player.currency);
    state.reference = request->reference[0] != '\0' ? &reference : NULL;
    CHECK((wallet_decide(&state, request).verdict == WALLET_SESSION_IS_OVER) ==
          (request->operation == LEDGER_DEBIT));
}

static void check(struct text type, struct text body, enum wallet_client client)
{
    struct wallet_request request;
    struct strict_json_fault fault;
    enum strict_json decoding = wallet_request_decode(type, body, client, &request, &fault);
    if (decoding == STRICT_JSON_UNKNOWN_FIELD)
        check_unknown(body, client);
    if (decoding != STRICT_JSON_OK) {
        size_t length = strnlen(fault.message, sizeof fault.message);
        CHECK(length > 1 && length < sizeof fault.message && fault.message[length - 1] == '.');
        return;
    }
    check_members(body, &request);
    check_again(client, &request);
    if (request.operation != LEDGER_BALANCE) {
        check_decision(&request, 0);
        check_decision(&request, 1000);
        check_decision(&request, LEDGER_BALANCE_MAX);
        check_session(&request);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct text body = {(const char *)bytes, size};
    struct text type = text_cut(&body, '\n');
    if (body.at == NULL)
        body = TEXT("");
    check(type, body, WALLET_CUSTOMER);
    check(type, body, WALLET_PROVIDER);
    return 0;
}
