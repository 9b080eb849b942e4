/*
 * The values environment: what the feed publishes. See lmdb.h.
 *
 * Keys are those of the Redis engine (`catalog:cricket`, `odds:cricket:34000001`), so that mdb_dump
 * reads like a Redis dump; beside them the index (records.c) and `format`.
 *
 * Versions come from the index alone, and a value is read only as what the index says that it is.
 * So a damaged or older page can hide or change no answer: the value is malformed, or, when the
 * root is damaged or the whole file is an older one, the environment is broken.
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
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds/lmdb/guard.h"
#include "stores/odds/lmdb/lmdb.h"

/* How long a publisher waits for another process's turn. Longer than a call of the server may take:
 * a slow disk with several feeds must not make a publication fail. */
#define WRITER_WAIT_MS 10000
#define SNAPSHOT_ATTEMPTS 5
#define EPOCH_SHIFT LMDB_TRANSACTION_BITS
#define TRANSACTION_MASK (((uint64_t)1 << LMDB_TRANSACTION_BITS) - 1)

/* A read transaction at rest. */
struct lmdb_slot {
    struct lmdb_view view; /* its txn is reset, or NULL until first used */
};

struct lmdb_values {
    struct lmdb_env env;
    uint64_t epoch;
    uint64_t identity;          /* 0: not known yet */
    uint64_t damaged;           /* values, when it was opened */
    atomic_uint_fast64_t whole; /* the newest transaction whose root was read and found whole */
    _Atomic(struct lmdb_slot *) idle[LMDB_THREADS];
};

/* ---- slots ----------------------------------------------------------------------------------- */

size_t lmdb_thread_number(void)
{
    return (size_t)(((uint64_t)pthread_self() * 0x9E3779B97F4A7C15U) >> 58);
}

static void free_slot(struct lmdb_slot *slot)
{
    (void)lmdb_abort(slot->view.txn); /* else it is lost with the rest of the environment */
    memory_free(slot);
}

/* This thread's own as a rule, any that is idle otherwise. Neither this nor giving it back waits
 * for another thread. */
static struct lmdb_slot *borrow_slot(struct lmdb_values *values)
{
    size_t first = lmdb_thread_number();
    struct lmdb_slot *slot = NULL;
    for (size_t i = 0; i < LMDB_THREADS && slot == NULL; i++)
        slot = atomic_exchange(&values->idle[(first + i) % LMDB_THREADS], NULL);
    return slot != NULL ? slot : memory_alloc_zeroed(1, sizeof *slot);
}

static void return_slot(struct lmdb_values *values, struct lmdb_slot *slot)
{
    size_t first = lmdb_thread_number();
    for (size_t i = 0; i < LMDB_THREADS; i++) {
        struct lmdb_slot *none = NULL;
        if (atomic_compare_exchange_strong(&values->idle[(first + i) % LMDB_THREADS], &none, slot))
            return;
    }
    free_slot(slot);
}

/* ---- looking into one snapshot --------------------------------------------------------------- */

/*
 * Begins a snapshot and reads its root; in a body. A reader of LMDB's takes the number first and
 * then the meta page of that number: one that is held up in between, while commits go on, finds the
 * page of a later commit there. The root tells; another snapshot is then taken. What is damaged
 * stays so.
 */
static int begin_snapshot(struct lmdb_values *values, struct lmdb_view *view)
{
    int result = MDB_CORRUPTED;
    view->dbi = values->env.dbi;
    for (int attempt = 0; attempt < SNAPSHOT_ATTEMPTS && result == MDB_CORRUPTED; attempt++) {
        if (attempt > 0)
            mdb_txn_reset(view->txn);
        result = view->txn != NULL ? mdb_txn_renew(view->txn)
                                   : mdb_txn_begin(values->env.env, NULL, MDB_RDONLY, &view->txn);
        if (result != 0)
            return result;
        result = lmdb_root_read(view, mdb_txn_id(view->txn));
        if (result == 0 && values->identity != 0 && view->root.identity != values->identity)
            result = MDB_CORRUPTED;
    }
    return result;
}

struct looking {
    struct lmdb_values *values;
    enum sport sport;
    const struct event_id *event; /* whose odds to look for in the index; NULL: no event's */
    enum status (*more)(struct looking *looking); /* to be done in the snapshot; may be NULL */

