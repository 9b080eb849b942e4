#pragma once

#include "operator/field.h"

/* char[GAME_LIST_SIZE]: the countries where a game, or the games of a provider, must not be
 * offered, as a list of game_rules.h. Set by codes between commas. */
extern const struct field_type field_countries;
