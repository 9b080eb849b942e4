/*
 * Start-up and shut-down, in order. Everything here runs on the main thread, whose loop waits for
 * signals, for mails of the workers, and serves the operator listener.
 *
 * Shut-down is the reverse: users of a part end before the part. Workers drain: no requests are
 * left, though their calls to the stores may be under way. Then the health probe, the leases of
 * rate limits, the launcher, the account, the ledger, the sports' reads and then the work pool that
 * they come back to end (no more mail is made for workers), workers stop, then what they shared
 * goes.
 */
#include "app/app.h"

#include <malloc.h>
#include <sys/resource.h>

#include "api/routes.h"
#include "app/handover.h"
#include "app/notifier.h"
#include "app/operator_listener.h"
#include "app/process.h"
#include "app/reload_socket.h"
#include "app/worker.h"
#include "base/clock.h"
#include "base/errand.h"
#include "base/memory.h"
#include "launch/launch.h"
#include "limits/rate_limiter.h"
#include "operator/verification.h"
#include "sports/sports.h"
#include "stores/configured.h"
#include "stores/odds_read.h"
#include "usage/usage.h"
#include "wallet/ledger.h"

#define POLICY_REFRESH_MS 200
#define TRIM_SECONDS 5
#define TRIM_CONNECTIONS 128 /* closed since memory was last returned */
#define USAGE_PERIOD_MS 60000
#define STORES_WAIT_MS 3000
#define STORES_LOOK_MS 10
#define TAKE_OVER_WAIT_MS 30000 /* for all stores, before it is given up */
#define WORK_QUEUE_LIMIT 4096
#define LEDGER_QUEUE_LIMIT 4096
/* How often the watchdog is fed within the service manager's limit, or /live learns of a thread
 * that hangs. */
#define WATCHDOG_ROUNDS 4
#define WATCHDOG_OWN_MS 5000
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
    uv_timer_t second;   /* looks at the age of what is served, and at unused memory */
    uint64_t seconds;    /* how often it did so */
    uint64_t trimmed;    /* connections that were closed when memory was returned last */
    uv_timer_t watchdog; /* looks whether the workers go on */
    uv_timer_t starting; /* looks whether the stores can be used, until the workers are there */
    uint64_t started_ms;
    int64_t started_wall_ms; /* the process */

    struct odds_store *odds;
    struct platform_facts platform; /* of all the handles of this service */
    struct service_shared shared;
    struct work_pool *pool;
    struct refresher *verifications; /* the ledger's last ones */
    struct table_hold verifications_hold;
    struct metrics *metrics;
    struct listener_tls tls;
    struct operator_listener *operator_listener;
    struct console *console;
    struct reload_socket *reload_socket;
    struct reload_socket *upgrade_socket; /* NULL where this service cannot be handed over */
    struct handover *handover;            /* to a new process; NULL: none is under way */
    int upgrade_asker;
    struct error *failure; /* of what is found out when the loop runs */
    enum status failed;
    struct notifier *notifier;

    struct handover_sockets sockets; /* the listening ones; 0: not made yet */
    struct worker **workers; /* each has taken over its sockets, and keeps them until the end */
    size_t worker_count;
    size_t drained_count;
    size_t silent_count; /* workers that have not answered the watchdog yet */
    bool silence_logged; /* and /live says so */
    bool loaded;         /* all stores could be used once */
    uint16_t ports[LISTENERS];
    bool draining;
    struct reading *reading; /* the configuration again; NULL: none is under way */
    bool reload_waits;       /* for that, or for the workers to be there */
    int waiting_asker;
};

/* `max_connections` is of each listener. */
static uint64_t connections_max(const struct config *config)
{
    return (config->provider_listen.text[0] != '\0' ? 2U : 1U) * (uint64_t)config->max_connections;
}

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

static void begin_drain(struct app *app, bool handed_over)
{
    app->draining = true;
    (void)uv_timer_stop(&app->starting);
    for (size_t i = 0; i < app->worker_count; i++)
        worker_drain(app->workers[i], handed_over);
    if (app->worker_count == 0)
        uv_stop(&app->loop);
    CHECK(uv_timer_start(&app->drain_deadline, on_drain_deadline,
                         (uint64_t)app->config->drain_seconds * 1000, 0) == 0);
}

