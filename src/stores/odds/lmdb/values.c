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
#include <stdatomic.h>
#include <string.h>

#include <uv.h>

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

struct lmdb_slot {
    struct lmdb_slot *next; /* of all, for closing */
    struct lmdb_slot *next_idle;
    struct lmdb_view view; /* its txn is reset, or NULL until first used */
};

struct lmdb_values {
    struct lmdb_env env;
    uint64_t epoch;
    uint64_t identity;
    uint64_t damaged;           /* values, when it was opened */
    atomic_uint_fast64_t whole; /* the newest transaction whose root was read and found whole */
    uv_mutex_t lock;            /* guards the two lists */
    struct lmdb_slot *slots;
    struct lmdb_slot *idle;
};

/* ---- life ------------------------------------------------------------------------------------ */

static void abort_body(void *context)
{
    mdb_txn_abort(context);
}

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

/* Reads everything once. */
struct survey {
    struct lmdb_values *values;
    struct lmdb_view view;
    int result;
    uint64_t damaged;
};

static void survey_record(struct survey *survey, enum odds_kind kind, enum sport sport,
                          const struct event_id *event, uint64_t transaction)
{
    struct lmdb_key key = lmdb_key_of(kind, sport, event);
    struct lmdb_record record;
    if (lmdb_record_find(&survey->view, &key, transaction, &record) != 0 ||
        !lmdb_record_is_whole(&record, survey->view.root.identity, &key, record.bytes))
        survey->damaged++;
}

static void survey_event(void *context, enum sport sport, const struct event_id *event,
                         uint64_t transaction)
{
    survey_record(context, ODDS_MARKETS, sport, event, transaction);
}

static void survey_body(void *context)
{
    struct survey *survey = context;
    struct lmdb_view *view = &survey->view;
    survey->result = begin_snapshot(survey->values, view);
    if (survey->result != 0)
        return;
    atomic_store(&survey->values->whole, mdb_txn_id(view->txn));
    for (unsigned i = 0; i < SPORT_COUNT; i++)
        if (view->root.catalogs[i] != 0)
            survey_record(survey, ODDS_CATALOG, (enum sport)i, NULL, view->root.catalogs[i]);
    if (lmdb_index_each(view, survey_event, survey) != 0)
        survey->damaged++;
}

static enum status survey(struct lmdb_values *values, struct error *error)
{
    struct survey survey = {.values = values};
    bool fault = !odds_guard_run(survey_body, &survey);
    if (survey.view.txn != NULL && !odds_guard_run(abort_body, survey.view.txn))
        fault = true;
    enum status status = fault ? STATUS_INTERNAL : lmdb_status(&values->env, survey.result);
    if (status == STATUS_INTERNAL)
        return error_set(error, STATUS_MALFORMED,
                         "the odds store at %s is damaged, or another version of this program has "
                         "written to it",
                         values->env.data_path);
    if (status != STATUS_OK)
        return error_set(error, STATUS_UNAVAILABLE, "%s: %s", values->env.data_path,
                         mdb_strerror(survey.result));
    values->identity = survey.view.root.identity;
    values->damaged = survey.damaged;
    return STATUS_OK;
}

enum status lmdb_values_open(struct lmdb_values **values, const char *root, bool create,
                             uint64_t epoch, uint32_t wait_ms, struct error *error)
{
    struct lmdb_place place = {.root = root, .create = create, .wait_ms = wait_ms};
    if (create)
        lmdb_make_root(root);
    struct lmdb_values *opened = memory_alloc_zeroed(1, sizeof *opened);
    enum status status = lmdb_env_open(&opened->env, &place, error);
    if (status == STATUS_OK) {
        atomic_init(&opened->whole, 0);
        status = survey(opened, error);
        if (status != STATUS_OK)
            lmdb_env_close(&opened->env);
    }
    if (status != STATUS_OK) {
        memory_free(opened);
        return status;
    }
    opened->epoch = epoch;
    CHECK(uv_mutex_init(&opened->lock) == 0);
    *values = opened;
    return STATUS_OK;
}

