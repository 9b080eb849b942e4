/*
 * Start-up and shut-down, in order. Everything here runs on the main thread, whose loop waits for
 * signals, for mails of the workers, and serves the operator listener.
 *
 * Taking down goes backwards in the order of who uses whom: workers drain (no requests are left,
 * though calls to the stores may still be out that were made for them), the health probe, the
 * leases of rate limits, the launcher, the ledger, the sports' reads and then the work pool that
 * they come back to end (no more mail is made for workers), workers stop, then what they
 * shared goes.
 */
#include "app/app.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "admission/admission.h"
#include "admission/rate_lease.h"
#include "api/health.h"
#include "api/rate_limiter.h"
#include "api/routes.h"
#include "api/service.h"
#include "app/operator_listener.h"
#include "app/reload_socket.h"
#include "app/worker.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/work_pool.h"
#include "games/games.h"
#include "launch/launch.h"
#include "sports/sports.h"
#include "wallet/ledger.h"

#define POLICY_REFRESH_MS 200
#define STORES_WAIT_MS 3000
#define STORES_LOOK_MS 10
#define WORK_QUEUE_LIMIT 4096
#define LEDGER_QUEUE_LIMIT 4096
/* Descriptors that are not client connections: stores, logs, loops, the operator's connections; and
 * calls of providers (each may have a second one while its name is resolved). */
#define SPARE_DESCRIPTORS (128 + 2 * PROVIDER_CALLS_AT_ONCE)

struct app {
    const struct app_options *options;
    const struct config *config;
    struct log *log;

    uv_loop_t loop;
    struct mailbox *mailbox;
    uv_signal_t signals[3];
    uv_timer_t drain_deadline;
    uv_timer_t second;   /* looks at the age of what is served */
    uv_timer_t starting; /* looks whether the stores can be used, until the workers are there */
    uint64_t started_ms;

    struct odds_store *odds;
    struct platform_facts platform; /* of all the handles of this service */
    struct worker_shared shared;
    struct work_pool *pool;
    struct metrics *metrics;
    struct http_tls *tls;
    struct operator_listener *operator_listener;
    struct reload_socket *reload_socket;

    int *listeners; /* descriptors not yet taken over by a worker are >= 0 */
    size_t listener_count;
    struct worker **workers;
    size_t worker_count;
    size_t drained_count;
    uint16_t port;
    bool draining;
    bool reload_waits; /* a SIGHUP came before the workers were there */
};

/* ---- the end --------------------------------------------------------------------------------- */

static void on_worker_drained(void *context)
{
    struct app *app = context;
    if (++app->drained_count == app->worker_count)
        uv_stop(&app->loop);
}

static void abort_workers(struct app *app)
{
    for (size_t i = 0; i < app->worker_count; i++)
        worker_abort(app->workers[i]);
}

static void on_drain_deadline(uv_timer_t *timer)
{
    struct app *app = timer->data;
    log_event(app->log, LOG_WARNING, "drain took too long; closing what is left",
              LOG_INTEGER("drain_seconds", app->config->drain_seconds));
    abort_workers(app);
}

static void drain(struct app *app, int signal)
{
    if (app->draining) {
        log_event(app->log, LOG_WARNING, "second signal; closing what is left",
                  LOG_INTEGER("signal", signal));
        abort_workers(app);
        return;
    }
    app->draining = true;
    (void)uv_timer_stop(&app->starting);
    log_event(app->log, LOG_INFO, "draining", LOG_INTEGER("signal", signal),
              LOG_INTEGER("drain_seconds", app->config->drain_seconds));
    for (size_t i = 0; i < app->worker_count; i++)
        worker_drain(app->workers[i]);
    if (app->worker_count == 0)
        uv_stop(&app->loop);
    CHECK(uv_timer_start(&app->drain_deadline, on_drain_deadline,
                         (uint64_t)app->config->drain_seconds * 1000, 0) == 0);
}

/* ---- reading the configuration again --------------------------------------------------------- */

