#pragma once

#include <sys/stat.h>

#include "base/status.h"
#include "stores/platform/sqlite/ids/id_entry.h"

/*
 * The directory of a ledger's runs, DATABASE-ids, beside its file: names, the lock, and the list of
 * its files. A run's name is FIRST-LAST.run, from the rows that it covers. A run that is being
 * written is called new-NUMBER, with a random number. No other file there is ever touched.
 *
 * Several processes may have the database open. A process that names or deletes a file holds the
 * directory's lock (flock), and first checks whether the directory is as it left it.
 */

struct id_directory {
    int descriptor;       /* -1: it is not open */
    struct stat database; /* mode and owner are taken from it */
};

#define ID_NAME_SIZE 48
#define ID_FILES_MAX 65536 /* files after so many are ignored */

struct id_file {
    int64_t first, last;
    char name[ID_NAME_SIZE];
};

void id_run_name(int64_t first, int64_t last, char name[ID_NAME_SIZE]);
void id_temporary_name(char name[ID_NAME_SIZE]);

/* `create`: makes it when there is none. STATUS_NOT_FOUND: there is none. */
MUST_CHECK enum status id_directory_open(struct id_directory *directory, const char *database,
                                         bool create, struct error *error);
void id_directory_close(struct id_directory *directory); /* and unlocks */

/* Waits for at most so long. STATUS_TIMEOUT: another process has it. */
MUST_CHECK enum status id_directory_lock(const struct id_directory *directory, uint32_t patience_ms,
                                         struct error *error);

/* Makes names and deletions durable. */
MUST_CHECK enum status id_directory_sync(const struct id_directory *directory, struct error *error);

/* The runs, by first row, the longest first; for memory_free. */
MUST_CHECK enum status id_directory_list(const struct id_directory *directory,
                                         struct id_file **files, size_t *count,
                                         struct error *error);

/* A number that is another one when a run has come or gone. */
MUST_CHECK enum status id_directory_state(const struct id_directory *directory, uint64_t *state,
                                          struct error *error);

/* Deletes what processes that were killed have not written to the end. Under the lock. */
void id_directory_tidy(const struct id_directory *directory);
