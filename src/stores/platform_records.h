#pragma once

#include "records/records.h"
#include "stores/platform.h"

/*
 * Records of any kind in the platform store (platform.h, whose rules on handles and threads hold
 * here too), the audit trail of their changes, and the sessions of operators.
 */

/* Every change writes its row of the audit trail (records/trail.h) in its own transaction; one that
 * leaves everything as it was writes none. */

/* `table` is that of the record's kind (records/). Records that are not acceptable (a bad id, a
 * name too long, a rate out of range) are STATUS_INVALID. The caller fills everything but
 * `revision`; ids of customers and keys come from record_id_generate. */

/* EXISTS: there is one with this id (or digest) already; NOT_FOUND: its owner is not there (a key's
 * customer). */
MUST_CHECK enum status platform_add(struct platform_store *store, const struct record_table *table,
                                    const void *record, struct error *error);
/* Replaces all of the record with this id but its COLUMN_FIXED columns. NOT_FOUND. With a
 * `revision` other than 0 only if the stored row still has it, else STATUS_EXISTS: another writer
 * changed it first, so read it again (so that `set` never undoes another's `disable`). */
MUST_CHECK enum status platform_update(struct platform_store *store,
                                       const struct record_table *table, const void *record,
                                       struct error *error);
/* Adds, or replaces all of it; `revision` as above. */
MUST_CHECK enum status platform_put(struct platform_store *store, const struct record_table *table,
                                    const void *record, struct error *error);
/* `id` is what the struct's first field holds: a string, or an address's bytes. */
MUST_CHECK enum status platform_get(struct platform_store *store, const struct record_table *table,
                                    const void *id, void *record, struct error *error);

/* `see` is called for every record in the order of its table (customers, keys and players: as
 * created; addresses: by address, without removed ones), from one snapshot, in constant memory. It
 * must not call the store. `customer_id`: the owner, of a kind that belongs to customers; NULL:
 * all. */
MUST_CHECK enum status platform_list(struct platform_store *store, const struct record_table *table,
                                     const char *customer_id, record_function *see, void *context,
                                     struct error *error);

/* Adds a key that another made (its `maker`). STATUS_NOT_FOUND: the maker is revoked or expired;
 * STATUS_FULL: KEYS_MADE_MAX of its keys are live. */
MUST_CHECK enum status platform_key_make(struct platform_store *store,
                                         const struct key_record *record, int64_t now_ms,
                                         struct error *error);
/* Marks it revoked, with those that it made; STATUS_NOT_FOUND, or STATUS_OK also when it was
 * revoked before. */
MUST_CHECK enum status platform_key_revoke(struct platform_store *store, const char *key_id,
                                           int64_t now_ms, struct error *error);

/* ---- the audit trail ------------------------------------------------------------------------- */

struct trail_search {
    const char *object;         /* "": any */
    const char *who;            /* "": any author */
    const char *kind;           /* NULL or "": any */
    int64_t since_ms, until_ms; /* 0: without an end */
    uint64_t before;            /* a row's number; 0: from the last one */
    size_t limit;               /* at least 1 */
    bool operators; /* also rows about operators, their links and sessions, and tokens */
};
/* The rows that are searched for, the last one first, at most `limit`. Reads them in parts, so that
 * no query takes long; each is a snapshot. `see` must not call the store. */
MUST_CHECK enum status platform_trail_search(struct platform_store *store,
                                             const struct trail_search *search,
                                             record_function *see, void *context,
                                             struct error *error);

/* The `limit` rows behind row `after`, the first one first, and the number of the last row of the
 * trail. Rows become visible in the order of their numbers. `see` must not call the store. */
MUST_CHECK enum status platform_trail_after(struct platform_store *store, uint64_t after,
                                            size_t limit, uint64_t *last, record_function *see,
                                            void *context, struct error *error);
/* Is the row searched for? Times, `kind`, `before` and `limit` do not count. */
bool platform_trail_wants(const struct trail_search *search, const struct trail_record *row);

/* ---- operators' credentials ------------------------------------------------------------------ */

/* The sessions that are live, those that end first before the others; no more is read than `see`,
 * which must not call the store, wants to see. */
MUST_CHECK enum status platform_sessions_list(struct platform_store *store, int64_t now_ms,
                                              record_function *see, void *context,
                                              struct error *error);
/* Deletes links and sessions that were good until before then. */
MUST_CHECK enum status platform_credentials_delete(struct platform_store *store, int64_t before_ms,
                                                   struct error *error);
/* Notes that a token is used. Takes no revision, and is not in the audit trail. */
MUST_CHECK enum status platform_token_used(struct platform_store *store, const char *id,
                                           int64_t now_ms, struct error *error);
