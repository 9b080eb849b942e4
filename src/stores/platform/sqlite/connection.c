/*
 * The platform store in one SQLite file: connection, failures and schema.
 *
 * WAL, so that the server's refresher reads while a command writes. synchronous=FULL, because an
 * acknowledged change (money above all) must survive a power cut. Every failure becomes a text that
 * names the file and its remedy; only this file makes such texts.
 *
 * The file's application_id shows that it is croupier's, before anything in it is touched. The
 * table schema_migration gives its schema, with a checksum of each step, so that croupier does not
 * take a store of a differing build for its own.
 */
#include "stores/platform/sqlite/sqlite.h"

#include <libgen.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "stores/platform/schema.h"
#include "stores/platform/sqlite/cache.h"
#include "stores/platform/sqlite/columns.h"
#include "stores/platform/sqlite/file_identity.h"
#include "stores/platform/sqlite/ids/id_index.h"
#include "stores/platform/sqlite/in_use.h"
#include "stores/platform/sqlite/index_guard.h"

/* ---- failures -------------------------------------------------------------------------------- */

#define WRITE_LOCK_BYTE 120 /* of the -shm file; https://sqlite.org/walformat.html */
#define WORD_SIZE 64

/* Has a process that byte of the file locked for itself? A line of the kernel's list is
 * "ID: POSIX ADVISORY WRITE PROCESS MAJOR:MINOR:INODE FIRST LAST" (proc(5)). */
static bool is_holder(const char *line, const char *file, char process[WORD_SIZE])
{
    char locked[WORD_SIZE], first[WORD_SIZE], last[WORD_SIZE];
    uint64_t from = 0, to = UINT64_MAX;
    return sscanf(line, "%*s POSIX %*s WRITE %63s %63s %63s %63s", process, locked, first, last) ==
               4 &&
           strcmp(locked, file) == 0 &&
           text_to_u64(text_of(first), WRITE_LOCK_BYTE, &from) == STATUS_OK &&
           (strcmp(last, "EOF") == 0 || text_to_u64(text_of(last), to, &to) == STATUS_OK) &&
           WRITE_LOCK_BYTE <= to;
}

/* Names the process that has the write lock where the kernel's list has it. The list misses others'
 * namespaces, so nothing but this text depends on it. */
static enum status locked(const struct sqlite_store *store, struct error *error)
{
    char holder[80] = "another process", line[256], file[WORD_SIZE] = "", process[WORD_SIZE];
    struct stat facts;
    FILE *locks = fopen("/proc/locks", "re");
    if (sqlite_is_beside(store, "-shm", &facts))
        (void)snprintf(file, sizeof file, "%02x:%02x:%ju", major(facts.st_dev), minor(facts.st_dev),
                       (uintmax_t)facts.st_ino);
    while (locks != NULL && fgets(line, sizeof line, locks) != NULL)
        if (is_holder(line, file, process))
            (void)snprintf(holder, sizeof holder, "process %s", process);
    if (locks != NULL)
        (void)fclose(locks);
    return error_set(error, STATUS_TIMEOUT, "%s: %s kept it locked for more than %u ms; try again",
                     store->path, holder, store->timeout_ms);
}

#define CANNOT_OPEN \
    "; its user must be able to write to the file, to its -wal and -shm, and to their directory"

/* The meaning of SQLite's codes: an extended code's row comes before that of its kind. */
static const struct failure_rule {
    int code;
    enum status status;
    const char *meaning; /* SQLite's or the system's own words follow it */
    const char *remedy;
} failure_rules[] = {
    {SQLITE_CONSTRAINT_UNIQUE, STATUS_EXISTS, "it is there already", ""},
    {SQLITE_CONSTRAINT_PRIMARYKEY, STATUS_EXISTS, "it is there already", ""},
    {SQLITE_CONSTRAINT_FOREIGNKEY, STATUS_NOT_FOUND, "what it refers to is not there", ""},
    {SQLITE_CONSTRAINT, STATUS_INVALID, "not acceptable", ""},
    {SQLITE_FULL, STATUS_FULL, "the disk is full", "; free some space and try again"},
    {SQLITE_INTERRUPT, STATUS_UNAVAILABLE, "it is not waited for any more", ""},
    {SQLITE_IOERR, STATUS_UNAVAILABLE, "input/output error",
     "; check the disk, and whether the change was kept before you repeat it"},
    {SQLITE_READONLY, STATUS_READ_ONLY, "cannot be written", ""},
    {SQLITE_CANTOPEN, STATUS_UNAVAILABLE, "cannot be opened", CANNOT_OPEN},
    {SQLITE_PERM, STATUS_UNAVAILABLE, "cannot be opened", CANNOT_OPEN},
    {SQLITE_AUTH, STATUS_UNAVAILABLE, "cannot be opened", CANNOT_OPEN},
    {SQLITE_NOTADB, STATUS_MALFORMED, "is not a database",
     "; move it away, or name another file in [platform] store"},
    {SQLITE_CORRUPT, STATUS_MALFORMED, "is damaged",
     "; stop croupier and restore a backup, or try sqlite3's command .recover"},
};

