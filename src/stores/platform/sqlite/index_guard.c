/*
 * The handler of SIGBUS; see index_guard.h. It runs on the thread that faulted, and uses only calls
 * that a handler may use. Signal handlers belong to the process, so their state is static: the
 * handler that was there before is written once, before this one is installed, and gets all other
 * faults.
 */
#include "stores/platform/sqlite/index_guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/status.h"

static pthread_once_t installed = PTHREAD_ONCE_INIT;
static struct sigaction previous;
static uintptr_t page_size;
static atomic_bool was_needed;

/* Reads lines such as "7f00-7f80 rw-s 00000000 08:01 1234  /var/lib/croupier/platform.db-shm". */
struct map_line {
    uintptr_t numbers[2]; /* begin and end */
    unsigned fields;      /* fields that have ended */
    uint32_t last;        /* four characters */
};

static bool read_character(struct map_line *line, char c, uintptr_t at)
{
    if (c == '\n') {
        bool found = at >= line->numbers[0] && at < line->numbers[1] &&
                     line->last == ('-' << 24 | 's' << 16 | 'h' << 8 | 'm');
        *line = (struct map_line){{0}, 0, 0};
        return found;
    }
    line->last = line->last << 8 | (unsigned char)c;
    if (line->fields < 2 && (c == '-' || c == ' '))
        line->fields++;
    else if (line->fields < 2)
        line->numbers[line->fields] =
            line->numbers[line->fields] << 4 | (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    return false;
}

static bool is_in_an_index(uintptr_t at)
{
    struct map_line line = {{0}, 0, 0};
    char bytes[4096];
    ssize_t got = 0;
    bool found = false;
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (maps >= 0 && !found && (got = read(maps, bytes, sizeof bytes)) > 0)
        for (ssize_t i = 0; i < got && !found; i++)
            found = read_character(&line, bytes[i], at);
    if (maps >= 0)
        (void)close(maps);
    return found;
}

static void on_fault(int signal_number, siginfo_t *info, void *machine)
{
    int kept = errno;
    uintptr_t at = (uintptr_t)info->si_addr;
    void *page = (void *)(at - at % page_size); // NOLINT(performance-no-int-to-ptr)
    if (info->si_code == BUS_ADRERR && is_in_an_index(at) &&
        mmap(page, page_size, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
             0) == page) {
        atomic_store(&was_needed, true);
        errno = kept;
        return; /* to the same instruction, which finds zeros */
    }
    if ((previous.sa_flags & SA_SIGINFO) != 0) {
        previous.sa_sigaction(signal_number, info, machine);
        return;
    }
    (void)sigaction(signal_number, &previous, NULL); /* a fault happens again on return */
    if (info->si_code <= 0)                          /* but not a signal that a process sent */
        (void)raise(signal_number);
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    CHECK(sigemptyset(&action.sa_mask) == 0);
    CHECK(sigaction(SIGBUS, NULL, &previous) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
}

void index_guard_install(void)
{
    CHECK(pthread_once(&installed, install) == 0);
}

bool index_guard_was_needed(void)
{
    return atomic_load(&was_needed);
}
