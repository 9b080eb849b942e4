/*
 * `croupier demo`: everything in one process, for a person who sees croupier for the first time.
 * The screen it prints (demo/screen.txt) fits a terminal, and leads to the tour, a file in its
 * directory (demo/tour.txt); every command on both works as printed (tests/service/test_demo.py
 * runs them).
 *
 * Nothing is touched before it is clear that the demo can run: the directory is this process's own
 * and the port is free.
 */
#include <sys/prctl.h>
#include <sys/wait.h>

#include "app/app.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "demo/crowd.h"
#include "demo/texts.h"
#include "feed/record.h"
#include "stores/configured.h"

#define PLAYERS 20       /* betting players, unless --players says otherwise */
#define OVERRIDES_MAX 11 /* five settings and the end */

struct demo {
    const struct command_line *line;
    char *directory;
    char *config_file;
    int lock;
    char odds_uri[PATH_MAX + 32];
    char platform_uri[PATH_MAX + 32];
    struct buffer operator_listen; /* empty unless another than configured */
    unsigned usual_operator_port;
    const char *overrides[OVERRIDES_MAX];
    const struct config *config;
    bool mistyped; /* a word of the line is what is wrong */
    struct log *log;
    struct demo_keys keys;
    struct demo_casino casino;
    struct odds_store *odds;
    struct simulator *simulator;
    const char *record; /* to be replayed; NULL: the simulator publishes */
    pid_t replay;       /* the process that does it; 0 or less: none */
    uint64_t players;
    struct crowd *crowd;
    struct app_ports ports;
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

/* The values of the @names@ of the screen; of print_json too. */
#define VALUES_MAX 24
struct screen {
    struct value {
        const char *name;
        struct buffer text;
    } values[VALUES_MAX];
    size_t count;
};

static struct buffer *add_value(struct screen *screen, const char *name)
{
    CHECK(screen->count < VALUES_MAX);
    screen->values[screen->count].name = name;
    return &screen->values[screen->count++].text;
}

static void set_value(struct screen *screen, const char *name, const char *text)
{
    buffer_append_string(add_value(screen, name), text);
}

static const char *value_of(struct screen *screen, struct text name)
{
    size_t i = 0;
    while (i < screen->count && !text_equals(name, text_of(screen->values[i].name)))
        i++;
    CHECK(i < screen->count);
    return buffer_string(&screen->values[i].text);
}

/* A file in the demo's directory. */
static void set_file(struct screen *screen, const char *name, const struct demo *demo,
                     const char *file)
{
    char *path = memory_format("%s/%s", demo->directory, file);
    append_shell_word(add_value(screen, name), path);
    memory_free(path);
}

/* Appends where this program is, so that a printed command works whatever the PATH. */
static void append_program(struct buffer *out)
{
    char *program = realpath("/proc/self/exe", NULL);
    append_shell_word(out, program != NULL ? program : "croupier");
    free(program);
}

/* Values that are empty leave out the lines that begin with their name (fill_in). */
static void make_screen(const struct demo *demo, struct screen *screen)
{
    const struct config *config = demo->config;
    bool tls = config->tls_certificate[0] != '\0';
    bool loopback =
        strncmp(config->listen.host, "127.", 4) == 0 || strcmp(config->listen.host, "0.0.0.0") == 0;
    struct simulator_facts facts;
    simulator_facts(demo->simulator, &facts);
    *screen = (struct screen){0};
    set_value(screen, "version", CROUPIER_VERSION);
    set_value(screen, "directory", demo->directory);
    set_value(screen, "customer", DEMO_CUSTOMER);
    set_value(screen, "key", demo->keys.all_sports);
    set_value(screen, "limited_customer", DEMO_LIMITED_CUSTOMER);
    set_value(screen, "limited_key", demo->keys.limited);
    buffer_append_format(add_value(screen, "limit"), "%u requests in %u seconds",
                         DEMO_LIMITED_REQUESTS, DEMO_LIMITED_SECONDS);
    set_value(screen, "address", loopback ? DEMO_LEGACY_ADDRESS : "");
    set_value(screen, "game", DEMO_GAME);
    set_value(screen, "blocked", demo->keys.blocked_player);
    set_value(screen, "football", facts.standing[SPORT_FOOTBALL].digits);
    set_value(screen, "cricket", facts.standing[SPORT_CRICKET].digits);
    set_value(screen, "curl", tls ? "curl -sk" : "curl -s");
    struct buffer *api = add_value(screen, "api");
    config_append_url(api, tls ? "https" : "http", config->listen.host, demo->ports.customers);
    buffer_append_string(api, "/api/v1");
    config_append_url(add_value(screen, "operator"), "http", config->operator_listen.host,
                      demo->ports.operator);
    struct buffer *console = add_value(screen, "console");
    if (demo->keys.link[0] != '\0') {
        config_append_url(console, "http", config->operator_listen.host, demo->ports.operator);
        buffer_append_format(console, "/#/sign-in/%s", demo->keys.link);
    }
    struct buffer *providers = add_value(screen, "providers");
    config_append_url(providers, config->provider_tls_certificate[0] != '\0' ? "https" : "http",
                      config->provider_listen.host, demo->ports.providers);
    buffer_append_string(providers, "/provider/v1/wallet");
    struct buffer *taken = add_value(screen, "taken");
    if (demo->operator_listen.size > 0)
        buffer_append_u64(taken, demo->usual_operator_port);
    append_program(add_value(screen, "program"));
    append_shell_word(add_value(screen, "config"), demo->config_file);
    set_file(screen, "etag", demo, "last.etag");
    set_file(screen, "launch", demo, "last.launch");
    set_file(screen, "tour", demo, DEMO_TOUR_FILE);
    set_file(screen, "secret", demo, DEMO_SECRET_FILE);
}

/* "@name@" becomes its value; a line that begins with "?name|" is there when that has one. */
static void fill_in(struct screen *screen, struct text form, struct buffer *out)
{
    while (form.size > 0) {
        struct text line = text_cut(&form, '\n');
        if (text_starts_with(line, TEXT("?"))) {
            struct text name = text_cut(&line, '|');
            if (value_of(screen, (struct text){name.at + 1, name.size - 1})[0] == '\0')
                continue;
        }
        while (line.at != NULL) {
            buffer_append_text(out, text_cut(&line, '@'));
            if (line.at != NULL)
                buffer_append_string(out, value_of(screen, text_cut(&line, '@')));
        }
        buffer_append_char(out, '\n');
    }
}

static void print_screen(struct screen *screen)
{
    struct buffer out = {0};
    fill_in(screen, text_of(demo_screen), &out);
    (void)fwrite(out.data, 1, out.size, stdout);
    buffer_wipe(&out); /* there are keys in it */
}

static void write_tour(const struct demo *demo, struct screen *screen)
{
    struct buffer out = {0};
    struct error error;
    fill_in(screen, text_of(demo_tour), &out);
    if (demo_write_private(demo->directory, DEMO_TOUR_FILE, buffer_text(&out), &error) != STATUS_OK)
        log_event(demo->log, LOG_WARNING, "no tour is written", LOG_STRING("reason", error.text));
    buffer_wipe(&out); /* there are keys in it */
}

/* So that the commands on the screen, and others with this file, meet this demo. */
static void write_addresses(const struct demo *demo)
{
    const struct config *config = demo->config;
    const struct {
        const char *section, *host;
        uint16_t port;
    } listeners[] = {{"server", config->listen.host, demo->ports.customers},
                     {"operator", config->operator_listen.host, demo->ports.operator},
                      {"provider", config->provider_listen.host, demo->ports.providers}};
    struct buffer text = {0};
    struct error error;
    buffer_append_string(&text, "# Where this demo listens; written at each start.\n");
    for (size_t i = 0; i < sizeof listeners / sizeof listeners[0]; i++) {
        buffer_append_format(&text, "[%s]\nlisten = ", listeners[i].section);
        config_append_address(&text, listeners[i].host, listeners[i].port);
        buffer_append_string(&text, "\n\n");
    }
    if (demo_write_addresses(demo->config_file, buffer_string(&text), &error) != STATUS_OK)
        log_event(demo->log, LOG_WARNING, "printed commands may not meet this demo",
                  LOG_STRING("reason", error.text));
    buffer_free(&text);
}

static void print_json(const struct demo *demo, struct screen *screen)
{
    struct simulator_facts facts;
    struct json_writer *json = command_object(demo->line, JSON_COMPACT);
    simulator_facts(demo->simulator, &facts);
    json_string(json, "api", value_of(screen, TEXT("api")));
    json_string(json, "operator", value_of(screen, TEXT("operator")));
    json_string(json, "console", value_of(screen, TEXT("console")));
    json_string(json, "providers", value_of(screen, TEXT("providers")));
    json_string(json, "directory", demo->directory);
    json_string(json, "config", demo->config_file);
    json_string(json, "key", demo->keys.all_sports);
    json_string(json, "limited_key", demo->keys.limited);
    json_object(json, "events");
    for (int i = 0; i < SPORT_COUNT; i++)
        json_text(json, sport_key((enum sport)i), event_id_text(&facts.standing[i]));
    json_end(json);
    json_string(json, "secret", value_of(screen, TEXT("secret")));
    command_print_document(demo->line);
}

/* Only now is it known where the listeners are. */
static void open_casino(struct demo *demo, struct screen *screen)
{
    const struct platform_store_options platform = platform_store_configured(demo->config);
    char *page = memory_format("%s" DEMO_PAGE, value_of(screen, TEXT("operator")));
    struct error error;
    if (demo_casino_open(&demo->casino, &platform, page, value_of(screen, TEXT("providers")),
                         &error) != STATUS_OK)
        log_event(demo->log, LOG_ERROR, "launches lead nowhere", LOG_STRING("reason", error.text));
    memory_free(page);
}

/* Their calls have no certificate to go by, so they stay away from a demo with HTTPS. */
static void start_crowd(struct demo *demo, struct screen *screen)
{
    if (demo->players > 0 && demo->config->tls_certificate[0] == '\0')
        demo->crowd = crowd_start(value_of(screen, TEXT("api")), &demo->keys,
                                  (unsigned)demo->players, demo->odds, demo->simulator);
}

/* Another process of this program publishes the record, so that it ends with the demo at any
 * time. */
static void start_replay(struct demo *demo)
{
    demo->replay = fork();
    if (demo->replay != 0)
        return;
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    (void)execl("/proc/self/exe", "croupier", "feed", "replay", demo->record, "--live", "-c",
                demo->config_file, NULL);
    _exit(EXIT_FAILURE);
}

static void stop_replay(const struct demo *demo)
{
    if (demo->replay > 0 && kill(demo->replay, SIGTERM) == 0)
        (void)waitpid(demo->replay, NULL, 0);
}

static void on_ready(void *context, const struct app_ports *ports)
{
    struct demo *demo = context;
    struct screen screen;
    demo->ports = *ports;
    make_screen(demo, &screen);
    open_casino(demo, &screen);
    write_tour(demo, &screen);
    write_addresses(demo);
    if (command_json(demo->line))
        print_json(demo, &screen);
    else
        print_screen(&screen);
    (void)fflush(stdout);
    start_crowd(demo, &screen);
    if (demo->record != NULL)
        start_replay(demo);
    for (size_t i = 0; i < screen.count; i++)
        buffer_wipe(&screen.values[i].text);
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
    return config_load(&demo->config, command_option_or(demo->line, "config", demo->config_file),
                       demo->overrides, error);
}

/* The operator's port is not worth failing for, unless that very one was asked for. */
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
    config_append_address(&demo->operator_listen, wanted->host, 0);
    demo->usual_operator_port = wanted->port;
    add_override(demo, "operator.listen", buffer_string(&demo->operator_listen));
    config_release(&demo->config);
    return load_config(demo, error);
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
            "is not in %s; remove the file, which is then written again, or the variable",
            demo->config_file, odds ? "PLATFORM" : "ODDS", buffer_string(&shown), demo->directory);
        buffer_free(&shown);
    }
    config_release(&config);
    return status;
}

