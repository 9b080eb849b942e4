/*
 * What the sums of the ledger are, over a random ledger of several days: `books ENGINE`. The test keeps
 * every entry that it made, with what it belongs to, and adds up the same in the plainest way: sums
 * and rounds. And the books of a customer's day are what the statements of its players say of that
 * day.
 */

#include "base/clock.h"
#include "operator/viewer.h"
#include "platform_places.h"
#include "stores/ledger_audit.h"
#include "stores/platform/engine.h"
#include "stores/platform_games.h"
#include "stores/platform_players.h"
#include "stores/platform_records.h"
#include "stores/platform_sums.h"
#include "tests.h"

#define CUSTOMERS 3
#define PLAYERS 9 /* each customer three: EUR, JPY, and EUR at a provider, which moves its money */
#define GAMES 3   /* two of the first provider, one of the second */
#define ROUNDS 40
#define DAYS 4
#define FIRST_DAY 20000
#define MADE_MAX 900

static const struct factory *factory; /* the engine under test, named on the command line */

/* An entry, and what it belongs to. */
struct made {
    struct ledger_transaction entry;
    const char *provider_id;
    char game_id[GAME_REFERENCE_SIZE];
    char round_id[GAME_REFERENCE_SIZE];
    bool rolled_back, settled;
    const struct made *target; /* of its reference; NULL: there is none, or it never came */
};

struct fixture {
    struct place place;
    struct platform_store *store;
    struct error error;
    unsigned seed;
    struct player_record players[PLAYERS];
    struct made made[MADE_MAX + 1];
    size_t count;
};

static unsigned chance(struct fixture *fixture, unsigned below)
{
    return (unsigned)rand_r(&fixture->seed) % below;
}

/* ---- a random ledger ------------------------------------------------------------------------- */

static const char *provider_of(const char *game_id)
{
    return game_id[0] == '\0' ? "" : strcmp(game_id, "game-2") == 0 ? "oasis" : "acme";
}

static void add_games(struct fixture *fixture)
{
    struct games_put_result result;
    const bool set_enabled[GAMES] = {false};
    struct game_record games[GAMES];
    for (int i = 0; i < 2; i++) {
        struct provider_record provider = {
            .enabled = true, .usable = true, .created_ms = 1, .secrets = {{.size = 60}}};
        (void)snprintf(provider.id, sizeof provider.id, "%s", i == 0 ? "acme" : "oasis");
        (void)snprintf(provider.name, sizeof provider.name, "x");
        (void)snprintf(provider.audience, sizeof provider.audience, "x");
        (void)snprintf(provider.launch_url, sizeof provider.launch_url, "https://a.example/");
        OK(platform_add(fixture->store, &provider_table, &provider, &fixture->error));
    }
    for (int i = 0; i < GAMES; i++) {
        games[i] = (struct game_record){.rtp_bps = -1, .enabled = true, .usable = true};
        (void)snprintf(games[i].id, sizeof games[i].id, "game-%d", i);
        (void)snprintf(games[i].provider_id, sizeof games[i].provider_id, "%s",
                       provider_of(games[i].id));
        (void)snprintf(games[i].name, sizeof games[i].name, "x");
        (void)snprintf(games[i].category, sizeof games[i].category, "slots");
        (void)snprintf(games[i].currencies, sizeof games[i].currencies, "EUR\nJPY");
        (void)snprintf(games[i].languages, sizeof games[i].languages, "en");
        (void)snprintf(games[i].devices, sizeof games[i].devices, "desktop");
    }
    OK(platform_games_put(fixture->store, games, set_enabled, GAMES, 1, &result, &fixture->error));
}

/* One that the new one may refer to: the player's own, applied, not rolled back. NULL: none was
 * drawn. */
static struct made *draw_reference(struct fixture *fixture, const char *player_id, bool debit)
{
    for (int i = 0; i < 40 && fixture->count > 0; i++) {
        struct made *made = &fixture->made[chance(fixture, (unsigned)fixture->count)];
        if (strcmp(made->entry.player_id, player_id) == 0 && !made->rolled_back &&
            made->entry.operation != LEDGER_ROLLBACK &&
            (!debit || made->entry.operation == LEDGER_DEBIT))
            return made;
    }
    return NULL;
}

/* A credit or a debit of a game's round, or of none; a credit may leave that to its reference. */
static void draw_move(struct fixture *fixture, struct made *made, int64_t balance_minor)
{
    struct ledger_transaction *entry = &made->entry;
    bool bets = balance_minor > 0 && chance(fixture, 2) == 0;
    entry->operation = bets ? LEDGER_DEBIT : LEDGER_CREDIT;
    entry->amount_minor =
        bets ? 1 + (int64_t)chance(fixture, (unsigned)balance_minor) : chance(fixture, 1000);
    entry->movement_minor = bets ? -entry->amount_minor : entry->amount_minor;
    struct made *bet = bets ? NULL : draw_reference(fixture, entry->player_id, true);
    if (bet != NULL) {
        bet->settled = true;
        made->target = bet;
        memcpy(entry->reference, bet->entry.transaction_id, sizeof entry->reference);
        memcpy(made->game_id, bet->game_id, sizeof made->game_id);
        memcpy(made->round_id, bet->round_id, sizeof made->round_id);
    }
    if (chance(fixture, 3) > 0) { /* it names its own, which counts */
        (void)snprintf(entry->game_id, sizeof entry->game_id, "game-%u", chance(fixture, GAMES));
        (void)snprintf(entry->round_id, sizeof entry->round_id, "r-%u", chance(fixture, ROUNDS));
        memcpy(made->game_id, entry->game_id, sizeof made->game_id);
        memcpy(made->round_id, entry->round_id, sizeof made->round_id);
    }
}

