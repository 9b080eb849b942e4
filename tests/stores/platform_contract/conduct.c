/*
 * The contract of conduct: facts in, verdicts out. Each scene is a table of facts and the checks that it passes and
 * fails; no other check has seen anything.
 */
#include "platform_contract/contract.h"
#include "stores/platform_usage.h"

#define SCENE_MAX 16

struct scene {
    const char *what;
    bool provider;
    int64_t now_ms;
    const char *passes[4], *fails[2]; /* NULL-terminated */
    const char *shown;                /* the first request that shows the failure, or the pass */
    struct conduct_fact facts[SCENE_MAX];
};

/* Requests take 10 ms. */
#define FACT(id_, from_, act_, status_, ...)                                            \
    {                                                                                   \
        .request_id = id_, .from_ms = (from_), .until_ms = (from_) + 10, .act = (act_), \
        .status = (status_), __VA_ARGS__                                                \
    }
#define DEBIT(id_, from_, status_, ...) FACT(id_, from_, LEDGER_DEBIT, status_, __VA_ARGS__)
#define CREDIT(id_, from_, status_, ...) FACT(id_, from_, LEDGER_CREDIT, status_, __VA_ARGS__)
#define ROLLBACK(id_, from_, status_, ...) FACT(id_, from_, LEDGER_ROLLBACK, status_, __VA_ARGS__)
#define BALANCE(id_, from_, ...) FACT(id_, from_, LEDGER_BALANCE, 200, __VA_ARGS__)
#define POLL(id_, from_, status_, ...) FACT(id_, from_, CONDUCT_POLL, status_, __VA_ARGS__)
/* Of a client that wants to wait for 55 seconds. */
#define WAIT(id_, from_, until_, status_, waited_)                                        \
    {                                                                                     \
        .request_id = id_, .from_ms = (from_), .until_ms = (until_), .act = CONDUCT_POLL, \
        .status = (status_), .wanted_s = 55, .waited_ms = (waited_), .names_tag = 1       \
    }
#define TAG .names_tag = 1

