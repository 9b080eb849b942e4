/*
 * The values environment: what the feed publishes. See odds_lmdb.h.
 *
 * Keys are those of the Redis engine (`catalog:cricket`, `odds:cricket:34000001`), so that mdb_dump
 * reads like a Redis dump; beside them `published:SPORT` (the time of the last publication; no
 * bytes) and `format`. A stored value is a record_header and the exact bytes.
 *
 * Versions and stamps are LMDB's own transaction numbers with the epoch above them: the epoch
 * counts how often this store handle opened an environment, so numbers of a store and of another
 * that replaced it never meet.
 *
 * Stamp and snapshot. A commit first writes the meta page, which is where mdb_env_info and thus the
 * stamp look, syncs it, and only then moves the number that a new read transaction starts from. In
 * between the stamp is ahead of what can be read, so what a read tells must carry the number of the
 * transaction that it was read in: under the newer stamp it will be asked again.
 *
 * Everything that touches the map runs under odds_guard_run. A body leaves what has to be cleaned
 * up in its context; a read transaction that was interrupted is reset, so that it pins no pages.
 */
#include <pthread.h>
#include <string.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds/lmdb/guard.h"
#include "stores/odds/lmdb/lmdb.h"

/* Address space, not memory and not disk: the file grows as it is filled. LMDB cannot grow a map
 * under its readers, so it is chosen far above need; works under the sanitizers too. */
#define VALUES_MAP_SIZE ((size_t)16 << 30)
/* How long a publisher waits for another process's turn. Longer than a call of the server may take:
 * a slow disk with several feeds must not make a publication fail. */
#define WRITER_WAIT_MS 10000
#define KEY_SIZE 64
#define EPOCH_SHIFT LMDB_TRANSACTION_BITS
#define TRANSACTION_MASK (((uint64_t)1 << LMDB_TRANSACTION_BITS) - 1)

static const char record_mark[4] = {'O', 'D', 'D', '1'};

struct record_header {
    char mark[4];
    uint32_t crc; /* CRC-32 of the rest of the header and the bytes */
    uint64_t transaction;
    int64_t published_ms;
    uint64_t size;
};
#define HEADER_SIZE sizeof(struct record_header)

struct lmdb_slot {
    struct lmdb_slot *next; /* of all, for closing */
    struct lmdb_slot *next_idle;
    MDB_txn *txn; /* reset, or NULL until first used */
};

struct lmdb_values {
    struct lmdb_env env;
    uint64_t epoch;
    pthread_mutex_t lock; /* guards the two lists */
    struct lmdb_slot *slots;
    struct lmdb_slot *idle;
};

/* ---- records --------------------------------------------------------------------------------- */

static uint32_t crc_of(const struct record_header *header, const char *bytes)
{
    uLong crc = crc32_z(0, (const Bytef *)&header->transaction,
                        HEADER_SIZE - offsetof(struct record_header, transaction));
    return (uint32_t)crc32_z(crc, (const Bytef *)bytes, header->size);
}

static bool header_is_sane(const struct record_header *header, size_t stored)
{
    return memcmp(header->mark, record_mark, sizeof record_mark) == 0 &&
           header->size <= ODDS_VALUE_MAX && header->size + HEADER_SIZE == stored &&
           header->transaction > 0 && header->transaction <= TRANSACTION_MASK;
}

static bool record_is_whole(const char *bytes, size_t size)
{
    struct record_header header;
    if (size < HEADER_SIZE)
        return true; /* the format mark, which check_format looks at */
    memcpy(&header, bytes, HEADER_SIZE);
    return header_is_sane(&header, size) && crc_of(&header, bytes + HEADER_SIZE) == header.crc;
}

struct record_key {
    size_t size;
    char bytes[KEY_SIZE];
};

static void key_append(struct record_key *key, const char *bytes, size_t size)
{
    CHECK(key->size + size <= KEY_SIZE);
    memcpy(key->bytes + key->size, bytes, size);
    key->size += size;
}

static void key_append_string(struct record_key *key, const char *string)
{
    key_append(key, string, strlen(string));
}

