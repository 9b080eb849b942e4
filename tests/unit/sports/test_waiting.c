/*
 * sports/waiting: when those who wait are looked at again, and that no one else is. Time is the
 * test's. What parks a request, and what answers it, stand here in small.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "sports/shared.h"
#include "sports/waiting.h"
#include "test_clock.h"
#include "tests.h"

#define POLLS 200
#define TURN 16  /* polls of one group, before another has its turn */
#define TICK 100 /* ms, by which a time that is over is noticed */

enum value { FIRST, SECOND, LIST, OTHER_SPORT, VALUES };

struct poll {
    struct http_request request; /* first */
    struct http_field_line prefer;
    char preference[16];
    enum value value;
    uint64_t mark; /* of the answer that its client has */
    bool shut;     /* its client's side */
    struct http_parked *parked;
    uint64_t since_ns;
    unsigned looks;
    int answer; /* 0: none yet */
    char applied[64];
    struct wait_group *leads; /* while its look is deferred */
};

struct odds_store {
    struct odds_watch *watch;
    enum status status;
    uint64_t stamp;
};

static struct {
    uv_loop_t loop;
    struct mailbox *mailbox;
    metrics_cell counters[16];
    struct odds_store store;
    struct sports *sports;
    struct waiting *waiting;
    struct {
        uint64_t mark;
        struct wait_group *group;
        unsigned noted;
    } values[VALUES];
    struct poll polls[POLLS];
    uint64_t epoch, right_until_ms;
    uint64_t look_ms; /* what each look takes */
    bool admits, draining;
    bool defers; /* the next look is not over at once */
    struct poll *deferred;
    unsigned looks;
    bool customer_has_all;
} world;

/* ---- what stands around it ------------------------------------------------------------------- */

enum status odds_store_stamp(struct odds_store *store, uint64_t *stamp)
{
    if (store->status == STATUS_OK)
        *stamp = store->stamp;
    return store->status;
}

void odds_store_watch(struct odds_store *store, struct odds_watch *watch)
{
    store->watch = watch;
}

bool http_park(struct http_parked *parked, struct http_request *request)
{
    struct poll *poll = (struct poll *)request;
    assert_null(poll->parked);
    if (poll->shut || world.draining)
        return false;
    poll->parked = parked;
    poll->since_ns = request->parked_ns > 0 ? request->parked_ns : clock_monotonic_ns();
    parked->connection = (struct http_connection *)(void *)poll;
    return true;
}

struct http_request *http_unpark(struct http_parked *parked)
{
    struct poll *poll = (struct poll *)(void *)parked->connection;
    assert_ptr_equal(poll->parked, parked);
    poll->parked = NULL;
    poll->request.parked_ns = poll->since_ns;
    poll->applied[0] = '\0';
    return &poll->request;
}

void http_request_add_field(struct http_request *request, struct text name, struct text value)
{
    struct poll *poll = (struct poll *)request;
    (void)snprintf(poll->applied, sizeof poll->applied, "%s: %.*s", name.at, (int)value.size,
                   value.at);
}

static struct odds_subject subject_of(enum value value)
{
    struct odds_subject subject = {.kind = value == LIST || value == OTHER_SPORT ? ODDS_CATALOG
                                                                                 : ODDS_MARKETS,
                                   .sport = value == OTHER_SPORT ? SPORT_CRICKET : SPORT_TENNIS};
    if (subject.kind == ODDS_MARKETS) {
        subject.event.size = 1;
        subject.event.digits[0] = value == FIRST ? '1' : '2';
    }
    return subject;
}

static enum value value_of(const struct odds_subject *subject)
{
    if (subject->sport == SPORT_CRICKET)
        return OTHER_SPORT;
    if (subject->kind == ODDS_CATALOG)
        return LIST;
    return subject->event.digits[0] == '1' ? FIRST : SECOND;
}

static struct wait_group *find_group(void *cache, const struct odds_subject *subject)
{
    return world.values[value_of(subject)].group;
}

static void note(void *cache, const struct odds_subject *subject, uint64_t now_ms)
{
    world.values[value_of(subject)].noted++;
}

static uint64_t mark_of(void *cache, const struct odds_subject *subject)
{
    return world.values[value_of(subject)].mark;
}

/* ---- the polls ------------------------------------------------------------------------------- */

