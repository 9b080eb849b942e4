/*
 * One LMDB environment on disk: opening it with care, the writer's turn, noticing that it has been
 * replaced. See lmdb.h.
 *
 * Opening is serialised among processes by a lock on DIR itself (flock on the directory, which
 * works on read-only file systems and ends with its holder), so that no process opens a data file
 * with the lock file of another.
 *
 * LMDB's lock file carries POSIX record locks, which belong to the process: it loses them when it
 * closes any descriptor of that file. So lock.mdb is touched here only before LMDB opens it, and an
 * environment must not be open twice in one process. A `struct odds_store` closes the old one
 * before it opens again; a second handle on the same store is refused, which takes a list of what
 * the process has open: static, as the locks that it stands for are the process's.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds/lmdb/guard.h"
#include "stores/odds/lmdb/lmdb.h"

#define READERS_MAX 1000 /* slots of all processes together; 64 bytes each */
#define LOCK_FILE_SIZE (64 * 1024)
/* Address space, not memory and not disk: the file grows as it is filled. LMDB cannot grow a map
 * under its readers, so it is chosen far above need; works under the sanitizers too. */
#define MAP_SIZE ((size_t)16 << 30)
#define FOLDER_MODE 0770 /* the feed and the server may be two users of one group; umask applies */
#define FILE_MODE 0660
#define SNAPSHOT_ATTEMPTS 20

/* ---- small helpers --------------------------------------------------------------------------- */

static char *join_path(const char *a, const char *b)
{
    struct buffer path = {0};
    buffer_append_format(&path, "%s/%s", a, b);
    char *copy = memory_copy_string(buffer_string(&path));
    buffer_free(&path);
    return copy;
}

static enum status path_error(struct error *error, const char *path, const char *verb, int number)
{
    enum status status = number == ENOSPC || number == EDQUOT ? STATUS_FULL : STATUS_UNAVAILABLE;
    return error_set(error, status, "%s cannot be %s: %s", path, verb, strerror(number));
}

/* flock with a limit. The kernel has no such call, so it is tried every millisecond. */
static enum status lock_file(int descriptor, uint32_t wait_ms)
{
    uint64_t deadline = clock_monotonic_ms() + wait_ms;
    while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return STATUS_UNAVAILABLE;
        if (clock_monotonic_ms() >= deadline)
            return STATUS_TIMEOUT;
        clock_pause_ns(1000000);
    }
    return STATUS_OK;
}

static void on_assertion(MDB_env *env, const char *text)
{
    (void)env;
    (void)text;
    odds_guard_escape(); /* LMDB aborts the process otherwise */
}

enum status lmdb_status(const struct lmdb_env *env, int result)
{
    struct statvfs disk;
    switch (result) {
    case MDB_SUCCESS:
        return STATUS_OK;
    case MDB_NOTFOUND:
        return STATUS_NOT_FOUND;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
        return STATUS_FULL;
    case EIO: /* LMDB's word for a write that was cut short, which a full disk does as well */
        if (env->folder >= 0 && fstatvfs(env->folder, &disk) == 0 &&
            disk.f_bavail * disk.f_frsize < ODDS_VALUE_MAX)
            return STATUS_FULL;
        return STATUS_INTERNAL;
    case ENOMEM:
    case EAGAIN:
    case MDB_READERS_FULL:
        return STATUS_UNAVAILABLE;
    default: /* MDB_CORRUPTED, MDB_PAGE_NOTFOUND, MDB_PANIC, MDB_BAD_RSLOT, … */
        return STATUS_INTERNAL;
    }
}

/* ---- what this process has open -------------------------------------------------------------- */

#define OPEN_MAX_HERE 64

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool used;
    dev_t device;
    ino_t inode;
} open_folders[OPEN_MAX_HERE]; /* guarded by open_lock */

/* Takes a folder for this process; STATUS_EXISTS when it has it already. */
static enum status claim_folder(struct lmdb_env *env)
{
    struct stat folder;
    if (fstat(env->folder, &folder) != 0)
        return STATUS_UNAVAILABLE;
    enum status status = STATUS_FULL;
    size_t at = 0;
    CHECK(pthread_mutex_lock(&open_lock) == 0);
    for (size_t i = 0; i < OPEN_MAX_HERE && status != STATUS_EXISTS; i++) {
        if (!open_folders[i].used && status == STATUS_FULL) {
            status = STATUS_OK;
            at = i;
        } else if (open_folders[i].used && open_folders[i].device == folder.st_dev &&
                   open_folders[i].inode == folder.st_ino) {
            status = STATUS_EXISTS;
        }
    }
    if (status == STATUS_OK) {
        open_folders[at].used = true;
        open_folders[at].device = folder.st_dev;
        open_folders[at].inode = folder.st_ino;
        env->claim = at + 1;
    }
    CHECK(pthread_mutex_unlock(&open_lock) == 0);
    return status;
}

