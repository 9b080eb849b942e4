/*
 * The yardsticks of bench/waiting.py: each line that comes on standard input is sent, as the body
 * of the head in FILE, and nothing else is done.
 *
 * usage: bare_push FILE push|poll     prints the port it listens on (loopback)
 *
 * push: to everybody who is connected; who connects is sent a message at once. poll: to everybody
 * who has asked since, by a request of which nothing is looked at but that it has come; who asks
 * for the first time is answered at once.
 */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bare.h"

#define EVENTS_MAX 1024

static int connections[CONNECTIONS_MAX]; /* that are sent the next line */
static size_t connection_count;
static char served[CONNECTIONS_MAX]; /* by descriptor, with `poll` */
static char message[65536];
static size_t head_size, line_size, message_size;
static int polls, poller;

/* Who has gone gives its place to the last. */
static void send_to(size_t place, size_t size)
{
    if (send(connections[place], message, size, MSG_NOSIGNAL) == (ssize_t)size)
        return;
    (void)close(connections[place]);
    connections[place] = connections[--connection_count];
}

static void watch(int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event) != 0)
        fail("epoll_ctl");
}

static void accept_all(int listener)
{
    int connection;
    while ((connection = accept_next(listener, 0)) >= 0) {
        served[connection] = 0;
        if (polls) {
            watch(connection);
            continue;
        }
        connections[connection_count++] = connection;
        send_to(connection_count - 1, head_size);
    }
}

/* A request is one piece here: clients send the next when they have been answered. */
static void take_request(int connection)
{
    static char request[65536];
    if (read(connection, request, sizeof request) <= 0) {
        (void)close(connection);
        return;
    }
    connections[connection_count++] = connection;
    if (!served[connection])
        send_to(--connection_count, message_size);
    served[connection] = 1;
}

/* False: the input has ended. */
static int read_lines(void)
{
    ssize_t got = read(0, message + head_size + line_size, sizeof message - head_size - line_size);
    char *end;
    if (got <= 0)
        return 0;
    line_size += (size_t)got;
    while ((end = memchr(message + head_size, '\n', line_size)) != NULL) {
        size_t size = (size_t)(end + 1 - message);
        for (size_t i = connection_count; i > 0; i--)
            send_to(i - 1, size);
        connection_count = polls ? 0 : connection_count;
        message_size = size;
        line_size -= size - head_size;
        memmove(message + head_size, end + 1, line_size);
    }
    return 1;
}

int main(int count, char **arguments)
{
    struct epoll_event events[EVENTS_MAX];
    int file = count == 3 ? open(arguments[1], O_RDONLY) : -1;
    int listener = listen_here();
    ssize_t size = file < 0 ? -1 : read(file, message, sizeof message / 2);
    if (size < 0)
        fail("bare_push FILE push|poll");
    polls = strcmp(arguments[2], "poll") == 0;
    poller = epoll_create1(0);
    head_size = (size_t)size;
    watch(0);
    watch(listener);
    for (;;) {
        int ready = epoll_wait(poller, events, EVENTS_MAX, -1);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd == listener)
                accept_all(listener);
            else if (events[i].data.fd != 0)
                take_request(events[i].data.fd);
            else if (!read_lines())
                return 0;
        }
    }
}
