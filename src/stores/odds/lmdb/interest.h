#pragma once

#include "stores/odds_feed.h"

/* The file DIR/interest.map holds which events clients asked for. It is a file apart, so that
 * writing it neither moves the stamp nor waits for the feed's commits, and need not be synced. */
struct lmdb_interest;

struct lmdb_interest *lmdb_interest_create(struct odds_store *store, const char *root,
                                           struct log *log);
void lmdb_interest_destroy(struct lmdb_interest **interest); /* writes what is waiting */

/* Writes what was noted. The background thread calls it several times a second while the values are
 * usable. */
void lmdb_interest_write(struct lmdb_interest *interest);
MUST_CHECK enum status lmdb_interest_list(struct lmdb_interest *interest, enum sport sport,
                                          int64_t since_ms, struct odds_interest **list,
                                          size_t *count, struct error *error);
