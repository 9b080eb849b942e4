/*
 * Interest: which events were asked for lately, for the feed to know what to refresh first.
 *
 * A file of fixed slots, DIR/interest.map, that every process reads and writes. Once a second the
 * background thread writes the notes of the serving threads (interest_notes.h) there. The file is
 * neither synced nor locked: losing it costs a second's worth of priorities, which the next polls
 * mend. Nothing here ever makes serving fail.
 *
 * An event is in one of the WAYS slots that its hash names: the one that has it already, else the
 * one that was asked for longest ago. Two servers that write one slot at once leave one of the
 * two, or a mixture, which its checksum tells; both write again while the event is asked for.
 */
#include "stores/odds/lmdb/interest.h"

#include "base/checksum.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "stores/odds_engine.h"

#define WAYS 8U
#define GROUPS ((uint64_t)1 << 13) /* of WAYS slots; 2.5 MiB in all */
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

struct lmdb_interest {
    char *path;
    struct log *log;
    struct odds_store *store; /* it has the notes to write */
    bool complained;          /* the background thread's */
};

static uint64_t checksum_of(const struct slot *slot)
{
    return checksum_add(0, slot, offsetof(struct slot, checksum));
}

/* Makes the file when it is not there; not the directory, which is the store's. */
static int open_file(const struct lmdb_interest *interest, struct error *error)
{
    int file = open(interest->path, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    if (file < 0)
        (void)error_unavailable(error, "%s cannot be used: %s", interest->path, strerror(errno));
    return file;
}

/* The slots of a group; those beyond the end of the file are empty. */
static bool read_group(int file, uint64_t group, struct slot slots[WAYS])
{
    const size_t size = WAYS * sizeof slots[0];
    memset(slots, 0, size);
    return pread(file, slots, size, (off_t)(group * size)) >= 0;
}

/* ---- writing, in the background -------------------------------------------------------------- */

static bool write_note(int file, const struct odds_note *note)
{
    struct slot slots[WAYS];
    struct slot slot = {
        .event = note->event, .sport = (uint8_t)note->sport, .requested_ms = note->requested_ms};
    slot.checksum = checksum_of(&slot);
    uint64_t group = checksum_add(slot.sport, &slot.event, sizeof slot.event) % GROUPS;
    unsigned chosen = 0;
    int64_t oldest_ms = INT64_MAX;
    if (!read_group(file, group, slots))
        return false;
    for (unsigned i = 0; i < WAYS; i++) {
        int64_t requested_ms =
            slots[i].checksum == checksum_of(&slots[i]) ? slots[i].requested_ms : 0;
        if (slots[i].sport == slot.sport && event_id_equals(&slots[i].event, &slot.event))
            requested_ms = -1;
        if (requested_ms < oldest_ms) {
            chosen = i;
            oldest_ms = requested_ms;
        }
    }
    return pwrite(file, &slot, sizeof slot, (off_t)((group * WAYS + chosen) * sizeof slot)) ==
           (ssize_t)sizeof slot;
}

static enum status write_notes(const struct lmdb_interest *interest, const struct odds_note *notes,
                               size_t count, struct error *error)
{
    int file = open_file(interest, error);
    if (file < 0)
        return STATUS_UNAVAILABLE;
    bool written = true;
    for (size_t i = 0; i < count && written; i++)
        written = write_note(file, &notes[i]);
    enum status status = written ? STATUS_OK
                                 : error_unavailable(error, "%s cannot be written: %s",
                                                     interest->path, strerror(errno));
    (void)close(file);
    return status;
}

void lmdb_interest_write(struct lmdb_interest *interest)
{
    struct error error = {{0}};
    const struct odds_note *notes;
    size_t count = odds_notes_take(interest->store->notes, &notes);
    if (count == 0)
        return;
    if (write_notes(interest, notes, count, &error) == STATUS_OK) {
        (void)atomic_fetch_add(&interest->store->interest_written, count);
        interest->complained = false;
        return;
    }
    odds_notes_lost(interest->store->notes, count);
    if (!interest->complained)
        log_event(interest->log, LOG_WARNING, "interest in events is not recorded",
                  LOG_STRING("reason", error.text));
    interest->complained = true;
}

/* ---- listing --------------------------------------------------------------------------------- */

enum status lmdb_interest_list(struct lmdb_interest *interest, enum sport sport, int64_t since_ms,
                               struct odds_interest **list, size_t *count, struct error *error)
{
    int64_t kept_ms = clock_wall_ms() - ODDS_NOTES_KEEP_MS;
    int64_t from_ms = since_ms > kept_ms ? since_ms : kept_ms;
    struct buffer found = {0};
    struct slot slots[WAYS];
    int file = open_file(interest, error);
    if (file < 0)
        return STATUS_UNAVAILABLE;
    for (uint64_t group = 0; group < GROUPS && read_group(file, group, slots); group++) {
        for (unsigned i = 0; i < WAYS; i++) {
            const struct slot *slot = &slots[i];
            struct odds_interest entry = {.event = slot->event, .requested_ms = slot->requested_ms};
            if (slot->requested_ms >= from_ms && slot->sport == sport &&
                slot->event.size <= EVENT_ID_DIGITS && slot->checksum == checksum_of(slot))
                buffer_append(&found, &entry, sizeof entry);
        }
    }
    (void)close(file);
    *list = (struct odds_interest *)(void *)found.data;
    *count = found.size / sizeof **list;
    return STATUS_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct lmdb_interest *lmdb_interest_create(struct odds_store *store, const char *root,
                                           struct log *log)
{
    struct lmdb_interest *interest = memory_alloc_zeroed(1, sizeof *interest);
    interest->path = file_beside(root, "/interest.map");
    interest->log = log;
    interest->store = store;
    return interest;
}

void lmdb_interest_destroy(struct lmdb_interest **interest)
{
    struct lmdb_interest *closing = memory_take(interest);
    if (closing == NULL)
        return;
    lmdb_interest_write(closing);
    memory_free(closing->path);
    memory_free(closing);
}
