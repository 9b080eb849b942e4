/* croupier operator: operators, their links and sessions, and tokens. */
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/resource.h"
#include "commands/stores.h"
#include "operator/tokens.h"

const struct resource_commands operator_subject = {&operator_resource, "name",
                                                   resource_print_outcome};

/* ---- links ----------------------------------------------------------------------------------- */

/* Appends the address of the console: its first name, or else where it listens. */
static void append_link(const struct config *config, const char *secret, struct buffer *out)
{
    struct text hosts = text_of(config->operator_hosts);
    struct text host = text_trim(text_cut(&hosts, ','));
    if (host.size == 0)
        host = text_of(config->operator_listen.text);
    buffer_append_string(out, config->operator_tls_certificate[0] != '\0' ? "https" : "http");
    buffer_append_string(out, "://");
    buffer_append_text(out, host);
    buffer_append_format(out, "/#/sign-in/%s", secret);
}

static void print_link(const struct command_line *line, const struct credential *link,
                       const char *url)
{
    struct json_writer *json = command_object(line, JSON_INDENTED);
    if (json == NULL) {
        (void)printf("To sign in, once and within %d minutes:\n%s\n", CREDENTIAL_LINK_MS / 60000,
                     url);
        return;
    }
    json_string(json, "name", link->record.operator_name);
    json_string(json, "link", url);
    json_time(json, "expires_at", link->record.expires_ms);
}

static void make_link(const struct command_line *line, struct platform_store *store,
                      const char *name)
{
    struct credential link = {.secret = ""};
    struct buffer *url = command_buffer(line);
    command_require_verb(
        line, credential_make_link(store, name, clock_wall_ms(), &link, command_error(line)));
    append_link(command_config(line), link.secret, url);
    print_link(line, &link, buffer_string(url));
    explicit_bzero(&link, sizeof link);
}

static void run_link(const struct command_line *line)
{
    make_link(line, command_platform(line), command_argument(line, 0));
}

/* ---- add ------------------------------------------------------------------------------------- */

static void run_add(const struct command_line *line)
{
    struct operator_record record;
    resource_make_of_line(line, &operator_subject, 0, &record);
    struct platform_store *store = command_platform(line);
    command_require_verb(line,
                         resource_insert(&operator_resource, store, &record, command_error(line)));
    if (!command_json(line))
        resource_print_outcome(line, &record, true);
    make_link(line, store, record.name);
}

/* ---- sessions -------------------------------------------------------------------------------- */

static void run_sessions(const struct command_line *line)
{
    resource_run_list_of(line, &session_resource, NULL);
}

static void run_end(const struct command_line *line)
{
    const char *id = command_argument(line, 0);
    struct platform_store *store = command_platform(line);
    command_require_verb(line, credential_end(store, id, clock_wall_ms(), command_error(line)));
    (void)printf("%s is ended.\n", id);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static const struct resource_commands token_subject = {&token_resource, "name", NULL};

static size_t token_options(const void *subject, struct command_option *out, size_t room)
{
    (void)subject; /* of operators */
    return resource_add_options(&token_subject, out, room);
}

static void add_token(const struct command_line *line)
{
    struct token_record record;
    char token[CREDENTIAL_SIZE] = "";
    if (command_option(line, "role") == NULL)
        command_usage(line, "needs --role reader, operator or owner");
    resource_make_of_line(line, &token_subject, 1, &record);
    struct platform_store *store = command_platform(line);
    command_require_verb(line, tokens_issue(store, &record, token, command_error(line)));
    resource_print_issued(line, &token_resource, &record, "token", token, "operator token revoke");
}

static void revoke_token(const struct command_line *line)
{
    int64_t now_ms = clock_wall_ms();
    struct token_record record;
    struct platform_store *store = command_platform(line);
    command_require_verb(line, tokens_revoke(store, command_argument(line, 1), now_ms, &record,
                                             command_error(line)));
    resource_print_revoked(line, &token_resource, &record, record.name,
                           record.revoked_ms != now_ms ? record.revoked_ms : 0);
}

static void run_token(const struct command_line *line)
{
    const char *action = command_argument(line, 0);
    bool adds = strcmp(action, "add") == 0;
    bool lists = strcmp(action, "list") == 0;
    if (!adds && !lists && strcmp(action, "revoke") != 0)
        command_usage(line, "give add, list or revoke");
    if (lists == (command_argument(line, 1) != NULL))
        command_usage(line, lists ? "list takes no name" : "%s needs a name", action);
    for (const struct field *field = token_resource.fields; !adds && field->type != NULL; field++)
        if (field->option.name != NULL && command_option(line, field->option.name) != NULL)
            command_usage(line, "only add takes --%s", field->option.name);
    if (adds)
        add_token(line);
    else if (lists)
        resource_run_list_of(line, &token_resource, NULL);
    else
        revoke_token(line);
}

const struct command operator_commands[] = {
    {"add", "NAME", &help_operator_add, resource_add_options, run_add},
    {"list", "", &help_operator_list, .run = resource_run_list},
    {"set", "NAME", &help_operator_set, resource_set_options, resource_run_set},
    {"enable", "NAME", &help_operator_enable, .run = resource_run_enable},
    {"disable", "NAME", &help_operator_disable, .run = resource_run_disable},
    {"remove", "NAME", &help_operator_remove, .run = resource_run_remove},
    {"link", "NAME", &help_operator_link, .run = run_link},
    {"sessions", "", &help_operator_sessions, .run = run_sessions},
    {"end", "SESSION", &help_operator_end, .run = run_end},
    {"token", "add|list|revoke [NAME]", &help_operator_token, token_options, run_token},
    {0},
};
