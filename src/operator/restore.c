/*
 * Putting a backup in place; see backup.h. Each file is copied beside its place under another name,
 * hashed on the way, and linked to its name when all of them are sound: a link never replaces.
 */
#include <libgen.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "operator/backup.h"

#define MANIFEST_MAX 65536

/* Modes of the files, as the stores' own modules make them; the umask applies. */
#define FOLDER_MODE 0770
static const mode_t modes[BACKUP_PART_COUNT] = {
    [BACKUP_PLATFORM] = 0640,
    [BACKUP_ODDS] = 0660,
    [BACKUP_SECRETS_KEY] = 0600,
};

/* In this order: the platform store makes it an installation. */
static const enum backup_part order[BACKUP_PART_COUNT] = {BACKUP_SECRETS_KEY, BACKUP_ODDS,
                                                          BACKUP_PLATFORM};

struct restoring {
    const char *directory;
    const char *const *paths; /* of the files in their places; NULL: not wanted */
    const struct progress_watch *watch;
    struct backup_manifest manifest;
    struct {
        bool wanted;
        bool placed;
        char *draft; /* NULL: there is none */
    } files[BACKUP_PART_COUNT];
};

/* ---- what there is --------------------------------------------------------------------------- */

static enum status read_manifest(struct restoring *restoring, struct error *error)
{
    char *path = memory_format("%s/" BACKUP_MANIFEST, restoring->directory);
    struct buffer text = {0};
    int reason = file_read(path, MANIFEST_MAX, &text);
    enum status status = STATUS_OK;
    if (reason == ENOENT || reason == ENOTDIR)
        status = error_set(error, STATUS_MALFORMED,
                           "%s: is no backup: it has no " BACKUP_MANIFEST
                           "; name a directory that croupier backup made",
                           restoring->directory);
    else if (reason != 0)
        status = error_unavailable(error, "%s: cannot be read (%s)", path, strerror(reason));
    if (status == STATUS_OK) {
        status = backup_manifest_read(buffer_text(&text), &restoring->manifest, error);
        if (status != STATUS_OK)
            error_prefix(error, "%s", path);
    }
    buffer_free(&text);
    memory_free(path);
    return status;
}

static enum status require_absent(const char *path, const char *suffix, struct error *error)
{
    struct stat facts;
    char *name = memory_format("%s%s", path, suffix);
    enum status status = STATUS_OK;
    if (lstat(name, &facts) == 0)
        status = error_set(error, STATUS_EXISTS,
                           "%s: is there, and nothing is replaced; stop the service and move it "
                           "away first",
                           name);
    else if (errno != ENOENT)
        status = file_failed(error, name, "used");
    memory_free(name);
    return status;
}

/* A log or an index of another database would be taken for this one's. */
static enum status check_platform(const char *path, struct error *error)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", "-ids", "-last"};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0] && status == STATUS_OK; i++)
        status = require_absent(path, suffixes[i], error);
    return status;
}

/* It outlives what it is the key of, so the same one may be there. */
static enum status check_key(struct restoring *restoring, const char *path, struct error *error)
{
    const struct file_print *expected = &restoring->manifest.parts[BACKUP_SECRETS_KEY].print;
    struct file_print found;
    enum status status = file_read_print(path, NULL, &found, error);
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK;
    if (status != STATUS_OK)
        return status;
    if (!file_prints_equal(&found, expected))
        return error_set(error, STATUS_EXISTS,
                         "%s: is there, another key than the backup's, and nothing is replaced; "
                         "move it away first",
                         path);
    restoring->files[BACKUP_SECRETS_KEY].wanted = false;
    return STATUS_OK;
}

/* The odds' store makes its own (make_folders); where others are to stand, someone has to say. */
static enum status check_folder(const char *path, struct error *error)
{
    char *copy = memory_copy_string(path);
    const char *folder = dirname(copy);
    enum status status = STATUS_OK;
    if (access(folder, F_OK) != 0)
        status = error_unavailable(error,
                                   "%s: cannot be used (%s); make it first, for the service's user",
                                   folder, strerror(errno));
    memory_free(copy);
    return status;
}

