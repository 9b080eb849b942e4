#pragma once

#include "base/json_writer.h"
#include "records/game.h"

/*
 * Games as a JSON document, read by `croupier game import` and written by `game show --json`. Pure.
 *
 *     [{"id": "book-of-sand", "name": "Book of Sand", "provider": "acme", "category": "slots",
 *       "features": ["free-spins"], "rtp_bps": 9612, "volatility": "high", "thumbnail_url": null,
 *       "demo": true, "currencies": ["EUR"], "languages": ["en"], "devices": ["desktop"],
 *       "enabled": true}]
 *
 * Required: id, name, provider, category. Other absent members are empty, null or false; an
 * existing game keeps its `enabled` and `blocked_countries`, and a new one is enabled. Any other
 * member is refused, except updated_at, which is the store's own and passed over, so that a list
 * can be imported again.
 */

#define GAMES_DOCUMENT_MAX (16U * 1024 * 1024) /* bytes */

struct games_document {
    struct game_record *records;
    bool *set_enabled; /* of each record: did the document say `enabled`? */
    size_t count;
};

/* Reads all of it or nothing. An error is "NAME:LINE:COLUMN: …" and names the member.
 * `has_provider` tells whether there is such a provider. */
MUST_CHECK enum status games_document_read(struct games_document *document, const char *name,
                                           struct text text,
                                           bool has_provider(void *context, struct text id),
                                           void *context, struct error *error);
void games_document_free(struct games_document *document);

/* One game as an operator sees it. */
void game_record_write(struct json_writer *json, const struct game_record *record);
/* The members that a customer sees too: from `category` to `devices`. */
void game_record_write_offer(struct json_writer *json, const struct game_record *record);