static struct record_key key_of_sport(const char *prefix, enum sport sport)
{
    struct record_key key = {0};
    key_append_string(&key, prefix);
    key_append_string(&key, sport_key(sport));
    return key;
}

static struct record_key key_of_odds_prefix(enum sport sport)
{
    struct record_key key = key_of_sport("odds:", sport);
    key_append(&key, ":", 1);
    return key;
}

static struct record_key key_of(enum odds_kind kind, enum sport sport, const struct event_id *event)
{
    if (kind == ODDS_CATALOG)
        return key_of_sport("catalog:", sport);
    struct record_key key = key_of_odds_prefix(sport);
    key_append(&key, event->digits, event->size);
    return key;
}

static MDB_val key_value(struct record_key *key)
{
    return (MDB_val){key->size, key->bytes};
}

/* ---- life ------------------------------------------------------------------------------------ */

enum status lmdb_values_open(struct lmdb_values **values, const char *root, bool create,
                             uint64_t epoch, uint32_t wait_ms, struct error *error)
{
    struct lmdb_place place = {.root = root,
                               .folder = "values",
                               .format = "croupier odds 1",
                               .map_size = VALUES_MAP_SIZE,
                               .create = create,
                               .wait_ms = wait_ms,
                               .value_is_whole = record_is_whole};
    if (create)
        lmdb_make_root(root);
    struct lmdb_values *opened = memory_alloc_zeroed(1, sizeof *opened);
    enum status status = lmdb_env_open(&opened->env, &place, error);
    if (status != STATUS_OK) {
        memory_free(opened);
        return status;
    }
    opened->epoch = epoch;
    CHECK(pthread_mutex_init(&opened->lock, NULL) == 0);
    *values = opened;
    return STATUS_OK;
}

static void abort_body(void *context)
{
    mdb_txn_abort(context);
}

void lmdb_values_close(struct lmdb_values **values)
{
    struct lmdb_values *closing = *values;
    if (closing == NULL)
        return;
    while (closing->slots != NULL) {
        struct lmdb_slot *slot = closing->slots;
        closing->slots = slot->next;
        if (slot->txn != NULL && !odds_guard_run(abort_body, slot->txn))
            slot->txn = NULL; /* lost with the rest of it */
        memory_free(slot);
    }
    lmdb_env_close(&closing->env);
    CHECK(pthread_mutex_destroy(&closing->lock) == 0);
    memory_free(closing);
    *values = NULL;
}

uint64_t lmdb_values_epoch(const struct lmdb_values *values)
{
    return values->epoch;
}

uint64_t lmdb_values_damaged(const struct lmdb_values *values)
{
    return values->env.damaged_values;
}

bool lmdb_values_changed(struct lmdb_values *values, const char **why)
{
    return lmdb_env_changed(&values->env, why);
}

static void readers_body(void *context)
{
    int dead = 0;
    (void)mdb_reader_check(context, &dead);
}

void lmdb_values_clear_dead_readers(struct lmdb_values *values)
{
    if (!odds_guard_run(readers_body, values->env.env))
        return; /* lmdb_values_changed will find out why */
}

struct lmdb_slot *lmdb_values_borrow_slot(struct lmdb_values *values)
{
    CHECK(pthread_mutex_lock(&values->lock) == 0);
    struct lmdb_slot *slot = values->idle;
    if (slot != NULL) {
        values->idle = slot->next_idle;
    } else {
        slot = memory_alloc_zeroed(1, sizeof *slot);
        slot->next = values->slots;
        values->slots = slot;
    }
    CHECK(pthread_mutex_unlock(&values->lock) == 0);
    return slot;
}

void lmdb_values_return_slot(struct lmdb_values *values, struct lmdb_slot *slot)
{
    CHECK(pthread_mutex_lock(&values->lock) == 0);
    slot->next_idle = values->idle;
    values->idle = slot;
    CHECK(pthread_mutex_unlock(&values->lock) == 0);
}

/* ---- reading --------------------------------------------------------------------------------- */

static uint64_t with_epoch(const struct lmdb_values *values, uint64_t transaction)
{
    return values->epoch << EPOCH_SHIFT | (transaction & TRANSACTION_MASK);
}

struct stamping {
    MDB_env *env;
    uint64_t transaction;
};

