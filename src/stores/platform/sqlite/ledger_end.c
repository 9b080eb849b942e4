/*
 * Compares the end of the ledger with the newest row that is known to have been acknowledged. Two
 * sources name that row: the mark beside the database, and the runs of the index of
 * ids, which are written after the commits of their rows. If the ledger ends before it, its newest
 * rows are lost, and a person decides: a backup, or `croupier wallet accept-loss`.
 */

#include "base/checksum.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "stores/ledger_audit.h"
#include "stores/platform/sqlite/file_identity.h"
#include "stores/platform/sqlite/ids.h"
#include "stores/platform/sqlite/in_use.h"

#define GO_ON                                                                                \
    "; stop croupier and restore a backup, or go on without what was lost: croupier wallet " \
    "accept-loss"

/* ---- the mark -------------------------------------------------------------------------------- */

/*
 * The newest transaction that the ledger acknowledged, in a small file beside the database
 * (DATABASE-last): one flipped bit in the log makes SQLite drop every transaction after it, and
 * this file then says that they were there. Why: docs/decisions/lost-rows.md.
 *
 * A batch is marked when it is durable and before it is answered. The write reaches the kernel at
 * once, so the mark survives the process; it is synced once a second, so a power cut may take it
 * back by a second. So the ledger may be ahead of the mark, and never behind it.
 *
 * Several processes may write. Each has a slot of the file, by its process id; the highest number
 * is the mark.
 */
#define WATERMARK_LEDGER_SIZE 16

struct watermark {
    uint8_t ledger[WATERMARK_LEDGER_SIZE]; /* which one it is */
    int64_t number;                        /* 0: of an empty ledger */
    uint8_t hash[LEDGER_HASH_SIZE];        /* of that transaction */
    uint64_t sum;                          /* the checksum of the rest */
};

#define SLOTS 8 /* of 64 bytes: one sector, which a disk writes whole or not at all */
#define FILE_SIZE ((off_t)(SLOTS * sizeof(struct watermark)))
#define SYNC_EVERY_MS 1000
#define READ_AGAIN 3

_Static_assert(sizeof(struct watermark) == 64, "a slot");

static uint64_t sum_of(const struct watermark *mark)
{
    return checksum_add(1, mark, offsetof(struct watermark, sum));
}

static size_t own_slot(void)
{
    return (size_t)getpid() % SLOTS;
}

static enum status failed(const char *path, struct error *error)
{
    enum status status = sqlite_is_full(errno) ? STATUS_FULL : STATUS_UNAVAILABLE;
    return error_set(error, status, "%s: cannot be used (%s)", path, strerror(errno));
}

static enum status read_slots(const char *path, struct watermark slots[SLOTS], struct error *error)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno == ENOENT ? STATUS_NOT_FOUND : failed(path, error);
    ssize_t got = pread(file, slots, FILE_SIZE, 0);
    enum status status = got < 0 ? failed(path, error) : STATUS_OK;
    (void)close(file);
    if (status == STATUS_OK && got != FILE_SIZE)
        status = error_set(error, STATUS_MALFORMED, "%s: is damaged", path);
    return status;
}

static enum status read_highest(const char *path, struct watermark *mark, struct error *error)
{
    static const struct watermark unused;
    struct watermark slots[SLOTS] = {0};
    const struct watermark *highest = NULL;
    enum status status = read_slots(path, slots, error);
    for (size_t i = 0; i < SLOTS && status == STATUS_OK; i++) {
        if (memcmp(&slots[i], &unused, sizeof unused) == 0)
            continue;
        if (slots[i].sum != sum_of(&slots[i]) || slots[i].number < 0)
            status = error_set(error, STATUS_MALFORMED, "%s: is damaged", path);
        else if (highest == NULL || slots[i].number > highest->number)
            highest = &slots[i];
    }
    if (status == STATUS_OK && highest == NULL)
        status = error_set(error, STATUS_MALFORMED, "%s: is damaged", path);
    if (status == STATUS_OK)
        *mark = *highest;
    return status;
}

/* STATUS_NOT_FOUND: there is no file. STATUS_MALFORMED: it is damaged.
 * A slot that is read while its process writes it may be half of each; then it is whole soon. */
static enum status read_mark(const char *database, struct watermark *mark, struct error *error)
{
    char *path = file_beside(database, "-last");
    enum status status = read_highest(path, mark, error);
    for (int again = 0; again < READ_AGAIN && status == STATUS_MALFORMED; again++) {
        clock_pause_ns(1000 * 1000);
        status = read_highest(path, mark, error);
    }
    memory_free(path);
    return status;
}

/* Users that may write the database may write the mark, also when root makes it, and whatever the
 * umask. */
