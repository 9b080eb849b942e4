/* One datagram for each notice; see notifier.h. */
#include "app/notifier.h"

#include <sys/un.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"

#define WAIT_S 5 /* for a manager whose queue is full */

struct notifier {
    struct sockaddr_un address;
    socklen_t address_size;
    int descriptor; /* -1: there is no service manager */
    uint64_t watchdog_ms;
    bool failed; /* and that was logged */
    struct log *log;
};

/* A path, or a name of the abstract namespace, which is written with an '@'. */
static bool read_address(struct notifier *notifier, const char *name)
{
    size_t size = name == NULL ? 0 : strlen(name);
    if (size < 2 || size >= sizeof notifier->address.sun_path)
        return false;
    if (name[0] != '/' && name[0] != '@')
        return false;
    notifier->address.sun_family = AF_UNIX;
    memcpy(notifier->address.sun_path, name, size);
    if (name[0] == '@')
        notifier->address.sun_path[0] = '\0';
    notifier->address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    return true;
}

/* $WATCHDOG_PID says which process is meant: the environment may be a parent's. */
static uint64_t read_watchdog_ms(void)
{
    const char *process = getenv("WATCHDOG_PID");
    uint64_t us;
    uint64_t wanted = 0;
    if (text_to_u64(text_of(getenv("WATCHDOG_USEC")), INT64_MAX, &us) != STATUS_OK)
        us = 0;
    if (process != NULL && (text_to_u64(text_of(process), INT_MAX, &wanted) != STATUS_OK ||
                            wanted != (uint64_t)getpid()))
        us = 0;
    (void)unsetenv("WATCHDOG_PID");
    return us / 1000;
}

struct notifier *notifier_create(struct log *log)
{
    struct notifier *notifier = memory_alloc_zeroed(1, sizeof *notifier);
    notifier->log = log;
    notifier->descriptor = -1;
    if (!read_address(notifier, getenv("NOTIFY_SOCKET")))
        return notifier;
    const struct timeval wait = {.tv_sec = WAIT_S};
    notifier->descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notifier->descriptor >= 0)
        (void)setsockopt(notifier->descriptor, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    notifier->watchdog_ms = read_watchdog_ms();
    return notifier;
}

void notifier_destroy(struct notifier **at)
{
    struct notifier *notifier = memory_take(at);
    file_close(&notifier->descriptor);
    memory_free(notifier);
}

static void send_text(struct notifier *notifier, const char *text, int size, int flags)
{
    ssize_t sent = sendto(notifier->descriptor, text, (size_t)size, MSG_NOSIGNAL | flags,
                          (const struct sockaddr *)&notifier->address, notifier->address_size);
    if (sent < 0 && !notifier->failed)
        log_event(notifier->log, LOG_WARNING, "the service manager cannot be notified",
                  LOG_STRING("reason", strerror(errno)));
    notifier->failed = sent < 0;
}

void notifier_send_main(struct notifier *notifier, int process)
{
    char message[64];
    if (notifier->descriptor >= 0)
        send_text(notifier, message, snprintf(message, sizeof message, "MAINPID=%d\n", process), 0);
}

void notifier_send(struct notifier *notifier, enum notice notice)
{
    static const char *const texts[] = {
        [NOTICE_READY] = "READY=1",
        [NOTICE_RELOADING] = "RELOADING=1",
        [NOTICE_STOPPING] = "STOPPING=1",
        [NOTICE_ALIVE] = "WATCHDOG=1",
    };
    if (notifier->descriptor < 0)
        return;
    char message[64];
    int size = snprintf(message, sizeof message, "%s\n", texts[notice]);
    /* systemd 253 and later match the end of a reload with its beginning by this time. */
    if (notice == NOTICE_RELOADING)
        size = snprintf(message, sizeof message, "%s\nMONOTONIC_USEC=%" PRIu64 "\n", texts[notice],
                        clock_monotonic_ns() / 1000);
    send_text(notifier, message, size, notice == NOTICE_ALIVE ? MSG_DONTWAIT : 0);
}

uint64_t notifier_watchdog_ms(const struct notifier *notifier)
{
    return notifier->watchdog_ms;
}
