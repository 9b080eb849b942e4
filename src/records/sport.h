#pragma once

#include "base/text.h"

/* The five sports, in canonical order. Keys are lower-case and exact. */
enum sport {
    SPORT_CRICKET,
    SPORT_FOOTBALL,
    SPORT_TENNIS,
    SPORT_HORSE_RACING,
    SPORT_GREYHOUND_RACING,
};
#define SPORT_COUNT 5

/* A set of sports: bit N is sport N. */
typedef uint32_t sport_set;
#define SPORT_BIT(sport) (1U << (unsigned)(sport))
#define SPORT_SET_ALL ((1U << SPORT_COUNT) - 1U)

extern const struct enum_names sport_keys;
const char *sport_key(enum sport sport);  /* "horse-racing" */
const char *sport_name(enum sport sport); /* "Horse Racing" */

MUST_CHECK enum status sport_from_key(struct text key, enum sport *sport);

/* Reads "all", "none" or "cricket,tennis" (spaces around names are fine); says which name is
 * wrong. */
MUST_CHECK enum status sport_set_parse(struct text list, sport_set *set, struct error *error);

/* Writes "all", "none" or "cricket,tennis". */
void sport_set_append(struct buffer *buffer, sport_set set);