static bool give_to_users(int file, const char *database)
{
    struct stat facts;
    return stat(database, &facts) == 0 && fchmod(file, facts.st_mode & 0666) == 0 &&
           (geteuid() != 0 || fchown(file, facts.st_uid, facts.st_gid) == 0);
}

static bool write_slots(int file, const struct watermark slots[SLOTS])
{
    return pwrite(file, slots, FILE_SIZE, 0) == FILE_SIZE && fdatasync(file) == 0;
}

/* A file has its name when its content is on disk: an empty one would be damaged. The write lock
 * keeps another process from making the same file. Returns a descriptor, or -1 with errno. */
static int make_file(const char *path, const char *database, const struct watermark slots[SLOTS])
{
    char *name = file_beside(path, "-new");
    (void)unlink(name); /* of a process that was killed, perhaps another user's */
    int file = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0 && !(give_to_users(file, database) && write_slots(file, slots) &&
                       rename(name, path) == 0 && file_sync_directory(path) == 0)) {
        int reason = errno;
        (void)unlink(name);
        file_close(&file);
        errno = reason;
    }
    memory_free(name);
    return file;
}

/* Makes this the mark, in place of all others; the file is made when there is none, and synced. */
static enum status make_mark(struct sqlite_store *store, const struct watermark *mark,
                             struct error *error)
{
    struct watermark slots[SLOTS] = {0};
    char *path = file_beside(store->path, "-last");
    enum status status = STATUS_OK;
    slots[own_slot()] = *mark;
    slots[own_slot()].sum = sum_of(mark);
    file_close(&store->mark);
    int opened = open(path, O_RDWR | O_CLOEXEC);
    if (opened < 0 && errno == ENOENT)
        store->mark = make_file(path, store->path, slots);
    else if (opened >= 0 && write_slots(opened, slots))
        store->mark = opened;
    if (store->mark < 0) {
        status = failed(path, error);
        file_close(&opened);
    }
    memory_free(path);
    return status;
}

/* Does its name still lead to it? */
static bool is_named(const struct sqlite_store *store, const struct stat *opened)
{
    struct stat named;
    return sqlite_is_beside(store, "-last", &named) && opened->st_dev == named.st_dev &&
           opened->st_ino == named.st_ino;
}

