#pragma once

#include "records/customer.h"

#define KEY_ID_SIZE 24 /* "key_" and 16 base62 characters */
#define KEY_LABEL_SIZE 65
#define KEY_PREFIX_SIZE 9  /* the first 8 characters of a key, to recognise it by */
#define KEY_DIGEST_SIZE 32 /* SHA-256 of the whole key */

#define KEY_CIDRS_MAX 16

/* The routes that a key may use, of those that its customer may use. */
enum key_scope { KEY_SCOPE_ALL, KEY_SCOPE_SPORTS, KEY_SCOPE_CASINO };

struct key_record {
    char id[KEY_ID_SIZE];
    char customer_id[CUSTOMER_ID_SIZE];
    char label[KEY_LABEL_SIZE]; /* may be empty */
    char prefix[KEY_PREFIX_SIZE];
    uint8_t digest[KEY_DIGEST_SIZE];
    int64_t created_ms;
    int64_t expires_ms;   /* 0: never */
    int64_t last_used_ms; /* 0: never; about a minute behind; does not take a revision */
    int64_t revoked_ms;   /* 0: live. A malformed row reads as revoked */
    enum key_scope scope;
    size_t cidr_count;                /* 0: from wherever its customer may call from; */
    struct cidr cidrs[KEY_CIDRS_MAX]; /* else from these of it */
    uint64_t revision;
};

extern const struct record_table key_table;

extern const struct enum_names key_scopes; /* "sports"; "" for all */

/* Is the key neither revoked nor expired? */
bool key_is_live(const struct key_record *record, int64_t now_ms);
