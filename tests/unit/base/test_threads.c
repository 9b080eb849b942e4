/* base/mailbox and base/work_pool: handing something to another thread. */
#include <unistd.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/mailbox.h"
#include "base/memory.h"
#include "base/threads.h"
#include "base/work_pool.h"
#include "tests.h"

/* ---- mailbox --------------------------------------------------------------------------------- */

#define SENDERS 3
#define MAILS 5000

struct letter {
    struct mail mail; /* first */
    int sender;
    int number;
};

struct sending {
    struct mailbox *mailbox;
    struct letter *letters;
};

static uv_loop_t loop;
static struct mailbox *mailbox;
static pthread_t loop_thread;
static int last_number[SENDERS];
static int delivered;

static void take_letter(struct mail *mail)
{
    struct letter *letter = (struct letter *)(void *)mail;
    assert_true(pthread_equal(pthread_self(), loop_thread) != 0);
    assert_int_equal(letter->number, last_number[letter->sender] + 1);
    last_number[letter->sender] = letter->number;
    delivered++;
}

static void *send_all(void *argument)
{
    struct sending *sending = argument;
    for (int i = 0; i < MAILS; i++)
        mailbox_post(sending->mailbox, &sending->letters[i].mail);
    return NULL;
}

static void on_tick(uv_timer_t *timer)
{
}

