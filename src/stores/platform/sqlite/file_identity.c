/*
 * The identity of a database's files; see file_identity.h. The lock guards the records of all
 * databases, which are this file's only static state: SQLite, too, has one set of files for all
 * handles of a process.
 *
 * The formats are those of https://sqlite.org/walformat.html. The log's index is read in SQLite's
 * own mapping of it, without its locks. So it is read before and after each look at a file; if the
 * two differ, the look proves nothing.
 */
#include "stores/platform/sqlite/file_identity.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "stores/platform/sqlite/index_guard.h"
#include "stores/platform/sqlite/sqlite.h"

enum part { DATABASE, LOG, INDEX, PARTS };
static const char *const endings[PARTS] = {"", "-wal", "-shm"};

#define INDEX_REGION 32768
#define LOG_HEAD 32 /* bytes */
#define LOOKS_MAX 16

/* The index begins with this: numbers in the machine's byte order, salts as the log has them. */
struct index_header {
    uint32_t version, unused, change;
    uint8_t is_made, sums_are_big_endian;
    uint16_t page_size;
    uint32_t frames, pages;
    uint32_t frame_sum[2]; /* of the last frame */
    uint8_t salts[8];
    uint32_t sum[2];
    uint32_t copy[12];
    uint32_t copied; /* frames that checkpoints have brought into the database, */
    uint32_t marks[5];
    uint32_t locks[2];
    uint32_t copying; /* and those that they have begun to */
};
_Static_assert(sizeof(struct index_header) == 132, "as it stands in the file");

/* A frame of the log that was its last once: its number, and what its head says. */
struct log_end {
    uint32_t frames; /* 0: the log was empty */
    uint32_t sum[2]; /* of all that was written since the log began */
    uint8_t salts[8];
};

/* The last checkpoint. */
struct checkpoint {
    uint8_t salts[8];
    uint32_t copied;
};

struct flaw {
    const char *what; /* NULL: there is none */
    enum part part;
    const char *remedy; /* NULL: as ever */
};

struct open_files {
    LIST_ENTRY(open_files) others;
    char *path; /* as the handles have it */
    char *names[PARTS];
    /* Opened with O_PATH. They keep the inodes' numbers from being used again, and closing them
     * drops none of SQLite's locks. */
    int pins[PARTS];
    struct stat opened[PARTS];
    unsigned handles;
    struct flaw misplaced; /* as of the last look */
    struct flaw damaged;   /* for this process it stays so */
    struct log_end seen;   /* the log's end, when that was last looked at */
    bool is_idle; /* no checkpoint runs since `last`, so the database stays as it was then: */
    struct checkpoint last;
    struct timespec written;
    off_t size;
    struct timespec doubted; /* its time at the last look */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, open_files) all;

static struct open_files *files_of(const char *path)
{
    struct open_files *files;
    LIST_FOREACH (files, &all, others)
        if (strcmp(files->path, path) == 0)
            break;
    return files;
}

/* ---- the names ------------------------------------------------------------------------------- */

static bool is_named(const struct open_files *files, enum part part, struct stat *facts,
                     struct flaw *flaw)
{
    const struct stat *opened = &files->opened[part];
    *flaw = (struct flaw){.part = part};
    int reason = stat(files->names[part], facts) == 0 ? 0 : errno;
    if (reason != 0)
        flaw->what = reason == ENOENT ? "is gone" : "cannot be reached";
    else if (facts->st_dev != opened->st_dev || facts->st_ino != opened->st_ino)
        flaw->what = "is another file than the one that is open";
    if (reason == ENOENT && part != DATABASE)
        flaw->remedy = "put it back, or stop croupier, which saves everything, and run no other "
                       "command of croupier before";
    return flaw->what == NULL;
}

