#pragma once

#include <lmdb.h>

#include "base/text.h"
#include "stores/odds.h"

/*
 * The records of the values environment, as bytes: docs/decisions/embedded-odds.md says why.
 *
 *   catalog:SPORT, odds:SPORT:EVENT   what the feed published
 *   changes:NNN                       what one commit changed; the last LMDB_RING commits
 *   until:VALUE                       struct lmdb_until: when the value of that key expires
 *   root                              struct lmdb_root, written by each commit
 *   format                            the format's name, without a header
 *
 * All but `format` are records: a header and the exact bytes.
 *
 * Results are LMDB's; MDB_CORRUPTED: a record is damaged or missing. Everything here
 * touches the map, so it runs inside odds_guard_run, and keeps nothing that a fault would lose.
 */

#define LMDB_SPORTS 16 /* part of the format */
_Static_assert(SPORT_COUNT <= LMDB_SPORTS, "a sport has a place in the root");
#define LMDB_RING 256U

struct lmdb_key {
    size_t size;
    char bytes[64];
};
struct lmdb_key lmdb_key_of(enum odds_kind kind, enum sport sport, const struct event_id *event);
struct lmdb_key lmdb_key_of_changes(uint64_t transaction);
/* Copies a stored key. False: it is too long to be one. */
bool lmdb_key_read(const MDB_val *stored, struct lmdb_key *key);

struct lmdb_header {
    uint64_t checksum;    /* of the store's identity, the key, what follows, and the bytes */
    uint64_t transaction; /* the one that wrote it */
    int64_t published_ms;
    int64_t expires_ms; /* 0: never. Else wall clock, as published; `until` has what holds */
};

/* A record apart from the value, so that a sign of life writes little and the value keeps its
 * version. A value that expires and has none is expired. */
struct lmdb_until {
    uint64_t transaction; /* which wrote the value */
    uint64_t boot;        /* clock_boot_id(); 0: not known */
    int64_t boot_ms;      /* when it expires, by that boot's clock */
    int64_t wall_ms;      /* and by the wall clock, where boots have no id */
    int64_t lifetime_ms;
};

struct lmdb_record {
    struct lmdb_header header;
    const char *bytes; /* in the map: valid while the snapshot is kept, and not checked yet */
    size_t size;
};

struct lmdb_root {
    uint64_t identity; /* of this store, random */
    uint64_t count;    /* of catalogs and odds */
    uint64_t digest;   /* the sum of their seals */
    int64_t published_ms[LMDB_SPORTS];
};

/* A snapshot. */
struct lmdb_view {
    struct lmdb_view *next; /* of those that are idle */
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_cursor *cursor;   /* NULL, or left by a walk that a fault ended */
    uint64_t transaction; /* the snapshot is what this one wrote */
    struct lmdb_root root;
    uint64_t root_checksum; /* of the root at hand; 0: none */
};

/* Reads the root, which the view's transaction must have written. */
int lmdb_root_read(struct lmdb_view *view);
int lmdb_root_write(const struct lmdb_view *view);

int lmdb_record_read(const MDB_val *stored, struct lmdb_record *record);
/* The record under a key that this transaction wrote. */
int lmdb_record_find(const struct lmdb_view *view, const struct lmdb_key *key, uint64_t transaction,
                     struct lmdb_record *record);
/* Are `bytes` (the record's, or a copy of them) what was published under this key? */
bool lmdb_record_is_whole(const struct lmdb_record *record, uint64_t identity,
                          const struct lmdb_key *key, const char *bytes);
/* A checksum of the key and the header, and through the header's checksum of all else. */
uint64_t lmdb_record_seal(const struct lmdb_header *header, uint64_t identity,
                          const struct lmdb_key *key);
/* Call it in a write transaction. Sets the header's transaction and checksum. */
int lmdb_record_write(const struct lmdb_view *view, const struct lmdb_key *key,
                      struct lmdb_header *header, struct text bytes);
int lmdb_record_delete(const struct lmdb_view *view, const struct lmdb_key *key);

/* An older one: or the format's record is damaged. */
enum lmdb_format { LMDB_NO_FORMAT, LMDB_THIS_FORMAT, LMDB_OLDER_FORMAT, LMDB_NEWER_FORMAT };
int lmdb_format_read(MDB_txn *txn, MDB_dbi dbi, enum lmdb_format *format);
/* `expiring`: of a store whose values may expire, which older programs refuse. */
int lmdb_format_write(const struct lmdb_view *view, bool expiring);

/* Writes until when the value that `transaction` wrote is stored. */
int lmdb_until_write(const struct lmdb_view *view, const struct lmdb_key *value,
                     const struct lmdb_until *until);
int lmdb_until_delete(const struct lmdb_view *view, const struct lmdb_key *value);
/* When it expires by this boot's clock, at least 1, in whole tenths of a second so that values
 * expire together; LMDB_EXPIRED: the record is not that of the value, or the time is over. */
#define LMDB_EXPIRED INT64_C(-1)
int64_t lmdb_until_read(const struct lmdb_view *view, const struct lmdb_key *value,
                        uint64_t transaction, uint64_t boot);
