#ifndef CROUPIER_RECORDS_PROVIDER_H
#define CROUPIER_RECORDS_PROVIDER_H

#include "records/game_rules.h"
#include "records/record.h"

#define PROVIDER_ID_SIZE GAME_ID_SIZE
#define PROVIDER_AUDIENCE_SIZE 257
#define PROVIDER_SEALED_MAX 540U /* bytes of a sealed secret */

struct provider_record {
    char id[PROVIDER_ID_SIZE];
    char name[GAME_NAME_SIZE];
    char launch_url[GAME_URL_SIZE]; /* without a fragment: a token is added to its query */
    bool launch_call; /* launch_url is an endpoint that is called; else players are sent there */
    char return_url[GAME_URL_SIZE];        /* "": none */
    char audience[PROVIDER_AUDIENCE_SIZE]; /* `aud` of its tokens */
    uint8_t secret[PROVIDER_SEALED_MAX];   /* sealed (records/secrets.h) */
    size_t secret_size;
    bool enabled;
    bool usable; /* false: the stored row is not sound (set on reading); its games are hidden */
    int64_t created_ms;
    uint64_t revision;
};

extern const struct record_table provider_table;

#endif
