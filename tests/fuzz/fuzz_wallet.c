/*
 * Fuzzes what reads wallet requests, of customers and of providers, and decides them.
 *
 * The first line of the input is the content type, the rest the body. Holds for every input: what
 * is decoded is one JSON object by yyjson's judgement, without two members of a name, and its
 * amount is what yyjson reads; what has an unknown member has none twice; every field is within its
 * bounds; writing the request down again is decoded to the same. What is decided on it never leaves
 * a balance below zero or above its limit, and asking again is a replay.
 */
#include <string.h>

#include <yyjson.h>

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

static void check_with_yyjson(struct text body, const struct wallet_request *request)
{
    yyjson_doc *doc = yyjson_read(body.at, body.size, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    size_t at;
    size_t count;
    yyjson_val *name;
    yyjson_val *value;
    CHECK(doc != NULL && yyjson_is_obj(root) && yyjson_obj_size(root) <= 9);
    yyjson_obj_foreach(root, at, count, name, value)
    {
        CHECK(yyjson_obj_getn(root, yyjson_get_str(name), yyjson_get_len(name)) == value);
        if (yyjson_equals_str(name, "amount_minor")) {
            CHECK(yyjson_is_uint(value));
            CHECK(yyjson_get_uint(value) == (uint64_t)request->amount_minor);
        } else if (yyjson_is_null(value)) { /* as if it was not there */
            CHECK(yyjson_equals_str(name, "reference_transaction_id"));
            CHECK(request->reference[0] == '\0');
        } else {
            CHECK(yyjson_is_str(value) && yyjson_get_len(value) >= 1 &&
                  yyjson_get_len(value) <= 64);
        }
    }
    yyjson_doc_free(doc);
}

/* Reported as unknown: so no name is there twice, and one is none of the wallet's. */
static void check_unknown(struct text body, enum wallet_client client)
{
    static const char *const known[] = {
        "operation",    "player_id", "transaction_id", "reference_transaction_id",
        "amount_minor", "currency",  "game_id",        "round_id",
        "launch_id"};
    size_t known_count = sizeof known / sizeof known[0] - (client == WALLET_PROVIDER ? 0 : 1);
    yyjson_doc *doc = yyjson_read(body.at, body.size, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    size_t at;
    size_t count;
    yyjson_val *name;
    yyjson_val *value;
    size_t found = 0;
    if (doc ==
        NULL) /* a lone surrogate, or an exponent out of its range: strict JSON all the same */
        return;
    yyjson_obj_foreach(root, at, count, name, value)
    {
        CHECK(yyjson_obj_getn(root, yyjson_get_str(name), yyjson_get_len(name)) == value);
    }
    for (size_t i = 0; i < known_count; i++)
        found += yyjson_obj_get(root, known[i]) != NULL;
    CHECK(found < yyjson_obj_size(root));
    yyjson_doc_free(doc);
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
    check_with_yyjson(body, &request);
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