static void drain(struct app *app, int signal)
{
    if (app->draining) {
        log_event(app->log, LOG_WARNING, "second signal; closing what is left",
                  LOG_INTEGER("signal", signal));
        abort_workers(app);
        return;
    }
    notifier_send(app->notifier, NOTICE_STOPPING);
    if (app->handover != NULL) { /* a change to the sockets would reach the new process */
        handover_destroy(&app->handover);
        reload_answer(app->upgrade_asker, false, "the server is ending");
    }
    log_event(app->log, LOG_INFO, "draining", LOG_INTEGER("signal", signal),
              LOG_INTEGER("drain_seconds", app->config->drain_seconds));
    begin_drain(app, false);
}

/* ---- handing over to a new version ----------------------------------------------------------- */

static void on_handed_over(void *context, int process, const char *reason)
{
    struct app *app = context;
    char digits[16];
    if (process == 0) {
        log_event(app->log, LOG_ERROR, "not handed over; going on", LOG_STRING("reason", reason));
        reload_answer(app->upgrade_asker, false, reason);
        handover_destroy(&app->handover);
        return;
    }
    (void)snprintf(digits, sizeof digits, "%d", process);
    notifier_send_main(app->notifier, process);
    log_event(app->log, LOG_INFO, "handed over; draining", LOG_INTEGER("process", process),
              LOG_INTEGER("drain_seconds", app->config->drain_seconds));
    operator_listener_hand_over(app->operator_listener);
    begin_drain(app, true);
    reload_answer(app->upgrade_asker, true, digits);
    handover_destroy(&app->handover);
}