static bool are_named(struct open_files *files, struct stat facts[PARTS])
{
    for (enum part part = DATABASE; part < PARTS; part++)
        if (!is_named(files, part, &facts[part], &files->misplaced))
            return false;
    if (index_guard_was_needed() || facts[INDEX].st_size < files->opened[INDEX].st_size) {
        files->misplaced = (struct flaw){.what = "was cut short", .part = INDEX};
        return false;
    }
    files->opened[INDEX].st_size = facts[INDEX].st_size; /* it only grows */
    return true;
}

/* ---- the contents of the files --------------------------------------------------------------- */

static void read_index(const struct sqlite_store *store, struct index_header *header)
{
    uint32_t numbers[sizeof *header / sizeof(uint32_t)];
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        numbers[i] = store->log_index[i];
    memcpy(header, numbers, sizeof *header);
}

/* SQLITE_CORRUPT: the log does not have this frame. */
static int compare_frame(sqlite3_file *log, const struct log_end *end, int64_t page)
{
    uint8_t frame[24];
    const int64_t at = LOG_HEAD + ((int64_t)end->frames - 1) * (page + (int64_t)sizeof frame);
    int code = log->pMethods->xRead(log, frame, sizeof frame, at);
    if (code != SQLITE_OK)
        return code;
    bool fits = memcmp(frame + 8, end->salts, 8) == 0 &&
                sqlite_big_endian(frame + 16) == end->sum[0] &&
                sqlite_big_endian(frame + 20) == end->sum[1];
    return fits ? SQLITE_OK : SQLITE_CORRUPT;
}

/* The log's head, its last frame, and the frame that was the last at the look before: a log that an
 * older one replaced in between has a hole there, whatever was written behind it. SQLITE_CORRUPT:
 * they do not fit. */
static int compare_log(struct open_files *files, const struct sqlite_store *store,
                       const struct index_header *index)
{
    uint8_t head[LOG_HEAD];
    sqlite3_file *log = NULL;
    const int64_t page = index->page_size == 1 ? 65536 : index->page_size;
    struct log_end end = {.frames = index->frames,
                          .sum = {index->frame_sum[0], index->frame_sum[1]}};
    memcpy(end.salts, index->salts, sizeof end.salts);
    if (index->frames == 0 || index->is_made == 0) /* the log is empty */
        return SQLITE_OK;
    CHECK(sqlite3_file_control(store->database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) ==
          SQLITE_OK);
    bool grown = files->seen.frames > 0 && files->seen.frames < end.frames &&
                 memcmp(files->seen.salts, end.salts, sizeof end.salts) == 0;
    int code = log->pMethods->xRead(log, head, sizeof head, 0);
    if (code == SQLITE_OK && memcmp(head + 16, end.salts, sizeof end.salts) != 0)
        code = SQLITE_CORRUPT;
    if (code == SQLITE_OK && grown)
        code = compare_frame(log, &files->seen, page);
    if (code == SQLITE_OK)
        code = compare_frame(log, &end, page);
    if (code == SQLITE_OK)
        files->seen = end;
    return code == SQLITE_IOERR_SHORT_READ ? SQLITE_CORRUPT : code;
}

/* A log that others write into does not fit while they do; but then its index changes, too. */
static int check_log(struct open_files *files, const struct sqlite_store *store)
{
    struct index_header before;
    struct index_header after;
    read_index(store, &before);
    for (int look = 0; look < LOOKS_MAX; look++) {
        int code = compare_log(files, store, &before);
        read_index(store, &after);
        if (code != SQLITE_CORRUPT ||
            memcmp(&before, &after, offsetof(struct index_header, copy)) == 0)
            return code;
        before = after;
    }
    return SQLITE_OK;
}

static const char doubt[] = "was written, or its time of change was set, by another program";

/* Only checkpoints write into the database. A checkpoint notes in the index that it begins, before
 * its first write, and that it has ended, after its last. */
