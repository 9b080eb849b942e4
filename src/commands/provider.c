/* croupier provider add | list | show | set | enable | disable | secret | try. */

#include "base/clock.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/resource.h"
#include "commands/stores.h"
#include "operator/provider_trial.h"
#include "operator/providers.h"
#include "sealing/provider_secret.h"

#define SECRET_SHORT 32U /* bytes: RFC 7518 section 3.2 wants no less of an HS256 key */

const struct resource_commands provider_subject = {&provider_resource, "id", NULL};

/* ---- the secret ------------------------------------------------------------------------------ */

/* Reads it from standard input; one line end after it is not part of it. */
static struct text read_secret(const struct command_line *line)
{
    const char *name;
    struct buffer *secret = command_read(line, "-", SECRETS_PLAIN_MAX + 2, &name);
    if (secret->size > 0 && secret->data[secret->size - 1] == '\n')
        secret->size--;
    if (secret->size > 0 && secret->data[secret->size - 1] == '\r')
        secret->size--;
    if (secret->size == 0 || secret->size > SECRETS_PLAIN_MAX)
        command_refuse(line, "the secret on standard input must be 1 to %u bytes",
                       SECRETS_PLAIN_MAX);
    return buffer_text(secret);
}

static void release_secrets(void *resource)
{
    struct secrets *secrets = resource;
    secrets_destroy(&secrets);
}

/* The key that secrets are sealed with. */
static struct secrets *open_secrets(const struct command_line *line)
{
    struct secrets *secrets = NULL;
    const char *path = command_config(line)->secrets_key_file;
    command_require(line, secrets_open_key(&secrets, path, command_error(line)));
    command_keep(line, release_secrets, secrets);
    return secrets;
}

/* Reads the secret where `given` is "-", and the key to seal it with; NULL: there is no secret. */
static struct provider_sealing read_sealing(const struct command_line *line, const char *given)
{
    struct provider_sealing sealing = {.now_ms = clock_wall_ms()};
    if (given == NULL)
        return sealing;
    if (strcmp(given, "-") != 0)
        command_usage(line, "write --secret - and give the secret on standard input: others could "
                            "read it on the command line");
    sealing.secret = read_secret(line);
    sealing.secrets = open_secrets(line);
    command_require(line,
                    providers_try_key(command_platform(line), sealing.secrets,
                                      command_config(line)->secrets_key_file, command_error(line)));
    return sealing;
}

static void note_short_secret(const struct command_line *line, size_t secret_size)
{
    if (secret_size > 0 && secret_size < SECRET_SHORT)
        command_note(line, "the secret is shorter than %u bytes, which RFC 7518 wants for HS256",
                     SECRET_SHORT);
}

/* Adds or sets, with the secret that the line has, or none. */
static void put(const struct command_line *line, bool add)
{
    const char *url = command_option(line, "launch-url");
    const char *secret = command_option(line, "secret");
    bool endpoint = command_option(line, "launch-endpoint") != NULL;
    const struct {
        const char *what;
        bool given;
    } needed[] = {{"--name", command_option(line, "name") != NULL},
                  {"--launch-url (or --launch-endpoint)", url != NULL || endpoint},
                  {"--secret -", secret != NULL}};
    struct buffer *missing = command_buffer(line);
    if (url != NULL && endpoint)
        command_usage(line, "--launch-url and --launch-endpoint exclude each other");
    for (size_t i = 0; add && i < sizeof needed / sizeof needed[0]; i++)
        if (!needed[i].given)
            buffer_append_format(missing, "%s%s", missing->size > 0 ? " and " : "", needed[i].what);
    if (missing->size > 0)
        command_usage(line, "needs %s", buffer_string(missing));
    const struct provider_sealing sealing = read_sealing(line, secret);
    resource_run_settings(line, add, secret != NULL ? provider_seal : NULL, &sealing);
    note_short_secret(line, sealing.secret.size);
    if (url != NULL && !game_url_is_guarded(text_of(url)))
        command_note(line, "the launch URL is not https://: anyone on the way to it can read and "
                           "use its tokens");
}

static void run_add(const struct command_line *line)
{
    put(line, true);
}

static void run_set(const struct command_line *line)
{
    put(line, false);
}

/* ---- secrets that overlap -------------------------------------------------------------------- */