static const struct scene scenes[] = {
    {.what = "nothing was seen"},
    {.what = "a retry with the same content",
     .passes = {"unknown-outcome", "one-content"},
     .facts = {CREDIT("a", 0, 0, .subject = 1, .content = 5),
               CREDIT("b", 100, 200, .subject = 1, .content = 5)}},
    {.what = "a retry with other content",
     .passes = {"one-content"},
     .fails = {"unknown-outcome"},
     .shown = "b",
     .facts = {CREDIT("a", 0, 0, .subject = 1, .content = 5),
               CREDIT("b", 100, 409, .reason = "transaction_conflict", .subject = 1,
                      .content = 6)}},
    {.what = "a credit that was given up",
     .now_ms = 61000,
     .passes = {"one-content"},
     .fails = {"unknown-outcome"},
     .shown = "a",
     .facts = {CREDIT("a", 0, 0, .subject = 1, .content = 5)}},
    {.what = "a credit that may yet be sent again",
     .now_ms = 60000,
     .passes = {"one-content"},
     .facts = {CREDIT("a", 0, 0, .subject = 1, .content = 5)}},
    {.what = "an id for two requests",
     .fails = {"one-content"},
     .shown = "b",
     .facts = {CREDIT("a", 0, 200, .subject = 1, .content = 5),
               CREDIT("b", 99000, 409, .reason = "transaction_conflict", .subject = 1,
                      .content = 6)}},
    {.what = "an id that stayed free",
     .passes = {"one-content"},
     .facts = {DEBIT("a", 0, 422, .subject = 1, .content = 5),
               DEBIT("b", 100, 200, .subject = 1, .content = 6)}},
    {.what = "a debit that was rolled back",
     .now_ms = 100000,
     .passes = {"unknown-outcome", "one-content", "unanswered-debit"},
     .facts = {DEBIT("a", 0, 0, .subject = 1, .content = 5),
               ROLLBACK("b", 60010, 200, .subject = 2, .reference = 1)}},
    {.what = "a debit that was forgotten",
     .now_ms = 60011,
     .passes = {"one-content"},
     .fails = {"unanswered-debit"},
     .shown = "a",
     .facts = {DEBIT("a", 0, 0, .subject = 1, .content = 5)}},
    {.what = "a debit that was rolled back late",
     .passes = {"unknown-outcome", "one-content"},
     .fails = {"unanswered-debit"},
     .shown = "b",
     .facts = {DEBIT("a", 0, 0, .subject = 1, .content = 5),
               ROLLBACK("b", 60011, 200, .subject = 2, .reference = 1)}},
    {.what = "a win after its bet",
     .passes = {"one-content", "win-after-bet"},
     .facts = {DEBIT("a", 0, 200, .subject = 1),
               CREDIT("b", 10, 200, .subject = 2, .reference = 1)}},
    {.what = "a win of a bet that was declined",
     .passes = {"one-content"},
     .fails = {"win-after-bet"},
     .shown = "b",
     .facts = {DEBIT("a", 0, 422, .subject = 1),
               CREDIT("b", 10, 422, .subject = 2, .reference = 1)}},
    {.what = "a win of a bet that was never sent",
     .passes = {"one-content"},
     .fails = {"win-after-bet"},
     .facts = {CREDIT("b", 10, 404, .reason = "reference_not_found", .subject = 2,
                      .reference = 1)}},
    {.what = "a win before the retry of its bet was answered",
     .passes = {"unknown-outcome", "one-content", "unanswered-debit"},
     .fails = {"win-after-bet"},
     .facts = {DEBIT("a", 0, 0, .subject = 1), CREDIT("b", 20, 200, .subject = 2, .reference = 1),
               DEBIT("c", 30, 200, .subject = 1)}},
    {.what = "a win of a bet from before all that is known",
     .passes = {"one-content", "win-after-bet"},
     .facts = {CREDIT("b", 10, 200, .subject = 2, .reference = 1)}},
    {.what = "a pause that was kept",
     .passes = {"one-content", "retry-after"},
     .facts = {DEBIT("a", 0, 503, .subject = 1, .pause_s = 1),
               DEBIT("b", 5, 200, .subject = 1), /* under way already */
               DEBIT("c", 100, 200, .subject = 2), DEBIT("d", 1010, 200, .subject = 1)}},
    {.what = "a pause that was not",
     .passes = {"one-content"},
     .fails = {"retry-after"},
     .shown = "b",
     .facts = {DEBIT("a", 0, 503, .subject = 1, .pause_s = 1), DEBIT("b", 500, 200, .subject = 1)}},
    {.what = "polls with the tag, but for two at a start",
     .passes = {"conditional-polls"},
     .shown = "i",
     .facts = {POLL("0", 0, 200, .lost = 0), POLL("a", 100, 304, TAG), POLL("b", 200, 304, TAG),
               POLL("c", 300, 304, TAG), POLL("d", 400, 304, TAG), POLL("e", 500, 200, .lost = 0),
               POLL("f", 600, 304, TAG), POLL("g", 700, 304, TAG), POLL("h", 800, 200, .lost = 0),
               POLL("i", 900, 304, TAG), POLL("j", 1000, 304, TAG)}},
    {.what = "polls without the tag",
     .fails = {"conditional-polls"},
     .facts = {POLL("0", 0, 200, .lost = 0), POLL("a", 100, 200, .lost = 0),
               POLL("b", 200, 200, .lost = 0), POLL("c", 300, 200, .lost = 0),
               POLL("d", 400, 200, .lost = 0), POLL("e", 500, 200, .lost = 0),
               POLL("f", 600, 200, .lost = 0), POLL("g", 700, 200, .lost = 0),
               POLL("h", 800, 200, .lost = 0), POLL("i", 900, 200, .lost = 0),
               POLL("j", 1000, 200, .lost = 0)}},
    {.what = "polls that have no tag to name",
     .facts = {POLL("0", 0, 404, .lost = 0), POLL("a", 100, 404, .lost = 0),
               POLL("b", 200, 404, .lost = 0), POLL("c", 300, 404, .lost = 0),
               POLL("d", 400, 404, .lost = 0), POLL("e", 500, 404, .lost = 0),
               POLL("f", 600, 404, .lost = 0), POLL("g", 700, 404, .lost = 0),
               POLL("h", 800, 404, .lost = 0), POLL("i", 900, 404, .lost = 0)}},
    {.what = "waits, one of which a stop cut short",
     .passes = {"conditional-polls", "waiting-polls"},
     .facts = {POLL("0", 0, 200, .lost = 0), WAIT("a", 100, 9000, 200, 8900),
               WAIT("b", 9001, 9500, 304, 499), WAIT("c", 9501, 15000, 200, 5499),
               WAIT("d", 15001, 19000, 200, 3999)}},
    {.what = "waits that are given up and begun again",
     .passes = {"conditional-polls"},
     .fails = {"waiting-polls"},
     .facts = {POLL("0", 0, 200, .lost = 0), WAIT("a", 100, 1000, 304, 900),
               WAIT("b", 1001, 2000, 304, 999), WAIT("c", 2001, 3000, 304, 999),
               WAIT("d", 3001, 4000, 304, 999)}},
    {.what = "waits that found no room, without a pause",
     .passes = {"conditional-polls"},
     .fails = {"waiting-polls"},
     .facts = {POLL("0", 0, 200, .lost = 0), WAIT("a", 100, 110, 304, 0),
               WAIT("b", 120, 130, 304, 0), WAIT("c", 140, 150, 304, 0),
               WAIT("d", 160, 170, 304, 0)}},
    {.what = "waits that found no room, with a pause",
     .passes = {"conditional-polls", "waiting-polls"},
     .facts = {POLL("0", 0, 200, .lost = 0), WAIT("a", 100, 110, 304, 0),
               WAIT("b", 1110, 1120, 304, 0), WAIT("c", 2120, 2130, 304, 0),
               WAIT("d", 3130, 3140, 304, 0)}},
#define CONNECTIONS(now_, passes_, fails_, connection_)       \
    .now_ms = (now_), .passes = {passes_}, .fails = {fails_}, \
    .facts = {BALANCE("0", 0, .connection = CONDUCT_FIRST),   \
              BALANCE("a", 100, connection_),                 \
              BALANCE("b", 200, connection_),                 \
              BALANCE("c", 300, connection_),                 \
              BALANCE("d", 400, connection_),                 \
              BALANCE("e", 500, connection_),                 \
              BALANCE("f", 600, connection_),                 \
              BALANCE("g", 700, connection_),                 \
              BALANCE("h", 800, connection_),                 \
              BALANCE("i", 900, connection_),                 \
              BALANCE("j", 1000, connection_)}
    {.what = "one connection",
     CONNECTIONS(100000, "connections", NULL, .connection = CONDUCT_KEPT)},
    {.what = "a connection a request",
     CONNECTIONS(100000, NULL, "connections", .connection = CONDUCT_FIRST)},
    {.what = "connections that may be kept yet",
     CONNECTIONS(60900, NULL, NULL, .connection = CONDUCT_FIRST)},
    {.what = "connections of a proxy", CONNECTIONS(100000, NULL, NULL, .connection = 0)},
    {.what = "no further bet",
     .passes = {"one-content", "player-blocked"},
     .facts = {DEBIT("a", 0, 403, .reason = "player_blocked", .subject = 1, .player = 8),
               DEBIT("b", 900, 200, .subject = 2, .player = 9),
               DEBIT("c", 100000, 403, .reason = "player_blocked", .subject = 3, .player = 8)}},
    {.what = "a further bet of a blocked player",
     .passes = {"one-content"},
     .fails = {"player-blocked"},
     .shown = "c",
     .facts = {DEBIT("a", 0, 403, .reason = "player_blocked", .subject = 1, .player = 8),
               DEBIT("b", 50, 403, .reason = "player_blocked", .subject = 2, .player = 8),
               DEBIT("c", 900, 403, .reason = "player_blocked", .subject = 3, .player = 8)}},
    {.what = "a further bet of a launch that is too old",
     .provider = true,
     .passes = {"one-content", "signatures"},
     .fails = {"session-expired"},
     .shown = "b",
     .facts = {DEBIT("a", 0, 422, .reason = "session_expired", .subject = 1, .player = 8),
               DEBIT("b", 900, 422, .reason = "session_expired", .subject = 2, .player = 8)}},
    {.what = "a bet of a new launch",
     .provider = true,
     .passes = {"one-content", "session-expired", "signatures"},
     .facts = {DEBIT("a", 0, 422, .reason = "session_expired", .subject = 1, .player = 8),
               DEBIT("b", 900, 422, .reason = "session_expired", .subject = 2, .player = 9)}},
    {.what = "a call that is not signed",
     .provider = true,
     .fails = {"signatures"},
     .facts = {BALANCE("a", 0, .lost = 0), BALANCE("b", 50, .reason = "signature")}},
    {.what = "rounds that end in each of the ways",
     .provider = true,
     .now_ms = 900000,
     .passes = {"one-content", "win-after-bet", "signatures", "rounds"},
     .facts = {DEBIT("a", 0, 200, .subject = 1, .round = 1),
               CREDIT("b", 50, 200, .subject = 2, .reference = 1, .round = 1),
               DEBIT("c", 100, 200, .ends_round = 1, .subject = 3, .round = 2),
               DEBIT("d", 150, 200, .subject = 4, .round = 3),
               CREDIT("e", 200, 200, .ends_round = 1, .subject = 5, .round = 3),
               DEBIT("f", 250, 200, .subject = 6, .round = 4),
               ROLLBACK("g", 300, 200, .subject = 7, .reference = 6),
               DEBIT("h", 350, 200, .subject = 8, .round = 5)}}, /* it may go on */
    {.what = "a round that a win leaves open",
     .provider = true,
     .now_ms = 60070,
     .passes = {"one-content", "signatures"},
     .fails = {"rounds"},
     .shown = "a",
     .facts = {DEBIT("a", 0, 200, .subject = 1, .round = 1),
               CREDIT("b", 50, 200, .subject = 2, .round = 1)}},
};

