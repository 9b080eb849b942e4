/* croupier platform copy, croupier odds copy: from one engine to another, and back. */
#include <inttypes.h>
#include <string.h>

#include "cli/progress.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/platform.h"
#include "operator/odds_copy.h"
#include "operator/platform_copy.h"

/* Long enough for the slowest single statement over all of a large store. */
#define PATIENCE_MS (3600U * 1000)
#define ODDS_PATIENCE_MS 60000U

static void show_progress(void *context, const char *what, uint64_t done)
{
    progress_show(context, done, 0, what);
}

struct stores {
    const struct config *config;
    const char *uris[2]; /* FROM, TO */
    struct progress progress;
};

/* The stores that the line names, of a kind that this setting may have, as `forms` says. EXIT_DONE,
 * or the exit code after a refusal. */
static int read_stores(const struct command_line *line, const char *setting, const char *forms,
                       struct stores *stores)
{
    static const char *const names[] = {"FROM", "TO"};
    *stores = (struct stores){.config = command_config(line)};
    if (stores->config == NULL)
        return EXIT_REFUSED;
    for (size_t i = 0; i < 2; i++) {
        const char *given = command_argument(line, i);
        const char *const overrides[] = {setting, given, NULL};
        const struct config *config = NULL;
        if (strcmp(given, "configured") == 0)
            given = strcmp(setting, "odds.store") == 0 ? stores->config->odds_store
                                                       : stores->config->platform_store;
        /* The message does not quote the word: it may hold a password. */
        else if (config_load(&config, command_config_path(line), overrides, NULL) != STATUS_OK)
            return command_usage(line, "%s is no known kind of store; write %s, or: configured",
                                 names[i], forms);
        config_release(&config);
        stores->uris[i] = given;
    }
    return strcmp(stores->uris[0], stores->uris[1]) == 0
               ? command_usage(line, "FROM and TO are the same store")
               : EXIT_DONE;
}

/* ---- platform -------------------------------------------------------------------------------- */

/* Migrating a store that is absent or empty would not help. */
static void leave_out_migrating(struct error *error)
{
    static const char *const missing[] = {": there is no such file;", ": is empty;"};
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        char *at = strstr(error->text, missing[i]);
        if (at != NULL)
            at[strlen(missing[i]) - 1] = '\0';
    }
}

static enum status open_both(const struct stores *stores, struct platform_store **from,
                             struct platform_store **to, struct error *error)
{
    struct platform_store_options options = {.uri = stores->uris[0], .timeout_ms = PATIENCE_MS};
    struct platform_schema schema;
    uint32_t before;
    uint32_t after;
    enum status status = platform_store_open(from, &options, error);
    if (status != STATUS_OK) {
        leave_out_migrating(error);
        return status;
    }
    options.uri = stores->uris[1];
    options.create = true;
    status = platform_store_open(to, &options, error);
    if (status == STATUS_OK)
        status = platform_store_schema(*to, &schema, error);
    /* Made when it is empty, and never upgraded: that is for `croupier migrate`, after a backup. */
    if (status == STATUS_OK && schema.version != 0 && schema.version < schema.newest)
        status = error_set(error, STATUS_INVALID,
                           "the target's schema %u is older than this program's %u; run: croupier "
                           "migrate",
                           schema.version, schema.newest);
    return status == STATUS_OK ? platform_store_migrate(*to, &before, &after, error) : status;
}

static void print_platform(const struct command_line *line, const struct platform_counts *counts)
{
    const uint64_t *records = counts->records;
    const struct command_count rows[] = {
        {"customers", records[RECORD_CUSTOMER], "customers"},
        {"keys", records[RECORD_KEY], "keys"},
        {"addresses", records[RECORD_ADDRESS], "addresses"},
        {"providers", records[RECORD_PROVIDER], "providers"},
        {"games", records[RECORD_GAME], "games"},
        {"game_lists", records[RECORD_GAME_POLICY], "lists of games"},
        {"players", records[RECORD_PLAYER], "players"},
        {"launches", records[RECORD_LAUNCH], "launches"},
        {"audit_rows", records[RECORD_TRAIL], "audit rows"},
        {"operators", records[RECORD_OPERATOR], "operators"},
        {"transactions", counts->transactions, "wallet transactions"},
        {"entries", counts->entries, "ledger entries"},
        {0},
    };
    if (command_write_counts(line, rows, JSON_INDENTED))
        return;
    for (const struct command_count *row = rows; row->name != NULL; row++)
        (void)printf("%10" PRIu64 "  %s\n", row->count, row->shown);
    (void)puts("Copied, read again and compared; the ledger is whole.");
}

