/*
 * `croupier demo`: everything in one process, for somebody who sees croupier for the first time.
 * The screen it prints is the tour; every command on it works as printed
 * (tests/service/test_demo.py runs them).
 *
 * Nothing is touched before it is clear that the demo can run: the directory is this process's own
 * and the port is free.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "app/app.h"
#include "base/clock.h"
#include "base/memory.h"
#include "cli/document.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "demo/demo.h"
#include "demo/simulate.h"
#include "http/http.h"

#define OVERRIDES_MAX 9 /* four settings and the end */

struct demo {
    const struct command_line *line;
    char *directory;
    char *config_file;
    int lock;
    char *odds_uri;
    char *platform_uri;
    char operator_listen[ADDRESS_TEXT_SIZE + 8]; /* "" unless another than configured */
    unsigned usual_operator_port;
    const char *overrides[OVERRIDES_MAX];
    const struct config *config;
    bool mistyped; /* a word of the line is what is wrong */
    struct log *log;
    struct demo_keys keys;
    struct demo_casino casino;
    struct odds_store *odds;
    struct simulation *simulation;
    uint16_t port, operator_port;
};

/* ---- the screen ------------------------------------------------------------------------------ */

/* A word for the shell, quoted when it has to be. */
static void append_shell_word(struct buffer *out, const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,@";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        buffer_append_string(out, word);
        return;
    }
    buffer_append_char(out, '\'');
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            buffer_append_string(out, "'\\''");
        else
            buffer_append_char(out, *word);
    }
    buffer_append_char(out, '\'');
}

/* Where a client on this machine finds a listener: all addresses are also the loopback one. */
static void append_url(struct buffer *out, const char *scheme, const char *host, uint16_t port)
{
    const char *reached = strcmp(host, "0.0.0.0") == 0 ? "127.0.0.1"
                          : strcmp(host, "::") == 0    ? "::1"
                                                       : host;
    bool brackets = strchr(reached, ':') != NULL;
    buffer_append_format(out, "%s://%s%s%s:%u", scheme, brackets ? "[" : "", reached,
                         brackets ? "]" : "", (unsigned)port);
}

struct screen {
    struct buffer api;      /* http://127.0.0.1:8080/api/v1 */
    struct buffer operator; /* http://127.0.0.1:9090 */
    struct buffer program;  /* this one, as a word for the shell */
    struct buffer config;   /* the same */
    struct buffer etag;     /* a file, the same */
    struct buffer launch;   /* the same */
    const char *curl;       /* with the options that every command needs */
    const char *key, *limited;
    char football[EVENT_ID_DIGITS + 1], cricket[EVENT_ID_DIGITS + 1];
};

/* Where this program is, so that a command works whatever the PATH. */
static void append_program(struct buffer *out)
{
    char *program = realpath("/proc/self/exe", NULL);
    append_shell_word(out, program != NULL ? program : "croupier");
    free(program);
}

static void make_screen(const struct demo *demo, struct screen *screen)
{
    bool tls = demo->config->tls_certificate[0] != '\0';
    struct simulator_facts facts;
    simulation_facts(demo->simulation, &facts);
    *screen = (struct screen){.curl = tls ? "curl -sk" : "curl -s",
                              .key = demo->keys.all_sports,
                              .limited = demo->keys.limited};
    memcpy(screen->football, facts.example[SPORT_FOOTBALL].digits, sizeof screen->football);
    memcpy(screen->cricket, facts.example[SPORT_CRICKET].digits, sizeof screen->cricket);
    append_url(&screen->api, tls ? "https" : "http", demo->config->listen.host, demo->port);
    buffer_append_string(&screen->api, "/api/v1");
    append_url(&screen->operator, "http", demo->config->operator_listen.host, demo->operator_port);
    append_program(&screen->program);
    append_shell_word(&screen->config, demo->config_file);
    struct buffer etag = {0};
    buffer_append_format(&etag, "%s/last.etag", demo->directory);
    append_shell_word(&screen->etag, buffer_string(&etag));
    buffer_clear(&etag);
    buffer_append_format(&etag, "%s/last.launch", demo->directory);
    append_shell_word(&screen->launch, buffer_string(&etag));
    buffer_free(&etag);
    (void)buffer_string(&screen->launch);
    (void)buffer_string(&screen->api);
    (void)buffer_string(&screen->operator);
    (void)buffer_string(&screen->program);
    (void)buffer_string(&screen->config);
    (void)buffer_string(&screen->etag);
}

