/* Sums of what a customer moved and asked for, by day, and its rounds. */
#include "account/call.h"
#include "operator/documents.h"
#include "wallet/error_rows.h"

/* ---- a day ----------------------------------------------------------------------------------- */

static bool write_sum(void *context, const struct ledger_sum *sum)
{
    fields_write_object(&ledger_play_fields[LEDGER_PLAY_AT], sum, context);
    return true;
}

static enum status show_day(struct account_call *call, struct error *error)
{
    struct json_writer *json = &call->json;
    int64_t day = 0;
    CHECK(clock_parse_day(text_of(call->asked.day), &day) == STATUS_OK);
    const struct ledger_scope scope = {.from_ms = day * CLOCK_DAY_MS,
                                       .to_ms = (day + 1) * CLOCK_DAY_MS};
    json_string(json, "day", call->asked.day);
    json_array(json, "days");
    enum status status =
        viewer_read_sums(call->store, &call->viewer, &scope, false, write_sum, json, error);
    json_end(json);
    json_null(json, "next_cursor");
    return status;
}

const struct account_act account_days_act = {.name = "days",
                                             .area = KEY_ACCOUNT,
                                             .handle = show_day,
                                             .parameters = {&account_day},
                                             .required = &account_day};

/* ---- usage ----------------------------------------------------------------------------------- */

#define USAGE_DAYS 6 /* before the last, if no first day is given */

static enum status show_usage(struct account_call *call, struct error *error)
{
    struct json_writer *json = &call->json;
    struct ledger_scope scope;
    enum status status = account_days(call, USAGE_DAYS, &scope, error);
    if (status != STATUS_OK)
        return status;
    json_array(json, "requests");
    status =
        viewer_read_requests(call->store, &call->viewer, &scope, usage_list_requests, json, error);
    json_end(json);
    json_array(json, "wallet");
    if (status == STATUS_OK)
        status = viewer_read_sums(call->store, &call->viewer, &scope, false, usage_list_movement,
                                  json, error);
    json_end(json);
    return status;
}

const struct account_act account_usage = {.name = "usage",
                                          .area = KEY_ACCOUNT,
                                          .handle = show_usage,
                                          .parameters = {&account_from, &account_to}};

/* ---- rounds ---------------------------------------------------------------------------------- */

/* A cursor holds when the last round began that was shown, and which it is: rounds that began at
 * one time come in the order of these words, and a state may change between two pages. */
struct rounds {
    struct account_call *call;
    size_t count;
    char last[ACCOUNT_POSITION_SIZE];
    bool more;
};

static bool write_round(void *context, const struct ledger_round *round)
{
    struct rounds *rounds = context;
    struct account_call *call = rounds->call;
    const char *state = call->asked.state;
    if (state[0] != '\0' && strcmp(state, "all") != 0 &&
        strcmp(state, enum_name(&ledger_round_states, round->state)) != 0)
        return true;
    char which[PLAYER_ID_SIZE + PROVIDER_ID_SIZE + GAME_REFERENCE_SIZE];
    (void)snprintf(which, sizeof which, "%s %s %s", round->player_id, round->provider_id,
                   round->round_id);
    if (round->began_ms == (int64_t)call->from && strcmp(which, call->beside.at) <= 0)
        return true;
    rounds->more = rounds->count == call->asked.limit;
    if (rounds->more)
        return false;
    rounds->count++;
    (void)snprintf(rounds->last, sizeof rounds->last, "%" PRId64 ":%s", round->began_ms, which);
    fields_write_object(ledger_round_fields, round, &call->json);
    return true;
}

static enum status write_rounds(struct account_call *call, struct ledger_rounds_asked *asked,
                                struct rounds *rounds, struct error *error)
{
    json_array(&call->json, "rounds");
    enum status status =
        viewer_read_rounds(call->store, &call->viewer, asked, write_round, rounds, error);
    json_end(&call->json);
    if (rounds->more)
        memcpy(call->next, rounds->last, sizeof call->next);
    return status;
}

static enum status list_rounds(struct account_call *call, struct error *error)
{
    const struct account_asked *given = &call->asked;
    struct rounds rounds = {.call = call};
    struct ledger_rounds_asked asked = {.player_id = given->player_id,
                                        .open = strcmp(given->state, "open") == 0,
                                        .newest_first = true};
    struct ledger_account account;
    enum status status = account_days(call, ACCOUNT_DAYS_MAX - 1, &asked.scope, error);
    if (status == STATUS_OK && given->player_id[0] != '\0')
        status = viewer_account(call->store, &call->viewer, given->player_id, &account, error);
    if (call->from != 0)
        asked.scope.to_ms = (int64_t)call->from + 1;
    const bool reads_all = given->player_id[0] == '\0';
    if (status == STATUS_OK && reads_all && atomic_exchange(call->reads_rounds, true))
        return account_refuse(call, &error_account_busy, error);
    if (status == STATUS_OK) {
        status = write_rounds(call, &asked, &rounds, error);
        if (reads_all)
            atomic_store(call->reads_rounds, false);
    }
    return status;
}

const struct account_act account_rounds = {
    .name = "rounds",
    .area = KEY_ACCOUNT,
    .handle = list_rounds,
    .missing = &error_player_not_found,
    .parameters = {&account_state, &account_player_id, &account_provider, &account_from,
                   &account_to, &account_limit, &account_cursor}};
