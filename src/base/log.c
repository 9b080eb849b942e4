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

static struct text field_text(const struct log_field *field)
{
    return field->kind == LOG_FIELD_STRING ? text_of(field->string) : field->text;
}

/* A bare word stands as it is; anything that could be misread is written as a JSON string. */
static bool is_plain_word(struct text text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        if (byte <= ' ' || byte >= 0x7F || byte == '"' || byte == '\\' || byte == '=')
            return false;
    }
    return text.size > 0;
}

static void append_integer(struct buffer *out, int64_t value)
{
    if (value < 0)
        buffer_append_char(out, '-');
    buffer_append_u64(out, value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value);
}

static void append_text_line(struct buffer *out, const char *stamp, enum log_level level,
                             const char *message, const struct log_field *fields)
{
    buffer_append_string(out, stamp);
    buffer_append_char(out, ' ');
    buffer_append_string(out, level_names[level]);
    buffer_append_char(out, ' ');
    buffer_append_string(out, message);
    for (const struct log_field *field = fields; field->kind != LOG_FIELD_END; field++) {
        buffer_append_char(out, ' ');
        buffer_append_string(out, field->name);
        buffer_append_char(out, '=');
        if (field->kind == LOG_FIELD_INTEGER)
            append_integer(out, field->integer);
        else if (is_plain_word(field_text(field)))
            buffer_append_text(out, field_text(field));
        else
            buffer_append_json_string(out, field_text(field));
    }
    buffer_append_char(out, '\n');
}

static void append_json_line(struct buffer *out, const char *stamp, enum log_level level,
                             const char *message, const struct log_field *fields)
{
    buffer_append_string(out, "{\"time\":\"");
    buffer_append_string(out, stamp);
    buffer_append_string(out, "\",\"level\":\"");
    buffer_append_string(out, level_names[level]);
    buffer_append_string(out, "\",\"message\":");
    buffer_append_json_string(out, text_of(message));
    for (const struct log_field *field = fields; field->kind != LOG_FIELD_END; field++) {
        buffer_append_string(out, ",\"");
        buffer_append_string(out, field->name);
        buffer_append_string(out, "\":");
        if (field->kind == LOG_FIELD_INTEGER)
            append_integer(out, field->integer);
        else
            buffer_append_json_string(out, field_text(field));
    }
    buffer_append_string(out, "}\n");
}

static void append_line(struct log *log, struct buffer *out, const char *stamp,
                        enum log_level level, const char *message, const struct log_field *fields)
{
    if (atomic_load_explicit(&log->format, memory_order_relaxed) == LOG_FORMAT_JSON)
        append_json_line(out, stamp, level, message, fields);
    else
        append_text_line(out, stamp, level, message, fields);
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
    int64_t now = clock_wall_ms();
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
