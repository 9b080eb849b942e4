/* croupier backup, croupier restore: of an installation on embedded stores. */
#include "operator/backup.h"
#include "base/clock.h"
#include "commands/commands.h"
#include "commands/stores.h"
#include "commands/wallet_output.h"
#include "stores/configured.h"

#define ODDS_PATIENCE_MS 60000U

/* The configuration, which names a SQLite file. */
static const struct config *configuration(const struct command_line *line)
{
    const struct config *config = command_config(line);
    if (config_platform_file(config) == NULL)
        command_refuse(line,
                       "the platform store is in PostgreSQL, whose own tools back it up and "
                       "restore it (pg_dump, pg_basebackup): see docs/postgresql.md, \"Backup\"");
    return config;
}

/* ---- backup ---------------------------------------------------------------------------------- */

static void print_files(const struct backup_manifest *manifest)
{
    static const char *const headers[] = {"FILE", "BYTES", "AS OF", NULL};
    struct table *table = table_create(headers);
    for (size_t i = 0; i < BACKUP_PART_COUNT; i++) {
        char bytes[24];
        char as_of[CLOCK_TEXT_SIZE];
        if (!manifest->parts[i].there)
            continue;
        (void)snprintf(bytes, sizeof bytes, "%" PRIu64, manifest->parts[i].print.bytes);
        clock_format_rfc3339(manifest->parts[i].as_of_ms, as_of);
        TABLE_ROW(table, backup_part_names[i], bytes, as_of);
    }
    table_print(&table, stdout);
}

static void print_backup(const struct command_line *line, const struct backup_manifest *manifest)
{
    struct buffer *text = command_buffer(line);
    if (command_json(line)) {
        backup_manifest_write(manifest, text);
        (void)fwrite(text->data, 1, text->size, stdout);
        return;
    }
    print_files(manifest);
    (void)printf("Backed up to %s, with a manifest of digests.\n", command_argument(line, 0));
}

/* The embedded odds; NULL: they are not backed up. */
static struct odds_store *open_odds(const struct command_line *line)
{
    const struct config *config = command_config(line);
    const char *directory = config_odds_directory(config);
    struct odds_store_options options = odds_store_configured(config);
    struct odds_store *odds = NULL;
    struct error *error = command_error(line);
    if (directory == NULL || command_option(line, "no-odds") != NULL)
        return NULL;
    if (access(directory, F_OK) != 0 && errno == ENOENT) {
        command_note(line, "there are no odds yet in %s, and so none in the backup", directory);
        return NULL;
    }
    options.timeout_ms = ODDS_PATIENCE_MS;
    if (odds_store_open(&odds, &options, error) != STATUS_OK)
        command_refuse(line, "the odds cannot be backed up, which --no-odds leaves out: %s",
                       error->text);
    command_keep_odds(line, odds);
    return odds;
}

void run_backup(const struct command_line *line)
{
    const struct config *config = configuration(line);
    struct backup_manifest manifest;
    struct error *error = command_error(line);
    struct backup_sources sources = {.platform = command_platform(line)};
    sources.odds = open_odds(line);
    if (command_option(line, "with-secrets-key") != NULL)
        sources.secrets_key_file = config->secrets_key_file;
    command_require(line, backup_make(command_argument(line, 0), &sources, command_watch(line),
                                      &manifest, error));
    command_end_progress(line);
    if (backup_remember(config_platform_file(config), &manifest, error) != STATUS_OK)
        command_note(line, "croupier_backup_age_seconds does not count this backup: %s",
                     error->text);
    print_backup(line, &manifest);
    if (config_odds_directory(config) == NULL)
        command_note(line, "the odds are in a server of their own, and not in the backup");
}

/* ---- restore --------------------------------------------------------------------------------- */

struct restored {
    struct backup_manifest manifest;
    bool placed[BACKUP_PART_COUNT];
    uint32_t schema; /* after migration */
    struct audit_result audit;
};

static void print_restored(const struct command_line *line, const struct restored *restored)
{
    const struct backup_manifest *manifest = &restored->manifest;
    struct json_writer *json = command_object(line, JSON_INDENTED);
    char as_of[CLOCK_TEXT_SIZE];
    clock_format_rfc3339(manifest->parts[BACKUP_PLATFORM].as_of_ms, as_of);
    if (json == NULL) {
        (void)printf("Restored as of %s, from a backup that %s made. The ledger is sound: ", as_of,
                     manifest->program);
        wallet_print_extent(&restored->audit);
        (void)puts(".");
        return;
    }
    json_string(json, "as_of", as_of);
    json_array(json, "restored");
    for (size_t i = 0; i < BACKUP_PART_COUNT; i++)
        if (restored->placed[i])
            json_string(json, NULL, backup_part_names[i]);
    json_end(json);
    json_unsigned(json, "schema_before", manifest->schema);
    json_unsigned(json, "schema", restored->schema);
    json_bool(json, "sound", true);
    json_unsigned(json, "entries", restored->audit.entries);
    json_unsigned(json, "players", restored->audit.players);
}

/* Migrates an older schema to this program's, from which only the backup leads back, and
 * verifies the ledger. */
static void migrate_and_verify(const struct command_line *line, struct restored *restored)
{
    struct platform_store *store = command_make_platform(line);
    uint32_t before;
    command_require(line,
                    platform_store_migrate(store, &before, &restored->schema, command_error(line)));
    wallet_verify_whole(line, &restored->audit);
}

void run_restore(const struct command_line *line)
{
    const struct config *config = configuration(line);
    const char *odds_directory = config_odds_directory(config);
    struct restored restored = {.schema = 0};
    struct buffer *odds = command_buffer(line);
    const char *paths[BACKUP_PART_COUNT] = {[BACKUP_PLATFORM] = config_platform_file(config),
                                            [BACKUP_SECRETS_KEY] = config->secrets_key_file};
    if (command_option(line, "with-odds") != NULL) {
        if (odds_directory == NULL)
            command_refuse(line, "[odds] store is a server; --with-odds is for embedded:DIR");
        buffer_append_format(odds, "%s/values/data.mdb", odds_directory);
        paths[BACKUP_ODDS] = buffer_string(odds);
    }
    command_require(line, restore_files(command_argument(line, 0), paths, command_watch(line),
                                        &restored.manifest, restored.placed, command_error(line)));
    command_end_progress(line);
    command_last_words(line, "the files are in place, but do not start the service on them");
    migrate_and_verify(line, &restored);
    print_restored(line, &restored);
    if (access(config->secrets_key_file, F_OK) != 0 && errno == ENOENT)
        command_note(line,
                     "%s is not there: the key of stored secrets, which is kept apart; put "
                     "it there before the service starts",
                     config->secrets_key_file);
}
