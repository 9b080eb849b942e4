#pragma once

#include "config/config.h"
#include "http/http.h"
#include "stores/odds.h"

/*
 * The running service: makes the parts, starts the threads, waits for signals, takes everything
 * down again in order. `croupier serve` and `croupier demo` are two callers.
 *
 * Threads: the caller's thread becomes the main thread (signals, the operator listener, life
 * cycle); `config->threads` workers serve requests; a refresher keeps the policy table fresh; a
 * small pool makes answers ready; a probe asks the stores for /health.
 */

/* The port of each listener; 0: it does not listen there. */
struct app_ports {
    uint16_t customers, operator, providers;
};

struct app_options {
    const struct config *config;  /* the app takes a reference of its own */
    const char *config_path;      /* re-read on SIGHUP; NULL as for config_load */
    const char *const *overrides; /* for the re-read, as for config_load; may be NULL */
    char *const *arguments;       /* of this process, to be started again with; NULL: it is not */
    struct log *log;              /* borrowed */
    bool hangup_ends;             /* SIGHUP ends the service, as a terminal sends it on closing */
    bool takes_over;              /* from the server that started this process (app/handover.h) */
    struct odds_store *odds; /* borrowed and shared with the caller; NULL: the app opens its own */
    /* Called on the main thread when requests are being answered; may be NULL. */
    void (*ready)(void *context, const struct app_ports *ports);
    void *context;
    /* A page beside /metrics on the operator listener; may be NULL. See app/operator_listener.h. */
    bool (*page)(void *context, uv_loop_t *loop, struct http_request *request);
    void *page_context;
};

/*
 * Runs until SIGTERM or SIGINT and returns when everything is released (STATUS_OK), or at once with
 * the reason when the service cannot start. A second SIGTERM or SIGINT ends the drain. SIGHUP
 * re-reads the configuration: reloadable settings change, the log names the others; a broken file
 * changes nothing and is logged. Blocks; at most one at a time in a process.
 */
MUST_CHECK enum status app_run(const struct app_options *options, struct error *error);

/* Raises the process's limit to what the connections may need, or warns in the log, which may be
 * NULL, how many descriptors there are. STATUS_UNAVAILABLE: the loops and stores need more; app_run
 * asks this itself. */
MUST_CHECK enum status app_raise_descriptor_limit(const struct config *config, struct log *log,
                                                  struct error *error);