/* False: there is nothing to roll back, or its money is gone. */
static bool draw_rollback(struct fixture *fixture, struct made *made, int64_t balance_minor)
{
    struct ledger_transaction *entry = &made->entry;
    entry->operation = LEDGER_ROLLBACK;
    if (chance(fixture, 10) == 0) {
        entry->outcome = LEDGER_VOIDED;
        (void)snprintf(entry->reference, sizeof entry->reference, "never-%zu", fixture->count);
        return true;
    }
    struct made *target = draw_reference(fixture, entry->player_id, false);
    if (target == NULL || balance_minor < target->entry.movement_minor ||
        (target->entry.operation == LEDGER_DEBIT && target->settled))
        return false;
    target->rolled_back = true;
    made->target = target;
    entry->amount_minor = target->entry.amount_minor;
    entry->movement_minor = -target->entry.movement_minor;
    memcpy(entry->reference, target->entry.transaction_id, sizeof entry->reference);
    memcpy(made->game_id, target->game_id, sizeof made->game_id);
    memcpy(made->round_id, target->round_id, sizeof made->round_id);
    return true;
}

/* By a provider, with a kind and perhaps the end of its round. */
static void let_provider_move(struct fixture *fixture, struct made *made)
{
    struct ledger_transaction *entry = &made->entry;
    memcpy(entry->provider_id, "acme", 5);
    entry->round_ended = chance(fixture, 6) == 0;
    if (entry->operation == LEDGER_CREDIT)
        entry->kind = (enum ledger_kind)chance(fixture, LEDGER_KIND_COUNT);
    made->provider_id = entry->provider_id;
}

/* One batch with one entry, as the wallet would have decided it. */
static void enter_one(struct fixture *fixture, int64_t created_ms)
{
    static struct ledger_batch batch;
    struct made *made = &fixture->made[fixture->count];
    struct ledger_transaction *entry = &made->entry;
    const struct player_record *record = &fixture->players[chance(fixture, PLAYERS)];
    struct ledger_batch_player *player = &batch.players[0];
    const bool by_provider = strcmp(record->reference, "b") == 0;
    char id[TRANSACTION_ID_SIZE] = "";
    bool unknown = false;
    (void)snprintf(id, sizeof id, "t-%zu", fixture->count);
    memset(&batch, 0, sizeof batch);
    batch.player_count = 1;
    memcpy(player->player_id, record->id, sizeof record->id);
    if (by_provider)
        ledger_ask(&batch.facts[batch.fact_count++], "acme", id);
    OK(fixture->store->ledger->begin(fixture->store, &batch, &fixture->error));
    *made = (struct made){.entry = {.outcome = LEDGER_APPLIED,
                                    .currency_exponent = record->currency_exponent,
                                    .created_ms = created_ms,
                                    .sequence = player->account.sequence + 1}};
    memcpy(entry->customer_id, record->customer_id, sizeof entry->customer_id);
    memcpy(entry->player_id, record->id, sizeof entry->player_id);
    memcpy(entry->currency, record->currency, sizeof entry->currency);
    memcpy(entry->transaction_id, id, sizeof id);
    if (chance(fixture, 5) > 0)
        draw_move(fixture, made, player->account.balance_minor);
    else if (!draw_rollback(fixture, made, player->account.balance_minor)) {
        OK(fixture->store->ledger->commit(fixture->store, &batch, &unknown, &fixture->error));
        return;
    }
    made->provider_id = provider_of(made->game_id);
    if (by_provider)
        let_provider_move(fixture, made);
    entry->balance_minor = player->account.balance_minor + entry->movement_minor;
    ledger_entry_hash(entry, player->account.head, entry->hash);
    batch.kept[batch.kept_count++] = *entry;
    memcpy(player->account.head, entry->hash, sizeof entry->hash);
    player->account.balance_minor = entry->balance_minor;
    player->account.sequence = entry->sequence;
    player->changed = true;
    batch.clearings[player->clearing].balance_minor -= entry->movement_minor;
    batch.clearings[player->clearing].changed = true;
    OK(fixture->store->ledger->commit(fixture->store, &batch, &unknown, &fixture->error));
    fixture->count++;
}

static int set_up(void **state)
{
    static const char *const currencies[] = {"EUR", "JPY", "EUR"};
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct platform_store_options options = {.timeout_ms = 30000, .create = true};
    uint32_t before;
    uint32_t after;
    factory->place(&fixture->place);
    options.uri = fixture->place.uri;
    OK(platform_store_open(&fixture->store, &options, &fixture->error));
    OK(platform_store_migrate(fixture->store, &before, &after, &fixture->error));
    add_games(fixture);
    for (int i = 0; i < CUSTOMERS; i++) {
        struct customer_record record = {
            .name = "x", .enabled = true, .usable = true, .casino = true, .created_ms = 1};
        (void)snprintf(record.id, sizeof record.id, "cus_%d", i);
        OK(platform_add(fixture->store, &customer_table, &record, &fixture->error));
        for (int k = 0; k < 3; k++)
            OK(platform_player_open(fixture->store, record.id, k == 2 ? "b" : "a", currencies[k],
                                    k == 1 ? 0 : 2, &fixture->players[3 * i + k], &fixture->error));
    }
    fixture->seed = 12;
    for (int i = 0; i < MADE_MAX * DAYS && fixture->count < MADE_MAX; i++) {
        /* Days follow one another, but around midnight clocks differ. */
        int64_t day = FIRST_DAY + (int64_t)(fixture->count * DAYS / MADE_MAX);
        int64_t at_ms = day * CLOCK_DAY_MS + (int64_t)(i % 500) * 1000;
        enter_one(fixture, chance(fixture, 50) == 0 ? at_ms - CLOCK_DAY_MS : at_ms);
        if (fixture->count % (MADE_MAX / 3) == 0) /* so most sums are kept, and some are not yet */
            platform_ledger_keep_sums(fixture->store, 1);
    }
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    platform_store_close(&fixture->store);
    factory->clear(&fixture->place);
    free(fixture);
    return 0;
}

