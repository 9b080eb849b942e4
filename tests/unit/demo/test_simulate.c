/* demo/simulate: the simulated feed keeps the promises that a real one does. */

#include "base/memory.h"
#include "demo/price_ladder.h"
#include "demo/simulate.h"
#include "feed/check.h"
#include "tests.h"

#define START_MS 1795237000000

static struct simulator *create(uint64_t seed, sport_set sports, uint32_t events)
{
    struct simulator_options options = {
        .seed = seed, .sports = sports, .events = events, .interval_ms = 1000};
    return simulator_create(&options, START_MS);
}

/* ---- a small set of texts -------------------------------------------------------------------- */

struct texts {
    char items[256][24];
    size_t count;
};

static bool contains(const struct texts *texts, const char *text)
{
    for (size_t i = 0; i < texts->count; i++)
        if (strcmp(texts->items[i], text) == 0)
            return true;
    return false;
}

static void add(struct texts *texts, const char *text)
{
    if (contains(texts, text))
        return;
    assert_true(texts->count < sizeof texts->items / sizeof texts->items[0]);
    (void)snprintf(texts->items[texts->count++], sizeof texts->items[0], "%s", text);
}

/* ---- what every document must be ------------------------------------------------------------- */

struct seen {
    struct texts types, market_statuses, runner_statuses, section_statuses, event_statuses;
    bool selection_string, selection_number, selection_large, price1, dash, capitals;
    bool gmid_string, gmid_large, indian_time, bool_string, sno_fraction, escaped_name;
    size_t most_sections, most_runners, most_bytes;
    unsigned raced; /* runners that were withdrawn */
};

static struct text member(struct text object, const char *name)
{
    return json_text_member(object, text_of(name));
}

static bool is_string(struct text value)
{
    return value.at != NULL && json_text_kind(value) == JSON_TEXT_STRING;
}

static bool is_number(struct text value)
{
    return value.at != NULL && json_text_kind(value) == JSON_TEXT_NUMBER;
}

/* Of a number as it is written, or of what is in a string. */
static size_t json_text_size(struct text value)
{
    return is_string(value) ? json_text_inside(value).size : value.size;
}

/* A number with at most two decimals, in hundredths. */
static uint32_t hundredths(struct text value)
{
    struct text rest = value, whole = text_cut(&rest, '.');
    uint64_t units, decimals = 0;
    assert_true(is_number(value) && rest.size <= 2);
    assert_int_equal(text_to_u64(whole, UINT32_MAX, &units), STATUS_OK);
    if (rest.at != NULL)
        assert_int_equal(text_to_u64(rest, 99, &decimals), STATUS_OK);
    return (uint32_t)(units * 100 + (rest.size == 1 ? decimals * 10 : decimals));
}

/* A text of the document, until the seventh call after this one. */
static const char *string_of(struct text object, const char *name)
{
    static char texts[8][256];
    static size_t next;
    char *text = texts[next++ % 8];
    struct text value = member(object, name), inside = json_text_inside(value);
    if (!is_string(value))
        fail_msg("no string %s", name);
    assert_true(inside.size < sizeof texts[0]);
    (void)snprintf(text, sizeof texts[0], "%.*s", (int)inside.size, inside.at);
    return text;
}

/* Levels stand on the ladder and go away from the best; returns the best, or 0. */
static uint32_t check_levels(struct text levels, bool back, struct seen *seen)
{
    uint32_t best = 0, before = 0;
    struct text level;
    assert_true(json_text_count(levels) <= 3);
    for (struct json_text_cursor at = json_text_open(levels);
         json_text_next_element(&at, &level);) {
        uint32_t price = hundredths(member(level, "price"));
        assert_int_equal(price_ladder_at(price_ladder_floor(price)), price);
        if (best == 0)
            best = price;
        else
            assert_true(back ? price < before : price > before);
        before = price;
        seen->capitals |= strcmp(string_of(level, "oname"), "BACK1") == 0;
        assert_true(is_number(member(level, "size")));
    }
    return best;
}

