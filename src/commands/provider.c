/* croupier provider add | list | show | set | enable | disable. */
#include <string.h>

#include <openssl/crypto.h>

#include "cli/input.h"
#include "commands/commands.h"
#include "commands/platform.h"
#include "operator/providers.h"

#define SECRET_SHORT 32U /* bytes: RFC 7518 section 3.2 wants no less of an HS256 key */

/* ---- printing -------------------------------------------------------------------------------- */

static void print_provider(const struct command_line *line, const struct provider_record *record)
{
    char created[CLOCK_TEXT_SIZE];
    if (command_json(line)) {
        yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
        command_print_value(doc, provider_json(doc, record));
        return;
    }
    clock_format_rfc3339(record->created_ms, created);
    (void)printf("id          %s\n", record->id);
    (void)printf("name        %s\n", record->name);
    (void)printf("enabled     %s\n", record->enabled ? "yes" : "no");
    if (!record->usable)
        (void)puts("usable      no: the stored record cannot be read, so its games are hidden");
    (void)printf("%s  %s\n", record->launch_call ? "endpoint  " : "launch url", record->launch_url);
    (void)printf("return url  %s\n", record->return_url[0] != '\0' ? record->return_url : "none");
    (void)printf("audience    %s\n", record->audience);
    (void)printf("secret      set\n");
    (void)printf("created     %s\n", created);
}

/* ---- the secret ------------------------------------------------------------------------------ */

/* Reads it from standard input when --secret says so; one line end after it is not part of it.
 * False, and `code` set, when refused. */
static bool read_secret(const struct command_line *line, struct buffer *secret, int *code)
{
    const char *given = command_option(line, "secret");
    const char *name;
    struct error error;
    if (given == NULL)
        return true;
    if (strcmp(given, "-") != 0) {
        *code = command_usage(line, "write --secret - and give the secret on standard input: "
                                    "others could read it on the command line");
        return false;
    }
    /* Room for all of it at once: a buffer that grows would leave copies behind. */
    buffer_reserve(secret, SECRETS_PLAIN_MAX + 8);
    if (command_read_document("-", SECRETS_PLAIN_MAX + 2, &name, secret, &error) != STATUS_OK) {
        *code = command_refuse(line, "%s", error.text);
        return false;
    }
    if (secret->size > 0 && secret->data[secret->size - 1] == '\n')
        secret->size--;
    if (secret->size > 0 && secret->data[secret->size - 1] == '\r')
        secret->size--;
    if (secret->size == 0 || secret->size > SECRETS_PLAIN_MAX) {
        *code = command_refuse(line, "the secret on standard input must be 1 to %u bytes",
                               SECRETS_PLAIN_MAX);
        return false;
    }
    return true;
}

static void wipe(struct buffer *secret)
{
    if (secret->data != NULL)
        OPENSSL_cleanse(secret->data, secret->capacity);
    buffer_free(secret);
}

/* The key that secrets are sealed with; prints the refusal and returns false. */
static bool open_secrets(const struct command_line *line, struct secrets **secrets)
{
    const struct config *config = NULL;
    struct error error;
    if (!command_config(line, &config))
        return false;
    enum status status = secrets_open_key(secrets, config->secrets_key_file, &error);
    config_release(&config);
    if (status == STATUS_OK)
        return true;
    (void)command_refuse(line, "%s", error.text);
    return false;
}

static void note_short_secret(const struct command_line *line, size_t size)
{
    if (size > 0 && size < SECRET_SHORT)
        command_note(line, "the secret is shorter than %u bytes, which RFC 7518 wants for HS256",
                     SECRET_SHORT);
}

static void note_open_url(const struct command_line *line, const char *launch_url)
{
    if (launch_url != NULL && !game_url_is_guarded(text_of(launch_url)))
        command_note(line,
                     "the launch URL is not https://: whoever is on the way to it can read and "
                     "use its tokens");
}

/* ---- the commands ---------------------------------------------------------------------------- */

static void read_options(const struct command_line *line, struct provider_settings *settings)
{
    settings->name = command_option(line, "name");
    settings->launch_url = command_option(line, "launch-url");
    settings->launch_endpoint = command_option(line, "launch-endpoint");
    settings->return_url = command_option(line, "return-url");
    settings->audience = command_option(line, "audience");
}

