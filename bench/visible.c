/*
 * How soon a change in Redis shows in every instance: for bench/run.py.
 *
 *   visible REDIS-PORT EVENT FILE KEY CHANGES PORT…
 *
 * FILE holds the event's odds (cricket) with "turn":"00000000" once. Every 20 ms it is SET with
 * those digits counted up; meanwhile every server of the PORTs is polled on a connection of its
 * own, the next request POLL_NS after the last answer. What counts is the time from the moment the
 * SET's reply was read to the moment when an answer was read whole that shows the change (0 when
 * that was sooner), for each server; `asked` is the same to the moment when that answer was asked
 * for, so what is beyond it was waiting for it. The polling adds at most its interval and one
 * answer's time to it, which are written too.
 *
 * One thread and one ppoll, so that nothing here waits for anything else here. Writes one line of
 * JSON; `refused` are answers that were not 200, which show nothing. Exit 1 when a server ever
 * shows an earlier turn than before, or when a change is not seen everywhere within a second.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

#define SERVERS_MAX 8
#define CHANGES_MAX 100000
#define EVERY_NS 20000000U
#define POLL_NS 200000U
#define POLLS_MAX 1000000U
#define PATIENCE_NS 1000000000U
#define DOCUMENT_MAX (1024U * 1024)
#define TURN "\"turn\":\""
#define TURN_DIGITS 8

struct server {
    int descriptor;
    bool asked;        /* an answer is on its way */
    uint64_t next_ns;  /* when to ask again */
    uint64_t asked_ns; /* when it was asked */
    uint64_t refused;  /* answers */
    uint32_t turn;     /* shown last */
    struct buffer answer;
    uint64_t *seen_ns;  /* by turn: when an answer that shows it was read */
    uint64_t *first_ns; /* and asked for */
};

struct visible {
    int redis;
    bool setting; /* a SET whose reply is not here yet */
    uint64_t set_at_ns;
    uint32_t turn, changes;
    struct buffer set; /* the command */
    char *set_turn;    /* the digits in it */
    uint64_t *set_ns;  /* when its reply was read, by turn */
    struct buffer request;
    struct server servers[SERVERS_MAX];
    size_t count;
    size_t polls;        /* answers so far, of all */
    uint64_t *answer_ns; /* how long each took */
};

static void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "visible: %s: %s\n", what, why);
    exit(1);
}

static uint32_t read_number(const char *given, uint64_t maximum)
{
    uint64_t number = 0;
    if (text_to_u64(text_of(given), maximum, &number) != STATUS_OK || number == 0)
        fail(given, "is not a number in its range");
    return (uint32_t)number;
}

static int connect_to(uint32_t port)
{
    const int on = 1;
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0 ||
        connect(descriptor, (const struct sockaddr *)(const void *)&address, sizeof address) != 0 ||
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        fail("connect", strerror(errno));
    return descriptor;
}

static void send_whole(int descriptor, const struct buffer *bytes)
{
    size_t sent = 0;
    while (sent < bytes->size) {
        ssize_t more = send(descriptor, bytes->data + sent, bytes->size - sent, MSG_NOSIGNAL);
        if (more < 0)
            fail("send", strerror(errno));
        sent += (size_t)more;
    }
}

/* ---- what is changed ------------------------------------------------------------------------- */

static void make_set(struct visible *visible, const char *event, const char *path)
{
    struct buffer document = {0};
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        fail(path, "cannot be opened");
    buffer_reserve(&document, DOCUMENT_MAX);
    document.size = fread(document.data, 1, DOCUMENT_MAX, file);
    (void)fclose(file);
    buffer_append_format(&visible->set, "*3\r\n$3\r\nSET\r\n$%zu\r\nodds:cricket:%s\r\n$%zu\r\n",
                         strlen(event) + sizeof "odds:cricket:" - 1, event, document.size);
    buffer_append(&visible->set, document.data, document.size);
    buffer_append_string(&visible->set, "\r\n");
    buffer_free(&document);
    visible->set_turn = strstr(buffer_string(&visible->set), TURN);
    if (visible->set_turn == NULL)
        fail(path, "has no turn");
    visible->set_turn += sizeof TURN - 1;
}

static void start_set(struct visible *visible, uint64_t now_ns)
{
    char digits[TURN_DIGITS + 1];
    (void)snprintf(digits, sizeof digits, "%08" PRIu32, ++visible->turn % 100000000U);
    memcpy(visible->set_turn, digits, TURN_DIGITS);
    send_whole(visible->redis, &visible->set);
    visible->setting = true;
    visible->set_at_ns = now_ns;
}