static const struct failure_rule *rule_of(int extended, int kind)
{
    static const struct failure_rule unknown = {0, STATUS_INTERNAL, "unexpected SQLite error", ""};
    for (size_t i = 0; i < sizeof failure_rules / sizeof failure_rules[0]; i++)
        if (failure_rules[i].code == extended || failure_rules[i].code == kind)
            return &failure_rules[i];
    return &unknown;
}

bool sqlite_is_full(int reason)
{
    return reason == ENOSPC || reason == EDQUOT;
}

enum status sqlite_failure(struct sqlite_store *store, struct error *error)
{
    int code = sqlite3_extended_errcode(store->database);
    int reason = sqlite3_system_errno(store->database);
    const char *detail = sqlite3_errmsg(store->database);
    int kind = code == SQLITE_IOERR_SHORT_READ ? SQLITE_CORRUPT : code & 0xFF;
    store->failed = kind == SQLITE_IOERR || kind == SQLITE_READONLY || kind == SQLITE_CORRUPT ||
                    kind == SQLITE_NOTADB || kind == SQLITE_CANTOPEN;
    if (kind == SQLITE_IOERR && sqlite_is_full(reason))
        kind = SQLITE_FULL;
    if (kind == SQLITE_BUSY || kind == SQLITE_LOCKED)
        return locked(store, error);
    if (kind == SQLITE_ABORT) /* a function of ours failed, and says all of it (ids.c) */
        return error_unavailable(error, "%s", detail);
    if ((kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN) && reason != 0)
        detail = strerror(reason);
    const struct failure_rule *rule = rule_of(code, kind);
    return error_set(error, rule->status, "%s: %s (%s)%s", store->path, rule->meaning, detail,
                     rule->remedy);
}

/* ---- statements and transactions ------------------------------------------------------------- */

enum status sqlite_execute(struct sqlite_store *store, const char *sql, struct error *error)
{
    if (sqlite3_exec(store->database, sql, NULL, NULL, NULL) != SQLITE_OK)
        return sqlite_failure(store, error);
    return STATUS_OK;
}

/* Pages that SQLite read while the log's index was cut short may be wrong. */
static int before_commit(void *context)
{
    (void)context;
    return index_guard_was_needed();
}

enum status sqlite_statement(struct sqlite_store *store, const char *sql, sqlite3_stmt **statement,
                             struct error *error)
{
    for (size_t i = 0; i < store->statement_count; i++) {
        if (store->statements[i].sql == sql) {
            *statement = store->statements[i].statement;
            CHECK(!sqlite3_stmt_busy(*statement)); /* a visitor called the store */
            (void)sqlite3_clear_bindings(*statement);
            return STATUS_OK;
        }
    }
    CHECK(store->statement_count < SQLITE_STATEMENTS_MAX);
    sqlite3_stmt *prepared = NULL;
    if (sqlite3_prepare_v3(store->database, sql, -1, SQLITE_PREPARE_PERSISTENT, &prepared, NULL) !=
        SQLITE_OK)
        return sqlite_failure(store, error);
    store->statements[store->statement_count].sql = sql;
    store->statements[store->statement_count].statement = prepared;
    store->statement_count++;
    *statement = prepared;
    return STATUS_OK;
}

enum status sqlite_first(struct sqlite_store *store, sqlite3_stmt *statement, bool *found,
                         struct error *error)
{
    int code = sqlite3_step(statement);
    if (index_guard_was_needed()) {
        (void)sqlite3_reset(statement);
        return error_unavailable(
            error, "%s-shm: was cut short while it was open; start croupier again", store->path);
    }
    if (code == SQLITE_ROW || code == SQLITE_DONE) {
        *found = code == SQLITE_ROW;
        return STATUS_OK;
    }
    enum status status = sqlite_failure(store, error);
    (void)sqlite3_reset(statement);
    return status;
}

