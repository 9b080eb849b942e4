/*
 * One line a record. Threads append whole lines to a bounded queue in memory; a thread of the log's
 * own writes them. Only that thread ever waits for the descriptor: a pipe that is not read, a
 * stopped terminal or a slow disk costs lines, which are counted, and never an answer. (O_NONBLOCK
 * would not do: it belongs to the open file, which other processes share.)
 *
 * The writer takes the whole queue and writes it in pieces of whole lines of at most PIPE_BUF
 * bytes, which a pipe takes whole or not at all. So lines stay whole when others write to the same
 * pipe, and when the process ends while the writer waits. A file takes larger ones: for those there
 * is no reader to wait for, and each call costs more than what it copies.
 *
 * Level and format are atomics: SIGHUP changes them.
 */
#include "base/log.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/relaxed.h"
#include "base/threads.h"

#define BATCH_SIZE ((size_t)32 * 1024)
#define FILE_PIECE_SIZE ((size_t)64 * 1024)
#define WRITEBACK_SIZE ((size_t)1024 * 1024)
#define QUEUE_SIZE ((size_t)4 * 1024 * 1024)
/* Room that batches leave to single lines: a warning is worth more than one more request. */
#define QUEUE_RESERVE ((size_t)256 * 1024)
#define FLUSH_NS UINT64_C(1000000000)
#define FIELD_ROOM 32U /* for a number, or quotes, and what stands around the name */

struct log {
    int descriptor;
    size_t piece_max; /* bytes to write at once */
    bool journal;     /* lines begin with their priority */
    atomic_int level;
    atomic_int format;
    atomic_uint_least64_t dropped; /* lines that were not written, in all */
    uint64_t reported;             /* the writer's: of these, how many a line has reported */
    bool torn;                     /* the writer's: a line was begun and could not be ended */
    size_t dirty; /* the writer's: bytes since the last order to write a file back */
    uv_thread_t writer;

    uv_mutex_t lock; /* guards everything below */
    uv_cond_t more;  /* the writer waits for lines, or for the end */
    uv_cond_t quiet; /* log_flush and log_destroy wait for the writer */
    struct buffer queue;
    bool writing; /* the writer has lines that it took from the queue */
    bool ending;
    bool ended;
    bool abandoned; /* the writer did not end in time, and frees the log itself if it ever does */
};

struct log_batch {
    struct log *log;
    struct buffer lines;
    bool json;           /* the format, as of the last flush */
    struct buffer start; /* of the last line, and what it was made of */
    int64_t start_ms;
    enum log_level start_level;
    const char *start_message; /* NULL: there is none */
};

static const char *const level_names[] = {"error", "warning", "info", "debug"};
static const char *const format_names[] = {[LOG_FORMAT_TEXT] = "text", [LOG_FORMAT_JSON] = "json"};
const struct enum_names log_levels = ENUM_NAMES(level_names);
const struct enum_names log_formats = ENUM_NAMES(format_names);

void log_configure(struct log *log, enum log_level level, enum log_format format)
{
    relaxed_store(&log->level, (int)level);
    relaxed_store(&log->format, (int)format);
}

bool log_enabled(const struct log *log, enum log_level level)
{
    return log != NULL && (int)level <= relaxed_load(&log->level);
}

uint64_t log_dropped(struct log *log)
{
    return log == NULL ? 0 : relaxed_load(&log->dropped);
}

/* ---- a line ---------------------------------------------------------------------------------- */

/* A word stands as it is in a line of text, and between quotes in JSON; anything that could be
 * misread is quoted. */
static bool is_word(struct text text)
{
    unsigned misread = 0;
    for (size_t i = 0; i < text.size;
         i++) { /* no way out in between: the compiler takes many at once */
        unsigned char byte = (unsigned char)text.at[i];
        misread |= (unsigned)(byte <= ' ') | (unsigned)(byte >= 0x7F) | (unsigned)(byte == '"') |
                   (unsigned)(byte == '\\') | (unsigned)(byte == '=');
    }
    return text.size > 0 && misread == 0;
}