static void stamp_body(void *context)
{
    struct stamping *stamping = context;
    MDB_envinfo info;
    (void)mdb_env_info(stamping->env, &info);
    stamping->transaction = info.me_last_txnid;
}

enum status lmdb_values_stamp(struct lmdb_values *values, uint64_t *stamp)
{
    struct stamping stamping = {.env = values->env.env};
    if (!odds_guard_run(stamp_body, &stamping))
        return STATUS_INTERNAL;
    *stamp = with_epoch(values, stamping.transaction);
    return STATUS_OK;
}

#define LOOKUPS_MAX SPORT_COUNT

/* Looks up the headers of some records in one snapshot. */
struct looking {
    const struct lmdb_values *values;
    struct lmdb_slot *slot;
    struct record_key *keys;
    size_t count;
    bool stay; /* keep the snapshot, for copying values */

    int result;
    uint64_t transaction;
    struct record_header headers[LOOKUPS_MAX];
    bool found[LOOKUPS_MAX];
    const char *at[LOOKUPS_MAX]; /* in the map, valid while the snapshot is kept */
    size_t stored[LOOKUPS_MAX];
};

static void look_body(void *context)
{
    struct looking *looking = context;
    struct lmdb_slot *slot = looking->slot;
    looking->result = slot->txn != NULL
                          ? mdb_txn_renew(slot->txn)
                          : mdb_txn_begin(looking->values->env.env, NULL, MDB_RDONLY, &slot->txn);
    if (looking->result != 0)
        return;
    looking->transaction = mdb_txn_id(slot->txn);
    for (size_t i = 0; i < looking->count; i++) {
        MDB_val key = key_value(&looking->keys[i]);
        MDB_val value;
        int result = mdb_get(slot->txn, looking->values->env.dbi, &key, &value);
        if (result != 0 && result != MDB_NOTFOUND) {
            looking->result = result;
            break;
        }
        looking->found[i] = result == 0;
        if (result != 0)
            continue;
        looking->at[i] = value.mv_data;
        looking->stored[i] = value.mv_size;
        if (value.mv_size >= HEADER_SIZE)
            memcpy(&looking->headers[i], value.mv_data, HEADER_SIZE);
    }
    if (!looking->stay || looking->result != 0)
        mdb_txn_reset(slot->txn);
}

static void reset_body(void *context)
{
    struct lmdb_slot *slot = context;
    if (slot->txn != NULL)
        mdb_txn_reset(slot->txn);
}

/* Ends a snapshot from outside of a body. */
static void reset(struct lmdb_slot *slot)
{
    if (!odds_guard_run(reset_body, slot))
        slot->txn = NULL; /* even the lock file's map is gone */
}

static enum status look(struct looking *looking)
{
    if (!odds_guard_run(look_body, looking)) {
        reset(looking->slot);
        return STATUS_INTERNAL;
    }
    return lmdb_status(&looking->values->env, looking->result);
}

/* The version of record `i`. A header that makes no sense still has to have a version: one of this
 * snapshot's own, so that every look at it ends in a read, which will say STATUS_MALFORMED. */
static uint64_t version_of(const struct looking *looking, size_t i)
{
    if (!looking->found[i])
        return 0;
    const struct record_header *header = &looking->headers[i];
    if (!header_is_sane(header, looking->stored[i]) || header->transaction > looking->transaction)
        return with_epoch(looking->values, looking->transaction);
    return with_epoch(looking->values, header->transaction);
}

enum status lmdb_values_versions(struct lmdb_values *values, struct lmdb_slot *slot,
                                 enum sport sport, const struct event_id *event,
                                 struct odds_versions *versions)
{
    struct record_key keys[2] = {key_of(ODDS_CATALOG, sport, NULL)};
    if (event != NULL)
        keys[1] = key_of(ODDS_MARKETS, sport, event);
    struct looking looking = {
        .values = values, .slot = slot, .keys = keys, .count = event != NULL ? 2 : 1};
    enum status status = look(&looking);
    if (status != STATUS_OK)
        return status;
    *versions = (struct odds_versions){.stamp = with_epoch(values, looking.transaction),
                                       .catalog = version_of(&looking, 0),
                                       .odds = event != NULL ? version_of(&looking, 1) : 0};
    return STATUS_OK;
}