/* ---- the same in the plainest way ------------------------------------------------------------ */

/* What is asked for. `to_ms` 0: of all times. */
struct asked {
    struct ledger_scope scope;
    struct ledger_grouping grouping;
};

struct seen {
    struct fixture *fixture;
    const struct asked *asked;
    struct ledger_sum last, sum;
    size_t lines;
    int64_t first_entry, entries; /* visited */
};

static bool is_asked_for(const struct ledger_scope *scope, const struct made *made)
{
    const struct ledger_transaction *entry = &made->entry;
    return (scope->customer_id == NULL || strcmp(scope->customer_id, entry->customer_id) == 0) &&
           (scope->provider_id == NULL || strcmp(scope->provider_id, made->provider_id) == 0) &&
           entry->created_ms >= scope->from_ms && entry->created_ms < scope->to_ms;
}

static bool is_of_line(const struct ledger_grouping *options, const struct made *made,
                       const struct ledger_sum *line)
{
    return strcmp(line->customer_id, made->entry.customer_id) == 0 &&
           strcmp(line->currency, made->entry.currency) == 0 &&
           (!options->by_day || line->day == made->entry.created_ms / CLOCK_DAY_MS) &&
           (!options->by_game || (strcmp(line->game_id, made->game_id) == 0 &&
                                  strcmp(line->provider_id, made->provider_id) == 0)) &&
           (!options->by_round || strcmp(line->round_id, made->round_id) == 0);
}

static void add_entry(struct ledger_movements *to, const struct ledger_transaction *entry)
{
    int64_t minor = entry->movement_minor;
    to->entries[entry->operation]++;
    if (entry->operation == LEDGER_DEBIT)
        to->debits_minor -= minor;
    else if (entry->operation == LEDGER_CREDIT)
        to->credits_minor += minor;
    else if (minor > 0)
        to->debits_back_minor += minor;
    else
        to->credits_back_minor -= minor;
}

/* To the kinds of what was played. */
static void add_kind(struct ledger_kind_sum kinds[LEDGER_KIND_COUNT], const struct made *made)
{
    const struct made *credit = made->entry.operation == LEDGER_ROLLBACK ? made->target : made;
    if (credit == NULL || credit->entry.operation != LEDGER_CREDIT)
        return;
    struct ledger_kind_sum *kind = &kinds[credit->entry.kind];
    if (credit == made) {
        kind->entries++;
        kind->credits_minor += made->entry.movement_minor;
    } else {
        kind->credits_back_minor -= made->entry.movement_minor;
    }
}

static bool see_line(void *context, const struct ledger_sum *line)
{
    struct seen *seen = context;
    const struct fixture *fixture = seen->fixture;
    struct ledger_kind_sum kinds[LEDGER_KIND_COUNT] = {0};
    struct ledger_movements play = {0};
    struct ledger_movements transfers = {0};
    int64_t moved = 0;
    for (size_t i = 0; i < fixture->count; i++) {
        const struct made *made = &fixture->made[i];
        if (!is_asked_for(&seen->asked->scope, made) ||
            !is_of_line(&seen->asked->grouping, made, line))
            continue;
        bool named =
            made->provider_id[0] != '\0' || made->game_id[0] != '\0' || made->round_id[0] != '\0';
        add_entry(named ? &play : &transfers, &made->entry);
        if (named)
            add_kind(kinds, made);
        moved += made->entry.movement_minor;
    }
    assert_memory_equal(kinds, line->kinds, sizeof kinds);
    assert_memory_equal(&play, &line->play, sizeof play);
    assert_memory_equal(&transfers, &line->transfers, sizeof transfers);
    assert_int_equal(ledger_movement_minor(&line->all), moved);
    assert_int_equal(ledger_entries(&line->all),
                     ledger_entries(&play) + ledger_entries(&transfers));
    assert_int_equal(line->currency_exponent, strcmp(line->currency, "JPY") == 0 ? 0 : 2);
    if (seen->lines++ > 0) /* in order, and none twice */
        assert_true(strcmp(seen->last.customer_id, line->customer_id) <= 0 &&
                    memcmp(&seen->last, line, offsetof(struct ledger_sum, currency_exponent)) != 0);
    seen->last = *line;
    ledger_sum_add(&seen->sum, line);
    return true;
}

static bool see_entry(void *context, const struct ledger_transaction *entry)
{
    struct seen *seen = context;
    const struct made *made = &seen->fixture->made[strtoul(entry->transaction_id + 2, NULL, 10)];
    assert_memory_equal(&made->entry, entry, sizeof *entry);
    assert_true(is_asked_for(&seen->asked->scope, made));
    seen->entries++;
    return true;
}