/* Appends the field in one piece, because a line has a dozen of them. */
static void append_field(struct buffer *out, const struct log_field *field, bool json)
{
    bool kept = field->kind == LOG_FIELD_KEPT; /* name and all */
    bool quoted = json && !kept;
    buffer_reserve(out, field->name.size + field->text.size + FIELD_ROOM);
    char *at = out->data + out->size;
    if (!kept) {
        *at++ = json ? ',' : ' ';
        if (json)
            *at++ = '"';
        at = mempcpy(at, field->name.at, field->name.size);
        if (json)
            *at++ = '"';
        *at++ = json ? ':' : '=';
    }
    if (field->kind == LOG_FIELD_INTEGER) {
        if (field->integer < 0)
            *at++ = '-';
        at += decimal_write(at, field->integer < 0 ? 0 - (uint64_t)field->integer
                                                   : (uint64_t)field->integer);
    } else if (field->kind == LOG_FIELD_TEXT ? is_word(field->text) : field->text.size > 0) {
        if (quoted)
            *at++ = '"';
        at = mempcpy(at, field->text.at, field->text.size);
        if (quoted)
            *at++ = '"';
    } else {
        out->size = (size_t)(at - out->data);
        buffer_append_json_string(out, field->text);
        return;
    }
    out->size = (size_t)(at - out->data);
}

static void append_fields(struct buffer *out, const struct log_field *fields, bool json)
{
    for (const struct log_field *field = fields; field->kind != LOG_FIELD_END; field++)
        append_field(out, field, json);
}

/* At a journal the line begins with its priority: it takes "<3>" off a line, and keeps it as the
 * priority (sd-daemon(3)). */
static void append_start(struct buffer *out, const struct log *log, bool json, int64_t now_ms,
                         enum log_level level, const char *message)
{
    static const char *const priorities[] = {"<3>", "<4>", "<6>", "<7>"};
    char stamp[CLOCK_TEXT_SIZE];
    clock_format_rfc3339(now_ms, stamp);
    if (log != NULL && log->journal)
        buffer_append_string(out, priorities[level]);
    buffer_append_text(out, json ? TEXT("{\"time\":\"") : TEXT(""));
    buffer_append_string(out, stamp);
    buffer_append_text(out, json ? TEXT("\",\"level\":\"") : TEXT(" "));
    buffer_append_string(out, level_names[level]);
    buffer_append_text(out, json ? TEXT("\",\"message\":") : TEXT(" "));
    if (json)
        buffer_append_json_string(out, text_of(message));
    else
        buffer_append_string(out, message);
}

static void append_end(struct buffer *out, bool json)
{
    buffer_append_text(out, json ? TEXT("}\n") : TEXT("\n"));
}

static bool is_json(const struct log *log)
{
    return log != NULL && relaxed_load(&log->format) == LOG_FORMAT_JSON;
}

static void append_line_now(struct log *log, struct buffer *out, enum log_level level,
                            const char *message, const struct log_field *fields)
{
    bool json = is_json(log);
    append_start(out, log, json, clock_wall_ms(), level, message);
    append_fields(out, fields, json);
    append_end(out, json);
}

/* ---- the writer ------------------------------------------------------------------------------ */

static uint64_t count_lines(struct text lines)
{
    uint64_t count = 0;
    for (size_t i = 0; i < lines.size; i++)
        count += lines.at[i] == '\n';
    return count;
}

/* The whole lines at the start that so many bytes hold, or one line that is longer. */
static size_t piece_size(struct text lines, size_t most)
{
    if (lines.size <= most)
        return lines.size;
    CHECK(lines.at != NULL); /* gcc does not see it when it sanitizes */
    const char *end = memrchr(lines.at, '\n', most);
    if (end == NULL)
        end = memchr(lines.at, '\n', lines.size);
    return (size_t)(end - lines.at) + 1;
}

/* Left alone, the kernel writes back the lines of half a minute at once, and the syncs of a ledger
 * on the same disk wait for all of them. */
static void begin_writeback(struct log *log, size_t written)
{
    if (log->piece_max == PIPE_BUF || (log->dirty += written) < WRITEBACK_SIZE)
        return;
    (void)sync_file_range(log->descriptor, 0, 0, SYNC_FILE_RANGE_WRITE); /* 0, 0: the whole file */
    log->dirty = 0;
}