struct copying {
    struct {
        char *to;
        const char *from;
        size_t size;
    } copies[2];
    struct lmdb_slot *slot;
};

static void copy_body(void *context)
{
    struct copying *copying = context;
    for (size_t i = 0; i < 2; i++)
        if (copying->copies[i].size > 0)
            memcpy(copying->copies[i].to, copying->copies[i].from, copying->copies[i].size);
    mdb_txn_reset(copying->slot->txn);
}

static bool is_sound(const struct looking *looking, size_t i)
{
    return looking->found[i] && header_is_sane(&looking->headers[i], looking->stored[i]);
}

/* Has copy number `i` copy `size` bytes of record `i`, which is sound, from `at` on. */
static char *prepare_copy(struct copying *copying, const struct looking *looking, size_t i,
                          size_t at, size_t size)
{
    char *bytes = memory_alloc(size + 1);
    bytes[size] = '\0';
    copying->copies[i].to = bytes;
    copying->copies[i].from = looking->at[i] + HEADER_SIZE + at;
    copying->copies[i].size = size;
    return bytes;
}

/* The part of the catalog that is wanted with a value. */
static void prepare_part(struct copying *copying, const struct looking *looking,
                         struct odds_part *part)
{
    size_t size = (size_t)looking->headers[1].size;
    size_t at = part->at < size ? part->at : size;
    part->size = size - at < part->max ? size - at : part->max;
    part->bytes = prepare_copy(copying, looking, 1, at, part->size);
}

enum status lmdb_values_read(struct lmdb_values *values, struct lmdb_slot *slot,
                             struct odds_read *read)
{
    struct record_key keys[2] = {key_of(read->kind, read->sport, &read->event),
                                 key_of(ODDS_CATALOG, read->sport, NULL)};
    bool with_part = read->kind == ODDS_MARKETS && read->catalog.max > 0;
    struct looking looking = {
        .values = values, .slot = slot, .keys = keys, .count = with_part ? 2 : 1, .stay = true};
    enum status status = look(&looking);
    if (status != STATUS_OK)
        return status;
    struct odds_value got = {.stamp = with_epoch(values, looking.transaction),
                             .version = version_of(&looking, 0)};
    struct odds_part part = read->catalog;
    const struct record_header *header = &looking.headers[0];
    struct copying copying = {.slot = slot};
    if (is_sound(&looking, 0)) {
        got.size = (size_t)header->size;
        got.published_ms = header->published_ms;
        got.bytes = prepare_copy(&copying, &looking, 0, 0, got.size);
    }
    if (with_part && is_sound(&looking, 1))
        prepare_part(&copying, &looking, &part);
    if (!odds_guard_run(copy_body, &copying)) {
        reset(slot);
        status = STATUS_INTERNAL;
    } else if (looking.found[0] &&
               (got.bytes == NULL || crc_of(header, got.bytes) != header->crc)) {
        status = STATUS_MALFORMED;
    }
    if (status != STATUS_OK) {
        memory_free(got.bytes);
        memory_free(part.bytes);
        return status;
    }
    read->value = got;
    read->catalog = part;
    return STATUS_OK;
}

enum status lmdb_values_ping(struct lmdb_values *values, struct lmdb_slot *slot)
{
    struct record_key key = {0};
    key_append_string(&key, "format");
    struct looking looking = {.values = values, .slot = slot, .keys = &key, .count = 1};
    enum status status = look(&looking);
    if (status == STATUS_OK && !looking.found[0])
        status = STATUS_INTERNAL;
    return status;
}

enum status lmdb_values_published(struct lmdb_values *values, struct lmdb_slot *slot,
                                  int64_t published_ms[SPORT_COUNT])
{
    struct record_key keys[SPORT_COUNT];
    for (unsigned i = 0; i < SPORT_COUNT; i++)
        keys[i] = key_of_sport("published:", (enum sport)i);
    struct looking looking = {.values = values, .slot = slot, .keys = keys, .count = SPORT_COUNT};
    enum status status = look(&looking);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < SPORT_COUNT; i++) {
        bool known = looking.found[i] && header_is_sane(&looking.headers[i], looking.stored[i]);
        published_ms[i] = known ? looking.headers[i].published_ms : 0;
    }
    return STATUS_OK;
}