/* Every line is right, and together they hold all that was asked for, each entry once; and the
 * entries are those. */
static struct seen check(struct fixture *fixture, struct asked asked)
{
    struct seen seen = {.fixture = fixture, .asked = &asked};
    const bool timed = asked.scope.to_ms != 0;
    const struct ledger_whose whose = {.customer_id = asked.scope.customer_id,
                                       .provider_id = asked.scope.provider_id};
    size_t wanted = 0;
    asked.scope.to_ms = timed ? asked.scope.to_ms : INT64_MAX;
    OK(platform_ledger_sums(fixture->store, &asked.scope, asked.grouping, see_line, &seen,
                            &fixture->error));
    if (timed)
        OK(platform_ledger_entered(fixture->store, &asked.scope, see_entry, &seen,
                                   &fixture->error));
    else
        OK(platform_ledger_entries(fixture->store, whose, see_entry, &seen, &fixture->error));
    for (size_t i = 0; i < fixture->count; i++)
        wanted += is_asked_for(&asked.scope, &fixture->made[i]);
    assert_int_equal(ledger_entries(&seen.sum.all), wanted);
    assert_int_equal(seen.entries, wanted);
    return seen;
}

TEST(sums_are_those_of_the_entries)
{
    struct fixture *fixture = *state;
    struct audit_result audited = {0};
    OK(wallet_audit(fixture->store, &(struct audit_options){0}, &audited, &fixture->error));
    assert_int_equal(audited.entries, fixture->count);
    const struct ledger_sum sum = check(fixture, (struct asked){0}).sum;
    assert_true(sum.play.credits_back_minor > 0 && sum.play.debits_back_minor > 0);
    for (size_t i = 0; i < LEDGER_KIND_COUNT; i++)
        assert_true(sum.kinds[i].credits_minor > sum.kinds[i].credits_back_minor &&
                    sum.kinds[i].credits_back_minor > 0);
    assert_true(sum.transfers.entries[LEDGER_DEBIT] > 0 && sum.transfers.credits_back_minor > 0);
    assert_int_equal(check(fixture, (struct asked){0}).lines, 2 * CUSTOMERS);
    assert_true(check(fixture, (struct asked){.grouping = {.by_day = true}}).lines >= 6 * DAYS);
    assert_true(check(fixture, (struct asked){.grouping = {.by_game = true}}).lines > 6 * GAMES);
    assert_true(
        check(fixture, (struct asked){.grouping = {.by_game = true, .by_round = true}}).lines >
        6 * GAMES * 10);
}

TEST(a_customer_a_provider_and_a_day_narrow_the_sums)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < 8; i++) {
        struct asked asked = {.scope = {.customer_id = (i & 1) != 0 ? "cus_1" : NULL,
                                        .provider_id = (i & 2) != 0 ? "oasis" : NULL}};
        if ((i & 4) != 0) {
            asked.scope.from_ms = (FIRST_DAY + 1) * CLOCK_DAY_MS;
            asked.scope.to_ms = (FIRST_DAY + 2) * CLOCK_DAY_MS;
        }
        (void)check(fixture, asked);
        asked.grouping = (struct ledger_grouping){true, true, true};
        assert_true(check(fixture, asked).lines > 3);
    }
    assert_int_equal(check(fixture, (struct asked){.scope = {.customer_id = "cus_9"}}).lines, 0);
    assert_int_equal(check(fixture, (struct asked){.scope = {.provider_id = "none"}}).lines, 0);
}

static enum status run_one(struct platform_store *store, void *context, struct error *error)
{
    struct sql_query query = {.sql = context};
    return store->engine->sql->run(store, &query, 1, true, error);
}

static void execute(struct fixture *fixture, char *sql)
{
    OK(fixture->store->engine->sql->transact(fixture->store, run_one, sql, &fixture->error));
}

static bool take_number(void *context, const struct sql_row *row)
{
    *(int64_t *)context = sql_integer(row, 0);
    return true;
}

static int64_t number_of(struct fixture *fixture, const char *sql)
{
    int64_t number = -1;
    struct sql_query query = {.sql = sql, .row = take_number, .context = &number};
    OK(fixture->store->engine->sql->read(fixture->store, &query, 1, &fixture->error));
    return number;
}

/* Sums of days come from there; of anything else, from the entries. */
TEST(kept_sums_are_those_of_the_entries)
{
    struct fixture *fixture = *state;
    struct audit_result audited = {0};
    static char more[] = "UPDATE ledger_sum SET entries = entries + 1 WHERE operation = 'DEBIT'";
    static char less[] = "UPDATE ledger_sum SET entries = entries - 1 WHERE operation = 'DEBIT'";
    static const char entries[] = "SELECT CAST(sum(entries) AS bigint) FROM ledger_sum";
    const int64_t before = number_of(fixture, entries);
    assert_true(before > 0);
    platform_ledger_keep_sums(fixture->store, INT64_MAX); /* not so many came */
    assert_int_equal(number_of(fixture, entries), before);
    enter_one(fixture, FIRST_DAY * CLOCK_DAY_MS); /* late */
    platform_ledger_keep_sums(fixture->store, 1);
    platform_ledger_keep_sums(fixture->store, 1);
    assert_int_equal(number_of(fixture, entries), fixture->count);
    for (int i = 0; i < 4; i++) {
        struct asked asked = {.grouping = {.by_day = (i & 1) != 0, .by_game = (i & 2) != 0}};
        (void)check(fixture, asked);
        asked.scope.to_ms = (FIRST_DAY + 2) * CLOCK_DAY_MS - 7;
        (void)check(fixture, asked);
    }
    OK(wallet_audit(fixture->store, &(struct audit_options){0}, &audited, &fixture->error));
    execute(fixture, more);
    assert_int_equal(
        wallet_audit(fixture->store, &(struct audit_options){0}, &audited, &fixture->error),
        STATUS_MALFORMED);
    assert_non_null(strstr(fixture->error.text, "its kept sums are not those of its entries"));
    execute(fixture, less);
}

