/* A list of changes that are published together; see publication.h. */
#include "feed/publication.h"

#include "base/memory.h"

void feed_publication_free(struct feed_publication *publication)
{
    memory_free(publication->changes);
    *publication = (struct feed_publication){0};
}

void feed_publication_add(struct feed_publication *publication, const struct odds_change *change)
{
    if (publication->count == publication->room) {
        publication->room = publication->room == 0 ? 64 : 2 * publication->room;
        publication->changes =
            memory_resize(publication->changes, publication->room * sizeof *publication->changes);
    }
    publication->changes[publication->count++] = *change;
}

static void withdraw(struct feed_publication *publication, enum sport sport,
                     const struct event_id *event, feed_odds_stay *stays, const void *context)
{
    const struct odds_change withdrawn = {.kind = ODDS_MARKETS, .sport = sport, .event = *event};
    if (stays == NULL || !stays(context, sport, event))
        feed_publication_add(publication, &withdrawn);
}

enum status feed_publication_withdraw_odds(struct feed_publication *publication,
                                           struct odds_store *store, enum sport sport,
                                           feed_odds_stay *stays, const void *context,
                                           struct error *error)
{
    struct event_id *events = NULL;
    size_t count = 0;
    size_t before = publication->count;
    enum status status = odds_store_list_events(store, sport, &events, &count, error);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        withdraw(publication, sport, &events[i], stays, context);
    for (size_t i = 0; status == STATUS_OK && i < before; i++)
        if (publication->changes[i].kind == ODDS_MARKETS && publication->changes[i].sport == sport)
            withdraw(publication, sport, &publication->changes[i].event, stays, context);
    memory_free(events);
    return status;
}

enum status feed_publication_withdraw_sport(struct feed_publication *publication,
                                            struct odds_store *store, enum sport sport,
                                            struct error *error)
{
    feed_publication_add(publication, &(struct odds_change){.kind = ODDS_CATALOG, .sport = sport});
    return feed_publication_withdraw_odds(publication, store, sport, NULL, NULL, error);
}
