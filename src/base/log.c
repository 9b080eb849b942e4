/*
 * One line a record. Lines are put together in memory and written with one write(2) under a mutex, so
 * that lines of several threads never mix. Level and format are atomics: SIGHUP changes them.
 */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

#define BATCH_SIZE ((size_t)32 * 1024)

struct log {
    int descriptor;
    atomic_int level;
    atomic_int format;
    pthread_mutex_t writing;
};

struct log_batch {
    struct log *log;
    struct buffer lines;
    int64_t second; /* the wall-clock second that `stamp` was made for */
    char stamp[CLOCK_TEXT_SIZE];
};

static const char *const level_names[] = {"error", "warning", "info", "debug"};

struct log *log_create(int descriptor, enum log_level level, enum log_format format)
{
    struct log *log = memory_alloc_zeroed(1, sizeof *log);
    log->descriptor = descriptor;
    atomic_init(&log->level, (int)level);
    atomic_init(&log->format, (int)format);
    CHECK(pthread_mutex_init(&log->writing, NULL) == 0);
    return log;
}

void log_destroy(struct log **log)
{
    if (*log == NULL)
        return;
    CHECK(pthread_mutex_destroy(&(*log)->writing) == 0);
    memory_free(*log);
    *log = NULL;
}

void log_set_level(struct log *log, enum log_level level)
{
    atomic_store_explicit(&log->level, (int)level, memory_order_relaxed);
}

void log_set_format(struct log *log, enum log_format format)
{
    atomic_store_explicit(&log->format, (int)format, memory_order_relaxed);
}

bool log_enabled(const struct log *log, enum log_level level)
{
    return log != NULL && (int)level <= atomic_load_explicit(&log->level, memory_order_relaxed);
}

/* Writes everything, whatever it takes; a log that cannot be written is given up silently, because
 * there is nobody left to tell. */
static void write_whole(struct log *log, const char *bytes, size_t size)
{
    CHECK(pthread_mutex_lock(&log->writing) == 0);
    while (size > 0) {
        ssize_t written = write(log->descriptor, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            break;
        bytes += written;
        size -= (size_t)written;
    }
    CHECK(pthread_mutex_unlock(&log->writing) == 0);
}

/*
 * A line is put together with plain copies into room that was made for all of it beforehand: one line
 * is written for every request.
 */
static char *put(char *at, struct text text)
{
    if (text.size > 0)
        memcpy(at, text.at, text.size);
    return at + text.size;
}

static char *put_integer(char *at, int64_t value)
{
    if (value < 0)
        *at++ = '-';
    return at + decimal_write(at, value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value);
}

/* Bytes that a JSON string holds as they are. */
static bool is_unescaped(unsigned char byte)
{
    return byte >= ' ' && byte < 0x7F && byte != '"' && byte != '\\';
}

static char *put_json_string(char *at, struct text text, bool known)
{
    size_t plain = known ? text.size : 0;
    while (plain < text.size && is_unescaped((unsigned char)text.at[plain]))
        plain++;
    if (plain < text.size) { /* rare, so it may cost an allocation */
        struct buffer quoted = {0};
        buffer_append_json_string(&quoted, text);
        at = put(at, buffer_text(&quoted));
        buffer_free(&quoted);
        return at;
    }
    *at++ = '"';
    at = put(at, text);
    *at++ = '"';
    return at;
}

/* A word stands as it is in a line of text; anything that could be misread is quoted. */
static bool is_word(struct text text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        if (!is_unescaped(byte) || byte == ' ' || byte == '=')
            return false;
    }
    return text.size > 0;
}

static char *put_text_value(char *at, const struct log_field *field)
{
    if (field->kind == LOG_FIELD_INTEGER)
        return put_integer(at, field->integer);
    bool word = field->kind == LOG_FIELD_WORD && field->text.size > 0;
    return word || is_word(field->text) ? put(at, field->text)
                                        : put_json_string(at, field->text, false);
}

static char *put_json_value(char *at, const struct log_field *field)
{
    if (field->kind == LOG_FIELD_INTEGER)
        return put_integer(at, field->integer);
    return put_json_string(at, field->text, field->kind == LOG_FIELD_WORD);
}

static char *put_text_line(char *at, const char *stamp, enum log_level level, struct text message,
                           const struct log_field *fields)
{
    at = put(at, text_of(stamp));
    *at++ = ' ';
    at = put(at, text_of(level_names[level]));
    *at++ = ' ';
    at = put(at, message);
    for (const struct log_field *field = fields; field->kind != LOG_FIELD_END; field++) {
        *at++ = ' ';
        at = put(at, field->name);
        *at++ = '=';
        at = put_text_value(at, field);
    }
    *at++ = '\n';
    return at;
}