static void end_look(struct poll *poll, struct wait_group *leads)
{
    uint64_t mark = world.values[poll->value].mark;
    bool there = world.store.status == STATUS_OK;
    waiting_led(world.waiting, leads, there ? WAIT_ANSWERED : WAIT_FAILED);
    struct wait_subject what = {.subject = subject_of(poll->value),
                                .place = &world.values[poll->value].group,
                                .mark = mark,
                                .sure = true};
    what.wanted_s = waiting_wanted_s(world.waiting, &poll->request);
    if (there && poll->mark == mark && what.wanted_s > 0 &&
        waiting_park(world.waiting, &what, &poll->request))
        return;
    assert_int_equal(poll->answer, 0); /* one answer each */
    poll->answer = !there ? 503 : poll->mark == mark ? 304 : 200;
}

static void look(struct poll *poll)
{
    struct wait_group *leads = waiting_take_lead(world.waiting, &poll->request);
    if (world.defers) {
        world.defers = false;
        world.deferred = poll;
        poll->leads = leads;
        return;
    }
    end_look(poll, leads);
}

static void resume(void *context, struct http_request *request)
{
    struct poll *poll = (struct poll *)request;
    assert_ptr_equal(context, &world);
    poll->looks++;
    world.looks++;
    if (world.look_ms > 0)
        test_clock_advance_ms(world.look_ms);
    if (world.admits)
        look(poll);
    else
        poll->answer = 403;
}

static uint64_t epoch(void *context)
{
    return world.epoch;
}

static uint64_t until_ms(void *context, const struct http_request *request)
{
    return world.right_until_ms;
}

/* A poll comes that has what there is of the value. */
static struct poll *come(unsigned number, enum value value, unsigned seconds)
{
    struct poll *poll = &world.polls[number];
    *poll = (struct poll){.value = value, .mark = world.values[value].mark};
    (void)snprintf(poll->preference, sizeof poll->preference, "wait=%u", seconds);
    poll->prefer = (struct http_field_line){text_of(poll->preference), HTTP_FIELD_PREFER};
    poll->request.lines = &poll->prefer;
    poll->request.line_count = 1;
    poll->request.field_count[HTTP_FIELD_PREFER] = 1;
    uv_update_time(&world.loop);
    look(poll);
    return poll;
}

static void many_come(unsigned first, unsigned count, enum value value)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(come(first + i, value, 50)->answer, 0);
}

static void turn(void)
{
    (void)uv_run(&world.loop, UV_RUN_NOWAIT);
}

/* Until nothing is left to do at this moment. */
static void settle(void)
{
    for (unsigned looks = world.looks + 1, idle = 0; idle < 4; idle++) {
        turn();
        if (looks != world.looks)
            idle = 0;
        looks = world.looks;
    }
}

static void pass(uint64_t ms)
{
    for (; ms > 0; ms -= ms < TICK ? ms : TICK) {
        test_clock_advance_ms(ms < TICK ? ms : TICK);
        settle();
    }
}

static void tell_of(enum value value)
{
    struct odds_subject subject = subject_of(value);
    world.store.watch->changed(world.store.watch, &subject, 1);
}

static void publish(enum value value)
{
    world.store.stamp++;
    world.values[value].mark++;
    tell_of(value);
}

static unsigned answered(unsigned first, unsigned count, int status)
{
    unsigned found = 0;
    for (unsigned i = first; i < first + count; i++)
        found += world.polls[i].answer == status ? 1 : 0;
    return found;
}

/* Who begins to listen is looked at once, as something may have been missed before, and by the
 * first tick, as of rights nothing is known yet: not a matter of the tests that begin with this. */
static void begin(unsigned count, enum value value)
{
    many_come(0, count, value);
    pass(2 * TICK);
    world.looks = 0;
    for (unsigned i = 0; i < count; i++)
        world.polls[i].looks = 0;
}

static bool begins(void *context, const struct http_request *request)
{
    return !world.customer_has_all;
}

