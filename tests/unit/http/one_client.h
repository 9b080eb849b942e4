#ifndef CROUPIER_TESTS_HTTP_ONE_CLIENT_H
#define CROUPIER_TESTS_HTTP_ONE_CLIENT_H

/* The fixture of a program whose tests, TEST_OF(client, …), have a loopback and one client each. */
#include "loopback.h"

static struct loopback loopback;

static inline int open_loopback(void **state)
{
    loopback_open(&loopback, NULL, 8);
    return 0;
}

static inline int close_loopback(void **state)
{
    loopback_close(&loopback);
    return 0;
}

static inline int set_up(void **state)
{
    static struct client client;
    (void)open_loopback(state);
    client = client_open(&loopback);
    *state = &client;
    return 0;
}

static inline int tear_down(void **state)
{
    client_close(*state);
    return close_loopback(state);
}

#endif