static void finish_set(struct visible *visible)
{
    char reply[16];
    ssize_t size = recv(visible->redis, reply, sizeof reply, 0);
    if (size != 5 || memcmp(reply, "+OK\r\n", 5) != 0)
        fail("redis", "did not answer OK");
    visible->set_ns[visible->turn] = clock_monotonic_ns();
    visible->setting = false;
}

/* ---- what is shown --------------------------------------------------------------------------- */

static void ask(struct visible *visible, struct server *server, uint64_t now_ns)
{
    send_whole(server->descriptor, &visible->request);
    server->asked = true;
    server->asked_ns = now_ns;
    buffer_clear(&server->answer);
}

static bool is_whole(const struct buffer *answer)
{
    const char *body = memmem(answer->data, answer->size, "\r\n\r\n", 4);
    const char *length = memmem(answer->data, answer->size, "Content-Length: ", 16);
    if (body == NULL)
        return false;
    if (length == NULL)
        fail("answer", "has no length");
    size_t head = (size_t)(body + 4 - answer->data);
    return answer->size - head >= strtoul(length + 16, NULL, 10);
}

static void see(struct server *server, uint64_t now_ns)
{
    const char *shown = memmem(server->answer.data, server->answer.size, TURN, sizeof TURN - 1);
    if (shown == NULL)
        fail("answer", "shows no turn");
    uint32_t turn = (uint32_t)strtoul(shown + sizeof TURN - 1, NULL, 10);
    if (turn < server->turn)
        fail("answer", "shows an earlier turn than before");
    while (server->turn < turn && server->turn < CHANGES_MAX) {
        server->seen_ns[++server->turn] = now_ns;
        server->first_ns[server->turn] = server->asked_ns;
    }
}

static void receive(struct visible *visible, struct server *server)
{
    struct buffer *answer = &server->answer;
    buffer_reserve(answer, 256 * 1024U);
    ssize_t size = recv(server->descriptor, answer->data + answer->size, 256 * 1024U, 0);
    if (size <= 0)
        fail("receive", size == 0 ? "the server closed" : strerror(errno));
    answer->size += (size_t)size;
    if (!is_whole(answer))
        return;
    uint64_t now_ns = clock_monotonic_ns();
    if (memcmp(answer->data, "HTTP/1.1 200", 12) == 0)
        see(server, now_ns);
    else
        server->refused++;
    server->asked = false;
    server->next_ns = now_ns + POLL_NS;
    if (visible->polls < POLLS_MAX)
        visible->answer_ns[visible->polls++] = now_ns - server->asked_ns;
}

static bool is_seen(const struct visible *visible)
{
    for (size_t i = 0; i < visible->count; i++) {
        if (visible->servers[i].turn < visible->turn)
            return false;
    }
    return !visible->setting;
}

/* Does what is due; returns when something is due again. */
static uint64_t act(struct visible *visible, uint64_t now_ns)
{
    uint64_t next_ns = visible->set_at_ns + EVERY_NS;
    if (now_ns >= next_ns) {
        if (is_seen(visible) && visible->turn < visible->changes)
            start_set(visible, now_ns);
        else if (now_ns - visible->set_at_ns > PATIENCE_NS)
            fail("change", "was not seen everywhere within a second");
        next_ns = now_ns + POLL_NS;
    }
    for (size_t i = 0; i < visible->count; i++) {
        struct server *server = &visible->servers[i];
        if (!server->asked && now_ns >= server->next_ns)
            ask(visible, server, now_ns);
        if (!server->asked && server->next_ns < next_ns)
            next_ns = server->next_ns;
    }
    return next_ns;
}

static void run(struct visible *visible)
{
    struct pollfd waiting[SERVERS_MAX + 1] = {{.fd = visible->redis, .events = POLLIN}};
    for (size_t i = 0; i < visible->count; i++)
        waiting[i + 1] = (struct pollfd){.fd = visible->servers[i].descriptor, .events = POLLIN};
    while (visible->turn < visible->changes || !is_seen(visible)) {
        uint64_t next_ns = act(visible, clock_monotonic_ns());
        uint64_t now_ns = clock_monotonic_ns();
        const struct timespec rest = {.tv_nsec = next_ns > now_ns ? (long)(next_ns - now_ns) : 0};
        if (ppoll(waiting, visible->count + 1, &rest, NULL) < 0 && errno != EINTR)
            fail("poll", strerror(errno));
        if (waiting[0].revents != 0)
            finish_set(visible);
        for (size_t i = 0; i < visible->count; i++) {
            if (waiting[i + 1].revents != 0)
                receive(visible, &visible->servers[i]);
        }
    }
}

