/*
 * The question of a request: its query by the parameters of its act, and the cursor. A cursor is
 * base64url of the sealed position. The seal's key is of the customer, and its context the route
 * with all parameters but limit and cursor: so a cursor of another customer or query does not open,
 * and none tells what the position is.
 */

#include "account/call.h"
#include "base/base64url.h"

/* ---- parameters ------------------------------------------------------------------------------ */

static bool is_id(struct text value)
{
    return record_id_is_sound(value.at, PLAYER_ID_SIZE, "ply_");
}

static bool is_state(struct text value)
{
    unsigned state;
    return text_equals(value, TEXT("all")) || enum_read(&ledger_round_states, value, &state);
}

static bool is_day(struct text value)
{
    int64_t day;
    return clock_parse_day(value, &day) == STATUS_OK;
}

#define PARAMETER(name_, sound_, rule_)             \
    const struct http_parameter account_##name_ = { \
        TEXT_INIT(#name_), STRICT_JSON_FIELD(account_asked, name_), sound_, NULL, rule_}
#define DAY "must be a date, as 2026-11-21"

PARAMETER(id, is_outside_name, ACCOUNT_OUTSIDE_NAME);
PARAMETER(provider, game_id_is_sound, "must be the id of a provider");
PARAMETER(reference, is_outside_name, ACCOUNT_OUTSIDE_NAME);
PARAMETER(player_id, is_id, "must be the id of a player (ply_…)");
PARAMETER(state, is_state, "must be open, ended, settled or all");
PARAMETER(from, is_day, DAY);
PARAMETER(to, is_day, DAY);
PARAMETER(day, is_day, DAY);
PARAMETER(prefix, text_is_plain, "must be the first 8 characters of a key (crk_…)");
PARAMETER(cursor, text_is_plain, "must be a next_cursor of the same query");
const struct http_parameter account_limit = {TEXT_INIT("limit"),
                                             STRICT_JSON_FIELD(account_asked, limit), NULL,
                                             http_query_limit, "must be an integer from 1 to 200"};

/* ---- reading --------------------------------------------------------------------------------- */

static void write_unknown(const struct account_act *act, struct strict_json_fault *fault)
{
    struct buffer names = {0};
    for (size_t i = 0; act->parameters[i] != NULL; i++)
        buffer_append_format(&names, "%s%s", i == 0 ? "" : ", ", act->parameters[i]->name.at);
    (void)snprintf(fault->message, sizeof fault->message,
                   names.size == 0 ? "The request takes no parameters.%s"
                                   : "The request has an unknown parameter. It may have %s.",
                   buffer_string(&names));
    buffer_free(&names);
}

bool account_read_query(struct text query, const struct account_act *act,
                        struct account_asked *asked, struct strict_json_fault *fault)
{
    *asked = (struct account_asked){.limit = HTTP_QUERY_LIMIT};
    struct http_parameter parameters[ACCOUNT_PARAMETERS_MAX];
    const struct http_parameter *wrong = act->required;
    const char *rule = "is missing";
    size_t count = 0;
    size_t at = 0;
    for (; act->parameters[count] != NULL; count++)
        parameters[count] = *act->parameters[count];
    enum http_query result = http_query_read(query, parameters, count, asked, &at);
    if (result == HTTP_QUERY_READ &&
        (wrong == NULL || ((const char *)asked)[wrong->offset] != '\0'))
        return true;
    if (result == HTTP_QUERY_UNKNOWN) {
        write_unknown(act, fault);
        return false;
    }
    if (result != HTTP_QUERY_READ) {
        wrong = act->parameters[at];
        rule = result == HTTP_QUERY_TWICE ? "is given twice" : wrong->rule;
    }
    (void)snprintf(fault->message, sizeof fault->message, "The parameter %s %s.", wrong->name.at,
                   rule);
    return false;
}

enum status account_days(const struct account_call *call, int64_t before,
                         struct ledger_scope *scope, struct error *error)
{
    const struct viewer_days given = {
        call->caller.customer_id, call->asked.provider, call->asked.from, call->asked.to, before,
        ACCOUNT_DAYS_MAX};
    return viewer_ask_days(&given, call->now_ms, scope, error);
}

enum status account_ahead(const struct account_call *call, const char *name, const char *text,
                          int64_t *time_ms, struct error *error)
{
    *time_ms = 0;
    if (text[0] == '\0' ||
        (strlen(text) > CLOCK_DAY_SIZE && /* a date alone would be its first moment, in UTC */
         clock_parse_rfc3339(text_of(text), time_ms) == STATUS_OK && *time_ms > call->now_ms))
        return STATUS_OK;
    return error_invalid(error, "%s: " ACCOUNT_AHEAD, name);
}

/* ---- cursors --------------------------------------------------------------------------------- */

/* No value holds a NUL, so values that are ended by one cannot be mistaken for others. */
static void append_context(const struct account_call *call, struct buffer *out)
{
    buffer_append(out, call->act->name, strlen(call->act->name) + 1);
    for (size_t i = 0; call->act->parameters[i] != NULL; i++) {
        const struct http_parameter *parameter = call->act->parameters[i];
        const char *value = (const char *)&call->asked + parameter->offset;
        if (parameter != &account_limit && parameter != &account_cursor)
            buffer_append(out, value, strlen(value) + 1);
    }
}

void account_write_cursor(struct account_call *call)
{
    struct buffer context = {0};
    struct buffer sealed = {0};
    struct buffer text = {0};
    if (call->next[0] != '\0') {
        append_context(call, &context);
        secrets_seal(call->secrets, buffer_text(&context), text_of(call->next), &sealed);
        buffer_append_base64url(&text, sealed.data, sealed.size);
        CHECK(text.size < ACCOUNT_CURSOR_SIZE);
    }
    json_string_or_null(&call->json, "next_cursor", buffer_string(&text));
    buffer_free(&context);
    buffer_free(&sealed);
    buffer_free(&text);
}

bool account_read_cursor(struct account_call *call)
{
    struct buffer context = {0};
    struct buffer sealed = {0};
    struct buffer position = {0};
    append_context(call, &context);
    bool good = base64url_read(text_of(call->asked.cursor), &sealed) &&
                secrets_unseal(call->secrets, buffer_text(&context), buffer_text(&sealed),
                               &position) == STATUS_OK &&
                text_copy_plain(buffer_text(&position), call->position, sizeof call->position);
    call->beside = text_of(call->position);
    good = good && text_to_u64(text_cut(&call->beside, ':'), INT64_MAX, &call->from) == STATUS_OK;
    buffer_free(&context);
    buffer_free(&sealed);
    buffer_free(&position);
    return good;
}

enum status account_refuse_cursor(struct error *error)
{
    return error_invalid(error, "cursor: %s", account_cursor.rule);
}
