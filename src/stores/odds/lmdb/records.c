/* Keys, headers and checksums of what the values environment holds. See records.h. */
#include "stores/odds/lmdb/records.h"

#include <stdio.h>
#include <string.h>

#include "base/checksum.h"
#include "stores/odds_engine.h"

static const char this_format[] = "croupier odds 3";
#define FORMAT_NAME TEXT("croupier odds ")

#define HEADER_SIZE sizeof(struct lmdb_header)

/* ---- keys ------------------------------------------------------------------------------------ */

static const struct lmdb_key root_key = {.size = 4, .bytes = "root"};

struct lmdb_key lmdb_key_of(enum odds_kind kind, enum sport sport, const struct event_id *event)
{
    struct odds_subject subject = odds_subject_of(kind, sport, event);
    struct lmdb_key key;
    key.size = odds_name_write(key.bytes, sizeof key.bytes, "", &subject);
    return key;
}

struct lmdb_key lmdb_key_of_changes(uint64_t transaction)
{
    struct lmdb_key key;
    key.size = (size_t)snprintf(key.bytes, sizeof key.bytes, "changes:%u",
                                (unsigned)(transaction % LMDB_RING));
    return key;
}

bool lmdb_key_read(const MDB_val *stored, struct lmdb_key *key)
{
    key->size = stored->mv_size;
    if (key->size > sizeof key->bytes)
        return false;
    memcpy(key->bytes, stored->mv_data, key->size);
    return true;
}

static MDB_val value_of(const void *bytes, size_t size)
{
    return (MDB_val){size, (void *)(uintptr_t)bytes};
}

/* ---- records --------------------------------------------------------------------------------- */

static uint64_t checksum_of(uint64_t identity, const struct lmdb_key *key,
                            const struct lmdb_header *header, struct text bytes)
{
    uint64_t sum = checksum_add(identity, key->bytes, key->size);
    sum = checksum_add(sum, &header->transaction,
                       HEADER_SIZE - offsetof(struct lmdb_header, transaction));
    return checksum_add(sum, bytes.at, bytes.size);
}

int lmdb_record_read(const MDB_val *stored, struct lmdb_record *record)
{
    if (stored->mv_size < HEADER_SIZE || stored->mv_size - HEADER_SIZE > ODDS_VALUE_MAX)
        return MDB_CORRUPTED;
    memcpy(&record->header, stored->mv_data, HEADER_SIZE);
    record->bytes = (const char *)stored->mv_data + HEADER_SIZE;
    record->size = stored->mv_size - HEADER_SIZE;
    return 0;
}

int lmdb_record_find(const struct lmdb_view *view, const struct lmdb_key *key, uint64_t transaction,
                     struct lmdb_record *record)
{
    MDB_val name = value_of(key->bytes, key->size);
    MDB_val stored;
    struct lmdb_record found;
    int result = mdb_get(view->txn, view->dbi, &name, &stored);
    if (result == 0)
        result = lmdb_record_read(&stored, &found);
    if (result == MDB_NOTFOUND || (result == 0 && found.header.transaction != transaction))
        result = MDB_CORRUPTED; /* it was said to be here */
    if (result == 0)
        *record = found;
    return result;
}

bool lmdb_record_is_whole(const struct lmdb_record *record, uint64_t identity,
                          const struct lmdb_key *key, const char *bytes)
{
    return checksum_of(identity, key, &record->header, (struct text){bytes, record->size}) ==
           record->header.checksum;
}

uint64_t lmdb_record_seal(const struct lmdb_record *record, uint64_t identity,
                          const struct lmdb_key *key)
{
    return checksum_add(checksum_add(identity, key->bytes, key->size), &record->header,
                        HEADER_SIZE);
}

int lmdb_record_write(const struct lmdb_view *view, const struct lmdb_key *key,
                      int64_t published_ms, struct text bytes, struct lmdb_record *record)
{
    struct lmdb_header header = {.transaction = mdb_txn_id(view->txn),
                                 .published_ms = published_ms};
    header.checksum = checksum_of(view->root.identity, key, &header, bytes);
    MDB_val name = value_of(key->bytes, key->size);
    MDB_val stored = {HEADER_SIZE + bytes.size, NULL};
    int result = mdb_put(view->txn, view->dbi, &name, &stored, MDB_RESERVE);
    if (result != 0)
        return result;
    memcpy(stored.mv_data, &header, HEADER_SIZE);
    if (bytes.size > 0)
        memcpy((char *)stored.mv_data + HEADER_SIZE, bytes.at, bytes.size);
    if (record != NULL)
        *record = (struct lmdb_record){.header = header};
    return 0;
}

int lmdb_record_delete(const struct lmdb_view *view, const struct lmdb_key *key)
{
    MDB_val name = value_of(key->bytes, key->size);
    return mdb_del(view->txn, view->dbi, &name, NULL);
}

/* ---- the root and the format ----------------------------------------------------------------- */

int lmdb_root_read(struct lmdb_view *view)
{
    struct lmdb_record record;
    struct lmdb_root root;
    int result = lmdb_record_find(view, &root_key, view->transaction, &record);
    if (result != 0)
        return result;
    if (record.header.checksum == view->root_checksum)
        return 0; /* the root at hand */
    if (record.size != sizeof root)
        return MDB_CORRUPTED;
    memcpy(&root, record.bytes, sizeof root);
    /* The identity is inside, so that it can be read before it is known. */
    if (!lmdb_record_is_whole(&record, root.identity, &root_key, (const char *)&root))
        return MDB_CORRUPTED;
    view->root = root;
    view->root_checksum = record.header.checksum;
    return 0;
}

int lmdb_root_write(const struct lmdb_view *view)
{
    return lmdb_record_write(view, &root_key, 0,
                             (struct text){(const char *)&view->root, sizeof view->root}, NULL);
}

int lmdb_format_read(MDB_txn *txn, MDB_dbi dbi, enum lmdb_format *format)
{
    MDB_val name = value_of("format", strlen("format"));
    MDB_val value;
    MDB_stat stat;
    int result = mdb_get(txn, dbi, &name, &value);
    struct text stored = result == 0 ? (struct text){value.mv_data, value.mv_size} : TEXT("");
    int order = strncmp(stored.at, this_format, stored.size);
    *format = !text_starts_with(stored, FORMAT_NAME) || order < 0 ? LMDB_OLDER_FORMAT
              : order > 0                                         ? LMDB_NEWER_FORMAT
                                                                  : LMDB_THIS_FORMAT;
    if (result != MDB_NOTFOUND)
        return result;
    result = mdb_stat(txn, dbi, &stat);
    if (result == 0 && stat.ms_entries == 0)
        *format = LMDB_NO_FORMAT;
    return result;
}

int lmdb_format_write(const struct lmdb_view *view)
{
    MDB_val name = value_of("format", strlen("format"));
    MDB_val format = value_of(this_format, strlen(this_format));
    return mdb_put(view->txn, view->dbi, &name, &format, 0);
}
