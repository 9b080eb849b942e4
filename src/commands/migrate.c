/* croupier migrate. */
#include <unistd.h>

#include "base/memory.h"
#include "commands/commands.h"
#include "commands/stores.h"
#include "sealing/secrets.h"
#include "stores/platform_records.h"

static bool count_provider(void *context, const void *record)
{
    size_t *count = context;
    (void)record;
    (*count)++;
    return true;
}

/*
 * The key that stored secrets are encrypted with. A key that was lost, or is still on another
 * machine, is not replaced unasked: every provider would see every player as a new one.
 */
static bool make_secrets_key(const struct command_line *line, size_t providers)
{
    const char *path = command_config(line)->secrets_key_file;
    struct error *error = command_error(line);
    bool made = false;
    if (providers > 0 && access(path, F_OK) != 0 && errno == ENOENT &&
        command_option(line, "new-secrets-key") == NULL)
        command_note(line,
                     "%s is not there, but secrets are stored under it: copy it from another "
                     "instance or a backup. Only if it is lost for good: --new-secrets-key",
                     path);
    else if (secrets_make_key(path, &made, error) != STATUS_OK)
        command_refuse(line, "the store is ready, but not the secrets key: %s", error->text);
    if (made)
        command_note(line, "%s is made: the secrets key of all instances; back it up", path);
    return made;
}

/* ---- what leads back ------------------------------------------------------------------------- */

/* Sees to a backup of a store that is to be changed. Returns its path; NULL: none is made here. */
static const char *require_backup(const struct command_line *line, struct platform_store *store)
{
    struct platform_schema schema;
    struct error *error = command_error(line);
    char *backup = NULL;
    command_require(line, platform_store_schema(store, &schema, error));
    if (schema.version == 0 || schema.version >= schema.newest ||
        command_option(line, "backed-up") != NULL || command_option(line, "no-backup") != NULL)
        return NULL;
    if (!schema.can_back_up) {
        if (command_at_terminal() &&
            command_ask(
                "The schema is to be upgraded from %u to %u, and only a backup leads back.\n"
                "Is there one (pg_dump)? yes or no: ",
                schema.version, schema.newest))
            return NULL;
        command_refuse(line,
                       "the schema is to be upgraded from %u to %u, and only a backup leads back; "
                       "make one (pg_dump), then run: croupier migrate --backed-up",
                       schema.version, schema.newest);
    }
    if (platform_store_back_up(store, NULL, &backup, error) != STATUS_OK)
        command_refuse(line,
                       "%s; nothing was changed; with a backup of your own, run: croupier migrate "
                       "--backed-up",
                       error->text);
    command_keep(line, memory_free, backup);
    command_note(line, "the store as it was, at schema %u, is in %s", schema.version, backup);
    return backup;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Says from which schema the store came to which; `backup`: its path, or NULL: none was made. */
static void print_migrated(const struct command_line *line, uint32_t before, uint32_t after,
                           const char *backup, bool key_made)
{
    struct json_writer *json = command_object(line, JSON_INDENTED);
    if (json != NULL) {
        json_unsigned(json, "before", before);
        json_unsigned(json, "after", after);
        json_string_or_null(json, "backup", backup);
        json_bool(json, "secrets_key_made", key_made);
    } else if (before == 0) {
        (void)printf("The platform store is made, at schema %u.\n", after);
    } else if (before == after) {
        (void)printf("The platform store is at schema %u; there was nothing to do.\n", after);
    } else {
        (void)printf("The platform store is upgraded from schema %u to %u.\n", before, after);
    }
}

void run_migrate(const struct command_line *line)
{
    struct platform_store *store = command_make_platform(line);
    uint32_t before, after;
    size_t providers = 0;
    store->watch = command_watch(line);
    const char *backup = require_backup(line, store);
    command_require(line, platform_store_migrate(store, &before, &after, command_error(line)));
    bool compared;
    command_require(line, platform_store_check_shape(store, &compared, command_error(line)));
    /* Each provider has a secret, which is stored under the key: so there was one. */
    command_require(line, platform_list(store, &provider_table, NULL, count_provider, &providers,
                                        command_error(line)));
    command_end_progress(line);
    bool key_made = make_secrets_key(line, providers);
    print_migrated(line, before, after, backup, key_made);
}
