/*
 * What the values environment holds, and how a reader knows that it is what was published. See
 * lmdb.h.
 *
 * A record is a header and the exact bytes. Its checksum is over the store's identity, the key, the
 * header and the bytes: a record of another event or of another store is not whole under this key.
 *
 * That a record is the newest, or that there is none, LMDB's tree alone does not prove: a damaged
 * branch or key makes a look-up miss, and an old page in the place of a new one leads to an old
 * value with a checksum that is right. So there is an index of two levels. Each commit writes the
 * record `root`, which names the commit that last wrote each catalog and each of the buckets; a
 * bucket lists some of the events that have odds, with the commit that wrote them. From the
 * snapshot's number, each step demands a record that is whole and was written by just that commit.
 * What is not listed has no odds; what is listed and cannot be found so is damaged.
 *
 * A bucket that a writer finds damaged it begins again, marked as incomplete: what it lists is
 * right, and of what it does not list nothing is known. A damaged root is a damaged store.
 *
 * Everything here runs inside odds_guard_run.
 */
#include <string.h>
#include <sys/random.h>
#include <zlib.h>

#include "base/checksum.h"
#include "base/memory.h"
#include "stores/odds/lmdb/lmdb.h"

static const char this_format[] = "croupier odds 2";
static const char older_format[] = "croupier odds 1";
static const char record_mark[8] = "CRPODDS2";

struct record_header {
    char mark[8];
    uint64_t checksum; /* of what follows, and more: checksum_of */
    uint64_t transaction;
    int64_t published_ms;
    uint64_t size;
};
#define HEADER_SIZE sizeof(struct record_header)

/* ---- keys ------------------------------------------------------------------------------------ */

static void key_append(struct lmdb_key *key, const char *bytes, size_t size)
{
    CHECK(key->size + size <= sizeof key->bytes);
    memcpy(key->bytes + key->size, bytes, size);
    key->size += size;
}

static struct lmdb_key key_of_text(const char *text)
{
    struct lmdb_key key = {0};
    key_append(&key, text, strlen(text));
    return key;
}

struct lmdb_key lmdb_key_of(enum odds_kind kind, enum sport sport, const struct event_id *event)
{
    struct lmdb_key key = key_of_text(kind == ODDS_CATALOG ? "catalog:" : "odds:");
    key_append(&key, sport_key(sport), strlen(sport_key(sport)));
    if (kind == ODDS_MARKETS) {
        key_append(&key, ":", 1);
        key_append(&key, event->digits, event->size);
    }
    return key;
}

static struct lmdb_key key_of_bucket(size_t number)
{
    struct lmdb_key key = key_of_text("events:");
    char digits[3] = {(char)('0' + number / 100), (char)('0' + number / 10 % 10),
                      (char)('0' + number % 10)};
    key_append(&key, digits, sizeof digits);
    return key;
}

static MDB_val value_of_key(const struct lmdb_key *key)
{
    return (MDB_val){key->size, (void *)(uintptr_t)key->bytes};
}

/* ---- records --------------------------------------------------------------------------------- */

static uint64_t checksum_of(uint64_t identity, const struct lmdb_key *key,
                            const struct record_header *header, const char *bytes)
{
    uint64_t sum = checksum_add(identity, key->bytes, key->size);
    sum = checksum_add(sum, &header->transaction,
                       HEADER_SIZE - offsetof(struct record_header, transaction));
    return checksum_add(sum, bytes, (size_t)header->size);
}

int lmdb_record_find(const struct lmdb_view *view, const struct lmdb_key *key, uint64_t transaction,
                     struct lmdb_record *record)
{
    MDB_val name = value_of_key(key);
    MDB_val value;
    int result = mdb_get(view->txn, view->dbi, &name, &value);
    if (result == MDB_NOTFOUND)
        return MDB_CORRUPTED; /* it was said to be here */
    if (result != 0)
        return result;
    struct record_header header;
    if (value.mv_size < HEADER_SIZE)
        return MDB_CORRUPTED;
    memcpy(&header, value.mv_data, HEADER_SIZE);
    if (memcmp(header.mark, record_mark, sizeof record_mark) != 0 ||
        header.transaction != transaction || header.size > LMDB_RECORD_MAX ||
        header.size + HEADER_SIZE != value.mv_size)
        return MDB_CORRUPTED;
    *record = (struct lmdb_record){.checksum = header.checksum,
                                   .transaction = transaction,
                                   .published_ms = header.published_ms,
                                   .bytes = (const char *)value.mv_data + HEADER_SIZE,
                                   .size = (size_t)header.size};
    return 0;
}

