#pragma once

#include "console/error_rows.h"
#include "console/query.h"
#include "console/sources.h"
#include "operator/credentials.h"
#include "records/trail.h"

/*
 * One request of the admin API, while a thread of the console handles it: the question, who asks,
 * and the answer. Handlers block as the store does; they know neither sockets nor header fields.
 */

#define CONSOLE_TAG_SIZE 27 /* an entity tag with its quotes, and the NUL */

/* Work that holds one of the console's few threads for long: one of each kind at a time. */
enum console_long_work {
    CONSOLE_TRIAL, /* of a provider */
    CONSOLE_SUMS,  /* adds up what was moved on some days */
    CONSOLE_LONG_WORK_COUNT,
};

/* Shared by handlers on all threads. */
struct console_services {
    struct console_sources sources;
    struct history *history; /* has a sample */
    struct verification *verification;
    int64_t started_ms;
    atomic_bool under_way[CONSOLE_LONG_WORK_COUNT];
};

struct console_route;
struct tail;

struct console_call {
    struct console_services *services;
    const struct config *config; /* in force when the request came */
    const struct console_route *route;
    struct platform_store *store;
    void *record; /* of the route's resource, zeroed; NULL: it has none */
    int64_t now_ms;
    char id[CONSOLE_VALUE_SIZE];   /* the first {word} of the path, decoded */
    char part[CONSOLE_VALUE_SIZE]; /* the second; "": there is none */
    struct console_query query;
    struct text body;
    struct text if_match;             /* as sent; at NULL: it was not */
    struct address client;            /* behind trusted proxies; ::, if it is unknown */
    char secret[CREDENTIAL_SIZE + 1]; /* the cookie's, the token or, by a proxy, the name of the
                                         operator; "": there is none */
    enum signed_in_by by;
    struct signed_in signed_in;

    /* The answer. */
    int status;
    struct buffer answer;
    struct json_writer json;           /* writes the answer, which it ends after the handler */
    char tag[CONSOLE_TAG_SIZE];        /* "": it has none */
    bool is_empty;                     /* it may wait until there is something */
    struct tail *tail;                 /* kept while it waits (tail.c); freed with the call */
    char new_session[CREDENTIAL_SIZE]; /* begins a session */
    bool ends_session;
    const struct http_error *refusal; /* in place of the status's own error; NULL: that one */
    char field
        [64]; /* the wrong field of a refusal, if its text does not begin with it ("name: …") */
    struct buffer refusals; /* all wrong fields, as JSON, if there may be several */
    /* The first change of the record in the audit trail: */
    char changed_by[TRAIL_WHO_SIZE]; /* "": it does not say */
    int64_t changed_ms;
};

/* A status other than STATUS_OK becomes 422, 404, 409, 503 …, with the text of `error`. */
typedef enum status console_handler(struct console_call *call, struct error *error);

/* STATUS_CONFLICT: such work is under way. After STATUS_OK the caller must call console_end. */
MUST_CHECK enum status console_begin(struct console_call *call, enum console_long_work work,
                                     struct error *error);
void console_end(struct console_call *call, enum console_long_work work);

/* The tag of a document. */
void console_tag(struct text document, char tag[CONSOLE_TAG_SIZE]);

/* Ends the answer, and gives it its tag. */
void console_tag_answer(struct console_call *call);

/* STATUS_CONFLICT, answered by 412: the record is not what If-Match says. */
MUST_CHECK enum status console_changed(struct console_call *call, struct error *error);