static struct flaw check_database(struct open_files *files, const struct sqlite_store *store)
{
    struct flaw flaw = {.part = DATABASE};
    struct index_header before;
    struct index_header after;
    struct stat facts;
    read_index(store, &before);
    if (fstat(files->pins[DATABASE], &facts) != 0)
        return flaw;
    read_index(store, &after);
    struct checkpoint now = {.copied = after.copied};
    memcpy(now.salts, after.salts, sizeof now.salts);
    bool is_idle = before.copied == before.copying && after.copied == after.copying &&
                   before.copied == after.copied &&
                   memcmp(before.salts, after.salts, sizeof now.salts) == 0;
    if (is_idle && files->is_idle && memcmp(&now, &files->last, sizeof now) == 0) {
        files->doubted = facts.st_mtim;
        if (facts.st_size != files->size)
            flaw.what = "was written by another than SQLite";
        else if (facts.st_mtim.tv_sec != files->written.tv_sec ||
                 facts.st_mtim.tv_nsec != files->written.tv_nsec)
            flaw.what = doubt;
    } else if (is_idle) {
        files->is_idle = true;
        files->last = now;
        files->size = facts.st_size;
        files->written = facts.st_mtim;
    }
    return flaw;
}

static struct flaw find_damage(struct open_files *files, const struct sqlite_store *store)
{
    int code = files->damaged.what != NULL ? SQLITE_OK : check_log(files, store);
    if (code != SQLITE_OK && code != SQLITE_CORRUPT)
        return (struct flaw){.what = "cannot be read", .part = LOG};
    if (code == SQLITE_CORRUPT)
        files->damaged =
            (struct flaw){.what = "does not end with what was written into it", .part = LOG};
    if (files->damaged.what != NULL)
        return files->damaged;
    struct flaw flaw = check_database(files, store);
    if (flaw.what != doubt) /* which the contents may take away again */
        files->damaged = flaw;
    return flaw;
}

/* ---- handles --------------------------------------------------------------------------------- */

static enum status refuse(const struct open_files *files, struct flaw flaw, struct error *error)
{
    if (flaw.what == NULL)
        return STATUS_OK;
    return error_unavailable(
        error, "%s: %s; nothing more is written: %s", files->names[flaw.part], flaw.what,
        flaw.remedy != NULL ? flaw.remedy
                            : "stop croupier, put the files back or restore a backup, "
                              "and start it again");
}

enum status sqlite_files_expect(const struct sqlite_store *store, struct error *error)
{
    struct stat facts[PARTS];
    enum status status = STATUS_OK;
    (void)pthread_mutex_lock(&lock);
    struct open_files *files = files_of(store->path);
    if (files != NULL && !are_named(files, facts)) {
        /* SQLite's last handle has deleted the log and its index. */
        bool closed = files->handles == 0 && files->misplaced.part != DATABASE &&
                      access(files->names[LOG], F_OK) != 0 &&
                      access(files->names[INDEX], F_OK) != 0;
        status = closed ? STATUS_OK : refuse(files, files->misplaced, error);
    }
    (void)pthread_mutex_unlock(&lock);
    return status;
}

static void forget(struct open_files *forgotten)
{
    LIST_REMOVE(forgotten, others);
    for (enum part part = DATABASE; part < PARTS; part++) {
        file_close(&forgotten->pins[part]);
        memory_free(forgotten->names[part]);
    }
    memory_free(forgotten->path);
    memory_free(forgotten);
}

/* SQLite follows links, so the names are those that it has. */
static struct open_files *record(const struct sqlite_store *store, struct error *error)
{
    struct open_files *files = memory_alloc_zeroed(1, sizeof *files);
    int reason = 0;
    const char *database = sqlite3_db_filename(store->database, "main");
    files->path = memory_copy_string(store->path);
    for (enum part part = DATABASE; part < PARTS; part++) {
        files->names[part] = file_beside(database, endings[part]);
        files->pins[part] = open(files->names[part], O_PATH | O_CLOEXEC);
        if (files->pins[part] < 0 || fstat(files->pins[part], &files->opened[part]) != 0)
            reason = errno;
    }
    LIST_INSERT_HEAD(&all, files, others);
    if (reason == 0)
        return files;
    (void)error_unavailable(error, "%s: its files cannot be watched (%s)", store->path,
                            strerror(reason));
    forget(files);
    return NULL;
}

