/* croupier platform copy, croupier odds copy: from one engine to another, and back. */
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/stores.h"
#include "operator/odds_copy.h"
#include "operator/platform_copy.h"

/* Long enough for the slowest single statement over all of a large store. */
#define PATIENCE_MS (3600U * 1000)
#define ODDS_PATIENCE_MS 60000U

/* The URI of the store that an argument of the line names, FROM (0) or TO (1), of a kind that this
 * setting may have, as `forms` says. A password from a file is for the configured store. */
static const char *read_uri(const struct command_line *line, size_t argument, const char *setting,
                            const char *configured, const char *forms)
{
    const char *given = command_argument(line, argument);
    const char *const overrides[] = {
        setting, given, "odds.password_file", "", "platform.password_file", "", NULL};
    const struct config *config = NULL;
    if (strcmp(given, "configured") == 0)
        return configured;
    /* The message does not quote the word: it may hold a password. */
    if (config_load(&config, command_config_path(line), overrides, NULL) != STATUS_OK)
        command_usage(line, "%s is no known kind of store; write %s, or: configured",
                      argument == 0 ? "FROM" : "TO", forms);
    config_release(&config);
    return given;
}

struct uris {
    const char *from, *to;
};

static struct uris read_uris(const struct command_line *line, const char *setting,
                             const char *configured, const char *forms)
{
    const struct uris uris = {read_uri(line, 0, setting, configured, forms),
                              read_uri(line, 1, setting, configured, forms)};
    if (strcmp(uris.from, uris.to) == 0)
        command_usage(line, "FROM and TO are the same store");
    return uris;
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

static struct platform_store *open_source(const struct command_line *line, const char *uri)
{
    const struct platform_store_options options = {
        .uri = uri, .timeout_ms = PATIENCE_MS, .reads = true};
    struct platform_store *store = NULL;
    struct error *error = command_error(line);
    enum status status = platform_store_open(&store, &options, error);
    leave_out_migrating(error);
    command_require(line, status);
    command_keep_platform(line, store);
    return store;
}

/* Makes the schema of an empty store. `croupier migrate` upgrades others, after a backup. */
static struct platform_store *open_target(const struct command_line *line, const char *uri)
{
    const struct platform_store_options options = {
        .uri = uri, .timeout_ms = PATIENCE_MS, .create = true};
    struct platform_store *store = NULL;
    struct platform_schema schema;
    uint32_t before;
    uint32_t after;
    command_require(line, platform_store_open(&store, &options, command_error(line)));
    command_keep_platform(line, store);
    command_require(line, platform_store_schema(store, &schema, command_error(line)));
    if (schema.version != 0 && schema.version < schema.newest)
        command_refuse(line,
                       "the target's schema %u is older than this program's %u; run: croupier "
                       "migrate",
                       schema.version, schema.newest);
    command_require(line, platform_store_migrate(store, &before, &after, command_error(line)));
    return store;
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
        {"blocks", records[RECORD_BLOCK], "blocks of players"},
        {"launches", records[RECORD_LAUNCH], "launches"},
        {"audit_rows", records[RECORD_TRAIL], "audit rows"},
        {"operators", records[RECORD_OPERATOR], "operators"},
        {"tokens", records[RECORD_TOKEN], "tokens"},
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

static void run_platform_copy(const struct command_line *line)
{
    struct platform_counts counts = {0};
    const struct uris uris =
        read_uris(line, "platform.store", command_config(line)->platform_store,
                  "sqlite:FILE or postgresql://USER:PASSWORD@HOST:PORT/DATABASE");
    struct text file = text_of(uris.from);
    bool sqlite = text_equals(text_cut(&file, ':'), TEXT("sqlite"));
    command_bound_reading(line, sqlite ? file.at : NULL, PATIENCE_MS);
    struct platform_store *from = open_source(line, uris.from);
    struct platform_store *to = open_target(line, uris.to);
    command_require(line,
                    platform_copy(from, to, command_watch(line), &counts, command_error(line)));
    command_end_progress(line);
    print_platform(line, &counts);
    if (counts.records[RECORD_PROVIDER] > 0)
        command_note(line, "providers' secrets are still sealed with the key of [casino] "
                           "secrets_key_file: every instance on the copy needs that file");
}

const struct command platform_commands[] = {
    {"copy", "FROM TO", &help_platform_copy, .run = run_platform_copy},
    {0},
};

/* ---- odds ------------------------------------------------------------------------------------ */

static struct odds_store *open_odds(const struct command_line *line, const char *uri, bool create)
{
    const struct odds_store_options options = {.uri = uri,
                                               .timeout_ms = ODDS_PATIENCE_MS,
                                               .prefix = command_config(line)->odds_prefix,
                                               .create = create,
                                               .feeds = true};
    struct odds_store *store = NULL;
    command_require(line, odds_store_open(&store, &options, command_error(line)));
    command_keep_odds(line, store);
    return store;
}

static void run_odds_copy(const struct command_line *line)
{
    struct odds_counts counts = {0};
    const struct uris uris = read_uris(line, "odds.store", command_config(line)->odds_store,
                                       "embedded:DIR, redis://HOST, rediss://HOST, unix:PATH, "
                                       "redis+sentinel://HOSTS/SERVICE or "
                                       "rediss+sentinel://HOSTS/SERVICE");
    struct odds_store *from = open_odds(line, uris.from, false);
    struct odds_store *to = open_odds(line, uris.to, true);
    command_require(line, odds_copy(from, to, command_option(line, "replace") != NULL,
                                    command_watch(line), &counts, command_error(line)));
    command_end_progress(line);
    const struct command_count rows[] = {{"catalogs", counts.catalogs, NULL},
                                         {"events", counts.events, NULL},
                                         {"bytes", counts.bytes, NULL},
                                         {0}};
    if (!command_write_counts(line, rows, JSON_COMPACT))
        (void)printf("%" PRIu64 " catalogs and the odds of %" PRIu64 " events (%" PRIu64
                     " bytes) are copied, read again and compared.\n",
                     counts.catalogs, counts.events, counts.bytes);
}

const struct command odds_commands[] = {
    {"copy", "FROM TO", &help_odds_copy, .run = run_odds_copy},
    {0},
};