static enum status check_targets(struct restoring *restoring, struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < BACKUP_PART_COUNT && status == STATUS_OK; i++) {
        const char *path = restoring->paths[i];
        restoring->files[i].wanted = path != NULL && restoring->manifest.parts[i].there;
        if (!restoring->files[i].wanted)
            continue;
        status = i == BACKUP_PLATFORM      ? check_platform(path, error)
                 : i == BACKUP_SECRETS_KEY ? check_key(restoring, path, error)
                                           : require_absent(path, "", error);
        if (status == STATUS_OK && restoring->files[i].wanted && i != BACKUP_ODDS)
            status = check_folder(path, error);
    }
    return status;
}

/* ---- copying --------------------------------------------------------------------------------- */

/* The directory of the odds' file, and the one above, which are the store's own. */
static enum status make_folders(const char *path, struct error *error)
{
    char *copy = memory_copy_string(path);
    char *above = memory_copy_string(path);
    enum status status = file_make_directory(dirname(dirname(above)), FOLDER_MODE, error);
    if (status == STATUS_OK)
        status = file_make_directory(dirname(copy), FOLDER_MODE, error);
    memory_free(copy);
    memory_free(above);
    return status;
}

static enum status copy_part(struct restoring *restoring, enum backup_part part,
                             struct error *error)
{
    const struct file_print *expected = &restoring->manifest.parts[part].print;
    const char *path = restoring->paths[part];
    struct file_print print;
    enum status status = part == BACKUP_ODDS ? make_folders(path, error) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    char *source = memory_format("%s/%s", restoring->directory, backup_part_names[part]);
    char *draft = memory_format("%s.restoring", path);
    status = file_copy(source, draft, modes[part], restoring->watch, &print, error);
    if (status == STATUS_OK)
        restoring->files[part].draft = draft; /* to be removed */
    else
        memory_free(draft);
    if (status == STATUS_EXISTS)
        error_prefix(error, "another restore runs, or broke off and left its file");
    if (status == STATUS_NOT_FOUND)
        status = error_set(
            error, STATUS_MALFORMED, "%s: is not there, and the manifest names it%s", source,
            part == BACKUP_SECRETS_KEY ? "; put the key itself where [casino] secrets_key_file is"
                                       : "");
    else if (status == STATUS_OK && !file_prints_equal(&print, expected))
        status = error_set(error, STATUS_MALFORMED,
                           "%s: the backup is damaged: this is not the file that its manifest "
                           "describes",
                           source);
    memory_free(source);
    return status;
}

/* ---- placing --------------------------------------------------------------------------------- */

static enum status place(struct restoring *restoring, enum backup_part part, struct error *error)
{
    const char *path = restoring->paths[part];
    if (link(restoring->files[part].draft, path) != 0)
        return file_failed(error, path, "made");
    restoring->files[part].placed = true;
    return file_sync_directory(path) == 0 ? STATUS_OK : file_failed(error, path, "written");
}

typedef enum status step(struct restoring *restoring, enum backup_part part, struct error *error);

static enum status each(struct restoring *restoring, step *take, struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < BACKUP_PART_COUNT && status == STATUS_OK; i++)
        if (restoring->files[order[i]].wanted)
            status = take(restoring, order[i], error);
    return status;
}

enum status restore_files(const char *directory, const char *const paths[BACKUP_PART_COUNT],
                          const struct progress_watch *watch, struct backup_manifest *manifest,
                          bool placed[BACKUP_PART_COUNT], struct error *error)
{
    struct restoring restoring = {.directory = directory, .paths = paths, .watch = watch};
    enum status status = read_manifest(&restoring, error);
    if (status == STATUS_OK)
        status = check_targets(&restoring, error);
    if (status == STATUS_OK)
        status = each(&restoring, copy_part, error);
    if (status == STATUS_OK)
        status = each(&restoring, place, error);
    for (size_t i = 0; i < BACKUP_PART_COUNT; i++) {
        if (status != STATUS_OK && restoring.files[i].placed)
            (void)unlink(paths[i]);
        if (restoring.files[i].draft != NULL)
            (void)unlink(restoring.files[i].draft);
        memory_free(restoring.files[i].draft);
        if (status == STATUS_OK)
            placed[i] = restoring.files[i].placed;
    }
    if (status == STATUS_OK)
        *manifest = restoring.manifest;
    return status;
}
