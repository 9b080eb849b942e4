#pragma once

#include "stores/platform/sqlite/ids/id_index.h"
#include "stores/platform/sqlite/rows.h"

/*
 * Looks transaction ids up: the index of ids (id_index.h) leads to rows, and the rows decide.
 * Inside platform/sqlite.
 */

#ifndef IDS_KEY_MASK /* a test makes keys short, to see ids that have the same */
#define IDS_KEY_MASK UINT64_MAX
#endif

/*
 * Keys are hashes under the ledger's random number, which never leaves the database and its index.
 * Without it, a client that chooses ids could search for many with one key, at 2^32 attempts for
 * the first two, and each look-up of one of them would read the rows of all.
 */
/* The key that leads to the transaction of that id, and to the ROLLBACK that rolled the id back; or
 * (`settling`) to the CREDITs that were applied and refer to the DEBIT of that id. */
uint64_t sqlite_id_key(const uint8_t identity[ID_IDENTITY_SIZE], int64_t customer_number,
                       const char *provider_id, struct text id, bool settling);

#define ROW_KEYS_MAX 2 /* keys of one row */
/* The keys that lead to a transaction; their count. */
size_t sqlite_row_keys(const uint8_t identity[ID_IDENTITY_SIZE], int64_t customer_number,
                       const struct ledger_transaction *transaction, uint64_t keys[ROW_KEYS_MAX]);

/*
 * Call this before asking for ids, in a transaction of the connection's. It finds out whether
 * another process has written since the last call, forgets cached facts that this may have changed,
 * and brings the index up to the newest row, which may take long if the index has to be made.
 * `upkeep`: the handle writes, so the index gets a thread for it.
 */
MUST_CHECK enum status sqlite_ids_ready(struct sqlite_store *store, bool upkeep,
                                        struct error *error);

/* Call it after a commit: it adds the ids of the kept transactions to the index. */
void sqlite_ids_add(struct sqlite_store *store, const struct ledger_batch *batch,
                    const int64_t *customer_numbers);

/* It loads all but the standing credits. */
MUST_CHECK enum status sqlite_load_id(struct sqlite_store *store, struct ledger_fact *fact,
                                      struct error *error);
/* It loads the standing credits as well, where they are asked for. */
MUST_CHECK enum status sqlite_load_fact(struct sqlite_store *store, struct ledger_fact *fact,
                                        struct error *error);

/* The same, without sqlite_ids_ready: reads little of the index, and of the rows that it does not
 * cover only those that name the id. So it does not notice that one of those rows was altered. */
MUST_CHECK enum status sqlite_load_fact_once(struct sqlite_store *store, struct ledger_fact *fact,
                                             struct error *error);

/* Adds ledger_id_number to the SQL of a connection. */
void sqlite_ids_register(struct sqlite_store *store);

/* The newest row as of the transaction that is open, after which store->ledger is known. */
MUST_CHECK enum status sqlite_ids_last(struct sqlite_store *store, int64_t *number,
                                       struct error *error);

/* ids_audit.c: whether each id is used once, and the files of the index agree with the rows.
 * STATUS_MALFORMED: `error` names the first break. In a snapshot. */
MUST_CHECK enum status sqlite_ids_audit(struct sqlite_store *store, struct error *error);
