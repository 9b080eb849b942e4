/* Keys, headers and checksums of what the values environment holds. See records.h. */
#include "stores/odds/lmdb/records.h"

#include "base/checksum.h"
#include "base/clock.h"
#include "stores/odds_engine.h"

static const char this_format[] = "croupier odds 3";
static const char expiring_format[] = "croupier odds 4";
#define UNTIL "until:"
#define UNTIL_STEP_MS 100
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

static struct lmdb_key key_of_until(const struct lmdb_key *value)
{
    struct lmdb_key key = {.size = strlen(UNTIL) + value->size};
    CHECK(key.size <= sizeof key.bytes);
    memcpy(key.bytes, UNTIL, strlen(UNTIL));
    memcpy(key.bytes + strlen(UNTIL), value->bytes, value->size);
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

uint64_t lmdb_record_seal(const struct lmdb_header *header, uint64_t identity,
                          const struct lmdb_key *key)
{
    return checksum_add(checksum_add(identity, key->bytes, key->size), header, HEADER_SIZE);
}

int lmdb_record_write(const struct lmdb_view *view, const struct lmdb_key *key,
                      struct lmdb_header *header, struct text bytes)
{
    header->transaction = mdb_txn_id(view->txn);
    header->checksum = checksum_of(view->root.identity, key, header, bytes);
    MDB_val name = value_of(key->bytes, key->size);
    MDB_val stored = {HEADER_SIZE + bytes.size, NULL};
    int result = mdb_put(view->txn, view->dbi, &name, &stored, MDB_RESERVE);
    if (result != 0)
        return result;
    memcpy(stored.mv_data, header, HEADER_SIZE);
    if (bytes.size > 0)
        memcpy((char *)stored.mv_data + HEADER_SIZE, bytes.at, bytes.size);
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
    return lmdb_record_write(view, &root_key, &(struct lmdb_header){0},
                             (struct text){(const char *)&view->root, sizeof view->root});
}

int lmdb_format_read(MDB_txn *txn, MDB_dbi dbi, enum lmdb_format *format)
{
    MDB_val name = value_of("format", strlen("format"));
    MDB_val value;
    MDB_stat stat;
    int result = mdb_get(txn, dbi, &name, &value);
    struct text stored = result == 0 ? (struct text){value.mv_data, value.mv_size} : TEXT("");
    bool older = strncmp(stored.at, this_format, stored.size) < 0;
    bool newer = strncmp(stored.at, expiring_format, stored.size) > 0;
    *format = !text_starts_with(stored, FORMAT_NAME) || older ? LMDB_OLDER_FORMAT
              : newer                                         ? LMDB_NEWER_FORMAT
                                                              : LMDB_THIS_FORMAT;
    if (result != MDB_NOTFOUND)
        return result;
    result = mdb_stat(txn, dbi, &stat);
    if (result == 0 && stat.ms_entries == 0)
        *format = LMDB_NO_FORMAT;
    return result;
}

int lmdb_format_write(const struct lmdb_view *view, bool expiring)
{
    const char *text = expiring ? expiring_format : this_format;
    MDB_val name = value_of("format", strlen("format"));
    MDB_val format = value_of(text, strlen(text));
    return mdb_put(view->txn, view->dbi, &name, &format, 0);
}

/* ---- expiry ---------------------------------------------------------------------------------- */

int lmdb_until_write(const struct lmdb_view *view, const struct lmdb_key *value,
                     const struct lmdb_until *until)
{
    struct lmdb_key key = key_of_until(value);
    return lmdb_record_write(view, &key, &(struct lmdb_header){0},
                             (struct text){(const char *)until, sizeof *until});
}

int lmdb_until_delete(const struct lmdb_view *view, const struct lmdb_key *value)
{
    struct lmdb_key key = key_of_until(value);
    int result = lmdb_record_delete(view, &key);
    return result == MDB_NOTFOUND ? 0 : result; /* lost: the value has expired */
}

/* A reboot ends the value: only the wall clock, which may be behind by then, could tell how long
 * the machine was down. Where no boot has an id, the wall clock counts, unless it was set back. */
static int64_t deadline_of(const struct lmdb_until *until, uint64_t boot)
{
    int64_t now_ms = clock_boot_ms();
    int64_t left_ms = boot != 0 ? until->boot_ms - now_ms : until->wall_ms - clock_wall_ms();
    if (until->boot != boot || left_ms > until->lifetime_ms)
        return LMDB_EXPIRED;
    int64_t deadline_ms = (now_ms + left_ms) / UNTIL_STEP_MS * UNTIL_STEP_MS;
    return deadline_ms <= now_ms ? LMDB_EXPIRED : deadline_ms;
}

int64_t lmdb_until_read(const struct lmdb_view *view, const struct lmdb_key *value,
                        uint64_t transaction, uint64_t boot)
{
    struct lmdb_key key = key_of_until(value);
    MDB_val name = value_of(key.bytes, key.size);
    MDB_val stored;
    struct lmdb_record record;
    struct lmdb_until until;
    if (mdb_get(view->txn, view->dbi, &name, &stored) != 0 ||
        lmdb_record_read(&stored, &record) != 0 || record.size != sizeof until)
        return LMDB_EXPIRED;
    memcpy(&until, record.bytes, sizeof until);
    if (!lmdb_record_is_whole(&record, view->root.identity, &key, (const char *)&until) ||
        until.transaction != transaction)
        return LMDB_EXPIRED;
    return deadline_of(&until, boot);
}