static void on_upgrade_asked(void *context, int asker)
{
    struct app *app = context;
    struct error error = {0};
    const char *refusal = app->draining           ? "the server is ending"
                          : app->handover != NULL ? "it is handing over already"
                                                  : "";
    if (refusal[0] == '\0' &&
        handover_start(&app->handover, &app->loop, app->options->arguments, &app->sockets,
                       on_handed_over, app, &error) != STATUS_OK)
        refusal = error.text;
    if (refusal[0] == '\0') {
        app->upgrade_asker = asker;
        log_event(app->log, LOG_INFO, "starting a new process, to hand over to it");
        return;
    }
    log_event(app->log, LOG_ERROR, "not handed over; going on", LOG_STRING("reason", refusal));
    reload_answer(asker, false, refusal);
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

static reload_asked reload;

static void on_worker_reloaded(void *context)
{
    struct reloading *reloading = context;
    if (--reloading->waits_for > 0)
        return;
    struct log *log = reloading->app->log;
    const char *restart = buffer_string(&reloading->restart);
    notifier_send(reloading->app->notifier, NOTICE_READY);
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

static void set_limits(struct app *app, const struct config *config)
{
    struct client_limits *limits = app->shared.limits;
    sports_set_limits(app->shared.sports, config->waiting_max, config->stale_after_s,
                      config->differences_mib);
    client_limits_set(limits, CONNECTIONS_PER_ADDRESS,
                      config_share(config->connections_per_address, config->max_connections));
    client_limits_set(limits, CONNECTIONS_PER_CUSTOMER,
                      config_share(config->connections_per_customer, config->max_connections));
    client_limits_set(limits, WAITING_PER_CUSTOMER,
                      config_share(config->waiting_per_customer, config->waiting_max));
}

static void apply(struct app *app, const struct config *config, int asker)
{
    struct reloading *reloading = memory_alloc_zeroed(1, sizeof *reloading);
    reloading->app = app;
    reloading->config = config_hold(config);
    reloading->asker = asker;
    reloading->waits_for = app->worker_count;
    /* Compares with the configuration of the start, because settings that need a restart are still
     * that one's. */
    config_list_restart_needed(app->options->config, config, &reloading->restart);
    log_configure(app->log, config->log_level, config->log_format);
    set_limits(app, config);
    for (size_t i = 0; i < app->worker_count; i++)
        worker_reload(app->workers[i], config, on_worker_reloaded, reloading);
}

/* Reads the certificates of the listeners that `wanted` names and that have one. */
static enum status read_tls(struct log *log, const struct config *config,
                            const bool wanted[LISTENERS], struct listener_tls *tls,
                            struct error *error)
{
    const char *const files[LISTENERS][2] = {
        [LISTENER_CUSTOMERS] = {config->tls_certificate, config->tls_key},
        [LISTENER_PROVIDERS] = {config->provider_tls_certificate, config->provider_tls_key},
        [LISTENER_OPERATOR] = {config->operator_tls_certificate, config->operator_tls_key},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < LISTENERS && status == STATUS_OK; i++)
        if (wanted[i] && files[i][0][0] != '\0') {
            status = http_tls_create(&tls->of[i], files[i][0], files[i][1], error);
            if (status == STATUS_OK && http_tls_expiry_ms(tls->of[i]) <= clock_wall_ms())
                log_event(log, LOG_WARNING, "a certificate has expired, so clients refuse it",
                          LOG_STRING("tls_certificate", files[i][0]));
        }
    if (status != STATUS_OK)
        listener_tls_destroy(tls);
    return status;
}

/* A reload reads its files on a thread: one may be on a mount that hangs, or be a FIFO. */
struct reading {
    struct errand errand; /* first */
    struct app *app;
    int asker; /* -1: it was a signal */
    const struct app_options *options;
    bool wanted[LISTENERS]; /* a listener without TLS gets none without a restart */
    enum status status;
    const struct config *config;
    struct listener_tls tls;
    struct error error;
};

static void read_again(struct errand *errand)
{
    struct reading *reading = (struct reading *)errand;
    const struct app_options *options = reading->options;
    reading->status =
        config_load(&reading->config, options->config_path, options->overrides, &reading->error);
    if (reading->status == STATUS_OK)
        reading->status = read_tls(reading->app->log, reading->config, reading->wanted,
                                   &reading->tls, &reading->error);
}

static void destroy_reading(struct errand *errand)
{
    struct reading *reading = (struct reading *)errand;
    listener_tls_destroy(&reading->tls);
    config_release(&reading->config);
    memory_free(reading);
}

static void take_over(struct reading *reading)
{
    struct app *app = reading->app;
    if (reading->status != STATUS_OK) {
        log_event(app->log, LOG_ERROR, "configuration not read again; nothing has changed",
                  LOG_STRING("reason", reading->error.text));
        notifier_send(app->notifier, NOTICE_READY); /* as it was */
        reload_answer(reading->asker, false, reading->error.text);
        return;
    }
    for (size_t i = 0; i < LISTENERS; i++)
        if (reading->tls.of[i] != NULL)
            http_tls_replace(app->tls.of[i], &reading->tls.of[i]);
    apply(app, reading->config, reading->asker);
    console_set_config(app->console, reading->config);
    config_release(&app->config);
    app->config = reading->config;
    reading->config = NULL;
}

static void on_read_again(struct errand *errand)
{
    struct reading *reading = (struct reading *)errand;
    struct app *app = reading->app;
    app->reading = NULL;
    take_over(reading);
    if (app->reload_waits)
        reload(app, app->waiting_asker);
}

/* A file may change while it is read, so who asks then has it read once more. */
static void reload(void *context, int asker)
{
    struct app *app = context;
    if (app->reading != NULL && app->reload_waits && app->waiting_asker >= 0) {
        reload_answer(asker, false, "others wait for the configuration to be read already");
        return;
    }
    app->reload_waits = app->reading != NULL;
    app->waiting_asker = asker;
    if (app->reload_waits)
        return;
    struct reading *reading = memory_alloc_zeroed(1, sizeof *reading);
    reading->errand.run = read_again;
    reading->errand.done = on_read_again;
    reading->errand.destroy = destroy_reading;
    reading->app = app;
    reading->asker = asker;
    reading->options = app->options;
    for (size_t i = 0; i < LISTENERS; i++)
        reading->wanted[i] = app->tls.of[i] != NULL;
    reading->status = error_set(&reading->error, STATUS_UNAVAILABLE, "there is no thread for it");
    app->reading = reading;
    notifier_send(app->notifier, NOTICE_RELOADING);
    errand_start(&reading->errand, app->mailbox, "reload");
}

/* Nothing waits for what still reads. */
static void abandon_reading(struct app *app)
{
    static const char ending[] = "the server is ending";
    if (app->reading == NULL)
        return;
    reload_answer(app->reading->asker, false, ending);
    if (app->reload_waits)
        reload_answer(app->waiting_asker, false, ending);
    errand_abandon(&app->reading->errand);
    app->reading = NULL;
}

static void on_signal(uv_signal_t *handle, int signal)
{
    struct app *app = handle->data;
    if (signal != SIGHUP || app->options->hangup_ends)
        drain(app, signal);
    else if (app->worker_count == 0)
        app->reload_waits = true; /* by no command: those are not heard yet */
    else
        reload(app, -1);
}

/* ---- the watchdog ---------------------------------------------------------------------------- */

static void on_worker_alive(void *context)
{
    struct app *app = context;
    if (--app->silent_count > 0)
        return;
    app->silence_logged = false;
    if (notifier_watchdog_ms(app->notifier) > 0)
        notifier_send(app->notifier, NOTICE_ALIVE);
}

/* The service manager hears of us when every serving thread has answered from its loop. One that
 * hangs is waited for, and then the manager has heard nothing for too long. */
static void on_watchdog(uv_timer_t *timer)
{
    struct app *app = timer->data;
    if (app->silent_count > 0) {
        if (!app->silence_logged)
            log_event(app->log, LOG_ERROR, "serving threads do not answer the watchdog",
                      LOG_INTEGER("threads", app->silent_count));
        app->silence_logged = true;
        return;
    }
    app->silent_count = app->worker_count;
    for (size_t i = 0; i < app->worker_count; i++)
        worker_ask(app->workers[i], on_worker_alive, app);
}

static void start_watchdog(struct app *app)
{
    uint64_t period_ms = notifier_watchdog_ms(app->notifier) / WATCHDOG_ROUNDS;
    if (period_ms == 0)
        period_ms = WATCHDOG_OWN_MS;
    CHECK(uv_timer_start(&app->watchdog, on_watchdog, period_ms, period_ms) == 0);
}

/* ---- answers to orchestrators ---------------------------------------------------------------- */

static const char *why_stuck(void *context)
{
    const struct app *app = context;
    return app->silence_logged ? "stuck" : NULL;
}

/* Instances that share their stores lose them together, so a store that goes away later takes none
 * of them out of a load balancer. */
static const char *why_unready(void *context)
{
    const struct app *app = context;
    return app->draining ? "draining" : !app->loaded || app->worker_count == 0 ? "loading" : NULL;
}

/* ---- the operator's view ------------------------------------------------------------------ */

static const struct metric *const counted[] = {service_metrics, rate_limiter_metrics,
                                               sports_counted_metrics, NULL};

/* What is left. */
struct app_facts {
    uint64_t work_queue_depth;
    uint64_t log_lines_dropped;
    uint64_t connections_max;
};

static const struct metric app_metrics[] = {
    METRIC_FACT("croupier_work_queue_depth", struct app_facts, work_queue_depth),
    METRIC_FACT("croupier_log_lines_dropped_total", struct app_facts, log_lines_dropped),
    METRIC_FACT("croupier_connections_max", struct app_facts, connections_max),
    {0},
};

static void write_metrics(void *context, struct buffer *out)
{
    struct app *app = context;
    struct sports_facts sports;
    struct policies_facts policies;
    struct odds_facts odds;
    struct ledger_facts ledger;
    struct launcher_facts launcher;
    struct usage_facts usage;
    struct process_facts process;
    sports_facts(app->shared.sports, &sports);
    policies_facts(app->shared.policies, &policies);
    odds_store_facts(app->odds, &odds);
    ledger_facts(app->shared.ledger, &ledger);
    launcher_facts(app->shared.launcher, &launcher);
    usage_facts(app->shared.usage, &usage);
    static const struct verifications none;
    const struct verifications *verified =
        refresher_newest(app->verifications, &app->verifications_hold);
    int64_t games_age_ms = refresher_age_ms(games_refresher(app->shared.games));
    const struct app_facts own = {work_pool_depth(app->pool), log_dropped(app->log),
                                  connections_max(app->config)};
    process_facts(app->config, app->started_wall_ms, &process);
    const struct metrics_source sources[] = {
        {metrics_table, app->metrics},
        {service_metrics, NULL},
        {rate_leases_metrics, rate_leases_facts(app->shared.leases)},
        {rate_limiter_metrics, NULL},
        {sports_counted_metrics, NULL},
        {sports_metrics, &sports},
        {policies_metrics, &policies},
        {odds_metrics, &odds},
        {platform_metrics, &app->platform},
        {app_metrics, &own},
        {listener_tls_metrics, &app->tls},
        {process_metrics, &process},
        {ledger_metrics, &ledger},
        {verification_metrics, verified != NULL ? verified : &none},
        {games_metrics, &games_age_ms},
        {launcher_metrics, &launcher},
        {usage_metrics, &usage},
        {console_metrics, console_facts(app->console)},
        {0},
    };
    metrics_write(app->metrics, sources, out);
}

/* ---- the beginning --------------------------------------------------------------------------- */

enum status app_raise_descriptor_limit(const struct config *config, struct log *log,
                                       struct error *error)
{
    const rlim_t least = 64 + 8 * config->threads;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return STATUS_OK;
    rlim_t wanted = connections_max(config) + SPARE_DESCRIPTORS;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur < wanted)
        log_event(log, LOG_WARNING, "fewer descriptors than max_connections needs",
                  LOG_INTEGER("descriptors", limit.rlim_cur), LOG_INTEGER("needed", wanted));
    if (limit.rlim_cur >= least)
        return STATUS_OK;
    return error_unavailable(error,
                             "%d files may be open, and it needs %d at least: raise the limit "
                             "(ulimit -n; LimitNOFILE= of systemd)",
                             (int)limit.rlim_cur, (int)least);
}

/* The listening socket of a thread, in the order in which a handover passes them; -1: there is
 * none. The operator's is the main thread's. */
static int *socket_of(const struct app *app, size_t thread, enum listener listener)
{
    static int none = -1;
    const struct handover_sockets *sockets = &app->sockets;
    size_t each = sockets->providers ? 2 : 1;
    if (listener == LISTENER_OPERATOR)
        return &sockets->descriptors[handover_count(sockets) - 1];
    return listener < each ? &sockets->descriptors[thread * each + listener] : &none;
}

/* Makes room for the listening sockets, or takes those of the server that started this process. */
static enum status get_sockets(struct app *app, struct error *error)
{
    struct handover_sockets *sockets = &app->sockets;
    const bool providers = app->config->provider_listen.text[0] != '\0';
    if (app->options->takes_over) {
        enum status status = handover_receive(sockets, error);
        if (status != STATUS_OK)
            return status;
        return sockets->threads == app->config->threads && sockets->providers == providers
                   ? STATUS_OK
                   : error_invalid(
                         error, "[server] threads or [provider] listen has changed, which needs a "
                                "restart");
    }
    *sockets = (struct handover_sockets){app->config->threads, providers, NULL};
    sockets->descriptors = memory_alloc_zeroed(handover_count(sockets), sizeof(int));
    return STATUS_OK;
}

static enum status open_listeners(struct app *app, struct error *error)
{
    const struct config *config = app->config;
    const struct {
        const struct listen_address *at;
        size_t threads;
        const char *setting;
    } listeners[LISTENERS] = {
        [LISTENER_CUSTOMERS] = {&config->listen, config->threads,
                                "[server] listen, or CROUPIER_SERVER_LISTEN,"},
        [LISTENER_PROVIDERS] = {&config->provider_listen,
                                app->sockets.providers ? config->threads : 0,
                                "[provider] listen, or CROUPIER_PROVIDER_LISTEN,"},
        [LISTENER_OPERATOR] = {&config->operator_listen, 1,
                               "[operator] listen, or CROUPIER_OPERATOR_LISTEN,"},
    };
    enum status status = STATUS_OK;
    for (enum listener i = LISTENER_CUSTOMERS; i < LISTENERS && status == STATUS_OK; i++) {
        const struct listen_address *at = listeners[i].at;
        for (size_t j = 0; j < listeners[i].threads && status == STATUS_OK; j++) {
            int *descriptor = socket_of(app, j, i);
            status = app->options->takes_over
                         ? http_listen_check(at->host, at->port, *descriptor, &app->ports[i], error)
                         : http_listen(at->host, at->port, listeners[i].threads > 1, descriptor,
                                       &app->ports[i], error);
        }
        if (status != STATUS_OK && app->options->takes_over)
            error_prefix(error, "a listening address has changed, which needs a restart");
        else if (status != STATUS_OK)
            error_append(error, "; %s gives it another address", listeners[i].setting);
    }
    return status;
}

static struct platform_store_options platform_options(struct app *app)
{
    struct platform_store_options options = platform_store_configured(app->config);
    options.log = app->log;
    options.facts = &app->platform;
    return options;
}

static enum status open_stores(struct app *app, struct error *error)
{
    const struct config *config = app->config;
    const struct platform_store_options platform = platform_options(app);
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
        struct odds_store_options odds = odds_store_configured(config);
        odds.create = !app->options->takes_over; /* it is there, or has gone from there */
        odds.patient = true;
        odds.log = app->log;
        status = odds_store_open(&app->odds, &odds, error);
        if (status != STATUS_OK)
            return status;
    }
    app->shared.policies = policies_create(&platform, POLICY_REFRESH_MS);
    app->shared.refusals = refusals_create();
    app->shared.limits = client_limits_create();
    if (odds_store_has_leases(app->odds))
        app->shared.leases = rate_leases_create(app->odds, app->log);
    app->shared.games = games_create(&platform, config->secrets_key_file, POLICY_REFRESH_MS);
    app->shared.launcher =
        launcher_create(&platform, config->launch_timeout_ms, config->launch_ca_file);
    app->shared.account = account_create(&platform, config->secrets_key_file, app->shared.limits);
    app->shared.health = health_create(app->odds, config->odds_timeout_ms, &platform);
    app->shared.ledger = ledger_create(&platform, LEDGER_QUEUE_LIMIT, config->batch_max,
                                       (int64_t)config->session_hours * 3600000);
    app->verifications = last_verifications_create(&platform);
    app->shared.usage = usage_create(&platform, config->threads, USAGE_PERIOD_MS);
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
            .listeners = {*socket_of(app, i, LISTENER_CUSTOMERS),
                          *socket_of(app, i, LISTENER_PROVIDERS)},
            .config = config,
            .tls = app->tls,
            .shared = &app->shared,
            .metrics = metrics_shard(app->metrics, i),
            .usage = usage_thread(app->shared.usage, i),
            .log = app->log,
            .main_mailbox = app->mailbox,
            .drained = on_worker_drained,
            .context = app,
        };
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

