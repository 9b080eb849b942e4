/*
 * Clients that wait, for bench/waiting.py: any number of connections, one thread.
 *
 * usage: waiters PORT CLIENTS EVENTS REQUEST-FILE poll|push|MILLISECONDS
 *
 * REQUEST-FILE holds a request with CRLF line ends; @EVENT@ in it stands for a number from 1 to
 * EVENTS, the same for a client always, and @TAG@ for the entity tag that it got last. With `poll`
 * a client asks again as soon as it is answered, with MILLISECONDS so long after it asked last;
 * with `push` it asks once and is sent one message after the other.
 *
 * A delivery is `"t":"N"` in what comes, N in 19 digits the nanoseconds of CLOCK_MONOTONIC when the
 * message was made; one that a client has seen already counts once. Writes "ready" when each client
 * has been answered, begins to count then, and writes what it has counted when its standard input
 * ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define ROOM 4096
#define TAG_MAX 80
#define DIGITS 19
#define LATENCIES_MAX 20000000

struct client {
    int socket;
    unsigned event;
    unsigned size; /* of what has come and is not done with */
    uint64_t asked_ns, seen;
    bool answered, due;
    char tag[TAG_MAX];
    char bytes[ROOM];
};

static struct client *clients;
static unsigned client_count, answered_count;
static const char *request;
static bool push, counting;
static uint64_t pause_ns;
static uint32_t *latencies_us, *taken_us;
static uint64_t deliveries, answers, bytes_in, bytes_out;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static const char *load(const char *path)
{
    static char text[ROOM];
    int file = open(path, O_RDONLY);
    if (file < 0 || read(file, text, sizeof text - 1) <= 0)
        fail(path);
    (void)close(file);
    return text;
}

static size_t fill(char *out, const struct client *client)
{
    size_t size = 0;
    for (const char *at = request; *at != '\0';) {
        if (strncmp(at, "@EVENT@", 7) == 0) {
            size += (size_t)sprintf(out + size, "%u", client->event);
            at += 7;
        } else if (strncmp(at, "@TAG@", 5) == 0) {
            size += (size_t)sprintf(out + size, "%s", client->tag);
            at += 5;
        } else {
            out[size++] = *at++;
        }
    }
    return size;
}

static void ask(struct client *client)
{
    char out[2 * ROOM];
    size_t size = fill(out, client);
    if (send(client->socket, out, size, MSG_NOSIGNAL) != (ssize_t)size)
        fail("send");
    client->asked_ns = now_ns();
    client->due = false;
    bytes_out += counting ? size : 0;
}

static void deliver(struct client *client, const char *digits)
{
    uint64_t made_ns = strtoull(digits, NULL, 10);
    if (made_ns <= client->seen)
        return;
    client->seen = made_ns;
    if (!counting)
        return;
    if (deliveries < LATENCIES_MAX)
        latencies_us[deliveries] = (uint32_t)((now_ns() - made_ns) / 1000);
    deliveries++;
}

/* Returns how many bytes are done with. */
static size_t look_for_messages(struct client *client)
{
    static const char mark[] = "\"t\":\"";
    const char *at = client->bytes, *end = at + client->size, *found;
    while ((found = memmem(at, (size_t)(end - at), mark, sizeof mark - 1)) != NULL) {
        if ((size_t)(end - found) < sizeof mark + DIGITS)
            return (size_t)(found - client->bytes);
        deliver(client, found + sizeof mark - 1);
        at = found + sizeof mark + DIGITS;
    }
    size_t keep = sizeof mark + DIGITS;
    return (size_t)(end - at) > keep ? client->size - keep : (size_t)(at - client->bytes);
}

static const char *field(const struct client *client, const char *name)
{
    const char *at = strcasestr(client->bytes, name);
    return at == NULL ? NULL : at + strlen(name);
}

/* The length of an answer that has come whole, or 0. */
static size_t whole_answer(struct client *client)
{
    client->bytes[client->size] = '\0';
    const char *body = strstr(client->bytes, "\r\n\r\n");
    if (body == NULL)
        return 0;
    const char *length = field(client, "\r\ncontent-length: ");
    const char *tag = field(client, "\r\netag: ");
    size_t size = (size_t)(body + 4 - client->bytes);
    bool not_modified = strncmp(client->bytes, "HTTP/1.1 304", 12) == 0;
    if (!not_modified && strncmp(client->bytes, "HTTP/1.1 200", 12) != 0) {
        (void)fprintf(stderr, "%.*s\n", (int)client->size, client->bytes);
        exit(1);
    }
    size += not_modified || length == NULL ? 0 : strtoul(length, NULL, 10);
    if (size > client->size)
        return 0;
    if (tag != NULL)
        (void)snprintf(client->tag, sizeof client->tag, "%.*s", (int)strcspn(tag, "\r"), tag);
    return size;
}

