/*
 * A serving thread. Orders from the main thread are mails that carry a copy of what they are about,
 * so that nothing but the mailbox is shared.
 */
#include "app/worker.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"

#define LOG_FLUSH_MS 100

struct worker {
    struct worker_options options;
    uv_thread_t thread;
    uv_loop_t loop;
    struct mailbox *mailbox;
    struct http_server *servers[WORKER_LISTENERS]; /* NULL: none */
    size_t undrained;                              /* servers */
    struct service service;
    struct sports_waits waits;
    uv_timer_t log_flush;
    struct mail drained;
};

/* ---- the thread ------------------------------------------------------------------------------ */

static void on_log_flush(uv_timer_t *timer)
{
    struct worker *worker = timer->data;
    log_batch_flush(worker->service.access_log);
}

/* Runs on the main thread. */
static void report_drained(struct mail *mail)
{
    const struct worker_options *options = &CONTAINER_OF(mail, struct worker, drained)->options;
    options->drained(options->context);
}

static void on_drained(void *context)
{
    struct service *service = context;
    struct worker *worker = CONTAINER_OF(service, struct worker, service);
    if (--worker->undrained > 0)
        return;
    log_batch_flush(service->access_log);
    worker->drained.deliver = report_drained;
    mailbox_post(worker->options.main_mailbox, &worker->drained);
}

static struct http_deadlines deadlines_of(const struct config *config)
{
    return (struct http_deadlines){config->header_seconds, config->body_seconds,
                                   config->write_seconds, config->idle_seconds};
}

static void start_servers(struct worker *worker)
{
    const struct worker_options *options = &worker->options;
    const struct config *config = options->config;
    uint32_t limit = config->max_connections / config->threads;
    for (size_t i = 0; i < WORKER_LISTENERS; i++) {
        struct http_server_options server = i == LISTENER_PROVIDERS
                                                ? service_provider_server_options(&worker->service)
                                                : service_server_options(&worker->service);
        if (options->listeners[i] < 0)
            continue;
        server.loop = &worker->loop;
        server.tls = options->tls.of[i];
        server.connection_limit = limit > 0 ? limit : 1;
        server.deadlines = deadlines_of(config);
        worker->servers[i] = http_server_create(&server, options->listeners[i]);
        worker->undrained++;
    }
}

static void start_serving(struct worker *worker)
{
    const struct worker_options *options = &worker->options;
    const struct service_shared *shared = options->shared;
    const struct config *config = options->config;
    const struct rate_limiter_options rates = {
        .leases = shared->leases,
        .mailbox = worker->mailbox,
        .counters = metrics_cells(options->metrics, rate_limiter_metrics),
        .timeout_ms = config->odds_timeout_ms,
        .decided = service_rate_decided,
        .context = &worker->service,
    };
    worker->waits = service_waits(&worker->service);
    worker->service = (struct service){
        .shared = shared,
        .admission = admission_create(shared->policies, config->trusted_proxies),
        .rates = rate_limiter_create(&rates),
        .account_rate = config->account_rate,
        .waits = &worker->waits,
        .sports = sports_cache_create(shared->sports, worker->mailbox,
                                      metrics_cells(options->metrics, sports_counted_metrics),
                                      &worker->waits),
        .games = games_pages_create(shared->games),
        .wallet = wallet_handler_create(shared->ledger, worker->mailbox),
        .mailbox = worker->mailbox,
        .metrics = options->metrics,
        .counters = metrics_cells(options->metrics, service_metrics),
        .usage = options->usage,
        .access_log = log_batch_create(options->log),
        .log = options->log,
    };
    health_waits_init(shared->health, &worker->service.health_waits, &worker->loop);
    start_servers(worker);
    clock_make_timer(&worker->loop, &worker->log_flush, worker);
    CHECK(uv_timer_start(&worker->log_flush, on_log_flush, LOG_FLUSH_MS, LOG_FLUSH_MS) == 0);
}

static void run(void *argument)
{
    struct worker *worker = argument;
    start_serving(worker);
    (void)uv_run(&worker->loop, UV_RUN_DEFAULT);
}

void listener_tls_destroy(struct listener_tls *tls)
{
    for (size_t i = 0; i < LISTENERS; i++)
        http_tls_destroy(&tls->of[i]);
}

static void write_expiry(const struct metric *metric, const void *facts, struct buffer *out)
{
    static const char *const labels[LISTENERS] = {
        [LISTENER_CUSTOMERS] = "{listener=\"public\"}",
        [LISTENER_PROVIDERS] = "{listener=\"provider\"}",
        [LISTENER_OPERATOR] = "{listener=\"operator\"}",
    };
    const struct listener_tls *tls = facts;
    for (size_t i = 0; i < LISTENERS; i++)
        if (tls->of[i] != NULL)
            metric_age(out, metric->name, labels[i], http_tls_expiry_ms(tls->of[i]), "NaN");
}

const struct metric listener_tls_metrics[] = {
    METRIC_WRITTEN("croupier_tls_certificate_expiry_timestamp_seconds", write_expiry),
    {0},
};

