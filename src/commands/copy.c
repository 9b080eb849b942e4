/* croupier platform copy, croupier odds copy: from one engine to another, and back. */
#include <inttypes.h>
#include <string.h>

#include "cli/document.h"
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

/* Which store of the configuration is copied. */
struct kind {
    const char *setting;
    const char *forms;
};
static const struct kind platform_kind = {
    "platform.store", "sqlite:FILE or postgresql://USER:PASSWORD@HOST:PORT/DATABASE"};
static const struct kind odds_kind = {"odds.store",
                                      "embedded:DIR, redis://HOST, rediss://HOST, unix:PATH or "
                                      "redis+sentinel://HOSTS/SERVICE"};

struct stores {
    const struct config *config; /* from which they may be */
    const char *from;
    const char *to;
};

/* The same that the configuration takes. */
static bool is_of_kind(const struct command_line *line, const struct kind *kind, const char *uri)
{
    const char *const overrides[] = {kind->setting, uri, NULL};
    const struct config *config = NULL;
    bool is = config_load(&config, command_config_path(line), overrides, NULL) == STATUS_OK;
    config_release(&config);
    return is;
}

static int check_stores(const struct command_line *line, const struct kind *kind,
                        const struct stores *stores)
{
    bool from = is_of_kind(line, kind, stores->from);
    /* The message does not quote the word: it may hold a password. */
    if (!from || !is_of_kind(line, kind, stores->to))
        return command_usage(line, "%s is no known kind of store; write %s, or: configured",
                             from ? "TO" : "FROM", kind->forms);
    if (strcmp(stores->from, stores->to) == 0)
        return command_usage(line, "FROM and TO are the same store");
    return EXIT_DONE;
}

static const char *uri_of(const char *argument, const char *configured)
{
    return strcmp(argument, "configured") == 0 ? configured : argument;
}

/* EXIT_DONE, and the configuration is to be released; else all has been said. */
static int read_stores(const struct command_line *line, const struct kind *kind,
                       struct stores *stores)
{
    if (!command_config(line, &stores->config))
        return EXIT_REFUSED;
    const char *configured =
        kind == &odds_kind ? stores->config->odds_store : stores->config->platform_store;
    stores->from = uri_of(command_argument(line, 0), configured);
    stores->to = uri_of(command_argument(line, 1), configured);
    int result = check_stores(line, kind, stores);
    if (result != EXIT_DONE)
        config_release(&stores->config);
    return result;
}

/* Reads the stores and copies; all but success has been said. */
typedef enum status copier(const struct command_line *line, const struct stores *stores,
                           struct progress *progress, void *counts, struct error *error);

static int run_copy(const struct command_line *line, const struct kind *kind, copier *copy,
                    void *counts)
{
    struct progress progress = {0};
    struct stores stores = {0};
    struct error error = {0};
    int result = read_stores(line, kind, &stores);
    if (result != EXIT_DONE)
        return result;
    enum status status = copy(line, &stores, &progress, counts, &error);
    progress_end(&progress);
    config_release(&stores.config);
    return status == STATUS_OK ? EXIT_DONE : command_refuse(line, "%s", error.text);
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
    struct platform_store_options options = {.uri = stores->from, .timeout_ms = PATIENCE_MS};
    struct platform_schema schema;
    uint32_t before;
    uint32_t after;
    enum status status = platform_store_open(from, &options, error);
    if (status != STATUS_OK) {
        leave_out_migrating(error);
        return status;
    }
    options.uri = stores->to;
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
    const struct document_count rows[] = {
        {"customers", records[RECORD_CUSTOMER]},
        {"keys", records[RECORD_KEY]},
        {"addresses", records[RECORD_ADDRESS]},
        {"providers", records[RECORD_PROVIDER]},
        {"games", records[RECORD_GAME]},
        {"game_lists", records[RECORD_GAME_POLICY]},
        {"players", records[RECORD_PLAYER]},
        {"launches", records[RECORD_LAUNCH]},
        {"audit_rows", records[RECORD_TRAIL]},
        {"operators", records[RECORD_OPERATOR]},
        {"transactions", counts->transactions},
        {"entries", counts->entries},
        {0},
    };
    static const char *const shown[] = {
        "customers",           "keys",          "addresses", "providers",  "games",
        "lists of games",      "players",       "launches",  "audit rows", "operators",
        "wallet transactions", "ledger entries"};
    if (command_json(line)) {
        document_print_counts(rows, JSON_INDENTED);
        return;
    }
    for (size_t i = 0; rows[i].name != NULL; i++)
        (void)printf("%10" PRIu64 "  %s\n", rows[i].count, shown[i]);
    (void)puts("Copied, read again and compared; the ledger is whole.");
}

static enum status copy_platform(const struct command_line *line, const struct stores *stores,
                                 struct progress *progress, void *counts, struct error *error)
{
    struct platform_store *from = NULL;
    struct platform_store *to = NULL;
    const char *file = strchr(stores->from, ':') + 1;
    bool sqlite = text_starts_with(text_of(stores->from), TEXT("sqlite:"));
    command_bound_reading(line, sqlite ? file : NULL, PATIENCE_MS);
    enum status status = open_both(stores, &from, &to, error);
    if (status == STATUS_OK)
        status = platform_copy(from, to, show_progress, progress, counts, error);
    platform_store_close(&from);
    platform_store_close(&to);
    return status;
}

static int run_platform_copy(const struct command_line *line)
{
    struct platform_counts counts = {0};
    int code = run_copy(line, &platform_kind, copy_platform, &counts);
    if (code != EXIT_DONE)
        return code;
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

static enum status open_odds(const struct stores *stores, struct odds_store **from,
                             struct odds_store **to, struct error *error)
{
    struct odds_store_options options = {
        .uri = stores->from, .timeout_ms = ODDS_PATIENCE_MS, .prefix = stores->config->odds_prefix};
    enum status status = odds_store_open(from, &options, error);
    if (status != STATUS_OK)
        return status;
    options.uri = stores->to;
    options.create = true;
    return odds_store_open(to, &options, error);
}

static enum status copy_odds(const struct command_line *line, const struct stores *stores,
                             struct progress *progress, void *counts, struct error *error)
{
    struct odds_store *from = NULL;
    struct odds_store *to = NULL;
    bool replace = command_option(line, "replace") != NULL;
    enum status status = open_odds(stores, &from, &to, error);
    if (status == STATUS_OK)
        status = odds_copy(from, to, replace, show_progress, progress, counts, error);
    odds_store_close(&from);
    odds_store_close(&to);
    return status;
}

static int run_odds_copy(const struct command_line *line)
{
    struct odds_counts counts = {0};
    int code = run_copy(line, &odds_kind, copy_odds, &counts);
    if (code != EXIT_DONE)
        return code;
    const struct document_count rows[] = {
        {"catalogs", counts.catalogs}, {"events", counts.events}, {"bytes", counts.bytes}, {0}};
    if (command_json(line))
        document_print_counts(rows, JSON_COMPACT);
    else
        (void)printf("%" PRIu64 " catalogs and the odds of %" PRIu64 " events (%" PRIu64
                     " bytes) are copied, read again and compared.\n",
                     counts.catalogs, counts.events, counts.bytes);
    return EXIT_DONE;
}

const struct command odds_commands[] = {
    {"copy", "FROM TO", &help_odds_copy, .options = odds_options, .run = run_odds_copy},
    {0},
};