static bool names(const char *const *list, size_t room, const char *check)
{
    for (size_t i = 0; i < room && list[i] != NULL; i++)
        if (strcmp(list[i], check) == 0)
            return true;
    return false;
}

/* A sandbox customer or provider. */
static void add_caller(struct fixture *fixture, const char *id)
{
    struct customer_record one = customer(id, "One");
    struct provider_record other = provider(id);
    one.sandbox = other.sandbox = true;
    if (ledger_owner_is_provider(id))
        OK(platform_add(fixture->store, &provider_table, &other, &fixture->error));
    else
        OK(platform_add(fixture->store, &customer_table, &one, &fixture->error));
}

/* What is read of one caller. */
struct judged {
    const struct scene *scene;
    size_t count;
};

static bool assert_verdict(void *context, const void *record)
{
    struct judged *judged = context;
    const struct scene *scene = judged->scene;
    const struct conduct_verdict *verdict = record;
    const char *expected = names(scene->fails, 2, verdict->texts[CONDUCT_CHECK])    ? "fail"
                           : names(scene->passes, 4, verdict->texts[CONDUCT_CHECK]) ? "pass"
                                                                                    : "not seen";
    judged->count++;
    if (strcmp(verdict->texts[CONDUCT_RESULT], expected) != 0)
        fail_msg("%s: %s: %s", scene->what, verdict->texts[CONDUCT_CHECK],
                 verdict->texts[CONDUCT_RESULT]);
    assert_true(verdict->texts[CONDUCT_MEANING][0] != '\0');
    assert_int_equal(verdict->texts[CONDUCT_REQUESTS][0] != '\0',
                     strcmp(expected, "not seen") != 0);
    if (scene->shown != NULL && names(scene->fails, 2, verdict->texts[CONDUCT_CHECK]))
        assert_string_equal(verdict->texts[CONDUCT_REQUESTS], scene->shown);
    return true;
}

