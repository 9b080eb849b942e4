/*
 * One LMDB environment on disk. See environment.h.
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
#include "stores/odds/lmdb/environment.h"

#include <sys/file.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "stores/odds/lmdb/guard.h"

#define READERS_MAX 1000 /* slots of all processes together; 64 bytes each */
#define LOCK_FILE_SIZE (64 * 1024)
/* Address space, not memory and not disk: the file grows as it is filled. LMDB cannot grow a map
 * under its readers, so it is chosen far above need; works under the sanitizers too. */
#define MAP_SIZE ((size_t)16 << 30)
#define FOLDER_MODE 0770 /* the feed and the server may be two users of one group; umask applies */
#define FILE_MODE 0660
#define SNAPSHOT_ATTEMPTS 5
/* A publisher waits so long for another process's turn. Longer than a call of the server may take:
 * a slow disk with several feeds must not make a publication fail. */
#define WRITER_WAIT_MS 10000

/* ---- small helpers --------------------------------------------------------------------------- */

static enum status path_error(struct error *error, const char *path, const char *verb, int number)
{
    enum status status = number == ENOSPC || number == EDQUOT ? STATUS_FULL : STATUS_UNAVAILABLE;
    return error_set(error, status, "%s cannot be %s: %s", path, verb, strerror(number));
}

static enum status damaged(struct error *error, const struct lmdb_env *env, const char *how)
{
    return error_set(error, STATUS_MALFORMED, "the odds store at %s %s", env->data_path, how);
}

static void on_assertion(MDB_env *env, const char *text)
{
    (void)env;
    (void)text;
    odds_guard_escape(); /* LMDB aborts the process otherwise */
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

enum status lmdb_status(const struct lmdb_env *env, int result)
{
    struct statvfs disk;
    switch (result) {
    case MDB_SUCCESS:
        return STATUS_OK;
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
    case MDB_MAP_RESIZED:
        return STATUS_UNAVAILABLE;
    default: /* MDB_CORRUPTED, MDB_PAGE_NOTFOUND, MDB_PANIC, MDB_BAD_RSLOT, … */
        return STATUS_INTERNAL;
    }
}

/* ---- the environments of this process -------------------------------------------------------- */

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, lmdb_env) open_here; /* guarded by open_lock */

/* False: this process has the folder open already. */
static bool claim_folder(struct lmdb_env *env)
{
    const struct lmdb_env *each;
    env->listed = fstat(env->folder, &env->place) == 0;
    CHECK(pthread_mutex_lock(&open_lock) == 0);
    LIST_FOREACH (each, &open_here, link)
        env->listed = env->listed && !is_same(&each->place, &env->place);
    if (env->listed)
        LIST_INSERT_HEAD(&open_here, env, link);
    CHECK(pthread_mutex_unlock(&open_lock) == 0);
    return env->listed;
}

static void release_folder(struct lmdb_env *env)
{
    if (!env->listed)
        return;
    CHECK(pthread_mutex_lock(&open_lock) == 0);
    LIST_REMOVE(env, link);
    CHECK(pthread_mutex_unlock(&open_lock) == 0);
    env->listed = false;
}

/* ---- before LMDB opens it -------------------------------------------------------------------- */

/* Makes DIR and what is missing above it. The opening that follows reports a failure. */
static void make_root(const char *root)
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
    return error_unavailable(error, "there is no odds store at %s%s", location->root, yet);
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

/* ---- closing --------------------------------------------------------------------------------- */

static void close_body(void *context)
{
    mdb_env_close(context);
}

static void close_files(struct lmdb_env *env)
{
    /* Closing touches the map of the lock file. When that is gone too, the environment's memory is
     * deliberately lost: it can neither be used nor given back. */
    if (env->env != NULL && !odds_guard_run(close_body, env->env))
        (void)0;
    env->env = NULL;
    env->identity = 0;
    release_folder(env);
    file_close(&env->folder);
}

void lmdb_env_close(struct lmdb_env *env)
{
    close_files(env);
    memory_free(env->data_path);
    memory_free(env->lock_path);
    env->data_path = NULL;
    env->lock_path = NULL;
}