/* With the secret read: adds or changes. */
static int put(const struct command_line *line, struct provider_settings *settings, bool add)
{
    struct provider_record record = {0};
    struct platform_store *store = NULL;
    struct secrets *secrets = NULL;
    struct error error = {0};
    const char *id = command_argument(line, 0);
    if (settings->secret.size > 0 && !open_secrets(line, &secrets))
        return EXIT_REFUSED;
    if (!command_open_platform(line, false, &store)) {
        secrets_destroy(&secrets);
        return EXIT_REFUSED;
    }
    enum status status =
        add ? providers_add(store, secrets, id, settings, clock_wall_ms(), &record, &error)
            : providers_change(store, secrets, id, settings, &record, &error);
    platform_store_close(&store);
    secrets_destroy(&secrets);
    if (status != STATUS_OK)
        return command_fail(line, status, &error);
    if (settings->enabled != SETTING_LEAVE && !command_json(line))
        (void)printf("%s is %s.\n", record.id, record.enabled ? "enabled" : "disabled");
    else
        print_provider(line, &record);
    note_short_secret(line, settings->secret.size);
    note_open_url(line, settings->launch_url);
    return EXIT_DONE;
}

static int run_add(const struct command_line *line)
{
    struct provider_settings settings = {0};
    struct buffer secret = {0};
    int code = EXIT_REFUSED;
    read_options(line, &settings);
    if (settings.launch_url != NULL && settings.launch_endpoint != NULL)
        return command_usage(line, "--launch-url and --launch-endpoint exclude each other");
    if (settings.name == NULL ||
        (settings.launch_url == NULL && settings.launch_endpoint == NULL) ||
        command_option(line, "secret") == NULL)
        return command_usage(
            line, "--name, --launch-url (or --launch-endpoint) and --secret - are needed");
    if (read_secret(line, &secret, &code)) {
        settings.secret = buffer_text(&secret);
        code = put(line, &settings, true);
    }
    wipe(&secret);
    return code;
}

static int run_set(const struct command_line *line)
{
    struct provider_settings settings = {0};
    struct buffer secret = {0};
    int code = EXIT_REFUSED;
    bool no_return_url = command_option(line, "no-return-url") != NULL;
    read_options(line, &settings);
    if (no_return_url && settings.return_url != NULL)
        return command_usage(line, "--return-url and --no-return-url contradict each other");
    if (no_return_url)
        settings.return_url = "";
    if (settings.launch_url != NULL && settings.launch_endpoint != NULL)
        return command_usage(line, "--launch-url and --launch-endpoint exclude each other");
    if (settings.name == NULL && settings.launch_url == NULL && settings.launch_endpoint == NULL &&
        settings.return_url == NULL && settings.audience == NULL &&
        command_option(line, "secret") == NULL)
        return command_usage(line, "nothing to set");
    if (read_secret(line, &secret, &code)) {
        settings.secret = buffer_text(&secret);
        code = put(line, &settings, false);
    }
    wipe(&secret);
    return code;
}

static int run_enable(const struct command_line *line)
{
    struct provider_settings settings = {.enabled = SETTING_ON};
    return put(line, &settings, false);
}

static int run_disable(const struct command_line *line)
{
    struct provider_settings settings = {.enabled = SETTING_OFF};
    return put(line, &settings, false);
}

static int run_show(const struct command_line *line)
{
    struct provider_record record;
    struct platform_store *store = NULL;
    struct error error = {0};
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status = providers_get(store, command_argument(line, 0), &record, &error);
    platform_store_close(&store);
    if (status != STATUS_OK)
        return command_fail(line, status, &error);
    print_provider(line, &record);
    return EXIT_DONE;
}

static bool list_provider(void *context, const struct provider_record *record)
{
    struct listing *listing = context;
    if (listing->doc != NULL) {
        listing_add(listing, provider_json(listing->doc, record));
        return true;
    }
    table_cell(listing->table, "%s", record->id);
    table_cell(listing->table, "%s", record->name);
    table_cell(listing->table, "%s", !record->usable ? "unusable" : record->enabled ? "yes" : "no");
    table_cell(listing->table, "%s%s", record->launch_url, record->launch_call ? " (called)" : "");
    table_time(listing->table, record->created_ms);
    return true;
}

