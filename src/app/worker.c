/*
 * A serving thread. Orders from the main thread are mails that carry a copy of what they are about,
 * so that nothing but the mailbox is shared.
 */
#include "app/worker.h"

#include <stdio.h>

#include "api/service.h"
#include "base/memory.h"
#include "base/threads.h"

#define LOG_FLUSH_MS 100

struct worker {
    struct worker_options options;
    uv_thread_t thread;
    uv_loop_t loop;
    struct mailbox *mailbox;
    struct http_server *server;
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

/* On the main thread. */
static void tell_drained(struct mail *mail)
{
    const struct worker_options *options = &CONTAINER_OF(mail, struct worker, drained)->options;
    options->drained(options->context);
}

static void on_drained(void *context)
{
    struct service *service = context;
    struct worker *worker = CONTAINER_OF(service, struct worker, service);
    log_batch_flush(service->access_log);
    worker->drained.deliver = tell_drained;
    mailbox_post(worker->options.boss, &worker->drained);
}

static struct http_deadlines deadlines_of(const struct config *config)
{
    return (struct http_deadlines){config->header_seconds, config->body_seconds,
                                   config->write_seconds, config->idle_seconds};
}

static void start_serving(struct worker *worker)
{
    const struct worker_options *options = &worker->options;
    const struct worker_shared *shared = options->shared;
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
        .admission = admission_create(shared->policies, config->trusted_proxies,
                                      config->trusted_proxy_count),
        .rates = rate_limiter_create(&rates),
        .sports = sports_cache_create(shared->sports, worker->mailbox,
                                      metrics_cells(options->metrics, sports_counted_metrics),
                                      &worker->waits),
        .games = games_pages_create(shared->games),
        .launcher = shared->launcher,
        .wallet = wallet_handler_create(shared->ledger, worker->mailbox),
        .health = shared->health,
        .mailbox = worker->mailbox,
        .metrics = options->metrics,
        .counters = metrics_cells(options->metrics, service_metrics),
        .access_log = log_batch_create(options->log),
        .log = options->log,
    };
    uint32_t limit = config->max_connections / config->threads;
    struct http_server_options server = service_server_options(&worker->service);
    server.loop = &worker->loop;
    server.tls = options->tls;
    server.connection_limit = limit > 0 ? limit : 1;
    server.deadlines = deadlines_of(config);
    worker->server = http_server_create(&server, options->listener);
    CHECK(uv_timer_init(&worker->loop, &worker->log_flush) == 0);
    worker->log_flush.data = worker;
    CHECK(uv_timer_start(&worker->log_flush, on_log_flush, LOG_FLUSH_MS, LOG_FLUSH_MS) == 0);
}

static void run(void *argument)
{
    struct worker *worker = argument;
    start_serving(worker);
    (void)uv_run(&worker->loop, UV_RUN_DEFAULT);
}

/* ---- orders ---------------------------------------------------------------------------------- */

struct order {
    struct mail mail;
    struct worker *worker;
    const struct config *config; /* this and the rest: of a reload */
    struct http_tls *tls;
    void (*done)(void *context);
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

/* On the main thread. */
static void reload_done(struct mail *mail)
{
    struct order *order = (struct order *)(void *)mail;
    order->done(order->context);
    memory_free(order);
}

static void reload_here(struct mail *mail)
{
    struct order *order = (struct order *)(void *)mail;
    struct worker *worker = order->worker;
    const struct config *config = order->config;
    admission_set_trusted_proxies(worker->service.admission, config->trusted_proxies,
                                  config->trusted_proxy_count);
    const struct http_deadlines deadlines = deadlines_of(config);
    http_server_set_deadlines(worker->server, &deadlines);
    if (order->tls != NULL && worker->options.tls != NULL) {
        http_server_set_tls(worker->server, order->tls);
        http_tls_release(&worker->options.tls);
        worker->options.tls = order->tls;
    } else {
        http_tls_release(&order->tls);
    }
    config_release(&worker->options.config);
    worker->options.config = config;
    order->mail.deliver = reload_done;
    mailbox_post(worker->options.boss, &order->mail);
}

/* An order that says nothing else. */
static struct worker *take_order(struct mail *mail)
{
    struct order *order = (struct order *)(void *)mail;
    struct worker *worker = order->worker;
    memory_free(order);
    return worker;
}

static void drain_here(struct mail *mail)
{
    struct worker *worker = take_order(mail);
    http_server_drain(worker->server, worker->options.config->drain_idle_ms, on_drained);
    sports_cache_drain(worker->service.sports); /* which answers with the end in mind */
}

static void abort_here(struct mail *mail)
{
    http_server_abort(take_order(mail)->server);
}

static void stop_here(struct mail *mail)
{
    struct worker *worker = take_order(mail);
    http_server_destroy(&worker->server);
    rate_limiter_destroy(&worker->service.rates);
    sports_cache_destroy(&worker->service.sports);
    games_pages_destroy(&worker->service.games);
    wallet_handler_destroy(&worker->service.wallet);
    admission_destroy(&worker->service.admission);
    log_batch_destroy(&worker->service.access_log);
    uv_close((uv_handle_t *)&worker->log_flush, NULL);
    mailbox_destroy(&worker->mailbox);
}

/* ---- the main thread's side ------------------------------------------------------------------ */

struct worker *worker_start(const struct worker_options *options)
{
    struct worker *worker = memory_alloc_zeroed(1, sizeof *worker);
    worker->options = *options;
    worker->options.config = config_hold(options->config);
    if (options->tls != NULL)
        worker->options.tls = http_tls_hold(options->tls);
    CHECK(uv_loop_init(&worker->loop) == 0);
    worker->mailbox = mailbox_create(&worker->loop);
    char name[16];
    (void)snprintf(name, sizeof name, "worker-%zu", options->index % 1000);
    thread_start(&worker->thread, name, run, worker);
    return worker;
}

void worker_reload(struct worker *worker, const struct config *config, struct http_tls *tls,
                   void (*done)(void *context), void *context)
{
    send_order(worker, reload_here,
               (struct order){.config = config_hold(config),
                              .tls = tls != NULL ? http_tls_hold(tls) : NULL,
                              .done = done,
                              .context = context});
}

void worker_drain(struct worker *worker)
{
    send_order(worker, drain_here, (struct order){0});
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
    http_tls_release(&stopping->options.tls);
    config_release(&stopping->options.config);
    memory_free(stopping);
    *worker = NULL;
}
