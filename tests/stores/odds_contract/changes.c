/* A watch is given what has changed. See contract.h. */
#include "contract.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

struct watcher {
    struct odds_watch watch; /* first */
    pthread_mutex_t lock;
    pthread_cond_t told;
    size_t count; /* of those that follow, and of all that was told of */
    size_t all;
    struct odds_subject subjects[64];
};

static void on_changed(struct odds_watch *watch, const struct odds_subject *subjects, size_t count)
{
    struct watcher *watcher = (struct watcher *)(void *)watch;
    assert_int_equal(pthread_mutex_lock(&watcher->lock), 0);
    if (count == 0)
        watcher->all++;
    for (size_t i = 0; i < count; i++)
        watcher->subjects[watcher->count++ % 64] = subjects[i];
    assert_int_equal(pthread_cond_broadcast(&watcher->told), 0);
    assert_int_equal(pthread_mutex_unlock(&watcher->lock), 0);
}

/* Waits until it is told so many times that everything may have changed. */
static void await_all(struct watcher *watcher, size_t count)
{
    assert_int_equal(pthread_mutex_lock(&watcher->lock), 0);
    while (watcher->all < count)
        assert_int_equal(pthread_cond_wait(&watcher->told, &watcher->lock), 0);
    assert_int_equal(pthread_mutex_unlock(&watcher->lock), 0);
}

/* Waits until that was told of, and forgets all that was told before. `event` NULL: the catalog. */
static void await_change(struct watcher *watcher, enum sport sport, const char *event)
{
    bool found = false;
    assert_int_equal(pthread_mutex_lock(&watcher->lock), 0);
    while (!found) {
        for (size_t i = 0; i < watcher->count && !found; i++) {
            const struct odds_subject *subject = &watcher->subjects[i];
            found = subject->sport == sport &&
                    (event == NULL ? subject->kind == ODDS_CATALOG
                                   : subject->kind == ODDS_MARKETS &&
                                         strcmp(subject->event.digits, event) == 0);
        }
        if (!found)
            assert_int_equal(pthread_cond_wait(&watcher->told, &watcher->lock), 0);
    }
    watcher->count = 0;
    assert_int_equal(pthread_mutex_unlock(&watcher->lock), 0);
}

TEST_OF(fixture, what_has_changed_is_told)
{
    odds_store_close(&fixture->store);
    struct odds_store_options options = {
        .uri = fixture->uri, .timeout_ms = 2000, .prefix = fixture->prefix, .patient = true};
    struct error error = {{0}};
    assert_int_equal(odds_store_open(&fixture->store, &options, &error), STATUS_OK);
    struct odds_store *store = fixture->store;
    struct watcher watcher = {.watch.changed = on_changed,
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .told = PTHREAD_COND_INITIALIZER};
    odds_store_watch(store, &watcher.watch);
    /* An engine may begin with a word that everything may have changed. */
    if (strcmp(engine->name, "embedded") == 0)
        await_all(&watcher, 1);
    if (engine->asks) { /* it tells that again and again, and no more */
        await_all(&watcher, 4);
        assert_int_equal(watcher.count, 0);
        odds_store_watch(store, NULL);
        return;
    }
    size_t all = watcher.all;
    publish_one(store, catalog_change(SPORT_TENNIS, "[{\"gmid\":7}]"));
    await_change(&watcher, SPORT_TENNIS, NULL);
    const struct odds_change batch[] = {odds_change(SPORT_TENNIS, "7", "[]"),
                                        odds_change(SPORT_CRICKET, "8", "[]"),
                                        odds_change(SPORT_CRICKET, "9", "[]")};
    publish(store, batch, 3);
    await_change(&watcher, SPORT_CRICKET, "9");
    publish_one(store, odds_change(SPORT_TENNIS, "7", "[{}]"));
    await_change(&watcher, SPORT_TENNIS, "7");
    publish_one(store, odds_change(SPORT_CRICKET, "8", NULL));
    await_change(&watcher, SPORT_CRICKET, "8");
    publish_in_another_process(fixture, "cricket", "9", "[{}]");
    await_change(&watcher, SPORT_CRICKET, "9");
    withdraw_sport(store, SPORT_CRICKET);
    await_change(&watcher, SPORT_CRICKET, "9");
    assert_int_equal(watcher.all, all); /* each time it was known what */
    odds_store_watch(store, NULL);
}