static int run_platform_copy(const struct command_line *line)
{
    struct stores stores;
    struct platform_counts counts = {0};
    struct platform_store *from = NULL, *to = NULL;
    struct error error = {0};
    int code = read_stores(line, "platform.store",
                           "sqlite:FILE or postgresql://USER:PASSWORD@HOST:PORT/DATABASE", &stores);
    if (code != EXIT_DONE)
        return code;
    struct text file = text_of(stores.uris[0]);
    bool sqlite = text_equals(text_cut(&file, ':'), TEXT("sqlite"));
    command_bound_reading(line, sqlite ? file.at : NULL, PATIENCE_MS);
    enum status status = open_both(&stores, &from, &to, &error);
    if (status == STATUS_OK)
        status = platform_copy(from, to, show_progress, &stores.progress, &counts, &error);
    platform_store_close(&from);
    platform_store_close(&to);
    progress_end(&stores.progress);
    if (status != STATUS_OK)
        return command_end(line, status, &error);
    print_platform(line, &counts);
    if (counts.records[RECORD_PROVIDER] > 0)
        command_note(line, "providers' secrets are still sealed with the key of [casino] "
                           "secrets_key_file: every instance on the copy needs that file");
    return EXIT_DONE;
}

const struct command platform_commands[] = {
    {"copy", "FROM TO", &help_platform_copy, .run = run_platform_copy},
    {0},
};

/* ---- odds ------------------------------------------------------------------------------------ */

static const struct command_option odds_options[] = {
    {.name = "replace", .help = "withdraw what TO holds first; else TO must be empty"},
    {0},
};

static enum status copy_odds(const struct command_line *line, struct stores *stores,
                             struct odds_counts *counts, struct error *error)
{
    struct odds_store *from = NULL, *to = NULL;
    struct odds_store_options options = {.uri = stores->uris[0],
                                         .timeout_ms = ODDS_PATIENCE_MS,
                                         .prefix = stores->config->odds_prefix};
    enum status status = odds_store_open(&from, &options, error);
    options.uri = stores->uris[1];
    options.create = true;
    if (status == STATUS_OK)
        status = odds_store_open(&to, &options, error);
    if (status == STATUS_OK)
        status = odds_copy(from, to, command_option(line, "replace") != NULL, show_progress,
                           &stores->progress, counts, error);
    odds_store_close(&from);
    odds_store_close(&to);
    progress_end(&stores->progress);
    return status;
}

static int run_odds_copy(const struct command_line *line)
{
    struct stores stores;
    struct odds_counts counts = {0};
    struct error error = {0};
    int code = read_stores(line, "odds.store",
                           "embedded:DIR, redis://HOST, rediss://HOST, unix:PATH or "
                           "redis+sentinel://HOSTS/SERVICE",
                           &stores);
    if (code != EXIT_DONE)
        return code;
    enum status status = copy_odds(line, &stores, &counts, &error);
    if (status != STATUS_OK)
        return command_end(line, status, &error);
    const struct command_count rows[] = {{"catalogs", counts.catalogs, NULL},
                                         {"events", counts.events, NULL},
                                         {"bytes", counts.bytes, NULL},
                                         {0}};
    if (!command_write_counts(line, rows, JSON_COMPACT))
        (void)printf("%" PRIu64 " catalogs and the odds of %" PRIu64 " events (%" PRIu64
                     " bytes) are copied, read again and compared.\n",
                     counts.catalogs, counts.events, counts.bytes);
    return EXIT_DONE;
}

const struct command odds_commands[] = {
    {"copy", "FROM TO", &help_odds_copy, .options = odds_options, .run = run_odds_copy},
    {0},
};
