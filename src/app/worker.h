#pragma once

#include "api/service.h"
#include "config/config.h"
#include "http/tls.h"

/*
 * One serving thread: a libuv loop with a listening socket of its own, and one thread's side of
 * admission, sports and metrics.
 *
 * Made, directed and destroyed by the main thread, which posts mail to it. Its life:
 *
 * worker_start → serving → worker_drain → drained (a mail to `main_mailbox`) → worker_stop → joined
 *
 * Between drained and stop the loop still runs, so that late mails (answers made ready for clients
 * that went away) find it.
 */

struct worker;

/* A worker listens at one or two addresses: for customers, and for providers. The operator's
 * listener is the main thread's. */
enum listener { LISTENER_CUSTOMERS, LISTENER_PROVIDERS, LISTENER_OPERATOR };
#define WORKER_LISTENERS 2
#define LISTENERS 3

struct listener_tls {
    struct http_tls *of[LISTENERS]; /* NULL: plain */
};

void listener_tls_destroy(struct listener_tls *tls);
/* When each one's certificate runs out. */
extern const struct metric listener_tls_metrics[]; /* of a struct listener_tls */

struct worker_options {
    size_t index;
    int listeners[WORKER_LISTENERS]; /* descriptors, taken over; -1: none, of providers alone */
    const struct config *config;
    struct listener_tls tls;             /* borrowed; without a use for the operator's */
    const struct service_shared *shared; /* borrowed, all of it */
    struct metrics_shard *metrics;
    struct usage_thread *usage;
    struct log *log;
    struct mailbox *main_mailbox;   /* of the main thread */
    void (*drained)(void *context); /* runs on the main thread, once */
    void *context;
};

struct worker *worker_start(const struct worker_options *options);

/* New settings (held). `done` runs on the main thread when they are in force; also while
 * main_mailbox is destroyed. */
void worker_reload(struct worker *worker, const struct config *config, void (*done)(void *context),
                   void *context);
/* `done` runs on the main thread when the worker's loop has come to it; as of a reload. */
void worker_ask(struct worker *worker, void (*done)(void *context), void *context);
/* `handed_over`: another process has its listening sockets as well, and serves. */
void worker_drain(struct worker *worker, bool handed_over);
/* The drain took too long; harmless when it is over. */
void worker_abort(struct worker *worker);
/* Ends the thread and frees the worker; only when it has drained and no thread posts to it any
 * more. */
void worker_stop(struct worker **worker);