static size_t take_answer(struct client *client)
{
    size_t size = whole_answer(client);
    if (size == 0)
        return 0;
    const char *made = memmem(client->bytes, size, "\"t\":\"", 5);
    if (made != NULL)
        deliver(client, made + 5);
    if (counting && answers < LATENCIES_MAX)
        taken_us[answers++] = (uint32_t)((now_ns() - client->asked_ns) / 1000);
    client->due = true;
    if (pause_ns == 0)
        ask(client);
    return size;
}

static void receive(struct client *client)
{
    ssize_t got = recv(client->socket, client->bytes + client->size, ROOM - 1 - client->size, 0);
    if (got <= 0) {
        (void)fprintf(stderr, "a connection has ended\n");
        exit(1);
    }
    bytes_in += counting ? (uint64_t)got : 0;
    client->size += (unsigned)got;
    size_t done = push ? look_for_messages(client) : take_answer(client);
    memmove(client->bytes, client->bytes + done, client->size - done);
    client->size -= (unsigned)done;
    if (!client->answered && (push || done > 0)) {
        client->answered = true;
        answered_count++;
    }
}

static void open_client(int poll, struct client *client, uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    int yes = 1;
    client->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client->socket < 0 ||
        connect(client->socket, (struct sockaddr *)&address, sizeof address) != 0)
        fail("connect");
    (void)setsockopt(client->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)strcpy(client->tag, "\"none\"");
    if (epoll_ctl(poll, EPOLL_CTL_ADD, client->socket, &event) != 0)
        fail("epoll_ctl");
    ask(client);
}

/* The clients ask in turns, each so long after it asked last. */
static void ask_who_is_due(void)
{
    static unsigned next;
    uint64_t now = now_ns();
    for (unsigned i = 0; i < client_count; i++) {
        struct client *client = &clients[next];
        if (!client->due || now - client->asked_ns < pause_ns)
            return;
        ask(client);
        next = (next + 1) % client_count;
    }
}

static int by_size(const void *one, const void *other)
{
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return a < b ? -1 : a > b;
}

static void tell_times(const char *what, uint32_t *times_us, uint64_t count)
{
    count = count < LATENCIES_MAX ? count : LATENCIES_MAX;
    qsort(times_us, count, sizeof *times_us, by_size);
    size_t half = count / 2;
    size_t hundredth = count * 99 / 100;
    (void)printf(", \"%sp50_ms\": %.3f, \"%sp99_ms\": %.3f", what,
                 count > 0 ? times_us[half] / 1000.0 : 0, what,
                 count > 0 ? times_us[hundredth] / 1000.0 : 0);
}

static void tell(void)
{
    (void)printf(
        "{\"deliveries\": %llu, \"answers\": %llu, \"bytes_in\": %llu, \"bytes_out\": %llu",
        (unsigned long long)deliveries, (unsigned long long)answers, (unsigned long long)bytes_in,
        (unsigned long long)bytes_out);
    tell_times("", latencies_us, deliveries);
    tell_times("took_", taken_us, answers);
    (void)printf("}\n");
}

int main(int argc, char **argv)
{
    struct epoll_event events[256];
    if (argc != 6)
        return 2;
    int poll = epoll_create1(EPOLL_CLOEXEC);
    client_count = (unsigned)strtoul(argv[2], NULL, 10);
    clients = calloc(client_count, sizeof *clients);
    latencies_us = malloc(LATENCIES_MAX * sizeof *latencies_us);
    taken_us = malloc(LATENCIES_MAX * sizeof *taken_us);
    request = load(argv[4]);
    push = strcmp(argv[5], "push") == 0;
    pause_ns = strtoull(argv[5], NULL, 10) * 1000000U;
    struct epoll_event input = {.events = EPOLLIN | EPOLLHUP, .data.ptr = NULL};
    if (clients == NULL || latencies_us == NULL || taken_us == NULL ||
        epoll_ctl(poll, EPOLL_CTL_ADD, 0, &input) != 0)
        fail("waiters");
    for (unsigned i = 0; i < client_count; i++) {
        clients[i].event = 1 + i % (unsigned)strtoul(argv[3], NULL, 10);
        open_client(poll, &clients[i], (uint16_t)strtoul(argv[1], NULL, 10));
    }
    for (;;) {
        int count = epoll_wait(poll, events, 256, pause_ns > 0 ? 1 : -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr != NULL) {
                receive(events[i].data.ptr);
                continue;
            }
            tell(); /* the input has ended */
            return 0;
        }
        if (pause_ns > 0 && counting)
            ask_who_is_due();
        if (!counting && answered_count == client_count) {
            counting = true;
            (void)printf("ready\n");
            (void)fflush(stdout);
        }
    }
}