bool lmdb_record_is_whole(const struct lmdb_record *record, uint64_t identity,
                          const struct lmdb_key *key, const char *bytes)
{
    struct record_header header = {.transaction = record->transaction,
                                   .published_ms = record->published_ms,
                                   .size = record->size};
    return checksum_of(identity, key, &header, bytes) == record->checksum;
}

static int put_record(const struct lmdb_view *view, const struct lmdb_key *key,
                      int64_t published_ms, const void *bytes, size_t size)
{
    struct record_header header = {
        .transaction = mdb_txn_id(view->txn), .published_ms = published_ms, .size = size};
    memcpy(header.mark, record_mark, sizeof record_mark);
    header.checksum = checksum_of(view->root.identity, key, &header, bytes);
    MDB_val name = value_of_key(key);
    MDB_val value = {HEADER_SIZE + size, NULL};
    int result = mdb_put(view->txn, view->dbi, &name, &value, MDB_RESERVE);
    if (result != 0)
        return result;
    memcpy(value.mv_data, &header, HEADER_SIZE);
    if (size > 0)
        memcpy((char *)value.mv_data + HEADER_SIZE, bytes, size);
    return 0;
}

static int delete_record(const struct lmdb_view *view, const struct lmdb_key *key)
{
    MDB_val name = value_of_key(key);
    int result = mdb_del(view->txn, view->dbi, &name, NULL);
    return result == MDB_NOTFOUND ? 0 : result;
}

/* ---- the root -------------------------------------------------------------------------------- */

int lmdb_root_read(struct lmdb_view *view, uint64_t transaction)
{
    struct lmdb_key key = key_of_text("root");
    struct lmdb_record record;
    struct lmdb_root root;
    int result = lmdb_record_find(view, &key, transaction, &record);
    if (result != 0)
        return result;
    if (record.checksum == view->root_checksum)
        return 0; /* that is the one at hand */
    if (record.size != sizeof root)
        return MDB_CORRUPTED;
    memcpy(&root, record.bytes, sizeof root);
    /* The identity is inside, so that it can be read before it is known. */
    if (!lmdb_record_is_whole(&record, root.identity, &key, (const char *)&root))
        return MDB_CORRUPTED;
    view->root = root;
    view->root_checksum = record.checksum;
    return 0;
}

/* ---- buckets --------------------------------------------------------------------------------- */

struct entry {
    struct event_id event;
    uint8_t sport;
    uint8_t zero; /* the struct has no holes, as its bytes are stored */
    uint64_t transaction;
};
_Static_assert(sizeof(struct entry) == sizeof(struct event_id) + 2 + sizeof(uint64_t), "no holes");

#define BUCKET_START sizeof(uint64_t) /* before the entries: is it incomplete? */

static size_t bucket_number(enum sport sport, const struct event_id *event)
{
    return (size_t)(checksum_add((uint64_t)sport, event->digits, event->size) % LMDB_BUCKETS);
}

static bool entry_is(const struct entry *entry, enum sport sport, const struct event_id *event)
{
    return entry->sport == sport && memcmp(&entry->event, event, sizeof *event) == 0;
}

/* The whole bytes of a bucket that the root names. */
static int find_bucket(const struct lmdb_view *view, size_t number, struct text *bytes)
{
    struct lmdb_key key = key_of_bucket(number);
    struct lmdb_record record;
    int result = lmdb_record_find(view, &key, view->root.buckets[number], &record);
    if (result != 0)
        return result;
    if (record.size < BUCKET_START || (record.size - BUCKET_START) % sizeof(struct entry) != 0 ||
        !lmdb_record_is_whole(&record, view->root.identity, &key, record.bytes))
        return MDB_CORRUPTED;
    *bytes = (struct text){record.bytes, record.size};
    return 0;
}

static bool is_incomplete(struct text bucket)
{
    uint64_t incomplete;
    memcpy(&incomplete, bucket.at, sizeof incomplete);
    return incomplete != 0;
}

/* Entries are copied out: LMDB's values stand at even addresses, no better. */
static struct entry entry_at(struct text bucket, size_t offset)
{
    struct entry entry;
    memcpy(&entry, bucket.at + offset, sizeof entry);
    return entry;
}

