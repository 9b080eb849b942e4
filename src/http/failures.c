/*
 * The error table: every code that the interface names, with its status and message, in one place.
 *
 * Codes and statuses are a contract (docs/interface.md, "Errors"), and so are the messages there.
 * Messages never hold anything of the request.
 */
#include "http/http.h"

static const struct http_error_row rows[HTTP_ERROR_COUNT] = {
    [HTTP_ERROR_BAD_REQUEST] = {400, "bad_request", "The request is not proper HTTP."},
    [HTTP_ERROR_HTTPS_REQUIRED] = {400, "https_required", "This port speaks HTTPS."},
    [HTTP_ERROR_REQUEST_TIMEOUT] = {408, "request_timeout", "The request did not arrive in time."},
    [HTTP_ERROR_PAYLOAD_TOO_LARGE] = {413, "payload_too_large", "The request body is too large."},
    [HTTP_ERROR_URI_TOO_LONG] = {414, "uri_too_long", "The request target is too long."},
    [HTTP_ERROR_UNSUPPORTED_MEDIA_TYPE] =
        {415, "unsupported_media_type", "The content coding of the request body is not supported."},
    [HTTP_ERROR_EXPECTATION_FAILED] = {417, "expectation_failed", "The expectation cannot be met."},
    [HTTP_ERROR_HEADERS_TOO_LARGE] = {431, "headers_too_large",
                                      "The request header fields are too large."},
    [HTTP_ERROR_NOT_IMPLEMENTED] = {501, "not_implemented",
                                    "The method or the transfer coding is not implemented."},
    [HTTP_ERROR_VERSION_NOT_SUPPORTED] = {505, "version_not_supported",
                                          "Only HTTP/1.0 and HTTP/1.1 are supported."},
    [HTTP_ERROR_OVERLOADED] = {503, "overloaded", "The service is overloaded. Try again later."},
    [HTTP_ERROR_INVALID_REQUEST] = {400, "invalid_request", "The request is not valid."},
    [HTTP_ERROR_INVALID_SPORT] = {400, "invalid_sport",
                                  "Unsupported sport. Supported sports: cricket, football, tennis, "
                                  "horse-racing, greyhound-racing"},
    [HTTP_ERROR_INVALID_EVENT_ID] = {400, "invalid_event_id",
                                     "Event id must be a positive integer."},
    [HTTP_ERROR_IP_NOT_ALLOWED] = {403, "ip_not_allowed", "Client address is not allowed."},
    [HTTP_ERROR_SPORT_NOT_ALLOWED] = {403, "sport_not_allowed",
                                      "This sport is not enabled for your IP."},
    [HTTP_ERROR_CASINO_ACCESS_DISABLED] = {403, "casino_access_disabled",
                                           "Casino access is disabled for this customer."},
    [HTTP_ERROR_NOT_FOUND] = {404, "not_found", "Not found"},
    [HTTP_ERROR_EVENT_NOT_FOUND] = {404, "event_not_found", "Event not found"},
    [HTTP_ERROR_ODDS_NOT_FOUND] = {404, "odds_not_found", "Odds not found"},
    [HTTP_ERROR_METHOD_NOT_ALLOWED] = {405, "method_not_allowed",
                                       "The method is not allowed for this path."},
    [HTTP_ERROR_RATE_LIMITED] = {429, "rate_limited",
                                 "The request budget of the current window is used up."},
    [HTTP_ERROR_INTERNAL_ERROR] = {500, "internal_error", "Unexpected server error."},
    [HTTP_ERROR_MALFORMED_UPSTREAM_DATA] = {502, "malformed_upstream_data",
                                            "The stored data cannot be read."},
    [HTTP_ERROR_CATALOG_UNAVAILABLE] = {503, "catalog_unavailable",
                                        "Event data is not published yet."},
    [HTTP_ERROR_CACHE_UNAVAILABLE] = {503, "cache_unavailable", "The data store is unavailable."},
    [HTTP_ERROR_SECURITY_CONFIG_UNAVAILABLE] = {503, "security_config_unavailable",
                                                "The access policy could not be read."},
    [HTTP_ERROR_CACHE_TIMEOUT] = {504, "cache_timeout", "The data store timed out."},
    [HTTP_ERROR_UNKNOWN_FIELD] = {400, "unknown_field", "The request has an unknown field."},
    [HTTP_ERROR_PLAYER_NOT_FOUND] = {404, "player_not_found", "Player not found"},
    [HTTP_ERROR_REFERENCE_NOT_FOUND] = {404, "reference_not_found",
                                        "Referenced transaction not found"},
    [HTTP_ERROR_TRANSACTION_CONFLICT] = {409, "transaction_conflict",
                                         "The transaction id belongs to another request."},
    [HTTP_ERROR_TRANSACTION_ROLLED_BACK] = {409, "transaction_rolled_back",
                                            "The transaction was rolled back."},
    [HTTP_ERROR_ALREADY_ROLLED_BACK] = {409, "already_rolled_back",
                                        "The transaction is rolled back already."},
    [HTTP_ERROR_ALREADY_SETTLED] = {409, "already_settled", "The transaction is settled already."},
    [HTTP_ERROR_NOT_ROLLBACKABLE] = {409, "not_rollbackable", "A rollback cannot be rolled back."},
    [HTTP_ERROR_GAME_NOT_FOUND] = {404, "game_not_found", "Game not found"},
    [HTTP_ERROR_MODE_NOT_SUPPORTED] = {422, "mode_not_supported",
                                       "The game cannot be played in this mode."},
    [HTTP_ERROR_CURRENCY_NOT_SUPPORTED] = {422, "currency_not_supported",
                                           "The game does not offer this currency."},
    [HTTP_ERROR_LANGUAGE_NOT_SUPPORTED] = {422, "language_not_supported",
                                           "The game does not offer this language."},
    [HTTP_ERROR_DEVICE_NOT_SUPPORTED] = {422, "device_not_supported",
                                         "The game does not support this device."},
    [HTTP_ERROR_PROVIDER_UNAVAILABLE] = {503, "provider_unavailable",
                                         "The provider is unavailable. Try again later."},
    [HTTP_ERROR_CURRENCY_MISMATCH] = {422, "currency_mismatch",
                                      "The currency is not the player's."},
    [HTTP_ERROR_INSUFFICIENT_FUNDS] = {422, "insufficient_funds", "The balance is too low."},
    [HTTP_ERROR_BALANCE_LIMIT_EXCEEDED] = {422, "balance_limit_exceeded",
                                           "The balance would exceed its limit."},
    [HTTP_ERROR_LEDGER_UNAVAILABLE] = {503, "ledger_unavailable",
                                       "The ledger is unavailable. Nothing was applied."},
};

const struct http_error_row *http_error_row(enum http_error error)
{
    CHECK((unsigned)error < HTTP_ERROR_COUNT && rows[error].code != NULL);
    return &rows[error];
}

enum http_error http_error_of_status(enum status status)
{
    CHECK(status != STATUS_OK && status != STATUS_PENDING && status != STATUS_NOT_FOUND);
    switch (status) {
    case STATUS_MALFORMED:
        return HTTP_ERROR_MALFORMED_UPSTREAM_DATA;
    case STATUS_UNAVAILABLE:
        return HTTP_ERROR_CACHE_UNAVAILABLE;
    case STATUS_TIMEOUT:
        return HTTP_ERROR_CACHE_TIMEOUT;
    case STATUS_FULL:
        return HTTP_ERROR_OVERLOADED;
    default:
        return HTTP_ERROR_INTERNAL_ERROR;
    }
}