void lmdb_values_close(struct lmdb_values **values)
{
    struct lmdb_values *closing = *values;
    if (closing == NULL)
        return;
    while (closing->slots != NULL) {
        struct lmdb_slot *slot = closing->slots;
        closing->slots = slot->next;
        if (slot->view.txn != NULL && !odds_guard_run(abort_body, slot->view.txn))
            slot->view.txn = NULL; /* lost with the rest of it */
        memory_free(slot);
    }
    lmdb_env_close(&closing->env);
    uv_mutex_destroy(&closing->lock);
    memory_free(closing);
    *values = NULL;
}

uint64_t lmdb_values_epoch(const struct lmdb_values *values)
{
    return values->epoch;
}

uint64_t lmdb_values_damaged(const struct lmdb_values *values)
{
    return values->damaged;
}

uint64_t lmdb_values_identity(const struct lmdb_values *values)
{
    return values->identity;
}

uint64_t lmdb_values_transaction(const struct lmdb_values *values)
{
    return atomic_load(&values->whole);
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

struct lmdb_slot *lmdb_values_borrow_slot(struct lmdb_values *values)
{
    uv_mutex_lock(&values->lock);
    struct lmdb_slot *slot = values->idle;
    if (slot != NULL) {
        values->idle = slot->next_idle;
    } else {
        slot = memory_alloc_zeroed(1, sizeof *slot);
        slot->next = values->slots;
        values->slots = slot;
    }
    uv_mutex_unlock(&values->lock);
    return slot;
}

void lmdb_values_return_slot(struct lmdb_values *values, struct lmdb_slot *slot)
{
    uv_mutex_lock(&values->lock);
    slot->next_idle = values->idle;
    values->idle = slot;
    uv_mutex_unlock(&values->lock);
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
    /* Looked at first, as the other may only grow meanwhile. */
    uint64_t whole = atomic_load_explicit(&values->whole, memory_order_acquire);
    struct stamping stamping = {.env = values->env.env};
    /* An older file in the place of this one: its stamps are those of answers long replaced. */
    if (!odds_guard_run(stamp_body, &stamping) || stamping.transaction < whole)
        return STATUS_INTERNAL;
    *stamp = with_epoch(values, stamping.transaction);
    return STATUS_OK;
}

static void remember_whole(struct lmdb_values *values, uint64_t transaction)
{
    uint64_t seen = atomic_load_explicit(&values->whole, memory_order_relaxed);
    while (seen < transaction &&
           !atomic_compare_exchange_weak_explicit(&values->whole, &seen, transaction,
                                                  memory_order_release, memory_order_relaxed))
        continue;
}

/* Looks into one snapshot. */
struct looking {
    struct lmdb_values *values;
    struct lmdb_slot *slot;
    enum sport sport;
    const struct event_id *event; /* whose odds to look for in the index; NULL: nobody's */
    bool stay;                    /* keep the snapshot */

    int result; /* of the snapshot and its root */
    uint64_t transaction;
    uint64_t odds;    /* which transaction wrote them; 0: there are none */
    bool odds_unsure; /* the part of the index that should tell is damaged */
};

static void look_body(void *context)
{
    struct looking *looking = context;
    struct lmdb_slot *slot = looking->slot;
    struct lmdb_view *view = &slot->view;
    looking->result = begin_snapshot(looking->values, view);
    looking->transaction = mdb_txn_id(view->txn);
    if (looking->result == 0 && looking->event != NULL)
        looking->odds_unsure =
            lmdb_index_find(view, looking->sport, looking->event, &looking->odds) != 0;
    if (!looking->stay || looking->result != 0)
        mdb_txn_reset(view->txn);
}

static void reset_body(void *context)
{
    struct lmdb_slot *slot = context;
    if (slot->view.txn != NULL)
        mdb_txn_reset(slot->view.txn);
}

/* Ends a snapshot from outside of a body. */
static void reset(struct lmdb_slot *slot)
{
    if (!odds_guard_run(reset_body, slot))
        slot->view.txn = NULL; /* even the lock file's map is gone */
}

static enum status look(struct looking *looking)
{
    if (!odds_guard_run(look_body, looking)) {
        reset(looking->slot);
        return STATUS_INTERNAL;
    }
    enum status status = lmdb_status(&looking->values->env, looking->result);
    if (status == STATUS_OK)
        remember_whole(looking->values, looking->transaction);
    return status;
}

/* The odds' version. When nobody knows it still has to have one: this snapshot's own, so that
 * every look at it ends in a read, which will say STATUS_MALFORMED. */
static uint64_t odds_version(const struct looking *looking)
{
    uint64_t transaction = looking->odds_unsure ? looking->transaction : looking->odds;
    return transaction == 0 ? 0 : with_epoch(looking->values, transaction);
}

static uint64_t catalog_version(const struct looking *looking)
{
    uint64_t transaction = looking->slot->view.root.catalogs[looking->sport];
    return transaction == 0 ? 0 : with_epoch(looking->values, transaction);
}

enum status lmdb_values_versions(struct lmdb_values *values, struct lmdb_slot *slot,
                                 enum sport sport, const struct event_id *event,
                                 struct odds_versions *versions)
{
    struct looking looking = {.values = values, .slot = slot, .sport = sport, .event = event};
    enum status status = look(&looking);
    if (status != STATUS_OK)
        return status;
    *versions = (struct odds_versions){.stamp = with_epoch(values, looking.transaction),
                                       .catalog = catalog_version(&looking),
                                       .odds = odds_version(&looking)};
    return STATUS_OK;
}

/* Copies a record, or a part of it, out of the snapshot. */
struct copying {
    struct lmdb_slot *slot;
    struct lmdb_key key;
    uint64_t transaction; /* that wrote it */
    struct lmdb_record record;
    int result;
    char *to;
    size_t at, size; /* the part, which is cut to what there is */
};

static void find_body(void *context)
{
    struct copying *copying = context;
    copying->result = lmdb_record_find(&copying->slot->view, &copying->key, copying->transaction,
                                       &copying->record);
}

static void copy_body(void *context)
{
    struct copying *copying = context;
    memcpy(copying->to, copying->record.bytes + copying->at, copying->size);
}

/* What is copied is not checked. */
static enum status copy_part(struct copying *copying)
{
    if (!odds_guard_run(find_body, copying))
        return STATUS_INTERNAL;
    if (copying->result != 0)
        return STATUS_MALFORMED;
    size_t all = copying->record.size;
    copying->at = copying->at < all ? copying->at : all;
    copying->size = copying->size < all - copying->at ? copying->size : all - copying->at;
    copying->to = memory_alloc(copying->size + 1);
    copying->to[copying->size] = '\0';
    if (odds_guard_run(copy_body, copying))
        return STATUS_OK;
    memory_free(copying->to);
    return STATUS_INTERNAL;
}

static enum status copy_value(struct lmdb_slot *slot, const struct odds_read *read,
                              struct odds_value *value)
{
    struct copying copying = {.slot = slot,
                              .key = lmdb_key_of(read->kind, read->sport, &read->event),
                              .transaction = value->version & TRANSACTION_MASK,
                              .size = SIZE_MAX};
    enum status status = copy_part(&copying);
    if (status == STATUS_OK && !lmdb_record_is_whole(&copying.record, slot->view.root.identity,
                                                     &copying.key, copying.to)) {
        memory_free(copying.to);
        status = STATUS_MALFORMED;
    }
    if (status != STATUS_OK)
        return status;
    value->bytes = copying.to;
    value->size = copying.size;
    value->published_ms = copying.record.published_ms;
    return STATUS_OK;
}

/* The part of the catalog that is wanted with a value. It is compared with a catalog that was read
 * whole, so it needs no checksum. */
static enum status copy_catalog(struct lmdb_slot *slot, enum sport sport, struct odds_part *part)
{
    struct copying copying = {.slot = slot,
                              .key = lmdb_key_of(ODDS_CATALOG, sport, NULL),
                              .transaction = slot->view.root.catalogs[sport],
                              .at = part->at,
                              .size = part->max};
    if (part->max == 0 || copying.transaction == 0)
        return STATUS_OK;
    enum status status = copy_part(&copying);
    if (status == STATUS_OK) {
        part->bytes = copying.to;
        part->size = copying.size;
    }
    return status == STATUS_MALFORMED ? STATUS_OK : status; /* not known */
}

enum status lmdb_values_read(struct lmdb_values *values, struct lmdb_slot *slot,
                             struct odds_read *read)
{
    bool catalog = read->kind == ODDS_CATALOG;
    struct looking looking = {.values = values,
                              .slot = slot,
                              .sport = read->sport,
                              .event = catalog ? NULL : &read->event,
                              .stay = true};
    enum status status = look(&looking);
    if (status != STATUS_OK)
        return status;
    struct odds_value got = {.stamp = with_epoch(values, looking.transaction),
                             .version =
                                 catalog ? catalog_version(&looking) : odds_version(&looking)};
    struct odds_part part = read->catalog;
    if (looking.odds_unsure)
        status = STATUS_MALFORMED;
    if (status == STATUS_OK && !catalog)
        status = copy_catalog(slot, read->sport, &part);
    if (status == STATUS_OK && got.version != 0)
        status = copy_value(slot, read, &got);
    reset(slot);
    if (status != STATUS_OK) {
        if (part.bytes != read->catalog.bytes)
            memory_free(part.bytes);
        return status;
    }
    read->value = got;
    read->catalog = part;
    return STATUS_OK;
}

enum status lmdb_values_ping(struct lmdb_values *values, struct lmdb_slot *slot)
{
    struct looking looking = {.values = values, .slot = slot};
    slot->view.root_checksum = 0; /* it is really read */
    return look(&looking);
}

enum status lmdb_values_published(struct lmdb_values *values, struct lmdb_slot *slot,
                                  int64_t published_ms[SPORT_COUNT])
{
    struct looking looking = {.values = values, .slot = slot};
    enum status status = look(&looking);
    if (status == STATUS_OK)
        memcpy(published_ms, slot->view.root.published_ms, SPORT_COUNT * sizeof *published_ms);
    return status;
}

/* Lists the events of a sport, in one snapshot. */
struct listing {
    struct lmdb_view *view;
    enum sport sport;
    struct buffer ids; /* of struct event_id */
    int result;
};

static void add_event(void *context, enum sport sport, const struct event_id *event,
                      uint64_t transaction)
{
    struct listing *listing = context;
    (void)transaction;
    if (sport == listing->sport)
        buffer_append(&listing->ids, event, sizeof *event);
}

static void list_body(void *context)
{
    struct listing *listing = context;
    listing->result = lmdb_index_each(listing->view, add_event, listing);
}

enum status lmdb_values_list_events(struct lmdb_values *values, struct lmdb_slot *slot,
                                    enum sport sport, struct event_id **list, size_t *count,
                                    struct error *error)
{
    struct listing listing = {.view = &slot->view, .sport = sport};
    struct looking looking = {.values = values, .slot = slot, .stay = true};
    enum status status = look(&looking);
    if (status == STATUS_OK) {
        if (!odds_guard_run(list_body, &listing))
            status = STATUS_INTERNAL;
        else if (listing.result != 0)
            status = STATUS_MALFORMED;
        reset(slot);
    }
    if (status != STATUS_OK) {
        buffer_free(&listing.ids);
        return error_set(error, status, "%s: its list of events is damaged", values->env.data_path);
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

    struct lmdb_edit edit;
    int result;
};

static int write_changes(struct writing *writing)
{
    int result = 0;
    for (size_t i = 0; i < writing->count && result == 0; i++)
        result = lmdb_edit_put(&writing->edit, &writing->changes[i], writing->now_ms);
    return result;
}

static void write_body(void *context)
{
    struct writing *writing = context;
    struct lmdb_values *values = writing->values;
    struct lmdb_edit *edit = &writing->edit;
    writing->result = lmdb_edit_begin(edit, values->env.env, values->env.dbi);
    if (writing->result == 0 && edit->view.root.identity != values->identity)
        writing->result = MDB_CORRUPTED;
    if (writing->result == 0)
        writing->result = writing->changes != NULL ? write_changes(writing)
                                                   : lmdb_edit_withdraw_sport(edit, writing->sport);
    if (writing->result == 0)
        writing->result = lmdb_edit_finish(edit);
    if (writing->result != 0)
        return; /* aborted by the caller */
    MDB_txn *txn = edit->view.txn;
    writing->result = mdb_txn_commit(txn); /* ends it, whatever it says */
    edit->view.txn = NULL;
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
    if (writing->edit.view.txn != NULL && !odds_guard_run(abort_body, writing->edit.view.txn))
        fault = true;
    lmdb_edit_free(&writing->edit);
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
