/* The rows of errors.h as objects. */
#include "games/errors.h"

HTTP_ERROR_TABLE(games, GAMES_ERRORS);

void games_reply_fault(struct http_request *request, enum strict_json fault, const char *message)
{
    http_reply_error_as(
        request, fault == STRICT_JSON_UNKNOWN_FIELD ? &error_unknown_field : &error_invalid_request,
        message);
}
