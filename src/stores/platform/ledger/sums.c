/* Sums of the ledger's entries: the store adds up (texts.h), and the sums are checked here. */
#include "stores/platform/ledger/reads.h"

int64_t ledger_sum_rollbacks_minor(const struct ledger_sum *sum)
{
    return sum->debits_back_minor - sum->credits_back_minor;
}

int64_t ledger_sum_movement_minor(const struct ledger_sum *sum)
{
    return sum->credits_minor - sum->debits_minor + ledger_sum_rollbacks_minor(sum);
}

uint64_t ledger_sum_entries(const struct ledger_sum *sum)
{
    uint64_t entries = 0;
    for (size_t i = 0; i < LEDGER_OPERATION_COUNT; i++)
        entries += sum->entries[i];
    return entries;
}

/* Each sum is at least 0 and so small that no difference of two pairs of them leaves int64_t. */
static bool add_minor(int64_t *sum, int64_t more)
{
    return !__builtin_add_overflow(*sum, more, sum) && *sum >= 0 && *sum < LEDGER_CLEARING_MAX;
}

bool ledger_sum_add(struct ledger_sum *to, const struct ledger_sum *more)
{
    struct ledger_sum added = *to;
    if (!add_minor(&added.debits_minor, more->debits_minor) ||
        !add_minor(&added.credits_minor, more->credits_minor) ||
        !add_minor(&added.debits_back_minor, more->debits_back_minor) ||
        !add_minor(&added.credits_back_minor, more->credits_back_minor))
        return false;
    for (size_t i = 0; i < LEDGER_OPERATION_COUNT; i++)
        added.entries[i] += more->entries[i];
    *to = added;
    return true;
}

struct summing {
    ledger_sum_visitor *visit;
    void *context;
};

static bool read_names(const struct sql_row *row, struct ledger_sum *sum)
{
    bool sound = ledger_read_string(row, 0, sum->customer_id, sizeof sum->customer_id);
    sound &= ledger_read_string(row, 1, sum->currency, sizeof sum->currency);
    sound &= ledger_read_string(row, 4, sum->provider_id, sizeof sum->provider_id);
    sound &= ledger_read_string(row, 5, sum->game_id, sizeof sum->game_id);
    return sound && ledger_read_string(row, 6, sum->round_id, sizeof sum->round_id);
}

static enum status take_sum(void *context, const struct sql_row *row, bool *wanted,
                            struct error *error)
{
    const struct summing *summing = context;
    struct ledger_sum sum = {.currency_exponent = (uint8_t)ledger_read_integer(row, 2),
                             .day = ledger_read_integer(row, 3)};
    const struct ledger_sum read = {.debits_minor = ledger_read_integer(row, 10),
                                    .credits_minor = ledger_read_integer(row, 11),
                                    .debits_back_minor = ledger_read_integer(row, 12),
                                    .credits_back_minor = ledger_read_integer(row, 13)};
    bool sound = read_names(row, &sum) && ledger_sum_add(&sum, &read);
    for (int i = 0; i < LEDGER_OPERATION_COUNT; i++)
        sum.entries[i] = (uint64_t)ledger_read_integer(row, 7 + i);
    if (!sound)
        return error_set(error, STATUS_MALFORMED,
                         "the sums of customer %s in %s are beyond what a ledger can have",
                         sum.customer_id, sum.currency);
    *wanted = summing->visit(summing->context, &sum);
    return STATUS_OK;
}

enum status platform_ledger_sums(struct platform_store *store, const struct ledger_scope *scope,
                                 struct ledger_grouping grouping, ledger_sum_visitor *visit,
                                 void *context, struct error *error)
{
    const struct ledger_texts *texts = store->engine->texts;
    struct summing summing = {visit, context};
    struct sql_parameters parameters = {0};
    bool looks_up = grouping.by_game || grouping.by_round || scope->provider_id != NULL;
    sql_add_integer(&parameters, scope->from_ms);
    sql_add_integer(&parameters, scope->to_ms);
    sql_add_text(&parameters, text_of(scope->customer_id != NULL ? scope->customer_id : ""));
    sql_add_text(&parameters, text_of(scope->provider_id != NULL ? scope->provider_id : ""));
    sql_add_integer(&parameters, grouping.by_day);
    sql_add_integer(&parameters, grouping.by_game);
    sql_add_integer(&parameters, grouping.by_round);
    return ledger_read(store, looks_up ? texts->sums_of_games : texts->sums, &parameters, take_sum,
                       &summing, error);
}
