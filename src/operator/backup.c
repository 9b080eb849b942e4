/* Making a backup; see backup.h. */
#include "operator/backup.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/version.h"
#include "stores/odds_feed.h"
#include "stores/platform_ledger.h"

struct making {
    const struct backup_sources *sources;
    const struct progress_watch *watch;
    struct backup_manifest *manifest;
    char *target; /* without a slash at its end */
    char *draft;  /* its name until it is whole */
};

/* ---- where it goes --------------------------------------------------------------------------- */

static bool is_empty(DIR *directory)
{
    const struct dirent *entry = readdir(directory);
    while (entry != NULL && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0))
        entry = readdir(directory);
    return entry == NULL;
}

static bool is_mount_point(int directory)
{
    struct stat own;
    struct stat above;
    return fstat(directory, &own) == 0 && fstatat(directory, "..", &above, 0) == 0 &&
           (own.st_dev != above.st_dev || own.st_ino == above.st_ino);
}

/* The rename at the end replaces an empty directory. A target that the rename would refuse is
 * refused at once. */
static enum status check_target(const char *target, struct error *error)
{
    DIR *directory = opendir(target);
    if (directory == NULL && errno == ENOENT)
        return STATUS_OK;
    if (directory == NULL)
        return error_set(error, errno == ENOTDIR ? STATUS_EXISTS : STATUS_UNAVAILABLE,
                         "%s: cannot be used (%s)", target, strerror(errno));
    enum status status = STATUS_OK;
    if (!is_empty(directory))
        status = error_set(error, STATUS_EXISTS,
                           "%s: is not empty; name a directory that is not there", target);
    else if (is_mount_point(dirfd(directory)))
        status = error_unavailable(error, "%s: is a mount point; name a directory in it", target);
    (void)closedir(directory);
    return status;
}

static void name_target(struct making *making, const char *directory)
{
    making->target = memory_copy_string(directory);
    for (size_t size = strlen(directory); size > 1 && making->target[size - 1] == '/'; size--)
        making->target[size - 1] = '\0';
    making->draft = memory_format("%s.unfinished-XXXXXX", making->target);
}

/* ---- its files ------------------------------------------------------------------------------- */

static enum status copy_platform(struct making *making, const char *path, struct error *error)
{
    struct platform_store *store = making->sources->platform;
    store->watch = making->watch;
    enum status status = platform_store_back_up(store, path, NULL, error);
    store->watch = NULL;
    return status;
}

static enum status copy_odds(struct making *making, const char *path, struct error *error)
{
    progress_tell(making->watch, "copying the odds", 0, 0);
    return odds_store_back_up(making->sources->odds, path, error);
}

static enum status copy_key(struct making *making, const char *path, struct error *error)
{
    struct file_print print;
    return file_copy(making->sources->secrets_key_file, path, 0600, NULL, &print, error);
}

/* Reads the file back, so that the manifest describes the bytes on the disk. */
static enum status add_part(struct making *making, enum backup_part part,
                            enum status (*copy)(struct making *, const char *, struct error *),
                            struct error *error)
{
    char *path = memory_format("%s/%s", making->draft, backup_part_names[part]);
    making->manifest->parts[part].as_of_ms = clock_wall_ms();
    enum status status = copy(making, path, error);
    if (status == STATUS_OK)
        status = file_read_print(path, making->watch, &making->manifest->parts[part].print, error);
    making->manifest->parts[part].there = true;
    memory_free(path);
    return status;
}

