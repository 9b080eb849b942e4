/* A list of entries with a hash table of their places, and the walk that fills it. See index.h. */
#include "stores/odds/lmdb/index.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "stores/odds_engine.h"

#define SLOTS_LEAST 64U
#define WITHDRAWN_MORE 4096U /* entries of withdrawn values, beyond as many as there are values */

#define ENTRY_SIZE sizeof(struct lmdb_entry)
#define SUBJECT_SIZE offsetof(struct lmdb_entry, transaction)

/* ---- the table ------------------------------------------------------------------------------- */

struct lmdb_entry lmdb_entry_of(enum odds_kind kind, enum sport sport, const struct event_id *event,
                                uint64_t transaction)
{
    struct lmdb_entry entry = {
        .kind = (uint8_t)kind, .sport = (uint8_t)sport, .transaction = transaction};
    if (kind == ODDS_MARKETS)
        entry.event = *event;
    return entry;
}

static struct lmdb_entry *entries_of(const struct lmdb_index *index)
{
    return (struct lmdb_entry *)(void *)index->entries.data;
}

size_t lmdb_index_count(const struct lmdb_index *index)
{
    return index->entries.size / ENTRY_SIZE;
}

const struct lmdb_entry *lmdb_index_at(const struct lmdb_index *index, size_t place)
{
    return &entries_of(index)[place];
}

static int64_t *deadlines_of(const struct lmdb_index *index)
{
    return (int64_t *)(void *)index->deadlines.data;
}

int64_t lmdb_index_deadline(const struct lmdb_index *index, const struct lmdb_entry *listed)
{
    return deadlines_of(index)[listed - entries_of(index)];
}

/* The slot that leads to the entry of this subject, or the free one that would. */
static uint32_t *slot_of(const struct lmdb_index *index, const struct lmdb_entry *wanted)
{
    size_t at = (size_t)hash_bytes(0, wanted, SUBJECT_SIZE);
    for (;; at++) {
        uint32_t *slot = &index->slots[at & (index->slot_count - 1)];
        if (*slot == 0 || memcmp(&entries_of(index)[*slot - 1], wanted, SUBJECT_SIZE) == 0)
            return slot;
    }
}

const struct lmdb_entry *lmdb_index_find(const struct lmdb_index *index,
                                         const struct lmdb_entry *wanted)
{
    if (index->slot_count == 0)
        return NULL;
    const uint32_t *slot = slot_of(index, wanted);
    return *slot == 0 ? NULL : &entries_of(index)[*slot - 1];
}

static void grow(struct lmdb_index *index)
{
    size_t count = lmdb_index_count(index);
    memory_free(index->slots);
    index->slot_count = index->slot_count == 0 ? SLOTS_LEAST : 2 * index->slot_count;
    index->slots = memory_alloc_zeroed(index->slot_count, sizeof *index->slots);
    for (size_t i = 0; i < count; i++)
        *slot_of(index, &entries_of(index)[i]) = (uint32_t)(i + 1);
}

static void set_deadline(struct lmdb_index *index, size_t place, int64_t deadline_ms)
{
    index->expired -= deadlines_of(index)[place] == LMDB_EXPIRED;
    index->expired += deadline_ms == LMDB_EXPIRED;
    deadlines_of(index)[place] = deadline_ms;
    if (deadline_ms > 0 && (index->next_deadline_ms == 0 || deadline_ms < index->next_deadline_ms))
        index->next_deadline_ms = deadline_ms;
}

void lmdb_index_expire(struct lmdb_index *index, int64_t now_ms, struct buffer *expired)
{
    if (index->next_deadline_ms == 0 || now_ms < index->next_deadline_ms)
        return;
    index->next_deadline_ms = 0;
    for (size_t i = 0; i < lmdb_index_count(index); i++) {
        bool due = deadlines_of(index)[i] > 0 && deadlines_of(index)[i] <= now_ms;
        set_deadline(index, i, due ? LMDB_EXPIRED : deadlines_of(index)[i]);
        if (due && expired != NULL)
            buffer_append(expired, &entries_of(index)[i], ENTRY_SIZE);
    }
}

void lmdb_index_set(struct lmdb_index *index, const struct lmdb_entry *entry, int64_t deadline_ms)
{
    size_t count = lmdb_index_count(index);
    if (2 * (count + 1) > index->slot_count)
        grow(index);
    uint32_t *slot = slot_of(index, entry);
    if (*slot == 0) {
        buffer_reserve(&index->entries, ENTRY_SIZE);
        buffer_append(&index->deadlines, &(int64_t){0}, sizeof deadline_ms);
        *slot = (uint32_t)(count + 1);
        buffer_append(&index->entries, entry, ENTRY_SIZE);
        index->live += entry->transaction != 0;
        set_deadline(index, count, deadline_ms);
        return;
    }
    struct lmdb_entry *listed = &entries_of(index)[*slot - 1];
    index->live += (size_t)(entry->transaction != 0) - (size_t)(listed->transaction != 0);
    listed->transaction = entry->transaction;
    set_deadline(index, (size_t)(listed - entries_of(index)), deadline_ms);
}

void lmdb_index_free(struct lmdb_index *index)
{
    buffer_free(&index->entries);
    buffer_free(&index->deadlines);
    buffer_free(&index->changes);
    buffer_free(&index->untils);
    memory_free(index->slots);
    *index = (struct lmdb_index){0};
}

/* ---- from a snapshot ------------------------------------------------------------------------- */

