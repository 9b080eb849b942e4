/* The rows of errors.h as objects. */
#include "games/errors.h"

HTTP_ERROR_TABLE(games, GAMES_ERRORS);