static void announce_listener(const struct app *app, const char *name,
                              const struct listen_address *at, enum listener listener)
{
    struct buffer address = {0};
    if (at->text[0] == '\0')
        return;
    config_append_address(&address, at->host, app->ports[listener]);
    log_event(app->log, LOG_INFO, "listening", LOG_STRING("listener", name),
              LOG_TEXT("address", buffer_text(&address)),
              LOG_INTEGER("threads", listener == LISTENER_OPERATOR ? 1 : app->config->threads),
              LOG_STRING("scheme", app->tls.of[listener] != NULL ? "https" : "http"));
    buffer_free(&address);
}

static void announce(struct app *app)
{
    const struct config *config = app->config;
    announce_listener(app, "operator", &config->operator_listen, LISTENER_OPERATOR);
    announce_listener(app, "provider", &config->provider_listen, LISTENER_PROVIDERS);
    announce_listener(app, "public", &config->listen, LISTENER_CUSTOMERS);
    const struct app_ports ports = {.customers = app->ports[LISTENER_CUSTOMERS],
                                    .operator= app->ports[LISTENER_OPERATOR],
                                    .providers = app->ports[LISTENER_PROVIDERS]};
    if (app->options->ready != NULL)
        app->options->ready(app->options->context, &ports);
}

/* After many connections have closed, malloc keeps their memory in pieces between blocks in use.
 * This returns the free pages to the kernel: 50 ms for 250 MB after a storm of connections, usually
 * less than 1 ms. */
