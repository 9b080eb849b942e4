/* Stores what was seen of sandbox callers; see stores/platform_usage.h. */
#include "stores/platform_usage.h"

#include "stores/platform/texts.h"
#include "stores/platform/trail.h"

static enum status add(struct sql_flight *flight, void *context, struct error *error)
{
    const struct sql_texts *texts = flight->store->engine->texts;
    const struct sql_records *adding = context;
    const struct conduct_fact *facts = adding->at;
    for (size_t i = 0; i < adding->count; i++) {
        struct sql_parameters *values = sql_flight_add(flight, texts->add_conduct)->parameters;
        SQL_ADD(values, SQL_STRING(facts[i].caller), SQL_STRING(facts[i].request_id),
                SQL_STRING(facts[i].reason));
        for (size_t k = 0; k < CONDUCT_NUMBERS; k++)
            SQL_ADD(values, SQL_INTEGER(facts[i].numbers[k]));
        if (i + 1 == adding->count || strcmp(facts[i].caller, facts[i + 1].caller) != 0)
            SQL_ADD(sql_flight_add(flight, texts->trim_conduct)->parameters,
                    SQL_STRING(facts[i].caller), SQL_INTEGER(CONDUCT_FACTS_MAX));
    }
    return sql_flight_run(flight, true, error);
}

enum status platform_conduct_add(struct platform_store *store, const struct conduct_fact *facts,
                                 size_t count, struct error *error)
{
    struct sql_records adding = {facts, count};
    return sql_transact(store, add, &adding, error);
}

struct judging {
    record_function *see; /* NULL: only `found` is wanted */
    void *context;
    bool found;
};

static bool take_row(void *context, const struct sql_row *row)
{
    struct judging *judging = context;
    struct conduct_verdict verdict;
    judging->found = true;
    for (int i = 0; i < CONDUCT_TEXTS; i++)
        (void)text_copy_plain(sql_text(row, i), verdict.texts[i], sizeof verdict.texts[i]);
    for (char *space = verdict.texts[CONDUCT_REQUESTS]; (space = strchr(space, ' ')) != NULL;)
        *space = '\n';
    return judging->see != NULL && judging->see(judging->context, &verdict);
}

enum status platform_conduct_judge(struct platform_store *store, const char *caller, int64_t now_ms,
                                   record_function *see, void *context, struct error *error)
{
    struct judging judging = {see, context, false};
    struct sql_parameters parameters = SQL_PARAMETERS(
        SQL_STRING(caller), SQL_INTEGER(now_ms), SQL_INTEGER(ledger_owner_is_provider(caller)));
    struct sql_query query = {.sql = store->engine->texts->conduct,
                              .parameters = &parameters,
                              .row = take_row,
                              .context = &judging};
    enum status status = store->engine->sql->read(store, &query, 1, error);
    return status != STATUS_OK || judging.found
               ? status
               : error_not_found(error, "there is no sandbox %s", caller);
}

static enum status reset(struct sql_flight *flight, void *context, struct error *error)
{
    const char *const *caller = context;
    struct trail_row row = {0};
    SQL_ADD(sql_flight_add(flight, flight->store->engine->texts->trim_conduct)->parameters,
            SQL_STRING(*caller), SQL_INTEGER(0));
    buffer_append_string(&row.after, "{\"reset\":true}");
    return trail_event(flight, &row, "conduct", *caller, error);
}

enum status platform_conduct_reset(struct platform_store *store, const char *caller,
                                   struct error *error)
{
    enum status status = platform_conduct_judge(store, caller, 0, NULL, NULL, error);
    return status == STATUS_OK ? sql_transact(store, reset, &caller, error) : status;
}
