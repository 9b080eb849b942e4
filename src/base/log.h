#pragma once

#include "base/text.h"

/*
 * Structured logging: a constant message and typed fields, written as one line of text or JSON.
 *
 *     log_event(log, LOG_WARNING, "odds store opened again",
 *               LOG_STRING("path", path), LOG_INTEGER("attempts", attempts));
 *
 * text:  2026-11-21T04:53:17.042Z warning odds store opened again path=/var/lib/… attempts=3
 * json:  {"time":"…","level":"warning","message":"odds store opened again","path":"…","attempts":3}
 *
 * A value is never a secret: keys are logged by their first 8 characters at most.
 * A `struct log` may be used by any thread; a NULL log discards. Lines are written
 * whole and in the order in which they came.
 *
 * Logging never waits: a thread of the log's own writes. When it does not keep up, because the
 * pipe is not read or the disk is full, lines are dropped and counted. The next line that it can
 * write says how many: "log lines were dropped lines=1234".
 */
enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

struct log;

enum log_field_kind {
    LOG_FIELD_END,
    LOG_FIELD_TEXT,
    LOG_FIELD_WORD,
    LOG_FIELD_INTEGER,
    LOG_FIELD_KEPT,
};
struct log_field {
    enum log_field_kind kind;
    struct text name; /* a literal */
    struct text text;
    int64_t integer;
};
#define LOG_FIELD_(kind_, name_, ...) \
    ((struct log_field){.kind = (kind_), .name = TEXT(name_), __VA_ARGS__})
/* A string that may be NULL: written as an empty value. */
#define LOG_STRING(name_, value_) LOG_FIELD_(LOG_FIELD_TEXT, name_, .text = text_of(value_))
#define LOG_TEXT(name_, value_) LOG_FIELD_(LOG_FIELD_TEXT, name_, .text = (value_))
/* A text that is known to be of printable ASCII without space, '"', backslash and '=': the log does
 * not check it. */
#define LOG_WORD(name_, value_) LOG_FIELD_(LOG_FIELD_WORD, name_, .text = (value_))
#define LOG_INTEGER(name_, value_) \
    LOG_FIELD_(LOG_FIELD_INTEGER, name_, .integer = (int64_t)(value_))

/* Writes to `descriptor`, which stays the caller's. When it is systemd's journal ($JOURNAL_STREAM),
 * each line begins with its priority: "<3>", "<4>", "<6>" or "<7>". */
struct log *log_create(int descriptor, enum log_level level, enum log_format format);
/* Writes what is queued, for at most a second; the rest is lost. If the writer hangs, the
 * descriptor stays in use. */
void log_destroy(struct log **log);

/* Waits until all lines so far are written, at most a second; false when they are not. */
bool log_flush(struct log *log);
/* Lines dropped since log_create. */
uint64_t log_dropped(struct log *log);

/* May be called while other threads log. */
void log_configure(struct log *log, enum log_level level, enum log_format format);

bool log_enabled(const struct log *log, enum log_level level);

void log_emit(struct log *log, enum log_level level, const char *message,
              const struct log_field *fields);
#define log_event(log, level, ...) log_event_(log, level, __VA_ARGS__, ((struct log_field){0}))
#define log_event_(log, level, message, ...) \
    log_emit((log), (level), (message), (const struct log_field[]){__VA_ARGS__})

/*
 * Lines that come by the thousand (one a request) are gathered by their thread and written in
 * blocks. One log_batch belongs to one thread. Lines are written when the batch holds 32 KiB, and
 * when its owner calls log_batch_flush (a worker does so several times a second). The flush also
 * takes over a change of the format.
 */
struct log_batch;
struct log_batch *log_batch_create(struct log *log);
void log_batch_destroy(struct log_batch **batch); /* flushes */
void log_batch_emit(struct log_batch *batch, enum log_level level, const char *message,
                    const struct log_field *fields);
void log_batch_flush(struct log_batch *batch);

/*
 * Fields that many lines share (those of a connection), formatted once. A zeroed struct holds none.
 * A line names them as LOG_KEPT(&kept), but only if log_batch_has_kept has just returned true:
 * after a change of the format they must be formatted again.
 */
#define LOG_KEPT_MAX 222U
struct log_kept {
    uint8_t size; /* 0: none */
    uint8_t format;
    char bytes[LOG_KEPT_MAX];
};
#define LOG_KEPT(kept_) \
    ((struct log_field){.kind = LOG_FIELD_KEPT, .text = {(kept_)->bytes, (kept_)->size}})
bool log_batch_has_kept(const struct log_batch *batch, const struct log_kept *kept);
/* Formats them: at most LOG_KEPT_MAX bytes, with their names. */
void log_batch_keep(struct log_batch *batch, struct log_kept *kept, const struct log_field *fields);

extern const struct enum_names log_levels, log_formats;
