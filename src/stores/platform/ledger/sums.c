/* Sums of the ledger's entries, and rounds: the store adds up (texts.h), and the sums are checked
 * here. */
#include "base/clock.h"
#include "stores/platform/ledger/reads.h"
#include "stores/platform_sums.h"

int64_t ledger_less(int64_t minor, int64_t less)
{
    int64_t rest;
    if (minor == LEDGER_SUM_UNKNOWN || less == LEDGER_SUM_UNKNOWN || less == LEDGER_SUM_MOST)
        return LEDGER_SUM_UNKNOWN;
    if (minor == LEDGER_SUM_MOST)
        return LEDGER_SUM_MOST;
    return __builtin_sub_overflow(minor, less, &rest) ? LEDGER_SUM_UNKNOWN : rest;
}

int64_t ledger_rollbacks_minor(const struct ledger_movements *movements)
{
    return ledger_less(movements->debits_back_minor, movements->credits_back_minor);
}

int64_t ledger_movement_minor(const struct ledger_movements *movements)
{
    int64_t out = ledger_less(movements->debits_minor, ledger_rollbacks_minor(movements));
    return ledger_less(movements->credits_minor, out);
}

uint64_t ledger_entries(const struct ledger_movements *movements)
{
    uint64_t entries = 0;
    for (size_t i = 0; i < LEDGER_OPERATION_COUNT; i++)
        entries += movements->entries[i];
    return entries;
}

/* Both are at least 0 and at most LEDGER_SUM_MOST, where the sum stops. */
static void add_minor(int64_t *sum, int64_t more)
{
    *sum = more >= LEDGER_SUM_MOST - *sum ? LEDGER_SUM_MOST : *sum + more;
}

static void add_movements(struct ledger_movements *to, const struct ledger_movements *more)
{
    for (size_t i = 0; i < LEDGER_OPERATION_COUNT; i++)
        to->entries[i] += more->entries[i];
    add_minor(&to->debits_minor, more->debits_minor);
    add_minor(&to->credits_minor, more->credits_minor);
    add_minor(&to->debits_back_minor, more->debits_back_minor);
    add_minor(&to->credits_back_minor, more->credits_back_minor);
}

