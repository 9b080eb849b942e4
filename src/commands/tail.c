/*
 * croupier wallet tail | verify --file, and audit tail. Both tails read a page, close its query,
 * and then print it: a reader that does not read holds no snapshot of the store. A store that is
 * away is opened again, so that one that was restored in its place is found, and the place is
 * checked in it.
 */
#include <poll.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/stores.h"
#include "operator/tail.h"
#include "operator/tail_check.h"

#define PAUSE_LEAST_MS 20U
#define PAUSE_MOST_MS 1000U
#define PAUSE_MOST_FILE_MS 200U /* of a file, where a look costs next to nothing */
#define STUCK_MS 10000U         /* a batch takes milliseconds */

struct following {
    const struct command_line *line;
    struct platform_store *store; /* NULL: to be opened */
    struct tail tail;
    bool follows;
    bool away;         /* and said so */
    bool stuck;        /* likewise */
    uint32_t pause_ms; /* before the next look */
    uint32_t pause_most_ms;
    int64_t awaited; /* of the ledger's horizon, */
    uint64_t awaited_since_ms;
};

static void release(void *resource)
{
    struct following *following = resource;
    platform_store_close(&following->store);
    memory_free(following);
}

/* NUMBER, or NUMBER:HASH, which the row of that number must have. */
static void take_place(struct following *following)
{
    const struct command_line *line = following->line;
    struct tail *tail = &following->tail;
    struct text hash = text_of(command_option(line, "after"));
    struct text number = text_cut(&hash, ':');
    if (hash.at == NULL) {
        tail->place = command_number(line, "after", 0, INT64_MAX, 0);
        return;
    }
    if (text_to_u64(number, INT64_MAX, &tail->place) != STATUS_OK || tail->place == 0 ||
        !hex_read(hash, tail->ledger.hash, sizeof tail->ledger.hash))
        command_usage(line, "--after must be a number, or NUMBER:HASH as a row's line has them");
    tail->ledger.known = true;
}

