#pragma once

#include "base/file.h"
#include "stores/odds.h"
#include "stores/platform.h"

/*
 * Backups of an installation on embedded stores: a directory with a file for each part, and
 * `manifest.json`, which says what the files must hold.
 *
 *   platform.db   the platform store, with the ledger: SQLite. Its index of ids, which stands in
 *                 files beside the database, is made again when it is opened
 *   odds.mdb      the odds store: LMDB
 *   secrets.key   the key of stored secrets, if it was asked for
 *
 * Each part is as of one moment, when its copying began; it has everything that was answered
 * before. Servers and feeds go on working. A backup is made under another name and renamed when all
 * of it is on disk, so a directory of the name that was asked for is a whole one.
 *
 * Blocks, for as long as reading and writing it takes. One thread.
 */

enum backup_part { BACKUP_PLATFORM, BACKUP_ODDS, BACKUP_SECRETS_KEY, BACKUP_PART_COUNT };

#define BACKUP_MANIFEST "manifest.json"
extern const char *const backup_part_names[BACKUP_PART_COUNT]; /* of their files */

#define BACKUP_PROGRAM_SIZE 64

struct backup_manifest {
    char program[BACKUP_PROGRAM_SIZE]; /* the program that made it: "croupier 0.2.0 (1e96643)" */
    int64_t made_ms;                   /* when it was whole */
    uint32_t schema;                   /* of the platform store */
    struct {
        bool there;
        int64_t as_of_ms;
        struct file_print print;
    } parts[BACKUP_PART_COUNT];
};

struct backup_sources {
    struct platform_store *platform;
    struct odds_store *odds;      /* NULL: left out */
    const char *secrets_key_file; /* NULL: left out */
};

/* Makes a backup in `directory`, which must not be there, or empty; the one above it must be.
 * STATUS_EXISTS: there is something in it; STATUS_FULL: its disk has no room; STATUS_MALFORMED: the
 * platform store is damaged or has lost rows, so it is not backed up. Where it fails nothing is
 * left behind. */
MUST_CHECK enum status backup_make(const char *directory, const struct backup_sources *sources,
                                   const struct progress_watch *watch,
                                   struct backup_manifest *manifest, struct error *error);

/* Keeps the manifest of a whole backup beside the platform store's file, for backup_last_ms. */
MUST_CHECK enum status backup_remember(const char *platform_file,
                                       const struct backup_manifest *manifest, struct error *error);
/* When the last backup of this platform store was whole; -1: none is known of. */
int64_t backup_last_ms(const char *platform_file);

/* The manifest as text, and from it. STATUS_MALFORMED: it is none. */
void backup_manifest_write(const struct backup_manifest *manifest, struct buffer *out);
MUST_CHECK enum status backup_manifest_read(struct text text, struct backup_manifest *manifest,
                                            struct error *error);

/*
 * Puts the files of the backup in `directory` in place. `paths`: where they go; NULL: a part is not
 * restored. The directory that the odds' file is in is made, and the one above. `placed` says which
 * were put there: a part that is not in the backup is not, nor a key of secrets that is there
 * already and the same. Nothing is replaced: STATUS_EXISTS. All of them are copied and found to
 * hold what the manifest says before the first is given its name; the platform store is last.
 * STATUS_MALFORMED: the backup is damaged, or none. Where it fails nothing is left behind.
 */
MUST_CHECK enum status restore_files(const char *directory,
                                     const char *const paths[BACKUP_PART_COUNT],
                                     const struct progress_watch *watch,
                                     struct backup_manifest *manifest,
                                     bool placed[BACKUP_PART_COUNT], struct error *error);