/* Adds the facts one by one, backwards: other instances may write earlier ones later. */
static void add_scene(struct fixture *fixture, const struct scene *scene, const char *caller)
{
    size_t count = 0;
    while (count < SCENE_MAX && scene->facts[count].request_id[0] != '\0')
        count++;
    for (size_t i = count; i-- > 0;) {
        struct conduct_fact fact = scene->facts[i];
        (void)snprintf(fact.caller, sizeof fact.caller, "%s", caller);
        OK(platform_conduct_add(fixture->store, &fact, 1, &fixture->error));
    }
}

TEST_OF(fixture, every_check_passes_fails_and_sees_nothing)
{
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
            struct judged judged = {.scene = &scenes[i]};
            char caller[32];
            (void)snprintf(caller, sizeof caller, "%s%zu", scenes[i].provider ? "p-" : "cus_", i);
            if (turn == 0) {
                add_caller(fixture, caller);
                add_scene(fixture, &scenes[i], caller);
                continue;
            }
            OK(platform_conduct_judge(fixture->store, caller, scenes[i].now_ms, assert_verdict,
                                      &judged, &fixture->error));
            assert_int_equal(judged.count, scenes[i].provider ? 10 : 9);
        }
}

static bool take_last(void *context, const void *record)
{
    *(struct conduct_verdict *)context = *(const struct conduct_verdict *)record;
    return true;
}