static enum status configure(struct demo *demo, struct error *error)
{
    const char *directory = command_option_or(demo->line, "dir", "./demo-data");
    const char *listen = command_option(demo->line, "listen");
    enum status status = demo_take_directory(directory, &demo->directory, &demo->lock, error);
    if (status == STATUS_OK)
        status = demo_write_config(demo->directory, &demo->config_file, error);
    if (status != STATUS_OK)
        return status;
    (void)snprintf(demo->odds_uri, sizeof demo->odds_uri, "embedded:%s/odds", demo->directory);
    (void)snprintf(demo->platform_uri, sizeof demo->platform_uri, "sqlite:%s/platform.db",
                   demo->directory);
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
        !is_free(demo->config->listen.host, demo->config->listen.port, error)) {
        error_append(error, "; give another address with --listen ADDR:PORT");
        status = STATUS_UNAVAILABLE;
    }
    if (status != STATUS_OK)
        return status;
    if (demo->config->provider_listen.text[0] == '\0') {
        add_override(demo, "provider.listen", "127.0.0.1:0");
        config_release(&demo->config);
        status = load_config(demo, error);
    }
    return status == STATUS_OK ? choose_operator_port(demo, error) : status;
}

static enum status prepare(struct demo *demo, struct error *error)
{
    const struct config *config = demo->config;
    demo->log = log_create(STDERR_FILENO, config->log_level, config->log_format);
    struct odds_store_options odds = odds_store_configured(config);
    odds.create = true;
    odds.log = demo->log;
    const struct simulator_options simulated = {.seed = (uint64_t)clock_wall_ms(),
                                                .sports = SPORT_SET_ALL,
                                                .events = SIMULATOR_EVENTS_DEFAULT,
                                                .interval_ms = SIMULATOR_INTERVAL_DEFAULT_MS,
                                                .standing = true,
                                                .interrupted = SPORT_BIT(SPORT_GREYHOUND_RACING)};
    enum status status =
        demo_prepare_platform(demo->directory, config, &demo->keys, &demo->casino, error);
    if (status == STATUS_OK)
        status = odds_store_open(&demo->odds, &odds, error);
    if (status != STATUS_OK)
        return status;
    demo->simulator = simulator_create(&simulated, clock_wall_ms());
    if (demo->record != NULL)
        return simulator_tick(demo->simulator, clock_wall_ms(), demo->odds, error);
    return simulator_start(demo->simulator, demo->odds, demo->log, error);
}

