#pragma once

#include <llhttp.h>

#include "http/chunk_line.h"
#include "http/http.h"

/*
 * Reads one request, byte by byte or all at once, and decides whether it is valid. It uses no
 * sockets, so that a test or a fuzzer can drive it directly. Private to http/.
 *
 * `bytes` holds a copy of the head. The copy is small, and it keeps every text of the request in
 * place while the reply is deferred. llhttp parses the input where it arrived, and the callbacks
 * record each part as offsets from the first byte of the request. When the head is whole, one pass
 * over those spans checks the framing and fills in the request.
 *
 * llhttp gets the bytes in pieces that end where this layer has a check to make: after the request
 * line, at a tab in a field, after a chunk's line, before a bound. So the result does not depend on
 * how the bytes arrive.
 *
 * Bounds: `bytes` never holds more than the request line, HTTP_HEAD_MAX of fields and HTTP_BODY_MAX
 * of body, whatever is sent.
 */
#define INTAKE_FIRST 1024U /* most requests fit in this many bytes */
#define INTAKE_METHOD_MAX 32U
/* The most bytes of a body on the wire, with chunk lines, extensions and trailers. */
#define INTAKE_WIRE_BODY_MAX (8U * HTTP_BODY_MAX)

struct http_intake_span {
    uint16_t name_at, name_size, value_at, value_size;
};

enum http_intake_phase {
    INTAKE_METHOD, /* gathering the method: an unknown one and garbage get different errors */
    INTAKE_LINE,   /* the rest of the request line, from here on by llhttp */
    INTAKE_FIELDS,
    INTAKE_BODY,     /* the head is valid */
    INTAKE_FINISHED, /* complete or refused: feed no more */
};

struct http_intake {
    llhttp_t parser;
    enum http_intake_phase phase;
    const struct http_error *error; /* the reason for refusing it; NULL: it is not refused */
    bool version_complete;
    bool head_complete;
    bool message_complete;
    bool in_chunk;        /* llhttp has taken a line of a chunk: its data or the trailers follow */
    bool last_chunk;      /* the chunk being read is the last */
    bool keep_alive;      /* by version and Connection; set once the head is checked */
    bool expect_continue; /* the client waits for "100 Continue" */
    uint16_t method_size;
    uint16_t target_at, target_size;
    uint16_t version_at, version_size;
    uint32_t fields_at; /* where the field lines begin */
    uint32_t position;  /* bytes of the head before `feed` */
    uint32_t span_count;
    uint32_t trailer_count;
    uint32_t body_at, body_size;
    uint32_t wire_body; /* bytes after the head, framing included */
    enum chunk_line chunk_line;
    struct text named_field; /* see struct http_server_options; set after http_intake_start */
    const char *feed;        /* start of the piece that llhttp is parsing */
    struct buffer bytes;
    struct http_intake_span spans[HTTP_FIELDS_MAX];
    struct http_field_line lines[HTTP_FIELDS_MAX];
};

enum http_intake_result {
    INTAKE_MORE,     /* all input is used up; more is needed */
    INTAKE_HEAD,     /* the head is good and a body follows: decide on expect_continue, feed on */
    INTAKE_COMPLETE, /* the request is whole; later bytes stay in the input */
    INTAKE_REFUSED,  /* `error` says why; the connection must end */
};

void http_intake_start(struct http_intake *intake); /* before each request */
void http_intake_reset(struct http_intake *intake); /* frees its memory */

/* Feeds `input` and steps over the bytes it used. Fills in `request` (method, path, query, lines
 * and counts) when the head is whole, and its body when the request is whole. */
enum http_intake_result http_intake_feed(struct http_intake *intake, struct http_request *request,
                                         struct text *input);

/* ---- target.c: request targets and Host (RFC 9112 sections 3.2 and 3.2.3); pure -------------- */
/*
 * Splits a target into path and query and decodes the percent-encoded unreserved characters of the
 * path in place (the path may end up shorter). Accepts origin-form, absolute-form of http and
 * https, "*" with OPTIONS and authority-form with CONNECT; the last two become text that matches no
 * route. STATUS_INVALID for any other form, a fragment, a broken percent-encoding, and bytes that a
 * URI may not hold.
 */
MUST_CHECK enum status http_target_split(char *target, size_t size, enum http_method method,
                                         struct text *path, struct text *query);

/* A host (name, IPv4 or bracketed IP literal; not empty) with an optional port. */
bool http_host_is_valid(struct text host);