static int set_up(void **state)
{
    memset(&world, 0, sizeof world);
    test_clock_stop();
    assert_int_equal(uv_loop_init(&world.loop), 0);
    world.mailbox = mailbox_create(&world.loop);
    world.sports = memory_alloc_zeroed(1, sizeof *world.sports);
    world.sports->odds = &world.store;
    world.sports->changes = changes_create(&world.store);
    atomic_store(&world.sports->waiting_max, POLLS);
    world.epoch = 1;
    world.right_until_ms = UINT64_MAX;
    world.admits = true;
    for (int i = 0; i < VALUES; i++)
        world.values[i].mark = 100;
    static const struct sports_waits waits = {
        .context = &world, .resume = resume, .epoch = epoch, .until_ms = until_ms, .begin = begins};
    const struct waiting_options options = {.sports = world.sports,
                                            .mailbox = world.mailbox,
                                            .counters = world.counters,
                                            .waits = &waits,
                                            .find = find_group,
                                            .note = note,
                                            .mark = mark_of};
    world.waiting = waiting_create(&options);
    return 0;
}

static int tear_down(void **state)
{
    world.draining = true;
    waiting_drain(world.waiting);
    settle();
    assert_int_equal(atomic_load(&world.sports->waiting), 0);
    for (int i = 0; i < VALUES; i++)
        assert_null(world.values[i].group);
    waiting_destroy(&world.waiting);
    changes_destroy(&world.sports->changes);
    memory_free(world.sports);
    mailbox_destroy(&world.mailbox);
    (void)uv_run(&world.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world.loop), 0);
    return 0;
}

static uint64_t counted(size_t counter)
{
    return atomic_load(&world.counters[counter]);
}

/* ---- time ------------------------------------------------------------------------------------ */

TEST_WITH(a_poll_is_answered_when_its_time_is_over, set_up, tear_down)
{
    struct poll *poll = come(0, FIRST, 2);
    settle();
    pass(1900);
    assert_int_equal(poll->answer, 0);
    pass(100 + TICK);
    assert_int_equal(poll->answer, 304);
    assert_string_equal(poll->applied, "Preference-Applied: wait=2");
    assert_int_equal(counted(SPORTS_WAITS), 1);
}

TEST_WITH(the_longest_wait_is_kept_to_the_second, set_up, tear_down)
{
    struct poll *poll = come(0, FIRST, 9999);
    pass(54900);
    assert_int_equal(poll->answer, 0);
    pass(100 + TICK);
    assert_int_equal(poll->answer, 304);
    assert_string_equal(poll->applied, "Preference-Applied: wait=55");
}

TEST_WITH(a_loop_that_stood_still_misses_no_end, set_up, tear_down)
{
    begin(3, FIRST);
    test_clock_advance_ms(UINT64_C(300000)); /* in one go, more than once around the wheel */
    settle();
    assert_int_equal(answered(0, 3, 304), 3);
}

TEST_WITH(a_right_that_ends_sooner_is_looked_at_when_it_does, set_up, tear_down)
{
    world.right_until_ms = clock_loop_ms(&world.loop) + 3000;
    struct poll *poll = come(0, FIRST, 50);
    pass(200);
    world.admits = false;
    pass(2700);
    assert_int_equal(poll->answer, 0);
    pass(100 + TICK);
    assert_int_equal(poll->answer, 403);
}

/* ---- changes --------------------------------------------------------------------------------- */

TEST_WITH(a_change_wakes_those_who_wait_for_it_and_no_one_else, set_up, tear_down)
{
    begin(3, FIRST);
    many_come(3, 3, SECOND);
    many_come(6, 3, LIST);
    publish(SECOND);
    settle();
    assert_int_equal(answered(3, 3, 200), 3);
    assert_int_equal(answered(0, 3, 0) + answered(6, 3, 0), 6);
    assert_int_equal(world.looks, 3);
    for (unsigned i = 3; i < 6; i++)
        assert_string_equal(world.polls[i].applied, "Preference-Applied: wait=50");
}

TEST_WITH(the_same_answer_again_has_one_look_and_disturbs_no_one_else, set_up, tear_down)
{
    begin(50, FIRST);
    for (unsigned i = 1; i <= 5; i++) {
        tell_of(FIRST);
        settle();
        assert_int_equal(world.looks, i);
    }
    assert_int_equal(answered(0, 50, 0), 50);
    publish(FIRST); /* and they are all still there */
    settle();
    assert_int_equal(answered(0, 50, 200), 50);
}