TEST_OF(fixture, requests_that_were_not_looked_at_are_counted)
{
    struct conduct_verdict verdict;
    add_caller(fixture, "cus_1");
    const struct conduct_fact facts[] = {
        {.caller = "cus_1", .lost = 2}, {.caller = "cus_1"}, {.caller = "cus_1", .lost = 3}};
    OK(platform_conduct_add(fixture->store, facts, 3, &fixture->error));
    OK(platform_conduct_judge(fixture->store, "cus_1", 0, take_last, &verdict, &fixture->error));
    assert_string_equal(verdict.texts[CONDUCT_CHECK], "not-looked-at");
    assert_string_equal(verdict.texts[CONDUCT_RESULT], "5");
}

static bool take_second(void *context, const void *record)
{
    const struct conduct_verdict *verdict = record;
    if (strcmp(verdict->texts[CONDUCT_CHECK], "one-content") != 0)
        return true;
    *(struct conduct_verdict *)context = *verdict;
    return false;
}

static struct conduct_verdict second(struct fixture *fixture, const char *caller)
{
    struct conduct_verdict verdict = {{{0}}};
    OK(platform_conduct_judge(fixture->store, caller, 0, take_second, &verdict, &fixture->error));
    return verdict;
}

TEST_OF(fixture, the_newest_facts_of_a_caller_are_kept_and_four_requests_shown)
{
    static struct conduct_fact facts[CONDUCT_FACTS_MAX + 1];
    add_caller(fixture, "cus_1");
    add_caller(fixture, "cus_2");
    for (size_t i = 0; i <= CONDUCT_FACTS_MAX; i++) {
        facts[i] = (struct conduct_fact)CREDIT("", (int64_t)i, 200, .subject = (int64_t)i,
                                               .caller = "cus_1");
        (void)snprintf(facts[i].request_id, CONDUCT_REQUEST_SIZE, "request-%05u",
                       (unsigned)i % 100000);
    }
    (void)snprintf(facts[1].reason, CONDUCT_REASON_SIZE, "transaction_conflict");
    facts[1].subject = 0;
    facts[1].content = 1;
    OK(platform_conduct_add(fixture->store, facts, CONDUCT_FACTS_MAX, &fixture->error));
    assert_string_equal(second(fixture, "cus_1").texts[CONDUCT_RESULT], "fail");
    assert_string_equal(second(fixture, "cus_1").texts[CONDUCT_REQUESTS], "request-00001");
    OK(platform_conduct_add(fixture->store, &facts[CONDUCT_FACTS_MAX], 1, &fixture->error));
    assert_string_equal(second(fixture, "cus_1").texts[CONDUCT_RESULT],
                        "pass"); /* the first one is gone */
    assert_string_equal(second(fixture, "cus_1").texts[CONDUCT_REQUESTS],
                        "request-10000\nrequest-09999\nrequest-09998\nrequest-09997");
    (void)snprintf(facts[0].caller, sizeof facts[0].caller, "cus_2");
    OK(platform_conduct_add(fixture->store, facts, 1, &fixture->error));
    OK(platform_conduct_reset(fixture->store, "cus_1", &fixture->error));
    assert_string_equal(second(fixture, "cus_1").texts[CONDUCT_RESULT], "not seen");
    assert_string_equal(second(fixture, "cus_2").texts[CONDUCT_RESULT], "pass");
    struct customer_record real = customer("cus_3", "Real");
    OK(platform_add(fixture->store, &customer_table, &real, &fixture->error));
    for (size_t i = 0; i < 2; i++) {
        const char *whose = i == 0 ? "cus_3" : "nobody";
        assert_int_equal(
            platform_conduct_judge(fixture->store, whose, 0, take_last, facts, &fixture->error),
            STATUS_NOT_FOUND);
        assert_int_equal(platform_conduct_reset(fixture->store, whose, &fixture->error),
                         STATUS_NOT_FOUND);
    }
}