static void return_memory(struct app *app)
{
    struct service_totals totals;
    service_totals(app->metrics, &totals);
    if (++app->seconds % TRIM_SECONDS != 0 || totals.closed - app->trimmed < TRIM_CONNECTIONS)
        return;
    app->trimmed = totals.closed;
    (void)malloc_trim(0);
}

/* Policies, games and odds. Each says itself what is wrong. */
static bool has_loaded(const struct app *app, bool *policies)
{
    uint64_t stamp;
    *policies = refresher_is_ready(policies_refresher(app->shared.policies));
    bool games = refresher_is_ready(games_refresher(app->shared.games));
    bool odds = odds_store_stamp(app->odds, &stamp) == STATUS_OK || odds_store_asks(app->odds);
    return *policies && games && odds;
}

static void on_second(uv_timer_t *timer)
{
    struct app *app = timer->data;
    bool policies;
    return_memory(app);
    if (!app->loaded)
        app->loaded = has_loaded(app, &policies) && ledger_has_tried(app->shared.ledger);
    if (app->config->stale_after_s > 0 && app->shared.sports != NULL)
        sports_look_at_ages(app->shared.sports);
    if (app->odds != NULL)
        odds_store_report_expired(app->odds, app->log);
}

/* While another server serves, there is time for all stores, and without them there is no reason to
 * take its place. */