TEST(mails_of_each_sender_come_in_order_on_the_loops_thread)
{
    struct sending sendings[SENDERS];
    pthread_t threads[SENDERS];
    uv_timer_t tick;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(uv_timer_init(&loop, &tick), 0);
    assert_int_equal(uv_timer_start(&tick, on_tick, 1, 1), 0);
    loop_thread = pthread_self();
    mailbox = mailbox_create(&loop);
    for (int sender = 0; sender < SENDERS; sender++) {
        sendings[sender].mailbox = mailbox;
        sendings[sender].letters = memory_alloc_zeroed(MAILS, sizeof(struct letter));
        for (int i = 0; i < MAILS; i++)
            sendings[sender].letters[i] =
                (struct letter){.mail.deliver = take_letter, .sender = sender, .number = i + 1};
        assert_int_equal(pthread_create(&threads[sender], NULL, send_all, &sendings[sender]), 0);
    }
    while (delivered < SENDERS * MAILS)
        (void)uv_run(&loop, UV_RUN_ONCE);
    for (int sender = 0; sender < SENDERS; sender++) {
        assert_int_equal(pthread_join(threads[sender], NULL), 0);
        memory_free(sendings[sender].letters);
    }
    uv_close((uv_handle_t *)&tick, NULL);
    mailbox_destroy(&mailbox);
    assert_null(mailbox);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static struct letter reply_letter;

static void reply_once(struct mail *mail)
{
    delivered++;
    mailbox_post(mailbox, &reply_letter.mail);
}

static void count(struct mail *mail)
{
    delivered++;
}

TEST(delivery_is_never_inside_post_and_the_end_leaves_nothing)
{
    struct letter letter = {.mail.deliver = reply_once};
    reply_letter = (struct letter){.mail.deliver = count};
    delivered = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    mailbox = mailbox_create(&loop);
    mailbox_post(mailbox, &letter.mail);
    assert_int_equal(delivered, 0);
    mailbox_destroy(&mailbox); /* also what the first one posts while it is delivered */
    assert_int_equal(delivered, 2);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

TEST(a_mailbox_does_not_keep_its_loop_alive)
{
    assert_int_equal(uv_loop_init(&loop), 0);
    mailbox = mailbox_create(&loop);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    mailbox_destroy(&mailbox);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static atomic_int hold_ms;   /* so long do other threads stay in write(2) at most */
static sem_t let_go;         /* ends that */
static atomic_bool held_out; /* nothing did */
static atomic_bool ended;    /* the mailbox is gone */
static atomic_bool too_late; /* it was when they came back */

/* Instead of libc's, so that what is a matter of nanoseconds in life is one of milliseconds. */
ssize_t write(int file, const void *bytes, size_t size)
{
    ssize_t written = syscall(SYS_write, file, bytes, size);
    int held_ms = atomic_load(&hold_ms);
    if (held_ms > 0 && size == sizeof(uint64_t) &&
        pthread_equal(pthread_self(), loop_thread) == 0) {
        struct timespec until;
        assert_int_equal(clock_gettime(CLOCK_REALTIME, &until), 0);
        until.tv_sec += held_ms / 1000;
        until.tv_nsec += held_ms % 1000 * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        atomic_store(&held_out, sem_timedwait(&let_go, &until) != 0);
        atomic_store(&too_late, atomic_load(&ended));
    }
    return written;
}

static void *post_one(void *argument)
{
    mailbox_post(mailbox, argument);
    return NULL;
}

/* Another thread posts it, and is held while it wakes the loop. */
static void deliver_of_a_held_sender(struct letter *letter, int most_ms)
{
    pthread_t thread;
    uv_timer_t tick; /* keeps the loop alive */
    assert_int_equal(sem_init(&let_go, 0, 0), 0);
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(uv_timer_init(&loop, &tick), 0);
    assert_int_equal(uv_timer_start(&tick, on_tick, 1, 1), 0);
    loop_thread = pthread_self();
    mailbox = mailbox_create(&loop);
    delivered = 0;
    atomic_store(&hold_ms, most_ms);
    assert_int_equal(pthread_create(&thread, NULL, post_one, &letter->mail), 0);
    while (delivered == 0)
        (void)uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    atomic_store(&hold_ms, 0);
    mailbox_destroy(&mailbox);
    uv_close((uv_handle_t *)&tick, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(sem_destroy(&let_go), 0);
}

static void end_it(struct mail *mail)
{
    mailbox_destroy(&mailbox);
    atomic_store(&ended, true);
    delivered++;
}

TEST(the_last_mail_may_be_the_reason_to_end)
{
    struct letter last = {.mail.deliver = end_it};
    deliver_of_a_held_sender(&last, 20);
    assert_false(atomic_load(&too_late));
}

static void release_the_sender(struct mail *mail)
{
    delivered++;
    assert_int_equal(sem_post(&let_go), 0);
}

TEST(the_loop_does_not_wait_until_a_sender_is_back_from_waking_it)
{
    struct letter letter = {.mail.deliver = release_the_sender};
    deliver_of_a_held_sender(&letter, 10000);
    assert_false(atomic_load(&held_out));
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool no_threads;

int uv_thread_create(uv_thread_t *thread, uv_thread_cb entry, void *argument)
{
    void *symbol = dlsym(RTLD_NEXT, "uv_thread_create");
    int (*real)(uv_thread_t *, uv_thread_cb, void *) = NULL;
    memcpy(&real, &symbol, sizeof real);
    return no_threads ? UV_EAGAIN : real(thread, entry, argument);
}

TEST(without_threads_the_process_says_so_and_ends)
{
    char said[512] = "";
    int ends[2];
    int status = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        uv_thread_t thread;
        no_threads = true;
        (void)dup2(ends[1], STDERR_FILENO);
        thread_start(&thread, "some", NULL, NULL);
        _exit(0);
    }
    (void)close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    assert_true(read(ends[0], said, sizeof said - 1) > 0);
    assert_non_null(
        strstr(said, "thread some cannot be started: resource temporarily unavailable"));
    (void)close(ends[0]);
}

/* ---- work pool ------------------------------------------------------------------------------- */

struct job {
    struct work work; /* first */
    sem_t *entered;
    sem_t *release;
    atomic_int *counter;
    int order;
};

static void run_job(struct work *work)
{
    struct job *job = (struct job *)(void *)work;
    if (job->entered != NULL)
        assert_int_equal(sem_post(job->entered), 0);
    if (job->release != NULL)
        assert_int_equal(sem_wait(job->release), 0);
    job->order = atomic_fetch_add(job->counter, 1);
}

TEST(a_full_queue_is_told_at_once)
{
    sem_t entered;
    sem_t release;
    atomic_int counter = 0;
    assert_int_equal(sem_init(&entered, 0, 0), 0);
    assert_int_equal(sem_init(&release, 0, 0), 0);
    struct job busy = {
        .work.run = run_job, .entered = &entered, .release = &release, .counter = &counter};
    struct job waiting[2] = {{.work.run = run_job, .counter = &counter},
                             {.work.run = run_job, .counter = &counter}};
    struct job refused = {.work.run = run_job, .counter = &counter, .order = -1};
    struct work_pool *pool = work_pool_create("test-of-a-long-name", 1, 2);
    assert_int_equal(work_pool_submit(pool, &busy.work), STATUS_OK);
    assert_int_equal(sem_wait(&entered), 0);
    assert_int_equal(work_pool_depth(pool), 0);
    assert_int_equal(work_pool_submit(pool, &waiting[0].work), STATUS_OK);
    assert_int_equal(work_pool_submit(pool, &waiting[1].work), STATUS_OK);
    assert_int_equal(work_pool_depth(pool), 2);
    assert_int_equal(work_pool_submit(pool, &refused.work), STATUS_FULL);
    assert_int_equal(sem_post(&release), 0);
    work_pool_destroy(&pool); /* runs what is queued */
    assert_null(pool);
    assert_int_equal(busy.order, 0);
    assert_int_equal(waiting[0].order, 1);
    assert_int_equal(waiting[1].order, 2);
    assert_int_equal(refused.order, -1);
    assert_int_equal(atomic_load(&counter), 3);
}

TEST(every_job_runs_once)
{
    enum { JOBS = 3000 };
    atomic_int counter = 0;
    struct job *jobs = memory_alloc_zeroed(JOBS, sizeof *jobs);
    struct work_pool *pool = work_pool_create("test", 3, JOBS);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.work.run = run_job, .counter = &counter, .order = -1};
        assert_int_equal(work_pool_submit(pool, &jobs[i].work), STATUS_OK);
    }
    work_pool_destroy(&pool);
    assert_int_equal(atomic_load(&counter), JOBS);
    for (int i = 0; i < JOBS; i++)
        assert_in_range(jobs[i].order, 0, JOBS - 1);
    memory_free(jobs);
}

TEST(several_threads_work_at_the_same_time)
{
    sem_t entered;
    sem_t release;
    atomic_int counter = 0;
    assert_int_equal(sem_init(&entered, 0, 0), 0);
    assert_int_equal(sem_init(&release, 0, 0), 0);
    struct job jobs[2];
    struct work_pool *pool = work_pool_create("test", 2, 1);
    for (int i = 0; i < 2; i++) {
        jobs[i] = (struct job){
            .work.run = run_job, .entered = &entered, .release = &release, .counter = &counter};
        assert_int_equal(work_pool_submit(pool, &jobs[i].work), STATUS_OK);
        assert_int_equal(sem_wait(&entered), 0); /* the first is still inside when the second is */
    }
    assert_int_equal(sem_post(&release), 0);
    assert_int_equal(sem_post(&release), 0);
    work_pool_destroy(&pool);
    assert_int_equal(atomic_load(&counter), 2);
    assert_int_equal(jobs[0].work.thread + jobs[1].work.thread, 1); /* 0 and 1 */
    assert_in_range(jobs[0].work.thread, 0, 1);
}

/* ---- threads --------------------------------------------------------------------------------- */

static atomic_bool starving;

static void spin(void *argument)
{
    (void)argument;
    while (atomic_load(&starving))
        continue;
}

/* Two threads want the one processor, so each waits for the other. */
TEST(a_thread_knows_how_long_it_waited_for_a_processor)
{
    cpu_set_t all;
    cpu_set_t one;
    uv_thread_t other;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    uint64_t before_ms = thread_starved_ms();
    atomic_store(&starving, true);
    thread_start(&other, "spin", spin, NULL); /* on the same one */
    const uint64_t end_ns = clock_monotonic_ns() + 60 * UINT64_C(1000000000);
    while (thread_starved_ms() < before_ms + 20 && clock_monotonic_ns() < end_ns)
        continue;
    atomic_store(&starving, false);
    assert_int_equal(uv_thread_join(&other), 0);
    assert_true(thread_starved_ms() >= before_ms + 20);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}