    struct lmdb_view *view;
    int result; /* of the snapshot and its root */
    uint64_t transaction;
    uint64_t odds;    /* which transaction wrote them; 0: there are none */
    bool odds_unsure; /* the part of the index that should tell is damaged */
    enum status outcome;

    /* What `more` leaves, also when it is interrupted. */
    struct odds_value value;
    struct odds_part whole, part; /* of the value; of the catalog beside it */
    int64_t published_ms[SPORT_COUNT];
    uint64_t damaged;
    struct buffer ids; /* of struct event_id */
    struct lmdb_seen *seen;
    lmdb_change_visit *visit;
    void *visitor;
};

static void look_body(void *context)
{
    struct looking *looking = context;
    struct lmdb_view *view = looking->view;
    looking->result = begin_snapshot(looking->values, view);
    looking->transaction = mdb_txn_id(view->txn);
    if (looking->result == 0 && looking->event != NULL)
        looking->odds_unsure =
            lmdb_index_find(view, looking->sport, looking->event, &looking->odds) != 0;
    if (looking->result == 0 && looking->more != NULL)
        looking->outcome = looking->more(looking);
    mdb_txn_reset(view->txn);
}

static void reset_body(void *context)
{
    struct lmdb_view *view = context;
    if (view->txn != NULL)
        mdb_txn_reset(view->txn);
}