static bool may_serve(struct app *app, bool ready, uint64_t waited_ms)
{
    if (ready && ledger_has_begun(app->shared.ledger))
        return true;
    if (waited_ms >= TAKE_OVER_WAIT_MS) {
        app->failed = error_set(app->failure, STATUS_UNAVAILABLE,
                                "the stores could not be used within %d s; the log says why",
                                TAKE_OVER_WAIT_MS / 1000);
        uv_stop(&app->loop);
    }
    return false;
}

/* Requests are taken when they can be answered, so that a load balancer that finds this instance
 * listening does not send it customers that it would have to refuse. Until then they wait in the
 * listening sockets' queues. After a while it serves without its stores: errors name the cause, and
 * routes without a store work. */
static void on_starting(uv_timer_t *timer)
{
    struct app *app = timer->data;
    bool policies;
    bool ready = has_loaded(app, &policies);
    uint64_t waited_ms = clock_monotonic_ms() - app->started_ms;
    if (app->options->takes_over) {
        if (!may_serve(app, ready, waited_ms))
            return;
    } else if (!ready && waited_ms < STORES_WAIT_MS) {
        return;
    }
    (void)uv_timer_stop(timer);
    if (!policies)
        log_event(app->log, LOG_ERROR,
                  "no policies yet: no one is admitted until the platform store answers");
    start_workers(app);
    announce(app);
    /* The old server accepts no more once it has heard this, so the workers listen before it. */
    if (app->options->takes_over)
        handover_report("");
    notifier_send(app->notifier, NOTICE_READY);
    start_watchdog(app);
    if (app->reload_waits)
        reload(app, -1);
    reload_socket_accept(app->reload_socket);
    reload_socket_accept(app->upgrade_socket);
}

