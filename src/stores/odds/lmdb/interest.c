/*
 * Interest: which events were asked for lately, for the feed to know what to refresh first.
 *
 * What serving threads have noted (odds_notes.h) the background thread writes in one transaction
 * once a second. The environment is not synced and is made anew when it is damaged: after a power
 * cut the priorities are gone, which the next polls mend. Nothing here ever makes serving fail.
 *
 * Keys are `SPORT:EVENT`, values the wall clock in milliseconds. What is older than a day is
 * removed.
 *
 * env_lock guards the environment, used by the background thread and by list.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds/lmdb/guard.h"
#include "stores/odds/lmdb/lmdb.h"
#include "stores/odds/notes.h"

#define INTEREST_MAP_SIZE ((size_t)256 << 20) /* a million events and room for their turnover */
#define KEY_SIZE 64

struct lmdb_interest {
    char *root;
    uint32_t wait_ms;
    struct log *log;

    struct odds_notes *notes;
    uint64_t written_at_ms; /* the background thread's */

    uv_mutex_t env_lock;
    struct lmdb_env env;
    bool complained;
    uint64_t pruned_at_ms;

    atomic_uint_fast64_t written;
};

struct lmdb_interest *lmdb_interest_create(const char *root, uint32_t wait_ms, struct log *log)
{
    struct lmdb_interest *interest = memory_alloc_zeroed(1, sizeof *interest);
    interest->root = memory_copy_string(root);
    interest->wait_ms = wait_ms;
    interest->log = log;
    interest->notes = odds_notes_create();
    interest->env.folder = -1;
    CHECK(uv_mutex_init(&interest->env_lock) == 0);
    atomic_init(&interest->written, 0);
    return interest;
}

void lmdb_interest_note(struct lmdb_interest *interest, enum sport sport,
                        const struct event_id *event)
{
    odds_notes_add(interest->notes, sport, event);
}

/* ---- the environment (env_lock is held) ------------------------------------------------------ */

static void close_env(struct lmdb_interest *interest)
{
    lmdb_env_close(&interest->env);
    interest->env = (struct lmdb_env){.folder = -1};
}

static enum status open_env(struct lmdb_interest *interest, struct error *error)
{
    const char *why = NULL;
    if (interest->env.env != NULL && lmdb_env_changed(&interest->env, &why))
        close_env(interest);
    if (interest->env.env != NULL)
        return STATUS_OK;
    struct lmdb_place place = {.root = interest->root,
                               .folder = "interest",
                               .format = "croupier interest 1",
                               .map_size = INTEREST_MAP_SIZE,
                               .flags = MDB_NOSYNC,
                               .create = true,
                               .replace_when_broken = true,
                               .wait_ms = interest->wait_ms};
    return lmdb_env_open(&interest->env, &place, error);
}

struct key_text {
    size_t size;
    char bytes[KEY_SIZE];
};

static struct key_text key_of(enum sport sport, const struct event_id *event)
{
    struct key_text key;
    const char *name = sport_key(sport);
    size_t size = strlen(name);
    CHECK(size + 1 + EVENT_ID_DIGITS <= KEY_SIZE);
    memcpy(key.bytes, name, size);
    key.bytes[size++] = ':';
    if (event != NULL) {
        memcpy(key.bytes + size, event->digits, event->size);
        size += event->size;
    }
    key.size = size;
    return key;
}

struct task {
    struct lmdb_interest *interest;
    const struct odds_note *notes; /* to write */
    size_t note_count;
    int64_t prune_before_ms; /* 0: do not */
    struct key_text prefix;  /* to list */
    int64_t since_ms;
    struct odds_interest *list;
    size_t count;
    size_t capacity;

    MDB_txn *txn;
    int result;
};

static int put_notes(struct task *task)
{
    for (size_t i = 0; i < task->note_count; i++) {
        const struct odds_note *note = &task->notes[i];
        struct key_text text = key_of(note->sport, &note->event);
        MDB_val key = {text.size, text.bytes};
        int64_t requested_ms = note->requested_ms;
        MDB_val value = {sizeof requested_ms, &requested_ms};
        int result = mdb_put(task->txn, task->interest->env.dbi, &key, &value, 0);
        if (result != 0)
            return result;
    }
    return 0;
}