/* ---- snapshots and writing ------------------------------------------------------------------- */

/*
 * A reader of LMDB's takes the number of the last transaction first and then the meta page of that
 * number: a reader that is held up in between, while commits go on, finds the page of a later
 * commit there. The root tells; another snapshot is then taken. Damage is found again in it.
 */
int lmdb_view_begin(struct lmdb_view *view, const struct lmdb_env *env)
{
    int result = MDB_CORRUPTED;
    view->dbi = env->dbi;
    for (int attempt = 0; attempt < SNAPSHOT_ATTEMPTS && result == MDB_CORRUPTED; attempt++) {
        if (attempt > 0)
            mdb_txn_reset(view->txn);
        result = view->txn != NULL ? mdb_txn_renew(view->txn)
                                   : mdb_txn_begin(env->env, NULL, MDB_RDONLY, &view->txn);
        if (result != 0)
            return result;
        view->transaction = mdb_txn_id(view->txn);
        result = lmdb_root_read(view);
        if (result == 0 && env->identity != 0 && view->root.identity != env->identity)
            result = MDB_CORRUPTED;
    }
    return result;
}

static void reset_body(void *context)
{
    mdb_txn_reset(context);
}

static void abort_body(void *context)
{
    mdb_txn_abort(context);
}

void lmdb_view_end(struct lmdb_view *view, bool keep)
{
    if (view->cursor != NULL)
        mdb_cursor_close(view->cursor);
    view->cursor = NULL;
    /* Where even the lock file's map is gone, the transaction's memory is lost. */
    if (view->txn != NULL && (!odds_guard_run(keep ? reset_body : abort_body, view->txn) || !keep))
        view->txn = NULL;
}

struct writing {
    const struct lmdb_env *env;
    struct lmdb_edit edit;
    const struct odds_change *changes;
    size_t count;
    int result;
};

static void write_body(void *context)
{
    struct writing *writing = context;
    struct lmdb_edit *edit = &writing->edit;
    int dead = 0;
    /* The snapshots of dead processes would keep old pages from being used again. */
    (void)mdb_reader_check(writing->env->env, &dead);
    edit->view.dbi = writing->env->dbi;
    writing->result = mdb_txn_begin(writing->env->env, NULL, 0, &edit->view.txn);
    if (writing->result != 0)
        return;
    writing->result = lmdb_edit_begin(edit, writing->env->identity);
    for (size_t i = 0; i < writing->count && writing->result == 0; i++)
        writing->result = lmdb_edit_change(edit, &writing->changes[i]);
    if (writing->result == 0)
        writing->result = lmdb_edit_finish(edit);
    if (writing->result != 0)
        return;                                       /* aborted afterwards */
    writing->result = mdb_txn_commit(edit->view.txn); /* ends it, whatever it says, */
    edit->view.txn = NULL;                            /* unless it faults */
}

enum status lmdb_env_write(const struct lmdb_env *env, struct lmdb_index *index,
                           const struct odds_change *changes, size_t count, int *result)
{
    struct writing writing = {.env = env, .changes = changes, .count = count};
    writing.edit.index = index;
    writing.edit.now_ms = clock_wall_ms();
    for (size_t i = 0; i < count && writing.edit.boot == 0; i++)
        if (changes[i].expires_s > 0)
            writing.edit.boot = clock_boot_id();
    /* This comes before LMDB's own lock, for which no wait can have a limit. The kernel gives this
     * one back when a process dies. */
    if (file_lock(env->folder, WRITER_WAIT_MS) != 0)
        return STATUS_TIMEOUT;
    bool fault = !odds_guard_run(write_body, &writing);
    lmdb_view_end(&writing.edit.view, false);
    (void)flock(env->folder, LOCK_UN);
    lmdb_index_free(&writing.edit.changed);
    *result = writing.result;
    return fault ? STATUS_MALFORMED : lmdb_status(env, writing.result);
}

/* ---- opening --------------------------------------------------------------------------------- */

struct opening {
    struct lmdb_env *env;
    const char *folder;
    struct lmdb_index *index;
    struct lmdb_view view;
    enum lmdb_format format;
    int result;
};