/* The line owns it. */
static struct following *begin(const struct command_line *line, enum tail_of of)
{
    struct following *following = memory_alloc_zeroed(1, sizeof *following);
    command_keep(line, release, following);
    following->line = line;
    following->tail.of = of;
    following->tail.lines = command_buffer(line);
    take_place(following);
    following->follows = command_option(line, "follow") != NULL;
    following->pause_most_ms =
        config_platform_file(command_config(line)) != NULL ? PAUSE_MOST_FILE_MS : PAUSE_MOST_MS;
    following->pause_ms = PAUSE_LEAST_MS;
    return following;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* The reader has gone: there is nothing left to do. */
static bool reader_is_gone(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};
    return poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

static void print_page(const struct command_line *line, struct buffer *lines)
{
    bool whole = file_write(STDOUT_FILENO, lines->data, lines->size) == lines->size;
    if (!whole && errno == EPIPE)
        command_quit(line, EXIT_DONE);
    if (!whole)
        command_refuse(line, "cannot write the output: %s", strerror(errno));
    buffer_clear(lines);
}

/* ---- the walk -------------------------------------------------------------------------------- */

static bool is_away(enum status status)
{
    return status == STATUS_UNAVAILABLE || status == STATUS_TIMEOUT;
}

static enum status read_page(struct following *following, struct error *error)
{
    enum status status = STATUS_OK;
    if (following->store == NULL)
        status = command_open_platform(following->line, &following->store, error);
    return status == STATUS_OK ? tail_read(&following->tail, following->store, error) : status;
}

/* A store that is away is waited for, and opened again. All else is a refusal. */
static void judge(struct following *following, enum status status, const struct error *error)
{
    if (!following->follows || !is_away(status)) {
        if (following->away && status == STATUS_OK)
            command_complain(following->line, "the store is there again");
        following->away = false;
        command_require(following->line, status);
        return;
    }
    if (!following->away)
        command_complain(following->line, "waiting for the store: %s", error->text);
    following->away = true;
    platform_store_close(&following->store);
}

/* A batch of a server whose commit does not end keeps back all that was numbered after it. */
static void look_for_stuck(struct following *following)
{
    static const char text[] = "a transaction of the ledger has been open for more than 10 s, and "
                               "entries that were numbered after it are held back";
    const int64_t awaited = following->tail.ledger.horizon.awaited;
    const uint64_t now_ms = clock_monotonic_ms();
    if (awaited == 0 || awaited != following->awaited) {
        following->awaited = awaited;
        following->awaited_since_ms = now_ms;
        following->stuck = false;
    }
    if (following->stuck || now_ms - following->awaited_since_ms < STUCK_MS || awaited == 0)
        return;
    if (!following->follows)
        command_refuse(following->line, "%s", text);
    following->stuck = true;
    command_complain(following->line, "%s", text);
}

/* Soon after rows came, later and later while none do. */
static void pause_before_next(struct following *following, bool found)
{
    uint32_t most_ms = following->follows ? following->pause_most_ms : PAUSE_LEAST_MS;
    following->pause_ms = found ? PAUSE_LEAST_MS : following->pause_ms * 2;
    if (following->pause_ms > most_ms)
        following->pause_ms = most_ms;
    clock_pause_ns(following->pause_ms * UINT64_C(1000000));
}

static void run(struct following *following)
{
    const struct command_line *line = following->line;
    struct error *error = command_error(line);
    struct tail *tail = &following->tail;
    (void)signal(SIGPIPE, SIG_IGN);
    do {
        enum status status = read_page(following, error);
        bool found = tail->lines->size > 0;
        print_page(line, tail->lines);
        judge(following, status, error);
        look_for_stuck(following);
        if (!following->follows && tail->ledger.whole)
            return;
        if (!tail->ledger.more || following->away)
            pause_before_next(following, found);
    } while (!reader_is_gone());
}

/* ---- the commands ---------------------------------------------------------------------------- */

void run_wallet_tail(const struct command_line *line)
{
    struct following *following = begin(line, TAIL_LEDGER);
    following->tail.customer_id = command_option_or(line, "customer", "");
    run(following);
}

void run_audit_tail(const struct command_line *line)
{
    struct following *following = begin(line, TAIL_AUDIT);
    following->tail.trail = (struct trail_search){.object = command_option_or(line, "object", ""),
                                                  .who = command_option_or(line, "who", ""),
                                                  .operators = true};
    run(following);
}

/* ---- a file of lines ------------------------------------------------------------------------- */

struct checking {
    struct tail_check *check;
    FILE *file;
    char *text; /* of the line */
    size_t room;
};

static void release_checking(void *resource)
{
    struct checking *checking = resource;
    tail_check_destroy(&checking->check);
    if (checking->file != NULL && checking->file != stdin)
        (void)fclose(checking->file);
    free(checking->text);
    memory_free(checking);
}

/* True: the last line is whole. */
static bool check_lines(const struct command_line *line, struct checking *checking)
{
    struct error *error = command_error(line);
    uint64_t number = 0;
    ssize_t size;
    while ((size = getline(&checking->text, &checking->room, checking->file)) > 0) {
        struct text text = {checking->text, (size_t)size - 1};
        number++;
        if (checking->text[size - 1] != '\n')
            return false;
        if (tail_check_line(checking->check, text, error) != STATUS_OK)
            command_refuse(line, "line %" PRIu64 ": %s", number, error->text);
    }
    if (ferror(checking->file) != 0)
        command_refuse(line, "cannot be read: %s", strerror(errno));
    return true;
}

static void print_checked(const struct command_line *line, const struct tail_checked *checked,
                          bool whole)
{
    struct json_writer *json = command_object(line, JSON_COMPACT);
    char head[2 * LEDGER_HASH_SIZE + 1] = "";
    if (json != NULL) {
        json_bool(json, "sound", true);
        json_unsigned(json, "entries", checked->entries);
        json_unsigned(json, "players", checked->players);
        json_unsigned(json, "players_begun_before", checked->begun_before);
        json_integer(json, "first_number", checked->first);
        json_integer(json, "last_number", checked->last);
        json_bool(json, "cut_off", !whole);
        json_hex(json, "head", checked->head, sizeof checked->head);
        return;
    }
    hex_write(head, checked->head, sizeof checked->head);
    (void)printf("Sound: %" PRIu64 " entries of %" PRIu64 " players", checked->entries,
                 checked->players);
    if (!checked->ended)
        (void)printf(", numbers %" PRId64 " to %" PRId64, checked->first, checked->last);
    (void)puts(".");
    if (checked->begun_before > 0)
        (void)printf("The first entries of %" PRIu64 " of the players are not in the file.\n",
                     checked->begun_before);
    if (!whole)
        (void)puts("The last line is cut off, and was not checked.");
    (void)printf("head %s\n", head);
}

void run_verify_file(const struct command_line *line)
{
    const char *path = command_option(line, "file");
    const char *head = command_option(line, "head");
    uint8_t expected[LEDGER_HASH_SIZE];
    struct tail_checked checked;
    if (path == NULL)
        command_usage(line, "--head is of a file: name it with --file");
    if (command_option(line, "since") != NULL)
        command_usage(line, "--file checks all lines of a file: --since is of the ledger");
    if (head != NULL && !hex_read(text_of(head), expected, sizeof expected))
        command_usage(line, "--head is a SHA-256: 64 digits of hex");
    struct checking *checking = memory_alloc_zeroed(1, sizeof *checking);
    command_keep(line, release_checking, checking);
    checking->check = tail_check_create();
    checking->file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (checking->file == NULL)
        command_refuse(line, "%s: %s", path, strerror(errno));
    bool whole = check_lines(line, checking);
    tail_check_end(checking->check, &checked);
    if (checked.entries == 0 && !checked.ended)
        command_refuse(line,
                       "there are no entries in it: the command that wrote it may have failed");
    if (checked.first == 0 && !checked.ended)
        command_refuse(line, "the export broke off: its last line, with the totals, is missing");
    if (head != NULL && memcmp(expected, checked.head, sizeof expected) != 0)
        command_refuse(line, "the entries fit each other, and their head is not the one of --head: "
                             "some are missing, or more, or others");
    print_checked(line, &checked, whole);
}
