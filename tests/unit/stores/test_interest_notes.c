/* Interest in events, between those who note it and the one that writes it. */
#include "stores/odds/interest_notes.h"
#include "test_clock.h"
#include "tests.h"

static bool note(struct odds_notes *notes, const char *digits)
{
    struct event_id event;
    assert_int_equal(event_id_parse(text_of(digits), &event), STATUS_OK);
    return odds_notes_add(notes, SPORT_CRICKET, &event);
}

/* What is taken now: at most one event, "" for none. */
static const char *taken(struct odds_notes *notes)
{
    const struct odds_note *list = NULL;
    size_t count = odds_notes_take(notes, &list);
    assert_true(count <= 1);
    return count == 0 ? "" : list[0].event.digits;
}

TEST(a_new_event_can_be_taken_at_once)
{
    struct odds_notes *notes = odds_notes_create();
    assert_true(note(notes, "1"));
    assert_false(note(notes, "1")); /* it has not been taken yet */
    assert_string_equal(taken(notes), "1");
    test_clock_advance_ms(100);
    assert_true(note(notes, "2"));
    assert_string_equal(taken(notes), "2");
    odds_notes_destroy(&notes);
}

TEST(an_event_is_taken_once_a_second)
{
    struct odds_notes *notes = odds_notes_create();
    assert_true(note(notes, "1"));
    assert_string_equal(taken(notes), "1");
    for (int i = 0; i < 9; i++) {
        test_clock_advance_ms(100);
        assert_false(note(notes, "1"));
        assert_string_equal(taken(notes), "");
    }
    test_clock_advance_ms(100);
    assert_string_equal(taken(notes), "1");
    test_clock_advance_ms(1000);
    assert_string_equal(taken(notes), ""); /* no one has asked any more */
    assert_true(note(notes, "1"));
    assert_string_equal(taken(notes), "1");
    odds_notes_destroy(&notes);
}

TEST(the_time_is_that_of_the_last_note)
{
    struct odds_notes *notes = odds_notes_create();
    const struct odds_note *list = NULL;
    (void)note(notes, "1");
    assert_int_equal(odds_notes_take(notes, &list), 1);
    int64_t first_ms = list[0].requested_ms;
    test_clock_advance_ms(400);
    (void)note(notes, "1");
    test_clock_advance_ms(600);
    assert_int_equal(odds_notes_take(notes, &list), 1);
    assert_int_equal(list[0].requested_ms, first_ms + 400);
    odds_notes_destroy(&notes);
}

static int stop_the_clock(void **state)
{
    test_clock_stop();
    return 0;
}

TESTS_WITH(stop_the_clock, NULL);