/* Asks for the type only if a value may represent NULL. */
static struct column_value row_value(const struct sql_row *row, int column, enum column_kind kind)
{
    sqlite3_stmt *statement = *(sqlite3_stmt *const *)row->result;
    struct column_value value = {.kind = kind};
    if (kind == COLUMN_TEXT) {
        value.bytes = read_text(statement, column);
        value.null = value.bytes.at == NULL;
    } else if (kind == COLUMN_BYTES) {
        value.bytes = (struct text){sqlite3_column_blob(statement, column),
                                    (size_t)sqlite3_column_bytes(statement, column)};
        value.null =
            value.bytes.at == NULL && sqlite3_column_type(statement, column) == SQLITE_NULL;
    } else {
        value.integer = sqlite3_column_int64(statement, column);
        value.null = value.integer == 0 && sqlite3_column_type(statement, column) == SQLITE_NULL;
    }
    return value;
}

struct sql_row sqlite_sql_row(sqlite3_stmt *const *statement)
{
    return (struct sql_row){row_value, statement, 0};
}

enum status sqlite_bind(struct sqlite_store *store, const char *sql,
                        const struct column_value *values, sqlite3_stmt **statement,
                        struct error *error)
{
    enum status status = sqlite_statement(store, sql, statement, error);
    if (status != STATUS_OK)
        return status;
    const int count = sqlite3_bind_parameter_count(*statement);
    CHECK(count == 0 || values != NULL);
    for (int i = 0; i < count; i++)
        bind_value(*statement, i + 1, &values[i]);
    return STATUS_OK;
}

enum status sqlite_find(struct sqlite_store *store, const char *sql,
                        const struct column_value *values, sqlite3_stmt **statement, bool *found,
                        struct error *error)
{
    enum status status = sqlite_bind(store, sql, values, statement, error);
    return status == STATUS_OK ? sqlite_first(store, *statement, found, error) : status;
}

enum status sqlite_run(struct sqlite_store *store, sqlite3_stmt *statement, struct error *error)
{
    bool found;
    enum status status = sqlite_first(store, statement, &found, error);
    (void)sqlite3_reset(statement);
    return status;
}

enum status sqlite_begin(struct sqlite_store *store, struct error *error)
{
    enum status status = sqlite_ready(store, error);
    return status == STATUS_OK ? sqlite_execute(store, "BEGIN IMMEDIATE", error) : status;
}

/* A mount may be read-only for this process alone, while another writes: a unit's ProtectSystem= or
 * a container's volume are. A store that is open has its shared memory beside it; a clean stop and
 * a backup leave none, nor a log. */
static enum status check_unshared(const struct sqlite_store *store, struct error *error)
{
    struct stat facts;
    const char *beside = "-wal";
    if (!store->immutable)
        return STATUS_OK;
    if (!sqlite_is_beside(store, beside, &facts) || facts.st_size == 0)
        beside = "-shm";
    if (!sqlite_is_beside(store, beside, &facts))
        return STATUS_OK;
    return error_unavailable(
        error,
        "%s%s is there: it is open elsewhere, or was not closed; read it where this "
        "process may write (which a unit's ProtectSystem= or a read-only volume keeps "
        "from it), or stop croupier first",
        store->path, beside);
}

