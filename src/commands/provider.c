/* croupier provider add | list | show | set | enable | disable. */
#include <string.h>

#include <openssl/crypto.h>

#include "cli/input.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/platform.h"
#include "commands/resource.h"
#include "operator/providers.h"

#define SECRET_SHORT 32U /* bytes: RFC 7518 section 3.2 wants no less of an HS256 key */

const struct resource_commands provider_subject = {&provider_resource, "id", NULL};

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

static void note_weakness(const struct command_line *line, size_t secret_size)
{
    const char *launch_url = command_option(line, "launch-url");
    if (secret_size > 0 && secret_size < SECRET_SHORT)
        command_note(line, "the secret is shorter than %u bytes, which RFC 7518 wants for HS256",
                     SECRET_SHORT);
    if (launch_url != NULL && !game_url_is_guarded(text_of(launch_url)))
        command_note(line,
                     "the launch URL is not https://: whoever is on the way to it can read and "
                     "use its tokens");
}

/* Adds or sets, with the secret that the line has, or none. */
static int put(const struct command_line *line, bool add)
{
    struct secrets *secrets = NULL;
    struct buffer secret = {0};
    int code = EXIT_REFUSED;
    if (!read_secret(line, &secret, &code) || (secret.size > 0 && !open_secrets(line, &secrets)))
        goto done;
    const struct provider_sealing sealing = {secrets, buffer_text(&secret)};
    code = resource_run_settings(line, add, secret.size > 0 ? provider_seal : NULL, &sealing);
    if (code == EXIT_DONE)
        note_weakness(line, secret.size);
done:
    secrets_destroy(&secrets);
    if (secret.data != NULL)
        OPENSSL_cleanse(secret.data, secret.capacity);
    buffer_free(&secret);
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

/* ---- the table ------------------------------------------------------------------------------- */

const struct command provider_commands[] = {
    {"add", "ID", &help_provider_add, .make_options = resource_add_options, .run = run_add},
    {"list", "", &help_provider_list, .run = resource_run_list},
    {"show", "ID", &help_provider_show, .run = resource_run_show},
    {"set", "ID", &help_provider_set, .make_options = resource_set_options, .run = run_set},
    {"enable", "ID", &help_provider_enable, .run = resource_run_enable},
    {"disable", "ID", &help_provider_disable, .run = resource_run_disable},
    {0},
};
