/* See id_directory.h. */
#include "stores/platform/sqlite/ids/id_directory.h"

#include <dirent.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"

#define TEMPORARY "new-"

void id_run_name(int64_t first, int64_t last, char name[ID_NAME_SIZE])
{
    (void)snprintf(name, ID_NAME_SIZE, "%lld-%lld.run", (long long)first, (long long)last);
}

void id_temporary_name(char name[ID_NAME_SIZE])
{
    (void)snprintf(name, ID_NAME_SIZE, TEMPORARY "%016llx", (unsigned long long)hash_random_seed());
}

/* ---- opening --------------------------------------------------------------------------------- */

static enum status failed(struct error *error, const char *what)
{
    return error_unavailable(error, "%s: %s", what, strerror(errno));
}

/* A user that may read the database may list the directory; a user that may write the database may
 * make files in it. */
static enum status adopt_mode(int descriptor, const struct stat *database, struct error *error)
{
    mode_t mode = database->st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
    mode |= (mode & (S_IRUSR | S_IRGRP | S_IROTH)) >> 2;
    if (geteuid() == 0 && fchown(descriptor, database->st_uid, database->st_gid) != 0)
        return failed(error, "fchown");
    return fchmod(descriptor, mode) == 0 ? STATUS_OK : failed(error, "fchmod");
}

enum status id_directory_open(struct id_directory *directory, const char *database, bool create,
                              struct error *error)
{
    struct id_directory opened = {.descriptor = -1};
    enum status status = STATUS_OK;
    bool made = false;
    if (stat(database, &opened.database) != 0)
        return failed(error, database);
    char *path = file_beside(database, "-ids");
    if (create) {
        made = mkdir(path, S_IRWXU) == 0;
        if (!made && errno != EEXIST)
            status = failed(error, path);
    }
    if (status == STATUS_OK) {
        opened.descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (opened.descriptor < 0)
            status =
                errno == ENOENT ? error_not_found(error, "there is none") : failed(error, path);
    }
    memory_free(path);
    if (status == STATUS_OK && made) {
        status = adopt_mode(opened.descriptor, &opened.database, error);
        int reason = status == STATUS_OK ? file_sync_directory(database) : 0;
        if (reason != 0)
            status = error_unavailable(error, "fsync: %s", strerror(reason));
    }
    if (status == STATUS_OK)
        *directory = opened;
    else
        id_directory_close(&opened);
    return status;
}

void id_directory_close(struct id_directory *directory)
{
    file_close(&directory->descriptor);
}

enum status id_directory_lock(const struct id_directory *directory, uint32_t patience_ms,
                              struct error *error)
{
    int reason = file_lock(directory->descriptor, patience_ms);
    if (reason == 0)
        return STATUS_OK;
    return reason == EWOULDBLOCK ? error_set(error, STATUS_TIMEOUT,
                                             "another process is at the index of transaction ids")
                                 : failed(error, "flock");
}

enum status id_directory_sync(const struct id_directory *directory, struct error *error)
{
    return fsync(directory->descriptor) == 0 ? STATUS_OK : failed(error, "fsync");
}

/* ---- the list of its files ------------------------------------------------------------------- */

/* It accepts only the names that this file gives: no signs, no zeros in front. */
static bool is_run(const char *name, struct id_file *file)
{
    struct text rest = text_of(name);
    struct text first = text_cut(&rest, '-');
    struct text last = text_cut(&rest, '.');
    uint64_t numbers[2];
    if (rest.at == NULL || text_to_u64(first, INT64_MAX, &numbers[0]) != STATUS_OK ||
        text_to_u64(last, INT64_MAX, &numbers[1]) != STATUS_OK || numbers[0] < 1 ||
        numbers[1] < numbers[0])
        return false;
    file->first = (int64_t)numbers[0];
    file->last = (int64_t)numbers[1];
    id_run_name(file->first, file->last, file->name);
    return strcmp(file->name, name) == 0;
}

/* readdir needs a descriptor of its own: it has a position and closes what it is given. */
static DIR *open_list(const struct id_directory *directory, struct error *error)
{
    int descriptor = openat(directory->descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (list != NULL)
        return list;
    (void)failed(error, "opendir");
    file_close(&descriptor);
    return NULL;
}

static int compare(const void *one, const void *other)
{
    const struct id_file *a = one;
    const struct id_file *b = other;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return (a->last < b->last) - (a->last > b->last);
}

enum status id_directory_list(const struct id_directory *directory, struct id_file **files,
                              size_t *count, struct error *error)
{
    DIR *list = open_list(directory, error);
    struct id_file *found = NULL;
    struct id_file file;
    size_t number = 0;
    size_t room = 0;
    if (list == NULL)
        return STATUS_UNAVAILABLE;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        if (!is_run(entry->d_name, &file) || number == ID_FILES_MAX)
            continue;
        if (number == room) {
            room = room == 0 ? 64 : 2 * room;
            found = memory_resize(found, room * sizeof *found);
        }
        found[number++] = file;
    }
    (void)closedir(list);
    if (number > 0)
        qsort(found, number, sizeof *found, compare);
    *files = found;
    *count = number;
    return STATUS_OK;
}

enum status id_directory_state(const struct id_directory *directory, uint64_t *state,
                               struct error *error)
{
    struct id_file *files = NULL;
    size_t count = 0;
    uint64_t sum = 0;
    enum status status = id_directory_list(directory, &files, &count, error);
    for (size_t i = 0; i < count; i++)
        sum = checksum_add(sum, (const int64_t[]){files[i].first, files[i].last},
                           2 * sizeof(int64_t));
    memory_free(files);
    if (status == STATUS_OK)
        *state = sum;
    return status;
}

void id_directory_tidy(const struct id_directory *directory)
{
    DIR *list = open_list(directory, NULL);
    if (list == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        if (strncmp(entry->d_name, TEMPORARY, strlen(TEMPORARY)) != 0)
            continue;
        int descriptor = openat(directory->descriptor, entry->d_name,
                                O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        /* A process that still writes the file holds its lock. */
        if (descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0)
            (void)unlinkat(directory->descriptor, entry->d_name, 0);
        file_close(&descriptor);
    }
    (void)closedir(list);
}
