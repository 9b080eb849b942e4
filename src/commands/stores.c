/* Opening stores for commands; see stores.h. */
#include "commands/stores.h"

#include <poll.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/threads.h"
#include "stores/configured.h"

/* ---- who it is ------------------------------------------------------------------------------- */

#define NO_LOGIN UINT32_MAX
#define PASSWD_ROOM 16384

/* The user who logged in. The kernel keeps it through sudo and su, and lets no process change it.
 * NO_LOGIN: there was no login (a timer, a container). */
static uint32_t login_user(void)
{
    struct buffer digits = {0};
    uint64_t user;
    bool known = file_read("/proc/self/loginuid", 16, &digits) == 0 &&
                 text_to_u64(buffer_text(&digits), NO_LOGIN, &user) == STATUS_OK;
    buffer_free(&digits);
    return known ? (uint32_t)user : NO_LOGIN;
}

/* The name of the user, or its number where it has none that can be shown. */
static void find_user(char out[TRAIL_WHO_SIZE])
{
    uint32_t user = login_user();
    struct passwd entry;
    struct passwd *found = NULL;
    char *room = memory_alloc(PASSWD_ROOM);
    if (user == NO_LOGIN)
        user = getuid();
    bool named = getpwuid_r(user, &entry, room, PASSWD_ROOM, &found) == 0 && found != NULL &&
                 record_text_is_sound(entry.pw_name, TRAIL_WHO_SIZE, 1);
    if (named)
        (void)snprintf(out, TRAIL_WHO_SIZE, "%s", entry.pw_name);
    else
        (void)snprintf(out, TRAIL_WHO_SIZE, "uid %" PRIu32, user);
    memory_free(room);
}

/* Signs changes with this user and this command. */
static void sign(const struct command_line *line, struct platform_store *store)
{
    char who[TRAIL_WHO_SIZE];
    char command[TRAIL_COMMAND_SIZE];
    find_user(who);
    command_name(line, command, sizeof command);
    platform_store_act_as(store, who, command);
}

/* ---- how long it may read -------------------------------------------------------------------- */

/* A verification of ten million entries takes 47 s on two processors; a server under full load
 * writes some 14 MiB of log a second. */
#define LOG_GROWTH_MAX ((off_t)1 << 30)
#define HUNG_TIMEOUTS 120U
#define WATCH_MS 500U

struct reading {
    char name[64];
    char *log;            /* of SQLite; NULL: PostgreSQL */
    off_t log_start;      /* its size when the command began */
    uint64_t hung_max_ms; /* of PostgreSQL */
};

static off_t file_size(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 ? facts.st_size : 0;
}

/* The thread that reads may be blocked in a write to a pipe, so another one ends the process. */
static void watch_reading(void *argument)
{
    const struct reading *reading = argument;
    const char *reason = NULL;
    uint64_t taken_ms = clock_monotonic_ms();
    while (reason == NULL) {
        struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
        clock_pause_ns((uint64_t)WATCH_MS * 1000000);
        if (poll(&output, 1, 0) != 0)
            taken_ms = clock_monotonic_ms();
        if (reading->log == NULL && clock_monotonic_ms() - taken_ms >= reading->hung_max_ms)
            reason = "its output was not taken, and the snapshot that it reads keeps VACUUM back";
        else if (reading->log != NULL &&
                 file_size(reading->log) - reading->log_start > LOG_GROWTH_MAX)
            reason = "the database's log has grown by 1 GiB meanwhile, and cannot be shortened "
                     "while this command reads";
    }
    (void)dprintf(STDERR_FILENO, "croupier %s: ended, its output is not whole: %s\n", reading->name,
                  reason);
    /* Not _exit, which ThreadSanitizer has wait for the thread that is blocked in stdout. */
    (void)syscall(SYS_exit_group, EXIT_REFUSED);
}

void command_bound_reading(const struct command_line *line, const char *file, uint32_t timeout_ms)
{
    uv_thread_t thread;
    struct reading *reading = memory_alloc_zeroed(1, sizeof *reading); /* for good */
    command_name(line, reading->name, sizeof reading->name);
    reading->hung_max_ms = (uint64_t)HUNG_TIMEOUTS * timeout_ms;
    if (file != NULL) {
        char *followed = file_follow_link(file);
        reading->log = file_beside(followed, "-wal");
        reading->log_start = file_size(reading->log);
        memory_free(followed);
    }
    thread_start(&thread, "reading", watch_reading, reading);
    CHECK(pthread_detach(thread) == 0);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void release_platform(void *resource)
{
    struct platform_store *store = resource;
    platform_store_close(&store);
}

void command_keep_platform(const struct command_line *line, struct platform_store *store)
{
    command_keep(line, release_platform, store);
}

static void release_odds(void *resource)
{
    struct odds_store *store = resource;
    odds_store_close(&store);
}

void command_keep_odds(const struct command_line *line, struct odds_store *store)
{
    command_keep(line, release_odds, store);
}

static struct platform_store *open_platform(const struct command_line *line, bool create)
{
    const struct config *config = command_config(line);
    struct platform_store *store = NULL;
    struct platform_store_options options = platform_store_configured(config);
    options.create = create;
    options.reads = !create;
    if (!create)
        command_bound_reading(line, config_platform_file(config), options.timeout_ms);
    command_require(line, platform_store_open(&store, &options, command_error(line)));
    command_keep_platform(line, store);
    sign(line, store);
    return store;
}

enum status command_open_platform(const struct command_line *line, struct platform_store **store,
                                  struct error *error)
{
    struct platform_store_options options = platform_store_configured(command_config(line));
    options.reads = true;
    options.any_file = true;
    enum status status = platform_store_open(store, &options, error);
    if (status == STATUS_OK)
        sign(line, *store);
    return status;
}

struct platform_store *command_platform(const struct command_line *line)
{
    return open_platform(line, false);
}

struct platform_store *command_make_platform(const struct command_line *line)
{
    return open_platform(line, true);
}

const char *command_program(const struct command_line *line)
{
    const char *path = command_config_path(line);
    struct buffer *program = command_buffer(line);
    buffer_append_format(program, "croupier%s%s", path == NULL ? "" : " -c ",
                         path == NULL ? "" : path);
    return buffer_string(program);
}