static void free_screen(struct screen *screen)
{
    buffer_free(&screen->api);
    buffer_free(&screen->operator);
    buffer_free(&screen->program);
    buffer_free(&screen->config);
    buffer_free(&screen->etag);
    buffer_free(&screen->launch);
}

static void print_head(const struct demo *demo, const struct screen *screen)
{
    printf("croupier %s: five sports with moving odds and a casino, out of %s\n\n",
           CROUPIER_VERSION, demo->directory);
    printf("  API       %s\n", screen->api.data);
    printf("  key       %s   (%s: all sports and the casino, from this machine)\n", screen->key,
           DEMO_CUSTOMER);
    printf("  metrics   %s/metrics\n", screen->operator.data);
    if (demo->operator_listen[0] != '\0')
        printf("            (port %u is taken; this one was free)\n", demo->usual_operator_port);
    (void)puts("\nCommands to try in another terminal; they work as printed.");
}

static void print_polling(const struct screen *screen)
{
    const char *api = screen->api.data, *key = screen->key, *curl = screen->curl;
    printf("\nWhich sports this key may see, and the events of one:\n\n");
    printf("  %s -H 'Authorization: Bearer %s' %s/sports\n", curl, key, api);
    printf("  %s -H 'Authorization: Bearer %s' %s/football/events\n", curl, key, api);
    printf("\nOne event with its markets. While somebody polls it, it moves every second:\n\n");
    printf("  %s -H 'X-Api-Key: %s' %s/football/events/%s\n", curl, key, api, screen->football);
    printf("  for i in 1 2 3 4 5; do %s -H 'X-Api-Key: %s' %s/cricket/events/%s | "
           "grep -o '\"price\":[0-9.]*' | head -6 | tr '\\n' ' '; echo; sleep 1; done\n",
           curl, key, api, screen->cricket);
    printf("\nPolling is cheap: nothing new is 304, and gzip is ready-made:\n\n");
    printf("  %s -o /dev/null --etag-save %s -w '%%{http_code}\\n' -H 'X-Api-Key: %s' "
           "%s/sports\n",
           curl, screen->etag.data, key, api);
    printf("  %s -o /dev/null --etag-compare %s -w '%%{http_code}\\n' -H 'X-Api-Key: %s' "
           "%s/sports\n",
           curl, screen->etag.data, key, api);
    printf("  %s --compressed -o /dev/null -w '%%{size_download} bytes\\n' -H 'X-Api-Key: %s' "
           "%s/football/events/%s\n",
           curl, key, api, screen->football);
}

static void print_casino(const struct screen *screen)
{
    const char *api = screen->api.data, *curl = screen->curl;
    printf(
        "\nThe casino: some of its games, and a launch, whose URL shows what the provider gets (a "
        "browser opens it, too):\n\n");
    printf("  %s -H 'X-Api-Key: %s' '%s/casino/games?category=slots&limit=3'\n", curl, screen->key,
           api);
    printf("  %s -H 'X-Api-Key: %s' -H 'Content-Type: application/json' -d '{\"mode\":\"real\","
           "\"player_reference\":\"player-1\",\"currency\":\"EUR\"}' "
           "%s/casino/games/%s/launch | tee %s\n",
           curl, screen->key, api, DEMO_GAME, screen->launch.data);
    printf("  curl -s \"$(grep -o 'http[^\"]*' %s)\"\n", screen->launch.data);
    printf("\nThe wallet of the player that was launched: money in, and the balance. Send a call "
           "again and nothing moves twice:\n\n");
    printf(
        "  P=$(grep -o 'ply_[0-9A-Za-z]*' %s); %s -H 'X-Api-Key: %s' "
        "-H 'Content-Type: application/json' -d '{\"operation\":\"CREDIT\",\"player_id\":\"'$P'\","
        "\"transaction_id\":\"first\",\"amount_minor\":2500,\"currency\":\"EUR\"}' "
        "%s/casino/wallet\n",
        screen->launch.data, curl, screen->key, api);
    printf("  P=$(grep -o 'ply_[0-9A-Za-z]*' %s); %s -H 'X-Api-Key: %s' "
           "-H 'Content-Type: application/json' -d "
           "'{\"operation\":\"BALANCE\",\"player_id\":\"'$P'\"}' "
           "%s/casino/wallet\n",
           screen->launch.data, curl, screen->key, api);
}