static enum status start(struct app *app, struct error *error)
{
    const struct config *config = app->config;
    const bool every[LISTENERS] = {true, true, true};
    enum status status = get_sockets(app, error);
    if (status == STATUS_OK)
        status = read_tls(app->log, config, every, &app->tls, error);
    if (status == STATUS_OK && config->launch_ca_file[0] != '\0')
        status = outgoing_check_ca_file(config->launch_ca_file, error);
    if (status == STATUS_OK)
        status = open_listeners(app, error);
    if (status != STATUS_OK)
        return status;
    const struct operator_listener_options listener = {
        .loop = &app->loop,
        .listen = config->operator_listen,
        .descriptor = *socket_of(app, 0, LISTENER_OPERATOR),
        .tls = app->tls.of[LISTENER_OPERATOR],
        .write_metrics = write_metrics,
        .why_stuck = why_stuck,
        .why_unready = why_unready,
        .context = app,
        .page = app->options->page,
        .page_context = app->options->page_context,
        .log = app->log,
        .user_header = config->trusted_user_header,
    };
    app->operator_listener = operator_listener_create(&listener);
    /* Starts before the stores open, so that a command can ask while they are away. */
    app->reload_socket =
        reload_socket_create(&app->loop, RELOAD_CONFIGURATION, reload, app, app->log);
    if (app->options->arguments != NULL)
        app->upgrade_socket =
            reload_socket_create(&app->loop, RELOAD_PROGRAM, on_upgrade_asked, app, app->log);
    status = open_stores(app, error);
    if (status != STATUS_OK)
        return status;
    app->pool =
        work_pool_create("ready", config->threads > 2 ? config->threads : 2, WORK_QUEUE_LIMIT);
    app->shared.sports = sports_create(app->odds, config->odds_timeout_ms, app->pool, app->log);
    set_limits(app, config);
    app->console = console_create(&(struct console_options){
        .loop = &app->loop,
        .config = config,
        .port = app->ports[LISTENER_OPERATOR],
        .platform = platform_options(app),
        .sources = {.odds = app->odds,
                    .sports = app->shared.sports,
                    .ledger = app->shared.ledger,
                    .metrics = app->metrics,
                    .refusals = app->shared.refusals,
                    .account = app->shared.account},
    });
    operator_listener_set_console(app->operator_listener, app->console);
    app->started_ms = clock_monotonic_ms();
    CHECK(uv_timer_start(&app->second, on_second, 1000, 1000) == 0);
    CHECK(uv_timer_start(&app->starting, on_starting, 0, STORES_LOOK_MS) == 0);
    return STATUS_OK;
}

