/* All of it is read from memory, but what a customer sees. */
#include "console/handlers.h"

#include "console/history.h"
#include "games/errors.h"
#include "operator/customers.h"

/* Nothing of a sport was published for so long: it is stale, as the alarm CroupierFeedStopped has
 * it. */
#define FEED_STOPPED_S 120

/* ---- the house ------------------------------------------------------------------------------- */

/* Writes the ages of every sport as of the newest sample, so that an answer changes only with a
 * sample. A sport that was never published has no age and is not stale. */
static void write_feed(const struct console_call *call, int64_t at_ms, struct json_writer *json)
{
    struct odds_facts odds;
    struct sports_facts sports;
    odds_store_facts(call->services->sources.odds, &odds);
    sports_facts(call->services->sources.sports, &sports);
    json_array(json, "feed");
    for (int i = 0; i < SPORT_COUNT; i++) {
        int64_t age_s = (at_ms - odds.published_ms[i]) / 1000;
        bool known = odds.published_ms[i] != 0;
        json_object(json, NULL);
        json_string(json, "sport", sport_key((enum sport)i));
        if (known)
            json_integer(json, "age_seconds", age_s > 0 ? age_s : 0);
        else
            json_null(json, "age_seconds");
        json_unsigned(json, "stale_events", sports.ages[i].stale);
        json_bool(json, "stale", (known && age_s > FEED_STOPPED_S) || sports.ages[i].stale > 0);
        json_end(json);
    }
    json_end(json);
}

enum status console_overview(struct console_call *call, struct error *error)
{
    static const char *const spans[] = {
        [HISTORY_MINUTES] = "minutes", [HISTORY_HOURS] = "hours", NULL};
    (void)error; /* the query has it */
    enum history_span span = (enum history_span)console_choice(&call->query, "span", spans);
    if (call->query.status != STATUS_OK)
        return call->query.status;
    json_object(&call->json, NULL);
    int64_t at_ms = history_write(call->services->history, span, &call->json);
    write_feed(call, at_ms, &call->json);
    console_tag_answer(call);
    return STATUS_OK;
}

/* ---- customers ------------------------------------------------------------------------------- */

enum { REFUSALS_SHOWN = 100 };

static void write_refused(struct json_writer *json, const struct refused *refused)
{
    char address[ADDRESS_TEXT_SIZE];
    address_format(&refused->address, address);
    json_object(json, NULL);
    json_string(json, "customer", refused->customer_id);
    json_string(json, "reason", refused->error->reason);
    json_string_or_null(json, "key", refused->key);
    json_string(json, "address", address);
    json_unsigned(json, "count", refused->count);
    json_time(json, "at", refused->last_ms);
    json_end(json);
}

enum status console_refusals(struct console_call *call, struct error *error)
{
    struct refused list[REFUSALS_SHOWN];
    struct customer_view customer;
    const char *of = call->id[0] != '\0' ? call->id : NULL;
    enum status status = STATUS_OK;
    if (of != NULL)
        status = resource_get(&customer_resource, call->store, of, &customer, error);
    if (status != STATUS_OK)
        return status;
    size_t count =
        refusals_list(call->services->sources.refusals, of, call->now_ms, list, REFUSALS_SHOWN);
    json_object(&call->json, NULL);
    json_array(&call->json, "items");
    for (size_t i = 0; i < count; i++)
        write_refused(&call->json, &list[i]);
    console_tag_answer(call);
    return STATUS_OK;
}

enum status console_account(struct console_call *call, struct error *error)
{
    static const struct account_act *const acts[] = {
        &account_show,   &account_transactions, &account_players, &account_statement,
        &account_rounds, &account_days_act,     &account_entries, &account_usage};
    const struct account_act *act = NULL;
    struct customer_view customer;
    enum status status = resource_get(&customer_resource, call->store, call->id, &customer, error);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++)
        if (strcmp(acts[i]->name, call->part) == 0)
            act = acts[i];
    if (act == NULL)
        return error_not_found(error, "a customer sees nothing of that name");
    const struct account_sight sight = {act,      call->store,      call->now_ms,
                                        call->id, call->query.text, &call->answer};
    status = account_see(call->services->sources.account, &sight, error);
    /* The message names the error that the customer gets in place of the console's. */
    const struct http_error *refusal = status == STATUS_INVALID     ? &error_invalid_request
                                       : status == STATUS_NOT_FOUND ? act->missing
                                                                    : NULL;
    if (refusal != NULL)
        error_prefix(error, "%d %s", refusal->status, refusal->code);
    return status;
}
