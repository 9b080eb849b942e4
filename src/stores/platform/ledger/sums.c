/* Sums of the ledger's entries: the store adds up (texts.h), and the sums are checked here. */
#include "stores/platform/ledger/reads.h"

int64_t ledger_rollbacks_minor(const struct ledger_movements *movements)
{
    return movements->debits_back_minor - movements->credits_back_minor;
}

int64_t ledger_movement_minor(const struct ledger_movements *movements)
{
    return movements->credits_minor - movements->debits_minor + ledger_rollbacks_minor(movements);
}

uint64_t ledger_entries(const struct ledger_movements *movements)
{
    uint64_t entries = 0;
    for (size_t i = 0; i < LEDGER_OPERATION_COUNT; i++)
        entries += movements->entries[i];
    return entries;
}

/* Each sum is at least 0 and so small that no difference of two pairs of them leaves int64_t. */
static bool add_minor(int64_t *sum, int64_t more)
{
    return !__builtin_add_overflow(*sum, more, sum) && *sum >= 0 && *sum < LEDGER_CLEARING_MAX;
}

static bool add_movements(struct ledger_movements *to, const struct ledger_movements *more)
{
    for (size_t i = 0; i < LEDGER_OPERATION_COUNT; i++)
        to->entries[i] += more->entries[i];
    return add_minor(&to->debits_minor, more->debits_minor) &&
           add_minor(&to->credits_minor, more->credits_minor) &&
           add_minor(&to->debits_back_minor, more->debits_back_minor) &&
           add_minor(&to->credits_back_minor, more->credits_back_minor);
}

bool ledger_sum_add(struct ledger_sum *to, const struct ledger_sum *more)
{
    struct ledger_sum added = *to;
    if (!add_movements(&added.play, &more->play) ||
        !add_movements(&added.transfers, &more->transfers) ||
        !add_movements(&added.all, &more->all))
        return false;
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

static struct ledger_movements read_movements(const struct sql_row *row, int column)
{
    return (struct ledger_movements){
        .entries = {[LEDGER_DEBIT] = (uint64_t)sql_integer(row, column),
                    [LEDGER_CREDIT] = (uint64_t)sql_integer(row, column + 1),
                    [LEDGER_ROLLBACK] = (uint64_t)sql_integer(row, column + 2)},
        .debits_minor = sql_integer(row, column + 3),
        .credits_minor = sql_integer(row, column + 4),
        .debits_back_minor = sql_integer(row, column + 5),
        .credits_back_minor = sql_integer(row, column + 6)};
}

static enum status take_sum(void *context, const struct sql_row *row, bool *wanted,
                            struct error *error)
{
    const struct summing *summing = context;
    struct ledger_sum sum = {.currency_exponent = (uint8_t)sql_integer(row, 2),
                             .day = sql_integer(row, 3)};
    struct ledger_sum read = {.play = read_movements(row, 7), .transfers = read_movements(row, 14)};
    read.all = read.play;
    if (!read_names(row, &sum) || !add_movements(&read.all, &read.transfers) ||
        !ledger_sum_add(&sum, &read))
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
    sql_add_integer(&parameters, scope->from_ms);
    sql_add_integer(&parameters, scope->to_ms);
    sql_add_text(&parameters, text_of(scope->customer_id != NULL ? scope->customer_id : ""));
    sql_add_text(&parameters, text_of(scope->provider_id != NULL ? scope->provider_id : ""));
    sql_add_integer(&parameters, grouping.by_day);
    sql_add_integer(&parameters, grouping.by_game);
    sql_add_integer(&parameters, grouping.by_round);
    return ledger_read(store, texts->sums, &parameters, take_sum, &summing, error);
}