static void print_refusals(const struct demo *demo, const struct screen *screen)
{
    const char *api = screen->api.data, *curl = screen->curl;
    printf(
        "\nWhat is refused: no such sport, a wrong key, a sport this customer has not got, and too "
        "many requests\n(%s: cricket and football, %u requests in %u seconds):\n\n",
        DEMO_LIMITED_CUSTOMER, DEMO_LIMITED_REQUESTS, DEMO_LIMITED_SECONDS);
    printf("  %s -H 'X-Api-Key: %s' %s/curling/events\n", curl, screen->key, api);
    printf("  %s -H 'X-Api-Key: wrong' %s/sports\n", curl, api);
    printf("  %s -H 'X-Api-Key: %s' %s/tennis/events\n", curl, screen->limited, api);
    printf("  for i in 1 2 3 4 5 6 7 8 9 10 11; do %s -o /dev/null -w '%%{http_code} ' "
           "-H 'X-Api-Key: %s' %s/sports; done; echo\n",
           curl, screen->limited, api);
    const char *host = demo->config->listen.host;
    if (strncmp(host, "127.", 4) != 0 && strcmp(host, "0.0.0.0") != 0)
        return;
    printf("\nWithout a key, from an address that has a policy of its own (%s, tennis):\n\n",
           DEMO_LEGACY_ADDRESS);
    printf("  %s --interface %s %s/sports\n", curl, DEMO_LEGACY_ADDRESS, api);
}

static void print_operation(const struct screen *screen)
{
    printf("\nFor operators: health, metrics, customers, what is being polled:\n\n");
    printf("  %s %s/health\n", screen->curl, screen->api.data);
    printf("  curl -s %s/metrics\n", screen->operator.data);
    printf("  %s customer list -c %s\n", screen->program.data, screen->config.data);
    printf("  %s feed interest football -c %s\n", screen->program.data, screen->config.data);
    printf(
        "\nCtrl-C stops. The stores stay for the next start, which issues fresh keys; remove the "
        "directory to begin anew.\n");
}

static void print_json(const struct demo *demo, const struct screen *screen)
{
    struct document document;
    struct json_writer *json = document_object(&document, JSON_COMPACT);
    json_text(json, "api", buffer_text(&screen->api));
    json_text(json, "operator", buffer_text(&screen->operator));
    json_string(json, "directory", demo->directory);
    json_string(json, "config", demo->config_file);
    json_string(json, "key", screen->key);
    json_string(json, "limited_key", screen->limited);
    json_object(json, "events");
    json_string(json, "cricket", screen->cricket);
    json_string(json, "football", screen->football);
    json_end(json);
    document_print(&document);
}

/* Only now is it known where the operator listener is. */
static void point_launches_here(struct demo *demo, const struct screen *screen)
{
    struct buffer url = {0};
    struct error error;
    buffer_append_format(&url, "%s%s", screen->operator.data, DEMO_PAGE_PATH);
    if (demo_casino_set_url(&demo->casino, demo->config->platform_store,
                            demo->config->platform_timeout_ms, buffer_string(&url),
                            &error) != STATUS_OK)
        log_event(demo->log, LOG_ERROR, "launches lead nowhere", LOG_STRING("reason", error.text));
    buffer_free(&url);
}