void ledger_sum_add(struct ledger_sum *to, const struct ledger_sum *more)
{
    add_movements(&to->play, &more->play);
    add_movements(&to->transfers, &more->transfers);
    add_movements(&to->all, &more->all);
    for (size_t i = 0; i < LEDGER_KIND_COUNT; i++) {
        to->kinds[i].entries += more->kinds[i].entries;
        add_minor(&to->kinds[i].credits_minor, more->kinds[i].credits_minor);
        add_minor(&to->kinds[i].credits_back_minor, more->kinds[i].credits_back_minor);
    }
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
    sound &= ledger_read_string(row, 6, sum->round_id, sizeof sum->round_id);
    return sound && ledger_read_string(row, 30, sum->customer_name, sizeof sum->customer_name);
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

/* The columns are of all kinds but LEDGER_WIN, which is the rest of what was played. */
static void read_kinds(const struct sql_row *row, int column, struct ledger_sum *sum)
{
    struct ledger_kind_sum *rest = &sum->kinds[LEDGER_WIN];
    *rest = (struct ledger_kind_sum){sum->play.entries[LEDGER_CREDIT], sum->play.credits_minor,
                                     sum->play.credits_back_minor};
    for (int i = LEDGER_PROMO; i < LEDGER_KIND_COUNT; i++, column += 3) {
        struct ledger_kind_sum *of = &sum->kinds[i];
        *of = (struct ledger_kind_sum){(uint64_t)sql_integer(row, column),
                                       sql_integer(row, column + 1), sql_integer(row, column + 2)};
        rest->entries -= of->entries;
        rest->credits_minor = ledger_less(rest->credits_minor, of->credits_minor);
        rest->credits_back_minor = ledger_less(rest->credits_back_minor, of->credits_back_minor);
    }
}

static enum status take_sum(void *context, const struct sql_row *row, struct error *error)
{
    const struct summing *summing = context;
    struct ledger_sum sum = {.currency_exponent = (uint8_t)sql_integer(row, 2),
                             .day = sql_integer(row, 3),
                             .sandbox = sql_integer(row, 31) != 0};
    struct ledger_sum read = {.play = read_movements(row, 7), .transfers = read_movements(row, 14)};
    read.all = read.play;
    read_kinds(row, 21, &read);
    if (!read_names(row, &sum))
        return error_set(error, STATUS_MALFORMED, "a sum of the ledger is malformed");
    add_movements(&read.all, &read.transfers);
    ledger_sum_add(&sum, &read);
    return ledger_more(summing->visit(summing->context, &sum));
}

/* $1 to $4 */
static void add_scope(struct sql_parameters *parameters, const struct ledger_scope *scope)
{
    SQL_ADD(parameters, SQL_INTEGER(scope->from_ms), SQL_INTEGER(scope->to_ms),
            SQL_STRING(scope->customer_id != NULL ? scope->customer_id : ""),
            SQL_STRING(scope->provider_id != NULL ? scope->provider_id : ""));
}

enum status platform_ledger_sums(struct platform_store *store, const struct ledger_scope *scope,
                                 struct ledger_grouping grouping, ledger_sum_visitor *visit,
                                 void *context, struct error *error)
{
    const struct sql_texts *texts = store->engine->texts;
    struct summing summing = {visit, context};
    struct sql_parameters parameters = {0};
    const bool kept = scope->from_ms % CLOCK_DAY_MS == 0 && !grouping.by_round &&
                      (scope->to_ms % CLOCK_DAY_MS == 0 || scope->to_ms == INT64_MAX);
    add_scope(&parameters, scope);
    SQL_ADD(&parameters, SQL_INTEGER(grouping.by_day), SQL_INTEGER(grouping.by_game),
            SQL_INTEGER(grouping.by_round), SQL_INTEGER(kept));
    return ledger_read(store, kept ? texts->sums_beside_kept : texts->sums, &parameters, take_sum,
                       &summing, error);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static const char *const states[LEDGER_ROUND_STATE_COUNT] = {
    [LEDGER_ROUND_OPEN] = "open",
    [LEDGER_ROUND_ENDED] = "ended",
    [LEDGER_ROUND_SETTLED] = "settled",
};
const struct enum_names ledger_round_states = ENUM_NAMES(states);

struct rounds_reading {
    struct platform_store *store;
    ledger_round_visitor *visit;
    void *context;
};

static enum status take_round(void *context, const struct sql_row *row, struct error *error)
{
    const struct rounds_reading *reading = context;
    const int64_t state = sql_integer(row, 17);
    struct ledger_round round = {
        .currency_exponent = (uint8_t)sql_integer(row, 4),
        .began_ms = sql_integer(row, 8),
        .last_ms = sql_integer(row, 9),
        .ended_ms = sql_integer(row, 10),
        .ends = (uint64_t)sql_integer(row, 11),
        .bets = (uint64_t)sql_integer(row, 12),
        .wins = (uint64_t)sql_integer(row, 13),
        .stake_minor = sql_integer(row, 14),
        .win_minor = sql_integer(row, 15),
        .bet_after_end = sql_integer(row, 16) != 0,
        .sandbox = sql_integer(row, 18) != 0,
        .state = (enum ledger_round_state)state,
    };
    bool sound = ledger_read_string(row, 0, round.player_id, sizeof round.player_id);
    sound &= ledger_read_string(row, 1, round.customer_id, sizeof round.customer_id);
    sound &= ledger_read_string(row, 2, round.reference, sizeof round.reference);
    sound &= ledger_read_string(row, 3, round.currency, sizeof round.currency);
    sound &= ledger_read_string(row, 5, round.provider_id, sizeof round.provider_id);
    sound &= ledger_read_string(row, 6, round.game_id, sizeof round.game_id);
    sound &= ledger_read_string(row, 7, round.round_id, sizeof round.round_id);
    if (!sound || state < 0 || state >= LEDGER_ROUND_STATE_COUNT)
        return platform_damaged(reading->store, "a round is malformed", error);
    return ledger_more(reading->visit(reading->context, &round));
}

enum status platform_ledger_rounds(struct platform_store *store,
                                   const struct ledger_rounds_asked *asked,
                                   ledger_round_visitor *visit, void *context, struct error *error)
{
    const struct sql_texts *texts = store->engine->texts;
    const char *player_id = asked->player_id != NULL ? asked->player_id : "";
    struct rounds_reading reading = {store, visit, context};
    struct sql_parameters parameters = {0};
    add_scope(&parameters, &asked->scope);
    SQL_ADD(&parameters, SQL_INTEGER(asked->open), SQL_STRING(player_id),
            SQL_INTEGER(asked->newest_first));
    return ledger_read(store, player_id[0] == '\0' ? texts->rounds : texts->rounds_of_player,
                       &parameters, take_round, &reading, error);
}