enum status sqlite_files_attach(struct sqlite_store *store, struct error *error)
{
    struct stat facts[PARTS];
    sqlite3_file *file = NULL;
    void volatile *index = NULL;
    enum status status = STATUS_OK;
    CHECK(sqlite3_file_control(store->database, "main", SQLITE_FCNTL_FILE_POINTER, &file) ==
          SQLITE_OK);
    if (file->pMethods->xShmMap(file, 0, INDEX_REGION, 0, &index) != SQLITE_OK || index == NULL)
        return error_unavailable(error, "%s-shm: cannot be mapped", store->path);
    store->log_index = index;
    (void)pthread_mutex_lock(&lock);
    struct open_files *files = files_of(store->path);
    if (files != NULL && files->handles == 0 && files->damaged.what == NULL) {
        forget(files); /* sqlite_files_expect has looked at it */
        files = NULL;
    }
    if (files == NULL)
        files = record(store, error);
    store->files = files;
    if (files == NULL) {
        status = STATUS_UNAVAILABLE;
    } else {
        files->handles++;
        if (!are_named(files, facts))
            status = refuse(files, files->misplaced, error);
    }
    (void)pthread_mutex_unlock(&lock);
    return status;
}

void sqlite_files_detach(struct sqlite_store *store)
{
    struct open_files *files = store->files;
    struct stat facts;
    struct flaw flaw;
    if (files == NULL)
        return;
    (void)pthread_mutex_lock(&lock);
    bool is_wrong = index_guard_was_needed() || find_damage(files, store).what != NULL;
    for (enum part part = DATABASE; part < PARTS; part++)
        is_wrong = is_wrong ||
                   (!is_named(files, part, &facts, &flaw) && access(files->names[part], F_OK) == 0);
    if (is_wrong)
        CHECK(sqlite3_db_config(store->database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL) ==
              SQLITE_OK);
    store->files = NULL;
    if (--files->handles == 0 &&
        (store->any_file || (files->misplaced.what == NULL && files->damaged.what == NULL)))
        forget(files);
    (void)pthread_mutex_unlock(&lock);
}

enum status sqlite_files_named(const struct sqlite_store *store, struct stat *facts,
                               struct error *error)
{
    struct stat found[PARTS];
    (void)pthread_mutex_lock(&lock);
    bool sound = are_named(store->files, found);
    enum status status = refuse(store->files, store->files->misplaced, error);
    (void)pthread_mutex_unlock(&lock);
    if (sound)
        *facts = found[DATABASE];
    return status;
}

enum status sqlite_files_content(const struct sqlite_store *store, struct error *error)
{
    (void)pthread_mutex_lock(&lock);
    enum status status = refuse(store->files, find_damage(store->files, store), error);
    (void)pthread_mutex_unlock(&lock);
    return status;
}

bool sqlite_files_are_doubted(const struct sqlite_store *store, struct timespec *written)
{
    (void)pthread_mutex_lock(&lock);
    bool doubted = find_damage(store->files, store).what == doubt;
    *written = store->files->doubted;
    (void)pthread_mutex_unlock(&lock);
    return doubted;
}

void sqlite_files_judge(const struct sqlite_store *store, const struct timespec *written,
                        bool sound)
{
    (void)pthread_mutex_lock(&lock);
    if (sound)
        store->files->written = *written;
    else
        store->files->damaged =
            (struct flaw){.what = "does not hold what was written into it", .part = DATABASE};
    (void)pthread_mutex_unlock(&lock);
}