static void on_ready(void *context, uint16_t port, uint16_t operator_port)
{
    struct demo *demo = context;
    struct screen screen;
    demo->port = port;
    demo->operator_port = operator_port;
    make_screen(demo, &screen);
    point_launches_here(demo, &screen);
    if (command_json(demo->line)) {
        print_json(demo, &screen);
    } else {
        print_head(demo, &screen);
        print_polling(&screen);
        print_casino(&screen);
        print_refusals(demo, &screen);
        print_operation(&screen);
    }
    (void)fflush(stdout);
    free_screen(&screen);
}

/* ---- before it runs -------------------------------------------------------------------------- */

static bool is_free(const char *host, uint16_t port, struct error *error)
{
    int descriptor = -1;
    uint16_t bound = 0;
    if (http_listen(host, port, false, &descriptor, &bound, error) != STATUS_OK)
        return false;
    (void)close(descriptor);
    return true;
}

static void add_override(struct demo *demo, const char *name, const char *value)
{
    size_t at = 0;
    while (demo->overrides[at] != NULL)
        at += 2;
    CHECK(at + 2 < OVERRIDES_MAX);
    demo->overrides[at] = name;
    demo->overrides[at + 1] = value;
}

static enum status load_config(struct demo *demo, struct error *error)
{
    const char *given = command_config_path(demo->line);
    return config_load(&demo->config, given != NULL ? given : demo->config_file, demo->overrides,
                       error);
}

/* The operator's port is not worth failing for, unless somebody asked for that very one. */
static enum status choose_operator_port(struct demo *demo, struct error *error)
{
    const struct listen_address *wanted = &demo->config->operator_listen;
    const struct listen_address *public = &demo->config->listen;
    bool same = wanted->port != 0 && wanted->port == public->port;
    struct error taken;
    if (!same && is_free(wanted->host, wanted->port, &taken))
        return STATUS_OK;
    if (getenv("CROUPIER_OPERATOR_LISTEN") != NULL || command_config_path(demo->line) != NULL)
        return STATUS_OK; /* the app says what is wrong */
    bool brackets = strchr(wanted->host, ':') != NULL;
    (void)snprintf(demo->operator_listen, sizeof demo->operator_listen, "%s%s%s:0",
                   brackets ? "[" : "", wanted->host, brackets ? "]" : "");
    demo->usual_operator_port = wanted->port;
    add_override(demo, "operator.listen", demo->operator_listen);
    config_release(&demo->config);
    return load_config(demo, error);
}

static char *make_uri(const char *scheme, const char *directory, const char *name)
{
    struct buffer uri = {0};
    buffer_append_format(&uri, "%s:%s/%s", scheme, directory, name);
    char *copy = memory_copy_string(buffer_string(&uri));
    buffer_free(&uri);
    return copy;
}

/* The commands on the screen go by DIR/croupier.conf, so it must name the stores that the demo has:
 * not those of another directory, after DIR was moved or copied, nor those of the environment. */
static enum status check_stores(const struct demo *demo, struct error *error)
{
    const struct config *config = NULL;
    enum status status = config_load(&config, demo->config_file, NULL, error);
    if (status != STATUS_OK)
        return status;
    bool odds = strcmp(config->odds_store, demo->odds_uri) == 0;
    bool platform = strcmp(config->platform_store, demo->platform_uri) == 0;
    if (!odds || !platform) {
        struct buffer shown = {0};
        config_redact_uri(odds ? config->platform_store : config->odds_store, &shown);
        status = error_set(
            error, STATUS_INVALID,
            "%s, or the environment variable CROUPIER_%s_STORE, names the store %s, which "
            "is not in %s; remove the file, which is then written anew, or the variable",
            demo->config_file, odds ? "PLATFORM" : "ODDS", buffer_string(&shown), demo->directory);
        buffer_free(&shown);
    }
    config_release(&config);
    return status;
}

