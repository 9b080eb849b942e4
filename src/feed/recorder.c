/*
 * Writes a record. The stream's thread appends lines to `waiting`, under a lock that is held for no
 * call that blocks. The recorder's thread takes them all, about once a second, and writes them as
 * one frame. Of a frame that cannot be written whole nothing stays in the file.
 */

#include <zstd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/threads.h"
#include "feed/record.h"

#define WRITE_EVERY_NS (800 * UINT64_C(1000000))
#define WAITING_MAX ((size_t)64 << 20) /* bytes; lines beyond them are lost */
#define FILE_USUAL ((off_t)1 << 30)    /* bytes; a larger file is ended before the hour is over */
#define HOUR_MS INT64_C(3600000)
#define NAME_TIME 24 /* characters */
#define HOUR_TIME 13 /* of them, as far as the hour */
#define LEVEL 1      /* costs a third of the usual one */

struct feed_recorder {
    int directory; /* locked */
    int64_t keep_ms;
    struct log *log;
    struct background thread;
    struct buffer waiting; /* the lines, under the thread's lock, as are the members up to `time` */
    uint64_t count, lost;
    int64_t time_ms; /* of the last line, and as text */
    char time[CLOCK_TEXT_SIZE];
    /* The members from here on belong to the thread. */
    int file;             /* -1: none is open */
    char hour[HOUR_TIME]; /* of its first line */
    off_t size;
    int failed; /* errno of the last write; 0: it was good */
    ZSTD_CCtx *context;
    struct buffer lines, frame; /* they keep their memory: fresh pages cost more than the copy */
};

int64_t feed_record_begun_ms(const char *name)
{
    char time[NAME_TIME + 1];
    int64_t begun_ms = -1;
    if (strlen(name) < NAME_TIME || strcmp(name + NAME_TIME, ".feed.zst") != 0)
        return -1;
    (void)snprintf(time, sizeof time, "%.13s:%.2s:%.7s", name, name + 14, name + 17);
    return clock_parse_rfc3339(text_of(time), &begun_ms) == STATUS_OK ? begun_ms : -1;
}

int feed_record_is_file(const struct dirent *entry)
{
    return feed_record_begun_ms(entry->d_name) >= 0;
}

/* Removes the files of which every line is older than the recorder keeps. */
static void remove_old(const struct feed_recorder *recorder, int64_t now_ms)
{
    struct dirent **names = NULL;
    int count = scandirat(recorder->directory, ".", &names, feed_record_is_file, NULL);
    for (int i = 0; i < count; i++) {
        int64_t ended_ms = feed_record_begun_ms(names[i]->d_name) + HOUR_MS;
        if (recorder->keep_ms > 0 && ended_ms < now_ms - recorder->keep_ms)
            (void)unlinkat(recorder->directory, names[i]->d_name, 0);
        free(names[i]);
    }
    free(names);
}

