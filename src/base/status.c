/* Names and texts of failures; see status.h. */
#include "base/status.h"

#undef error_set /* the analyser's view of it */

#include <stdarg.h>

const char *status_name(enum status status)
{
    static const char *const names[] = {
        [STATUS_OK] = "ok",
        [STATUS_PENDING] = "pending",
        [STATUS_INVALID] = "invalid",
        [STATUS_NOT_FOUND] = "not found",
        [STATUS_EXISTS] = "exists already",
        [STATUS_CONFLICT] = "in conflict",
        [STATUS_FULL] = "full",
        [STATUS_MALFORMED] = "malformed",
        [STATUS_UNAVAILABLE] = "unavailable",
        [STATUS_TIMEOUT] = "timed out",
        [STATUS_READ_ONLY] = "read-only",
        [STATUS_INTERNAL] = "internal error",
    };
    return (size_t)status < sizeof names / sizeof names[0] ? names[status] : "unknown status";
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
    struct error rest = *error;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    error_append(error, ": %s", rest.text);
}

void error_append(struct error *error, const char *format, ...)
{
    if (error == NULL)
        return;
    size_t size = strlen(error->text);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(error->text + size, sizeof error->text - size, format, arguments);
    va_end(arguments);
}

void check_failed(const char *expression, const char *file, int line, const char *function)
{
    (void)fprintf(stderr, "croupier: bug: %s:%d: %s: check failed: %s\n", file, line, function,
                  expression);
    abort();
}
