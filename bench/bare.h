#pragma once

/* What the bare servers share: a listener, and its connections. One thread. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 32768

static _Noreturn void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Listens on any free port of loopback, and prints it. */
static int listen_here(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 ||
        listen(listener, 4096) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        fail("listen");
    (void)printf("%d\n", ntohs(address.sin_port));
    (void)fflush(stdout);
    return listener;
}

/* The next connection that waits, of which small pieces are sent at once; -1: none waits. One whose
 * descriptor is beyond CONNECTIONS_MAX is closed. `flags`: SOCK_NONBLOCK or none. */
static int accept_next(int listener, int flags)
{
    int yes = 1;
    int connection;
    while ((connection = accept4(listener, NULL, NULL, flags | SOCK_CLOEXEC)) >= CONNECTIONS_MAX)
        (void)close(connection);
    if (connection >= 0)
        (void)setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return connection;
}