/* Begins a file that is named by the time of the first line. Returns 0 or an errno. */
static int begin_file(struct feed_recorder *recorder, const char *time)
{
    char name[CLOCK_TEXT_SIZE + sizeof ".feed.zst"];
    remove_old(recorder, clock_wall_ms());
    file_close(&recorder->file);
    (void)snprintf(name, sizeof name, "%.13s-%.2s-%.7s.feed.zst", time, time + 14,
                   time + 17); /* colons are not for every file system */
    recorder->file =
        openat(recorder->directory, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    memcpy(recorder->hour, time, sizeof recorder->hour);
    recorder->size = 0;
    return recorder->file < 0 ? errno : 0;
}

/* Returns 0 or an errno. */
static int write_lines(struct feed_recorder *recorder, struct text lines)
{
    struct buffer *frame = &recorder->frame;
    bool over = memcmp(recorder->hour, lines.at, HOUR_TIME) != 0 || recorder->size > FILE_USUAL;
    int failed = recorder->file < 0 || over ? begin_file(recorder, lines.at) : 0;
    if (failed != 0)
        return failed;
    buffer_clear(frame);
    buffer_reserve(frame, ZSTD_compressBound(lines.size));
    frame->size =
        ZSTD_compress2(recorder->context, frame->data, frame->capacity, lines.at, lines.size);
    CHECK(!ZSTD_isError(frame->size));
    failed = file_write(recorder->file, frame->data, frame->size) == frame->size ? 0 : errno;
    if (failed == 0)
        recorder->size += (off_t)frame->size;
    else if (ftruncate(recorder->file, recorder->size) != 0)
        file_close(&recorder->file); /* readers take the part of the frame for a cut-off end */
    return failed;
}

static void write_waiting(struct feed_recorder *recorder)
{
    char time[CLOCK_TEXT_SIZE];
    uv_mutex_lock(&recorder->thread.lock);
    struct buffer *lines = &recorder->lines, taken = recorder->waiting;
    uint64_t count = recorder->count, lost = recorder->lost;
    recorder->waiting = *lines;
    *lines = taken;
    recorder->count = recorder->lost = 0;
    uv_mutex_unlock(&recorder->thread.lock);
    clock_format_rfc3339(clock_wall_ms(), time);
    if (lost > 0)
        buffer_append_format(lines, "%s\t{\"gap\": %llu}\n", time, (unsigned long long)lost);
    int failed = lines->size == 0 ? 0 : write_lines(recorder, buffer_text(lines));
    buffer_clear(lines);
    if (failed != recorder->failed || (failed == 0 && lost > 0))
        log_event(recorder->log, LOG_WARNING,
                  failed != 0 ? "the feed goes on without its record"
                              : "the record of the feed has a gap",
                  LOG_INTEGER("lines", failed != 0 ? count + lost : lost),
                  LOG_STRING("reason", strerror(failed != 0 ? failed : recorder->failed)));
    recorder->failed = failed;
    uv_mutex_lock(&recorder->thread.lock);
    recorder->lost += failed != 0 ? count + lost : 0;
    uv_mutex_unlock(&recorder->thread.lock);
}

static void run(void *argument)
{
    struct feed_recorder *recorder = argument;
    while (!background_sleep(&recorder->thread, clock_monotonic_ns() + WRITE_EVERY_NS))
        write_waiting(recorder);
    write_waiting(recorder);
}

enum status feed_recorder_start(struct feed_recorder **at, const char *directory, int64_t keep_ms,
                                struct error *error)
{
    enum status status = file_make_directory(directory, 0750, error);
    if (status != STATUS_OK)
        return status;
    struct feed_recorder *recorder = memory_alloc_zeroed(1, sizeof *recorder);
    recorder->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    recorder->keep_ms = keep_ms;
    recorder->file = -1;
    int failed = recorder->directory < 0 ? errno : file_lock(recorder->directory, 0);
    if (failed == 0 && faccessat(recorder->directory, ".", W_OK, AT_EACCESS) != 0)
        failed = errno;
    if (failed != 0) {
        file_close(&recorder->directory);
        memory_free(recorder);
        return error_unavailable(error, "%s: %s", directory,
                                 failed == EWOULDBLOCK ? "another process records there"
                                                       : strerror(failed));
    }
    recorder->log = log_create(STDERR_FILENO, LOG_WARNING, LOG_FORMAT_TEXT);
    recorder->context = ZSTD_createCCtx();
    (void)ZSTD_CCtx_setParameter(recorder->context, ZSTD_c_compressionLevel, LEVEL);
    (void)ZSTD_CCtx_setParameter(recorder->context, ZSTD_c_checksumFlag, 1);
    background_start(&recorder->thread, "feed-record", run, recorder);
    *at = recorder;
    return STATUS_OK;
}

void feed_recorder_stop(struct feed_recorder **at)
{
    struct feed_recorder *recorder = memory_take(at);
    if (recorder == NULL)
        return;
    background_stop(&recorder->thread);
    log_destroy(&recorder->log);
    (void)ZSTD_freeCCtx(recorder->context);
    file_close(&recorder->file);
    file_close(&recorder->directory);
    buffer_free(&recorder->waiting);
    buffer_free(&recorder->lines);
    buffer_free(&recorder->frame);
    memory_free(recorder);
}

void feed_recorder_add(struct feed_recorder *recorder, struct text answer, struct text sent)
{
    struct buffer *waiting = &recorder->waiting;
    int64_t now_ms = clock_wall_ms();
    uv_mutex_lock(&recorder->thread.lock);
    if (recorder->count > 0 && recorder->waiting.size + sent.size > WAITING_MAX) {
        recorder->lost++;
    } else {
        if (now_ms != recorder->time_ms)
            clock_format_rfc3339(now_ms, recorder->time);
        recorder->time_ms = now_ms;
        buffer_append_string(waiting, recorder->time);
        buffer_append_char(waiting, '\t');
        buffer_append_text(waiting, answer);
        buffer_append_char(waiting, '\t');
        buffer_append_text(waiting, sent);
        buffer_append_char(waiting, '\n');
        recorder->count++;
    }
    uv_mutex_unlock(&recorder->thread.lock);
}
