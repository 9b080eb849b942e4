/*
 * A commit's records beside the values: the root, whose count and digest follow each change, and
 * the list of changes, by which other processes' indexes follow. See records.h.
 */
#include "stores/odds/lmdb/edit.h"

#include <sys/random.h>

#include "base/clock.h"

/* At most so many changes of one commit stand in its list: reading a longer list costs as much as
 * the walk of all records. */
#define CHANGES_MAX 4096U
#define DELETED_MOST 1024U /* expired values, in a commit of fewer changes */

int lmdb_edit_begin(struct lmdb_edit *edit, uint64_t identity)
{
    struct lmdb_root *root = &edit->view.root;
    if (edit->index == NULL) {
        CHECK(getrandom(&root->identity, sizeof root->identity, 0) ==
              (ssize_t)sizeof root->identity);
        return lmdb_format_write(&edit->view, false);
    }
    edit->view.transaction = mdb_txn_id(edit->view.txn) - 1;
    /* Every commit writes the root: any other number, and this is not the store that it was. */
    int result = lmdb_root_read(&edit->view);
    if (result == 0 && root->identity != identity)
        result = MDB_CORRUPTED;
    return result == 0 ? lmdb_index_follow(edit->index, &edit->view) : result;
}

/* Writes when a value expires; the first time, also that the store's values may. */
static int write_until(struct lmdb_edit *edit, const struct lmdb_key *key, uint64_t transaction,
                       uint32_t expires_s)
{
    int64_t lifetime_ms = (int64_t)expires_s * 1000;
    const struct lmdb_until until = {.transaction = transaction,
                                     .boot = edit->boot,
                                     .boot_ms = clock_boot_ms() + lifetime_ms,
                                     .wall_ms = edit->now_ms + lifetime_ms,
                                     .lifetime_ms = lifetime_ms};
    int result = edit->expiring ? 0 : lmdb_format_write(&edit->view, true);
    edit->expiring = true;
    return result == 0 ? lmdb_until_write(&edit->view, key, &until) : result;
}

/* A sign of life. A value that has expired, that does not expire, or that is not the feed's any
 * more, keeps the time that it has. */
static int renew(struct lmdb_edit *edit, const struct odds_change *change, struct lmdb_entry entry,
                 const struct lmdb_entry *before)
{
    struct lmdb_key key = lmdb_key_of(change->kind, change->sport, &change->event);
    struct lmdb_record record;
    uint8_t digest[DIGEST_SHA1_SIZE];
    if (before == NULL || before->transaction == 0)
        return 0;
    entry.transaction = before->transaction & ~LMDB_UNTIL;
    int result = lmdb_record_find(&edit->view, &key, entry.transaction, &record);
    if (result != 0 || record.header.expires_ms == 0)
        return result;
    digest_sha1(record.bytes, record.size, digest);
    if (memcmp(digest, change->renewed, sizeof digest) != 0 ||
        lmdb_until_read(&edit->view, &key, entry.transaction, edit->boot) == LMDB_EXPIRED)
        return 0;
    result = write_until(edit, &key, entry.transaction, change->expires_s);
    entry.transaction |= LMDB_UNTIL;
    lmdb_index_set(&edit->changed, &entry, 0);
    return result;
}

int lmdb_edit_change(struct lmdb_edit *edit, const struct odds_change *change)
{
    struct lmdb_root *root = &edit->view.root;
    struct lmdb_key key = lmdb_key_of(change->kind, change->sport, &change->event);
    struct lmdb_entry entry =
        lmdb_entry_of(change->kind, change->sport, &change->event, mdb_txn_id(edit->view.txn));
    struct lmdb_record record;
    int result = 0;
    const struct lmdb_entry *before = lmdb_index_find(&edit->changed, &entry);
    if (before == NULL)
        before = lmdb_index_find(edit->index, &entry);
    if (change->renew)
        return renew(edit, change, entry, before);
    bool stored = before != NULL && before->transaction != 0;
    if (stored) {
        /* The digest loses what was published. When the record is another, the store is damaged. */
        result = lmdb_record_find(&edit->view, &key, before->transaction & ~LMDB_UNTIL, &record);
        if (result == 0 && record.header.expires_ms != 0 && change->expires_s == 0)
            result = lmdb_until_delete(&edit->view, &key);
        if (result != 0)
            return result;
        root->count--;
        root->digest -= lmdb_record_seal(&record.header, root->identity, &key);
    }
    if (change->bytes == NULL) {
        entry.transaction = 0;
        if (stored)
            result = lmdb_record_delete(&edit->view, &key);
    } else {
        struct lmdb_header header = {.published_ms = edit->now_ms};
        if (change->expires_s > 0)
            header.expires_ms = edit->now_ms + (int64_t)change->expires_s * 1000;
        result = lmdb_record_write(&edit->view, &key, &header,
                                   (struct text){change->bytes, change->size});
        if (result == 0 && change->expires_s > 0) {
            result = write_until(edit, &key, entry.transaction, change->expires_s);
            entry.transaction |= LMDB_UNTIL;
        }
        if (result == 0) {
            root->count++;
            root->digest += lmdb_record_seal(&header, root->identity, &key);
            root->published_ms[change->sport] = edit->now_ms;
        }
    }
    lmdb_index_set(&edit->changed, &entry, 0);
    return result;
}

/* Deletes values that have expired; those that are left are deleted by the next commits. */
static int delete_expired(struct lmdb_edit *edit)
{
    struct lmdb_index *index = edit->index;
    int result = 0;
    if (index == NULL)
        return 0;
    lmdb_index_expire(index, clock_boot_ms(), NULL);
    for (size_t i = 0; result == 0 && index->expired > 0 && i < lmdb_index_count(index) &&
                       lmdb_index_count(&edit->changed) < DELETED_MOST;
         i++) {
        const struct lmdb_entry *entry = lmdb_index_at(index, i);
        const struct odds_change change = {.kind = (enum odds_kind)entry->kind,
                                           .sport = (enum sport)entry->sport,
                                           .event = entry->event};
        if (lmdb_index_deadline(index, entry) == LMDB_EXPIRED &&
            lmdb_index_find(&edit->changed, entry) == NULL)
            result = lmdb_edit_change(edit, &change);
    }
    return result;
}

int lmdb_edit_finish(struct lmdb_edit *edit)
{
    struct lmdb_key key = lmdb_key_of_changes(mdb_txn_id(edit->view.txn));
    int result = delete_expired(edit);
    if (result != 0)
        return result;
    struct text changes = buffer_text(&edit->changed.entries);
    if (lmdb_index_count(&edit->changed) > CHANGES_MAX)
        changes.size = 0;
    result = lmdb_record_write(&edit->view, &key, &(struct lmdb_header){0}, changes);
    return result == 0 ? lmdb_root_write(&edit->view) : result;
}