/* Returns how many lines could not be written. */
static uint64_t write_lines(struct log *log, struct text lines)
{
    if (log->torn && file_write(log->descriptor, "\n", 1) == 1)
        log->torn = false;
    while (lines.size > 0 && !log->torn) {
        size_t size = piece_size(lines, log->piece_max);
        size_t written = file_write(log->descriptor, lines.at, size);
        begin_writeback(log, written);
        log->torn = written > 0 && lines.at[written - 1] != '\n';
        if (written < size)
            return count_lines((struct text){lines.at + written, lines.size - written});
        lines = (struct text){lines.at + size, lines.size - size};
    }
    return count_lines(lines);
}

static void write_block(struct log *log, struct buffer *block, uint64_t unreported)
{
    /* Dropped lines belong after these: the queue was full of these. */
    if (unreported > 0)
        append_line_now(log, block, LOG_WARNING, "log lines were dropped",
                        (const struct log_field[]){LOG_INTEGER("lines", unreported), {0}});
    uint64_t lost = write_lines(log, buffer_text(block));
    if (lost == 0)
        log->reported += unreported;
    else /* the line that reports others, the last, is not one of them */
        relaxed_add(&log->dropped, lost - (unreported > 0 ? 1 : 0));
    buffer_clear(block);
}

static void log_free(struct log *log)
{
    uv_mutex_destroy(&log->lock);
    uv_cond_destroy(&log->more);
    uv_cond_destroy(&log->quiet);
    buffer_free(&log->queue);
    memory_free(log);
}

static void run_writer(void *argument)
{
    struct log *log = argument;
    struct buffer block = {0};
    uv_mutex_lock(&log->lock);
    for (;;) {
        while (log->queue.size == 0 && !log->ending)
            uv_cond_wait(&log->more, &log->lock);
        if (log->queue.size == 0)
            break;
        struct buffer taken = log->queue;
        log->queue = block;
        block = taken;
        log->writing = true;
        uint64_t unreported = log_dropped(log) - log->reported;
        uv_mutex_unlock(&log->lock);
        write_block(log, &block, unreported);
        uv_mutex_lock(&log->lock);
        log->writing = false;
        if (log->queue.size == 0)
            uv_cond_broadcast(&log->quiet);
    }
    log->ended = true;
    bool abandoned = log->abandoned;
    uv_cond_broadcast(&log->quiet);
    uv_mutex_unlock(&log->lock);
    buffer_free(&block);
    if (abandoned)
        log_free(log);
}

/* $JOURNAL_STREAM names the device and inode of what systemd gave as standard error; another
 * descriptor, or one that was redirected since, is not the journal. */
static bool is_journal(const struct stat *file)
{
    const char *stream = getenv("JOURNAL_STREAM");
    char own[64];
    (void)snprintf(own, sizeof own, "%ju:%ju", (uintmax_t)file->st_dev, (uintmax_t)file->st_ino);
    return stream != NULL && strcmp(stream, own) == 0;
}

struct log *log_create(int descriptor, enum log_level level, enum log_format format)
{
    struct log *log = memory_alloc_zeroed(1, sizeof *log);
    struct stat file;
    bool known = fstat(descriptor, &file) == 0;
    log->descriptor = descriptor;
    log->piece_max = known && S_ISREG(file.st_mode) ? FILE_PIECE_SIZE : PIPE_BUF;
    log->journal = known && is_journal(&file);
    atomic_init(&log->level, (int)level);
    atomic_init(&log->format, (int)format);
    CHECK(uv_mutex_init(&log->lock) == 0);
    CHECK(uv_cond_init(&log->more) == 0);
    CHECK(uv_cond_init(&log->quiet) == 0);
    /* No signal reaches it: SIGPIPE is no more than an error of write. */
    thread_start(&log->writer, "log", run_writer, log);
    return log;
}

/* Waits a second at most; with the lock held. */
static bool wait_until_written(struct log *log)
{
    uint64_t deadline = clock_monotonic_ns() + FLUSH_NS;
    do {
        if (log->ending ? log->ended : log->queue.size == 0 && !log->writing)
            return true;
    } while (condition_wait_until(&log->quiet, &log->lock, deadline));
    return false;
}