static int run_list(const struct command_line *line)
{
    static const char *const headers[] = {"ID",         "NAME",          "ENABLED",
                                          "LAUNCH URL", "CREATED (UTC)", NULL};
    struct listing listing;
    struct platform_store *store = NULL;
    struct error error = {0};
    uint64_t revision;
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    listing_begin(&listing, line, headers);
    const struct record_visitor visit = {.provider = list_provider, .context = &listing};
    enum status status = platform_games_read(store, &visit, &revision, &error);
    platform_store_close(&store);
    return listing_end(&listing, line, status, &error);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct command_option add_options[] = {
    {"name", "NAME", "what to call it; customers see it", false},
    {"launch-url", "URL", "where its games are opened; the token is added as ?token=…", false},
    {"launch-endpoint", "URL", "in its place: what is called for the URL of each launch", false},
    {"secret", "-", "the secret that launches are signed with, from standard input", false},
    {"return-url", "URL", "where the provider sends players back to (none)", false},
    {"audience", "TEXT", "'aud' of its tokens (the id)", false},
    {0},
};

static const struct command_option set_options[] = {
    {"name", "NAME", "what to call it; customers see it", false},
    {"launch-url", "URL", "where its games are opened, with a token", false},
    {"launch-endpoint", "URL", "in its place: what is called for the URL of each launch", false},
    {"secret", "-", "another secret, from standard input", false},
    {"return-url", "URL", "where the provider sends players back to", false},
    {"no-return-url", NULL, "no return URL", false},
    {"audience", "TEXT", "'aud' of its tokens", false},
    {0},
};

const struct command provider_commands[] = {
    {.name = "add",
     .arguments = "ID",
     .least = 1,
     .most = 1,
     .summary = "add a provider",
     .details =
         "A provider hosts casino games. ID is 1 to 64 of a-z, 0-9 and '-', and stays. Its games\n"
         "come with 'croupier game import'.\n"
         "\n"
         "A launch is a URL with a token: a JWT (HS256) that is signed with the provider's secret\n"
         "and good for five minutes. The secret is read from standard input (one line end after "
         "it\n"
         "is not part of it), kept encrypted under the key of [casino] secrets_key_file, and "
         "never\n"
         "printed. The return URL stands in the token, as return_url.\n"
         "\n"
         "With --launch-endpoint the provider makes the URL: croupier POSTs it a JSON document,\n"
         "signed with HMAC-SHA256 under the secret, and the answer is {\"launch_url\": "
         "\"https://…\"}.\n"
         "The endpoint must be https (http only to this machine). docs/providers.md says all of "
         "it.",
     .examples =
         "croupier provider add acme --name \"Acme Games\" --launch-url https://play.acme.example/ "
         "--secret - < acme.secret\n"
         "openssl rand -hex 32 | tee /dev/tty | croupier provider add sand --name Sand "
         "--launch-url https://sand.example/launch --secret -\n"
         "croupier provider add oasis --name Oasis --launch-endpoint "
         "https://api.oasis.example/v1/launch --secret - < oasis.secret",
     .options = add_options,
     .run = run_add},
    {.name = "list",
     .arguments = "",
     .summary = "all providers",
     .details = "In the order of their ids. --json prints an array of the objects that 'provider "
                "show --json'\nprints. Secrets are never shown.",
     .examples = "croupier provider list\n"
                 "croupier provider list --json",
     .run = run_list},
    {.name = "show",
     .arguments = "ID",
     .least = 1,
     .most = 1,
     .summary = "one provider",
     .details = "Everything but its secret.",
     .examples = "croupier provider show acme\n"
                 "croupier provider show acme --json",
     .run = run_show},
    {.name = "set",
     .arguments = "ID",
     .least = 1,
     .most = 1,
     .summary = "change a provider",
     .details = "Changes what is given and leaves the rest. A running server signs with a new\n"
                "secret within a second; launches that were signed before keep their token.\n"
                "--launch-url and --launch-endpoint replace each other.",
     .examples = "croupier provider set acme --launch-url https://play2.acme.example/\n"
                 "croupier provider set acme --launch-endpoint https://api.acme.example/launch\n"
                 "croupier provider set acme --secret - < acme.secret",
     .options = set_options,
     .run = run_set},
    {.name = "enable",
     .arguments = "ID",
     .least = 1,
     .most = 1,
     .summary = "show the games of a disabled provider again",
     .details = "Its games are as they were.",
     .examples = "croupier provider enable acme",
     .run = run_enable},
    {.name = "disable",
     .arguments = "ID",
     .least = 1,
     .most = 1,
     .summary = "hide all games of a provider",
     .details =
         "Within a second nobody sees or launches them. The wallet goes on: rounds that are\n"
         "under way can be settled and rolled back.",
     .examples = "croupier provider disable acme",
     .run = run_disable},
    {0},
};
