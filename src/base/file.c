/* See file.h. */
#include "base/file.h"

#include <libgen.h>
#include <poll.h>
#include <sys/file.h>

#include "base/clock.h"
#include "base/memory.h"

#define PIECE_SIZE (1U << 20)

char *file_follow_link(const char *path)
{
    struct stat facts;
    char *target = lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode) ? realpath(path, NULL) : NULL;
    char *followed = memory_copy_string(target == NULL ? path : target);
    free(target);
    return followed;
}

void file_close(int *descriptor)
{
    int reason = errno;
    if (*descriptor >= 0)
        (void)close(*descriptor);
    *descriptor = -1;
    errno = reason;
}

char *file_beside(const char *path, const char *ending)
{
    return memory_format("%s%s", path, ending);
}

static int read_all(int descriptor, size_t most, struct buffer *out)
{
    while (out->size <= most) {
        size_t room = most + 1 - out->size < PIECE_SIZE ? most + 1 - out->size : PIECE_SIZE;
        buffer_reserve(out, room);
        ssize_t got = read(descriptor, out->data + out->size, room);
        if (got == 0)
            break;
        if (got > 0)
            out->size += (size_t)got;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

int file_read(const char *path, size_t most, struct buffer *out)
{
    int descriptor = path == NULL ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    int reason = descriptor < 0 ? errno : read_all(descriptor, most, out);
    if (path != NULL && descriptor >= 0)
        (void)close(descriptor);
    return reason;
}

/* Root may be asked on behalf of a service of any user and group. */
static bool is_secret(const struct stat *facts)
{
    uid_t user = geteuid();
    bool ours = user == 0 || facts->st_uid == 0 || facts->st_uid == user;
    bool our_group = user == 0 || facts->st_gid == 0 || facts->st_gid == getegid() ||
                     group_member(facts->st_gid) != 0;
    mode_t others = facts->st_mode & (S_IRWXG | S_IRWXO);
    return ours && (others == 0 || (others == S_IRGRP && our_group));
}

enum status file_read_secret(const char *path, size_t most, struct buffer *out, struct error *error)
{
    struct stat facts = {0};
    /* A FIFO, which is refused, is not waited for. */
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int reason = descriptor < 0 || fstat(descriptor, &facts) != 0 ? errno : 0;
    enum status status = STATUS_OK;
    if (reason == 0 && !S_ISREG(facts.st_mode))
        status = error_invalid(error, "%s: is not a regular file", path);
    else if (reason == 0 && !is_secret(&facts))
        status = error_invalid(
            error, "%s: others may use it (mode %04o, user %u, group %u); run: chmod %s %s", path,
            (unsigned)(facts.st_mode & 07777), (unsigned)facts.st_uid, (unsigned)facts.st_gid,
            facts.st_uid == 0 && facts.st_gid != 0 ? "640" : "600", path);
    else if (reason == 0)
        reason = read_all(descriptor, most, out);
    if (reason != 0)
        status = error_set(error, reason == ENOENT ? STATUS_NOT_FOUND : STATUS_UNAVAILABLE,
                           "%s: cannot be read by user %u (%s)", path, (unsigned)geteuid(),
                           strerror(reason));
    file_close(&descriptor);
    return status;
}

/* ---- making them ----------------------------------------------------------------------------- */

int file_lock(int descriptor, uint32_t patience_ms)
{
    const uint64_t until_ms = clock_monotonic_ms() + patience_ms;
    while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EINTR && (errno != EWOULDBLOCK || clock_monotonic_ms() >= until_ms))
            return errno;
        clock_pause_ns(1000000);
    }
    return 0;
}

/* The directory that a path is in, to be closed; -1 and errno. */
static int open_directory_of(const char *path)
{
    char *copy = memory_copy_string(path);
    int descriptor = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int reason = errno;
    memory_free(copy);
    errno = reason;
    return descriptor;
}

int file_sync_directory(const char *path)
{
    int descriptor = open_directory_of(path);
    int reason = descriptor < 0 || fsync(descriptor) != 0 ? errno : 0;
    file_close(&descriptor);
    return reason;
}

enum status file_failed(struct error *error, const char *path, const char *verb)
{
    enum status status = errno == ENOENT                      ? STATUS_NOT_FOUND
                         : errno == EEXIST                    ? STATUS_EXISTS
                         : errno == ENOSPC || errno == EDQUOT ? STATUS_FULL
                                                              : STATUS_UNAVAILABLE;
    return error_set(error, status, "%s: cannot be %s (%s)", path, verb, strerror(errno));
}

size_t file_write(int descriptor, const char *bytes, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t written = write(descriptor, bytes + done, size - done);
        if (written > 0) {
            done += (size_t)written;
        } else if (written < 0 && errno == EAGAIN) { /* it was handed to us non-blocking */
            struct pollfd writable = {.fd = descriptor, .events = POLLOUT};
            (void)poll(&writable, 1, -1);
        } else if (written == 0 || errno != EINTR) {
            break;
        }
    }
    return done;
}