/* A configuration that the workers take over. */
struct reloading {
    struct app *app;
    const struct config *config;
    int asker;             /* -1: it was a signal */
    size_t waits_for;      /* workers */
    struct buffer restart; /* the changed settings that need one */
};

static void on_worker_reloaded(void *context)
{
    struct reloading *reloading = context;
    if (--reloading->waits_for > 0)
        return;
    struct log *log = reloading->app->log;
    const char *restart = buffer_string(&reloading->restart);
    log_event(log, LOG_INFO, "configuration read again",
              LOG_STRING("file", reloading->config->path));
    if (restart[0] != '\0')
        log_event(log, LOG_WARNING, "some changed settings need a restart",
                  LOG_STRING("settings", restart));
    reload_answer(reloading->asker, true, restart);
    buffer_free(&reloading->restart);
    config_release(&reloading->config);
    memory_free(reloading);
}

static void apply(struct app *app, const struct config *config, struct http_tls *tls, int asker)
{
    struct reloading *reloading = memory_alloc_zeroed(1, sizeof *reloading);
    reloading->app = app;
    reloading->config = config_hold(config);
    reloading->asker = asker;
    reloading->waits_for = app->worker_count;
    /* Not with what was read last: that has not come into force either. */
    config_list_restart_needed(app->options->config, config, &reloading->restart);
    log_configure(app->log, config->log_level, config->log_format);
    sports_set_waiting_max(app->shared.sports, config->waiting_max);
    sports_set_stale_after(app->shared.sports, config->stale_after_s);
    for (size_t i = 0; i < app->worker_count; i++)
        worker_reload(app->workers[i], config, tls, on_worker_reloaded, reloading);
}

static enum status read_again(struct app *app, const struct config **config, struct http_tls **tls,
                              struct error *error)
{
    enum status status =
        config_load(config, app->options->config_path, app->options->overrides, error);
    if (status != STATUS_OK || app->tls == NULL || (*config)->tls_certificate[0] == '\0')
        return status;
    status = http_tls_create(tls, (*config)->tls_certificate, (*config)->tls_key, error);
    if (status != STATUS_OK)
        config_release(config);
    return status;
}

static void reload(struct app *app, int asker)
{
    const struct config *config = NULL;
    struct http_tls *tls = NULL;
    struct error error;
    if (read_again(app, &config, &tls, &error) != STATUS_OK) {
        log_event(app->log, LOG_ERROR, "configuration not read again; nothing has changed",
                  LOG_STRING("reason", error.text));
        reload_answer(asker, false, error.text);
        return;
    }
    apply(app, config, tls, asker);
    http_tls_release(&tls);
    config_release(&app->config);
    app->config = config;
}

static void on_reload_asked(void *context, int asker)
{
    reload(context, asker);
}

static void on_signal(uv_signal_t *handle, int signal)
{
    struct app *app = handle->data;
    if (signal == SIGHUP && app->worker_count == 0)
        app->reload_waits = true;
    else if (signal == SIGHUP)
        reload(app, -1);
    else
        drain(app, signal);
}

/* ---- what the operator sees ------------------------------------------------------------------ */

static const struct metric *const counted[] = {service_metrics, rate_limiter_metrics,
                                               sports_counted_metrics, NULL};

/* What is left. */
struct app_facts {
    uint64_t work_queue_depth;
    uint64_t log_lines_dropped;
};

static const struct metric app_metrics[] = {
    METRIC_FACT("croupier_work_queue_depth", "gauge", struct app_facts, work_queue_depth,
                "Jobs waiting for a background thread"),
    METRIC_FACT("croupier_log_lines_dropped_total", "counter", struct app_facts, log_lines_dropped,
                "Log lines dropped because standard error was not read or could not be written"),
    {0},
};

