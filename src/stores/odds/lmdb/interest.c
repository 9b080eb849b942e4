/*
 * Interest: which events were asked for lately, for the feed to know what to refresh first.
 *
 * A file of fixed slots, DIR/interest.map, that every process maps. What serving threads have
 * noted (interest_notes.h) the background thread writes there once a second. It is neither synced
 * nor locked: losing it costs a second's worth of priorities, which the next polls mend. Nothing
 * here ever makes serving fail.
 *
 * An event is in one of the WAYS slots that its hash names: the one that has it already, else the
 * one that was asked for longest ago. Two servers that write one slot at once leave one of the
 * two, or a mixture, which its checksum tells; both write again while the event is asked for.
 *
 * The map is touched under odds_guard_run alone. `lock` guards it among the threads of a process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uv.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds/interest_notes.h"
#include "stores/odds/lmdb/guard.h"
#include "stores/odds/lmdb/lmdb.h"

#define SLOTS ((size_t)1 << 16) /* a power of two; 2.5 MiB */
#define WAYS 8U
#define FILE_MODE 0660

struct slot {
    struct event_id event;
    uint8_t sport;
    uint8_t zero;         /* the struct has no holes: its checksum is of its bytes */
    int64_t requested_ms; /* wall clock */
    uint64_t checksum;    /* of what comes before */
};
_Static_assert(sizeof(struct slot) == sizeof(struct event_id) + 2 + 2 * sizeof(uint64_t),
               "no holes");
#define FILE_SIZE (SLOTS * sizeof(struct slot))

struct lmdb_interest {
    char *path;
    struct log *log;
    struct odds_notes *notes;
    atomic_uint_fast64_t written;
    bool complained; /* the background thread's */

    uv_mutex_t lock;    /* guards what follows */
    struct slot *slots; /* the map; NULL: not open */
    dev_t device;
    ino_t inode;
};

static uint64_t checksum_of(const struct slot *slot)
{
    return checksum_add(0, slot, offsetof(struct slot, checksum));
}

/* ---- the file (lock is held) ----------------------------------------------------------------- */

static void close_map(struct lmdb_interest *interest)
{
    if (interest->slots != NULL)
        (void)munmap(interest->slots, FILE_SIZE);
    interest->slots = NULL;
}

static bool is_the_same(const struct lmdb_interest *interest)
{
    struct stat file;
    return stat(interest->path, &file) == 0 && file.st_dev == interest->device &&
           file.st_ino == interest->inode && file.st_size >= (off_t)FILE_SIZE;
}