static void release_folder(struct lmdb_env *env)
{
    if (env->claim == 0)
        return;
    CHECK(pthread_mutex_lock(&open_lock) == 0);
    open_folders[env->claim - 1].used = false;
    CHECK(pthread_mutex_unlock(&open_lock) == 0);
    env->claim = 0;
}

/* ---- before LMDB may have it ----------------------------------------------------------------- */

void lmdb_make_root(const char *root)
{
    char *path = memory_copy_string(root);
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(path, FOLDER_MODE);
        *at = '/';
    }
    (void)mkdir(path, FOLDER_MODE);
    memory_free(path);
}

static enum status no_store(const struct lmdb_location *location, const char *yet,
                            struct error *error)
{
    return error_set(error, STATUS_UNAVAILABLE, "there is no odds store at %s%s", location->root,
                     yet);
}

/* The lock file is written through a map of it: where the disk has no room for its pages, that is a
 * SIGBUS. So they are taken beforehand; the environment is not open in this process now (see the
 * top of this file). */
static enum status reserve_lock_file(const struct lmdb_env *env, struct error *error)
{
    int descriptor = open(env->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    if (descriptor < 0)
        return path_error(error, env->lock_path, "opened for reading and writing", errno);
    enum status status = STATUS_OK;
    if (fallocate(descriptor, 0, 0, LOCK_FILE_SIZE) != 0 && (errno == ENOSPC || errno == EDQUOT))
        status = path_error(error, env->lock_path, "written", errno);
    (void)close(descriptor);
    return status;
}

/* Looks at the file before LMDB does. A file that was being made when its maker died (LMDB writes
 * both meta pages in one go) is empty or shorter than those, and is made again. */
static enum status check_start(const struct lmdb_env *env, const struct lmdb_location *location,
                               struct error *error)
{
    int descriptor = open(env->data_path, O_RDWR | O_CLOEXEC);
    if (descriptor < 0 && errno == ENOENT)
        return location->create ? STATUS_OK : no_store(location, "", error);
    if (descriptor < 0)
        return path_error(error, env->data_path, "opened for reading and writing", errno);
    enum status status = STATUS_OK;
    struct stat data;
    if (fstat(descriptor, &data) != 0)
        status = path_error(error, env->data_path, "used", errno);
    else if (!S_ISREG(data.st_mode))
        status = error_set(error, STATUS_UNAVAILABLE, "%s is not a file", env->data_path);
    else if (data.st_size < 2 * sysconf(_SC_PAGESIZE) && location->create)
        status = ftruncate(descriptor, 0) == 0
                     ? STATUS_OK
                     : path_error(error, env->data_path, "written", errno);
    else if (data.st_size == 0)
        status = no_store(location, " yet", error);
    else {
        status = lmdb_verify_start(descriptor, error);
        if (status != STATUS_OK)
            error_prefix(error, "the odds store at %s is not usable: values", location->root);
    }
    (void)close(descriptor);
    return status;
}

/* ---- opening --------------------------------------------------------------------------------- */

struct opening {
    struct lmdb_env *env;
    const struct lmdb_location *location;
    const char *folder;
    MDB_txn *reader;
    int result;
    enum lmdb_format format;
};

static void open_body(void *context)
{
    struct opening *opening = context;
    MDB_env *env = opening->env->env;
    int dead = 0;
    (void)mdb_env_set_assert(env, on_assertion);
    opening->result = mdb_env_set_mapsize(env, MAP_SIZE);
    if (opening->result == 0)
        opening->result = mdb_env_set_maxreaders(env, READERS_MAX);
    if (opening->result == 0)
        opening->result = mdb_env_open(env, opening->folder, MDB_NOTLS, FILE_MODE);
    if (opening->result == 0)
        (void)mdb_reader_check(env, &dead);
}

static void end_body(void *context)
{
    struct opening *opening = context;
    MDB_txn *reader = opening->reader;
    opening->reader = NULL;
    mdb_txn_abort(reader);
}

/* A snapshot, instead of the one that there may be. */
static void begin_body(void *context)
{
    struct opening *opening = context;
    end_body(opening);
    opening->result = mdb_txn_begin(opening->env->env, NULL, MDB_RDONLY, &opening->reader);
}

static void format_body(void *context)
{
    struct opening *opening = context;
    opening->result = mdb_dbi_open(opening->reader, NULL, 0, &opening->env->dbi);
    if (opening->result == 0)
        opening->result = lmdb_format_read(opening->reader, opening->env->dbi, &opening->format);
}

/* A fault, or a result that means "broken", is a damaged file. */
static enum status judge(const struct opening *opening, bool fault, struct error *error)
{
    if (fault)
        return error_set(error, STATUS_MALFORMED, "the odds store at %s is damaged: values",
                         opening->location->root);
    enum status status = lmdb_status(opening->env, opening->result);
    if (status == STATUS_OK)
        return STATUS_OK;
    bool damaged = status == STATUS_INTERNAL &&
                   (opening->result == MDB_CORRUPTED || opening->result == MDB_INVALID ||
                    opening->result == MDB_PAGE_NOTFOUND);
    if (status != STATUS_FULL)
        status = damaged ? STATUS_MALFORMED : STATUS_UNAVAILABLE;
    return error_set(error, status, "the odds store at %s cannot be opened: values: %s",
                     opening->location->root, mdb_strerror(opening->result));
}

static enum status step(struct opening *opening, void (*body)(void *), struct error *error)
{
    bool fault = !odds_guard_run(body, opening);
    return judge(opening, fault, error);
}

/* Walks the file under a read transaction, which keeps a writer from reusing its pages. */
static enum status verify(struct opening *opening, struct error *error)
{
    struct lmdb_env *env = opening->env;
    int descriptor = open(env->data_path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return path_error(error, env->data_path, "opened", errno);
    enum status status = STATUS_NOT_FOUND;
    for (int attempt = 0; attempt < SNAPSHOT_ATTEMPTS && status == STATUS_NOT_FOUND; attempt++) {
        status = step(opening, begin_body, error);
        if (status != STATUS_OK)
            break;
        status = lmdb_verify(descriptor, mdb_txn_id(opening->reader), error);
        if (status != STATUS_OK)
            error_prefix(error, "the odds store at %s is not usable: values",
                         opening->location->root);
    }
    (void)close(descriptor);
    return status == STATUS_NOT_FOUND ? STATUS_UNAVAILABLE : status;
}

/* No one else is opening it (the lock on DIR), but who has had it open may be writing. */
static enum status make(struct opening *opening, struct error *error)
{
    struct lmdb_env *env = opening->env;
    enum status status =
        lmdb_env_write(env, opening->location->wait_ms, lmdb_edit_make, NULL, &opening->result);
    if (status == STATUS_TIMEOUT)
        return error_set(error, STATUS_UNAVAILABLE,
                         "another process has been writing %s for too long", env->data_path);
    return judge(opening, status == STATUS_MALFORMED, error);
}

static enum status check_format(struct opening *opening, struct error *error)
{
    const struct lmdb_location *location = opening->location;
    enum status status = step(opening, format_body, error);
    if (status != STATUS_OK || opening->format == LMDB_THIS_FORMAT)
        return status;
    if (opening->format == LMDB_OTHER_FORMAT)
        return error_set(error, STATUS_MALFORMED, "%s is not an odds store that this program knows",
                         opening->env->data_path);
    if (opening->format == LMDB_NO_FORMAT && !location->create)
        return no_store(location, " yet", error);
    return make(opening, error);
}

static enum status remember_files(struct lmdb_env *env, struct error *error)
{
    if (stat(env->data_path, &env->data) != 0)
        return path_error(error, env->data_path, "used", errno);
    if (stat(env->lock_path, &env->lock) != 0)
        return path_error(error, env->lock_path, "used", errno);
    return STATUS_OK;
}

static enum status open_here(struct lmdb_env *env, const struct lmdb_location *location,
                             const char *folder, struct error *error)
{
    env->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (env->folder < 0)
        return errno == ENOENT ? no_store(location, "", error)
                               : path_error(error, folder, "opened", errno);
    if (claim_folder(env) != STATUS_OK)
        return error_set(error, STATUS_UNAVAILABLE,
                         "this process has the odds store at %s open already", location->root);
    enum status status = check_start(env, location, error);
    if (status == STATUS_OK)
        status = reserve_lock_file(env, error);
    if (status != STATUS_OK)
        return status;
    CHECK(mdb_env_create(&env->env) == 0);
    struct opening opening = {.env = env, .location = location, .folder = folder};
    status = step(&opening, open_body, error);
    if (status == STATUS_OK)
        status = verify(&opening, error);
    if (status == STATUS_OK)
        status = check_format(&opening, error);
    if (opening.reader != NULL && !odds_guard_run(end_body, &opening) && status == STATUS_OK)
        status = error_set(error, STATUS_MALFORMED, "%s is damaged", env->lock_path);
    if (status == STATUS_OK)
        status = remember_files(env, error);
    return status;
}

enum status lmdb_env_open(struct lmdb_env *env, const struct lmdb_location *location,
                          struct error *error)
{
    char *folder = join_path(location->root, "values");
    struct lmdb_env opened = {.folder = -1,
                              .data_path = join_path(folder, "data.mdb"),
                              .lock_path = join_path(folder, "lock.mdb")};
    enum status status = STATUS_OK;
    int root = open(location->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) {
        status = errno == ENOENT ? no_store(location, "", error)
                                 : path_error(error, location->root, "opened", errno);
        goto out;
    }
    if (location->create && mkdir(folder, FOLDER_MODE) != 0 && errno != EEXIST) {
        status = path_error(error, folder, "made", errno);
        goto out;
    }
    status = lock_file(root, location->wait_ms);
    if (status != STATUS_OK) {
        (void)error_set(error, status, "another process is opening the odds store at %s",
                        location->root);
        goto out;
    }
    status = open_here(&opened, location, folder, error);
out:
    if (status == STATUS_OK)
        *env = opened;
    else
        lmdb_env_close(&opened);
    if (root >= 0)
        (void)close(root); /* and its lock */
    memory_free(folder);
    return status;
}

/* ---- closing, changing, taking turns --------------------------------------------------------- */

static void close_body(void *context)
{
    struct lmdb_env *env = context;
    mdb_env_close(env->env);
}

void lmdb_env_close(struct lmdb_env *env)
{
    /* Closing touches the map of the lock file. When that is gone too, the environment's memory is
     * deliberately lost: it can neither be used nor given back. */
    if (env->env != NULL && !odds_guard_run(close_body, env))
        (void)0;
    env->env = NULL;
    release_folder(env);
    if (env->folder >= 0)
        (void)close(env->folder);
    env->folder = -1;
    memory_free(env->data_path);
    memory_free(env->lock_path);
    env->data_path = NULL;
    env->lock_path = NULL;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool lmdb_env_in_place(const struct lmdb_env *env)
{
    struct stat data;
    return stat(env->data_path, &data) == 0 && is_same(&data, &env->data);
}

bool lmdb_env_changed(struct lmdb_env *env, const char **why)
{
    struct stat data;
    struct stat lock;
    *why = NULL;
    if (stat(env->data_path, &data) != 0 || stat(env->lock_path, &lock) != 0)
        *why = "a file of it was removed";
    else if (!is_same(&data, &env->data) || !is_same(&lock, &env->lock))
        *why = "another store is there now";
    else if (data.st_size < env->data.st_size)
        *why = "its file was cut short";
    else
        env->data.st_size = data.st_size;
    return *why != NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct writing {
    struct lmdb_env *env;
    lmdb_edit_body *body;
    void *context;
    struct lmdb_edit edit;
    int result;
};

static void write_body(void *context)
{
    struct writing *writing = context;
    MDB_txn **txn = &writing->edit.view.txn;
    writing->edit.view.dbi = writing->env->dbi;
    writing->result = mdb_txn_begin(writing->env->env, NULL, 0, txn);
    if (writing->result == 0)
        writing->result = writing->body(&writing->edit, writing->context);
    if (writing->result == 0)
        writing->result = lmdb_edit_finish(&writing->edit);
    if (writing->result != 0)
        return;                             /* aborted below */
    writing->result = mdb_txn_commit(*txn); /* ends it, whatever it says, */
    *txn = NULL;                            /* unless it faults */
}

static void abort_body(void *context)
{
    mdb_txn_abort(context);
}

bool lmdb_abort(MDB_txn *txn)
{
    return txn == NULL || odds_guard_run(abort_body, txn);
}

enum status lmdb_env_write(struct lmdb_env *env, uint32_t wait_ms, lmdb_edit_body *body,
                           void *context, int *result)
{
    struct writing writing = {.env = env, .body = body, .context = context};
    /* Before LMDB's own lock, which cannot be waited for with a limit. The kernel gives this one
     * back when a process dies. */
    enum status status = lock_file(env->folder, wait_ms);
    if (status != STATUS_OK)
        return STATUS_TIMEOUT;
    bool fault = !odds_guard_run(write_body, &writing);
    if (!lmdb_abort(writing.edit.view.txn))
        fault = true;
    lmdb_edit_free(&writing.edit);
    (void)flock(env->folder, LOCK_UN);
    *result = writing.result;
    return fault ? STATUS_MALFORMED : lmdb_status(env, writing.result);
}