/* ---- the result ------------------------------------------------------------------------------ */

static int compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one;
    uint64_t b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

/* Of a sorted list. */
static double percentile(const uint64_t *sorted, size_t count, size_t percent)
{
    size_t at = count * percent / 100;
    return (double)sorted[at < count ? at : count - 1];
}

/* How long after the replies to SET, sorted; `count` of them. */
static uint64_t *since_set(const struct visible *visible, bool asked, size_t *count)
{
    uint64_t *took_ns = memory_alloc_zeroed(visible->count * visible->changes, sizeof *took_ns);
    *count = 0;
    for (size_t i = 0; i < visible->count; i++) {
        const struct server *server = &visible->servers[i];
        for (uint32_t turn = 1; turn <= visible->changes; turn++) {
            uint64_t set_ns = visible->set_ns[turn];
            uint64_t at_ns = asked ? server->first_ns[turn] : server->seen_ns[turn];
            took_ns[(*count)++] = at_ns > set_ns ? at_ns - set_ns : 0;
        }
    }
    qsort(took_ns, *count, sizeof *took_ns, compare);
    return took_ns;
}

static void report(const struct visible *visible)
{
    size_t count;
    uint64_t refused = 0;
    uint64_t *seen_ns = since_set(visible, false, &count);
    uint64_t *asked_ns = since_set(visible, true, &count);
    for (size_t i = 0; i < visible->count; i++)
        refused += visible->servers[i].refused;
    qsort(visible->answer_ns, visible->polls, sizeof *visible->answer_ns, compare);
    (void)printf("{\"samples\": %zu, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f, "
                 "\"asked_p99_ms\": %.3f, \"polls\": %zu, \"refused\": %" PRIu64
                 ", \"pause_ms\": %.3f, \"poll_p50_ms\": %.3f, \"poll_p99_ms\": %.3f}\n",
                 count, percentile(seen_ns, count, 50) / 1e6, percentile(seen_ns, count, 99) / 1e6,
                 percentile(seen_ns, count, 100) / 1e6, percentile(asked_ns, count, 99) / 1e6,
                 visible->polls, refused, POLL_NS / 1e6,
                 percentile(visible->answer_ns, visible->polls, 50) / 1e6,
                 percentile(visible->answer_ns, visible->polls, 99) / 1e6);
    memory_free(seen_ns);
    memory_free(asked_ns);
}

int main(int argc, char **argv)
{
    if (argc < 7 || argc - 6 > SERVERS_MAX)
        fail("usage", "see the head of bench/visible.c");
    struct visible *visible = memory_alloc_zeroed(1, sizeof *visible);
    (void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    visible->redis = connect_to(read_number(argv[1], 65535));
    make_set(visible, argv[2], argv[3]);
    buffer_append_format(&visible->request,
                         "GET /api/v1/cricket/events/%s HTTP/1.1\r\nHost: bench\r\n"
                         "Authorization: Bearer %s\r\n\r\n",
                         argv[2], argv[4]);
    visible->changes = read_number(argv[5], CHANGES_MAX);
    visible->answer_ns = memory_alloc_zeroed(POLLS_MAX, sizeof *visible->answer_ns);
    visible->set_ns = memory_alloc_zeroed(CHANGES_MAX + 1, sizeof *visible->set_ns);
    visible->count = (size_t)argc - 6;
    for (size_t i = 0; i < visible->count; i++) {
        visible->servers[i].descriptor = connect_to(read_number(argv[6 + i], 65535));
        visible->servers[i].seen_ns = memory_alloc_zeroed(CHANGES_MAX + 1, sizeof(uint64_t));
        visible->servers[i].first_ns = memory_alloc_zeroed(CHANGES_MAX + 1, sizeof(uint64_t));
    }
    run(visible);
    report(visible);
    for (size_t i = 0; i < visible->count; i++) {
        (void)close(visible->servers[i].descriptor);
        buffer_free(&visible->servers[i].answer);
        memory_free(visible->servers[i].seen_ns);
        memory_free(visible->servers[i].first_ns);
    }
    (void)close(visible->redis);
    buffer_free(&visible->set);
    buffer_free(&visible->request);
    memory_free(visible->answer_ns);
    memory_free(visible->set_ns);
    memory_free(visible);
    return 0;
}
