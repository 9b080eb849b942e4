/* The watch of an odds store, to which the engine reports; see stores/odds.h and odds_engine.h. */
#include "stores/odds_engine.h"

#include "base/status.h"

void odds_store_begin(struct odds_store *store, const struct odds_engine *engine)
{
    store->engine = engine;
    store->watch = NULL;
    CHECK(uv_mutex_init(&store->watch_lock) == 0);
}

void odds_store_end(struct odds_store *store)
{
    uv_mutex_destroy(&store->watch_lock);
}

void odds_store_watch(struct odds_store *store, struct odds_watch *watch)
{
    uv_mutex_lock(&store->watch_lock);
    store->watch = watch;
    uv_mutex_unlock(&store->watch_lock);
}

bool odds_store_is_watched(struct odds_store *store)
{
    uv_mutex_lock(&store->watch_lock);
    bool watched = store->watch != NULL;
    uv_mutex_unlock(&store->watch_lock);
    return watched;
}

void odds_store_tell(struct odds_store *store, const struct odds_subject *subject)
{
    uv_mutex_lock(&store->watch_lock);
    if (store->watch != NULL)
        store->watch->changed(store->watch, subject);
    uv_mutex_unlock(&store->watch_lock);
}
