#ifndef CROUPIER_ADMISSION_POLICY_TABLE_H
#define CROUPIER_ADMISSION_POLICY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admission/admission.h"

/*
 * All policies, as immutable snapshots (struct policy_table), and the editor that makes one after
 * the other from the platform store's rows (struct policy_editor). Snapshots share whatever did not
 * change.
 *
 *   keys       SHA-256 of a key → entry: its customer, when it expires, when it was used
 *   customers  id → policy
 *   addresses  legacy address → policy
 *
 * Keys name a customer and not a policy, so a change of a customer touches one row, however many
 * keys it has. All three are hashed into 4096 shards, which snapshots share.
 * An unknown key or address gets a policy that admits no address, so that it costs the same as a
 * known one.
 *
 * Threads: all editor calls and policy_table_destroy on one thread. The policy_table_* look-ups and
 * the policy_entry_* calls on any thread that was handed the table in an orderly way.
 */
struct policy_table;
struct policy_editor;
struct policy_entry; /* one key */

/* ---- editing --------------------------------------------------------------------------------- */

struct policy_editor *policy_editor_create(void);
void policy_editor_destroy(struct policy_editor **editor);

/* A row as it is now, for a struct record_visitor whose context is the editor. Rows may come again,
 * in any number; customers come before their keys. */
bool policy_editor_customer(void *editor, const void *customer_record);
bool policy_editor_key(void *editor, const void *key_record);
bool policy_editor_legacy(void *editor, const void *legacy_record);

/* Begins a complete reading: what does not come again is gone with the next table. Budgets and
 * times of use of what does come again are kept. */
void policy_editor_restart(struct policy_editor *editor);

/* A snapshot of what the rows said so far. The caller destroys it before the editor. */
struct policy_table *policy_editor_publish(struct policy_editor *editor, uint64_t revision);
void policy_table_destroy(struct policy_table **table);

/* ---- looking up ------------------------------------------------------------------------------ */

/* Never NULL: a policy that admits no address when there is none, and then `entry` is set to NULL.
 * Whether the key was revoked or has expired, and may be
 * used for what is asked, is the caller's question. */
const struct policy *policy_table_find_key(const struct policy_table *table,
                                           const uint8_t digest[KEY_DIGEST_SIZE],
                                           struct policy_entry **entry);
/* Never NULL, likewise. */
const struct policy *policy_table_find_address(const struct policy_table *table,
                                               const struct address *address);

/* What a key may less than its customer. The blocks are the entry's. */
struct policy_key {
    int64_t expires_ms; /* 0: never */
    enum key_scope scope;
    bool revoked; /* it opens nothing; the last POLICY_REVOKED_MAX that were read are kept, so that
                     the log can say whose they were */
    const struct cidr *cidrs;
    size_t cidr_count; /* 0: wherever its customer may call from */
};
#define POLICY_REVOKED_MAX 10000U
const struct policy_key *policy_entry_key(const struct policy_entry *entry);

/* Remembers that the key was used, to the second. */
void policy_entry_note_use(struct policy_entry *entry, int64_t now_wall_ms);

/*
 * Collects uses that were not written to the store yet, at most `room`; `cursor` starts at 0, and
 * is POLICY_USES_END when all keys have been looked at. After they have been written, mark them.
 * One thread at a time collects and marks.
 */
#define POLICY_USES_END UINT32_MAX
size_t policy_table_collect_uses(const struct policy_table *table, uint32_t *cursor,
                                 struct key_use *uses, size_t room);
void policy_table_mark_written(const struct policy_table *table, const struct key_use *uses,
                               size_t count);

void policy_table_facts(const struct policy_table *table, struct policy_table_facts *facts);

#endif