int lmdb_index_find(const struct lmdb_view *view, enum sport sport, const struct event_id *event,
                    uint64_t *transaction)
{
    size_t number = bucket_number(sport, event);
    struct text bucket;
    *transaction = 0;
    if (view->root.buckets[number] == 0)
        return 0;
    int result = find_bucket(view, number, &bucket);
    if (result != 0)
        return result;
    for (size_t at = BUCKET_START; at < bucket.size; at += sizeof(struct entry)) {
        struct entry entry = entry_at(bucket, at);
        if (entry_is(&entry, sport, event)) {
            *transaction = entry.transaction;
            return 0;
        }
    }
    return is_incomplete(bucket) ? MDB_CORRUPTED : 0;
}

int lmdb_index_each(const struct lmdb_view *view, lmdb_index_visit *visit, void *context)
{
    int worst = 0;
    for (size_t number = 0; number < LMDB_BUCKETS; number++) {
        struct text bucket;
        if (view->root.buckets[number] == 0)
            continue;
        int result = find_bucket(view, number, &bucket);
        if (result != 0) {
            worst = result;
            continue;
        }
        for (size_t at = BUCKET_START; at < bucket.size; at += sizeof(struct entry)) {
            struct entry entry = entry_at(bucket, at);
            visit(context, (enum sport)entry.sport, &entry.event, entry.transaction);
        }
        if (is_incomplete(bucket))
            worst = MDB_CORRUPTED;
    }
    return worst;
}

/* ---- what has changed ------------------------------------------------------------------------ */

/* Events mostly keep their places, so the one at the same place is looked at first. */
static size_t place_of(struct text bucket, const struct entry *entry, size_t guess)
{
    struct event_id event = entry->event;
    struct entry listed;
    if (guess + sizeof listed <= bucket.size) {
        listed = entry_at(bucket, guess);
        if (entry_is(&listed, (enum sport)entry->sport, &event))
            return guess;
    }
    for (size_t at = BUCKET_START; at + sizeof listed <= bucket.size; at += sizeof listed) {
        listed = entry_at(bucket, at);
        if (entry_is(&listed, (enum sport)entry->sport, &event))
            return at;
    }
    return SIZE_MAX;
}

/* The events of `here` that `there` does not list, or, when they `differ`, lists with another
 * transaction. */
static void visit_differences(struct text here, struct text there, bool differ,
                              lmdb_change_visit *visit, void *context)
{
    for (size_t at = BUCKET_START; at + sizeof(struct entry) <= here.size;
         at += sizeof(struct entry)) {
        struct entry entry = entry_at(here, at);
        size_t place = place_of(there, &entry, at);
        if (place != SIZE_MAX &&
            (!differ || entry_at(there, place).transaction == entry.transaction))
            continue;
        struct odds_subject subject = {
            .kind = ODDS_MARKETS, .sport = (enum sport)entry.sport, .event = entry.event};
        visit(context, &subject);
    }
}

static void bucket_changes(const struct lmdb_view *view, struct lmdb_seen *seen, size_t number,
                           lmdb_change_visit *visit, void *context)
{
    struct buffer *before = &seen->entries[number];
    struct text now = {NULL, 0};
    if (view->root.buckets[number] != 0 && find_bucket(view, number, &now) != 0) {
        visit(context, NULL);
    } else {
        visit_differences(now, buffer_text(before), true, visit, context);
        visit_differences(buffer_text(before), now, false, visit, context);
    }
    buffer_clear(before);
    if (now.size > 0)
        buffer_append(before, now.at, now.size);
    seen->buckets[number] = view->root.buckets[number];
}

void lmdb_index_changes(const struct lmdb_view *view, struct lmdb_seen *seen,
                        lmdb_change_visit *visit, void *context)
{
    for (unsigned i = 0; i < SPORT_COUNT; i++) {
        struct odds_subject subject = {.kind = ODDS_CATALOG, .sport = (enum sport)i};
        if (seen->catalogs[i] == view->root.catalogs[i])
            continue;
        seen->catalogs[i] = view->root.catalogs[i];
        visit(context, &subject);
    }
    for (size_t number = 0; number < LMDB_BUCKETS; number++) {
        if (seen->buckets[number] != view->root.buckets[number])
            bucket_changes(view, seen, number, visit, context);
    }
}