static void write_metrics(void *context, struct buffer *out)
{
    struct app *app = context;
    struct rate_leases_facts leases = {0};
    struct sports_facts sports;
    struct policies_facts policies;
    struct odds_facts odds;
    struct ledger_facts ledger;
    struct launcher_facts launcher;
    if (app->shared.leases != NULL)
        rate_leases_facts(app->shared.leases, &leases);
    sports_facts(app->shared.sports, &sports);
    policies_facts(app->shared.policies, &policies);
    odds_store_facts(app->odds, &odds);
    ledger_facts(app->shared.ledger, &ledger);
    launcher_facts(app->shared.launcher, &launcher);
    int64_t games_age_ms = refresher_age_ms(games_refresher(app->shared.games));
    const struct app_facts own = {work_pool_depth(app->pool), log_dropped(app->log)};
    const struct metrics_source sources[] = {
        {metrics_table, app->metrics},      {service_metrics, NULL},
        {rate_leases_metrics, &leases},     {rate_limiter_metrics, NULL},
        {sports_counted_metrics, NULL},     {sports_metrics, &sports},
        {policies_metrics, &policies},      {odds_metrics, &odds},
        {platform_metrics, &app->platform}, {app_metrics, &own},
        {ledger_metrics, &ledger},          {games_metrics, &games_age_ms},
        {launcher_metrics, &launcher},      {0},
    };
    metrics_write(app->metrics, sources, out);
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* As many descriptors as the connections may need, or a warning that says how many there are. */
static void raise_descriptor_limit(struct app *app)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    rlim_t wanted = (rlim_t)app->config->max_connections + SPARE_DESCRIPTORS;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur < wanted)
        log_event(app->log, LOG_WARNING, "fewer descriptors than max_connections needs",
                  LOG_INTEGER("descriptors", limit.rlim_cur), LOG_INTEGER("needed", wanted));
}

static enum status open_listeners(struct app *app, struct error *error)
{
    const struct config *config = app->config;
    app->listeners = memory_alloc_zeroed(config->threads, sizeof app->listeners[0]);
    for (; app->listener_count < config->threads; app->listener_count++)
        app->listeners[app->listener_count] = -1;
    for (size_t i = 0; i < config->threads; i++) {
        enum status status =
            http_listen(config->listen.host, config->listen.port, config->threads > 1,
                        &app->listeners[i], &app->port, error);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status open_stores(struct app *app, struct error *error)
{
    const struct config *config = app->config;
    const struct platform_store_options platform = {
        .uri = config->platform_store,
        .timeout_ms = config->platform_timeout_ms,
        .log = app->log,
        .facts = &app->platform,
    };
    /* A schema that this program cannot use is a mistake to be reported at once; a store that is
     * away may come back. */
    struct platform_store *store = NULL;
    enum status status = platform_store_open(&store, &platform, error);
    platform_store_close(&store);
    if (status == STATUS_INVALID)
        return status;
    if (app->options->odds != NULL) {
        app->odds = app->options->odds;
    } else {
        const struct odds_store_options odds = {
            .uri = config->odds_store,
            .timeout_ms = config->odds_timeout_ms,
            .prefix = config->odds_prefix,
            .create = true,
            .patient = true,
            .log = app->log,
        };
        status = odds_store_open(&app->odds, &odds, error);
        if (status != STATUS_OK)
            return status;
    }
    const struct policies_options policies = {
        .store = platform,
        .refresh_ms = POLICY_REFRESH_MS,
        .log = app->log,
    };
    app->shared.policies = policies_create(&policies);
    if (odds_store_has_leases(app->odds))
        app->shared.leases = rate_leases_create(app->odds, app->log);
    app->shared.games =
        games_create(&platform, config->secrets_key_file, POLICY_REFRESH_MS, app->log);
    const struct launcher_options launcher = {
        .store = platform,
        .call_timeout_ms = config->launch_timeout_ms,
        .call_ca_file = config->launch_ca_file,
        .log = app->log,
    };
    app->shared.launcher = launcher_create(&launcher);
    const struct health_options health = {
        .odds = app->odds,
        .odds_timeout_ms = config->odds_timeout_ms,
        .platform = platform,
        .log = app->log,
    };
    app->shared.health = health_create(&health);
    const struct ledger_options ledger = {
        .platform = platform,
        .queue_limit = LEDGER_QUEUE_LIMIT,
        .batch_max = config->batch_max,
        .log = app->log,
    };
    app->shared.ledger = ledger_create(&ledger);
    return STATUS_OK;
}

static void start_workers(struct app *app)
{
    const struct config *config = app->config;
    app->workers = memory_alloc_zeroed(config->threads, sizeof(struct worker *));
    for (; app->worker_count < config->threads; app->worker_count++) {
        size_t i = app->worker_count;
        const struct worker_options options = {
            .index = i,
            .listener = app->listeners[i],
            .config = config,
            .tls = app->tls,
            .shared = &app->shared,
            .metrics = metrics_shard(app->metrics, i),
            .log = app->log,
            .boss = app->mailbox,
            .drained = on_worker_drained,
            .context = app,
        };
        app->listeners[i] = -1;
        app->workers[i] = worker_start(&options);
    }
}

static void watch_signals(struct app *app)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        CHECK(uv_signal_init(&app->loop, &app->signals[i]) == 0);
        app->signals[i].data = app;
        CHECK(uv_signal_start(&app->signals[i], on_signal, numbers[i]) == 0);
    }
}