/* Lists the ids behind the odds keys of a sport, in one snapshot. */
struct listing {
    const struct lmdb_values *values;
    struct lmdb_slot *slot;
    struct record_key prefix;
    struct buffer ids; /* of struct event_id */
    MDB_cursor *cursor;
    int result;
};

static void add_event(struct listing *listing, const MDB_val *key)
{
    struct text digits = {(const char *)key->mv_data + listing->prefix.size,
                          key->mv_size - listing->prefix.size};
    struct event_id id;
    if (event_id_parse(digits, &id) == STATUS_OK)
        buffer_append(&listing->ids, &id, sizeof id);
}

static void list_body(void *context)
{
    struct listing *listing = context;
    struct lmdb_slot *slot = listing->slot;
    MDB_val key = key_value(&listing->prefix);
    MDB_val value;
    listing->result = slot->txn != NULL
                          ? mdb_txn_renew(slot->txn)
                          : mdb_txn_begin(listing->values->env.env, NULL, MDB_RDONLY, &slot->txn);
    if (listing->result != 0)
        return;
    listing->result = mdb_cursor_open(slot->txn, listing->values->env.dbi, &listing->cursor);
    if (listing->result == 0)
        listing->result = mdb_cursor_get(listing->cursor, &key, &value, MDB_SET_RANGE);
    while (listing->result == 0 && key.mv_size > listing->prefix.size &&
           memcmp(key.mv_data, listing->prefix.bytes, listing->prefix.size) == 0) {
        add_event(listing, &key);
        listing->result = mdb_cursor_get(listing->cursor, &key, &value, MDB_NEXT);
    }
    mdb_txn_reset(slot->txn);
}

/* A cursor of a read transaction is its maker's to close, also after the transaction. */
static void close_cursor_body(void *context)
{
    struct listing *listing = context;
    if (listing->cursor != NULL)
        mdb_cursor_close(listing->cursor);
}

enum status lmdb_values_list_events(struct lmdb_values *values, struct lmdb_slot *slot,
                                    enum sport sport, struct event_id **list, size_t *count,
                                    struct error *error)
{
    struct listing listing = {.values = values, .slot = slot, .prefix = key_of_odds_prefix(sport)};
    bool fault = !odds_guard_run(list_body, &listing);
    if (fault)
        reset(slot);
    if (!odds_guard_run(close_cursor_body, &listing) || fault) {
        buffer_free(&listing.ids);
        return error_set(error, STATUS_INTERNAL, "%s is damaged", values->env.data_path);
    }
    if (listing.result != 0 && listing.result != MDB_NOTFOUND) {
        buffer_free(&listing.ids);
        return error_set(error, lmdb_status(&values->env, listing.result), "%s: %s",
                         values->env.data_path, mdb_strerror(listing.result));
    }
    *list = (struct event_id *)(void *)listing.ids.data;
    *count = listing.ids.size / sizeof **list;
    return STATUS_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct writing {
    struct lmdb_values *values;
    const struct odds_change *changes;
    size_t count;
    enum sport sport; /* to withdraw, when there are no changes */
    int64_t now_ms;

    MDB_txn *txn;
    int result;
};

static int put_record(struct writing *writing, struct record_key *key, const char *bytes,
                      size_t size)
{
    struct record_header header = {
        .transaction = mdb_txn_id(writing->txn), .published_ms = writing->now_ms, .size = size};
    memcpy(header.mark, record_mark, sizeof record_mark);
    header.crc = crc_of(&header, bytes);
    MDB_val name = key_value(key);
    MDB_val value = {HEADER_SIZE + size, NULL};
    int result = mdb_put(writing->txn, writing->values->env.dbi, &name, &value, MDB_RESERVE);
    if (result != 0)
        return result;
    memcpy(value.mv_data, &header, HEADER_SIZE);
    if (size > 0)
        memcpy((char *)value.mv_data + HEADER_SIZE, bytes, size);
    return 0;
}

static int delete_record(struct writing *writing, struct record_key *key)
{
    MDB_val name = key_value(key);
    int result = mdb_del(writing->txn, writing->values->env.dbi, &name, NULL);
    return result == MDB_NOTFOUND ? 0 : result;
}

static int write_changes(struct writing *writing)
{
    sport_set published = 0;
    int result = 0;
    for (size_t i = 0; i < writing->count && result == 0; i++) {
        const struct odds_change *change = &writing->changes[i];
        struct record_key key = key_of(change->kind, change->sport, &change->event);
        if (change->bytes == NULL) {
            result = delete_record(writing, &key);
        } else {
            result = put_record(writing, &key, change->bytes, change->size);
            published |= SPORT_BIT(change->sport);
        }
    }
    for (unsigned i = 0; i < SPORT_COUNT && result == 0; i++) {
        if ((published & SPORT_BIT(i)) == 0)
            continue;
        struct record_key key = key_of_sport("published:", (enum sport)i);
        result = put_record(writing, &key, "", 0);
    }
    return result;
}

static int delete_sport(struct writing *writing)
{
    struct record_key prefix = key_of_odds_prefix(writing->sport);
    MDB_cursor *cursor = NULL;
    int result = mdb_cursor_open(writing->txn, writing->values->env.dbi, &cursor);
    if (result != 0)
        return result;
    MDB_val key = key_value(&prefix);
    MDB_val value;
    /* After a deletion the cursor stands on what followed, so the search starts there again. */
    while ((result = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE)) == 0) {
        if (key.mv_size < prefix.size || memcmp(key.mv_data, prefix.bytes, prefix.size) != 0)
            break;
        result = mdb_cursor_del(cursor, 0);
        if (result != 0)
            break;
        key = key_value(&prefix);
    }
    mdb_cursor_close(cursor);
    if (result != 0 && result != MDB_NOTFOUND)
        return result;
    struct record_key catalog = key_of(ODDS_CATALOG, writing->sport, NULL);
    return delete_record(writing, &catalog);
}