bool log_flush(struct log *log)
{
    uv_mutex_lock(&log->lock);
    bool written = wait_until_written(log);
    uv_mutex_unlock(&log->lock);
    return written;
}

void log_destroy(struct log **log)
{
    struct log *gone = memory_take(log);
    if (gone == NULL)
        return;
    uv_mutex_lock(&gone->lock);
    gone->ending = true;
    uv_cond_signal(&gone->more);
    bool ended = wait_until_written(gone);
    gone->abandoned = !ended;
    /* A thread that hangs in the kernel cannot be ended; it ends with the process. */
    if (!ended)
        CHECK(pthread_detach(gone->writer) == 0);
    uv_mutex_unlock(&gone->lock);
    if (!ended)
        return;
    CHECK(uv_thread_join(&gone->writer) == 0);
    log_free(gone);
}

/* ---- into the queue -------------------------------------------------------------------------- */

/* Appends whole lines, or drops them when the queue would hold more than `most`. */
static void enqueue(struct log *log, struct text lines, size_t most)
{
    uv_mutex_lock(&log->lock);
    bool taken = log->queue.size + lines.size <= most;
    if (taken) {
        if (log->queue.size == 0)
            uv_cond_signal(&log->more);
        buffer_append_text(&log->queue, lines);
    }
    uv_mutex_unlock(&log->lock);
    if (!taken)
        relaxed_add(&log->dropped, count_lines(lines));
}

void log_emit(struct log *log, enum log_level level, const char *message,
              const struct log_field *fields)
{
    if (!log_enabled(log, level))
        return;
    struct buffer line = {0};
    append_line_now(log, &line, level, message, fields);
    enqueue(log, buffer_text(&line), QUEUE_SIZE);
    buffer_free(&line);
}

struct log_batch *log_batch_create(struct log *log)
{
    struct log_batch *batch = memory_alloc_zeroed(1, sizeof *batch);
    batch->log = log;
    batch->json = is_json(log);
    return batch;
}

void log_batch_destroy(struct log_batch **at)
{
    struct log_batch *batch = memory_take(at);
    if (batch == NULL)
        return;
    log_batch_flush(batch);
    buffer_free(&batch->lines);
    buffer_free(&batch->start);
    memory_free(batch);
}

/* Lines of one tick of the clock begin alike. */
static void append_batch_start(struct log_batch *batch, enum log_level level, const char *message)
{
    int64_t now = clock_wall_coarse_ms();
    if (batch->start_ms != now || batch->start_level != level || batch->start_message != message) {
        buffer_clear(&batch->start);
        append_start(&batch->start, batch->log, batch->json, now, level, message);
        batch->start_ms = now;
        batch->start_level = level;
        batch->start_message = message;
    }
    buffer_append_text(&batch->lines, buffer_text(&batch->start));
}

void log_batch_emit(struct log_batch *batch, enum log_level level, const char *message,
                    const struct log_field *fields)
{
    if (!log_enabled(batch->log, level))
        return;
    append_batch_start(batch, level, message);
    append_fields(&batch->lines, fields, batch->json);
    append_end(&batch->lines, batch->json);
    if (batch->lines.size >= BATCH_SIZE)
        log_batch_flush(batch);
}

void log_batch_flush(struct log_batch *batch)
{
    batch->json = is_json(batch->log);
    batch->start_message = NULL; /* it has a format */
    if (batch->lines.size == 0)
        return;
    enqueue(batch->log, buffer_text(&batch->lines), QUEUE_SIZE - QUEUE_RESERVE);
    buffer_clear(&batch->lines);
}

bool log_batch_has_kept(const struct log_batch *batch, const struct log_kept *kept)
{
    return kept->size > 0 && (kept->format == LOG_FORMAT_JSON) == batch->json;
}

void log_batch_keep(struct log_batch *batch, struct log_kept *kept, const struct log_field *fields)
{
    struct buffer formatted = {0};
    append_fields(&formatted, fields, batch->json);
    CHECK(formatted.size > 0 && formatted.size <= LOG_KEPT_MAX);
    kept->size = (uint8_t)formatted.size;
    kept->format = batch->json ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT;
    memcpy(kept->bytes, formatted.data, formatted.size);
    buffer_free(&formatted);
}