void lmdb_seen_clear(struct lmdb_seen *seen)
{
    for (size_t number = 0; number < LMDB_BUCKETS; number++)
        buffer_free(&seen->entries[number]);
    memset(seen, 0, sizeof *seen);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A bucket as the writer has it: its bytes, empty until it is first needed. */
static struct buffer *bucket_to_write(struct lmdb_edit *edit, size_t number)
{
    struct buffer *bytes = &edit->buckets[number];
    const uint64_t complete = 0;
    const uint64_t incomplete = 1;
    struct text stored;
    if (bytes->size > 0)
        return bytes;
    if (edit->view.root.buckets[number] == 0)
        buffer_append(bytes, &complete, sizeof complete);
    else if (find_bucket(&edit->view, number, &stored) == 0)
        buffer_append(bytes, stored.at, stored.size);
    else
        buffer_append(bytes, &incomplete, sizeof incomplete);
    return bytes;
}

/* Lists an event with this transaction; 0: no longer. */
static void list_event(struct lmdb_edit *edit, enum sport sport, const struct event_id *event,
                       uint64_t transaction)
{
    struct entry entry = {.event = *event, .sport = (uint8_t)sport, .transaction = transaction};
    size_t number = bucket_number(sport, event);
    struct buffer *bytes = bucket_to_write(edit, number);
    struct text bucket = {bytes->data, bytes->size};
    size_t at = BUCKET_START;
    edit->changed[number] = true;
    for (; at < bucket.size; at += sizeof entry) {
        struct entry listed = entry_at(bucket, at);
        if (entry_is(&listed, sport, event))
            break;
    }
    if (transaction == 0 && at < bucket.size) { /* the last one takes its place */
        bytes->size -= sizeof entry;
        memmove(bytes->data + at, bytes->data + bytes->size, sizeof entry);
    } else if (transaction != 0 && at < bucket.size) {
        memcpy(bytes->data + at, &entry, sizeof entry);
    } else if (transaction != 0) {
        buffer_append(bytes, &entry, sizeof entry);
    }
}

int lmdb_edit_put(struct lmdb_edit *edit, const struct odds_change *change, int64_t now_ms)
{
    uint64_t transaction = mdb_txn_id(edit->view.txn);
    struct lmdb_key key = lmdb_key_of(change->kind, change->sport, &change->event);
    bool withdraw = change->bytes == NULL;
    if (change->kind == ODDS_CATALOG)
        edit->view.root.catalogs[change->sport] = withdraw ? 0 : transaction;
    else
        list_event(edit, change->sport, &change->event, withdraw ? 0 : transaction);
    if (withdraw)
        return delete_record(&edit->view, &key);
    edit->view.root.published_ms[change->sport] = now_ms;
    return put_record(&edit->view, &key, now_ms, change->bytes, change->size);
}

int lmdb_edit_finish(struct lmdb_edit *edit)
{
    uint64_t transaction = mdb_txn_id(edit->view.txn);
    struct lmdb_key root = key_of_text("root");
    for (size_t number = 0; number < LMDB_BUCKETS; number++) {
        struct buffer *bytes = &edit->buckets[number];
        struct lmdb_key key = key_of_bucket(number);
        if (!edit->changed[number])
            continue;
        bool gone = bytes->size == BUCKET_START && !is_incomplete(buffer_text(bytes));
        edit->view.root.buckets[number] = gone ? 0 : transaction;
        int result = gone ? delete_record(&edit->view, &key)
                          : put_record(&edit->view, &key, 0, bytes->data, bytes->size);
        if (result != 0)
            return result;
    }
    return put_record(&edit->view, &root, 0, &edit->view.root, sizeof edit->view.root);
}

void lmdb_edit_free(struct lmdb_edit *edit)
{
    for (size_t number = 0; number < LMDB_BUCKETS; number++)
        buffer_free(&edit->buckets[number]);
    buffer_free(&edit->older_keys);
    buffer_free(&edit->older_value);
}

/* ---- a store of format 1 --------------------------------------------------------------------- */

/* It had the same keys, `published:SPORT` beside them, no index, and a CRC-32 that left out the
 * key. */
struct older_header {
    char mark[4];
    uint32_t crc; /* of the rest of the header and the bytes */
    uint64_t transaction;
    int64_t published_ms;
    uint64_t size;
};
#define OLDER_SIZE sizeof(struct older_header)

static bool older_is_whole(const MDB_val *value, struct older_header *header)
{
    if (value->mv_size < OLDER_SIZE)
        return false;
    memcpy(header, value->mv_data, OLDER_SIZE);
    uLong crc =
        crc32_z(0, (const Bytef *)value->mv_data + offsetof(struct older_header, transaction),
                value->mv_size - offsetof(struct older_header, transaction));
    return memcmp(header->mark, "ODD1", sizeof header->mark) == 0 &&
           header->size + OLDER_SIZE == value->mv_size && header->crc == (uint32_t)crc;
}

/* Reads a key of format 1: `change` tells whose value it is, `published` that it is the sport's
 * time. */
static bool read_older_key(struct text key, struct odds_change *change, bool *published)
{
    struct text kind = text_cut(&key, ':');
    struct text sport = text_cut(&key, ':');
    *published = text_equals(kind, TEXT("published"));
    change->kind = text_equals(kind, TEXT("odds")) ? ODDS_MARKETS : ODDS_CATALOG;
    if (!*published && change->kind == ODDS_CATALOG && !text_equals(kind, TEXT("catalog")))
        return false;
    return sport_from_key(sport, &change->sport) == STATUS_OK &&
           (change->kind == ODDS_CATALOG || event_id_parse(key, &change->event) == STATUS_OK);
}

static int collect_older_keys(struct lmdb_edit *edit)
{
    MDB_cursor *cursor = NULL;
    int result = mdb_cursor_open(edit->view.txn, edit->view.dbi, &cursor);
    if (result != 0)
        return result;
    MDB_val key;
    MDB_val value;
    while ((result = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        buffer_append(&edit->older_keys, key.mv_data, key.mv_size);
        buffer_append_char(&edit->older_keys, '\n');
    }
    mdb_cursor_close(cursor);
    return result == MDB_NOTFOUND ? 0 : result;
}

/* A value that is damaged is listed and not written, so that it goes on being damaged. */
static int upgrade_value(struct lmdb_edit *edit, struct text text)
{
    struct odds_change change = {0};
    struct older_header header = {.size = 0};
    MDB_val key = {text.size, (void *)(uintptr_t)text.at};
    MDB_val value;
    bool published;
    if (!read_older_key(text, &change, &published))
        return 0; /* the format's mark */
    int result = mdb_get(edit->view.txn, edit->view.dbi, &key, &value);
    if (result != 0)
        return result;
    bool whole = older_is_whole(&value, &header);
    if (published) {
        if (whole)
            edit->view.root.published_ms[change.sport] = header.published_ms;
        return mdb_del(edit->view.txn, edit->view.dbi, &key, NULL);
    }
    buffer_clear(&edit->older_value);
    if (whole)
        buffer_append(&edit->older_value, (const char *)value.mv_data + OLDER_SIZE,
                      (size_t)header.size);
    change.bytes = buffer_string(&edit->older_value);
    change.size = edit->older_value.size;
    result = lmdb_edit_put(edit, &change, header.published_ms);
    return result != 0 || whole ? result : mdb_del(edit->view.txn, edit->view.dbi, &key, NULL);
}

static MDB_val value_of_text(const char *text)
{
    return (MDB_val){strlen(text), (void *)(uintptr_t)text};
}

int lmdb_edit_make(struct lmdb_edit *edit, void *context)
{
    (void)context;
    MDB_val name = value_of_text("format");
    MDB_val format = value_of_text(this_format);
    CHECK(getrandom(&edit->view.root.identity, sizeof edit->view.root.identity, 0) ==
          (ssize_t)sizeof edit->view.root.identity);
    int result = collect_older_keys(edit);
    struct text keys = buffer_text(&edit->older_keys);
    while (result == 0 && keys.size > 0)
        result = upgrade_value(edit, text_cut(&keys, '\n'));
    return result != 0 ? result : mdb_put(edit->view.txn, edit->view.dbi, &name, &format, 0);
}

int lmdb_format_read(MDB_txn *txn, MDB_dbi dbi, enum lmdb_format *format)
{
    MDB_val name = value_of_text("format");
    MDB_val value;
    MDB_stat stat;
    int result = mdb_get(txn, dbi, &name, &value);
    struct text stored = result == 0 ? (struct text){value.mv_data, value.mv_size} : TEXT("");
    *format = text_equals(stored, text_of(this_format))    ? LMDB_THIS_FORMAT
              : text_equals(stored, text_of(older_format)) ? LMDB_OLDER_FORMAT
                                                           : LMDB_OTHER_FORMAT;
    if (result != MDB_NOTFOUND)
        return result;
    result = mdb_stat(txn, dbi, &stat);
    if (result == 0 && stat.ms_entries == 0)
        *format = LMDB_NO_FORMAT;
    return result;
}
