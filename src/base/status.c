/* Names and texts of failures; see status.h. */
#include "base/status.h"

#undef error_set /* the analyser's view of it */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *status_name(enum status status)
{
    switch (status) {
    case STATUS_OK:
        return "ok";
    case STATUS_PENDING:
        return "pending";
    case STATUS_INVALID:
        return "invalid";
    case STATUS_NOT_FOUND:
        return "not found";
    case STATUS_EXISTS:
        return "exists already";
    case STATUS_CONFLICT:
        return "in conflict";
    case STATUS_FULL:
        return "full";
    case STATUS_MALFORMED:
        return "malformed";
    case STATUS_UNAVAILABLE:
        return "unavailable";
    case STATUS_TIMEOUT:
        return "timed out";
    case STATUS_INTERNAL:
        return "internal error";
    }
    return "unknown status";
}

enum status error_set(struct error *error, enum status status, const char *format, ...)
{
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
    }
    return status;
}

void error_prefix(struct error *error, const char *format, ...)
{
    if (error == NULL)
        return;
    char prefix[ERROR_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    char joined[2 * ERROR_TEXT_SIZE + 2];
    (void)snprintf(joined, sizeof joined, "%s: %s", prefix, error->text);
    joined[ERROR_TEXT_SIZE - 1] = '\0';
    memcpy(error->text, joined, strlen(joined) + 1);
}

void check_failed(const char *expression, const char *file, int line, const char *function)
{
    (void)fprintf(stderr, "croupier: bug: %s:%d: %s: check failed: %s\n", file, line, function,
                  expression);
    abort();
}
