#pragma once

#include "base/log.h"

/*
 * Notices to a service manager, in the protocol of sd_notify(3): datagrams to the socket that
 * $NOTIFY_SOCKET names. Its manual page declares the protocol stable and open to other
 * implementations; libsystemd would add libraries for one call of sendto.
 *
 * Without $NOTIFY_SOCKET nothing is sent. When the manager does not read, its queue fills up
 * (net.unix.max_dgram_qlen, 10). NOTICE_ALIVE is then dropped, because the next one follows; the
 * others wait for room, at most 5 s. An error is logged once. Main thread.
 */
struct notifier;

enum notice {
    NOTICE_READY,     /* it listens, or a reload has ended */
    NOTICE_RELOADING, /* until NOTICE_READY */
    NOTICE_STOPPING,
    NOTICE_ALIVE, /* the watchdog's */
};

/* Reads the environment, and removes $WATCHDOG_PID from it: a process that this one hands over to
 * has another id and would ignore the watchdog. Call this before other threads read the
 * environment. */
struct notifier *notifier_create(struct log *log);
void notifier_destroy(struct notifier **notifier);

void notifier_send(struct notifier *notifier, enum notice notice);

/* Makes `process` the service's main process for the manager. */
void notifier_send_main(struct notifier *notifier, int process);

/* NOTICE_ALIVE is due more often than this ($WATCHDOG_USEC); 0: not asked for. */
uint64_t notifier_watchdog_ms(const struct notifier *notifier);
