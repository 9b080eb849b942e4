/* sports/changes: whoever listens hears of what has changed, once, or that it has missed some. */
#include "base/memory.h"
#include "sports/changes.h"
#include "tests.h"

#define READERS 2
#define LISTED 8192U /* changes for one reader */

struct odds_store {
    struct odds_watch *watch;
};

void odds_store_watch(struct odds_store *store, struct odds_watch *watch)
{
    store->watch = watch;
}

struct scene {
    uv_loop_t loop;
    uv_idle_t alive; /* a mailbox alone does not keep the loop going */
    struct mailbox *mailbox;
    struct odds_store store;
    struct changes *changes;
    struct change_reader readers[READERS];
    bool listens[READERS];
    unsigned mails[READERS];
};
static struct scene *scene;

static void on_mail(struct mail *mail)
{
    scene->mails[(struct change_reader *)(void *)mail - scene->readers]++;
}

static void idle(uv_idle_t *handle)
{
}

static int set_up(void **state)
{
    scene = memory_alloc_zeroed(1, sizeof *scene);
    assert_int_equal(uv_loop_init(&scene->loop), 0);
    assert_int_equal(uv_idle_init(&scene->loop, &scene->alive), 0);
    assert_int_equal(uv_idle_start(&scene->alive, idle), 0);
    scene->mailbox = mailbox_create(&scene->loop);
    scene->changes = changes_create(&scene->store);
    for (size_t i = 0; i < READERS; i++) {
        scene->readers[i].mail.deliver = on_mail;
        scene->readers[i].mailbox = scene->mailbox;
    }
    return 0;
}

static int tear_down(void **state)
{
    for (size_t i = 0; i < READERS; i++)
        if (scene->listens[i])
            changes_leave(scene->changes, &scene->readers[i]);
    changes_destroy(&scene->changes);
    assert_null(scene->store.watch);
    mailbox_destroy(&scene->mailbox);
    uv_close((uv_handle_t *)&scene->alive, NULL);
    (void)uv_run(&scene->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&scene->loop), 0);
    memory_free(scene);
    return 0;
}

/* 0: the store cannot say what. */
static void change(unsigned event)
{
    struct odds_subject subject = {.kind = ODDS_MARKETS, .sport = SPORT_TENNIS};
    subject.event.size =
        (uint8_t)snprintf(subject.event.digits, sizeof subject.event.digits, "%u", event);
    scene->store.watch->changed(scene->store.watch, &subject, event == 0 ? 0 : 1);
}

static void listen_to_it(size_t reader, bool listens)
{
    if (listens)
        changes_join(scene->changes, &scene->readers[reader]);
    else
        changes_leave(scene->changes, &scene->readers[reader]);
    scene->listens[reader] = listens;
}

static void deliver(void)
{
    (void)uv_run(&scene->loop, UV_RUN_NOWAIT);
}

/* The changes that it takes when its mail has come, as "7 8 "; "all " before them when it has missed
 * some. */
static const char *taken(size_t reader)
{
    static char text[128];
    struct buffer list;
    deliver();
    bool all = changes_take(scene->changes, &scene->readers[reader], &list);
    const struct odds_subject *subjects = (struct odds_subject *)(void *)list.data;
    size_t size = (size_t)snprintf(text, sizeof text, "%s", all ? "all " : "");
    for (size_t i = 0; i < list.size / sizeof *subjects; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s ", subjects[i].event.digits);
    buffer_free(&list);
    return text;
}

TEST_WITH(each_listener_takes_what_came_since_it_began, set_up, tear_down)
{
    change(1); /* heard by no one */
    listen_to_it(0, true);
    change(2);
    listen_to_it(1, true);
    change(3);
    assert_string_equal(taken(0), "2 3 ");
    assert_string_equal(taken(1), "3 ");
    assert_string_equal(taken(0), "");
    listen_to_it(0, false);
    change(4);
    assert_string_equal(taken(0), "");
    listen_to_it(0, true);
    assert_string_equal(taken(0), ""); /* from now on */
    assert_string_equal(taken(1), "4 ");
}

TEST_WITH(one_mail_is_on_its_way_at_a_time, set_up, tear_down)
{
    listen_to_it(0, true);
    for (unsigned i = 1; i <= 5; i++)
        change(i);
    deliver();
    assert_int_equal(scene->mails[0], 1);
    assert_int_equal(scene->mails[1], 0); /* it does not listen */
    change(6);
    deliver();
    assert_int_equal(scene->mails[0], 1); /* it has not come to take anything */
    assert_string_equal(taken(0), "1 2 3 4 5 6 ");
    change(7);
    deliver();
    assert_int_equal(scene->mails[0], 2);
}

TEST_WITH(who_lags_behind_by_more_than_the_list_holds_has_missed_some, set_up, tear_down)
{
    struct buffer list;
    listen_to_it(0, true);
    for (unsigned i = 1; i <= LISTED; i++)
        change(i);
    deliver();
    assert_false(changes_take(scene->changes, &scene->readers[0], &list)); /* just held */
    assert_int_equal(list.size, LISTED * sizeof(struct odds_subject));
    buffer_free(&list);
    for (unsigned i = 1; i <= LISTED + 2; i++)
        change(i);
    assert_string_equal(taken(0), "all ");
    assert_string_equal(taken(0), "");
    change(5);
    assert_string_equal(taken(0), "5 ");
}

TEST_WITH(what_the_store_cannot_name_is_everything, set_up, tear_down)
{
    listen_to_it(0, true);
    change(1);
    change(0);
    listen_to_it(1, true);
    change(2);
    assert_string_equal(taken(0), "all ");
    assert_string_equal(taken(0), "");
    assert_string_equal(taken(1), "2 "); /* it came after that */
}
