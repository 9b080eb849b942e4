#pragma once

#include "admission/admission.h"
#include "stores/platform_changes.h"

/*
 * All policies, as immutable snapshots (struct policy_table), and the editor that builds each one
 * from the platform store's rows (struct policy_editor). Snapshots share all rows that did not
 * change.
 *
 *   keys       SHA-256 of a key → entry: its customer, when it expires, when it was used
 *   customers  id → policy
 *   addresses  legacy address → policy
 *
 * A key names a customer and not a policy, so a change of a customer touches one row, however many
 * keys it has. Each index is hashed into 4096 shards, which snapshots share. An unknown key or
 * address gets a policy that admits no address, so that its look-up costs the same as a known
 * one's.
 *
 * Threads: one thread makes all editor calls and calls policy_table_destroy. Any thread to which
 * the table was published (release, acquire) may call the policy_table_* look-ups and the
 * policy_entry_* calls.
 */
struct policy_table;
struct policy_editor;
struct policy_entry; /* one key */

/* ---- editing --------------------------------------------------------------------------------- */

struct policy_editor *policy_editor_create(void);
void policy_editor_destroy(struct policy_editor **editor);

/* Takes the present state of a row; for a struct record_visitor whose context is the editor. A row
 * may come any number of times; customers come before their keys. */
bool policy_editor_customer(void *editor, const void *customer_record);
bool policy_editor_key(void *editor, const void *key_record);
bool policy_editor_legacy(void *editor, const void *legacy_record);

/* Begins a complete reading: the next table has only the rows that come after this call. Rows that
 * come again keep their budget and their time of use. */
void policy_editor_restart(struct policy_editor *editor);

/* A snapshot of the rows so far. The caller destroys it before the editor. */
struct policy_table *policy_editor_publish(struct policy_editor *editor, uint64_t revision);
void policy_table_destroy(struct policy_table **table);

/* ---- looking up ------------------------------------------------------------------------------ */

/* Never NULL: an unknown key gets a policy that admits no address, and `entry` is set to NULL. The
 * caller must check whether the key was revoked or has expired, and its scope. */
const struct policy *policy_table_find_key(const struct policy_table *table,
                                           const uint8_t digest[KEY_DIGEST_SIZE],
                                           struct policy_entry **entry);
/* Never NULL either. */
const struct policy *policy_table_find_address(const struct policy_table *table,
                                               const struct address *address);

/* The restrictions of a key within its customer's rights. The entry owns the blocks. */
struct policy_key {
    int64_t expires_ms; /* 0: never */
    key_areas areas;
    bool revoked; /* it admits no request; it is kept so that the log can name its customer */
    const struct cidr *cidrs;
    size_t cidr_count; /* 0: no restriction besides its customer's */
};
const struct policy_key *policy_entry_key(const struct policy_entry *entry);
/* The SHA-256 of the key. */
const uint8_t *policy_entry_digest(const struct policy_entry *entry);

/* Notes the use of the key, to the second. */
void policy_entry_note_use(struct policy_entry *entry, int64_t now_wall_ms);

/*
 * Collects at most `room` uses that were not written to the store yet. `cursor` starts at 0, and is
 * POLICY_USES_END when all keys have been visited. The caller writes the uses and then marks them
 * written. Only one thread at a time may collect and mark.
 */
#define POLICY_USES_END UINT32_MAX
size_t policy_table_collect_uses(const struct policy_table *table, uint32_t *cursor,
                                 struct key_use *uses, size_t room);
void policy_table_mark_written(const struct policy_table *table, const struct key_use *uses,
                               size_t count);

/* Sets those of the table. */
void policy_table_facts(const struct policy_table *table, struct policies_facts *facts);
