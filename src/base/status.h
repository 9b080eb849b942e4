#pragma once

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The one result type of every function that can fail, and the text that goes with a failure.
 *
 * Rules: a failing function leaves its out-parameters untouched. An error is either logged or
 * returned, never both. `struct error` is for people (operators at a terminal, a log line); program
 * logic looks at the status alone.
 */

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(format_at, first_at) __attribute__((format(printf, format_at, first_at)))

enum status {
    STATUS_OK = 0,
    STATUS_PENDING,     /* not now: the operation's callback will tell, once */
    STATUS_INVALID,     /* the input is not acceptable */
    STATUS_NOT_FOUND,   /* there is no such thing */
    STATUS_EXISTS,      /* there is such a thing already */
    STATUS_CONFLICT,    /* another writer came between, nothing has happened: do it again */
    STATUS_FULL,        /* a bound has been reached (a queue, a table, a disk) */
    STATUS_MALFORMED,   /* stored data cannot be read */
    STATUS_UNAVAILABLE, /* a store cannot be reached or used */
    STATUS_TIMEOUT,     /* a store did not answer within its deadline */
    STATUS_READ_ONLY,   /* a store answers, and takes no changes */
    STATUS_INTERNAL,    /* a bug, or a resource that should never run out */
};

/* A constant, lower-case English name: "ok", "not found", ... */
const char *status_name(enum status status);

#define ERROR_TEXT_SIZE 512

/* A message for people: one line, no trailing full stop or newline, never a secret. */
struct error {
    char text[ERROR_TEXT_SIZE];
};

/* Writes the text (cut off where it is too long). `error` may be NULL. Returns `status`, so that
 * `return error_set(error, STATUS_EXISTS, "…")` reads as one thought. */
enum status error_set(struct error *error, enum status status, const char *format, ...)
    PRINTF_LIKE(3, 4);

#ifdef __clang_analyzer__
/* The analyser does not see into error_set: tells it that what it returns is what it was given. */
#define error_set(error, status, ...) ((void)(error_set)((error), (status), __VA_ARGS__), (status))
#endif

/* The same with one of the statuses that most errors have. */
#define error_invalid(error, ...) error_set((error), STATUS_INVALID, __VA_ARGS__)
#define error_not_found(error, ...) error_set((error), STATUS_NOT_FOUND, __VA_ARGS__)
#define error_conflict(error, ...) error_set((error), STATUS_CONFLICT, __VA_ARGS__)
#define error_unavailable(error, ...) error_set((error), STATUS_UNAVAILABLE, __VA_ARGS__)

/* Puts "text: " before what `error` says already. */
void error_prefix(struct error *error, const char *format, ...) PRINTF_LIKE(2, 3);

/* Appends a text to the message of `error`: the remedy. Cut off as by error_set. */
void error_append(struct error *error, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * Asserts bugs, never input; stays in production. A failed check prints file, line and expression
 * on standard error and aborts.
 */
#define CHECK(expression) \
    ((expression) ? (void)0 : check_failed(#expression, __FILE__, __LINE__, __func__))

_Noreturn void check_failed(const char *expression, const char *file, int line,
                            const char *function);
