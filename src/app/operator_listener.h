#ifndef CROUPIER_APP_OPERATOR_LISTENER_H
#define CROUPIER_APP_OPERATOR_LISTENER_H

#include <uv.h>

#include "base/log.h"
#include "base/status.h"
#include "config/config.h"
#include "http/http.h"

/*
 * The operator's listener: GET /metrics, in Prometheus' text format, and nothing else (but a page
 * of the demo's). It knows no keys, so it belongs on loopback or a private network; any other
 * address is allowed and warned about.
 *
 * Everything runs on the loop's thread.
 */
struct operator_listener;

struct operator_listener_options {
    uv_loop_t *loop;
    struct listen_address listen;                             /* port 0: any free one */
    void (*write_metrics)(void *context, struct buffer *out); /* a scrape */
    void *context;
    /* May be NULL: answers a GET or HEAD for another path than /metrics and returns true, or
     * false. */
    bool (*page)(void *context, struct http_request *request);
    void *page_context;
    struct log *log; /* borrowed; may be NULL */
};

MUST_CHECK enum status operator_listener_create(struct operator_listener **listener,
                                                const struct operator_listener_options *options,
                                                struct error *error);

/* The port that it has. */
uint16_t operator_listener_port(const struct operator_listener *listener);

/* Cuts off a scrape that is under way. Runs the loop until the connections are closed. */
void operator_listener_destroy(struct operator_listener **listener);

#endif