/* Gives the file to the owner of its directory: the service must be able to use what root makes. */
static bool give_to_owner(int descriptor, const char *path)
{
    struct stat facts;
    if (geteuid() != 0)
        return true;
    int directory = open_directory_of(path);
    bool given = directory >= 0 && fstat(directory, &facts) == 0 &&
                 fchown(descriptor, facts.st_uid, facts.st_gid) == 0;
    file_close(&directory);
    return given;
}

enum status file_make_directory(const char *path, mode_t mode, struct error *error)
{
    if (mkdir(path, mode) != 0)
        return errno == EEXIST ? STATUS_OK : file_failed(error, path, "made");
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool given = descriptor >= 0 && give_to_owner(descriptor, path);
    file_close(&descriptor);
    return given ? STATUS_OK : file_failed(error, path, "made");
}

enum status file_make(const char *path, mode_t mode, struct text content, struct error *error)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (descriptor < 0)
        return file_failed(error, path, "made");
    enum status status =
        file_write(descriptor, content.at, content.size) == content.size && fsync(descriptor) == 0
            ? STATUS_OK
            : file_failed(error, path, "written");
    (void)close(descriptor);
    if (status != STATUS_OK)
        (void)unlink(path);
    return status;
}

/* ---- what files hold ------------------------------------------------------------------------- */

bool file_prints_equal(const struct file_print *a, const struct file_print *b)
{
    return a->bytes == b->bytes && memcmp(a->sha256, b->sha256, sizeof a->sha256) == 0;
}

/* A file that is read, and the one that it is copied to. */
struct passing {
    const char *path, *to; /* `to` NULL: only read */
    int from, into;
    const struct progress_watch *watch; /* may be NULL */
    uint64_t total;
    struct digest *digest;
};

static enum status pass(struct passing *passing, uint64_t *bytes, struct error *error)
{
    char *piece = memory_alloc(PIECE_SIZE);
    const char *slash = strrchr(passing->path, '/');
    char what[64];
    enum status status = STATUS_OK;
    uint64_t done = 0;
    (void)snprintf(what, sizeof what, "bytes of %s %s", slash == NULL ? passing->path : slash + 1,
                   passing->to != NULL ? "copied" : "read back");
    for (;;) {
        ssize_t got = read(passing->from, piece, PIECE_SIZE);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            status = file_failed(error, passing->path, "read");
        if (got <= 0)
            break;
        digest_add(passing->digest, piece, (size_t)got);
        if (passing->to != NULL && file_write(passing->into, piece, (size_t)got) != (size_t)got) {
            status = file_failed(error, passing->to, "written");
            break;
        }
        done += (uint64_t)got;
        progress_tell(passing->watch, what, done, passing->total);
    }
    memory_free(piece);
    *bytes = done;
    return status;
}

static enum status open_both(struct passing *passing, mode_t mode, struct error *error)
{
    struct stat facts;
    passing->from = open(passing->path, O_RDONLY | O_CLOEXEC);
    if (passing->from < 0 || fstat(passing->from, &facts) != 0)
        return file_failed(error, passing->path, "read");
    if (!S_ISREG(facts.st_mode))
        return error_unavailable(error, "%s: is no regular file", passing->path);
    passing->total = (uint64_t)facts.st_size;
    (void)posix_fadvise(passing->from, 0, 0, POSIX_FADV_DONTNEED);
    if (passing->to == NULL)
        return STATUS_OK;
    passing->into = open(passing->to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    return passing->into >= 0 && give_to_owner(passing->into, passing->to)
               ? STATUS_OK
               : file_failed(error, passing->to, "made");
}

static enum status run(struct passing *passing, mode_t mode, struct file_print *print,
                       struct error *error)
{
    struct file_print found = {0};
    enum status status = open_both(passing, mode, error);
    if (status == STATUS_OK) {
        passing->digest = digest_begin();
        status = pass(passing, &found.bytes, error);
        digest_end(&passing->digest, found.sha256);
    }
    if (status == STATUS_OK && passing->to != NULL && fsync(passing->into) != 0)
        status = file_failed(error, passing->to, "written");
    file_close(&passing->from);
    if (passing->into >= 0) {
        (void)close(passing->into);
        if (status != STATUS_OK)
            (void)unlink(passing->to); /* half a copy is none */
    }
    if (status == STATUS_OK)
        *print = found;
    return status;
}

enum status file_read_print(const char *path, const struct progress_watch *watch,
                            struct file_print *print, struct error *error)
{
    struct passing passing = {.path = path, .from = -1, .into = -1, .watch = watch};
    return run(&passing, 0, print, error);
}

enum status file_copy(const char *path, const char *to, mode_t mode,
                      const struct progress_watch *watch, struct file_print *print,
                      struct error *error)
{
    struct passing passing = {.path = path, .to = to, .from = -1, .into = -1, .watch = watch};
    return run(&passing, mode, print, error);
}
