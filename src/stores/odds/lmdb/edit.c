/*
 * A commit's records beside the values: the root, whose count and digest follow each change, and
 * the list of changes, by which other processes' indexes follow. See records.h.
 */
#include "stores/odds/lmdb/edit.h"

#include <sys/random.h>

/* Of one commit, in its list: reading a longer list costs as much as the walk of all records. */
#define CHANGES_MAX 4096U

int lmdb_edit_begin(struct lmdb_edit *edit, uint64_t identity)
{
    struct lmdb_root *root = &edit->view.root;
    if (edit->index == NULL) {
        CHECK(getrandom(&root->identity, sizeof root->identity, 0) ==
              (ssize_t)sizeof root->identity);
        return lmdb_format_write(&edit->view);
    }
    edit->view.transaction = mdb_txn_id(edit->view.txn) - 1;
    /* Every commit writes the root: any other number, and this is not the store that it was. */
    int result = lmdb_root_read(&edit->view);
    if (result == 0 && root->identity != identity)
        result = MDB_CORRUPTED;
    return result == 0 ? lmdb_index_follow(edit->index, &edit->view) : result;
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
    bool stored = before != NULL && before->transaction != 0;
    if (stored) {
        /* The digest loses what was published. When the record is another, the store is damaged. */
        result = lmdb_record_find(&edit->view, &key, before->transaction, &record);
        if (result != 0)
            return result;
        root->count--;
        root->digest -= lmdb_record_seal(&record, root->identity, &key);
    }
    if (change->bytes == NULL) {
        entry.transaction = 0;
        if (stored)
            result = lmdb_record_delete(&edit->view, &key);
    } else {
        result = lmdb_record_write(&edit->view, &key, edit->now_ms,
                                   (struct text){change->bytes, change->size}, &record);
        if (result == 0) {
            root->count++;
            root->digest += lmdb_record_seal(&record, root->identity, &key);
            root->published_ms[change->sport] = edit->now_ms;
        }
    }
    lmdb_index_set(&edit->changed, &entry);
    return result;
}

int lmdb_edit_finish(struct lmdb_edit *edit)
{
    struct lmdb_key key = lmdb_key_of_changes(mdb_txn_id(edit->view.txn));
    struct text changes = buffer_text(&edit->changed.entries);
    if (lmdb_index_count(&edit->changed) > CHANGES_MAX)
        changes.size = 0;
    int result = lmdb_record_write(&edit->view, &key, 0, changes, NULL);
    return result == 0 ? lmdb_root_write(&edit->view) : result;
}