static void write_body(void *context)
{
    struct writing *writing = context;
    writing->result = mdb_txn_begin(writing->values->env.env, NULL, 0, &writing->txn);
    if (writing->result != 0)
        return;
    writing->result = writing->changes != NULL ? write_changes(writing) : delete_sport(writing);
    if (writing->result != 0)
        return; /* aborted by the caller */
    MDB_txn *txn = writing->txn;
    writing->result = mdb_txn_commit(txn); /* ends it, whatever it says */
    writing->txn = NULL;
}

static enum status explain(struct lmdb_values *values, enum status status, int result,
                           struct error *error)
{
    if (status == STATUS_FULL)
        return error_set(error, status, "%s is full: %s; nothing of this was published",
                         values->env.data_path, mdb_strerror(result));
    return error_set(error, status, "%s: %s; nothing of this was published", values->env.data_path,
                     mdb_strerror(result));
}

static enum status write_all(struct writing *writing, struct error *error)
{
    struct lmdb_values *values = writing->values;
    enum status status = lmdb_env_lock_writer(&values->env, WRITER_WAIT_MS);
    if (status != STATUS_OK)
        return error_set(error, status,
                         "another process has been writing %s for too long; nothing of this was "
                         "published",
                         values->env.data_path);
    bool fault = !odds_guard_run(write_body, writing);
    if (writing->txn != NULL && !odds_guard_run(abort_body, writing->txn))
        fault = true;
    lmdb_env_unlock_writer(&values->env);
    if (fault)
        return error_set(error, STATUS_INTERNAL, "%s is damaged", values->env.data_path);
    status = lmdb_status(&values->env, writing->result);
    return status == STATUS_OK ? STATUS_OK : explain(values, status, writing->result, error);
}

enum status lmdb_values_publish(struct lmdb_values *values, const struct odds_change *changes,
                                size_t count, struct error *error)
{
    struct writing writing = {
        .values = values, .changes = changes, .count = count, .now_ms = clock_wall_ms()};
    return write_all(&writing, error);
}

enum status lmdb_values_withdraw_sport(struct lmdb_values *values, enum sport sport,
                                       struct error *error)
{
    struct writing writing = {.values = values, .sport = sport};
    return write_all(&writing, error);
}