/* Returns 0 or an errno; ENOENT: the file has lost its name, which is looked at with each sync. */
static int write_mark(struct sqlite_store *store, struct watermark *mark)
{
    uint64_t now_ms = clock_monotonic_ms();
    struct stat facts;
    mark->sum = sum_of(mark);
    if (pwrite(store->mark, mark, sizeof *mark, (off_t)(own_slot() * sizeof *mark)) !=
        (ssize_t)sizeof *mark)
        return errno;
    if (fstat(store->mark, &facts) != 0 || facts.st_nlink == 0)
        return ENOENT;
    if (facts.st_size < FILE_SIZE &&
        ftruncate(store->mark, FILE_SIZE) != 0) /* somebody has emptied it */
        return errno;
    if (now_ms < store->marked_ms + SYNC_EVERY_MS)
        return 0;
    if (!is_named(store, &facts))
        return ENOENT;
    store->marked_ms = now_ms;
    return fdatasync(store->mark) == 0 ? 0 : errno;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* The hash of a transaction; of number 0, before the first, zeros. */
static enum status hash_of(struct sqlite_store *store, int64_t number,
                           uint8_t hash[LEDGER_HASH_SIZE], struct error *error)
{
    struct ledger_row row = {.number = 0};
    enum status status = number == 0 ? STATUS_OK : sqlite_row_load(store, number, &row, error);
    if (status == STATUS_NOT_FOUND)
        return platform_damaged_row(&store->base, number, "it is not there", error);
    if (status == STATUS_OK)
        memcpy(hash, row.hash, LEDGER_HASH_SIZE);
    return status;
}

static enum status compare_mark(struct sqlite_store *store, const struct watermark *mark,
                                struct ledger_end *end, struct error *error)
{
    uint8_t hash[LEDGER_HASH_SIZE];
    if (memcmp(mark->ledger, store->ledger, sizeof mark->ledger) != 0)
        return error_set(error, STATUS_MALFORMED, "%s-last: is of another ledger" GO_ON,
                         store->path);
    if (mark->number > end->acknowledged)
        end->acknowledged = mark->number;
    if (mark->number > end->last)
        return STATUS_OK;
    enum status status = hash_of(store, mark->number, hash, error);
    if (status == STATUS_OK && memcmp(hash, mark->hash, sizeof hash) != 0)
        status = error_set(error, STATUS_MALFORMED,
                           "%s: transaction %lld is not the one that was acknowledged" GO_ON,
                           store->path, (long long)mark->number);
    return status;
}

/* Reads the mark before the ledger: the mark never runs ahead of the ledger. */
enum status sqlite_ledger_check_end(struct platform_store *base, struct ledger_end *end,
                                    struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct watermark mark = {.number = 0};
    enum status found = STATUS_NOT_FOUND;
    enum status status = sqlite_ready(store, error);
    *end = (struct ledger_end){0};
    if (status == STATUS_OK)
        found = read_mark(store->path, &mark, error);
    if (found == STATUS_UNAVAILABLE)
        status = found;
    if (status == STATUS_OK)
        status = sqlite_ids_last(store, &end->last, error);
    end->acknowledged = end->last;
    if (status == STATUS_OK && found == STATUS_MALFORMED)
        status = error_set(error, found, "%s-last: is damaged" GO_ON, store->path);
    if (status == STATUS_OK && found == STATUS_OK)
        status = compare_mark(store, &mark, end, error);
    if (status == STATUS_OK)
        status = id_index_beyond(store->path, store->ledger, end->last, false, &end->acknowledged,
                                 error);
    if (status == STATUS_OK && end->acknowledged > end->last) /* or rows were added since */
        status = sqlite_ids_last(store, &end->last, error);
    if (status != STATUS_OK || end->acknowledged <= end->last)
        return status;
    return error_set(error, STATUS_MALFORMED,
                     "%s: the ledger has lost its newest rows: it ends with transaction %lld, and"
                     " transaction %lld was acknowledged" GO_ON,
                     store->path, (long long)end->last, (long long)end->acknowledged);
}

enum status sqlite_check_content(struct sqlite_store *store, struct error *error)
{
    const struct audit_options whole = {.watch = NULL};
    struct audit_result result;
    struct timespec written;
    struct ledger_end end;
    enum status status = sqlite_files_content(store, error);
    if (status == STATUS_OK || !sqlite_files_are_doubted(store, &written))
        return status;
    (void)sqlite3_db_release_memory(store->database); /* pages from before */
    status = sqlite_ledger_check_end(&store->base, &end, error);
    if (status == STATUS_OK)
        status = wallet_audit(&store->base, &whole, &result, error);
    if (status == STATUS_OK || status == STATUS_MALFORMED)
        sqlite_files_judge(store, &written, status == STATUS_OK);
    if (status == STATUS_OK)
        log_event(store->log, LOG_WARNING,
                  "another program wrote the platform store, or set its time; all of it fits",
                  LOG_STRING("path", store->path));
    return status;
}

static enum status set_mark(struct sqlite_store *store, int64_t last, struct error *error)
{
    struct watermark mark = {.number = last};
    enum status status = hash_of(store, last, mark.hash, error);
    memcpy(mark.ledger, store->ledger, sizeof mark.ledger);
    store->marked_ms = clock_monotonic_ms();
    return status == STATUS_OK ? make_mark(store, &mark, error) : status;
}

enum status sqlite_ledger_accept_end(struct platform_store *base, int64_t last, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    int64_t now = -1;
    int64_t beyond = 0;
    enum status status = sqlite_begin(store, error);
    if (status != STATUS_OK)
        return status;
    status = sqlite_ids_last(store, &now, error);
    if (status == STATUS_OK && now != last)
        status = error_conflict(error, "the ledger ends with transaction %lld now", (long long)now);
    if (status == STATUS_OK)
        status = id_index_beyond(store->path, store->ledger, last, true, &beyond, error);
    if (status == STATUS_OK)
        status = set_mark(store, last, error);
    if (status == STATUS_OK) /* they may have the entries that are lost */
        status = sqlite_execute(
            store, "DELETE FROM ledger_sum; UPDATE ledger_summed SET number = 0", error);
    return sqlite_end(store, status, error);
}

enum status sqlite_mark_begin(struct sqlite_store *store, struct error *error)
{
    struct ledger_end end;
    if (store->mark >= 0)
        return STATUS_OK;
    enum status status = sqlite_ledger_check_end(&store->base, &end, error);
    return status == STATUS_OK ? set_mark(store, end.last, error) : status;
}

enum status sqlite_mark(struct sqlite_store *store, int64_t number,
                        const uint8_t hash[LEDGER_HASH_SIZE], struct error *error)
{
    struct watermark mark = {.number = number};
    memcpy(mark.ledger, store->ledger, sizeof mark.ledger);
    memcpy(mark.hash, hash, sizeof mark.hash);
    int reason = write_mark(store, &mark);
    return reason == 0 ? STATUS_OK
                       : error_unavailable(error, "%s-last: cannot be written (%s)", store->path,
                                           strerror(reason));
}