TEST_WITH(a_catalog_has_its_events_looked_at_and_no_other_sports, set_up, tear_down)
{
    begin(2, FIRST);
    many_come(2, 2, SECOND);
    many_come(4, 2, LIST);
    many_come(6, 2, OTHER_SPORT);
    publish(LIST);
    settle();
    assert_int_equal(answered(4, 2, 200), 2);
    assert_int_equal(answered(0, 4, 0), 4); /* their rows are the same: one of each has looked */
    assert_int_equal(world.polls[0].looks + world.polls[1].looks, 1);
    assert_int_equal(world.polls[2].looks + world.polls[3].looks, 1);
    assert_int_equal(world.polls[6].looks + world.polls[7].looks, 0);
}

TEST_WITH(who_comes_after_a_change_waits_for_the_next, set_up, tear_down)
{
    begin(2, FIRST);
    publish(FIRST);
    struct poll *late = come(2, FIRST, 50); /* has the new one, before the others were looked at */
    settle();
    assert_int_equal(answered(0, 2, 200), 2);
    assert_int_equal(late->answer, 0);
    publish(FIRST);
    settle();
    assert_int_equal(late->answer, 200);
}

TEST_WITH(more_changes_than_are_remembered_have_everything_looked_at, set_up, tear_down)
{
    begin(2, FIRST);
    many_come(2, 2, OTHER_SPORT);
    world.values[OTHER_SPORT].mark++;
    for (unsigned i = 0; i < 9000; i++)
        tell_of(SECOND);
    settle();
    assert_int_equal(answered(2, 2, 200), 2);
    assert_int_equal(answered(0, 2, 0), 2);
}

TEST_WITH(the_first_to_wait_misses_no_change_of_that_moment, set_up, tear_down)
{
    struct poll *poll = come(0, FIRST, 50); /* no one listened before */
    world.values[FIRST].mark++;             /* and so this was not reported */
    settle();
    assert_int_equal(poll->answer, 200);
}

/* ---- slices ---------------------------------------------------------------------------------- */

TEST_WITH(a_crowd_is_answered_in_slices_beside_others, set_up, tear_down)
{
    begin(150, FIRST);
    many_come(150, 3, SECOND);
    world.look_ms = 1; /* a slice is over after a turn */
    publish(FIRST);
    publish(SECOND);
    for (unsigned turns = 0; answered(150, 3, 200) < 3; turns++) {
        unsigned before = world.looks;
        assert_true(turns < 5);
        turn();
        assert_true(world.looks - before <= TURN + 1); /* and the one who leads */
    }
    assert_true(answered(0, 150, 200) <= 3 * (TURN + 1));
    settle();
    assert_int_equal(answered(0, 150, 200), 150);
    assert_int_equal(world.looks, 153);
}

/* ---- leaders --------------------------------------------------------------------------------- */

TEST_WITH(the_others_wait_for_what_a_leader_finds, set_up, tear_down)
{
    begin(20, FIRST);
    world.defers = true;
    publish(FIRST);
    settle();
    assert_int_equal(world.looks, 1);
    publish(FIRST); /* meanwhile: it has to be looked at once more, and is then the newest */
    settle();
    assert_int_equal(world.looks, 1);
    end_look(world.deferred, world.deferred->leads);
    settle();
    assert_int_equal(answered(0, 20, 200), 20);
    assert_int_equal(world.looks, 20);
}

TEST_WITH(another_leads_when_the_leader_is_gone, set_up, tear_down)
{
    begin(5, FIRST);
    world.defers = true;
    publish(FIRST);
    settle();
    waiting_led(world.waiting, world.deferred->leads, WAIT_GONE);
    world.deferred->answer = -1;
    settle();
    assert_int_equal(answered(0, 5, 200), 4);
}

TEST_WITH(a_leader_that_is_not_admitted_leaves_the_look_to_another, set_up, tear_down)
{
    begin(3, FIRST);
    world.admits = false;
    publish(FIRST);
    turn();
    turn();
    assert_int_equal(answered(0, 3, 403) + answered(0, 3, 0), 3);
    settle();
    assert_int_equal(answered(0, 3, 403), 3); /* each by its own look */
}

/* ---- what else ends a wait ------------------------------------------------------------------- */

