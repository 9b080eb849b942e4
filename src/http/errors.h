#pragma once

#include <stddef.h>

/*
 * An error answer: its HTTP status, a stable code, and a message for people, which never contains
 * text from the request. All three are part of the interface (docs/interface.md, "Errors").
 *
 * Each domain lists its errors in a table like the one below, DOMAIN_ERRORS in its errors.h. A row
 * `ROW(code, status, message)` defines the object `error_code` and an element of `domain_errors`.
 */
struct http_error {
    int status;
    const char *code;
    const char *message;
};

#define HTTP_ERROR_DECLARE(code_, status_, message_) extern const struct http_error error_##code_;
#define HTTP_ERROR_DEFINE(code_, status_, message_) \
    const struct http_error error_##code_ = {status_, #code_, message_};
#define HTTP_ERROR_LIST(code_, status_, message_) &error_##code_,
/* A domain's errors.c needs only this line for its table. */
#define HTTP_ERROR_TABLE(domain_, ROWS_) \
    ROWS_(HTTP_ERROR_DEFINE)             \
    const struct http_error *const domain_##_errors[] = {ROWS_(HTTP_ERROR_LIST) NULL}

/* Errors of HTTP itself. */
#define HTTP_ERRORS(ROW)                                                                         \
    ROW(bad_request, 400, "The request is not proper HTTP.")                                     \
    ROW(https_required, 400, "This port speaks HTTPS.")                                          \
    ROW(not_found, 404, "Not found")                                                             \
    ROW(method_not_allowed, 405, "The method is not allowed for this path.")                     \
    ROW(request_timeout, 408, "The request did not arrive in time.")                             \
    ROW(precondition_failed, 412, "The answer is not what If-Match names.")                      \
    ROW(payload_too_large, 413, "The request body is too large.")                                \
    ROW(uri_too_long, 414, "The request target is too long.")                                    \
    ROW(unsupported_media_type, 415, "The content coding of the request body is not supported.") \
    ROW(expectation_failed, 417, "The expectation cannot be met.")                               \
    ROW(headers_too_large, 431, "The request header fields are too large.")                      \
    ROW(internal_error, 500, "Unexpected server error.")                                         \
    ROW(not_implemented, 501, "The method or the transfer coding is not implemented.")           \
    ROW(overloaded, 503, "The service is overloaded. Try again later.")                          \
    ROW(version_not_supported, 505, "Only HTTP/1.0 and HTTP/1.1 are supported.")

HTTP_ERRORS(HTTP_ERROR_DECLARE)
extern const struct http_error *const http_errors[]; /* all of them, then NULL */
