#pragma once

#include "http/error_rows.h"

/*
 * An error answer: its HTTP status, a stable code, and a message for people, which never contains
 * text from the request. All three are part of the interface (docs/interface.md, "Errors"). The
 * reason is for the operator: the log, the metrics and docs/reasons.md have one word for each
 * cause.
 *
 * Each domain lists its errors in its errors.txt; its error_rows.h, made of it, declares them.
 */
struct http_error {
    int status;
    const char *code; /* "": the answer has no error document (304, /api/v1/health) */
    const char *message;
    const char *reason;
};