/* ---- statements ------------------------------------------------------------------------------ */

/* What statements say of one customer's day. */
struct stated {
    int64_t day;
    int64_t movement_minor[2]; /* EUR, JPY */
    uint64_t entries[2];
};

static bool state_entry(void *context, const struct ledger_transaction *entry)
{
    struct stated *stated = context;
    int currency = strcmp(entry->currency, "JPY") == 0;
    if (clock_day(entry->created_ms) != stated->day)
        return true;
    stated->movement_minor[currency] += entry->movement_minor;
    stated->entries[currency]++;
    return true;
}

static bool take_away_line(void *context, const struct ledger_sum *line)
{
    struct stated *stated = context;
    int currency = strcmp(line->currency, "JPY") == 0;
    stated->movement_minor[currency] -= ledger_movement_minor(&line->all);
    stated->entries[currency] -= ledger_entries(&line->all);
    return true;
}

TEST(the_books_of_a_customers_day_are_what_its_statements_say)
{
    struct fixture *fixture = *state;
    for (int customer = 0; customer < CUSTOMERS; customer++) {
        for (int64_t day = FIRST_DAY - 2; day <= FIRST_DAY + DAYS; day++) {
            struct stated stated = {.day = day};
            for (int k = 0; k < 3; k++) {
                const struct ledger_whose whose = {.player_id =
                                                       fixture->players[3 * customer + k].id};
                OK(platform_ledger_entries(fixture->store, whose, state_entry, &stated,
                                           &fixture->error));
            }
            bool plays = day >= FIRST_DAY && day < FIRST_DAY + DAYS;
            assert_true(!plays || (stated.entries[0] > 0 && stated.entries[1] > 0));
            const struct ledger_scope scope = {
                .customer_id = fixture->players[3 * customer].customer_id,
                .from_ms = day * CLOCK_DAY_MS,
                .to_ms = (day + 1) * CLOCK_DAY_MS,
            };
            OK(platform_ledger_sums(fixture->store, &scope, (struct ledger_grouping){0},
                                    take_away_line, &stated, &fixture->error));
            for (int currency = 0; currency < 2; currency++) {
                assert_int_equal(stated.movement_minor[currency], 0);
                assert_int_equal(stated.entries[currency], 0);
            }
        }
    }
}

struct tail {
    uint64_t first, last, count;
};

static bool note_sequence(void *context, const struct ledger_transaction *entry)
{
    struct tail *tail = context;
    tail->first = tail->count == 0 ? entry->sequence : tail->first;
    tail->last = entry->sequence;
    tail->count++;
    return true;
}

TEST(a_statement_has_the_entries_that_are_asked_for)
{
    struct fixture *fixture = *state;
    struct tail whole = {0};
    struct ledger_whose whose = {.player_id = fixture->players[0].id};
    OK(platform_ledger_entries(fixture->store, whose, note_sequence, &whole, &fixture->error));
    assert_true(whole.first == 1 && whole.count == whole.last && whole.count > 3);
    for (whose.from = 1; whose.from <= whole.last; whose.from++) {
        struct tail tail = {0};
        OK(platform_ledger_entries(fixture->store, whose, note_sequence, &tail, &fixture->error));
        assert_int_equal(tail.first, whose.from);
        assert_int_equal(tail.last, whole.last);
        assert_int_equal(tail.count, whole.last - whose.from + 1);
    }
    whose.from = 2;
    for (whose.before = 3; whose.before <= whole.last + 2; whose.before++) {
        struct tail tail = {0};
        OK(platform_ledger_entries(fixture->store, whose, note_sequence, &tail, &fixture->error));
        assert_int_equal(tail.first, 2);
        assert_int_equal(tail.last, whose.before <= whole.last ? whose.before - 1 : whole.last);
        assert_int_equal(tail.count, tail.last - 1);
    }
}

struct paged {
    size_t count;
    struct ledger_transaction entries[MADE_MAX];
};

static bool state_it(void *context, const struct ledger_transaction *entry)
{
    struct paged *stated = context;
    stated->entries[stated->count++] = *entry;
    return true;
}

static bool is_stated(const struct viewer_statement *asked, const struct ledger_transaction *entry)
{
    return entry->created_ms >= asked->from_ms &&
           (asked->to_ms == 0 || entry->created_ms < asked->to_ms) &&
           viewer_is_of_kind(asked->kind, entry);
}