static void let_go(struct demo *demo)
{
    stop_replay(demo);
    crowd_stop(&demo->crowd);
    simulator_destroy(&demo->simulator);
    odds_store_close(&demo->odds);
    log_destroy(&demo->log);
    config_release(&demo->config);
    file_close(&demo->lock);
    explicit_bzero(&demo->keys, sizeof demo->keys);
    demo_casino_clear(&demo->casino);
    buffer_free(&demo->operator_listen);
    memory_free(demo->directory);
    memory_free(demo->config_file);
}

void run_demo(const struct command_line *line)
{
    struct demo demo = {.line = line,
                        .lock = -1,
                        .record = command_option(line, "replay"),
                        .players = command_number(line, "players", 0, CROWD_MAX, PLAYERS)};
    struct feed_reading reading = {.directory = demo.record, .to_ms = INT64_MAX};
    struct error *error = command_error(line);
    if (demo.record != NULL)
        command_require(line, feed_record_read(&reading, error));
    enum status status = configure(&demo, error);
    if (status == STATUS_OK)
        status = prepare(&demo, error);
    if (status == STATUS_OK) {
        const struct app_options options = {.config = demo.config,
                                            .config_path =
                                                command_option_or(line, "config", demo.config_file),
                                            .overrides = demo.overrides,
                                            .log = demo.log,
                                            .odds = demo.odds,
                                            .hangup_ends = true,
                                            .ready = on_ready,
                                            .page = demo_casino_handle,
                                            .page_context = &demo.casino,
                                            .context = &demo};
        status = app_run(&options, error);
        log_destroy(&demo.log); /* its lines come before a refusal */
    }
    if (status == STATUS_OK && !command_json(line))
        printf("\nstopped; the stores are in %s\n", demo.directory);
    let_go(&demo);
    if (status != STATUS_OK && demo.mistyped)
        command_usage(line, "%s", error->text);
    command_require(line, status);
}
