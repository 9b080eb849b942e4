#pragma once

#include <sys/queue.h>

#include <curl/curl.h>

#include "base/text.h"

/*
 * Outgoing HTTP: POSTs of one thread, by libcurl's multi interface, which waits for the sockets.
 *
 * Certificate and host name of https are verified, TLS is 1.2 at least. No redirect is followed, no
 * proxy is used whatever the environment says, nothing but http and https is spoken. An answer is
 * bounded in its head and body and by one deadline for all of it. Connections are kept and used
 * again. Nothing blocks the thread: names are resolved on threads of libcurl's, and one that takes
 * too long is left behind.
 *
 * A POST is sent once, because a server may act on a second one. The one exception is a kept
 * connection that turns out to have ended before a byte of the body was sent on it.
 *
 * A `struct outgoing_post` is embedded in the caller's struct. This module owns it from
 * outgoing_start until `done`, which runs once, in outgoing_turn or outgoing_destroy. Everything
 * here is for one thread, but for outgoing_wake; curl_global_init is the caller's.
 */

#define OUTGOING_FIELDS_MAX 6
#define OUTGOING_HEAD_MAX 16384U                     /* bytes of the answer's header lines in all */
#define OUTGOING_CANCELLED CURLE_ABORTED_BY_CALLBACK /* by outgoing_destroy */

struct outgoing;

struct outgoing_post {
    /* set by the caller, all else zeros; pointers stay valid until `done` */
    const char *url;
    struct text body;
    const char *fields[OUTGOING_FIELDS_MAX]; /* "Name: value"; NULL or "": none */
    uint32_t timeout_ms;                     /* for all of it, at least 1 */
    size_t answer_max;                       /* bytes of body */
    void (*done)(struct outgoing_post *post);
    void *context;

    /* when done; `answer` goes when done returns */
    CURLcode code;  /* CURLE_OK: `status` and `answer` are filled in */
    bool too_large; /* the answer, for its bound */
    long status;
    struct buffer answer;
    char reason[CURL_ERROR_SIZE]; /* for people, when not answered; never of the URL's query */

    /* this module's */
    LIST_ENTRY(outgoing_post) link;
    CURL *easy;
    struct curl_slist *list;
    size_t sent, head_size;
};

/* Is there a certificate in the file? Any thread. */
MUST_CHECK enum status outgoing_check_ca_file(const char *path, struct error *error);

/* `ca_file` (PEM; copied) is used in place of the system's certificates; "": those. */
struct outgoing *outgoing_create(const char *ca_file, unsigned kept_connections);
void outgoing_start(struct outgoing *outgoing, struct outgoing_post *post);

/* Waits for the posts under way, at most `wait_ms`, and calls `done` of those that are. */
void outgoing_turn(struct outgoing *outgoing, int wait_ms);
/* The turn that waits, or the next one, waits no longer. Any thread. */
void outgoing_wake(struct outgoing *outgoing);

/* Starts the post and waits until it is done, whatever else is under way. True: it was answered;
 * the body is appended to `answer`, and `post->status` says how. `done` and `context` are not
 * used. */
MUST_CHECK bool outgoing_wait(struct outgoing *outgoing, struct outgoing_post *post,
                              struct buffer *answer);

/* Everything under way is done, as cancelled. */
void outgoing_destroy(struct outgoing **outgoing);