static void print_secrets(const struct command_line *line, const struct provider_record *provider)
{
    static const char *const titles[] = {"KID", "SIGNS", "ADDED (UTC)", NULL};
    struct json_writer *json = command_document(line, JSON_INDENTED);
    if (json != NULL) {
        provider_write_secrets(json, NULL, provider);
        return;
    }
    struct table *table = table_create(titles);
    for (size_t i = 0; i < PROVIDER_SECRETS_MAX && provider->secrets[i].size > 0; i++) {
        char added_at[CLOCK_TEXT_SIZE] = "unknown";
        if (provider->secrets[i].added_ms != 0)
            clock_format_rfc3339(provider->secrets[i].added_ms, added_at);
        TABLE_ROW(table, provider_secret_name(&provider->secrets[i]), i == 0 ? "yes" : "no",
                  added_at);
    }
    table_print(&table, stdout);
}

/* Reads the provider of the line, does `edit` to it unless NULL, and prints its secrets. */
static void run_on_secrets(const struct command_line *line, resource_editor *edit,
                           const void *context)
{
    const struct resource_edit whole = {.edit = edit, .context = context};
    const char *id = command_argument(line, 1);
    struct provider_record provider;
    struct platform_store *store = command_platform(line);
    struct error *error = command_error(line);
    command_require_verb(
        line, edit == NULL
                  ? resource_get(&provider_resource, store, id, &provider, error)
                  : resource_change(&provider_resource, store, id, &whole, &provider, error));
    print_secrets(line, &provider);
}

static void add_secret(const struct command_line *line)
{
    const struct provider_sealing sealing = read_sealing(line, "-");
    run_on_secrets(line, provider_add_secret, &sealing);
    note_short_secret(line, sealing.secret.size);
}

static void run_secret(const struct command_line *line)
{
    const char *action = command_argument(line, 0);
    const char *name = command_argument(line, 2);
    bool retires = strcmp(action, "retire") == 0;
    if ((name != NULL) != retires)
        command_usage(line, retires ? "retire needs the KID" : "only retire takes a KID");
    if (retires)
        run_on_secrets(line, provider_retire_secret, name);
    else if (strcmp(action, "list") == 0)
        run_on_secrets(line, NULL, NULL);
    else if (strcmp(action, "add") == 0)
        add_secret(line);
    else
        command_usage(line, "give add, list or retire");
}

/* ---- a try ----------------------------------------------------------------------------------- */

/* Prints what came back, whatever it is; the exit code tells whether it was a launch. */
static void print_trial(const struct command_line *line, const struct provider_trial *trial)
{
    const char *id = command_argument(line, 0);
    struct json_writer *json = command_object(line, JSON_INDENTED);
    bool launched = trial->outcome == PROVIDER_LAUNCHED;
    if (json != NULL) {
        provider_trial_write(json, id, trial);
        command_print_document(line);
        if (!launched)
            command_quit(line, EXIT_REFUSED);
    } else if (launched) {
        (void)printf("%s launched %s in %llu ms: status %ld, %s\n", id, trial->game_id,
                     (unsigned long long)trial->took_ms, trial->status, trial->answer.launch_url);
    } else {
        command_refuse(line, "%s did not launch %s: %s after %llu ms: %s", id, trial->game_id,
                       enum_name(&provider_outcomes, trial->outcome),
                       (unsigned long long)trial->took_ms, trial->reason);
    }
}

static void run_try(const struct command_line *line)
{
    const struct config *config = command_config(line);
    const struct provider_trial_options options = {
        .secrets = open_secrets(line),
        .provider_id = command_argument(line, 0),
        .game_id = command_argument(line, 1),
        .ca_file = config->launch_ca_file,
        .timeout_ms = config->launch_timeout_ms,
    };
    struct platform_store *store = command_platform(line);
    struct provider_trial trial;
    CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    enum status status = provider_trial_run(store, &options, &trial, command_error(line));
    curl_global_cleanup();
    command_require_verb(line, status);
    print_trial(line, &trial);
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct command provider_commands[] = {
    {"add", "ID", &help_provider_add, resource_add_options, run_add},
    {"list", "", &help_provider_list, .run = resource_run_list},
    {"show", "ID", &help_provider_show, .run = resource_run_show},
    {"set", "ID", &help_provider_set, resource_set_options, run_set},
    {"enable", "ID", &help_provider_enable, .run = resource_run_enable},
    {"disable", "ID", &help_provider_disable, .run = resource_run_disable},
    {"secret", "add|list|retire ID [KID]", &help_provider_secret, .run = run_secret},
    {"conduct", "ID", &help_provider_conduct, .run = resource_run_conduct},
    {"try", "ID [GAME]", &help_provider_try, .run = run_try},
    {0},
};