enum status sqlite_end(struct sqlite_store *store, enum status status, struct error *error)
{
    if (check_unshared(store, error) != STATUS_OK)
        status = STATUS_UNAVAILABLE; /* the pages may be of two moments */
    if (status == STATUS_OK)
        status = sqlite_execute(store, "COMMIT", error);
    /* SQLite has rolled back by itself after some failures, and a failed COMMIT may leave it
     * open. */
    if (status != STATUS_OK && sqlite3_get_autocommit(store->database) == 0)
        (void)sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

enum status sqlite_look_up(struct sqlite_store *store, const char *sql,
                           const struct column_value *values, bool *found, int64_t *number,
                           struct error *error)
{
    sqlite3_stmt *statement = NULL;
    enum status status = sqlite_find(store, sql, values, &statement, found, error);
    if (status != STATUS_OK)
        return status;
    if (*found)
        *number = sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return STATUS_OK;
}

enum status sqlite_number(struct sqlite_store *store, const char *sql, int64_t *value,
                          struct error *error)
{
    bool found = false;
    enum status status = sqlite_look_up(store, sql, NULL, &found, value, error);
    return status != STATUS_OK || found
               ? status
               : error_set(error, STATUS_MALFORMED, "%s: is damaged (no answer to: %s)",
                           store->path, sql);
}

/* ---- the file -------------------------------------------------------------------------------- */

static enum status examine_directory(const char *path, struct error *error)
{
    struct stat facts;
    char *copy = memory_copy_string(path);
    const char *directory = dirname(copy);
    enum status status = STATUS_OK;
    if (stat(directory, &facts) != 0 && errno == ENOENT)
        status =
            error_unavailable(error, "%s: there is no directory %s; make it, writable for user %u",
                              path, directory, (unsigned)geteuid());
    /* WAL needs files beside the database, so the directory matters as much as the file. */
    else if (faccessat(AT_FDCWD, directory, R_OK | W_OK | X_OK, AT_EACCESS) != 0)
        status = error_unavailable(error, "%s: its directory %s cannot be written (%s, as user %u)",
                                   path, directory, strerror(errno), (unsigned)geteuid());
    memory_free(copy);
    return status;
}

static enum status create_file(const char *path, struct error *error)
{
    /* SQLite does not make it: the file gets 0640 less the umask, which -wal and -shm then
     * inherit. The file is new, so no handle in this process has it open, and closing it here
     * drops no lock. */
    int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (descriptor < 0 && errno != EEXIST)
        return error_unavailable(error, "%s: cannot be made (%s)", path, strerror(errno));
    file_close(&descriptor);
    return STATUS_OK;
}

/* Says what is wrong with the file in words that SQLite does not have; makes it when asked to. */
static enum status examine_file(struct sqlite_store *store, bool create, struct error *error)
{
    struct stat facts;
    struct stat mark;
    int missing = stat(store->path, &facts) != 0 ? errno : 0;
    enum status status = examine_directory(store->path, error);
    if (status != STATUS_OK)
        return status;
    if (missing != 0 && missing != ENOENT)
        return error_unavailable(error, "%s: cannot be reached (%s)", store->path,
                                 strerror(missing));
    /* SQLite would delete the log of an empty file. */
    if ((missing != 0 ? create : facts.st_size == 0) && sqlite_is_beside(store, "-last", &mark))
        return error_unavailable(
            error,
            "%s: there is no database, and %s-last says that there was one; put it"
            " back or restore a backup, or remove %s-last to begin an empty ledger",
            store->path, store->path, store->path);
    if (missing != 0 && create && sqlite_is_beside(store, ".restoring", &mark))
        return error_unavailable(
            error,
            "%s.restoring: a restore broke off, or runs; where none runs, remove "
            "this file and restore again",
            store->path);
    if (missing != 0 && create)
        return create_file(store->path, error);
    if (missing != 0)
        return error_unavailable(
            error,
            "%s: there is no such file; is its disk mounted? Where there never was"
            " one, run: croupier migrate",
            store->path);
    if (!S_ISREG(facts.st_mode))
        return error_unavailable(error, "%s: is not a regular file", store->path);
    if (faccessat(AT_FDCWD, store->path, R_OK | W_OK, AT_EACCESS) != 0)
        return error_unavailable(error, "%s: cannot be read and written by user %u (%s)",
                                 store->path, (unsigned)geteuid(), strerror(errno));
    return STATUS_OK;
}

/* Nothing changes on a read-only file system, so SQLite needs neither locks nor shared memory
 * there, which it could not make. But it would pass over the log. */
static enum status examine_read_only(struct sqlite_store *store, struct error *error)
{
    struct statvfs disk;
    store->immutable =
        store->reads && statvfs(store->path, &disk) == 0 && (disk.f_flag & ST_RDONLY) != 0;
    return check_unshared(store, error);
}

static int open_database(struct sqlite_store *store)
{
    struct buffer uri = {0};
    if (!store->immutable)
        return sqlite3_open_v2(store->path, &store->database,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    buffer_append_string(&uri, "file:");
    for (const char *at = store->path; *at != '\0'; at++)
        if (strchr("?#%", *at) != NULL)
            buffer_append_format(&uri, "%%%02X", (unsigned)(unsigned char)*at);
        else
            buffer_append_char(&uri, *at);
    buffer_append_string(&uri, "?immutable=1");
    int code = sqlite3_open_v2(buffer_string(&uri), &store->database,
                               SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    buffer_free(&uri);
    return code;
}

/* In WAL mode SQLite looks at its own cache and at the WAL, and so goes on answering out of a file
 * that was emptied, cut short or overwritten in place. When the file has been written since the
 * last look, which a checkpoint does too, this looks at its head, and makes SQLite read the rest
 * again; but for the ledger's writer while its log is being brought into the file, which would have
 * it do so at every batch. Through SQLite's own descriptor: closing another one would drop the
 * locks that it holds on the file. */
static enum status look_at_head(struct sqlite_store *store, const struct stat *facts,
                                struct error *error)
{
    if (facts->st_size == store->size && facts->st_mtim.tv_sec == store->written.tv_sec &&
        facts->st_mtim.tv_nsec == store->written.tv_nsec)
        return STATUS_OK;
    unsigned char head[100]; /* https://sqlite.org/fileformat.html#the_database_header */
    sqlite3_file *file = NULL;
    CHECK(sqlite3_file_control(store->database, "main", SQLITE_FCNTL_FILE_POINTER, &file) ==
          SQLITE_OK);
    bool sound = facts->st_size == 0 && store->size == 0;
    if (!sound && file->pMethods->xRead(file, head, sizeof head, 0) == SQLITE_OK) {
        uint32_t page = (uint32_t)head[16] << 8 | head[17];
        int64_t least = (int64_t)sqlite_big_endian(head + 28) * (page == 1 ? 65536 : page);
        /* A checkpoint that makes the file longer writes its head first; one that makes it shorter
         * cuts it last. */
        bool cut = facts->st_size < store->size && facts->st_size < least;
        /* Each checkpoint that writes the head leaves a higher number in it. */
        uint32_t change = sqlite_big_endian(head + 24);
        sound = memcmp(head, "SQLite format 3", 16) == 0 && !cut && change >= store->change;
        store->change = change;
    }
    store->failed = !sound;
    if (!sound)
        return error_set(error, STATUS_MALFORMED,
                         "%s: was cut short or overwritten; stop croupier and run croupier "
                         "wallet verify, and restore a backup if it finds a fault",
                         store->path);
    if (!sqlite_log_has_grown_by(store, SQLITE_LOG_IS_LONG))
        (void)sqlite3_db_release_memory(store->database);
    store->size = facts->st_size;
    store->written = facts->st_mtim;
    return STATUS_OK;
}

/* ---- the schema ------------------------------------------------------------------------------ */

/* A file with nothing in it may become ours; one with another application's mark, or with tables
 * and no mark, is left alone. Both questions are asked of one snapshot: another process may be
 * migrating. */
static enum status recognise(struct sqlite_store *store, bool *empty, struct error *error)
{
    int64_t application = 0;
    int64_t objects = 0;
    enum status status = sqlite_execute(store, "BEGIN", error);
    if (status != STATUS_OK)
        return status;
    status = sqlite_number(store, "SELECT count(*) FROM sqlite_schema", &objects, error);
    if (status == STATUS_OK)
        status = sqlite_number(store, "PRAGMA application_id", &application, error);
    status = sqlite_end(store, status, error);
    if (status != STATUS_OK)
        return status;
    *empty = application == 0 && objects == 0;
    if (application == SQLITE_APPLICATION_ID || *empty)
        return STATUS_OK;
    return error_invalid(
        error,
        "%s: is another program's database and was left alone; name another file in "
        "[platform] store",
        store->path);
}

enum status sqlite_check_schema(struct sqlite_store *store, bool current, uint32_t *version,
                                struct error *error)
{
    struct schema schema = {sqlite_migrations, sqlite_migration_count, 0, false};
    sqlite3_stmt *statement = NULL;
    bool found = false;
    enum status status = sqlite_statement(store, schema_read, &statement, error);
    if (status != STATUS_OK)
        return status;
    const struct sql_row row = sqlite_sql_row(&statement);
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found)
        (void)schema_on_row(&schema, &row);
    (void)sqlite3_reset(statement);
    return status == STATUS_OK ? schema_check(&store->base, &schema, current, version, error)
                               : status;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Changing to WAL takes the whole file for a moment, and SQLite does not wait for that by
 * itself. */
static enum status ensure_wal(struct sqlite_store *store, struct error *error)
{
    uint64_t deadline = clock_monotonic_ms() + store->timeout_ms;
    for (;;) {
        sqlite3_stmt *statement;
        bool found = false;
        enum status status =
            sqlite_find(store, "PRAGMA journal_mode=WAL", NULL, &statement, &found, error);
        if (status == STATUS_OK) {
            const char *mode = found ? (const char *)sqlite3_column_text(statement, 0) : NULL;
            bool wal = mode != NULL && strcmp(mode, "wal") == 0;
            (void)sqlite3_reset(statement);
            if (wal)
                return STATUS_OK;
            return error_unavailable(
                error,
                "%s: its file system cannot share memory between processes, which WAL "
                "needs (a network file system?); keep it on a local disk",
                store->path);
        }
        if (status != STATUS_TIMEOUT || clock_monotonic_ms() >= deadline)
            return status;
        clock_pause_ns(5 * 1000 * 1000);
    }
}

#define BUSY_PAUSE_NS ((uint64_t)250 * 1000)

/* SQLite calls this while another handle has the lock; it gives up by 0. The pauses of
 * sqlite3_busy_timeout grow to 100 ms, and the ledger would wait as much longer than the lock is
 * held. */
static int on_busy(void *context, int before)
{
    struct sqlite_store *store = context;
    uint64_t now_ms = clock_monotonic_ms();
    if (before == 0)
        store->busy_since_ms = now_ms;
    if (now_ms >= store->busy_since_ms + store->timeout_ms)
        return 0;
    clock_pause_ns(BUSY_PAUSE_NS);
    return 1;
}

/* Steps of SQLite's machine: some milliseconds; where it gives way, some tens of microseconds. */
#define STEPS_BETWEEN_LOOKS 100000
#define STEPS_BETWEEN_YIELDS 500

/* The scheduler may let a thread go on for milliseconds, one of low priority too, while another
 * that has had more than its share wants the processor. A thread that yields waits as long as the
 * others like. It then goes on for 1/32 of that time at least, so that it has 3 % of a processor
 * that another keeps busy. If it holds the lock of those who write, it does not yield, for they
 * would wait longer. */
static void give_way(struct sqlite_store *store)
{
    const uint64_t now_ns = clock_monotonic_ns();
    if (now_ns < store->yields_from_ns ||
        sqlite3_txn_state(store->database, NULL) == SQLITE_TXN_WRITE)
        return;
    (void)sched_yield();
    const uint64_t then_ns = clock_monotonic_ns();
    store->yields_from_ns = then_ns + (then_ns - now_ns) / 32;
}

/* SQLite calls this during statements that take long. It ends the statement by another result than
 * 0. */
static int on_progress(void *context)
{
    struct sqlite_store *store = context;
    if (store->gives_way)
        give_way(store);
    if (store->work != NULL) {
        sqlite3_stmt *statement = sqlite3_next_stmt(store->database, NULL);
        while (statement != NULL && sqlite3_stmt_busy(statement) == 0)
            statement = sqlite3_next_stmt(store->database, statement);
        int rows = statement == NULL
                       ? 0
                       : sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_FULLSCAN_STEP, false);
        progress_tell(store->base.watch, store->work, (uint64_t)(uint32_t)rows, 0);
    }
    return platform_store_is_stopped(&store->base) ? 1 : 0;
}

static void configure(struct sqlite_store *store)
{
    CHECK(sqlite3_extended_result_codes(store->database, 1) == SQLITE_OK);
    CHECK(sqlite3_busy_handler(store->database, on_busy, store) == SQLITE_OK);
    /* None of these reads the file, so none can fail on account of it. DEFENSIVE and
     * trusted_schema: a schema that was tampered with gets no functions to call. */
    CHECK(sqlite3_db_config(store->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL) == SQLITE_OK);
    CHECK(sqlite3_db_config(store->database, SQLITE_DBCONFIG_DQS_DML, 0, NULL) == SQLITE_OK);
    CHECK(sqlite3_db_config(store->database, SQLITE_DBCONFIG_DQS_DDL, 0, NULL) == SQLITE_OK);
    CHECK(sqlite3_db_config(store->database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL) == SQLITE_OK);
    CHECK(sqlite3_db_config(store->database, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL) == SQLITE_OK);
    (void)sqlite3_commit_hook(store->database, before_commit, NULL);
    sqlite3_progress_handler(store->database,
                             store->gives_way ? STEPS_BETWEEN_YIELDS : STEPS_BETWEEN_LOOKS,
                             on_progress, store);
    store->add_functions(store);
}

void sqlite_disconnect(struct sqlite_store *store)
{
    for (size_t i = 0; i < store->statement_count; i++)
        (void)sqlite3_finalize(store->statements[i].statement);
    store->statement_count = 0;
    sqlite_files_detach(store);
    if (store->database != NULL)
        CHECK(sqlite3_close(store->database) == SQLITE_OK);
    store->database = NULL;
    sqlite_use_end(store);
    store->failed = false;
    store->log_pages = store->log_attempted = 0;
    id_index_close(&store->index);
    ledger_cache_destroy(&store->cache);
    store->last_number = -1;
    file_close(&store->mark);
}

enum status sqlite_connect(struct sqlite_store *store, bool create, struct error *error)
{
    enum status status = examine_read_only(store, error);
    if (status == STATUS_OK && !store->immutable)
        status = examine_file(store, create, error);
    if (status == STATUS_OK && !store->immutable)
        status = sqlite_files_expect(store, error);
    if (status == STATUS_OK)
        status = sqlite_use_begin(store, error);
    if (status != STATUS_OK)
        return status;
    index_guard_install();
    int code = open_database(store);
    if (store->database == NULL) {
        status = error_set(error, STATUS_INTERNAL, "%s: no memory to open it", store->path);
        goto failed;
    }
    if (code != SQLITE_OK) {
        status = sqlite_failure(store, error);
        goto failed;
    }
    store->size = 0; /* to be looked at by the first call */
    store->change = 0;
    store->written = (struct timespec){0};
    configure(store);
    bool empty = false;
    uint32_t version;
    int64_t read = 0;
    status = recognise(store, &empty, error);
    if (status == STATUS_OK && !create && empty)
        status = error_invalid(error, "%s: is empty; run: croupier migrate", store->path);
    else if (status == STATUS_OK && !create)
        status = sqlite_check_schema(store, true, &version, error);
    if (status == STATUS_OK && !store->immutable)
        status = ensure_wal(store, error);
    if (status == STATUS_OK)
        status = sqlite_execute(store,
                                "PRAGMA synchronous=FULL; PRAGMA cell_size_check=ON;"
                                "PRAGMA temp_store=MEMORY;"
                                /* A longer log is cut, and that takes tens of milliseconds. */
                                "PRAGMA journal_size_limit=134217728",
                                error);
    if (status == STATUS_OK) /* which opens the log */
        status = sqlite_number(store, "PRAGMA schema_version", &read, error);
    if (status == STATUS_OK && !store->immutable)
        status = sqlite_files_attach(store, error);
    if (status == STATUS_OK) {
        sqlite_use_share(store);
        return STATUS_OK;
    }
failed:
    sqlite_disconnect(store);
    return status;
}

/* A handle whose files have lost their names stays open, because a person may put them back. */
enum status sqlite_check_names(struct sqlite_store *store, struct stat *facts, struct error *error)
{
    enum status status = sqlite_files_named(store, facts, error);
    struct error better = {0};
    if (status != STATUS_OK && examine_file(store, false, &better) != STATUS_OK)
        *error = better;
    return status;
}

static enum status ready(struct sqlite_store *store, struct error *error)
{
    struct stat facts;
    enum status status = STATUS_OK;
    if (store->database != NULL && !store->failed && store->immutable)
        return check_unshared(store, error);
    if (store->database != NULL && !store->failed) {
        status = sqlite_check_names(store, &facts, error);
        return status == STATUS_OK ? look_at_head(store, &facts, error) : status;
    }
    sqlite_disconnect(store);
    status = sqlite_connect(store, false, error);
    if (status == STATUS_OK)
        log_event(store->log, LOG_WARNING, "platform store opened again",
                  LOG_STRING("path", store->path));
    return status;
}

enum status sqlite_ready(struct sqlite_store *store, struct error *error)
{
    if (platform_store_is_stopped(&store->base))
        return error_unavailable(error, "%s: it is not waited for any more", store->path);
    return ready(store, error);
}
