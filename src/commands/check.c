/*
 * `croupier check`: would the service start with this configuration, and do the stores answer? Like
 * `nginx -t`, but it shows all that is wrong at once. It changes nothing.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <uv.h>

#include "cli/document.h"
#include "commands/commands.h"
#include "http/tls.h"
#include "launch/outgoing.h"
#include "records/provider_secret.h"
#include "records/secrets.h"
#include "stores/odds.h"
#include "stores/platform.h"

struct report {
    struct table *table; /* for people */
    struct document document;
    unsigned checks;
    unsigned failures;
};

enum result { FAILED = false, FINE = true, WARNING };

static void PRINTF_LIKE(4, 5) report_check(struct report *report, const char *check,
                                           enum result result, const char *format, ...)
{
    bool ok = result != FAILED;
    char message[2 * ERROR_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    table_cell(report->table, result == WARNING ? "WARNING" : ok ? "ok" : "FAILED");
    table_cell(report->table, check);
    table_cell(report->table, message);
    json_object(&report->document.json, NULL);
    json_string(&report->document.json, "check", check);
    json_bool(&report->document.json, "ok", ok);
    json_bool(&report->document.json, "warning", result == WARNING);
    json_string(&report->document.json, "message", message);
    json_end(&report->document.json);
    report->checks++;
    report->failures += ok ? 0 : 1;
}

/* ---- the checks ------------------------------------------------------------------------------ */

static void check_tls(struct report *report, const struct config *config)
{
    if (config->tls_certificate[0] == '\0') {
        report_check(report, "tls", FINE, "%s", "off: the API is plain HTTP");
        return;
    }
    struct error error = {0};
    struct http_tls *tls = NULL;
    bool ok = http_tls_create(&tls, config->tls_certificate, config->tls_key, &error) == STATUS_OK;
    report_check(report, "tls", ok, "%s", ok ? config->tls_certificate : error.text);
    http_tls_release(&tls);
}

/* Returns 0 or an errno. */
static int try_to_listen(const struct listen_address *listen_at)
{
    struct sockaddr_storage address = {0};
    bool v6 = strchr(listen_at->host, ':') != NULL;
    int result =
        v6 ? uv_ip6_addr(listen_at->host, listen_at->port, (struct sockaddr_in6 *)(void *)&address)
           : uv_ip4_addr(listen_at->host, listen_at->port, (struct sockaddr_in *)(void *)&address);
    CHECK(result == 0); /* the configuration has read it as an address */
    int descriptor = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return errno;
    int yes = 1;
    (void)setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    socklen_t size = v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int reason = 0;
    if (bind(descriptor, (struct sockaddr *)(void *)&address, size) != 0 ||
        listen(descriptor, 1) != 0)
        reason = errno;
    (void)close(descriptor);
    return reason;
}

static void check_listen(struct report *report, const char *check,
                         const struct listen_address *listen_at)
{
    int reason = try_to_listen(listen_at);
    if (reason == 0 || reason == EADDRINUSE)
        report_check(report, check, FINE, "%s is %s", listen_at->text,
                     reason == 0 ? "free" : "in use, as it is while croupier is running");
    else
        report_check(report, check, FAILED, "%s cannot be listened on: %s", listen_at->text,
                     strerror(reason));
}

/* An error names the place itself; an answer does not. */
static void report_store(struct report *report, const char *check, const char *uri,
                         enum status status, const struct error *error)
{
    struct buffer shown = {0};
    config_redact_uri(uri, &shown);
    if (status == STATUS_OK)
        report_check(report, check, FINE, "%s answers", buffer_string(&shown));
    else
        report_check(report, check, FAILED, "%s", error->text);
    buffer_free(&shown);
}

/* The embedded store is made by whoever comes first, the service or the feed: before that, it is
 * enough that it can be made. */
static bool can_be_made(const char *uri)
{
    const char *path = uri + strlen("embedded:");
    const char *slash = strrchr(path, '/');
    if (strncmp(uri, "embedded:", strlen("embedded:")) != 0 || access(path, F_OK) == 0)
        return false;
    struct buffer parent = {0};
    buffer_append(&parent, path, slash == NULL ? 0 : (size_t)(slash - path) + 1);
    buffer_append_char(&parent, '.');
    bool writable = access(buffer_string(&parent), W_OK | X_OK) == 0;
    buffer_free(&parent);
    return writable;
}

static void check_odds(struct report *report, const struct config *config)
{
    const struct odds_store_options options = {
        .uri = config->odds_store,
        .timeout_ms = config->odds_timeout_ms,
        .prefix = config->odds_prefix,
    };
    struct error error = {0};
    struct odds_store *odds = NULL;
    enum status status = odds_store_open(&odds, &options, &error);
    if (status == STATUS_OK) {
        status = odds_store_ping(odds, ODDS_TO_SERVE, &error);
        odds_store_close(&odds);
    } else if (can_be_made(config->odds_store)) {
        report_check(
            report, "odds store", FINE,
            "is not there yet; a service that starts makes it, one that runs waits for the feed");
        return;
    }
    report_store(report, "odds store", config->odds_store, status, &error);
}

/* Opening it looks at the schema too, and says when `croupier migrate` is needed. NULL: it does not
 * answer. */
static struct platform_store *check_platform(struct report *report, const struct config *config)
{
    const struct platform_store_options options = {
        .uri = config->platform_store,
        .timeout_ms = config->platform_timeout_ms,
    };
    struct error error = {0};
    struct platform_store *platform = NULL;
    enum status status = platform_store_open(&platform, &options, &error);
    if (status == STATUS_OK)
        status = platform_store_ping(platform, &error);
    if (status != STATUS_OK)
        platform_store_close(&platform);
    report_store(report, "platform store", config->platform_store, status, &error);
    if (status == STATUS_OK && platform->unsafe != NULL)
        report_check(report, "platform durability", WARNING,
                     "PostgreSQL may lose money that was acknowledged, when its machine fails: %s",
                     platform->unsafe);
    return platform;
}

struct unsealing {
    const struct secrets *secrets;
    char failed[PROVIDER_ID_SIZE]; /* the first provider whose secret does not open; "": none */
};

static bool unseal(void *context, const void *visited)
{
    const struct provider_record *record = visited;
    struct unsealing *unsealing = context;
    struct buffer plain = {0};
    if (unsealing->failed[0] == '\0' &&
        provider_secret_unseal(unsealing->secrets, record, &plain) != STATUS_OK)
        memcpy(unsealing->failed, record->id, sizeof unsealing->failed);
    if (plain.data != NULL)
        explicit_bzero(plain.data, plain.size);
    buffer_free(&plain);
    return true;
}

/* Does it open what is stored? A store that fails says nothing of the key. */
static void try_secrets(struct unsealing *unsealing, struct platform_store *platform)
{
    struct error error = {0};
    if (platform_list(platform, &provider_table, NULL, unseal, unsealing, &error) != STATUS_OK)
        unsealing->failed[0] = '\0';
}

/* `platform` may be NULL: then the key is not tried. */
static void check_secrets(struct report *report, const struct config *config,
                          struct platform_store *platform)
{
    struct error error = {0};
    struct secrets *secrets = NULL;
    bool ok = secrets_open_key(&secrets, config->secrets_key_file, &error) == STATUS_OK;
    if (ok && platform != NULL) {
        struct unsealing unsealing = {.secrets = secrets};
        try_secrets(&unsealing, platform);
        ok = unsealing.failed[0] == '\0';
        if (!ok)
            (void)error_set(&error, STATUS_INVALID,
                            "%s is not the key that the secret of provider %s was stored under: "
                            "copy that key from another instance or from its backup",
                            config->secrets_key_file, unsealing.failed);
    }
    report_check(report, "secrets key", ok, "%s", ok ? config->secrets_key_file : error.text);
    secrets_destroy(&secrets);
}

static void check_launch_ca(struct report *report, const struct config *config)
{
    struct error error = {0};
    if (config->launch_ca_file[0] == '\0')
        return;
    bool ok = outgoing_check_ca_file(config->launch_ca_file, &error) == STATUS_OK;
    report_check(report, "casino.launch_ca_file", ok, "%s",
                 ok ? config->launch_ca_file : error.text);
}

/* ---- the command ----------------------------------------------------------------------------- */

static void check_all(struct report *report, const char *path)
{
    struct error error = {0};
    const struct config *config = NULL;
    if (config_load(&config, path, NULL, &error) != STATUS_OK) {
        report_check(report, "configuration", FAILED, "%s", error.text);
        return;
    }
    report_check(report, "configuration", FINE, "%s",
                 config->path[0] != '\0' ? config->path : "no file: defaults and environment");
    check_tls(report, config);
    check_listen(report, "server.listen", &config->listen);
    check_listen(report, "operator.listen", &config->operator_listen);
    check_odds(report, config);
    struct platform_store *platform = check_platform(report, config);
    check_secrets(report, config, platform);
    platform_store_close(&platform);
    check_launch_ca(report, config);
    config_release(&config);
}

int run_check(const struct command_line *line)
{
    static const char *const headers[] = {"RESULT", "CHECK", "MESSAGE", NULL};
    struct report report = {.table = table_create(headers)};
    (void)document_array(&report.document, JSON_ROWS);
    check_all(&report, command_config_path(line));
    if (command_json(line))
        document_print(&report.document);
    else
        table_print(&report.table, stdout);
    table_destroy(&report.table);
    document_free(&report.document);
    if (report.failures == 0)
        return EXIT_DONE;
    return command_refuse(line, "%u of %u checks failed", report.failures, report.checks);
}
