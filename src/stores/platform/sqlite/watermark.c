/* See watermark.h. */
#include "stores/platform/sqlite/watermark.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/file.h"

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
    return error_set(error, STATUS_UNAVAILABLE, "%s: cannot be used (%s)", path, strerror(errno));
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
    struct watermark slots[SLOTS];
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

/* A slot that is read while its process writes it may be half of each; then it is whole soon. */
enum status watermark_read(const char *database, struct watermark *mark, struct error *error)
{
    struct buffer path = {0};
    buffer_append_format(&path, "%s-last", database);
    enum status status = read_highest(buffer_string(&path), mark, error);
    for (int again = 0; again < READ_AGAIN && status == STATUS_MALFORMED; again++) {
        clock_pause_ns(1000 * 1000);
        status = read_highest(buffer_string(&path), mark, error);
    }
    buffer_free(&path);
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
    struct buffer unnamed = {0};
    buffer_append_format(&unnamed, "%s-new", path);
    const char *name = buffer_string(&unnamed);
    (void)unlink(name); /* of a process that was killed, perhaps another user's */
    int file = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0 && !(give_to_users(file, database) && write_slots(file, slots) &&
                       rename(name, path) == 0 && file_sync_directory(path) == 0)) {
        int reason = errno;
        (void)unlink(name);
        (void)close(file);
        errno = reason;
        file = -1;
    }
    buffer_free(&unnamed);
    return file;
}

enum status watermark_set(const char *database, const struct watermark *mark, int *file,
                          struct error *error)
{
    struct watermark slots[SLOTS] = {0};
    struct buffer path = {0};
    enum status status = STATUS_OK;
    slots[own_slot()] = *mark;
    slots[own_slot()].sum = sum_of(mark);
    buffer_append_format(&path, "%s-last", database);
    int opened = open(buffer_string(&path), O_RDWR | O_CLOEXEC);
    bool is_set = opened >= 0 && write_slots(opened, slots);
    if (opened < 0 && errno == ENOENT) {
        opened = make_file(buffer_string(&path), database, slots);
        is_set = opened >= 0;
    }
    if (!is_set)
        status = failed(buffer_string(&path), error);
    buffer_free(&path);
    if (status == STATUS_OK)
        *file = opened;
    else if (opened >= 0)
        (void)close(opened);
    return status;
}

/* Does its name still lead to it? */
static bool is_named(int file, const char *database)
{
    struct stat opened;
    struct stat named;
    struct buffer path = {0};
    buffer_append_format(&path, "%s-last", database);
    bool found = fstat(file, &opened) == 0 && stat(buffer_string(&path), &named) == 0;
    buffer_free(&path);
    return found && opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

int watermark_write(const char *database, struct watermark *mark, int file, uint64_t *synced_ms)
{
    uint64_t now_ms = clock_monotonic_ms();
    struct stat facts;
    mark->sum = sum_of(mark);
    if (pwrite(file, mark, sizeof *mark, (off_t)(own_slot() * sizeof *mark)) !=
        (ssize_t)sizeof *mark)
        return errno;
    if (fstat(file, &facts) != 0 || facts.st_nlink == 0)
        return ENOENT;
    if (facts.st_size < FILE_SIZE && ftruncate(file, FILE_SIZE) != 0) /* somebody has emptied it */
        return errno;
    if (now_ms < *synced_ms + SYNC_EVERY_MS)
        return 0;
    if (!is_named(file, database))
        return ENOENT;
    *synced_ms = now_ms;
    return fdatasync(file) == 0 ? 0 : errno;
}
