/*
 * How soon interest in an event reaches the odds store: for bench/waiting.py.
 *
 *   interest STORE PORT KEY COUNT
 *
 * Asks a server for the events 1 to COUNT of cricket, one every 5 ms, and after each asks the store
 * again and again whether it knows of it. What counts is the time from before the request was sent
 * until the store has told. Writes one line of JSON.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds_feed.h"
#include "stores/odds_read.h"

#define PATIENCE_NS 5000000000U
#define LOOK_US 200
#define PAUSE_US 5000

static void fail(const char *what)
{
    (void)fprintf(stderr, "interest: %s\n", what);
    exit(1);
}

static int connect_to(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0 ||
        connect(descriptor, (const struct sockaddr *)&address, sizeof address) != 0)
        fail("cannot connect to the server");
    return descriptor;
}

static bool is_known(struct odds_store *store, const struct event_id *event, int64_t since_ms)
{
    struct odds_interest *list = NULL;
    struct error error;
    size_t count = 0;
    bool known = false;
    if (odds_store_list_interest(store, SPORT_CRICKET, since_ms, &list, &count, &error) !=
        STATUS_OK)
        fail(error.text);
    for (size_t i = 0; i < count; i++)
        known = known || event_id_equals(&list[i].event, event);
    memory_free(list);
    return known;
}

static uint64_t measure(struct odds_store *store, int server, const char *key, unsigned number)
{
    struct event_id event = {0};
    struct buffer request = {0};
    char answer[65536];
    event.size = (uint8_t)snprintf(event.digits, sizeof event.digits, "%u", number);
    buffer_append_format(&request,
                         "GET /api/v1/cricket/events/%u HTTP/1.1\r\nHost: a\r\n"
                         "X-Api-Key: %s\r\n\r\n",
                         number, key);
    int64_t since_ms = clock_wall_ms() - 1000;
    uint64_t began_ns = clock_monotonic_ns();
    if (send(server, request.data, request.size, MSG_NOSIGNAL) != (ssize_t)request.size)
        fail("cannot send");
    while (!is_known(store, &event, since_ms)) {
        if (clock_monotonic_ns() - began_ns > PATIENCE_NS)
            fail("the store never knew of it");
        (void)usleep(LOOK_US);
    }
    uint64_t took_ns = clock_monotonic_ns() - began_ns;
    if (recv(server, answer, sizeof answer, 0) <= 0)
        fail("no answer");
    buffer_free(&request);
    return took_ns;
}

static int by_size(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

int main(int argc, char **argv)
{
    struct odds_store *store = NULL;
    struct error error;
    if (argc != 5)
        fail("usage: interest STORE PORT KEY COUNT");
    const struct odds_store_options options = {.uri = argv[1], .timeout_ms = 5000};
    if (odds_store_open(&store, &options, &error) != STATUS_OK)
        fail(error.text);
    unsigned count = (unsigned)strtoul(argv[4], NULL, 10);
    if (count == 0)
        fail("COUNT is a number from 1");
    uint64_t *took_ns = memory_alloc_zeroed(count, sizeof *took_ns);
    int server = connect_to(argv[2]);
    for (unsigned i = 0; i < count; i++) {
        took_ns[i] = measure(store, server, argv[3], i + 1);
        (void)usleep(PAUSE_US);
    }
    qsort(took_ns, count, sizeof *took_ns, by_size);
    size_t half = count / 2;
    size_t most = count - 1;
    size_t hundredth = (size_t)count * 99 / 100;
    (void)printf("{\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"most_ms\": %.3f}\n",
                 (double)took_ns[half] / 1e6, (double)took_ns[hundredth] / 1e6,
                 (double)took_ns[most] / 1e6);
    memory_free(took_ns);
    odds_store_close(&store);
    (void)close(server);
    return 0;
}