/* The pages of a statement, from its end on, have the entries of a plain filter. */
static size_t check_pages(struct fixture *fixture, const struct viewer_statement *first,
                          uint64_t limit, const struct paged *whole)
{
    static struct paged page;
    struct viewer_statement asked = *first;
    uint64_t next = 1;
    size_t wanted = whole->count;
    size_t found = 0;
    for (int pages = 0; next != 0; pages++) {
        assert_true(pages < 10 * MADE_MAX);
        page.count = 0;
        OK(viewer_read_page(fixture->store, &viewer_operator, &asked, limit, &next, state_it, &page,
                            &fixture->error));
        assert_true(page.count <= limit);
        for (size_t i = page.count; i-- > 0; found++) {
            const struct ledger_transaction *entry;
            do {
                assert_true(wanted > 0);
                entry = &whole->entries[--wanted];
            } while (!is_stated(first, entry));
            assert_int_equal(page.entries[i].sequence, entry->sequence);
        }
        assert_true(next == 0 || asked.before == 0 || next < asked.before);
        asked.before = next;
    }
    return found;
}

static size_t count_fitting(const struct paged *whole, const struct viewer_statement *asked)
{
    size_t count = 0;
    for (size_t i = 0; i < whole->count; i++)
        count += is_stated(asked, &whole->entries[i]);
    return count;
}