static char *put_json_line(char *at, const char *stamp, enum log_level level, struct text message,
                           const struct log_field *fields)
{
    at = put(at, TEXT("{\"time\":\""));
    at = put(at, text_of(stamp));
    at = put(at, TEXT("\",\"level\":\""));
    at = put(at, text_of(level_names[level]));
    at = put(at, TEXT("\",\"message\":"));
    at = put_json_string(at, message, false);
    for (const struct log_field *field = fields; field->kind != LOG_FIELD_END; field++) {
        at = put(at, TEXT(",\""));
        at = put(at, field->name);
        at = put(at, TEXT("\":"));
        at = put_json_value(at, field);
    }
    return put(at, TEXT("}\n"));
}

/* The most that a line can take: a byte of a value becomes six at most ("\u0000"). */
static size_t line_size_most(struct text message, const struct log_field *fields)
{
    size_t size = CLOCK_TEXT_SIZE + 64 + 6 * message.size;
    for (const struct log_field *field = fields; field->kind != LOG_FIELD_END; field++)
        size += field->name.size + 6 * field->text.size + 32;
    return size;
}

static void append_line(struct log *log, struct buffer *out, const char *stamp,
                        enum log_level level, const char *message, const struct log_field *fields)
{
    struct text text = text_of(message);
    buffer_reserve(out, line_size_most(text, fields));
    char *start = out->data + out->size;
    char *end = atomic_load_explicit(&log->format, memory_order_relaxed) == LOG_FORMAT_JSON
                    ? put_json_line(start, stamp, level, text, fields)
                    : put_text_line(start, stamp, level, text, fields);
    out->size += (size_t)(end - start);
}

void log_emit(struct log *log, enum log_level level, const char *message,
              const struct log_field *fields)
{
    if (!log_enabled(log, level))
        return;
    char stamp[CLOCK_TEXT_SIZE];
    clock_format_rfc3339(clock_wall_ms(), stamp);
    struct buffer line = {0};
    append_line(log, &line, stamp, level, message, fields);
    write_whole(log, line.data, line.size);
    buffer_free(&line);
}

struct log_batch *log_batch_create(struct log *log)
{
    struct log_batch *batch = memory_alloc_zeroed(1, sizeof *batch);
    batch->log = log;
    batch->second = INT64_MIN;
    return batch;
}

void log_batch_destroy(struct log_batch **batch)
{
    if (*batch == NULL)
        return;
    log_batch_flush(*batch);
    buffer_free(&(*batch)->lines);
    memory_free(*batch);
    *batch = NULL;
}

/* The calendar is worked out once a second; in between only the milliseconds are rewritten. */
static const char *batch_stamp(struct log_batch *batch)
{
    int64_t now = clock_wall_coarse_ms();
    if (now / 1000 != batch->second) {
        clock_format_rfc3339(now, batch->stamp);
        batch->second = now / 1000;
    }
    char *milliseconds = batch->stamp + strlen("2026-11-21T04:53:17.");
    int64_t ms = now % 1000;
    milliseconds[0] = (char)('0' + ms / 100);
    milliseconds[1] = (char)('0' + ms / 10 % 10);
    milliseconds[2] = (char)('0' + ms % 10);
    return batch->stamp;
}

void log_batch_emit(struct log_batch *batch, enum log_level level, const char *message,
                    const struct log_field *fields)
{
    if (!log_enabled(batch->log, level))
        return;
    append_line(batch->log, &batch->lines, batch_stamp(batch), level, message, fields);
    if (batch->lines.size >= BATCH_SIZE)
        log_batch_flush(batch);
}

void log_batch_flush(struct log_batch *batch)
{
    if (batch->lines.size == 0)
        return;
    write_whole(batch->log, batch->lines.data, batch->lines.size);
    buffer_clear(&batch->lines);
}

enum status log_level_parse(struct text text, enum log_level *level)
{
    for (int i = 0; i < 4; i++) {
        if (text_equals(text, text_of(level_names[i]))) {
            *level = (enum log_level)i;
            return STATUS_OK;
        }
    }
    return STATUS_INVALID;
}

enum status log_format_parse(struct text text, enum log_format *format)
{
    if (text_equals(text, TEXT("text")))
        *format = LOG_FORMAT_TEXT;
    else if (text_equals(text, TEXT("json")))
        *format = LOG_FORMAT_JSON;
    else
        return STATUS_INVALID;
    return STATUS_OK;
}
