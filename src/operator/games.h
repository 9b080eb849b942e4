#pragma once

#include "operator/resource.h"
#include "stores/platform_games.h"

/*
 * Games, and which of them customers may use. Settings of a game: enabled; everything else comes by
 * import, as a document (games/document.h).
 */

extern const struct resource game_resource; /* of struct game_record */

/* Adds or changes the games of a document, all or none. `name` is what to call the document. */
MUST_CHECK enum status games_import(struct platform_store *store, const char *name,
                                    struct text document, int64_t now_ms,
                                    struct games_put_result *result, struct error *error);

/* Replaces the customer's list of games. `casino`: may it use the casino at all? */
MUST_CHECK enum status games_allow(struct platform_store *store,
                                   const struct game_policy_record *record, bool *casino,
                                   struct error *error);

/* The list of the customer that the record names; a customer without one may use every game. The
 * games are appended to `games`, into which the record then points. */
MUST_CHECK enum status games_allowed(struct platform_store *store,
                                     struct game_policy_record *record, struct buffer *games,
                                     bool *casino, struct error *error);
