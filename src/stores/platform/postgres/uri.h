#pragma once

#include <libpq-fe.h>

#include "base/text.h"

/*
 * A postgresql:// URI as libpq understands it, with the options that croupier adds to every
 * connection. No text made here ever holds a part of the password, however the URI was
 * misspelt. Threads: any; a target is not changed once it is made.
 */

#define POSTGRES_HOSTS_MAX 16
#define POSTGRES_HOST_SIZE 264
#define POSTGRES_OPTIONS_MAX 128 /* of libpq, which has 43 in version 15 */

struct postgres_target {
    char *location; /* "postgresql://host:5432/database" */
    PQconninfoOption *options;
    size_t host_count;                                  /* at least 1 */
    char hosts[POSTGRES_HOSTS_MAX][POSTGRES_HOST_SIZE]; /* "host:5432" */
};

/* The value of an option; NULL: libpq chooses. */
const char *postgres_option(const struct postgres_target *target, const char *keyword);
/* Of one of the hosts: its "host", "hostaddr" or "port". {NULL, 0} or "": libpq chooses. */
struct text postgres_host_option(const struct postgres_target *target, const char *keyword,
                                 size_t host);

/* STATUS_INVALID, with a text that names the fault but does not repeat the URI. */
MUST_CHECK enum status postgres_target_create(struct postgres_target **target, const char *uri,
                                              uint32_t timeout_ms, struct error *error);
void postgres_target_destroy(struct postgres_target **target);