static void check_exchange(struct text runners, bool single_winner, struct seen *seen)
{
    size_t active = 0, over = 0;
    uint64_t backs = 0, lays = 0; /* percentages in millionths */
    struct text runner;
    for (struct json_text_cursor at = json_text_open(runners);
         json_text_next_element(&at, &runner);) {
        struct text ex = member(runner, "ex");
        uint32_t back = check_levels(member(ex, "availableToBack"), true, seen);
        uint32_t lay = check_levels(member(ex, "availableToLay"), false, seen);
        if (strcmp(string_of(runner, "status"), "ACTIVE") != 0) {
            assert_true(back == 0 && lay == 0);
            over += strcmp(string_of(runner, "status"), "WINNER") == 0;
            continue;
        }
        active++;
        assert_true(back > 0 && lay > back);
        backs += 100000000 / back;
        lays += 100000000 / lay;
    }
    if (active < 2 || over > 0 || !single_winner)
        return;
    assert_in_range(backs, 999000, 1200000);
    assert_in_range(lays, 700000, 1050000);
}

static void check_runners(struct text market, struct seen *seen)
{
    struct text runners = member(market, "runners"), runner;
    const char *type = string_of(market, "gtype");
    if (json_text_count(runners) > seen->most_runners)
        seen->most_runners = json_text_count(runners);
    for (struct json_text_cursor at = json_text_open(runners);
         json_text_next_element(&at, &runner);) {
        struct text selection = member(runner, "selectionId");
        add(&seen->runner_statuses, string_of(runner, "status"));
        seen->selection_string |= is_string(selection);
        seen->selection_number |= is_number(selection);
        seen->selection_large |= json_text_size(selection) > 15;
        (void)string_of(runner, "runnerName");
        if (strcmp(type, "match1") == 0) {
            struct text ex = member(runner, "ex");
            struct text first = json_text_element(member(ex, "availableToBack"), 0);
            seen->price1 |= member(first, "price1").at != NULL;
        }
    }
    if (strcmp(type, "match") == 0)
        check_exchange(runners, strcmp(string_of(market, "mname"), "PLACE") != 0, seen);
}

static void check_sections(struct text market, struct seen *seen)
{
    struct text sections = member(market, "section"), section;
    if (json_text_count(sections) > seen->most_sections)
        seen->most_sections = json_text_count(sections);
    for (struct json_text_cursor at = json_text_open(sections);
         json_text_next_element(&at, &section);) {
        struct text odds = member(section, "odds");
        struct text back = member(json_text_element(odds, 0), "odds");
        struct text lay = member(json_text_element(odds, 1), "odds");
        const char *status = string_of(section, "gstatus");
        (void)string_of(section, "nat");
        add(&seen->section_statuses, status);
        seen->dash |= text_equals(back, TEXT("\"-\""));
        if (strcmp(status, "SUSPENDED") == 0 || lay.at == NULL)
            continue;
        assert_true(hundredths(back) > hundredths(lay));
        assert_true(hundredths(back) - hundredths(lay) <= 500);
    }
}

static void check_markets(struct text document, struct seen *seen)
{
    struct text market;
    struct texts *names = memory_alloc_zeroed(1, sizeof *names);
    assert_int_equal(json_text_check(document, NULL, NULL), STATUS_OK);
    for (struct json_text_cursor at = json_text_open(document);
         json_text_next_element(&at, &market);) {
        add(&seen->types, string_of(market, "gtype"));
        add(&seen->market_statuses, string_of(market, "status"));
        assert_false(contains(names, string_of(market, "marketId")));
        add(names, string_of(market, "marketId"));
        /* What must not be seen by clients is there for the server to hide. */
        assert_non_null(member(market, "tv").at);
        assert_non_null(member(market, "tvChannel").at);
        assert_non_null(member(market, "odd_type").at);
        if (member(market, "runners").at != NULL)
            check_runners(market, seen);
        else
            check_sections(market, seen);
    }
    memory_free(names);
}