static enum status add_manifest(const struct making *making, struct error *error)
{
    struct buffer text = {0};
    making->manifest->made_ms = clock_wall_ms();
    (void)snprintf(making->manifest->program, sizeof making->manifest->program, "%s (%.30s)",
                   CROUPIER_VERSION_TEXT, croupier_commit);
    backup_manifest_write(making->manifest, &text);
    char *path = memory_format("%s/" BACKUP_MANIFEST, making->draft);
    enum status status = file_make(path, 0600, buffer_text(&text), error);
    if (status == STATUS_OK && file_sync_directory(path) != 0)
        status = file_failed(error, making->draft, "written");
    memory_free(path);
    buffer_free(&text);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status fill(struct making *making, struct error *error)
{
    const struct backup_sources *sources = making->sources;
    struct platform_schema schema;
    struct ledger_end end;
    enum status status = platform_store_schema(sources->platform, &schema, error);
    if (status == STATUS_OK) /* a timer would keep such backups and let the good ones go */
        status = platform_ledger_check_end(sources->platform, &end, error);
    if (status != STATUS_OK)
        return status;
    making->manifest->schema = schema.version;
    status = add_part(making, BACKUP_PLATFORM, copy_platform, error);
    if (status == STATUS_OK && sources->odds != NULL)
        status = add_part(making, BACKUP_ODDS, copy_odds, error);
    if (status == STATUS_OK && sources->secrets_key_file != NULL)
        status = add_part(making, BACKUP_SECRETS_KEY, copy_key, error);
    return status == STATUS_OK ? add_manifest(making, error) : status;
}

/* From here on it looks whole, and is. */
static enum status finish(const struct making *making, struct error *error)
{
    if (rename(making->draft, making->target) != 0)
        return error_set(error,
                         errno == ENOTEMPTY || errno == EEXIST ? STATUS_EXISTS : STATUS_UNAVAILABLE,
                         "%s: cannot be made (%s)", making->target, strerror(errno));
    int reason = file_sync_directory(making->target);
    return reason == 0 ? STATUS_OK
                       : error_unavailable(error, "%s: is made, but its name may not last (%s)",
                                           making->target, strerror(reason));
}

static void remove_draft(const struct making *making)
{
    struct buffer path = {0};
    for (size_t i = 0; i <= BACKUP_PART_COUNT; i++) {
        buffer_clear(&path);
        buffer_append_format(&path, "%s/%s", making->draft,
                             i < BACKUP_PART_COUNT ? backup_part_names[i] : BACKUP_MANIFEST);
        (void)unlink(buffer_string(&path));
    }
    (void)rmdir(making->draft);
    buffer_free(&path);
}

static enum status make(struct making *making, struct error *error)
{
    enum status status = check_target(making->target, error);
    if (status != STATUS_OK)
        return status;
    if (mkdtemp(making->draft) == NULL)
        return file_failed(error, making->target, "made");
    status = fill(making, error);
    if (status == STATUS_OK)
        status = finish(making, error);
    if (status != STATUS_OK)
        remove_draft(making); /* half a backup is none */
    return status;
}

/* ---- the last one ---------------------------------------------------------------------------- */

static const char *note_of(struct buffer *path, const char *platform_file)
{
    buffer_append_format(path, "%s-backed-up", platform_file);
    return buffer_string(path);
}

enum status backup_remember(const char *platform_file, const struct backup_manifest *manifest,
                            struct error *error)
{
    struct buffer path = {0}, text = {0};
    backup_manifest_write(manifest, &text);
    (void)unlink(note_of(&path, platform_file));
    enum status status = file_make(buffer_string(&path), 0600, buffer_text(&text), error);
    buffer_free(&path);
    buffer_free(&text);
    return status;
}

/* Judges by the file's time of change: commands run as root, and the service may not read their
 * files. */
int64_t backup_last_ms(const char *platform_file)
{
    struct buffer path = {0};
    struct stat note;
    bool there = stat(note_of(&path, platform_file), &note) == 0;
    buffer_free(&path);
    return there ? (int64_t)note.st_mtim.tv_sec * 1000 + note.st_mtim.tv_nsec / 1000000 : -1;
}

/* ---- making one ------------------------------------------------------------------------------ */

enum status backup_make(const char *directory, const struct backup_sources *sources,
                        const struct progress_watch *watch, struct backup_manifest *manifest,
                        struct error *error)
{
    struct backup_manifest made = {.made_ms = 0};
    struct making making = {.sources = sources, .watch = watch, .manifest = &made};
    name_target(&making, directory);
    enum status status = make(&making, error);
    memory_free(making.target);
    memory_free(making.draft);
    if (status == STATUS_OK)
        *manifest = made;
    return status;
}
