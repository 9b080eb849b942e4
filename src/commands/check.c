/*
 * `croupier check`: would the service start with this configuration, and do the stores answer? Like
 * `nginx -t`, but it shows all that is wrong at once, and what to do about it. It changes nothing.
 */
#include <libgen.h>
#include <stdarg.h>
#include <sys/statvfs.h>

#include "app/app.h"
#include "base/clock.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/listener_probe.h"
#include "http/http.h"
#include "http/tls.h"
#include "launch/outgoing.h"
#include "operator/providers.h"
#include "stores/configured.h"
#include "stores/odds_read.h"
#include "stores/platform_ledger.h"
#include "stores/platform_records.h"

struct report {
    struct table *table;      /* for people */
    struct json_writer *json; /* NULL without --json */
    unsigned checks;
    unsigned failures;
};

enum result { FAILED = false, FINE = true, WARNING };

/* `remedy` says what to do when it is not fine. */
static void PRINTF_LIKE(5, 6)
    report_check(struct report *report, const char *check, enum result result, const char *remedy,
                 const char *format, ...)
{
    bool ok = result != FAILED;
    struct json_writer *json = report->json;
    char message[2 * ERROR_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    TABLE_ROW(report->table, result == WARNING ? "WARNING" : ok ? "ok" : "FAILED", check, message);
    if (result != FINE) {
        char what_to_do[2 * ERROR_TEXT_SIZE];
        (void)snprintf(what_to_do, sizeof what_to_do, "to do: %s", remedy);
        TABLE_ROW(report->table, "", "", what_to_do);
    }
    report->checks++;
    report->failures += ok ? 0 : 1;
    if (json == NULL)
        return;
    json_object(json, NULL);
    json_string(json, "check", check);
    json_bool(json, "ok", ok);
    json_bool(json, "warning", result == WARNING);
    json_string(json, "message", message);
    json_string_or_null(json, "remedy", result == FINE ? NULL : remedy);
    json_end(json);
}

/* ---- the checks ------------------------------------------------------------------------------ */

#define EXPIRES_SOON_MS (14 * CLOCK_DAY_MS) /* as the alarm has it */

static void check_tls(struct report *report, const char *check, const char *certificate,
                      const char *key)
{
    if (certificate[0] == '\0') {
        report_check(report, check, FINE, NULL, "%s", "off: the API is plain HTTP");
        return;
    }
    struct error error = {0};
    struct http_tls *tls = NULL;
    struct stat facts;
    char day[CLOCK_DAY_SIZE];
    bool ok = http_tls_create(&tls, certificate, key, &error) == STATUS_OK;
    int64_t expiry_ms = ok ? http_tls_expiry_ms(tls) : 0;
    bool expired = expiry_ms <= clock_wall_ms();
    clock_format_day(clock_day(expiry_ms), day);
    if (ok && expiry_ms < clock_wall_ms() + EXPIRES_SOON_MS)
        report_check(report, check, expired ? FAILED : WARNING,
                     "renew it, then run: croupier reload", "%s %s on %s", certificate,
                     expired ? "expired" : "expires", day);
    else if (ok && stat(key, &facts) == 0 && (facts.st_mode & S_IROTH) != 0)
        report_check(report, check, WARNING, "chmod o-r that file, and renew the key",
                     "every user of this machine may read the private key %s", key);
    else
        report_check(report, check, ok,
                     "name PEM files that belong together and that the user that croupier runs as "
                     "may read",
                     "%s", ok ? certificate : error.text);
    http_tls_destroy(&tls);
}

static void check_listener(struct report *report, enum listener_kind kind,
                           const struct listen_address *address, const char *certificate,
                           const char *key)
{
    static const struct {
        const char *tls, *check, *variable;
    } names[] = {
        [LISTENER_PUBLIC] = {"tls", "server.listen", "CROUPIER_SERVER_LISTEN"},
        [LISTENER_OPERATOR] = {"operator.tls", "operator.listen", "CROUPIER_OPERATOR_LISTEN"},
        [LISTENER_PROVIDER] = {"provider.tls", "provider.listen", "CROUPIER_PROVIDER_LISTEN"},
    };
    bool tls = certificate[0] != '\0';
    const char *check = names[kind].check;
    if (tls || kind != LISTENER_OPERATOR) /* which seldom has one */
        check_tls(report, names[kind].tls, certificate, key);
    int reason = http_listen_try(address->host, address->port);
    struct buffer answer = {0};
    bool ours = reason == EADDRINUSE && listener_ask(kind, address, tls, &answer);
    buffer_free(&answer);
    if (reason == 0 || ours) {
        report_check(report, check, FINE, NULL, "%s is %s", address->text,
                     ours ? "in use, by a croupier that is running" : "free");
        return;
    }
    char remedy[ERROR_TEXT_SIZE];
    const char *start = reason == EACCES
                            ? "give croupier CAP_NET_BIND_SERVICE, or take a port from 1024 on"
                        : reason == EADDRINUSE ? "end it (`ss -ltnp` shows its process), or take "
                                                 "another port"
                                               : "take an address of this machine (`ip address`)";
    (void)snprintf(remedy, sizeof remedy, "%s with %s or %s", start, check, names[kind].variable);
    if (reason == EADDRINUSE)
        report_check(report, check, FAILED, remedy,
                     "%s is in use, by something that does not answer as croupier does",
                     address->text);
    else
        report_check(report, check, FAILED, remedy, "%s cannot be listened on: %s", address->text,
                     strerror(reason));
}

/* A store, as it is configured. */
struct configured {
    const char *check;
    const char *uri;
    const char *setting; /* the setting that has this value */
    const char *path;    /* of its file or directory on this machine; NULL: a server has it */
    const char *server;  /* of several, the one that answered; else NULL */
};

/* SQLite's log grows by so much before its pages move into the database and it begins again. */
#define ROOM_LEAST ((uint64_t)4 * 1024 * 1024)

/* An error names the store itself; an answer does not. */
static void report_store(struct report *report, const struct configured *store, enum status status,
                         const struct error *error)
{
    char remedy[ERROR_TEXT_SIZE];
    struct statvfs disk;
    bool full = store->path != NULL && statvfs(store->path, &disk) == 0 &&
                (uint64_t)disk.f_bavail * disk.f_frsize < ROOM_LEAST;
    (void)snprintf(remedy, sizeof remedy, "%s %s names it",
                   status == STATUS_OK || status == STATUS_FULL
                       ? "make room on that disk, or nothing more can be written;"
                   : status == STATUS_INVALID && store->path != NULL
                       ? "do as the message says, with this configuration and as the user that "
                         "croupier runs as;"
                   : strstr(error->text, strerror(EROFS)) != NULL
                       ? "its disk is mounted read-only: mount it for writing, too;"
                   : strstr(error->text, "a second name") != NULL
                       ? "`cp -al` or a backup by hard links made it: `find -samefile` shows it;"
                   : store->path != NULL
                       ? "the user that croupier runs as must be able to read and write it, and "
                         "this command runs as that user;"
                   : strstr(error->text, strerror(ECONNREFUSED)) != NULL
                       ? "see that it runs and listens there;"
                   : strncmp(store->uri, "postgres", strlen("postgres")) == 0
                       ? "do as the message or \"Symptoms\" in docs/postgresql.md says;"
                       : "do as the message or docs/operations.md, \"Redis\", says;",
                   store->setting);
    struct buffer shown = {0};
    config_redact_uri(store->uri, &shown);
    if (store->server != NULL)
        buffer_append_format(&shown, ": %s", store->server);
    buffer_append_string(&shown, full ? " answers, but its disk has no room" : " answers");
    report_check(report, store->check, status == STATUS_OK && !full, remedy, "%s",
                 status == STATUS_OK ? buffer_string(&shown) : error->text);
    buffer_free(&shown);
}

/* The service or the feed makes the embedded store, whichever comes first. Before that, this
 * reports whether it can be made. False, and no report, if the store is there or of another engine
 * (`path` is NULL). */
static bool report_unmade(struct report *report, const char *path)
{
    if (path == NULL || access(path, F_OK) == 0)
        return false;
    char *copy = memory_copy_string(path);
    int reason = access(dirname(copy), W_OK | X_OK) == 0 ? 0 : errno;
    memory_free(copy);
    if (reason == 0)
        report_check(report, "odds store", FINE, NULL,
                     "is not there yet; the service makes it when it starts, or `croupier feed` "
                     "before that");
    else
        report_check(report, "odds store", FAILED,
                     reason == ENOENT
                         ? "make that directory, for the user that croupier runs as"
                         : "run this command as the user that croupier runs as, who must be able "
                           "to write in that directory, on a disk that is not mounted read-only",
                     "%s is not there and cannot be made in its directory: %s", path,
                     strerror(reason));
    return true;
}

static void check_odds(struct report *report, const struct config *config)
{
    const struct odds_store_options options = odds_store_configured(config);
    struct error error = {0};
    struct odds_store *odds = NULL;
    bool asks = false;
    enum status status = odds_store_open(&odds, &options, &error);
    if (status == STATUS_OK) {
        status = odds_store_ping(odds, ODDS_TO_SERVE, &error);
        asks = odds_store_asks(odds);
        odds_store_close(&odds);
    } else if (report_unmade(report, config_odds_directory(config))) {
        return;
    }
    if (status == STATUS_MALFORMED && config_odds_directory(config) != NULL) {
        report_check(report, "odds store", WARNING,
                     "start the service, which sets it aside and begins another; then publish "
                     "everything again",
                     "%s", error.text);
        return;
    }
    const struct configured store = {status == STATUS_READ_ONLY ? "odds writes" : "odds store",
                                     config->odds_store, "odds.store",
                                     config_odds_directory(config), NULL};
    report_store(report, &store, status, &error);
    if (status == STATUS_OK && store.path == NULL)
        report_check(report, "odds mode", FINE, NULL, "%s",
                     asks ? "asking: the server reports no changes, so each request asks it"
                          : "tracking: the server reports changes");
    if (status == STATUS_OK && store.path == NULL && error.text[0] != '\0')
        report_check(report, "odds eviction", WARNING, "set maxmemory-policy noeviction", "%s",
                     error.text);
}

#define CLOCK_OFF_S_MAX 5 /* as the alarm has it */

/* Of several servers in the URI it asks each whether it takes writes beside the one that is used.
 */
static void check_server(struct report *report, const struct config *config,
                         const struct platform_store *used)
{
    struct platform_store_options options = platform_store_configured(config);
    int64_t off_s = used->clock_off_ms / 1000;
    enum status status = STATUS_OK;
    if (llabs(off_s) > CLOCK_OFF_S_MAX)
        report_check(report, "clock", WARNING, "see \"CroupierClockOff\" in docs/alarms.md",
                     "PostgreSQL's clock differs from this machine's by %+lld s", (long long)off_s);
    if (used->server == NULL || used->timeline == 0)
        return;
    if (used->alone)
        report_check(report, "platform standby", WARNING,
                     "set synchronous_standby_names there: see docs/deployment.md",
                     "acknowledged money has no second copy: %s names no synchronous standby",
                     used->server);
    options.create = true; /* its schema does not matter */
    for (options.host = 1; status != STATUS_NOT_FOUND; options.host++) {
        struct platform_store *other = NULL;
        status = platform_store_open(&other, &options, NULL);
        if (status == STATUS_OK && other->timeline > 0 && other->started_us != used->started_us) {
            const struct platform_store *older = other->timeline < used->timeline ? other : used;
            const struct platform_store *newer = older == used ? other : used;
            report_check(report, "platform primaries", FAILED,
                         "fence one, the first if its timeline is lower: see \"The primary is "
                         "dead\" in docs/deployment.md; then restart the instances",
                         "two primaries: %s (timeline %u) and %s (timeline %u) take writes",
                         older->server, older->timeline, newer->server, newer->timeline);
        }
        platform_store_close(&other);
    }
}

/* Opening it looks at the schema too, and says when `croupier migrate` is needed. NULL: it does not
 * answer. */
static struct platform_store *check_platform(struct report *report, const struct config *config)
{
    const struct platform_store_options options = platform_store_configured(config);
    struct error error = {0};
    struct platform_store *platform = NULL;
    enum status status = platform_store_open(&platform, &options, &error);
    if (status == STATUS_OK)
        status = platform_store_ping(platform, &error);
    if (status != STATUS_OK)
        platform_store_close(&platform);
    const struct configured store = {"platform store", config->platform_store, "platform.store",
                                     config_platform_file(config),
                                     status == STATUS_OK ? platform->server : NULL};
    report_store(report, &store, status, &error);
    if (status == STATUS_OK && platform->unsafe != NULL)
        report_check(report, "platform durability", WARNING,
                     "turn it on in postgresql.conf and restart PostgreSQL",
                     "PostgreSQL may lose money that was acknowledged, when its machine fails: %s",
                     platform->unsafe);
    if (status == STATUS_OK)
        check_server(report, config, platform);
    struct ledger_end end;
    if (status == STATUS_OK &&
        platform_ledger_check_end(platform, &end, &error) == STATUS_MALFORMED)
        report_check(report, "ledger", FAILED, "see \"The platform store\" in docs/operations.md",
                     "%s", error.text);
    bool compared = false;
    if (status == STATUS_OK && platform_store_check_writes(platform, &error) != STATUS_OK)
        report_check(report, "platform writes", FAILED, "see \"Symptoms\" in docs/postgresql.md",
                     "%s", error.text);
    else if (status == STATUS_OK &&
             platform_store_check_shape(platform, &compared, &error) != STATUS_OK)
        report_check(report, "platform schema", FAILED, "make it again as sql/ has it", "%s",
                     error.text);
    return platform;
}

/* `platform` may be NULL: then the key is not tried. */
static void check_secrets(struct report *report, const struct config *config,
                          struct platform_store *platform)
{
    struct error error = {0};
    struct secrets *secrets = NULL;
    enum status status = secrets_open_key(&secrets, config->secrets_key_file, &error);
    /* A store that fails says nothing of the key. */
    if (status == STATUS_OK && platform != NULL &&
        providers_try_key(platform, secrets, config->secrets_key_file, &error) == STATUS_CONFLICT)
        status = STATUS_CONFLICT;
    report_check(report, "secrets key", status == STATUS_OK,
                 status == STATUS_INVALID
                     ? "change the file as the message says, and keep what is in it"
                     : "copy the right file from another instance or a backup, and let the user "
                       "that croupier runs as read it; for a new store `croupier migrate` makes it",
                 "%s", status == STATUS_OK ? config->secrets_key_file : error.text);
    secrets_destroy(&secrets);
}

static void check_launch_ca(struct report *report, const struct config *config)
{
    struct error error = {0};
    if (config->launch_ca_file[0] == '\0')
        return;
    bool ok = outgoing_check_ca_file(config->launch_ca_file, &error) == STATUS_OK;
    report_check(report, "casino.launch_ca_file", ok,
                 "name a file with PEM certificates, or none for those of the system", "%s",
                 ok ? config->launch_ca_file : error.text);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Each problem of the configuration is a check that failed. */
static void report_problems(struct report *report, struct text problems)
{
    while (problems.at != NULL) {
        struct text problem = text_cut(&problems, '\n');
        const char *reason = strerror(EACCES);
        bool unread = memmem(problem.at, problem.size, reason, strlen(reason)) != NULL;
        report_check(report, "configuration", FAILED,
                     unread ? "run this command as root or as the user that croupier runs as "
                              "(sudo -u croupier croupier check)"
                            : "name a file that is there with -c, or mend it there; `croupier help "
                              "settings` lists every setting with its range",
                     "%.*s", (int)problem.size, problem.at);
    }
}

static void check_config(struct report *report, const struct config *config)
{
    struct stat facts;
    struct error error = {0};
    report_check(report, "configuration", FINE, NULL, "%s",
                 config->path[0] != '\0' ? config->path
                                         : "no file: defaults and environment; -c FILE names one");
    if (config_file_has_password(config) && stat(config->path, &facts) == 0 &&
        (facts.st_mode & S_IROTH) != 0)
        report_check(report, "configuration secrecy", WARNING,
                     "chmod o-r that file, and change the password where others use this machine",
                     "%s holds a password, and every user of this machine may read it",
                     config->path);
    if (app_raise_descriptor_limit(config, NULL, &error) != STATUS_OK)
        report_check(report, "open files", FAILED, "raise it where the service runs, too", "%s",
                     error.text);
    check_listener(report, LISTENER_PUBLIC, &config->listen, config->tls_certificate,
                   config->tls_key);
    check_listener(report, LISTENER_OPERATOR, &config->operator_listen,
                   config->operator_tls_certificate, config->operator_tls_key);
    if (config->provider_listen.text[0] != '\0')
        check_listener(report, LISTENER_PROVIDER, &config->provider_listen,
                       config->provider_tls_certificate, config->provider_tls_key);
    check_odds(report, config);
    struct platform_store *platform = check_platform(report, config);
    check_secrets(report, config, platform);
    platform_store_close(&platform);
    check_launch_ca(report, config);
}

void run_check(const struct command_line *line)
{
    static const char *const headers[] = {"RESULT", "CHECK", "MESSAGE", NULL};
    struct report report = {.table = table_create(headers),
                            .json = command_document(line, JSON_ROWS)};
    struct buffer *problems = command_buffer(line);
    const struct config *config = NULL;
    if (report.json != NULL)
        json_array(report.json, NULL);
    bool sound = config_load_all(&config, command_config_path(line), problems) == STATUS_OK;
    if (sound)
        check_config(&report, config);
    else
        report_problems(&report, buffer_text(problems));
    if (report.json != NULL)
        command_print_document(line);
    else /* whole, since reasons stand at the ends of lines */
        table_print_within(&report.table, SIZE_MAX, stdout);
    table_destroy(&report.table);
    config_release(&config);
    if (report.failures > 0) {
        command_complain(line, "%u of %u checks failed", report.failures, report.checks);
        command_quit(line, sound ? EXIT_REFUSED : EXIT_USAGE);
    }
}
