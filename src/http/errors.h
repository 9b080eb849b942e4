#pragma once

#include <stddef.h>

/*
 * An error answer: its HTTP status, a stable code, and a message for people, which never contains
 * text from the request. All three are part of the interface (docs/interface.md, "Errors"). The
 * reason is for the operator: the log, the metrics and docs/reasons.md have one word for each
 * cause.
 *
 * Each domain lists its errors in a table like the one below, DOMAIN_ERRORS in its errors.h. A row
 * `ROW(code, status, message)` is an error with one cause: it defines the object `error_code`,
 * whose reason is the code, and an element of `domain_errors`. A row `CAUSE(reason, ANSWER)` is one
 * cause of an answer that has several: it defines `error_reason` likewise.
 */
struct http_error {
    int status;
    const char *code; /* "": the reason of an answer that is no error (304) */
    const char *message;
    const char *reason;
};

/* Answers with several causes. */
#define HTTP_BAD_REQUEST 400, "bad_request", "The request is not proper HTTP."
#define HTTP_INTERNAL_ERROR 500, "internal_error", "Unexpected server error."
#define HTTP_NOT_IMPLEMENTED \
    501, "not_implemented", "The method or the transfer coding is not implemented."
#define HTTP_OVERLOADED 503, "overloaded", "The service is overloaded. Try again later."
#define HTTP_ANSWERED_AT_ONCE 304, "", ""

#define HTTP_ERROR_DECLARE(name_, ...) extern const struct http_error error_##name_;
#define HTTP_ERROR_DEFINE(code_, status_, message_) \
    const struct http_error error_##code_ = {status_, #code_, message_, #code_};
#define HTTP_CAUSE_DEFINE(reason_, ...) \
    const struct http_error error_##reason_ = {__VA_ARGS__, #reason_};
#define HTTP_ERROR_LIST(name_, ...) &error_##name_,
/* A domain's errors.c needs only this line for its table. */
#define HTTP_ERROR_TABLE(domain_, ROWS_)                                                         \
    ROWS_(HTTP_ERROR_DEFINE, HTTP_CAUSE_DEFINE)                                                  \
    const struct http_error *const domain_##_errors[] = {ROWS_(HTTP_ERROR_LIST, HTTP_ERROR_LIST) \
                                                             NULL}

/* Errors of HTTP itself. */
#define HTTP_ERRORS(ROW, CAUSE)                                                                  \
    CAUSE(malformed_line, HTTP_BAD_REQUEST)                                                      \
    CAUSE(malformed_target, HTTP_BAD_REQUEST)                                                    \
    CAUSE(malformed_field, HTTP_BAD_REQUEST)                                                     \
    CAUSE(malformed_length, HTTP_BAD_REQUEST)                                                    \
    CAUSE(malformed_coding, HTTP_BAD_REQUEST)                                                    \
    CAUSE(length_and_coding, HTTP_BAD_REQUEST)                                                   \
    CAUSE(malformed_chunk, HTTP_BAD_REQUEST)                                                     \
    CAUSE(no_host, HTTP_BAD_REQUEST)                                                             \
    CAUSE(many_hosts, HTTP_BAD_REQUEST)                                                          \
    CAUSE(malformed_host, HTTP_BAD_REQUEST)                                                      \
    CAUSE(cut_off, HTTP_BAD_REQUEST)                                                             \
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
    CAUSE(bug, HTTP_INTERNAL_ERROR)                                                              \
    CAUSE(unknown_method, HTTP_NOT_IMPLEMENTED)                                                  \
    CAUSE(unknown_coding, HTTP_NOT_IMPLEMENTED)                                                  \
    CAUSE(too_many_connections, HTTP_OVERLOADED)                                                 \
    CAUSE(connections_of_address, HTTP_OVERLOADED)                                               \
    CAUSE(rates_full, HTTP_OVERLOADED)                                                           \
    CAUSE(draining, HTTP_ANSWERED_AT_ONCE)                                                       \
    ROW(version_not_supported, 505, "Only HTTP/1.0 and HTTP/1.1 are supported.")

HTTP_ERRORS(HTTP_ERROR_DECLARE, HTTP_ERROR_DECLARE)
extern const struct http_error *const http_errors[]; /* all of them, then NULL */
