#pragma once

#include "records/customer.h"

#define KEY_ID_SIZE 24 /* "key_" and 16 base62 characters */
#define KEY_LABEL_SIZE 65
#define KEY_PREFIX_SIZE 9  /* the first 8 characters of a key, to recognise it by */
#define KEY_DIGEST_SIZE 32 /* SHA-256 of the whole key */

#define KEY_CIDRS_MAX 16
#define KEYS_MADE_MAX 10 /* live ones that one key made */

/* The areas that a key may use, of those of its customer: a set. */
enum key_area { KEY_SPORTS = 1, KEY_CASINO = 2, KEY_ACCOUNT = 4, KEY_MANAGE = 8 };
#define KEY_AREAS_USUAL (KEY_SPORTS | KEY_CASINO) /* of a key without `only` */
typedef uint8_t key_areas;
extern const struct enum_names key_area_names; /* "sports" is of bit 0 */

/* Names separated by commas. False: one of them is no area. */
MUST_CHECK bool key_areas_read(struct text names, key_areas *areas);

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
    key_areas areas;
    key_areas may_issue; /* areas of the keys that it may make: of a key with KEY_MANAGE alone */
    char maker[KEY_ID_SIZE];          /* the key that made it; "": an operator issued it */
    size_t cidr_count;                /* 0: from wherever its customer may call from; */
    struct cidr cidrs[KEY_CIDRS_MAX]; /* else from these of it */
    uint64_t revision;
};

extern const struct record_table key_table;

/* Is the key neither revoked nor expired? */
bool key_is_live(const struct key_record *record, int64_t now_ms);
