#pragma once

#include "console/sources.h"
#include "http/http.h"

/*
 * The operator's console on the operator listener (docs/console.md): its pages, and the admin API
 * under /admin/v1 (docs/admin.yaml). It answers 404 until there is an operator or a token.
 *
 * Every request is judged in a fixed order. Its Host must be a name of the console (against a
 * rebound name). It may have a session's cookie or a token. A change must have a token or come from
 * one of our own pages (Sec-Fetch-Site, else Origin), and be JSON. For a sign-in or a token, there
 * may not have been too many failures from its address. Then, on a thread of the console's, the
 * session or token is asked of the store, each time; then the role; then the handler answers.
 * The header fields that protect pages are on every answer.
 *
 * A GET whose answer has an entity tag is 304 to a client that has the answer (If-None-Match). With
 * `Prefer: wait=N` as well (RFC 7240 section 4.3; as on the public interface) it waits up to N
 * seconds for another answer: every second it is judged and answered again, and only another answer
 * is sent. So a live page costs one look a second, and the end of a session or token ends its
 * waits.
 *
 * Made, called and destroyed on the loop's thread, which never blocks: a few threads with handles
 * of their own ask the stores, behind a bounded queue; a full queue is 503.
 */
struct console;

struct console_options {
    uv_loop_t *loop;
    const struct config *config;            /* held as long as it is in force */
    uint16_t port;                          /* of the listener */
    struct platform_store_options platform; /* `uri` and `log` are borrowed */
    struct console_sources sources;
};

struct console *console_create(const struct console_options *options);

/* True: the request is one for the console, and was replied to or will be. */
bool console_handle(struct console *console, struct http_request *request);

/* How often a means to sign in was refused, by reason. On the loop's thread, as the others are. */
enum console_refusal {
    CONSOLE_REFUSED_LINK,
    CONSOLE_REFUSED_TOKEN,
    CONSOLE_REFUSED_ADDRESS, /* a token that is good elsewhere */
    CONSOLE_REFUSED_LOCKED_OUT,
    CONSOLE_REFUSAL_COUNT,
};
struct console_facts {
    uint64_t refused[CONSOLE_REFUSAL_COUNT];
};
const struct console_facts *console_facts(const struct console *console);
extern const struct metric console_metrics[];

/* A configuration that was read again. */
void console_set_config(struct console *console, const struct config *config);

/* When no request is left. Waits for what is under way; the loop must run once more. */
void console_destroy(struct console **console);
