/*
 * The lock of a database that is open; see in_use.h. The mutex guards the list of files, which is
 * this file's only static state.
 */
#include "stores/platform/sqlite/in_use.h"

#include <sys/queue.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "stores/platform/sqlite/sqlite.h"

#define LOCKED_BYTE 0x40000200 /* SQLite's own end before it: PENDING_BYTE in its os.h, and 510 */
#define LOOK_AGAIN_NS (5 * 1000 * 1000)

struct file_use {
    LIST_ENTRY(file_use) others;
    dev_t device;
    ino_t inode;
    int descriptor;
    unsigned handles;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, file_use) all;

static struct file_use *use_of(const struct stat *facts)
{
    struct file_use *use;
    LIST_FOREACH (use, &all, others)
        if (use->device == facts->st_dev && use->inode == facts->st_ino)
            break;
    return use;
}

static bool set_lock(const struct file_use *use, short kind)
{
    struct flock lock = {.l_type = kind, .l_whence = SEEK_SET, .l_start = LOCKED_BYTE, .l_len = 1};
    return fcntl(use->descriptor, F_OFD_SETLK, &lock) == 0;
}

bool sqlite_is_beside(const struct sqlite_store *store, const char *ending, struct stat *facts)
{
    char *path = file_beside(store->path, ending);
    bool found = stat(path, facts) == 0;
    memory_free(path);
    return found;
}

static bool has_log(const struct sqlite_store *store)
{
    struct stat facts;
    return sqlite_is_beside(store, "-wal", &facts) && sqlite_is_beside(store, "-shm", &facts);
}

static enum status check_names(const struct sqlite_store *store, struct error *error)
{
    struct statx facts;
    if (statx(AT_FDCWD, store->path, 0, STATX_NLINK, &facts) != 0)
        return STATUS_OK; /* opening it says what is wrong */
    if ((facts.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0)
        return error_set(
            error, STATUS_UNAVAILABLE,
            "%s: is mounted as a single file, so its log is not kept with it and money "
            "would be lost; mount the directory that holds it",
            store->path);
    if (facts.stx_nlink > 1 && !store->immutable)
        return error_unavailable(
            error,
            "%s: has a second name (a hard link), so its log may be kept elsewhere; "
            "remove the other name",
            store->path);
    return STATUS_OK;
}

/* Adds the file to the list; NULL with errno when it cannot be opened. */
static struct file_use *add_use(const char *path)
{
    struct stat facts;
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &facts) != 0)
        return NULL;
    struct file_use *use = use_of(&facts);
    if (use !=
        NULL) /* another file took the name just now: this one must stay open, see in_use.h */
        return use;
    use = memory_alloc_zeroed(1, sizeof *use);
    *use =
        (struct file_use){.device = facts.st_dev, .inode = facts.st_ino, .descriptor = descriptor};
    LIST_INSERT_HEAD(&all, use, others);
    return use;
}

static void release_use(struct file_use *released)
{
    if (--released->handles > 0)
        return;
    LIST_REMOVE(released, others);
    (void)close(released->descriptor);
    memory_free(released);
}

/* Locks a file that this process has not had open so far. */
static enum status lock_file(const struct sqlite_store *store, const struct file_use *use,
                             struct error *error)
{
    uint64_t deadline_ms = clock_monotonic_ms() + store->timeout_ms;
    for (;;) {
        bool logged = has_log(store);
        if (set_lock(use, logged ? F_RDLCK : F_WRLCK)) {
            if (!logged || has_log(store))
                return STATUS_OK;
            (void)set_lock(use, F_UNLCK); /* its last user has ended since */
        } else if (errno != EAGAIN && errno != EACCES) {
            return error_unavailable(error, "%s: cannot be locked (%s)", store->path,
                                     strerror(errno));
        } else if (clock_monotonic_ms() >= deadline_ms) {
            return error_unavailable(
                error,
                logged ? "%s: another process opens it and does not go on; try again"
                       : "%s: another process has this database open and its log was "
                         "removed; stop that process first (fuser names it), and run "
                         "nothing before",
                store->path);
        } else {
            clock_pause_ns(LOOK_AGAIN_NS);
        }
    }
}

enum status sqlite_use_begin(struct sqlite_store *store, struct error *error)
{
    struct stat facts;
    enum status status = STATUS_OK;
    (void)pthread_mutex_lock(&mutex);
    struct file_use *use = stat(store->path, &facts) == 0 ? use_of(&facts) : NULL;
    if (use == NULL)
        status = check_names(store, error);
    if (status == STATUS_OK && use == NULL && !store->immutable) {
        use = add_use(store->path);
        if (use == NULL)
            status =
                error_unavailable(error, "%s: cannot be opened (%s)", store->path, strerror(errno));
    }
    if (use != NULL) {
        use->handles++;
        if (use->handles == 1)
            status = lock_file(store, use, error);
        if (status != STATUS_OK)
            release_use(use);
        else
            store->use = use;
    }
    (void)pthread_mutex_unlock(&mutex);
    return status;
}

void sqlite_use_share(struct sqlite_store *store)
{
    if (store->use != NULL)
        CHECK(set_lock(store->use, F_RDLCK));
}

void sqlite_use_end(struct sqlite_store *store)
{
    if (store->use == NULL)
        return;
    (void)pthread_mutex_lock(&mutex);
    release_use(store->use);
    (void)pthread_mutex_unlock(&mutex);
    store->use = NULL;
}
