/*
 * SIGBUS and SIGSEGV inside a marked region become a return value; see guard.h.
 *
 * Signal handlers belong to the process, so this file holds the program's only static state of that
 * kind: the handlers that were there before, written once before ours are installed. The region is
 * the thread's own. The handler runs on the thread that faulted, in the middle of a plain load or
 * store of `body` (a synchronous signal), which is why leaving it by siglongjmp is safe: no lock of
 * the C library is held at such a point.
 */
#include "stores/odds/lmdb/guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#include "base/status.h"

static const int guarded_signals[] = {SIGBUS, SIGSEGV, SIGFPE};
#define GUARDED_COUNT (sizeof guarded_signals / sizeof guarded_signals[0])

static pthread_once_t installed = PTHREAD_ONCE_INIT;
static struct sigaction previous[GUARDED_COUNT];

static _Thread_local sigjmp_buf *volatile region; /* where a fault goes; NULL: not our business */
static _Thread_local bool thread_ready;

void odds_guard_escape(void)
{
    sigjmp_buf *back = region;
    if (back != NULL) {
        region = NULL;
        siglongjmp(*back, 1);
    }
}

static void on_fault(int signal_number, siginfo_t *info, void *machine)
{
    if (info->si_code > 0 && region != NULL) { /* a fault of ours, not a signal that was sent */
        /* siglongjmp puts no mask back (saving one would be a system call for every region).
         * NODEFER should leave nothing to do, but ThreadSanitizer blocks all signals in
         * handlers. */
        const ucontext_t *interrupted = machine;
        (void)pthread_sigmask(SIG_SETMASK, &interrupted->uc_sigmask, NULL);
        odds_guard_escape();
    }
    size_t which = 0;
    while (which + 1 < GUARDED_COUNT && guarded_signals[which] != signal_number)
        which++;
    /* The fault is not ours: another handler gets it, or the default. The default's fault happens
     * again on return; a signal that was sent is sent again. */
    const struct sigaction *before = &previous[which];
    if ((before->sa_flags & SA_SIGINFO) != 0) {
        before->sa_sigaction(signal_number, info, machine);
        return;
    }
    (void)sigaction(signal_number, before, NULL);
    if (info->si_code <= 0)
        (void)raise(signal_number);
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    CHECK(sigemptyset(&action.sa_mask) == 0);
    for (size_t i = 0; i < GUARDED_COUNT; i++) {
        CHECK(sigaction(guarded_signals[i], NULL, &previous[i]) == 0);
        CHECK(sigaction(guarded_signals[i], &action, NULL) == 0);
    }
}

/* A thread that blocks these signals would be killed by a fault without any handler being asked. */
static void make_thread_ready(void)
{
    CHECK(pthread_once(&installed, install) == 0);
    sigset_t set;
    CHECK(sigemptyset(&set) == 0);
    for (size_t i = 0; i < GUARDED_COUNT; i++)
        CHECK(sigaddset(&set, guarded_signals[i]) == 0);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
    thread_ready = true;
}

bool odds_guard_run(void (*body)(void *context), void *context)
{
    if (!thread_ready)
        make_thread_ready();
    CHECK(region == NULL);
    sigjmp_buf back;
    if (sigsetjmp(back, 0) != 0)
        return false; /* `region` has been cleared on the way */
    region = &back;
    body(context);
    region = NULL;
    return true;
}