/* ---- orders ---------------------------------------------------------------------------------- */

struct order {
    struct mail mail;
    struct worker *worker;
    const struct config *config; /* of a reload */
    void (*done)(void *context); /* of those that are answered, as is the rest */
    void *context;
};

static void send_order(struct worker *worker, void (*deliver)(struct mail *mail),
                       struct order contents)
{
    struct order *order = memory_alloc(sizeof *order);
    *order = contents;
    order->mail.deliver = deliver;
    order->worker = worker;
    mailbox_post(worker->mailbox, &order->mail);
}

/* Runs on the main thread. */
static void send_done(struct mail *mail)
{
    struct order *order = (struct order *)(void *)mail;
    order->done(order->context);
    memory_free(order);
}

static void answer_here(struct mail *mail)
{
    struct order *order = (struct order *)(void *)mail;
    mail->deliver = send_done;
    mailbox_post(order->worker->options.main_mailbox, mail);
}

static void reload_here(struct mail *mail)
{
    struct order *order = (struct order *)(void *)mail;
    struct worker *worker = order->worker;
    const struct config *config = order->config;
    admission_set_trusted_proxies(worker->service.admission, config->trusted_proxies);
    worker->service.account_rate = config->account_rate;
    const struct http_deadlines deadlines = deadlines_of(config);
    for (size_t i = 0; i < WORKER_LISTENERS; i++)
        if (worker->servers[i] != NULL)
            http_server_set_deadlines(worker->servers[i], &deadlines);
    config_release(&worker->options.config);
    worker->options.config = config;
    answer_here(mail);
}

/* An order that says nothing else. */
static struct worker *receive_order(struct mail *mail)
{
    struct order *order = (struct order *)(void *)mail;
    struct worker *worker = order->worker;
    memory_free(order);
    return worker;
}

static void drain_here(struct mail *mail)
{
    struct worker *worker = receive_order(mail);
    for (size_t i = 0; i < WORKER_LISTENERS; i++)
        if (worker->servers[i] != NULL)
            http_server_drain(worker->servers[i], worker->options.config->drain_idle_ms,
                              on_drained);
    sports_cache_drain(worker->service.sports); /* after the servers: its answers close */
}

static void hand_over_here(struct mail *mail)
{
    const struct worker *worker = ((struct order *)(void *)mail)->worker;
    for (size_t i = 0; i < WORKER_LISTENERS; i++)
        if (worker->servers[i] != NULL)
            http_server_hand_over(worker->servers[i]);
    drain_here(mail);
}

static void abort_here(struct mail *mail)
{
    struct worker *worker = receive_order(mail);
    for (size_t i = 0; i < WORKER_LISTENERS; i++)
        if (worker->servers[i] != NULL)
            http_server_abort(worker->servers[i]);
}

static void stop_here(struct mail *mail)
{
    struct worker *worker = receive_order(mail);
    for (size_t i = 0; i < WORKER_LISTENERS; i++)
        if (worker->servers[i] != NULL)
            http_server_destroy(&worker->servers[i]);
    rate_limiter_destroy(&worker->service.rates);
    sports_cache_destroy(&worker->service.sports);
    games_pages_destroy(&worker->service.games);
    wallet_handler_destroy(&worker->service.wallet);
    admission_destroy(&worker->service.admission);
    log_batch_destroy(&worker->service.access_log);
    http_deferral_queue_close(&worker->service.health_waits, NULL, NULL);
    uv_close((uv_handle_t *)&worker->log_flush, NULL);
    mailbox_destroy(&worker->mailbox);
}

/* ---- the main thread's side ------------------------------------------------------------------ */

struct worker *worker_start(const struct worker_options *options)
{
    struct worker *worker = memory_alloc_zeroed(1, sizeof *worker);
    worker->options = *options;
    worker->options.config = config_hold(options->config);
    CHECK(uv_loop_init(&worker->loop) == 0);
    worker->mailbox = mailbox_create(&worker->loop);
    char name[16];
    (void)snprintf(name, sizeof name, "worker-%zu", options->index % 1000);
    thread_start(&worker->thread, name, run, worker);
    return worker;
}

void worker_reload(struct worker *worker, const struct config *config, void (*done)(void *context),
                   void *context)
{
    send_order(worker, reload_here,
               (struct order){.config = config_hold(config), .done = done, .context = context});
}

void worker_ask(struct worker *worker, void (*done)(void *context), void *context)
{
    send_order(worker, answer_here, (struct order){.done = done, .context = context});
}

void worker_drain(struct worker *worker, bool handed_over)
{
    send_order(worker, handed_over ? hand_over_here : drain_here, (struct order){0});
}

void worker_abort(struct worker *worker)
{
    send_order(worker, abort_here, (struct order){0});
}

void worker_stop(struct worker **worker)
{
    struct worker *stopping = *worker;
    send_order(stopping, stop_here, (struct order){0});
    CHECK(uv_thread_join(&stopping->thread) == 0);
    CHECK(uv_loop_close(&stopping->loop) == 0);
    config_release(&stopping->options.config);
    memory_free(stopping);
    *worker = NULL;
}
