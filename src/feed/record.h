#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
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
