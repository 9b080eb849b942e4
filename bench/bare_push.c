/*
 * The yardsticks of bench/waiting.py: each line that comes on standard input is sent, as the body
 * of the head in FILE, and nothing else is done.
 *
 * usage: bare_push FILE push|poll [EVENTS]     prints the port it listens on (loopback)
 *
 * push: to everybody who is connected; who connects is sent a message at once. poll: to everybody
 * who has asked since, by a request of which nothing is looked at but that it has come; who asks
 * for the first time is answered at once.
 *
 * EVENTS: a line begins with the number of its event, from 1, and a space, and goes to the clients
 * of that event. The clients take the events in turn, as they connect.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bare.h"

#define EPOLL_MAX 1024
#define EVENTS_MAX 65536

static int waiting[EVENTS_MAX];   /* by event: a descriptor that is sent its next line; 0: none */
static int next[CONNECTIONS_MAX]; /* by descriptor: another one that waits for the same */
static unsigned event_of[CONNECTIONS_MAX];                 /* by descriptor */
static char served[CONNECTIONS_MAX];                       /* by descriptor, with `poll` */
static char waits[CONNECTIONS_MAX], gone[CONNECTIONS_MAX]; /* by descriptor */
static char message[65536];
static size_t head_size, line_size, message_size;
static unsigned events, accepted;
static int polls, poller;

/* False: the client has gone. */
static int send_to(int connection, size_t size)
{
    if (!gone[connection] && send(connection, message, size, MSG_NOSIGNAL) == (ssize_t)size)
        return 1;
    (void)close(connection);
    return 0;
}

static void wait_for_line(int connection)
{
    next[connection] = waiting[event_of[connection]];
    waiting[event_of[connection]] = connection;
    waits[connection] = 1;
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
        served[connection] = gone[connection] = waits[connection] = 0;
        event_of[connection] = accepted++ % events;
        if (polls)
            watch(connection);
        else if (send_to(connection, head_size))
            wait_for_line(connection);
    }
}

/* A request is one piece here: clients send the next when they have been answered. */
static void take_request(int connection)
{
    static char request[65536];
    if (read(connection, request, sizeof request) <= 0) {
        gone[connection] = 1; /* one that waits is closed when its turn comes */
        if (epoll_ctl(poller, EPOLL_CTL_DEL, connection, NULL) != 0)
            fail("epoll_ctl");
        if (!waits[connection])
            (void)close(connection);
        return;
    }
    if (served[connection])
        wait_for_line(connection);
    else
        served[connection] = (char)send_to(connection, message_size);
}

static void send_line(unsigned event, size_t size)
{
    int connection = waiting[event];
    waiting[event] = 0;
    while (connection != 0) {
        int following = next[connection];
        waits[connection] = 0;
        if (send_to(connection, size) && !polls)
            wait_for_line(connection);
        connection = following;
    }
}

/* False: the input has ended. */
static int read_lines(void)
{
    static char input[65536];
    ssize_t got = read(0, input + line_size, sizeof input - line_size);
    char *line = input, *end;
    if (got <= 0)
        return 0;
    line_size += (size_t)got;
    while ((end = memchr(line, '\n', line_size)) != NULL) {
        char *body = line;
        unsigned long event = events > 1 ? strtoul(line, &body, 10) - 1 : 0;
        body += events > 1;
        message_size = head_size + (size_t)(end + 1 - body);
        memcpy(message + head_size, body, message_size - head_size);
        send_line((unsigned)event % events, message_size);
        line_size -= (size_t)(end + 1 - line);
        line = end + 1;
    }
    memmove(input, line, line_size);
    return 1;
}

int main(int count, char **arguments)
{
    struct epoll_event ready[EPOLL_MAX];
    int file = count >= 3 ? open(arguments[1], O_RDONLY) : -1;
    int listener = listen_here();
    ssize_t size = file < 0 ? -1 : read(file, message, sizeof message / 4);
    events = count == 4 ? (unsigned)strtoul(arguments[3], NULL, 10) : 1;
    if (size < 0 || events == 0 || events > EVENTS_MAX)
        fail("bare_push FILE push|poll [EVENTS]");
    polls = strcmp(arguments[2], "poll") == 0;
    poller = epoll_create1(0);
    head_size = (size_t)size;
    watch(0);
    watch(listener);
    for (;;) {
        int ready_count = epoll_wait(poller, ready, EPOLL_MAX, -1);
        for (int i = 0; i < ready_count; i++) {
            if (ready[i].data.fd == listener)
                accept_all(listener);
            else if (ready[i].data.fd != 0)
                take_request(ready[i].data.fd);
            else if (!read_lines())
                return 0;
        }
    }
}
