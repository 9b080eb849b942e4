#pragma once

#include <dirent.h>

#include "base/text.h"

/*
 * The record of a stream (docs/feed.md, "A record"): a directory of files, one an hour, each of
 * zstd frames of whole lines with tabs between their parts: the time, the stream's answer, and the
 * bytes that the feed sent.
 *
 *     2026-11-28T09:00:00.017Z    {"line": 7, "published": true}    {"odds": …}
 *     2026-11-28T09:00:04.250Z    {"gap": 12}
 *
 * The second kind stands for lines before it that could not be recorded.
 */

/* "2026-11-28T09-00-00.000Z.feed.zst". The time is that of the first line or a little earlier; -1:
 * this is no name of a record. */
int64_t feed_record_begun_ms(const char *name);
int feed_record_is_file(const struct dirent *entry); /* for scandir */

struct feed_recorder;

/* Makes the directory if there is none. A thread of the recorder's writes, about once a second:
 * lines that cannot be written are counted and logged on standard error, and hold up nothing. Files
 * whose lines are all older than `keep_ms` are removed; 0: none. STATUS_UNAVAILABLE: the directory
 * cannot be used, or another process records there. */
MUST_CHECK enum status feed_recorder_start(struct feed_recorder **recorder, const char *directory,
                                           int64_t keep_ms, struct error *error);
/* Writes what waits. NULL is fine. */
void feed_recorder_stop(struct feed_recorder **recorder);
/* `answer` is a line of JSON. */
void feed_recorder_add(struct feed_recorder *recorder, struct text answer, struct text sent);

/* A line that was published then. The text lives until the visitor returns. */
typedef void feed_record_visitor(void *context, int64_t time_ms, struct text sent);
struct feed_reading {
    const char *directory;
    int64_t from_ms;            /* begin with the last file that was begun by then, or the first */
    int64_t to_ms;              /* leave out what is later */
    feed_record_visitor *visit; /* NULL: the record is only checked */
    void *context;
    uint64_t lines; /* counts those that were shown, */
    uint64_t lost;  /* the lines that are missing, as the record says, */
    uint64_t cut;   /* and the files that end in the middle of a frame */
};

/* Shows lines in their order. STATUS_NOT_FOUND: there is no such directory, or no record in it.
 * STATUS_MALFORMED: a file is damaged. STATUS_UNAVAILABLE: one cannot be read. */
MUST_CHECK enum status feed_record_read(struct feed_reading *reading, struct error *error);
/* The same of the bytes of a file. False: it is damaged. */
MUST_CHECK bool feed_record_show(struct feed_reading *reading, struct text bytes);