/* Takes down whatever there is; also after a start that failed half-way. */
static void take_down(struct app *app)
{
    /* Parts that answer by the workers' mailboxes, and their pool, end before the workers; parts
     * that workers only read, after them; the stores last. */
    health_destroy(&app->shared.health);
    rate_leases_destroy(&app->shared.leases);
    launcher_destroy(&app->shared.launcher);
    account_destroy(&app->shared.account);
    ledger_destroy(&app->shared.ledger);
    if (app->verifications != NULL)
        refresher_release(app->verifications, &app->verifications_hold);
    refresher_destroy(&app->verifications);
    if (app->shared.sports != NULL)
        sports_drain(app->shared.sports);
    work_pool_destroy(&app->pool);
    for (size_t i = 0; i < app->worker_count; i++)
        worker_stop(&app->workers[i]);
    usage_destroy(&app->shared.usage); /* with their last counts */
    memory_free(app->workers);
    for (size_t i = app->worker_count; i < app->sockets.threads; i++)
        for (enum listener j = LISTENER_CUSTOMERS; j < LISTENER_OPERATOR; j++)
            if (*socket_of(app, i, j) > 0)
                (void)close(*socket_of(app, i, j));
    memory_free(app->sockets.descriptors);
    sports_destroy(&app->shared.sports);
    games_destroy(&app->shared.games);
    refusals_destroy(&app->shared.refusals);
    client_limits_destroy(&app->shared.limits);
    policies_destroy(&app->shared.policies);
    if (app->options->odds == NULL)
        odds_store_close(&app->odds);
    listener_tls_destroy(&app->tls);
}

static void close_handle(uv_handle_t *handle, void *context)
{
    (void)context;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

enum status app_run(const struct app_options *options, struct error *error)
{
    enum status status = app_raise_descriptor_limit(options->config, options->log, error);
    if (status != STATUS_OK)
        return status;
    struct app app = {.options = options, .log = options->log, .waiting_asker = -1};
    app.config = config_hold(options->config);
    app.failure = error;
    app.started_wall_ms = clock_wall_ms();
    CHECK(uv_loop_init(&app.loop) == 0);
    app.mailbox = mailbox_create(&app.loop);
    uv_timer_t *const timers[] = {&app.drain_deadline, &app.second, &app.watchdog, &app.starting};
    for (size_t i = 0; i < sizeof timers / sizeof timers[0]; i++)
        clock_make_timer(&app.loop, timers[i], &app);
    app.notifier = notifier_create(app.log);
    app.metrics = metrics_create(app.config->threads, route_label, counted, metrics_about);
    watch_signals(&app);

    status = start(&app, error);
    if (status == STATUS_OK)
        (void)uv_run(&app.loop, UV_RUN_DEFAULT);
    if (status == STATUS_OK)
        status = app.failed;
    if (status != STATUS_OK && options->takes_over && app.sockets.threads > 0)
        handover_report(error->text);
    /* The server that started this process goes on, and a drain would change its socket. */
    if (options->takes_over && app.worker_count == 0 && app.operator_listener != NULL)
        operator_listener_hand_over(app.operator_listener);
    reload_socket_destroy(&app.reload_socket);
    reload_socket_destroy(&app.upgrade_socket);
    handover_destroy(&app.handover);
    abandon_reading(&app);
    operator_listener_destroy(&app.operator_listener); /* last: an operator can watch the drain */
    console_destroy(&app.console);
    take_down(&app);
    mailbox_destroy(&app.mailbox);
    uv_walk(&app.loop, close_handle, NULL);
    (void)uv_run(&app.loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&app.loop) == 0);
    metrics_destroy(&app.metrics);
    notifier_destroy(&app.notifier);
    if (status == STATUS_OK)
        log_event(app.log, LOG_INFO, "stopped");
    config_release(&app.config);
    return status;
}