static enum status look(struct looking *looking)
{
    struct lmdb_values *values = looking->values;
    struct lmdb_slot *slot = borrow_slot(values);
    looking->view = &slot->view;
    looking->outcome = STATUS_OK;
    bool fault = !odds_guard_run(look_body, looking);
    if (fault && !odds_guard_run(reset_body, looking->view))
        slot->view.txn = NULL; /* even the lock file's map is gone */
    return_slot(values, slot);
    enum status status = fault ? STATUS_INTERNAL : lmdb_status(&values->env, looking->result);
    if (status != STATUS_OK)
        return status;
    /* The newest that was read; others may have read newer ones meanwhile. */
    uint64_t seen = atomic_load_explicit(&values->whole, memory_order_relaxed);
    while (seen < looking->transaction &&
           !atomic_compare_exchange_weak_explicit(&values->whole, &seen, looking->transaction,
                                                  memory_order_release, memory_order_relaxed))
        continue;
    return looking->outcome;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void survey_record(struct looking *looking, enum odds_kind kind, enum sport sport,
                          const struct event_id *event, uint64_t transaction)
{
    const struct lmdb_view *view = looking->view;
    struct lmdb_key key = lmdb_key_of(kind, sport, event);
    struct lmdb_record record;
    if (lmdb_record_find(view, &key, transaction, &record) != 0 ||
        !lmdb_record_is_whole(&record, view->root.identity, &key, record.bytes))
        looking->damaged++;
}

static void survey_event(void *context, enum sport sport, const struct event_id *event,
                         uint64_t transaction)
{
    survey_record(context, ODDS_MARKETS, sport, event, transaction);
}

/* Reads everything once. */
static enum status survey(struct looking *looking)
{
    const struct lmdb_root *root = &looking->view->root;
    for (unsigned i = 0; i < SPORT_COUNT; i++)
        if (root->catalogs[i] != 0)
            survey_record(looking, ODDS_CATALOG, (enum sport)i, NULL, root->catalogs[i]);
    if (lmdb_index_each(looking->view, survey_event, looking) != 0)
        looking->damaged++;
    looking->values->identity = root->identity;
    return STATUS_OK;
}

enum status lmdb_values_open(struct lmdb_values **values, const char *root, bool create,
                             uint64_t epoch, uint32_t wait_ms, struct error *error)
{
    struct lmdb_location location = {.root = root, .create = create, .wait_ms = wait_ms};
    if (create)
        lmdb_make_root(root);
    struct lmdb_values *opened = memory_alloc_zeroed(1, sizeof *opened);
    opened->epoch = epoch;
    enum status status = lmdb_env_open(&opened->env, &location, error);
    if (status != STATUS_OK) {
        memory_free(opened);
        return status;
    }
    struct looking looking = {.values = opened, .more = survey};
    status = look(&looking);
    opened->damaged = looking.damaged;
    if (status == STATUS_INTERNAL)
        status = error_set(error, STATUS_MALFORMED,
                           "the odds store at %s is damaged, or another version of this program "
                           "has written to it",
                           opened->env.data_path);
    else if (status != STATUS_OK)
        status = error_set(error, STATUS_UNAVAILABLE, "%s: %s", opened->env.data_path,
                           mdb_strerror(looking.result));
    if (status != STATUS_OK)
        lmdb_values_close(&opened);
    else
        *values = opened;
    return status;
}

void lmdb_values_close(struct lmdb_values **values)
{
    struct lmdb_values *closing = *values;
    if (closing == NULL)
        return;
    for (size_t i = 0; i < LMDB_THREADS; i++) {
        struct lmdb_slot *slot = atomic_load(&closing->idle[i]);
        if (slot != NULL)
            free_slot(slot);
    }
    lmdb_env_close(&closing->env);
    memory_free(closing);
    *values = NULL;
}

struct lmdb_state lmdb_values_state(const struct lmdb_values *values)
{
    return (struct lmdb_state){values->identity, atomic_load(&values->whole)};
}

uint64_t lmdb_values_damaged(const struct lmdb_values *values)
{
    return values->damaged;
}

bool lmdb_values_in_place(const struct lmdb_values *values)
{
    return lmdb_env_in_place(&values->env);
}

bool lmdb_values_changed(struct lmdb_values *values, const char **why)
{
    uint64_t stamp;
    if (lmdb_env_changed(&values->env, why))
        return true;
    *why = "its file was overwritten by an older one, or cannot be read";
    return lmdb_values_stamp(values, &stamp) != STATUS_OK;
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

/* ---- stamps and versions --------------------------------------------------------------------- */

/* 0, which is of no transaction, stays 0. */
static uint64_t with_epoch(const struct lmdb_values *values, uint64_t transaction)
{
    return transaction == 0 ? 0 : values->epoch << EPOCH_SHIFT | (transaction & TRANSACTION_MASK);
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
    /* Looked at first, as the other may only grow meanwhile. */
    uint64_t whole = atomic_load_explicit(&values->whole, memory_order_acquire);
    struct stamping stamping = {.env = values->env.env};
    /* An older file in the place of this one: its stamps are those of answers long replaced. */
    if (!odds_guard_run(stamp_body, &stamping) || stamping.transaction < whole)
        return STATUS_INTERNAL;
    *stamp = with_epoch(values, stamping.transaction);
    return STATUS_OK;
}

/* The transaction by which the odds' version is called. When it is not known which one wrote them,
 * it is this snapshot's own, so that every look ends in a read, which says STATUS_MALFORMED. */
static uint64_t odds_transaction(const struct looking *looking)
{
    return looking->odds_unsure ? looking->transaction : looking->odds;
}

static enum status tell_catalog(struct looking *looking)
{
    looking->value.version = looking->view->root.catalogs[looking->sport];
    return STATUS_OK;
}

enum status lmdb_values_versions(struct lmdb_values *values, enum sport sport,
                                 const struct event_id *event, struct odds_versions *versions)
{
    struct looking looking = {
        .values = values, .sport = sport, .event = event, .more = tell_catalog};
    enum status status = look(&looking);
    if (status == STATUS_OK)
        *versions = (struct odds_versions){.stamp = with_epoch(values, looking.transaction),
                                           .catalog = with_epoch(values, looking.value.version),
                                           .odds = with_epoch(values, odds_transaction(&looking))};
    return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Copies a record, or the part of it that is wanted, which is cut to what there is. What is copied
 * is not checked. Touching the record may fault, so its memory is in `part` before that. */
static bool copy_part(const struct lmdb_view *view, const struct lmdb_key *key,
                      uint64_t transaction, struct lmdb_record *record, struct odds_part *part)
{
    if (lmdb_record_find(view, key, transaction, record) != 0)
        return false;
    size_t at = part->at < record->size ? part->at : record->size;
    part->size = part->max < record->size - at ? part->max : record->size - at;
    part->bytes = memory_alloc(part->size + 1);
    part->bytes[part->size] = '\0';
    memcpy(part->bytes, record->bytes + at, part->size);
    return true;
}

static enum status copy_value(struct looking *looking)
{
    const struct lmdb_view *view = looking->view;
    uint64_t catalog = view->root.catalogs[looking->sport];
    uint64_t transaction = looking->event == NULL ? catalog : odds_transaction(looking);
    struct lmdb_record record;
    looking->value.version = with_epoch(looking->values, transaction);
    if (looking->odds_unsure)
        return STATUS_MALFORMED;
    /* The part of the catalog will be compared with a catalog that was read whole, so it needs no
     * checksum; where it is damaged it is not known. */
    if (looking->part.max > 0 && catalog != 0) {
        struct lmdb_key key = lmdb_key_of(ODDS_CATALOG, looking->sport, NULL);
        (void)copy_part(view, &key, catalog, &record, &looking->part);
    }
    if (transaction == 0)
        return STATUS_OK;
    struct lmdb_key key = lmdb_key_of(looking->event == NULL ? ODDS_CATALOG : ODDS_MARKETS,
                                      looking->sport, looking->event);
    if (!copy_part(view, &key, transaction, &record, &looking->whole) ||
        !lmdb_record_is_whole(&record, view->root.identity, &key, looking->whole.bytes))
        return STATUS_MALFORMED;
    looking->value.published_ms = record.published_ms;
    return STATUS_OK;
}

enum status lmdb_values_read(struct lmdb_values *values, struct odds_read *read)
{
    struct looking looking = {.values = values,
                              .sport = read->sport,
                              .event = read->kind == ODDS_CATALOG ? NULL : &read->event,
                              .more = copy_value,
                              .whole = {.max = SIZE_MAX}};
    if (read->kind == ODDS_MARKETS)
        looking.part = (struct odds_part){.at = read->catalog.at, .max = read->catalog.max};
    enum status status = look(&looking);
    if (status != STATUS_OK) {
        memory_free(looking.part.bytes);
        memory_free(looking.whole.bytes);
        return status;
    }
    read->value = looking.value;
    read->value.stamp = with_epoch(values, looking.transaction);
    read->value.bytes = looking.whole.bytes;
    read->value.size = looking.whole.size;
    read->catalog = looking.part;
    return STATUS_OK;
}

static enum status read_afresh(struct looking *looking)
{
    looking->view->root_checksum = 0; /* the root is not taken from memory */
    looking->result = lmdb_root_read(looking->view, looking->transaction);
    return STATUS_OK;
}

enum status lmdb_values_ping(struct lmdb_values *values)
{
    struct looking looking = {.values = values, .more = read_afresh};
    return look(&looking);
}

static enum status copy_published(struct looking *looking)
{
    memcpy(looking->published_ms, looking->view->root.published_ms, sizeof looking->published_ms);
    return STATUS_OK;
}

enum status lmdb_values_published(struct lmdb_values *values, int64_t published_ms[SPORT_COUNT])
{
    struct looking looking = {.values = values, .more = copy_published};
    enum status status = look(&looking);
    if (status == STATUS_OK)
        memcpy(published_ms, looking.published_ms, sizeof looking.published_ms);
    return status;
}

/* Of what the record says itself, unchecked: nothing is served by it. */
static enum status tell_published(struct looking *looking)
{
    struct lmdb_key key = lmdb_key_of(ODDS_MARKETS, looking->sport, looking->event);
    struct lmdb_record record;
    if (!looking->odds_unsure && looking->odds != 0 &&
        lmdb_record_find(looking->view, &key, looking->odds, &record) == 0)
        looking->value.published_ms = record.published_ms;
    return STATUS_OK;
}

enum status lmdb_values_odds_published(struct lmdb_values *values, enum sport sport,
                                       const struct event_id *event, int64_t *published_ms)
{
    struct looking looking = {
        .values = values, .sport = sport, .event = event, .more = tell_published};
    enum status status = look(&looking);
    if (status == STATUS_OK)
        *published_ms = looking.value.published_ms;
    return status;
}

static void add_event(void *context, enum sport sport, const struct event_id *event,
                      uint64_t transaction)
{
    struct looking *looking = context;
    (void)transaction;
    if (sport == looking->sport)
        buffer_append(&looking->ids, event, sizeof *event);
}

static enum status collect_events(struct looking *looking)
{
    return lmdb_index_each(looking->view, add_event, looking) == 0 ? STATUS_OK : STATUS_MALFORMED;
}

enum status lmdb_values_list_events(struct lmdb_values *values, enum sport sport,
                                    struct event_id **list, size_t *count, struct error *error)
{
    struct looking looking = {.values = values, .sport = sport, .more = collect_events};
    enum status status = look(&looking);
    if (status != STATUS_OK) {
        buffer_free(&looking.ids);
        return error_set(error, status, "%s: its list of events is damaged", values->env.data_path);
    }
    *list = (struct event_id *)(void *)looking.ids.data;
    *count = looking.ids.size / sizeof **list;
    return STATUS_OK;
}

/* ---- what has changed ------------------------------------------------------------------------ */

static enum status collect_changes(struct looking *looking)
{
    if (looking->seen->transaction == looking->transaction)
        return STATUS_OK;
    lmdb_index_changes(looking->view, looking->seen, looking->visit, looking->visitor);
    looking->seen->transaction = looking->transaction;
    return STATUS_OK;
}

enum status lmdb_values_changes(struct lmdb_values *values, struct lmdb_seen *seen,
                                lmdb_change_visit *visit, void *context, bool *behind)
{
    struct looking looking = {.values = values,
                              .more = collect_changes,
                              .seen = seen,
                              .visit = visit,
                              .visitor = context};
    struct stamping stamping = {.env = values->env.env};
    *behind = false;
    if (!odds_guard_run(stamp_body, &stamping))
        return STATUS_INTERNAL;
    if (stamping.transaction == seen->transaction)
        return STATUS_OK; /* and no snapshot is needed to know it */
    enum status status = look(&looking);
    *behind = status == STATUS_OK && stamping.transaction > looking.transaction;
    return status;
}

const char *lmdb_values_path(const struct lmdb_values *values)
{
    return values->env.data_path;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct writing {
    const struct lmdb_values *values;
    const struct odds_change *changes;
    size_t count;
    int64_t now_ms;
};

static int write_changes(struct lmdb_edit *edit, void *context)
{
    const struct writing *writing = context;
    /* Every commit writes the root: any other number, and this is not the store that it was. */
    int result = lmdb_root_read(&edit->view, mdb_txn_id(edit->view.txn) - 1);
    if (result == 0 && edit->view.root.identity != writing->values->identity)
        result = MDB_CORRUPTED;
    for (size_t i = 0; i < writing->count && result == 0; i++)
        result = lmdb_edit_put(edit, &writing->changes[i], writing->now_ms);
    return result;
}

enum status lmdb_values_write(struct lmdb_values *values, const struct odds_change *changes,
                              size_t count, struct error *error)
{
    struct writing writing = {values, changes, count, clock_wall_ms()};
    const char *path = values->env.data_path;
    int result = 0;
    enum status status =
        lmdb_env_write(&values->env, WRITER_WAIT_MS, write_changes, &writing, &result);
    if (status == STATUS_OK)
        return STATUS_OK;
    if (status == STATUS_TIMEOUT)
        return error_set(error, status,
                         "another process has been writing %s for too long; nothing of this was "
                         "published",
                         path);
    if (status == STATUS_MALFORMED)
        return error_set(error, STATUS_INTERNAL, "%s is damaged", path);
    return error_set(error, status, "%s%s: %s; nothing of this was published", path,
                     status == STATUS_FULL ? " is full" : "", mdb_strerror(result));
}

/* ---- copying it ------------------------------------------------------------------------------ */

struct copying {
    struct lmdb_values *values;
    int descriptor;
    int result;
};

/* LMDB takes the writer's turn for the two meta pages alone, and the rest from a snapshot. Without
 * MDB_CP_COMPACT, which would give pages other numbers. */
static void copy_body(void *context)
{
    struct copying *copying = context;
    copying->result = mdb_env_copyfd2(copying->values->env.env, copying->descriptor, 0);
}

enum status lmdb_values_back_up(struct lmdb_values *values, const char *path, struct error *error)
{
    struct copying copying = {.values = values};
    copying.descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (copying.descriptor < 0)
        return error_set(error, STATUS_UNAVAILABLE, "%s: cannot be made (%s)", path,
                         strerror(errno));
    bool fault = !odds_guard_run(copy_body, &copying);
    if (!fault && copying.result == 0 && fsync(copying.descriptor) != 0)
        copying.result = errno;
    (void)close(copying.descriptor);
    if (!fault && copying.result == 0)
        return STATUS_OK;
    (void)unlink(path); /* half a copy is none */
    if (fault)
        return error_set(error, STATUS_INTERNAL, "%s is damaged", values->env.data_path);
    return error_set(error, copying.result == ENOSPC ? STATUS_FULL : STATUS_UNAVAILABLE,
                     "%s: the copy cannot be written (%s)", path, mdb_strerror(copying.result));
}
