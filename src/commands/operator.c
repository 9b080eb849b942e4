/* croupier operator add | list | set | enable | disable | remove | link | sessions | end. */
#include <openssl/crypto.h>
#include <string.h>

#include "base/clock.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/platform.h"
#include "commands/resource.h"
#include "operator/credentials.h"
#include "operator/operators.h"

static void tell(const struct command_line *line, const void *record, bool added)
{
    (void)line;
    resource_tell_state(&operator_resource, record, added ? "added" : "changed");
}

const struct resource_commands operator_subject = {&operator_resource, "name", tell};

/* ---- links ----------------------------------------------------------------------------------- */

/* Where the console is opened: the first name that it has, else where it listens. */
static bool append_link(const struct command_line *line, const char *secret, struct buffer *out)
{
    const struct config *config = NULL;
    if (!command_config(line, &config))
        return false;
    struct text hosts = text_of(config->operator_hosts);
    struct text host = text_trim(text_cut(&hosts, ','));
    if (host.size == 0)
        host = text_of(config->operator_listen.text);
    buffer_append_string(out, config->operator_tls_certificate[0] != '\0' ? "https" : "http");
    buffer_append_string(out, "://");
    buffer_append_text(out, host);
    buffer_append_format(out, "/#/sign-in/%s", secret);
    config_release(&config);
    return true;
}

static void print_link(const struct command_line *line, const struct credential *link,
                       const char *url)
{
    struct document document;
    if (!command_json(line)) {
        (void)printf("To sign in, once and within %d minutes:\n%s\n", CREDENTIAL_LINK_MS / 60000,
                     url);
        return;
    }
    struct json_writer *json = document_object(&document, JSON_INDENTED);
    json_string(json, "name", link->record.operator_name);
    json_string(json, "link", url);
    json_time(json, "expires_at", link->record.expires_ms);
    document_print(&document);
}

/* Makes a link and prints it; closes the store. */
static int give_link(const struct command_line *line, struct platform_store *store,
                     const char *name)
{
    struct credential link = {.secret = ""};
    struct buffer url = {0};
    struct error error = {0};
    enum status status = credential_make_link(store, name, clock_wall_ms(), &link, &error);
    int code = status == STATUS_OK ? EXIT_DONE : command_fail(line, status, &error);
    platform_store_close(&store);
    if (code == EXIT_DONE && !append_link(line, link.secret, &url))
        code = EXIT_REFUSED;
    if (code == EXIT_DONE)
        print_link(line, &link, buffer_string(&url));
    OPENSSL_cleanse(&link, sizeof link);
    OPENSSL_cleanse(url.data, url.size);
    buffer_free(&url);
    return code;
}

static int run_link(const struct command_line *line)
{
    struct platform_store *store = NULL;
    return command_open_platform(line, false, &store)
               ? give_link(line, store, command_argument(line, 0))
               : EXIT_REFUSED;
}

/* ---- add, remove ----------------------------------------------------------------------------- */

static int run_add(const struct command_line *line)
{
    struct line_settings settings = {0};
    struct operator_record record;
    struct platform_store *store = NULL;
    struct error error = {0};
    if (!line_settings_read(line, true, &settings))
        return EXIT_USAGE;
    enum status status =
        resource_make(&operator_resource, &(struct resource_edit){.settings = settings.list},
                      clock_wall_ms(), &record, &error);
    line_settings_free(&settings);
    if (status != STATUS_OK)
        return command_fail(line, status, &error);
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    status = resource_insert(&operator_resource, store, &record, &error);
    if (status != STATUS_OK) {
        platform_store_close(&store);
        return command_fail(line, status, &error);
    }
    if (!command_json(line))
        tell(line, &record, true);
    return give_link(line, store, record.name);
}

static int run_remove(const struct command_line *line)
{
    return resource_run_edit(line, operator_remove, NULL, "removed");
}

/* ---- sessions -------------------------------------------------------------------------------- */

static int run_sessions(const struct command_line *line)
{
    return resource_run_list_of(line, &session_resource);
}

static int run_end(const struct command_line *line)
{
    const char *id = command_argument(line, 0);
    struct platform_store *store = NULL;
    struct error error = {0};
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status = credential_end(store, id, clock_wall_ms(), &error);
    platform_store_close(&store);
    if (status != STATUS_OK)
        return command_fail(line, status, &error);
    (void)printf("%s is ended.\n", id);
    return EXIT_DONE;
}

const struct command operator_commands[] = {
    {"add", "NAME", &help_operator_add, .make_options = resource_add_options, .run = run_add},
    {"list", "", &help_operator_list, .run = resource_run_list},
    {"set", "NAME", &help_operator_set, .make_options = resource_set_options,
     .run = resource_run_set},
    {"enable", "NAME", &help_operator_enable, .run = resource_run_enable},
    {"disable", "NAME", &help_operator_disable, .run = resource_run_disable},
    {"remove", "NAME", &help_operator_remove, .run = run_remove},
    {"link", "NAME", &help_operator_link, .run = run_link},
    {"sessions", "", &help_operator_sessions, .run = run_sessions},
    {"end", "SESSION", &help_operator_end, .run = run_end},
    {0},
};