static int remove_old(struct task *task)
{
    MDB_cursor *cursor = NULL;
    int result = mdb_cursor_open(task->txn, task->interest->env.dbi, &cursor);
    if (result != 0)
        return result;
    MDB_val key;
    MDB_val value;
    while ((result = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        int64_t requested_ms = 0;
        if (value.mv_size != sizeof requested_ms || memchr(key.mv_data, ':', key.mv_size) == NULL)
            continue; /* the format mark */
        memcpy(&requested_ms, value.mv_data, sizeof requested_ms);
        if (requested_ms >= task->prune_before_ms)
            continue;
        result = mdb_cursor_del(cursor, 0);
        if (result != 0)
            break;
    }
    mdb_cursor_close(cursor);
    return result == MDB_NOTFOUND ? 0 : result;
}

static void write_body(void *context)
{
    struct task *task = context;
    task->result = mdb_txn_begin(task->interest->env.env, NULL, 0, &task->txn);
    if (task->result != 0)
        return;
    if (task->prune_before_ms != 0)
        task->result = remove_old(task);
    if (task->result == 0)
        task->result = put_notes(task);
    if (task->result != 0)
        return; /* aborted by the caller */
    MDB_txn *txn = task->txn;
    task->result = mdb_txn_commit(txn);
    task->txn = NULL;
}

static void abort_body(void *context)
{
    mdb_txn_abort(context);
}

/* Runs a task; a broken environment is closed, to be opened again (or made anew) next time. */
static enum status run(struct task *task, void (*body)(void *))
{
    struct lmdb_interest *interest = task->interest;
    bool fault = !odds_guard_run(body, task);
    if (task->txn != NULL && !odds_guard_run(abort_body, task->txn))
        fault = true;
    task->txn = NULL;
    enum status status = fault ? STATUS_INTERNAL : lmdb_status(&interest->env, task->result);
    if (status == STATUS_INTERNAL) {
        close_env(interest);
        status = STATUS_UNAVAILABLE;
    }
    return status;
}

/* ---- writing, in the background -------------------------------------------------------------- */

static enum status write_notes(struct lmdb_interest *interest, const struct odds_note *notes,
                               size_t count, uint64_t now_ms, struct error *error)
{
    enum status status = open_env(interest, error);
    if (status != STATUS_OK)
        return status;
    status = lmdb_env_lock_writer(&interest->env, interest->wait_ms);
    if (status != STATUS_OK)
        return error_set(error, status, "another process has been writing %s for too long",
                         interest->env.data_path);
    bool prune =
        interest->pruned_at_ms == 0 || now_ms - interest->pruned_at_ms >= ODDS_NOTES_PRUNE_EVERY_MS;
    struct task task = {.interest = interest,
                        .notes = notes,
                        .note_count = count,
                        .prune_before_ms = prune ? clock_wall_ms() - ODDS_NOTES_KEEP_MS : 0};
    status = run(&task, write_body);
    if (interest->env.env != NULL)
        lmdb_env_unlock_writer(&interest->env);
    if (status != STATUS_OK)
        return error_set(error, status, "interest in events cannot be written at %s: %s",
                         interest->root, mdb_strerror(task.result));
    if (prune)
        interest->pruned_at_ms = now_ms;
    return STATUS_OK;
}

static void flush(struct lmdb_interest *interest, uint64_t now_ms)
{
    const struct odds_note *notes = NULL;
    size_t count = odds_notes_take(interest->notes, &notes);
    if (count == 0)
        return;
    struct error error = {{0}};
    uv_mutex_lock(&interest->env_lock);
    enum status status = write_notes(interest, notes, count, now_ms, &error);
    uv_mutex_unlock(&interest->env_lock);
    if (status == STATUS_OK) {
        (void)atomic_fetch_add(&interest->written, count);
        interest->complained = false;
    } else {
        odds_notes_lost(interest->notes, count);
        if (!interest->complained)
            log_event(interest->log, LOG_WARNING, "interest in events is not recorded",
                      LOG_STRING("reason", error.text));
        interest->complained = true;
    }
}

void lmdb_interest_tick(struct lmdb_interest *interest)
{
    uint64_t now_ms = clock_monotonic_ms();
    if (interest->written_at_ms != 0 &&
        now_ms - interest->written_at_ms < ODDS_NOTES_WRITE_EVERY_MS)
        return;
    interest->written_at_ms = now_ms;
    flush(interest, now_ms);
}

void lmdb_interest_destroy(struct lmdb_interest **interest)
{
    struct lmdb_interest *closing = *interest;
    if (closing == NULL)
        return;
    flush(closing, clock_monotonic_ms());
    close_env(closing);
    uv_mutex_destroy(&closing->env_lock);
    odds_notes_destroy(&closing->notes);
    memory_free(closing->root);
    memory_free(closing);
    *interest = NULL;
}

/* ---- listing --------------------------------------------------------------------------------- */

static void list_body(void *context)
{
    struct task *task = context;
    MDB_cursor *cursor = NULL;
    task->result = mdb_txn_begin(task->interest->env.env, NULL, MDB_RDONLY, &task->txn);
    if (task->result == 0)
        task->result = mdb_cursor_open(task->txn, task->interest->env.dbi, &cursor);
    if (task->result != 0)
        return;
    MDB_val key = {task->prefix.size, task->prefix.bytes};
    MDB_val value;
    int result = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    for (; result == 0; result = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        struct odds_interest entry;
        if (key.mv_size < task->prefix.size ||
            memcmp(key.mv_data, task->prefix.bytes, task->prefix.size) != 0)
            break;
        struct text digits = {(const char *)key.mv_data + task->prefix.size,
                              key.mv_size - task->prefix.size};
        if (value.mv_size != sizeof entry.requested_ms ||
            event_id_parse(digits, &entry.event) != STATUS_OK)
            continue;
        memcpy(&entry.requested_ms, value.mv_data, sizeof entry.requested_ms);
        if (entry.requested_ms < task->since_ms)
            continue;
        if (task->count == task->capacity) {
            task->capacity = task->capacity > 0 ? 2 * task->capacity : 64;
            task->list = memory_resize(task->list, task->capacity * sizeof *task->list);
        }
        task->list[task->count++] = entry;
    }
    mdb_cursor_close(cursor);
    task->result = result == MDB_NOTFOUND ? 0 : result;
}

static int latest_first(const void *a, const void *b)
{
    const struct odds_interest *left = a;
    const struct odds_interest *right = b;
    if (left->requested_ms != right->requested_ms)
        return left->requested_ms > right->requested_ms ? -1 : 1;
    return strcmp(left->event.digits, right->event.digits);
}

enum status lmdb_interest_list(struct lmdb_interest *interest, enum sport sport, int64_t since_ms,
                               struct odds_interest **list, size_t *count, struct error *error)
{
    struct task task = {.interest = interest, .prefix = key_of(sport, NULL), .since_ms = since_ms};
    uv_mutex_lock(&interest->env_lock);
    enum status status = open_env(interest, error);
    if (status == STATUS_OK) {
        status = run(&task, list_body);
        if (status != STATUS_OK)
            (void)error_set(error, status, "interest in events cannot be read at %s: %s",
                            interest->root, mdb_strerror(task.result));
    }
    uv_mutex_unlock(&interest->env_lock);
    if (status != STATUS_OK) {
        memory_free(task.list);
        return status == STATUS_MALFORMED ? STATUS_UNAVAILABLE : status;
    }
    if (task.count > 0)
        qsort(task.list, task.count, sizeof *task.list, latest_first);
    *list = task.list;
    *count = task.count;
    return STATUS_OK;
}

void lmdb_interest_facts(struct lmdb_interest *interest, struct odds_facts *facts)
{
    facts->interest_written = atomic_load(&interest->written);
    facts->interest_dropped = odds_notes_dropped(interest->notes);
}