static enum status configure(struct demo *demo, struct error *error)
{
    const char *directory = command_option(demo->line, "dir");
    const char *listen = command_option(demo->line, "listen");
    enum status status = demo_take_directory(directory != NULL ? directory : "./demo-data",
                                             &demo->directory, &demo->lock, error);
    if (status == STATUS_OK)
        status = demo_write_config(demo->directory, &demo->config_file, error);
    if (status != STATUS_OK)
        return status;
    demo->odds_uri = make_uri("embedded", demo->directory, "odds");
    demo->platform_uri = make_uri("sqlite", demo->directory, "platform.db");
    status = check_stores(demo, error);
    if (status != STATUS_OK)
        return status;
    add_override(demo, "odds.store", demo->odds_uri);
    add_override(demo, "platform.store", demo->platform_uri);
    if (listen != NULL)
        add_override(demo, "server.listen", listen);
    status = load_config(demo, error);
    demo->mistyped = status == STATUS_INVALID && listen != NULL; /* the file was sound before */
    if (status == STATUS_OK &&
        !is_free(demo->config->listen.host, demo->config->listen.port, error))
        status = STATUS_UNAVAILABLE;
    if (status != STATUS_OK)
        return status;
    return choose_operator_port(demo, error);
}

static enum status prepare(struct demo *demo, struct error *error)
{
    const struct config *config = demo->config;
    demo->log = log_create(STDERR_FILENO, config->log_level, config->log_format);
    const struct odds_store_options odds = {.uri = config->odds_store,
                                            .timeout_ms = config->odds_timeout_ms,
                                            .prefix = config->odds_prefix,
                                            .create = true,
                                            .log = demo->log};
    const struct simulator_options simulator = {.seed = (uint64_t)clock_wall_ms(),
                                                .sports = SPORT_SET_ALL,
                                                .events = SIMULATOR_EVENTS_DEFAULT,
                                                .interval_ms = SIMULATOR_INTERVAL_DEFAULT_MS};
    enum status status = demo_prepare_platform(config->platform_store, config->platform_timeout_ms,
                                               config->secrets_key_file, clock_wall_ms(),
                                               &demo->keys, &demo->casino, error);
    if (status == STATUS_OK)
        status = odds_store_open(&demo->odds, &odds, error);
    if (status == STATUS_OK)
        status = simulation_start(&demo->simulation, &simulator, demo->odds, demo->log, error);
    return status;
}

static void let_go(struct demo *demo)
{
    simulation_stop(&demo->simulation);
    if (demo->odds != NULL)
        odds_store_close(&demo->odds);
    if (demo->log != NULL)
        log_destroy(&demo->log);
    if (demo->config != NULL)
        config_release(&demo->config);
    if (demo->lock >= 0)
        (void)close(demo->lock);
    OPENSSL_cleanse(&demo->keys, sizeof demo->keys);
    demo_casino_clear(&demo->casino);
    memory_free(demo->directory);
    memory_free(demo->config_file);
    memory_free(demo->odds_uri);
    memory_free(demo->platform_uri);
}

static int run_demo(const struct command_line *line)
{
    struct demo demo = {.line = line, .lock = -1};
    struct error error = {0};
    enum status status = configure(&demo, &error);
    if (status == STATUS_OK)
        status = prepare(&demo, &error);
    if (status == STATUS_OK) {
        const char *given = command_config_path(line);
        const struct app_options options = {.config = demo.config,
                                            .config_path = given != NULL ? given : demo.config_file,
                                            .overrides = demo.overrides,
                                            .log = demo.log,
                                            .odds = demo.odds,
                                            .ready = on_ready,
                                            .page = demo_casino_page,
                                            .page_context = &demo.casino,
                                            .context = &demo};
        status = app_run(&options, &error);
        log_destroy(&demo.log); /* its lines come before a refusal */
    }
    int code = EXIT_DONE;
    if (status != STATUS_OK)
        code = demo.mistyped ? command_usage(line, "%s", error.text)
                             : command_refuse(line, "%s", error.text);
    else if (!command_json(line))
        printf("\nstopped; the stores are in %s\n", demo.directory);
    let_go(&demo);
    return code;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct command_option demo_options[] = {
    {"dir", "DIR", "where the stores are, made when missing (./demo-data)", false},
    {"listen", "ADDR:PORT", "where customers call (127.0.0.1:8080)", false},
    {0},
};

const struct command demo_commands[] = {
    {"demo", "", &help_demo, .options = demo_options, .run = run_demo},
    {0},
};
