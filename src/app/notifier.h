#pragma once

#include <stdint.h>

#include "base/log.h"

/*
 * Notices to a service manager, in the protocol of sd_notify(3): datagrams to the socket that
 * $NOTIFY_SOCKET names. Its page declares the protocol stable and open to other implementations;
 * libsystemd would bring libraries along for what is one call of sendto.
 *
 * Without $NOTIFY_SOCKET nothing is sent. A manager that does not read for a while has a full queue
 * (net.unix.max_dgram_qlen, 10): NOTICE_ALIVE, which comes again, is lost then, and the others wait
 * for up to 5 s, as sd_notify() does for as long as it takes. An error is logged once. Main thread.
 */
struct notifier;

enum notice {
    NOTICE_READY,     /* it listens, or a reload has ended */
    NOTICE_RELOADING, /* until NOTICE_READY */
    NOTICE_STOPPING,
    NOTICE_ALIVE, /* the watchdog's */
};

/* Reads the environment, and takes $WATCHDOG_PID out of it, which would keep the watchdog from a
 * process that this one hands over to. So while no other thread reads the environment. */
struct notifier *notifier_create(struct log *log);
void notifier_destroy(struct notifier **notifier);

void notifier_send(struct notifier *notifier, enum notice notice);

/* The service is that process from now on. */
void notifier_send_main(struct notifier *notifier, int process);

/* NOTICE_ALIVE is due more often than this ($WATCHDOG_USEC); 0: not asked for. */
uint64_t notifier_watchdog_ms(const struct notifier *notifier);
