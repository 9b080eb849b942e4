#pragma once

#include "games/table.h"
#include "http/answer.h"
#include "metrics/metrics.h"
#include "stores/refresher.h"

/*
 * Games, as serving threads see them: a refresher keeps the current table, each serving thread has
 * a pages that answers from it. A request never waits for the platform store.
 *
 * Freshness is stores/refresher.h's: a table that could not be confirmed for more than a second
 * decides nothing.
 */
struct games;
struct games_pages;

/* `store` is opened by the refresher, which reads `secrets_key_file` (copied) too, and logs where
 * the store does. */
struct games *games_create(const struct platform_store_options *store, const char *secrets_key_file,
                           uint32_t refresh_ms);
/* No pages is left. */
void games_destroy(struct games **games);

/* The refresher of the struct games_table: how old that is, and whether it is there. */
struct refresher *games_refresher(struct games *games);
extern const struct metric games_metrics[]; /* the fact is refresher_age_ms, an int64_t */

/* One a serving thread. */
struct games_pages *games_pages_create(struct games *games);
void games_pages_destroy(struct games_pages **pages);

/* The confirmed table, until the next call on this pages; NULL: there is none (answer 503). */
const struct games_table *games_pages_table(struct games_pages *pages, uint64_t now_mono_ms);

/* GET /api/v1/casino/games: replies. */
void games_route_list(struct games_pages *pages, struct http_request *request,
                      const char *customer_id, bool sandbox);
