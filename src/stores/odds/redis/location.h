#pragma once

#include <openssl/types.h>

#include "base/text.h"

enum redis_way { REDIS_BY_TCP, REDIS_BY_UNIX, REDIS_BY_SENTINEL };

#define REDIS_HOSTS_MAX 16
#define REDIS_HOST_SIZE 256 /* of a name, with its NUL */

struct redis_host {
    char name[REDIS_HOST_SIZE]; /* a name or a numeric address, without brackets */
    uint16_t port;
};

struct redis_location {
    enum redis_way way;
    bool tls;
    struct redis_host hosts[REDIS_HOSTS_MAX]; /* one, or the sentinels, or nodes of a cluster */
    size_t host_count;
    char *path;     /* BY_UNIX */
    char *service;  /* BY_SENTINEL: the name of the master in Sentinel */
    char *user;     /* NULL: the default user */
    char *password; /* NULL: none is sent */
    char *tls_ca;   /* a file of certificates to trust instead of the system's; may be NULL */
    SSL_CTX *trust; /* with TLS; set by the engine, freed with the rest */
    uint32_t database;
    struct buffer shown; /* as it may be shown: without user and password */
};

/* STATUS_INVALID: `error` says what is wrong and quotes nothing that could be secret. */
MUST_CHECK enum status redis_location_parse(struct redis_location **location, const char *uri,
                                            struct error *error);
/* The location of a server that another one names. False: the text is no name and port; `host` is
 * untouched. */
MUST_CHECK bool redis_host_set(struct redis_host *host, struct text name, struct text port);
void redis_location_destroy(struct redis_location **location);
