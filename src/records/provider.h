#pragma once

#include "base/address.h"
#include "records/game_rules.h"
#include "records/record.h"

#define PROVIDER_ID_SIZE GAME_ID_SIZE
#define PROVIDER_AUDIENCE_SIZE 257
#define PROVIDER_SEALED_MAX 540U /* bytes of a sealed secret */
#define PROVIDER_CIDRS_MAX 32
#define PROVIDER_SECRETS_MAX 2 /* the newest, which signs, and one that is not yet retired */
#define PROVIDER_KID_SIZE 9    /* 8 of base62; NUL-terminated */

struct provider_secret {
    char kid[PROVIDER_KID_SIZE];         /* "": the first, which no token or call of ours names */
    int64_t added_ms;                    /* 0: not known */
    uint8_t sealed[PROVIDER_SEALED_MAX]; /* sealing/secrets.h */
    size_t size;                         /* 0: there is none */
};

struct provider_record {
    char id[PROVIDER_ID_SIZE];
    char name[GAME_NAME_SIZE];
    char launch_url[GAME_URL_SIZE]; /* without a fragment: a token is added to its query */
    bool launch_call; /* launch_url is an endpoint that is called; else players are sent there */
    char return_url[GAME_URL_SIZE];                       /* "": none */
    char audience[PROVIDER_AUDIENCE_SIZE];                /* `aud` of its tokens */
    struct provider_secret secrets[PROVIDER_SECRETS_MAX]; /* the newest first */
    size_t cidr_count;
    struct cidr cidrs[PROVIDER_CIDRS_MAX];  /* where it calls from; none: anywhere */
    char blocked_countries[GAME_LIST_SIZE]; /* where its games must not be offered */
    bool sandbox;                           /* tries things out, with such customers alone */
    bool enabled;
    bool usable; /* false: the stored row is not sound (set on reading); its games are hidden */
    int64_t created_ms;
    uint64_t revision;
};

extern const struct record_table provider_table;
