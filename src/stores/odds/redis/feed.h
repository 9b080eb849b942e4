#pragma once

#include "stores/odds/redis/link.h"
#include "stores/odds_feed.h"

/* The verbs of the same names in stores/odds_feed.h. */
MUST_CHECK enum status redis_feed_publish(struct redis_link *link, const char *prefix,
                                          const struct odds_change *changes, size_t count,
                                          struct error *error);
/* `over` is called when each publication has its result: before `done`, or in place when `done`
 * will not be called. It may be NULL. */
MUST_CHECK enum status redis_feed_publish_each(struct redis_link *link, const char *prefix,
                                               struct odds_publishing *publishing, void *owner,
                                               void (*over)(void *owner,
                                                            struct odds_publishing *publishing));
MUST_CHECK enum status redis_feed_list_interest(struct redis_link *link, const char *prefix,
                                                enum sport sport, int64_t since_ms,
                                                struct odds_interest **list, size_t *count,
                                                struct error *error);
MUST_CHECK enum status redis_feed_list_events(struct redis_link *link, const char *prefix,
                                              enum sport sport, struct event_id **list,
                                              size_t *count, struct error *error);