/* Up to the format, which the file has to have before it is read. */
static void open_body(void *context)
{
    struct opening *opening = context;
    struct lmdb_view *view = &opening->view;
    MDB_env *env = opening->env->env;
    int dead = 0;
    (void)mdb_env_set_assert(env, on_assertion);
    opening->result = mdb_env_set_mapsize(env, MAP_SIZE);
    if (opening->result == 0)
        opening->result = mdb_env_set_maxreaders(env, READERS_MAX);
    if (opening->result == 0)
        opening->result = mdb_env_open(env, opening->folder, MDB_NOTLS, FILE_MODE);
    if (opening->result == 0)
        opening->result = mdb_reader_check(env, &dead);
    if (opening->result == 0)
        opening->result = mdb_txn_begin(env, NULL, MDB_RDONLY, &view->txn);
    if (opening->result == 0)
        opening->result = mdb_dbi_open(view->txn, NULL, 0, &opening->env->dbi);
    if (opening->result == 0)
        opening->result = lmdb_format_read(view->txn, opening->env->dbi, &opening->format);
}

static void read_all_body(void *context)
{
    struct opening *opening = context;
    opening->result = lmdb_view_begin(&opening->view, opening->env);
    if (opening->result == 0)
        opening->result = lmdb_index_build(opening->index, &opening->view, true);
}

/* A fault, or a result of LMDB's own that means "broken", is a damaged file. Another version is
 * not: as a rule another build of LMDB has the lock file in use. */
static enum status opening_status(const struct opening *opening, bool fault, struct error *error)
{
    enum status status = lmdb_status(opening->env, opening->result);
    if (fault || (status == STATUS_INTERNAL && opening->result < 0 &&
                  opening->result != MDB_VERSION_MISMATCH))
        return damaged(error, opening->env, "is damaged");
    if (status == STATUS_OK)
        return STATUS_OK;
    if (opening->result == EAGAIN) /* LMDB locks the byte of this process's id */
        return error_set(
            error, STATUS_UNAVAILABLE,
            "the odds store at %s is open in a process that has the same id (%d) in "
            "another container; let the containers share a pid namespace, or use Redis",
            opening->env->data_path, (int)getpid());
    return error_set(error, status == STATUS_FULL ? status : STATUS_UNAVAILABLE,
                     "the odds store at %s cannot be opened: %s", opening->env->data_path,
                     mdb_strerror(opening->result));
}

static enum status run_guarded(struct opening *opening, void (*body)(void *), struct error *error)
{
    bool fault = !odds_guard_run(body, opening);
    lmdb_view_end(&opening->view, true);
    return opening_status(opening, fault, error);
}

static enum status check_format(struct opening *opening, const struct lmdb_location *location,
                                struct error *error)
{
    enum status status;
    switch (opening->format) {
    case LMDB_THIS_FORMAT:
        return STATUS_OK;
    case LMDB_OLDER_FORMAT:
        return damaged(error, opening->env, "is damaged or of an older format");
    case LMDB_NO_FORMAT:
        if (!location->create && !location->renew)
            return no_store(location, " yet", error);
        status = lmdb_env_write(opening->env, NULL, NULL, 0, &opening->result);
        return opening_status(opening, status == STATUS_MALFORMED, error);
    case LMDB_NEWER_FORMAT:
        break;
    }
    return error_unavailable(error,
                             "the odds store at %s is of a newer format than this program knows",
                             opening->env->data_path);
}

static enum status open_files(struct opening *opening, const struct lmdb_location *location,
                              struct error *error)
{
    struct lmdb_env *env = opening->env;
    CHECK(mdb_env_create(&env->env) == 0);
    enum status status = run_guarded(opening, open_body, error);
    if (status == STATUS_OK)
        status = check_format(opening, location, error);
    if (status == STATUS_OK)
        status = run_guarded(opening, read_all_body, error);
    lmdb_view_end(&opening->view, false);
    if (status != STATUS_OK)
        return status;
    env->identity = opening->view.root.identity;
    if (env->identity == location->identity && opening->view.transaction < location->transaction)
        return damaged(error, env, "is an older state of itself");
    if (stat(env->data_path, &env->data) != 0 || stat(env->lock_path, &env->lock) != 0)
        return path_error(error, env->data_path, "used", errno);
    return STATUS_OK;
}