TEST_WITH(a_client_that_has_gone_is_forgotten, set_up, tear_down)
{
    begin(3, FIRST);
    struct http_parked *parked = world.polls[1].parked;
    world.polls[1].parked = NULL;
    parked->gone(parked);
    assert_int_equal(counted(SPORTS_WAITS_GONE), 1);
    assert_int_equal(atomic_load(&world.sports->waiting), 2);
    publish(FIRST);
    settle();
    assert_int_equal(world.polls[1].looks, 0);
    assert_int_equal(answered(0, 3, 200), 2);
}

TEST_WITH(all_of_a_group_may_go_while_it_is_to_be_looked_at, set_up, tear_down)
{
    begin(2, FIRST);
    publish(FIRST);
    turn(); /* the change has come; no one was looked at */
    for (unsigned i = 0; i < 2; i++) {
        struct http_parked *parked = world.polls[i].parked;
        world.polls[i].parked = NULL;
        parked->gone(parked);
    }
    assert_null(world.values[FIRST].group);
    settle();
    assert_int_equal(world.looks, 0);
}

TEST_WITH(a_client_that_has_shut_its_side_is_answered_at_once, set_up, tear_down)
{
    begin(2, FIRST);
    world.polls[0].shut = true;
    world.polls[0].parked->ended(world.polls[0].parked);
    settle();
    assert_int_equal(world.polls[0].answer, 304);
    assert_int_equal(world.polls[1].answer, 0);
    assert_int_equal(world.looks, 1);
}

TEST_WITH(a_drain_answers_all, set_up, tear_down)
{
    begin(40, FIRST);
    many_come(40, 5, LIST);
    world.draining = true;
    waiting_drain(world.waiting);
    settle();
    assert_int_equal(answered(0, 45, 304), 45);
}

TEST_WITH(a_store_that_is_away_ends_all_waits_within_a_tick, set_up, tear_down)
{
    begin(3, FIRST);
    many_come(3, 3, OTHER_SPORT);
    world.store.status = STATUS_UNAVAILABLE;
    pass(TICK);
    assert_int_equal(answered(0, 6, 503), 6);
}

TEST_WITH(a_doubt_disturbs_no_one_and_is_looked_into_when_it_is_over, set_up, tear_down)
{
    begin(3, FIRST);
    world.store.status = STATUS_PENDING;
    world.values[FIRST].mark++; /* which is not heard of */
    pass(1000);
    assert_int_equal(world.looks, 0);
    world.store.status = STATUS_OK;
    pass(TICK);
    assert_int_equal(answered(0, 3, 200), 3);
}

TEST_WITH(all_are_judged_again_when_rights_have_changed, set_up, tear_down)
{
    begin(3, FIRST);
    pass(1000);
    assert_int_equal(world.looks, 0);
    world.epoch++;
    pass(TICK);
    assert_int_equal(world.looks, 3);
    assert_int_equal(answered(0, 3, 0), 3); /* they may still */
    world.epoch++;
    world.admits = false;
    pass(TICK);
    assert_int_equal(answered(0, 3, 403), 3);
}

/* ---- bounds and interest --------------------------------------------------------------------- */

TEST_WITH(over_the_most_no_one_waits_but_who_does_already, set_up, tear_down)
{
    atomic_store(&world.sports->waiting_max, 2);
    begin(2, FIRST);
    assert_int_equal(come(2, FIRST, 50)->answer, 304);
    assert_int_equal(counted(SPORTS_WAITS_REFUSED), 1);
    atomic_store(&world.sports->waiting_max, 1);
    world.customer_has_all = true;
    tell_of(FIRST); /* who is looked at and goes on waiting takes no one's place */
    settle();
    assert_int_equal(answered(0, 2, 0), 2);
    assert_int_equal(atomic_load(&world.sports->waiting), 2);
    assert_int_equal(counted(SPORTS_WAITS), 2);
    atomic_store(&world.sports->waiting_max, POLLS);
    assert_int_equal(come(3, FIRST, 50)->answer, 304);
    assert_int_equal(atomic_load(&world.sports->waiting), 2);
}

TEST_WITH(interest_is_noted_once_a_second_however_many_wait, set_up, tear_down)
{
    begin(30, FIRST);
    many_come(30, 1, SECOND);
    pass(5050);
    assert_in_range(world.values[FIRST].noted, 4, 5);
    assert_in_range(world.values[SECOND].noted, 4, 5);
    assert_int_equal(world.values[LIST].noted, 0);
}
