#ifndef CROUPIER_STORES_PLATFORM_POSTGRES_URI_H
#define CROUPIER_STORES_PLATFORM_POSTGRES_URI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/*
 * A postgresql:// URI as libpq understands it, with the options that croupier adds to every
 * connection. No text made here ever holds a part of the password, however the URI was
 * misspelt. Threads: any; a target is not changed once it is made.
 */

#define POSTGRES_HOSTS_MAX 16
#define POSTGRES_KEYWORDS_MAX 64

struct postgres_host {
    char *name;    /* or the directory of a socket; NULL: as libpq chooses */
    char *address; /* NULL: to be looked up */
    char *port;
};

struct postgres_target {
    char *location; /* "postgresql://host:5432/database" */
    struct postgres_host hosts[POSTGRES_HOSTS_MAX];
    size_t host_count; /* at least 1 */
    /* For PQconnectStartParams, less the host; ends with NULL. */
    char *keywords[POSTGRES_KEYWORDS_MAX + 1];
    char *values[POSTGRES_KEYWORDS_MAX + 1];
    size_t keyword_count;
};

/* STATUS_INVALID, with a text that names the fault but does not repeat the URI. */
MUST_CHECK enum status postgres_target_create(struct postgres_target **target, const char *uri,
                                              uint32_t timeout_ms, struct error *error);
void postgres_target_destroy(struct postgres_target **target);

#endif
