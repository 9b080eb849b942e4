/* croupier provider add | list | show | set | enable | disable | secret | try. */
#include <string.h>

#include <openssl/crypto.h>

#include "base/clock.h"
#include "cli/document.h"
#include "cli/input.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/platform.h"
#include "commands/resource.h"
#include "operator/provider_trial.h"
#include "operator/providers.h"
#include "sealing/provider_secret.h"

#define SECRET_SHORT 32U /* bytes: RFC 7518 section 3.2 wants no less of an HS256 key */

const struct resource_commands provider_subject = {&provider_resource, "id", NULL};

/* ---- the secret ------------------------------------------------------------------------------ */

/* Reads it from standard input; one line end after it is not part of it. False, and `code` set,
 * when refused. */
static bool read_secret(const struct command_line *line, struct buffer *secret, int *code)
{
    const char *name;
    struct error error;
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

/* The same when --secret says so. */
static bool read_given_secret(const struct command_line *line, struct buffer *secret, int *code)
{
    const char *given = command_option(line, "secret");
    if (given == NULL)
        return true;
    if (strcmp(given, "-") == 0)
        return read_secret(line, secret, code);
    *code = command_usage(line, "write --secret - and give the secret on standard input: others "
                                "could read it on the command line");
    return false;
}

static void free_secret(struct buffer *secret)
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

static void note_short_secret(const struct command_line *line, size_t secret_size)
{
    if (secret_size > 0 && secret_size < SECRET_SHORT)
        command_note(line, "the secret is shorter than %u bytes, which RFC 7518 wants for HS256",
                     SECRET_SHORT);
}

static void note_weakness(const struct command_line *line, size_t secret_size)
{
    const char *launch_url = command_option(line, "launch-url");
    note_short_secret(line, secret_size);
    if (launch_url != NULL && !game_url_is_guarded(text_of(launch_url)))
        command_note(line, "the launch URL is not https://: anyone on the way to it can read and "
                           "use its tokens");
}

/* Adds or sets, with the secret that the line has, or none. */
static int put(const struct command_line *line, bool add)
{
    struct secrets *secrets = NULL;
    struct buffer secret = {0};
    int code = EXIT_REFUSED;
    if (!read_given_secret(line, &secret, &code) ||
        (secret.size > 0 && !open_secrets(line, &secrets)))
        goto done;
    const struct provider_sealing sealing = {secrets, buffer_text(&secret), clock_wall_ms()};
    code = resource_run_settings(line, add, secret.size > 0 ? provider_seal : NULL, &sealing);
    if (code == EXIT_DONE)
        note_weakness(line, secret.size);
done:
    secrets_destroy(&secrets);
    free_secret(&secret);
    return code;
}

static bool excludes(const struct command_line *line)
{
    return command_option(line, "launch-url") != NULL &&
           command_option(line, "launch-endpoint") != NULL;
}

static int run_add(const struct command_line *line)
{
    if (excludes(line))
        return command_usage(line, "--launch-url and --launch-endpoint exclude each other");
    if (command_option(line, "name") == NULL || command_option(line, "secret") == NULL ||
        (command_option(line, "launch-url") == NULL &&
         command_option(line, "launch-endpoint") == NULL))
        return command_usage(
            line, "--name, --launch-url (or --launch-endpoint) and --secret - are needed");
    return put(line, true);
}

static int run_set(const struct command_line *line)
{
    if (excludes(line))
        return command_usage(line, "--launch-url and --launch-endpoint exclude each other");
    return put(line, false);
}

/* ---- secrets that overlap -------------------------------------------------------------------- */

static int print_secrets(const struct command_line *line, const struct provider_record *provider)
{
    static const char *const titles[] = {"KID", "SIGNS", "ADDED (UTC)", NULL};
    struct document document;
    if (command_json(line)) {
        provider_write_secrets(document_begin(&document, JSON_INDENTED), NULL, provider);
        document_print(&document);
        return EXIT_DONE;
    }
    struct table *table = table_create(titles);
    for (size_t i = 0; i < PROVIDER_SECRETS_MAX && provider->secrets[i].size > 0; i++) {
        char added_at[CLOCK_TEXT_SIZE] = "unknown";
        if (provider->secrets[i].added_ms != 0)
            clock_format_rfc3339(provider->secrets[i].added_ms, added_at);
        table_cell(table, provider_secret_name(&provider->secrets[i]));
        table_cell(table, i == 0 ? "yes" : "no");
        table_cell(table, added_at);
    }
    table_print(&table, stdout);
    return EXIT_DONE;
}

/* Reads the provider of the line, does `edit` to it unless NULL, and prints its secrets. */
static int run_on_secrets(const struct command_line *line, resource_editor *edit,
                          const void *context)
{
    static const struct setting none[] = {{0}};
    const struct resource_edit whole = {.settings = none, .edit = edit, .context = context};
    const char *id = command_argument(line, 1);
    struct provider_record provider;
    struct platform_store *store = NULL;
    struct error error = {0};
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status =
        edit == NULL ? resource_get(&provider_resource, store, id, &provider, &error)
                     : resource_change(&provider_resource, store, id, &whole, &provider, &error);
    platform_store_close(&store);
    return status == STATUS_OK ? print_secrets(line, &provider)
                               : command_fail(line, status, &error);
}

static int add_secret(const struct command_line *line)
{
    struct secrets *secrets = NULL;
    struct buffer secret = {0};
    int code = EXIT_REFUSED;
    if (read_secret(line, &secret, &code) && open_secrets(line, &secrets)) {
        const struct provider_sealing sealing = {secrets, buffer_text(&secret), clock_wall_ms()};
        code = run_on_secrets(line, provider_add_secret, &sealing);
        if (code == EXIT_DONE)
            note_short_secret(line, secret.size);
    }
    secrets_destroy(&secrets);
    free_secret(&secret);
    return code;
}

static int run_secret(const struct command_line *line)
{
    const char *action = command_argument(line, 0);
    const char *name = command_argument(line, 2);
    bool retires = strcmp(action, "retire") == 0;
    if ((name != NULL) != retires)
        return command_usage(line, retires ? "retire needs the KID" : "only retire takes a KID");
    if (retires)
        return run_on_secrets(line, provider_retire_secret, name);
    if (strcmp(action, "list") == 0)
        return run_on_secrets(line, NULL, NULL);
    return strcmp(action, "add") == 0 ? add_secret(line)
                                      : command_usage(line, "give add, list or retire");
}

/* ---- a try ----------------------------------------------------------------------------------- */

static void print_trial_json(const char *provider_id, const struct provider_trial *trial)
{
    struct document document;
    struct json_writer *json = document_object(&document, JSON_INDENTED);
    provider_trial_write(json, provider_id, trial);
    document_print(&document);
}

/* Prints what came back, whatever it is; the exit code tells whether it was a launch. */
static int print_trial(const struct command_line *line, const struct provider_trial *trial)
{
    const char *id = command_argument(line, 0);
    bool launched = trial->outcome == PROVIDER_LAUNCHED;
    if (command_json(line))
        print_trial_json(id, trial);
    else if (launched)
        (void)printf("%s launched %s in %llu ms: status %ld, %s\n", id, trial->game_id,
                     (unsigned long long)trial->took_ms, trial->status, trial->answer.launch_url);
    else
        return command_refuse(line, "%s did not launch %s: %s after %llu ms: %s", id,
                              trial->game_id, provider_outcome_name(trial->outcome),
                              (unsigned long long)trial->took_ms, trial->reason);
    return launched ? EXIT_DONE : EXIT_REFUSED;
}

static int run_try(const struct command_line *line)
{
    const struct config *config = NULL;
    struct platform_store *store = NULL;
    struct secrets *secrets = NULL;
    struct provider_trial trial;
    struct error error = {0};
    if (!open_secrets(line, &secrets))
        return EXIT_REFUSED;
    enum status status = STATUS_UNAVAILABLE;
    bool ready = command_config(line, &config) && command_open_platform(line, false, &store);
    if (ready) {
        const struct provider_trial_options options = {
            .secrets = secrets,
            .provider_id = command_argument(line, 0),
            .game_id = command_argument(line, 1),
            .ca_file = config->launch_ca_file,
            .timeout_ms = config->launch_timeout_ms,
        };
        CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
        status = provider_trial_run(store, &options, &trial, &error);
        curl_global_cleanup();
    }
    platform_store_close(&store);
    config_release(&config);
    secrets_destroy(&secrets);
    if (!ready)
        return EXIT_REFUSED;
    return status == STATUS_OK ? print_trial(line, &trial) : command_fail(line, status, &error);
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct command provider_commands[] = {
    {"add", "ID", &help_provider_add, .make_options = resource_add_options, .run = run_add},
    {"list", "", &help_provider_list, .run = resource_run_list},
    {"show", "ID", &help_provider_show, .run = resource_run_show},
    {"set", "ID", &help_provider_set, .make_options = resource_set_options, .run = run_set},
    {"enable", "ID", &help_provider_enable, .run = resource_run_enable},
    {"disable", "ID", &help_provider_disable, .run = resource_run_disable},
    {"secret", "add|list|retire ID [KID]", &help_provider_secret, .run = run_secret},
    {"try", "ID [GAME]", &help_provider_try, .run = run_try},
    {0},
};
