#pragma once

#include <uv.h>

#include "base/status.h"

/*
 * One server hands its listening sockets over to another that it starts: the program as it is on
 * disk now, with the same arguments, environment and standard error. The sockets are the same ones
 * in both processes, with their queues, so that no client is refused or reset. Until the new server
 * has reported that it serves, the old one serves as before; if it never does, for good.
 *
 * The new server finds on descriptor HANDOVER_CONTROL one end of a stream, on which the old one has
 * written how many threads it has, and reports there; and on those that follow the sockets: of each
 * thread for customers, then for providers where they are listened for, and the operator's last.
 */
#define HANDOVER_CONTROL 3
#define HANDOVER_OPTION "take-over" /* of `croupier serve`, which then begins as the new server */

struct handover_sockets {
    size_t threads;
    bool providers;
    int *descriptors;
};
size_t handover_count(const struct handover_sockets *sockets);

/* ---- the old server, on one thread ----------------------------------------------------------- */

struct handover;

/* `process` serves; 0: no process does, and `reason` says why. Called once, after which the
 * handover may be destroyed. */
typedef void handover_done(void *context, int process, const char *reason);

/* `arguments` are this process's, from its name to NULL. */
MUST_CHECK enum status handover_start(struct handover **handover, uv_loop_t *loop,
                                      char *const *arguments,
                                      const struct handover_sockets *sockets, handover_done *done,
                                      void *context, struct error *error);
/* If the handover is under way, kills the new process and does not call `done`. NULL is fine. The
 * loop must run once more. */
void handover_destroy(struct handover **handover);

/* ---- the new server -------------------------------------------------------------------------- */

/* `sockets->descriptors` is the caller's to free; the sockets are his. STATUS_INVALID: there is no
 * old server. */
MUST_CHECK enum status handover_receive(struct handover_sockets *sockets, struct error *error);
/* "": it serves. Once. */
void handover_report(const char *reason);
