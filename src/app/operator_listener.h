#pragma once

#include "config/config.h"
#include "console/console.h"

/*
 * The operator's listener: GET /metrics, in Prometheus' text format, /live and /ready, a word each
 * for an orchestrator, all of which ask for nothing; the console, which operators sign in to, and a
 * page of the demo's. It belongs on loopback or a private network; any other address is allowed and
 * warned about.
 *
 * Everything runs on the loop's thread.
 */
struct operator_listener;

struct operator_listener_options {
    uv_loop_t *loop;
    struct listen_address listen;
    int descriptor; /* of its socket, which listens already and is taken over */
    void (*write_metrics)(void *context, struct buffer *out); /* a scrape */
    /* Return NULL, or a word for why this process has to be ended, or may get no requests. */
    const char *(*why_stuck)(void *context);
    const char *(*why_unready)(void *context);
    void *context; /* of all three */
    /* May be NULL: answers a request for another path than those, now or later, and returns true,
     * or false. */
    bool (*page)(void *context, uv_loop_t *loop, struct http_request *request);
    void *page_context;
    struct http_tls *tls;    /* borrowed; NULL: plain */
    struct log *log;         /* borrowed; may be NULL */
    const char *user_header; /* [operator] trusted_user_header; borrowed */
};

struct operator_listener *operator_listener_create(const struct operator_listener_options *options);

/* From now on requests for other paths, which no page answers, are the console's, which is
 * borrowed. */
void operator_listener_set_console(struct operator_listener *listener, struct console *console);

/* Another process has the socket as well: accepts no more. */
void operator_listener_hand_over(struct operator_listener *listener);

/* Cuts off a scrape that is under way. Runs the loop until the connections are closed. */
void operator_listener_destroy(struct operator_listener **listener);