TEST(pages_of_a_statement_have_the_entries_of_a_kind_and_of_days)
{
    static struct paged whole;
    struct fixture *fixture = *state;
    for (size_t player = 0; player < PLAYERS; player++) {
        struct viewer_statement asked = {.player_id = fixture->players[player].id};
        whole.count = 0;
        OK(platform_ledger_entries(fixture->store,
                                   (struct ledger_whose){.player_id = asked.player_id}, state_it,
                                   &whole, &fixture->error));
        assert_int_equal(check_pages(fixture, &asked, 7, &whole), whole.count);
        for (const char *const *kind = viewer_kinds; *kind != NULL; kind++)
            for (int64_t day = FIRST_DAY - 1; day <= FIRST_DAY + DAYS; day++) {
                asked.kind = *kind;
                asked.from_ms = day * CLOCK_DAY_MS;
                asked.to_ms = (day + 1 + day % 2) * CLOCK_DAY_MS;
                assert_int_equal(check_pages(fixture, &asked, 3, &whole),
                                 count_fitting(&whole, &asked));
            }
    }
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* What was entered at a time, in the plainest way: each entry of it is looked at for each round. */
struct rounds_seen {
    struct fixture *fixture;
    struct ledger_rounds_asked asked;
    int64_t last_began_ms;
    size_t count, in_state[LEDGER_ROUND_STATE_COUNT], late_bets, without_bets;
};

static bool is_read(const struct ledger_rounds_asked *asked, const struct made *made)
{
    struct ledger_scope scope = asked->scope;
    scope.to_ms = INT64_MAX;
    return made->round_id[0] != '\0' && is_asked_for(&scope, made) &&
           (asked->player_id == NULL || strcmp(made->entry.player_id, asked->player_id) == 0);
}

static bool is_of_round(const struct made *made, const struct ledger_round *round)
{
    return strcmp(made->entry.player_id, round->player_id) == 0 &&
           strcmp(made->provider_id, round->provider_id) == 0 &&
           strcmp(made->round_id, round->round_id) == 0;
}

static bool is_undone(const struct rounds_seen *seen, const struct made *made)
{
    for (size_t i = 0; i < seen->fixture->count; i++) {
        const struct made *undo = &seen->fixture->made[i];
        if (undo->target == made && undo->entry.operation == LEDGER_ROLLBACK &&
            is_read(&seen->asked, undo))
            return true;
    }
    return false;
}

static bool is_settled(const struct rounds_seen *seen, const struct made *bet)
{
    for (size_t i = 0; i < seen->fixture->count; i++) {
        const struct made *credit = &seen->fixture->made[i];
        if (credit->target == bet && credit->entry.operation == LEDGER_CREDIT &&
            is_read(&seen->asked, credit) && !is_undone(seen, credit))
            return true;
    }
    return false;
}

/* What the entry makes of its round. */
static void play_on(const struct rounds_seen *seen, const struct made *made,
                    struct ledger_round *round, uint64_t *first_end, uint64_t *open)
{
    const struct ledger_transaction *entry = &made->entry;
    const bool undone = is_undone(seen, made);
    round->began_ms = round->began_ms == 0 || entry->created_ms < round->began_ms
                          ? entry->created_ms
                          : round->began_ms;
    round->last_ms = entry->created_ms > round->last_ms ? entry->created_ms : round->last_ms;
    if (entry->operation == LEDGER_DEBIT) {
        round->bets++;
        round->stake_minor += undone ? 0 : entry->amount_minor;
        round->bet_after_end |= !undone && *first_end != 0;
        *open = !undone && !is_settled(seen, made) ? entry->sequence : *open;
    } else if (entry->operation == LEDGER_CREDIT) {
        round->wins++;
        round->win_minor += undone ? 0 : entry->amount_minor;
    }
    if (!entry->round_ended || undone)
        return;
    *first_end = *first_end == 0 ? entry->sequence : *first_end;
    round->ends++;
    *open = 0;
}

/* The game of a bet, if one names a game; of several the last in the alphabet. */
static void name_game(const struct made *made, struct ledger_round *round, bool *by_bet)
{
    const bool bets = made->entry.operation == LEDGER_DEBIT && made->game_id[0] != '\0';
    if (bets == *by_bet ? strcmp(made->game_id, round->game_id) > 0 : bets)
        memcpy(round->game_id, made->game_id, sizeof round->game_id);
    *by_bet |= bets;
}

static struct ledger_round plain_round(const struct rounds_seen *seen,
                                       const struct ledger_round *named, bool *begins)
{
    struct ledger_round round = {.began_ms = 0};
    uint64_t first_end = 0;
    uint64_t open = 0;
    const struct made *first = NULL; /* of those that are read, of any round */
    bool by_bet = false;
    *begins = false;
    for (size_t i = 0; i < seen->fixture->count; i++) {
        const struct made *made = &seen->fixture->made[i];
        if (!is_read(&seen->asked, made))
            continue;
        first = first == NULL ? made : first;
        if (!is_of_round(made, named))
            continue;
        play_on(seen, made, &round, &first_end, &open);
        name_game(made, &round, &by_bet);
        *begins |= made->entry.operation == LEDGER_DEBIT ||
                   (made->entry.operation == LEDGER_CREDIT &&
                    (made->target == NULL || made->target >= first));
    }
    round.state = open != 0         ? LEDGER_ROUND_OPEN
                  : round.ends != 0 ? LEDGER_ROUND_ENDED
                                    : LEDGER_ROUND_SETTLED;
    return round;
}

static bool see_round(void *context, const struct ledger_round *round)
{
    struct rounds_seen *seen = context;
    bool begins = false;
    const struct ledger_round plain = plain_round(seen, round, &begins);
    assert_true(begins && plain.began_ms < seen->asked.scope.to_ms);
    assert_true(!seen->asked.open || plain.state == LEDGER_ROUND_OPEN);
    assert_int_equal(round->state, plain.state);
    assert_string_equal(round->game_id, plain.game_id);
    assert_int_equal(round->began_ms, plain.began_ms);
    assert_int_equal(round->last_ms, plain.last_ms);
    assert_int_equal(round->bets, plain.bets);
    assert_int_equal(round->wins, plain.wins);
    assert_int_equal(round->ends, plain.ends);
    assert_int_equal(round->ended_ms != 0, plain.ends != 0);
    assert_int_equal(round->stake_minor, plain.stake_minor);
    assert_int_equal(round->win_minor, plain.win_minor);
    assert_int_equal(round->bet_after_end, plain.bet_after_end);
    assert_true(seen->last_began_ms <= round->began_ms);
    seen->last_began_ms = round->began_ms;
    seen->in_state[round->state]++;
    seen->late_bets += round->bet_after_end;
    seen->without_bets += round->bets == 0;
    seen->count++;
    return true;
}

/* How many rounds are to be seen. */
static size_t count_rounds(const struct rounds_seen *seen)
{
    size_t count = 0;
    for (size_t i = 0; i < seen->fixture->count; i++) {
        const struct made *made = &seen->fixture->made[i];
        struct ledger_round named = {.began_ms = 0};
        bool begins = false;
        bool first = is_read(&seen->asked, made);
        memcpy(named.player_id, made->entry.player_id, sizeof named.player_id);
        memcpy(named.round_id, made->round_id, sizeof named.round_id);
        (void)snprintf(named.provider_id, sizeof named.provider_id, "%s", made->provider_id);
        for (size_t j = 0; j < i && first; j++)
            first = !is_read(&seen->asked, &seen->fixture->made[j]) ||
                    !is_of_round(&seen->fixture->made[j], &named);
        if (!first)
            continue;
        const struct ledger_round plain = plain_round(seen, &named, &begins);
        count += begins && plain.began_ms < seen->asked.scope.to_ms &&
                 (!seen->asked.open || plain.state == LEDGER_ROUND_OPEN);
    }
    return count;
}

static struct rounds_seen check_rounds(struct fixture *fixture, struct ledger_rounds_asked asked)
{
    struct rounds_seen seen = {.fixture = fixture, .asked = asked};
    OK(platform_ledger_rounds(fixture->store, &asked, see_round, &seen, &fixture->error));
    assert_int_equal(seen.count, count_rounds(&seen));
    return seen;
}

TEST(rounds_are_those_of_the_entries)
{
    struct fixture *fixture = *state;
    const struct ledger_scope all = {.to_ms = INT64_MAX};
    struct rounds_seen seen = check_rounds(fixture, (struct ledger_rounds_asked){.scope = all});
    for (size_t i = 0; i < LEDGER_ROUND_STATE_COUNT; i++)
        assert_true(seen.in_state[i] > 5);
    assert_true(seen.late_bets > 3 && seen.without_bets > 3);
    for (int i = 0; i < 32; i++) {
        struct ledger_rounds_asked asked = {.scope = all, .open = (i & 1) != 0};
        asked.player_id = (i & 16) != 0 ? fixture->made[0].entry.player_id : NULL;
        asked.scope.customer_id = (i & 2) != 0 ? "cus_1" : NULL;
        asked.scope.provider_id = (i & 4) != 0 ? "acme" : NULL;
        if ((i & 8) != 0) {
            asked.scope.from_ms = (FIRST_DAY + 1) * CLOCK_DAY_MS;
            asked.scope.to_ms = (FIRST_DAY + 3) * CLOCK_DAY_MS;
        }
        assert_true(check_rounds(fixture, asked).count > (asked.player_id == NULL ? 3 : 0));
    }
}

static bool see_of_customer(void *context, const struct ledger_round *round)
{
    assert_string_equal(round->customer_id, "cus_1");
    ++*(size_t *)context;
    return true;
}

static bool see_usage(void *context, const struct usage_record *record)
{
    (void)record;
    ++*(size_t *)context;
    return true;
}

static bool see_movement(void *context, const struct ledger_sum *sum)
{
    assert_string_equal(sum->customer_id, "cus_1");
    ++*(size_t *)context;
    return true;
}

TEST(a_customer_sees_its_own_and_nothing_of_others)
{
    struct fixture *fixture = *state;
    struct platform_store *store = fixture->store;
    const struct viewer viewer = {.customer_id = "cus_1"};
    struct ledger_rounds_asked asked = {.scope = {.to_ms = INT64_MAX, .customer_id = "cus_1"}};
    struct ledger_scope usage = {.from_ms = (FIRST_DAY - 2) * CLOCK_DAY_MS,
                                 .to_ms = (FIRST_DAY + DAYS + 1) * CLOCK_DAY_MS};
    const size_t of_customer = check_rounds(fixture, asked).count;
    struct ledger_account account;
    uint64_t next = 0;
    size_t count = 0;
    for (int i = 0; i < 2; i++) { /* asked for by name, and without one */
        count = 0;
        OK(viewer_read_rounds(store, &viewer, &asked, see_of_customer, &count, &fixture->error));
        assert_int_equal(count, of_customer);
        OK(viewer_read_sums(store, &viewer, &usage, false, see_movement, &count, &fixture->error));
        assert_true(count > of_customer);
        asked.scope.customer_id = NULL;
    }
    OK(viewer_account(store, &viewer, fixture->players[3].id, &account, &fixture->error));

    struct tail tail = {0};
    const struct viewer_statement own = {.player_id = fixture->players[3].id};
    const struct viewer_statement others = {.player_id = fixture->players[0].id};
    OK(viewer_read_page(store, &viewer, &own, VIEWER_PAGE_MAX, &next, note_sequence, &tail,
                        &fixture->error));
    assert_int_equal(tail.last, account.sequence);
    tail = (struct tail){0};
    count = 0;
    asked.scope.customer_id = usage.customer_id = "cus_2";
    const enum status refused[] = {
        viewer_account(store, &viewer, fixture->players[0].id, &account, &fixture->error),
        viewer_read_page(store, &viewer, &others, 1, &next, note_sequence, &tail, &fixture->error),
        viewer_read_rounds(store, &viewer, &asked, see_of_customer, &count, &fixture->error),
        viewer_read_requests(store, &viewer, &usage, see_usage, &count, &fixture->error),
        viewer_read_sums(store, &viewer, &usage, false, see_movement, &count, &fixture->error)};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_int_equal(refused[i], STATUS_NOT_FOUND);
    assert_int_equal(tail.count + count, 0);
    OK(viewer_read_page(store, &viewer_operator, &others, VIEWER_PAGE_MAX, &next, note_sequence,
                        &tail, &fixture->error));
    assert_true(tail.count > 3);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

TEST(a_sum_stops_where_it_could_not_be_told_and_its_differences_are_unknown)
{
    struct ledger_sum sum = {
        .play = {.debits_minor = LEDGER_SUM_MOST - 2, .credits_back_minor = LEDGER_SUM_MOST - 1}};
    const struct ledger_sum more = {.play = {.debits_minor = 1, .entries = {1, 0, 0}}};
    ledger_sum_add(&sum, &more);
    assert_true(-ledger_movement_minor(&sum.play) == INT64_MAX - 1); /* what it comes to fits */
    ledger_sum_add(&sum, &more);
    ledger_sum_add(&sum, &more);
    assert_true(sum.play.debits_minor == LEDGER_SUM_MOST && sum.play.entries[LEDGER_DEBIT] == 3);
    assert_true(ledger_movement_minor(&sum.play) == LEDGER_SUM_UNKNOWN);
    assert_true(ledger_less(LEDGER_SUM_MOST, 5) == LEDGER_SUM_MOST);
    assert_true(ledger_less(5, LEDGER_SUM_MOST) == LEDGER_SUM_UNKNOWN);
    assert_true(ledger_less(LEDGER_SUM_UNKNOWN, 0) == LEDGER_SUM_UNKNOWN);
}

struct stopping {
    size_t after, seen;
};

static bool stop_at_line(void *context, const struct ledger_sum *line)
{
    struct stopping *stopping = context;
    return ++stopping->seen < stopping->after;
}

static bool stop_at_entry(void *context, const struct ledger_transaction *entry)
{
    return stop_at_line(context, NULL);
}

TEST(a_visitor_may_stop_early)
{
    struct fixture *fixture = *state;
    struct stopping at_line = {.after = 3};
    const struct ledger_scope all = {.to_ms = INT64_MAX};
    OK(platform_ledger_sums(fixture->store, &all, (struct ledger_grouping){0}, stop_at_line,
                            &at_line, &fixture->error));
    assert_int_equal(at_line.seen, 3);
    for (int timed = 0; timed < 2; timed++) {
        struct stopping at_entry = {.after = 3};
        if (timed == 1)
            OK(platform_ledger_entered(fixture->store, &all, stop_at_entry, &at_entry,
                                       &fixture->error));
        else
            OK(platform_ledger_entries(fixture->store, (struct ledger_whose){0}, stop_at_entry,
                                       &at_entry, &fixture->error));
        assert_int_equal(at_entry.seen, 3);
    }
}

TESTS_WITH(set_up, tear_down);

int main(int argc, char **argv)
{
    factory = factory_of(argc == 2 ? argv[1] : "");
    if (factory == NULL) {
        (void)fprintf(stderr, "usage: books ENGINE\n");
        return 2;
    }
    return tests_run();
}
