#pragma once

#include <sys/types.h>

#include "base/digest.h"
#include "base/progress.h"

/*
 * Files that must be on disk before the caller reports success. Blocks. Threads: any.
 */

/* The target of a symbolic link at this path, or the path itself if it is no link; the caller frees
 * it. SQLite names the files beside a database by the target. */
char *file_follow_link(const char *path);

/* Closes a descriptor and makes it -1; does nothing if it is. errno stays as it was. */
void file_close(int *descriptor);

/* The path of a file beside another one, named by it and an ending ("-wal"), or within it
 * ("/data.mdb"); the caller frees it. */
char *file_beside(const char *path, const char *ending);

/* flock for one holder, waiting at most so long, for which the kernel has no call. Returns 0 or an
 * errno; EWOULDBLOCK: another holder has it. */
MUST_CHECK int file_lock(int descriptor, uint32_t patience_ms);

/* Says that a file "cannot be made", or whatever the verb is, and why: errno. */
enum status file_failed(struct error *error, const char *path, const char *verb);

/* Syncs the directory that `path` is in, which makes the file's name durable. Returns 0 or an
 * errno, which errno is as well. */
int file_sync_directory(const char *path);

/* Makes a directory; STATUS_OK if there is one. Run by root, gives it to the owner of the directory
 * above. */
MUST_CHECK enum status file_make_directory(const char *path, mode_t mode, struct error *error);

/* Makes a file of this mode that holds `content`, which is on disk when this returns (its name is
 * not: file_sync_directory). STATUS_EXISTS, STATUS_FULL; where it fails there is no file of this
 * call. */
MUST_CHECK enum status file_make(const char *path, mode_t mode, struct text content,
                                 struct error *error);

/* Writes all bytes, and waits where a descriptor that does not block is full. Returns how many were
 * written: fewer when it fails, with errno. */
size_t file_write(int descriptor, const char *bytes, size_t size);

/* Appends all of a file (NULL: of standard input), up to one byte more than `most`, so that the
 * caller can tell that it is too much. Returns 0 or an errno. */
MUST_CHECK int file_read(const char *path, size_t most, struct buffer *out);

/* The same of a file that holds a secret, which the caller wipes. It belongs to root or to the user
 * of this process, and no other user may use it; but its group may read it, as systemd and
 * Kubernetes give it, if that is root's or one of this process. STATUS_NOT_FOUND,
 * STATUS_UNAVAILABLE: it cannot be read; STATUS_INVALID: others may use it, or it is no regular
 * file. */
MUST_CHECK enum status file_read_secret(const char *path, size_t most, struct buffer *out,
                                        struct error *error);

/* The content of a file. */
struct file_print {
    uint64_t bytes;
    uint8_t sha256[DIGEST_SIZE];
};

bool file_prints_equal(const struct file_print *a, const struct file_print *b);

/* Reads all of a file from its disk rather than from memory, as far as the kernel drops its pages.
 * STATUS_NOT_FOUND: there is none; STATUS_UNAVAILABLE: it cannot be read, or is no regular file. */
MUST_CHECK enum status file_read_print(const char *path, const struct progress_watch *watch,
                                       struct file_print *print, struct error *error);

/* The same, and writes what was read into `to`, a new file of this mode, which is on disk when this
 * returns (its name is not: file_sync_directory). Run by root, gives it to the owner of its
 * directory. STATUS_EXISTS: there is a file `to`; STATUS_FULL: the disk has no room. Where it
 * fails there is no file `to` of this call. */
MUST_CHECK enum status file_copy(const char *path, const char *to, mode_t mode,
                                 const struct progress_watch *watch, struct file_print *print,
                                 struct error *error);