static void format_listener(char out[96], const char *host, uint16_t port)
{
    (void)snprintf(out, 96, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

static void announce(struct app *app)
{
    uint16_t operator_port = operator_listener_port(app->operator_listener);
    char public[96];
    char operator[96];
    format_listener(public, app->config->listen.host, app->port);
    format_listener(operator, app->config->operator_listen.host, operator_port);
    log_event(app->log, LOG_INFO, "listening", LOG_STRING("listener", "operator"),
              LOG_STRING("address", operator));
    log_event(app->log, LOG_INFO, "listening", LOG_STRING("listener", "public"),
              LOG_STRING("address", public), LOG_INTEGER("threads", app->config->threads),
              LOG_STRING("scheme", app->tls != NULL ? "https" : "http"));
    if (app->options->ready != NULL)
        app->options->ready(app->options->context, app->port, operator_port);
}

/* Requests are taken when they can be answered, so that a load balancer that finds this instance
 * listening does not send it customers that it would have to refuse. Until then they wait in the
 * listening sockets' queues. Without its stores it serves all the same after a while: its errors
 * say what is wrong, and what needs no store goes on. */
static void on_second(uv_timer_t *timer)
{
    struct app *app = timer->data;
    if (app->config->stale_after_s > 0 && app->shared.sports != NULL)
        sports_look_at_ages(app->shared.sports);
}

static void on_starting(uv_timer_t *timer)
{
    struct app *app = timer->data;
    uint64_t stamp;
    bool policies = refresher_wait_ready(policies_refresher(app->shared.policies), 0);
    bool games = refresher_wait_ready(games_refresher(app->shared.games),
                                      0); /* it says itself what is wrong, */
    bool odds = odds_store_stamp(app->odds, &stamp) == STATUS_OK; /* and so do the odds */
    bool waited = clock_monotonic_ms() - app->started_ms >= STORES_WAIT_MS;
    if (!(policies && games && odds) && !waited)
        return;
    (void)uv_timer_stop(timer);
    if (!policies)
        log_event(app->log, LOG_ERROR,
                  "no policies yet: nobody is admitted until the platform store answers");
    start_workers(app);
    announce(app);
    if (app->reload_waits)
        reload(app, -1);
    reload_socket_accept(app->reload_socket);
}

static enum status start(struct app *app, struct error *error)
{
    const struct config *config = app->config;
    enum status status;
    raise_descriptor_limit(app);
    if (config->tls_certificate[0] != '\0') {
        status = http_tls_create(&app->tls, config->tls_certificate, config->tls_key, error);
        if (status != STATUS_OK)
            return status;
    }
    if (config->launch_ca_file[0] != '\0') {
        status = outgoing_check_ca_file(config->launch_ca_file, error);
        if (status != STATUS_OK)
            return status;
    }
    status = open_listeners(app, error);
    if (status != STATUS_OK)
        return status;
    const struct operator_listener_options listener = {
        .loop = &app->loop,
        .listen = config->operator_listen,
        .write_metrics = write_metrics,
        .context = app,
        .page = app->options->page,
        .page_context = app->options->page_context,
        .log = app->log,
    };
    status = operator_listener_create(&app->operator_listener, &listener, error);
    if (status != STATUS_OK)
        return status;
    status = open_stores(app, error);
    if (status != STATUS_OK)
        return status;
    app->reload_socket = reload_socket_create(&app->loop, on_reload_asked, app, app->log);
    app->pool =
        work_pool_create("ready", config->threads > 2 ? config->threads : 2, WORK_QUEUE_LIMIT);
    app->shared.sports = sports_create(app->odds, config->odds_timeout_ms, app->pool, app->log);
    sports_set_waiting_max(app->shared.sports, config->waiting_max);
    sports_set_stale_after(app->shared.sports, config->stale_after_s);
    app->started_ms = clock_monotonic_ms();
    CHECK(uv_timer_start(&app->second, on_second, 1000, 1000) == 0);
    CHECK(uv_timer_start(&app->starting, on_starting, 0, STORES_LOOK_MS) == 0);
    return STATUS_OK;
}

/* Takes down whatever there is; also after a start that failed half-way. */
static void take_down(struct app *app)
{
    health_destroy(&app->shared.health);
    rate_leases_destroy(&app->shared.leases);
    launcher_destroy(&app->shared.launcher);
    ledger_destroy(&app->shared.ledger);
    if (app->shared.sports != NULL)
        sports_drain(app->shared.sports);
    work_pool_destroy(&app->pool);
    for (size_t i = 0; i < app->worker_count; i++)
        worker_stop(&app->workers[i]);
    memory_free(app->workers);
    for (size_t i = 0; i < app->listener_count; i++)
        if (app->listeners[i] >= 0)
            (void)close(app->listeners[i]);
    memory_free(app->listeners);
    sports_destroy(&app->shared.sports);
    games_destroy(&app->shared.games);
    policies_destroy(&app->shared.policies);
    if (app->options->odds == NULL)
        odds_store_close(&app->odds);
    http_tls_release(&app->tls);
}

static void close_handle(uv_handle_t *handle, void *context)
{
    (void)context;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

enum status app_run(const struct app_options *options, struct error *error)
{
    struct app app = {.options = options, .log = options->log};
    app.config = config_hold(options->config);
    CHECK(uv_loop_init(&app.loop) == 0);
    app.mailbox = mailbox_create(&app.loop);
    CHECK(uv_timer_init(&app.loop, &app.drain_deadline) == 0);
    app.drain_deadline.data = &app;
    CHECK(uv_timer_init(&app.loop, &app.second) == 0);
    app.second.data = &app;
    CHECK(uv_timer_init(&app.loop, &app.starting) == 0);
    app.starting.data = &app;
    app.metrics = metrics_create(&(struct metrics_options){
        .threads = app.config->threads, .route_label = route_label, .counted = counted});
    watch_signals(&app);

    enum status status = start(&app, error);
    if (status == STATUS_OK)
        (void)uv_run(&app.loop, UV_RUN_DEFAULT);
    reload_socket_destroy(&app.reload_socket);
    operator_listener_destroy(&app.operator_listener); /* last: an operator can watch the drain */
    take_down(&app);
    mailbox_destroy(&app.mailbox);
    uv_walk(&app.loop, close_handle, NULL);
    (void)uv_run(&app.loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&app.loop) == 0);
    metrics_destroy(&app.metrics);
    if (status == STATUS_OK)
        log_event(app.log, LOG_INFO, "stopped");
    config_release(&app.config);
    return status;
}