/* Makes the file when it is not there; not the directory, which is the store's. */
static enum status open_map(struct lmdb_interest *interest, struct error *error)
{
    struct stat file;
    if (interest->slots != NULL && is_the_same(interest))
        return STATUS_OK;
    close_map(interest);
    int descriptor = open(interest->path, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    void *map = MAP_FAILED;
    /* Its room on the disk is taken now: a map that cannot be written is a SIGBUS. */
    if (descriptor >= 0 && fstat(descriptor, &file) == 0 &&
        (fallocate(descriptor, 0, 0, (off_t)FILE_SIZE) == 0 ||
         (errno == EOPNOTSUPP && ftruncate(descriptor, (off_t)FILE_SIZE) == 0)))
        map = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    int reason = errno;
    if (descriptor >= 0)
        (void)close(descriptor);
    if (map == MAP_FAILED)
        return error_set(error, STATUS_UNAVAILABLE, "%s cannot be used: %s", interest->path,
                         strerror(reason));
    interest->slots = map;
    interest->device = file.st_dev;
    interest->inode = file.st_ino;
    return STATUS_OK;
}

/* A task on the map, under the guard. */
struct task {
    struct slot *slots;
    const struct odds_note *notes; /* to write */
    size_t note_count;
    enum sport sport; /* to list */
    int64_t since_ms;
    struct buffer list; /* of struct odds_interest */
};

static enum status run(struct lmdb_interest *interest, void (*body)(void *), struct task *task,
                       struct error *error)
{
    uv_mutex_lock(&interest->lock);
    enum status status = open_map(interest, error);
    task->slots = interest->slots;
    if (status == STATUS_OK && !odds_guard_run(body, task)) {
        close_map(interest);
        status = error_set(error, STATUS_UNAVAILABLE, "%s was cut short", interest->path);
    }
    uv_mutex_unlock(&interest->lock);
    return status;
}

/* ---- writing, in the background -------------------------------------------------------------- */

static struct slot *slot_for(struct slot *slots, const struct slot *wanted)
{
    size_t at = (size_t)checksum_add(wanted->sport, &wanted->event, sizeof wanted->event);
    struct slot *oldest = NULL;
    int64_t oldest_ms = INT64_MAX;
    for (unsigned i = 0; i < WAYS; i++) {
        struct slot *slot = &slots[(at + i) & (SLOTS - 1)];
        if (slot->sport == wanted->sport && event_id_equals(&slot->event, &wanted->event))
            return slot;
        int64_t requested_ms = slot->checksum == checksum_of(slot) ? slot->requested_ms : 0;
        if (requested_ms < oldest_ms) {
            oldest = slot;
            oldest_ms = requested_ms;
        }
    }
    return oldest;
}

static void write_body(void *context)
{
    const struct task *task = context;
    for (size_t i = 0; i < task->note_count; i++) {
        const struct odds_note *note = &task->notes[i];
        struct slot slot = {.event = note->event,
                            .sport = (uint8_t)note->sport,
                            .requested_ms = note->requested_ms};
        slot.checksum = checksum_of(&slot);
        *slot_for(task->slots, &slot) = slot;
    }
}

static void flush(struct lmdb_interest *interest)
{
    struct task task = {0};
    struct error error = {{0}};
    task.note_count = odds_notes_take(interest->notes, &task.notes);
    if (task.note_count == 0)
        return;
    if (run(interest, write_body, &task, &error) == STATUS_OK) {
        (void)atomic_fetch_add(&interest->written, task.note_count);
        interest->complained = false;
        return;
    }
    odds_notes_lost(interest->notes, task.note_count);
    if (!interest->complained)
        log_event(interest->log, LOG_WARNING, "interest in events is not recorded",
                  LOG_STRING("reason", error.text));
    interest->complained = true;
}

void lmdb_interest_tick(struct lmdb_interest *interest)
{
    flush(interest);
}

/* ---- listing --------------------------------------------------------------------------------- */

static void list_body(void *context)
{
    struct task *task = context;
    for (size_t i = 0; i < SLOTS; i++) {
        struct slot slot = task->slots[i];
        if (slot.requested_ms < task->since_ms || slot.sport != task->sport ||
            slot.event.size > EVENT_ID_DIGITS || slot.checksum != checksum_of(&slot))
            continue;
        struct odds_interest entry = {.event = slot.event, .requested_ms = slot.requested_ms};
        buffer_append(&task->list, &entry, sizeof entry);
    }
}

enum status lmdb_interest_list(struct lmdb_interest *interest, enum sport sport, int64_t since_ms,
                               struct odds_interest **list, size_t *count, struct error *error)
{
    int64_t kept_ms = clock_wall_ms() - ODDS_NOTES_KEEP_MS;
    struct task task = {.sport = sport, .since_ms = since_ms > kept_ms ? since_ms : kept_ms};
    enum status status = run(interest, list_body, &task, error);
    if (status != STATUS_OK) {
        buffer_free(&task.list);
        return status;
    }
    *list = (struct odds_interest *)(void *)task.list.data;
    *count = task.list.size / sizeof **list;
    return STATUS_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct lmdb_interest *lmdb_interest_create(const char *root, struct log *log)
{
    struct lmdb_interest *interest = memory_alloc_zeroed(1, sizeof *interest);
    struct buffer path = {0};
    buffer_append_format(&path, "%s/interest.map", root);
    interest->path = memory_copy_string(buffer_string(&path));
    buffer_free(&path);
    interest->log = log;
    interest->notes = odds_notes_create();
    CHECK(uv_mutex_init(&interest->lock) == 0);
    atomic_init(&interest->written, 0);
    return interest;
}

void lmdb_interest_destroy(struct lmdb_interest **interest)
{
    struct lmdb_interest *closing = *interest;
    if (closing == NULL)
        return;
    flush(closing);
    close_map(closing);
    uv_mutex_destroy(&closing->lock);
    odds_notes_destroy(&closing->notes);
    memory_free(closing->path);
    memory_free(closing);
    *interest = NULL;
}

bool lmdb_interest_note(struct lmdb_interest *interest, enum sport sport,
                        const struct event_id *event)
{
    return odds_notes_add(interest->notes, sport, event);
}

void lmdb_interest_facts(struct lmdb_interest *interest, struct odds_facts *facts)
{
    facts->interest_written = atomic_load(&interest->written);
    facts->interest_dropped = odds_notes_dropped(interest->notes);
}
