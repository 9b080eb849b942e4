/* croupier migrate. */
#include <errno.h>
#include <unistd.h>

#include "cli/document.h"
#include "commands/commands.h"
#include "commands/platform.h"
#include "help_texts.h"
#include "records/secrets.h"
#include "stores/platform.h"

static bool count_provider(void *context, const struct provider_record *record)
{
    size_t *count = context;
    (void)record;
    (*count)++;
    return true;
}

/* Of providers whose secrets are stored, so that there was a key. */
static enum status count_providers(struct platform_store *store, size_t *count, struct error *error)
{
    const struct record_visitor visit = {.provider = count_provider, .context = count};
    uint64_t revision;
    return platform_games_read(store, &visit, &revision, error);
}

/*
 * The key that stored secrets are encrypted with. A key that was lost, or is still on another
 * machine, is not replaced unasked: every provider would see every player as somebody new.
 */
static bool make_secrets_key(const struct command_line *line, size_t providers, bool *made)
{
    const struct config *config = NULL;
    struct error error = {0};
    if (!command_config(line, &config))
        return false;
    enum status status = STATUS_OK;
    const char *path = config->secrets_key_file;
    if (providers > 0 && access(path, F_OK) != 0 && errno == ENOENT &&
        command_option(line, "new-secrets-key") == NULL)
        command_note(line,
                     "%s is not there, but secrets are stored under it: copy it from another "
                     "instance or from its backup. Only if it is lost for good: --new-secrets-key",
                     path);
    else
        status = secrets_make_key(path, made, &error);
    if (status == STATUS_OK && *made)
        command_note(line, "%s is made: the key of stored secrets; back it up", path);
    config_release(&config);
    if (status != STATUS_OK)
        (void)command_refuse(line, "%s", error.text);
    return status == STATUS_OK;
}

static int run_migrate(const struct command_line *line)
{
    struct platform_store *store = NULL;
    struct error error = {0};
    uint32_t before = 0;
    uint32_t after = 0;
    size_t providers = 0;
    bool key_made = false;
    if (!command_open_platform(line, true, &store))
        return EXIT_REFUSED;
    enum status status = platform_store_migrate(store, &before, &after, &error);
    if (status == STATUS_OK)
        status = count_providers(store, &providers, &error);
    platform_store_close(&store);
    if (status != STATUS_OK)
        return command_refuse(line, "%s", error.text);
    if (!make_secrets_key(line, providers, &key_made))
        return EXIT_REFUSED;
    if (command_json(line)) {
        struct document document;
        struct json_writer *json = document_object(&document, JSON_INDENTED);
        json_unsigned(json, "before", before);
        json_unsigned(json, "after", after);
        json_bool(json, "secrets_key_made", key_made);
        document_print(&document);
    } else if (before == 0) {
        (void)printf("The platform store is made, at schema %u.\n", after);
    } else if (before == after) {
        (void)printf("The platform store is at schema %u; there was nothing to do.\n", after);
    } else {
        (void)printf("The platform store is upgraded from schema %u to %u.\n", before, after);
    }
    return EXIT_DONE;
}

static const struct command_option migrate_options[] = {
    {.name = "new-secrets-key",
     .help = "make a key although secrets are stored under one that is lost"},
    {0},
};

const struct command migrate_commands[] = {
    {"migrate", "", &help_migrate, .options = migrate_options, .run = run_migrate},
    {0},
};
