#pragma once

#include "http/errors.h"

/* Refusals of the console, beside errors of HTTP (docs/admin.yaml). */
#define CONSOLE_ERRORS(ROW, CAUSE)                                                          \
    ROW(two_credentials, 400, "Send one: a session's cookie, a token or a proxy's name.")   \
    ROW(not_signed_in, 401, "Sign in first.")                                               \
    ROW(link_not_good, 401, "The link is over or was used. Ask for another one.")           \
    ROW(token_not_good, 401, "The token is unknown, revoked or over.")                      \
    ROW(token_not_from_here, 403, "The token may not be used from this address.")           \
    ROW(no_session, 403, "A token has no session: it neither signs in nor out.")            \
    ROW(role_too_low, 403, "Your role does not allow that.")                                \
    ROW(not_same_origin, 403, "A change must come from a page of the console.")             \
    ROW(unknown_record, 404, "There is no such record.")                                    \
    ROW(conflict, 409, "What is stored stands against it.")                                 \
    ROW(changed_meanwhile, 412, "Another operator changed it first. Look at it again.")     \
    ROW(not_json, 415, "The body must be application/json.")                                \
    ROW(unknown_host, 421, "The console is not called by this name. See [operator] hosts.") \
    ROW(invalid, 422, "The request is not acceptable.")                                     \
    ROW(too_many_attempts, 429, "Too many sign-ins have failed. Try again later.")          \
    ROW(store_unavailable, 503, "The store cannot be reached.")                             \
    CAUSE(console_busy, HTTP_OVERLOADED)

CONSOLE_ERRORS(HTTP_ERROR_DECLARE, HTTP_ERROR_DECLARE)
extern const struct http_error *const console_errors[]; /* all of them, then NULL */