static void check_rows(struct text document, struct seen *seen)
{
    struct text row;
    assert_int_equal(json_text_check(document, NULL, NULL), STATUS_OK);
    for (struct json_text_cursor at = json_text_open(document);
         json_text_next_element(&at, &row);) {
        struct text gmid = member(row, "gmid");
        seen->gmid_string |= is_string(gmid);
        seen->gmid_large |= json_text_size(gmid) == 16;
        seen->indian_time |= strstr(string_of(row, "stime"), "(IST)") != NULL;
        seen->bool_string |= is_string(member(row, "iplay"));
        add(&seen->event_statuses, string_of(row, "status"));
        (void)string_of(row, "ename");
        assert_non_null(member(row, "etid").at);
        assert_non_null(member(row, "providerEventId").at);
        assert_non_null(member(row, "feed_source").at);
    }
}

static void check_change(const struct odds_change *change, uint32_t events, struct seen *seen)
{
    struct text document = {change->bytes, change->size};
    struct feed_report report;
    struct error error;
    if (feed_check(change->kind, "document", document, &report, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    if (document.size > seen->most_bytes)
        seen->most_bytes = document.size;
    seen->sno_fraction |= memmem(document.at, document.size, "\"sno\":2.1,", 10) != NULL;
    seen->escaped_name |= memmem(document.at, document.size, "\\u00", 4) != NULL;
    if (change->kind == ODDS_MARKETS) {
        check_markets(document, seen);
        return;
    }
    assert_int_equal(report.rows, events);
    assert_int_equal(report.without_id, 0);
    assert_int_equal(report.repeated, 0);
    check_rows(document, seen);
}

#define ASSERT_SEEN(texts, ...)                                                \
    do {                                                                       \
        static const char *const expected[] = {__VA_ARGS__};                   \
        for (size_t e = 0; e < sizeof expected / sizeof expected[0]; e++)      \
            if (!contains(&(texts), expected[e]))                              \
                fail_msg("never seen: '%s'", expected[e]);                     \
        assert_int_equal((texts).count, sizeof expected / sizeof expected[0]); \
    } while (0)

static void check_everything(const struct seen *seen, struct simulator *simulator)
{
    ASSERT_SEEN(seen->types, "match", "match1", "fancy", "fancy1", "fancy2", "oddeven");
    ASSERT_SEEN(seen->event_statuses, "OPEN", "SUSPENDED", "CLOSED", "SETTLE");
    assert_true(contains(&seen->market_statuses, "VOID") || seen->market_statuses.count == 4);
    assert_true(contains(&seen->market_statuses, "SUSPENDED"));
    assert_true(contains(&seen->market_statuses, "CLOSED"));
    assert_true(contains(&seen->market_statuses, "SETTLE"));
    ASSERT_SEEN(seen->runner_statuses, "ACTIVE", "WINNER", "LOSER", "PLACED", "REMOVED",
                "REMOVED_VACANT");
    ASSERT_SEEN(seen->section_statuses, "", "ACTIVE", "SUSPENDED", "Ball Running");
    assert_true(seen->selection_string && seen->selection_number && seen->selection_large);
    assert_true(seen->price1 && seen->dash && seen->capitals && seen->sno_fraction);
    assert_true(seen->gmid_string && seen->gmid_large && seen->indian_time && seen->bool_string);
    assert_true(seen->escaped_name);
    assert_in_range(seen->most_sections, 20, 40);
    assert_in_range(seen->most_runners, 14, 17);
    assert_in_range(seen->most_bytes, 20000, 60000);
    struct simulator_facts facts;
    simulator_facts(simulator, &facts);
    assert_true(facts.retired > 100);
}

TEST(an_hour_of_five_sports_is_sane_and_shows_everything)
{
    struct seen *seen = memory_alloc_zeroed(1, sizeof *seen);
    struct simulator *simulator = create(7, SPORT_SET_ALL, 12);
    for (int64_t second = 0; second < 3600 / tests_sample(); second++) {
        const struct odds_change *changes;
        size_t count;
        simulator_advance(simulator, START_MS + second * 1000, &changes, &count);
        for (size_t i = 0; i < count; i++)
            if (changes[i].bytes != NULL)
                check_change(&changes[i], 12, seen);
    }
    if (tests_sample() == 1)
        check_everything(seen, simulator);
    simulator_destroy(&simulator);
    memory_free(seen);
}

/* ---- rhythm ---------------------------------------------------------------------------------- */

static struct event_id first_event(const struct odds_change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (changes[i].kind == ODDS_MARKETS && changes[i].size > 100)
            return changes[i].event;
    fail_msg("nothing was published");
    return (struct event_id){0};
}

TEST(a_polled_event_moves_every_second_and_the_others_once_a_minute)
{
    struct simulator *simulator = create(4, SPORT_BIT(SPORT_FOOTBALL), 20);
    const struct odds_change *changes;
    size_t count, polled = 0, others = 0, catalogs = 0;
    simulator_advance(simulator, START_MS, &changes, &count);
    assert_int_equal(count, 21);
    struct event_id event = first_event(changes, count);
    struct buffer before = {0};
    /* Football's first event has a minute and a half to play. */
    for (int64_t second = 1; second <= 60; second++) {
        int64_t now_ms = START_MS + second * 1000;
        simulator_note_interest(simulator, SPORT_FOOTBALL, &event, now_ms - 9000);
        simulator_advance(simulator, now_ms, &changes, &count);
        for (size_t i = 0; i < count; i++) {
            if (changes[i].kind == ODDS_CATALOG) {
                catalogs++;
            } else if (!event_id_equals(&changes[i].event, &event)) {
                others++;
            } else {
                polled++;
                assert_false(before.size == changes[i].size &&
                             memcmp(before.data, changes[i].bytes, before.size) == 0);
                buffer_clear(&before);
                buffer_append(&before, changes[i].bytes, changes[i].size);
            }
        }
    }
    assert_int_equal(polled, 60);
    assert_in_range(others, 17, 40); /* each once, and again when it began or ended */
    assert_in_range(catalogs, 1, 10);
    buffer_free(&before);
    simulator_destroy(&simulator);
}

TEST(interest_wears_off)
{
    struct simulator *simulator = create(3, SPORT_BIT(SPORT_TENNIS), 1);
    const struct odds_change *changes;
    size_t count;
    simulator_advance(simulator, START_MS, &changes, &count);
    struct event_id event = first_event(changes, count);
    simulator_note_interest(simulator, SPORT_TENNIS, &event, START_MS);
    unsigned published = 0;
    for (int64_t second = 1; second <= 20; second++) {
        simulator_advance(simulator, START_MS + second * 1000, &changes, &count);
        published += (unsigned)count;
    }
    assert_in_range(published, 10, 12);
    simulator_destroy(&simulator);
}

TEST(what_was_not_published_is_offered_again)
{
    struct simulator *simulator = create(5, SPORT_SET_ALL, 3);
    const struct odds_change *changes;
    size_t count;
    for (int64_t second = 0; second < 5; second++) {
        simulator_advance(simulator, START_MS + second * 1000, &changes, &count);
        assert_int_equal(count, 5 * 4);
        if (second < 4)
            simulator_failed(simulator);
    }
    simulator_advance(simulator, START_MS + 5000, &changes, &count);
    assert_in_range(count, 0, 8);
    simulator_destroy(&simulator);
}

/* ---- events come and go ---------------------------------------------------------------------- */

TEST(a_new_event_comes_with_its_odds_and_an_old_one_takes_its_own_along)
{
    struct simulator *simulator = create(11, SPORT_BIT(SPORT_GREYHOUND_RACING), 6);
    struct texts *held = memory_alloc_zeroed(1, sizeof *held);
    struct texts *ever = memory_alloc_zeroed(1, sizeof *ever);
    for (int64_t second = 0; second < 1800; second++) {
        const struct odds_change *changes;
        size_t count;
        simulator_advance(simulator, START_MS + second * 1000, &changes, &count);
        const struct odds_change *catalog = NULL;
        bool came_or_went = false;
        for (size_t i = 0; i < count; i++) {
            const char *id = changes[i].event.digits;
            if (changes[i].kind == ODDS_CATALOG) {
                catalog = &changes[i];
            } else if (changes[i].bytes == NULL) {
                assert_true(contains(held, id));
                for (size_t h = 0; h < held->count; h++)
                    if (strcmp(held->items[h], id) == 0)
                        memcpy(held->items[h], held->items[--held->count], sizeof held->items[h]);
                came_or_went = true;
            } else if (!contains(held, id)) {
                assert_false(contains(ever, id)); /* an id is never given twice */
                add(held, id);
                add(ever, id);
                came_or_went = true;
            }
        }
        assert_int_equal(held->count, 6);
        assert_true(!came_or_went || catalog != NULL);
        for (size_t h = 0; catalog != NULL && h < held->count; h++)
            assert_non_null(
                memmem(catalog->bytes, catalog->size, held->items[h], strlen(held->items[h])));
    }
    assert_true(ever->count > 30);
    memory_free(held);
    memory_free(ever);
    simulator_destroy(&simulator);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void fingerprint(struct buffer *out, const struct odds_change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buffer_append(out, changes[i].bytes, changes[i].size);
}

TEST(the_same_seed_and_times_give_the_same_bytes)
{
    struct buffer runs[3] = {{0}, {0}, {0}};
    for (size_t run = 0; run < 3; run++) {
        struct simulator *simulator = create(run == 2 ? 8 : 9, SPORT_SET_ALL, 4);
        for (int64_t second = 0; second < 300; second++) {
            const struct odds_change *changes;
            size_t count;
            simulator_advance(simulator, START_MS + second * 1000, &changes, &count);
            fingerprint(&runs[run], changes, count);
        }
        simulator_destroy(&simulator);
    }
    assert_int_equal(runs[0].size, runs[1].size);
    assert_memory_equal(runs[0].data, runs[1].data, runs[0].size);
    assert_true(runs[2].size != runs[0].size ||
                memcmp(runs[2].data, runs[0].data, runs[0].size) != 0);
    for (size_t run = 0; run < 3; run++)
        buffer_free(&runs[run]);
}

TEST(polling_does_not_change_what_happens)
{
    struct buffer last[2] = {{0}, {0}};
    for (size_t run = 0; run < 2; run++) {
        struct simulator *simulator = create(9, SPORT_BIT(SPORT_CRICKET), 4);
        const struct odds_change *changes;
        size_t count;
        simulator_advance(simulator, START_MS, &changes, &count);
        struct event_id event = first_event(changes, count);
        for (int64_t second = 1; second <= 45; second++) {
            int64_t now_ms = START_MS + second * 1000;
            if (run == 1 || second == 45)
                simulator_note_interest(simulator, SPORT_CRICKET, &event, now_ms);
            simulator_advance(simulator, now_ms, &changes, &count);
            for (size_t i = 0; i < count && second == 45; i++)
                if (event_id_equals(&changes[i].event, &event))
                    buffer_append(&last[run], changes[i].bytes, changes[i].size);
        }
        simulator_destroy(&simulator);
    }
    assert_true(last[0].size > 1000);
    assert_int_equal(last[0].size, last[1].size);
    assert_memory_equal(last[0].data, last[1].data, last[0].size);
    buffer_free(&last[0]);
    buffer_free(&last[1]);
}

TEST(a_clock_that_leaps_leaves_events_where_they_are)
{
    struct simulator *simulator = create(9, SPORT_SET_ALL, 6);
    const struct odds_change *changes;
    size_t count;
    struct simulator_facts before, after;
    simulator_advance(simulator, START_MS, &changes, &count);
    simulator_facts(simulator, &before);
    static const int64_t leaps_ms[] = {86400000, -86400000, 3600000};
    for (size_t i = 0; i < 3; i++) {
        simulator_advance(simulator, START_MS + leaps_ms[i], &changes, &count);
        simulator_facts(simulator, &after);
        assert_int_equal(after.retired, 0);
        assert_int_equal(after.in_play, before.in_play);
    }
    /* And then time goes on. */
    for (int64_t second = 1; second <= 600; second++) {
        simulator_advance(simulator, START_MS + 3600000 + second * 1000, &changes, &count);
    }
    simulator_facts(simulator, &after);
    assert_true(after.retired > 0);
    simulator_destroy(&simulator);
}

/* The next tick that publishes the sport's catalog: how many minutes later; 0: none within ten. */
static unsigned minutes_to_catalog(struct simulator *simulator, enum sport sport, int64_t *now_ms)
{
    for (unsigned minutes = 1; minutes <= 10; minutes++) {
        const struct odds_change *changes;
        size_t count;
        *now_ms += 60000;
        simulator_advance(simulator, *now_ms, &changes, &count);
        for (size_t i = 0; i < count; i++)
            if (changes[i].kind == ODDS_CATALOG && changes[i].sport == sport)
                return minutes;
    }
    return 0;
}

TEST(the_feed_of_a_sport_stops_for_five_minutes_in_ten)
{
    const struct simulator_options options = {.seed = 3,
                                              .sports = SPORT_SET_ALL,
                                              .events = 4,
                                              .interval_ms = 1000,
                                              .standing = true,
                                              .interrupted = SPORT_BIT(SPORT_GREYHOUND_RACING)};
    struct simulator *simulator = simulator_create(&options, START_MS);
    int64_t now_ms = START_MS;
    for (int round = 0; round < 3; round++) {
        for (int minute = 1; minute < 5; minute++)
            assert_int_equal(1, minutes_to_catalog(simulator, SPORT_GREYHOUND_RACING, &now_ms));
        assert_int_equal(6, minutes_to_catalog(simulator, SPORT_GREYHOUND_RACING, &now_ms));
    }
    assert_int_equal(1, minutes_to_catalog(simulator, SPORT_CRICKET, &now_ms));
    simulator_destroy(&simulator);
}

/* A tour of the demo names them, and is read all day. */
TEST(a_standing_event_is_there_with_open_markets_for_a_day)
{
    const struct simulator_options options = {
        .seed = 4, .sports = SPORT_SET_ALL, .events = 1, .interval_ms = 1000, .standing = true};
    struct simulator *simulator = simulator_create(&options, START_MS);
    unsigned seen[SPORT_COUNT] = {0};
    for (int minute = 1; minute <= 24 * 60 / (int)tests_sample(); minute++) {
        const struct odds_change *changes;
        size_t count;
        simulator_advance(simulator, START_MS + minute * INT64_C(60000), &changes, &count);
        for (size_t i = 0; i < count; i++) {
            char id[24];
            (void)snprintf(id, sizeof id, "%d", SIMULATOR_STANDING_ID + changes[i].sport);
            if (changes[i].kind != ODDS_MARKETS ||
                !text_equals(event_id_text(&changes[i].event), text_of(id)))
                continue;
            assert_true(changes[i].size > 0); /* it is not withdrawn */
            assert_non_null(memmem(changes[i].bytes, changes[i].size, "\"OPEN\"", 6));
            seen[changes[i].sport]++;
        }
    }
    for (int sport = 0; sport < SPORT_COUNT; sport++)
        assert_true(seen[sport] > 24 * 60 / tests_sample() - 10);
    simulator_destroy(&simulator);
}

TEST(one_event_and_many_are_both_fine)
{
    const uint32_t counts[] = {1, 2, 300 / tests_sample()};
    for (size_t i = 0; i < 3; i++) {
        struct simulator *simulator = create(1, SPORT_SET_ALL, counts[i]);
        const struct odds_change *changes;
        size_t count;
        for (int64_t second = 0; second < 100; second += 10) {
            simulator_advance(simulator, START_MS + second * 1000, &changes, &count);
        }
        struct simulator_facts facts;
        simulator_facts(simulator, &facts);
        assert_int_equal(facts.events, counts[i] * SPORT_COUNT);
        simulator_destroy(&simulator);
    }
}
