/*
 * The yardstick: an epoll loop that answers every request with the same bytes, without looking at
 * anything but where a request ends. Nearly all of its time is the kernel's, so "1.1 times the bare
 * loop" says what a server adds to what sending those bytes costs anyway.
 *
 * usage: bare_loop FILE     FILE holds the whole response; prints the port it listens on (loopback)
 *
 * One thread, one read and one writev a request, level-triggered, TCP_NODELAY: as croupier does it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bare.h"

struct connection {
    uint32_t matched; /* how much of CR LF CR LF has been seen */
    uint32_t owed;    /* answers not yet sent whole */
    size_t sent;      /* of the first of them */
};

static struct connection connections[CONNECTIONS_MAX]; /* by descriptor */
static char *response;
static size_t response_size;

static void load(const char *path)
{
    struct stat status;
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &status) != 0)
        fail(path);
    response_size = (size_t)status.st_size;
    response = malloc(response_size);
    if (response == NULL || read(file, response, response_size) != (ssize_t)response_size)
        fail(path);
    (void)close(file);
}

/* Counts ends of requests (CR LF CR LF) in what was read. */
static void scan(struct connection *connection, const char *bytes, size_t size)
{
    static const char end[] = "\r\n\r\n";
    if (connection->matched == 0 && size >= 4 && memcmp(bytes + size - 4, end, 4) == 0 &&
        memmem(bytes, size - 4, end, 4) == NULL) {
        connection->owed++;
        return;
    }
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == end[connection->matched])
            connection->matched++;
        else
            connection->matched = bytes[i] == '\r';
        if (connection->matched == 4) {
            connection->matched = 0;
            connection->owed++;
        }
    }
}

/* False: the connection is gone. */
static int send_owed(int poll, int socket)
{
    struct connection *connection = &connections[socket];
    while (connection->owed > 0) {
        struct iovec part = {response + connection->sent, response_size - connection->sent};
        ssize_t written = writev(socket, &part, 1);
        if (written < 0 && errno == EAGAIN) {
            struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.fd = socket};
            (void)epoll_ctl(poll, EPOLL_CTL_MOD, socket, &event);
            return 1;
        }
        if (written < 0)
            return 0;
        connection->sent += (size_t)written;
        if (connection->sent == response_size) {
            connection->sent = 0;
            connection->owed--;
        }
    }
    return 1;
}

static void serve(int poll, int socket, uint32_t events)
{
    static char buffer[65536];
    struct connection *connection = &connections[socket];
    if (events & EPOLLIN) {
        ssize_t size = read(socket, buffer, sizeof buffer);
        if (size == 0 || (size < 0 && errno != EAGAIN)) {
            (void)close(socket);
            return;
        }
        if (size > 0)
            scan(connection, buffer, (size_t)size);
    }
    uint32_t owed = connection->owed;
    if (!send_owed(poll, socket)) {
        (void)close(socket);
        return;
    }
    if ((events & EPOLLOUT) && owed > 0 && connection->owed == 0) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = socket};
        (void)epoll_ctl(poll, EPOLL_CTL_MOD, socket, &event);
    }
}

static void accept_all(int poll, int listener)
{
    int socket;
    while ((socket = accept_next(listener, SOCK_NONBLOCK)) >= 0) {
        connections[socket] = (struct connection){0};
        struct epoll_event event = {.events = EPOLLIN, .data.fd = socket};
        (void)epoll_ctl(poll, EPOLL_CTL_ADD, socket, &event);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: bare_loop FILE\n");
        return 2;
    }
    load(argv[1]);
    int listener = listen_here();
    int poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    if (poll < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event) != 0)
        fail("epoll");
    for (;;) {
        struct epoll_event events[1024];
        int count = epoll_wait(poll, events, 1024, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == listener)
                accept_all(poll, listener);
            else
                serve(poll, events[i].data.fd, events[i].events);
        }
    }
}