static int64_t read_deadline(struct lmdb_index *index, const struct lmdb_view *view,
                             const struct lmdb_key *key, uint64_t transaction)
{
    if (index->boot == 0)
        index->boot = clock_boot_id();
    return lmdb_until_read(view, key, transaction, index->boot);
}

/* Adds one stored record, when it is a value, and its seal to the sum. */
static int add_record(struct lmdb_index *index, const struct lmdb_view *view, MDB_val *stored_key,
                      const MDB_val *stored, bool thoroughly, uint64_t *digest)
{
    const uint64_t identity = view->root.identity;
    struct lmdb_key key;
    struct odds_subject subject;
    struct lmdb_record record;
    if (!lmdb_key_read(stored_key, &key) ||
        !odds_name_read((struct text){key.bytes, key.size}, &subject))
        return 0;
    if (lmdb_record_read(stored, &record) != 0 || record.header.transaction == 0)
        return MDB_CORRUPTED;
    struct lmdb_entry entry =
        lmdb_entry_of(subject.kind, subject.sport, &subject.event, record.header.transaction);
    if (lmdb_index_find(index, &entry) != NULL)
        return MDB_CORRUPTED; /* the tree holds it twice */
    MDB_val found;
    if (thoroughly && (mdb_get(view->txn, view->dbi, stored_key, &found) != 0 ||
                       found.mv_data != stored->mv_data ||
                       !lmdb_record_is_whole(&record, identity, &key, record.bytes)))
        return MDB_CORRUPTED;
    *digest += lmdb_record_seal(&record.header, identity, &key);
    lmdb_index_set(index, &entry,
                   record.header.expires_ms == 0
                       ? 0
                       : read_deadline(index, view, &key, record.header.transaction));
    return 0;
}

int lmdb_index_build(struct lmdb_index *index, struct lmdb_view *view, bool thoroughly)
{
    /* The same holds for the times of expiry, changes, `root`, and `format`. A damaged tree may
     * lead in circles. */
    uint64_t most = 2 * view->root.count + LMDB_RING + 2;
    uint64_t digest = 0;
    MDB_val key;
    MDB_val value;
    lmdb_index_free(index);
    int result = mdb_cursor_open(view->txn, view->dbi, &view->cursor);
    if (result != 0)
        return result;
    for (uint64_t i = 0; result == 0; i++) {
        result = mdb_cursor_get(view->cursor, &key, &value, MDB_NEXT);
        if (result == 0)
            result = i < most ? add_record(index, view, &key, &value, thoroughly, &digest)
                              : MDB_CORRUPTED;
    }
    mdb_cursor_close(view->cursor);
    view->cursor = NULL;
    if (result != MDB_NOTFOUND)
        return result;
    if (index->live != view->root.count || digest != view->root.digest)
        return MDB_CORRUPTED;
    index->transaction = view->transaction;
    return 0;
}

int lmdb_changes_read(const struct lmdb_view *view, uint64_t transaction, struct buffer *entries)
{
    struct lmdb_key key = lmdb_key_of_changes(transaction);
    struct lmdb_record record;
    int result = lmdb_record_find(view, &key, transaction, &record);
    if (result != 0 || record.size == 0 || record.size % ENTRY_SIZE != 0)
        return MDB_NOTFOUND;
    buffer_reserve(entries, record.size); /* before the map is touched, which may fault */
    size_t at = entries->size;
    buffer_append(entries, record.bytes, record.size);
    if (lmdb_record_is_whole(&record, view->root.identity, &key, entries->data + at))
        return 0;
    entries->size = at;
    return MDB_NOTFOUND;
}

/* The deadlines of what was changed. One whose value a later commit wrote again follows there. */
static void read_untils(struct lmdb_index *index, const struct lmdb_view *view)
{
    size_t count;
    const struct lmdb_entry *entry = lmdb_entries(&index->changes, &count);
    buffer_clear(&index->untils);
    for (size_t i = 0; i < count; i++, entry++) {
        int64_t deadline_ms = 0;
        if ((entry->transaction & LMDB_UNTIL) != 0) {
            struct lmdb_key key =
                lmdb_key_of((enum odds_kind)entry->kind, (enum sport)entry->sport, &entry->event);
            deadline_ms = read_deadline(index, view, &key, entry->transaction & ~LMDB_UNTIL);
        }
        buffer_append(&index->untils, &deadline_ms, sizeof deadline_ms);
    }
}

static int follow_one(struct lmdb_index *index, const struct lmdb_view *view)
{
    buffer_clear(&index->changes);
    int result = lmdb_changes_read(view, index->transaction + 1, &index->changes);
    /* All is read before anything is set, since the map may fault. */
    read_untils(index, view);
    const int64_t *deadlines_ms = (const int64_t *)(const void *)index->untils.data;
    size_t count;
    struct lmdb_entry *entries = lmdb_entries(&index->changes, &count);
    for (size_t i = 0; i < count; i++) {
        entries[i].transaction &= ~LMDB_UNTIL;
        lmdb_index_set(index, &entries[i], deadlines_ms[i]);
    }
    index->transaction += result == 0;
    return result;
}

int lmdb_index_follow(struct lmdb_index *index, struct lmdb_view *view)
{
    bool listed = index->transaction != 0 && view->transaction - index->transaction < LMDB_RING;
    while (listed && index->transaction < view->transaction)
        listed = follow_one(index, view) == 0;
    if (listed && index->live == view->root.count &&
        lmdb_index_count(index) <= 2 * index->live + WITHDRAWN_MORE)
        return 0;
    return lmdb_index_build(index, view, false);
}
