/* Publications that go to the store at one time, each with a result of its own. See contract.h. */
#include "contract.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define MANY 3000 /* two publications of so many have more than a transaction had for a batch */

struct published {
    struct odds_publishing publishing; /* first */
    struct odds_publication publications[3];
    sem_t done;
};

static void on_published(struct odds_publishing *publishing)
{
    assert_int_equal(sem_post(&((struct published *)(void *)publishing)->done), 0);
}

/* Begins publications of the changes, `each` in each. */
static void begin(struct odds_store *store, struct published *published,
                  const struct odds_change *changes, size_t each)
{
    memset(published, 0, sizeof *published);
    assert_int_equal(sem_init(&published->done, 0, 0), 0);
    STAILQ_INIT(&published->publishing.list);
    for (size_t i = 0; i < 3; i++) {
        published->publications[i] =
            (struct odds_publication){.changes = &changes[i * each], .count = each};
        STAILQ_INSERT_TAIL(&published->publishing.list, &published->publications[i], others);
    }
    published->publishing.done = on_published;
    if (odds_store_publish_each(store, &published->publishing) != STATUS_PENDING)
        on_published(&published->publishing);
}

static void assert_all_published(struct published *published)
{
    while (sem_wait(&published->done) != 0)
        assert_int_equal(errno, EINTR);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(published->publications[i].status, STATUS_OK);
        assert_null(published->publications[i].reason);
    }
    assert_int_equal(sem_destroy(&published->done), 0);
}

TEST_WITH(publications_keep_their_order, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    static const char *const values[] = {"[1]", "[2]", "[3]", NULL, "[5]", "[6]"};
    struct odds_change changes[6];
    struct published first, second;
    for (size_t i = 0; i < 6; i++)
        changes[i] = odds_change(SPORT_CRICKET, "1", values[i]);
    begin(store, &first, &changes[0], 1);
    begin(store, &second, &changes[3], 1); /* not waiting for the first */
    assert_all_published(&first);
    assert_all_published(&second);
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "1", "[6]", 3);
}

TEST_WITH(publications_may_have_many_changes, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    struct odds_change *changes = memory_alloc_zeroed(3 * (size_t)MANY, sizeof *changes);
    struct published published;
    char event[16];
    for (size_t i = 0; i < 3 * (size_t)MANY; i++) {
        (void)snprintf(event, sizeof event, "%zu", i % MANY + 1);
        changes[i] = odds_change(SPORT_FOOTBALL, event,
                                 i < MANY               ? "[1]"
                                 : i < 2 * (size_t)MANY ? "[2]"
                                                        : "[3]");
    }
    begin(store, &published, changes, MANY);
    assert_all_published(&published);
    memory_free(changes);
    assert_stored(store, ODDS_MARKETS, SPORT_FOOTBALL, "1", "[3]", 3);
    assert_stored(store, ODDS_MARKETS, SPORT_FOOTBALL, "3000", "[3]", 3);
}