/* The caller holds the lock on DIR. */
static enum status open_folder(struct lmdb_env *env, const struct lmdb_location *location,
                               struct lmdb_index *index, const char *folder, struct error *error)
{
    struct opening opening = {.env = env, .folder = folder, .index = index};
    if (location->create && mkdir(folder, FOLDER_MODE) != 0 && errno != EEXIST)
        return path_error(error, folder, "made", errno);
    env->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (env->folder < 0 && errno != ENOENT)
        return path_error(error, folder, "opened", errno);
    if (env->folder < 0 || (!location->create && access(env->data_path, F_OK) != 0))
        return no_store(location, "", error);
    if (!claim_folder(env))
        return error_unavailable(error, "this process has the odds store at %s open already",
                                 location->root);
    enum status status = reserve_lock_file(env, error);
    return status == STATUS_OK ? open_files(&opening, location, error) : status;
}

/* Moves a damaged store to DIR/values.damaged, in the place of one that is there already. Emptying
 * its lock file ends the use of every process that has it open, at once: a process that went on
 * reading would answer with what the new store does not hold. */
static enum status set_aside(const char *folder, struct error *error)
{
    char *aside = file_beside(folder, ".damaged");
    char *data = file_beside(aside, "/data.mdb");
    char *lock = file_beside(aside, "/lock.mdb");
    (void)unlink(data);
    (void)unlink(lock);
    (void)rmdir(aside);
    enum status status = STATUS_OK;
    if (rename(folder, aside) == 0) {
        (void)truncate(lock, 0);
    } else {
        error_append(error, "; it cannot be set aside as %s: %s", aside, strerror(errno));
        status = STATUS_UNAVAILABLE;
    }
    memory_free(aside);
    memory_free(data);
    memory_free(lock);
    return status;
}

/* The caller holds the lock on DIR. */
static enum status open_or_renew(struct lmdb_env *env, const struct lmdb_location *location,
                                 struct lmdb_index *index, const char *folder, struct error *error)
{
    enum status status = location->damaged ? damaged(error, env, "is damaged")
                                           : open_folder(env, location, index, folder, error);
    if (status != STATUS_MALFORMED || !location->renew)
        return status;
    struct lmdb_location renewed = *location;
    renewed.create = true;
    env->damage = *error;
    close_files(env);
    status = set_aside(folder, error);
    return status == STATUS_OK ? open_folder(env, &renewed, index, folder, error) : status;
}

enum status lmdb_env_open(struct lmdb_env *env, const struct lmdb_location *location,
                          struct lmdb_index *index, struct error *error)
{
    char *folder = file_beside(location->root, "/values");
    *env = (struct lmdb_env){.folder = -1,
                             .data_path = file_beside(folder, "/data.mdb"),
                             .lock_path = file_beside(folder, "/lock.mdb")};
    if (location->create)
        make_root(location->root);
    int root = open(location->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum status status = root >= 0         ? STATUS_OK
                         : errno == ENOENT ? no_store(location, "", error)
                                           : path_error(error, location->root, "opened", errno);
    int reason = root >= 0 ? file_lock(root, location->wait_ms) : 0;
    if (reason != 0)
        status = error_set(error, reason == EWOULDBLOCK ? STATUS_TIMEOUT : STATUS_UNAVAILABLE,
                           "another process is opening the odds store at %s", location->root);
    if (status == STATUS_OK)
        status = open_or_renew(env, location, index, folder, error);
    file_close(&root); /* and its lock */
    memory_free(folder);
    return status;
}

bool lmdb_env_in_place(const struct lmdb_env *env)
{
    struct stat data;
    struct stat lock;
    return stat(env->data_path, &data) == 0 && is_same(&data, &env->data) &&
           stat(env->lock_path, &lock) == 0 && is_same(&lock, &env->lock);
}
