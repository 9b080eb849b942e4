/*
 * Turns bytes into a request or into the error that refuses them; see intake.h.
 *
 * llhttp runs in its strict mode. This file adds the checks that llhttp does not make: known
 * methods, single spaces in the request line, HTTP versions, exactly one valid Host, one
 * Content-Length, chunked as the only transfer coding, expectations, and every bound (RFC 9112).
 */
#include "http/intake.h"

#include "http/characters.h"

_Static_assert(INTAKE_METHOD_MAX + HTTP_TARGET_MAX + HTTP_HEAD_MAX + 64 < UINT16_MAX,
               "a span of the head fits its 16-bit numbers");

/* ---- names ----------------------------------------------------------------------------------- */

#define METHOD_NAME(name_) TEXT_INIT(#name_),
static const struct text method_names[] = {HTTP_METHODS(METHOD_NAME)};
#define METHOD_COUNT (sizeof method_names / sizeof method_names[0])

const char *http_method_name(enum http_method method)
{
    CHECK((unsigned)method < METHOD_COUNT);
    return method_names[method].at;
}

/* The fields that only this file uses; they come after those of http.h. */
enum {
    FIELD_CONNECTION = HTTP_FIELD_OTHER + 1,
    FIELD_CONTENT_LENGTH,
    FIELD_TRANSFER_ENCODING,
};

#define KNOWN_FIELD(field_, name_) {TEXT_INIT(name_), HTTP_FIELD_##field_},
static const struct {
    struct text name;
    int field;
} known_fields[] = {{TEXT_INIT("connection"), FIELD_CONNECTION},
                    {TEXT_INIT("content-length"), FIELD_CONTENT_LENGTH},
                    {TEXT_INIT("transfer-encoding"), FIELD_TRANSFER_ENCODING},
                    HTTP_FIELDS(KNOWN_FIELD)};

static int field_of_name(struct text name)
{
    for (size_t i = 0; i < sizeof known_fields / sizeof known_fields[0]; i++)
        if (known_fields[i].name.size == name.size &&
            (name.at[0] | 0x20) == known_fields[i].name.at[0] &&
            text_equals_ignore_case(known_fields[i].name, name))
            return known_fields[i].field;
    return HTTP_FIELD_OTHER;
}

bool http_request_next_field(const struct http_request *request, enum http_field field,
                             uint32_t *at, struct text *line)
{
    while (request->field_count[field] > 0 && *at < request->line_count) {
        const struct http_field_line *next = &request->lines[(*at)++];
        *line = next->value;
        if (next->field == field)
            return true;
    }
    *line = (struct text){NULL, 0};
    return false;
}

struct text http_request_field(const struct http_request *request, enum http_field field)
{
    uint32_t at = 0;
    struct text line;
    (void)http_request_next_field(request, field, &at, &line);
    return line;
}

struct text http_request_only_field(const struct http_request *request, enum http_field field)
{
    return request->field_count[field] == 1 ? http_request_field(request, field)
                                            : (struct text){NULL, 0};
}

/* ---- storage --------------------------------------------------------------------------------- */

void http_intake_start(struct http_intake *intake)
{
    /* The arrays behind are not cleared: they are large, and only their first span_count or
     * line_count elements are read. */
    memset(intake, 0, offsetof(struct http_intake, spans));
}

void http_intake_reset(struct http_intake *intake)
{
    buffer_free(&intake->bytes);
}

static enum http_intake_result refuse(struct http_intake *intake, const struct http_error *error)
{
    if (intake->error == NULL) /* the first error stays */
        intake->error = error;
    intake->phase = INTAKE_FINISHED;
    return INTAKE_REFUSED;
}

/* Refuses from inside a callback of llhttp. */
static int stop(struct http_intake *intake, const struct http_error *error)
{
    (void)refuse(intake, error);
    return -1;
}

/* ---- llhttp's callbacks ---------------------------------------------------------------------- */

/* The offset in the request of a byte that llhttp points to. The checks below bound it. */
static size_t offset_of(const struct http_intake *intake, const char *at)
{
    return intake->position + (size_t)(at - intake->feed);
}

static int on_url(llhttp_t *parser, const char *at, size_t size)
{
    struct http_intake *intake = parser->data;
    size_t begin = offset_of(intake, at);
    if (intake->target_size == 0) {
        if (begin != intake->method_size + 1U) /* exactly one space */
            return stop(intake, &error_malformed_line);
        intake->target_at = (uint16_t)begin;
    }
    if (intake->target_size + size > HTTP_TARGET_MAX)
        return stop(intake, &error_uri_too_long);
    intake->target_size = (uint16_t)(intake->target_size + size);
    return 0;
}

static int on_version(llhttp_t *parser, const char *at, size_t size)
{
    struct http_intake *intake = parser->data;
    size_t expected = intake->target_at + intake->target_size + sizeof " HTTP/" - 1;
    if (intake->version_size == 0) {
        if (offset_of(intake, at) != expected)
            return stop(intake, &error_malformed_line);
        intake->version_at = (uint16_t)expected;
    }
    intake->version_size = (uint16_t)(intake->version_size + size);
    return intake->version_size <= 3 ? 0 : stop(intake, &error_malformed_line);
}

static int on_version_complete(llhttp_t *parser)
{
    struct http_intake *intake = parser->data;
    if (parser->http_major != 1 || parser->http_minor > 1)
        return stop(intake, &error_version_not_supported);
    intake->version_complete = true;
    return 0;
}

static bool fields_too_large(const struct http_intake *intake, const char *at, size_t size)
{
    return offset_of(intake, at) + size - intake->fields_at > HTTP_HEAD_MAX;
}

static int on_field_name(llhttp_t *parser, const char *at, size_t size)
{
    struct http_intake *intake = parser->data;
    if (intake->head_complete)
        return 0; /* a trailer: counted and dropped; INTAKE_WIRE_BODY_MAX bounds it */
    if (fields_too_large(intake, at, size) || intake->span_count == HTTP_FIELDS_MAX)
        return stop(intake, &error_headers_too_large);
    struct http_intake_span *span = &intake->spans[intake->span_count];
    if (span->name_size == 0)
        span->name_at = (uint16_t)offset_of(intake, at);
    span->name_size = (uint16_t)(span->name_size + size);
    return 0;
}

static int on_field_value(llhttp_t *parser, const char *at, size_t size)
{
    struct http_intake *intake = parser->data;
    if (intake->head_complete)
        return 0;
    if (fields_too_large(intake, at, size))
        return stop(intake, &error_headers_too_large);
    struct http_intake_span *span = &intake->spans[intake->span_count];
    if (span->value_size == 0)
        span->value_at = (uint16_t)offset_of(intake, at);
    span->value_size = (uint16_t)(span->value_size + size);
    return 0;
}

static int on_field_complete(llhttp_t *parser)
{
    struct http_intake *intake = parser->data;
    if (!intake->head_complete) {
        if (++intake->span_count == HTTP_FIELDS_MAX)
            return HPE_PAUSED; /* head_room then shows one byte at a time */
        intake->spans[intake->span_count] = (struct http_intake_span){0};
        return 0;
    }
    return ++intake->trailer_count <= HTTP_FIELDS_MAX ? 0 : stop(intake, &error_headers_too_large);
}

static int on_headers_complete(llhttp_t *parser)
{
    struct http_intake *intake = parser->data;
    intake->head_complete = true;
    parser->upgrade = 0; /* Upgrade is ignored, as RFC 9110 section 7.8 allows */
    /* The pause gives the exact end of the head, and judge_head runs before any of the body is
     * read. */
    bool body = parser->content_length > 0 || (parser->flags & F_CHUNKED) != 0;
    return body ? HPE_PAUSED : 0;
}

static int on_chunk_header(llhttp_t *parser)
{
    struct http_intake *intake = parser->data;
    /* chunk_line and llhttp must see the end of the line at the same byte, or they read different
     * messages. */
    if (intake->chunk_line != CHUNK_LINE_END)
        return stop(intake, &error_malformed_chunk);
    if (parser->content_length > HTTP_BODY_MAX - intake->body_size)
        return stop(intake, &error_payload_too_large);
    intake->chunk_line = CHUNK_LINE_START;
    intake->in_chunk = true;
    intake->last_chunk = parser->content_length == 0;
    return 0;
}

static int on_chunk_complete(llhttp_t *parser)
{
    struct http_intake *intake = parser->data;
    if (intake->last_chunk) /* on_message_complete follows, and must not need another byte */
        return 0;
    intake->in_chunk = false;
    return HPE_PAUSED;
}

static int on_body(llhttp_t *parser, const char *at, size_t size)
{
    struct http_intake *intake = parser->data;
    if (size > HTTP_BODY_MAX - intake->body_size)
        return stop(intake, &error_payload_too_large);
    /* judge_head reserved the room: `bytes` must not move, because the request's texts point into
     * it. */
    CHECK(intake->bytes.size + size <= intake->bytes.capacity);
    buffer_append(&intake->bytes, at, size);
    intake->body_size += (uint32_t)size;
    return 0;
}

static int on_message_complete(llhttp_t *parser)
{
    struct http_intake *intake = parser->data;
    intake->message_complete = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_version = on_version,
    .on_version_complete = on_version_complete,
    .on_header_field = on_field_name,
    .on_header_value = on_field_value,
    .on_header_value_complete = on_field_complete,
    .on_headers_complete = on_headers_complete,
    .on_chunk_header = on_chunk_header,
    .on_chunk_complete = on_chunk_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* ---- the method ------------------------------------------------------------------------------ */

static bool find_method(struct text name, enum http_method *method)
{
    for (size_t i = 0; i < METHOD_COUNT; i++)
        if (text_equals(name, method_names[i])) {
            *method = (enum http_method)i;
            return true;
        }
    return false;
}

static enum http_intake_result begin_parsing(struct http_intake *intake)
{
    llhttp_init(&intake->parser, HTTP_REQUEST, &settings);
    intake->parser.data = intake;
    intake->spans[0] = (struct http_intake_span){0};
    intake->phase = INTAKE_LINE;
    if (intake->bytes.size > 0) { /* the start of the method, from an earlier feed */
        intake->feed = intake->bytes.data;
        CHECK(llhttp_execute(&intake->parser, intake->bytes.data, intake->bytes.size) == HPE_OK);
        intake->position = (uint32_t)intake->bytes.size;
    }
    return INTAKE_HEAD;
}

/* Gathers the method up to its space. INTAKE_HEAD: llhttp takes over. */
static enum http_intake_result take_method(struct http_intake *intake, struct http_request *request,
                                           struct text *input)
{
    size_t size = 0;
    buffer_reserve(&intake->bytes, INTAKE_FIRST);
    /* llhttp stops at the first wrong letter, which would give 400 where 501 is right. */
    while (size < input->size && is_token_character(input->at[size]))
        if (intake->bytes.size + ++size > INTAKE_METHOD_MAX)
            return refuse(intake, &error_malformed_line);
    if (size == input->size) {
        buffer_append(&intake->bytes, input->at, size);
        text_skip(input, size);
        return INTAKE_MORE;
    }
    char name[INTAKE_METHOD_MAX];
    memcpy(name, intake->bytes.data, intake->bytes.size);
    memcpy(name + intake->bytes.size, input->at, size);
    intake->method_size = (uint16_t)(intake->bytes.size + size);
    struct text method = {name, intake->method_size};
    /* Set first, so that the refusal of a HEAD has no body either. */
    bool known = find_method(method, &request->method);
    if (input->at[size] != ' ' || method.size == 0)
        return refuse(intake, &error_malformed_line);
    if (known)
        return begin_parsing(intake);
    /* "PRI * HTTP/2.0": a client that assumes HTTP/2. */
    return refuse(intake, text_equals(method, TEXT("PRI")) ? &error_version_not_supported
                                                           : &error_unknown_method);
}

/* ---- judging the head ------------------------------------------------------------------------ */

/* The fields that set the length of the body and whether the connection stays open. */
struct framing {
    uint32_t lengths;
    struct text length;
    uint32_t codings, chunked; /* elements of Transfer-Encoding, and how many are "chunked" */
    bool chunked_is_last;
    bool malformed; /* an element of Transfer-Encoding is no token */
    bool close, keep_alive;
};

static void take_coding(struct framing *framing, struct text coding)
{
    framing->malformed = framing->malformed || coding.size == 0;
    for (size_t i = 0; i < coding.size; i++)
        framing->malformed = framing->malformed || !is_token_character(coding.at[i]);
    framing->chunked_is_last = text_equals_ignore_case(coding, TEXT("chunked"));
    framing->chunked += framing->chunked_is_last ? 1 : 0;
    framing->codings++;
}

static void take_connection_option(struct framing *framing, struct text option)
{
    framing->close = framing->close || text_equals_ignore_case(option, TEXT("close"));
    framing->keep_alive =
        framing->keep_alive || text_equals_ignore_case(option, TEXT("keep-alive"));
}

static void take_field(struct http_intake *intake, struct http_request *request,
                       struct framing *framing, const struct http_intake_span *span)
{
    struct text name = {intake->bytes.data + span->name_at, span->name_size};
    struct text value =
        text_trim((struct text){intake->bytes.data + span->value_at, span->value_size});
    int field = field_of_name(name);
    if (field == HTTP_FIELD_OTHER && text_equals_ignore_case(intake->named_field, name))
        field = HTTP_FIELD_NAMED;
    if (field == FIELD_CONTENT_LENGTH) {
        framing->lengths++;
        framing->length = value;
    } else if (field == FIELD_TRANSFER_ENCODING) { /* all lines are one list */
        do
            take_coding(framing, text_trim(text_cut(&value, ',')));
        while (value.at != NULL);
    } else if (field == FIELD_CONNECTION) {
        do
            take_connection_option(framing, text_trim(text_cut(&value, ',')));
        while (value.at != NULL);
    } else if (field != HTTP_FIELD_OTHER) {
        intake->lines[request->line_count++] =
            (struct http_field_line){value, (enum http_field)field};
        request->field_count[field]++; /* at most HTTP_FIELDS_MAX, which is below 255 */
    }
}

/* The length of the body must be certain, and llhttp must agree on it. NULL: it is. */
static const struct http_error *flaw_of_framing(const struct http_intake *intake,
                                                const struct framing *framing)
{
    bool chunked = (intake->parser.flags & F_CHUNKED) != 0;
    uint64_t length;
    if (framing->codings > 0 && framing->lengths > 0)
        return &error_length_and_coding;
    if (framing->codings > 0)
        return !framing->malformed && framing->chunked == 1 && framing->chunked_is_last &&
                       intake->parser.http_minor == 1 && chunked
                   ? NULL
                   : &error_malformed_coding;
    bool sound = framing->lengths == 0
                     ? intake->parser.content_length == 0 && !chunked
                     : framing->lengths == 1 && !chunked &&
                           text_to_u64(framing->length, UINT64_MAX, &length) == STATUS_OK &&
                           length == intake->parser.content_length;
    return sound ? NULL : &error_malformed_length;
}

static const struct http_error *flaw_of_host(const struct http_intake *intake,
                                             const struct http_request *request)
{
    unsigned hosts = request->field_count[HTTP_FIELD_HOST];
    if (hosts == 0)
        return intake->parser.http_minor == 0 ? NULL : &error_no_host;
    if (hosts > 1)
        return &error_many_hosts;
    return http_host_is_valid(http_request_field(request, HTTP_FIELD_HOST)) ? NULL
                                                                            : &error_malformed_host;
}

/* RFC 9110 section 10.1.1; HTTP/1.0 has no expectations. */
static bool expectation_is_known(struct http_intake *intake, const struct http_request *request)
{
    struct text line;
    if (intake->parser.http_minor == 0)
        return true;
    for (uint32_t at = 0; http_request_next_field(request, HTTP_FIELD_EXPECT, &at, &line);) {
        if (!text_equals_ignore_case(line, TEXT("100-continue")))
            return false;
        intake->expect_continue = true;
    }
    return true;
}

/* Checks the whole head, which is in `bytes`, and fills in the request. */
static enum http_intake_result judge_head(struct http_intake *intake, struct http_request *request)
{
    bool chunked = (intake->parser.flags & F_CHUNKED) != 0;
    uint64_t length = intake->parser.content_length;
    /* From here on `bytes` must not move: the request's texts point into it. */
    size_t body_room = chunked ? HTTP_BODY_MAX : length <= HTTP_BODY_MAX ? (size_t)length : 0;
    buffer_reserve(&intake->bytes, body_room);
    intake->body_at = (uint32_t)intake->bytes.size;

    struct framing framing = {0};
    request->lines = intake->lines;
    for (uint32_t i = 0; i < intake->span_count; i++)
        take_field(intake, request, &framing, &intake->spans[i]);
    if (http_target_split(intake->bytes.data + intake->target_at, intake->target_size,
                          request->method, &request->path, &request->query) != STATUS_OK)
        return refuse(intake, &error_malformed_target);
    const struct http_error *flaw = flaw_of_framing(intake, &framing);
    if (flaw == NULL)
        flaw = flaw_of_host(intake, request);
    if (flaw != NULL)
        return refuse(intake, flaw);
    if (framing.codings > 1) /* RFC 9112 section 6.1: chunked around an unknown coding */
        return refuse(intake, &error_unknown_coding);
    if (!chunked && length > HTTP_BODY_MAX)
        return refuse(intake, &error_payload_too_large);
    if (!expectation_is_known(intake, request))
        return refuse(intake, &error_expectation_failed);
    /* RFC 9112 section 9.3. When Connection names both, close is the safe choice. */
    intake->keep_alive = !framing.close && (intake->parser.http_minor == 1 || framing.keep_alive);
    intake->phase = INTAKE_BODY;
    return INTAKE_HEAD;
}

/* ---- feeding --------------------------------------------------------------------------------- */

static const struct http_error *error_of_parser(const struct http_intake *intake,
                                                llhttp_errno_t error)
{
    /* "HTTP/2.5" is a valid version that is not supported; "HTTP/x" and "HTTP/1.10" are
     * malformed. */
    if (error == HPE_INVALID_VERSION && intake->version_size == 3 && !intake->version_complete)
        return &error_version_not_supported;
    switch (error) {
    case HPE_INVALID_URL:
        return &error_malformed_target;
    case HPE_INVALID_CONTENT_LENGTH:
    case HPE_UNEXPECTED_CONTENT_LENGTH:
        return (intake->parser.flags & F_TRANSFER_ENCODING) != 0 ? &error_length_and_coding
                                                                 : &error_malformed_length;
    case HPE_INVALID_TRANSFER_ENCODING:
        return (intake->parser.flags & F_CONTENT_LENGTH) != 0 ? &error_length_and_coding
                                                              : &error_malformed_coding;
    default:
        return intake->phase == INTAKE_BODY   ? &error_malformed_chunk
               : intake->phase == INTAKE_LINE ? &error_malformed_line
                                              : &error_malformed_field;
    }
}

static enum http_intake_result finish(struct http_intake *intake, struct http_request *request)
{
    request->body = (struct text){intake->bytes.data + intake->body_at, intake->body_size};
    intake->phase = INTAKE_FINISHED;
    return INTAKE_COMPLETE;
}

/* Returns how many bytes of the head llhttp may see at once, so that the bounds hold. Up to the
 * limit on the target or the fields llhttp sees all the input, then single bytes: so the error does
 * not depend on how the bytes arrive. 0: the bound is reached. */
static size_t head_room(const struct http_intake *intake)
{
    bool in_line = intake->phase == INTAKE_LINE;
    size_t careful = in_line ? intake->method_size + 1 + (size_t)HTTP_TARGET_MAX
                             : intake->fields_at + (size_t)HTTP_HEAD_MAX;
    /* The bound allows for the version after the target, and for the empty line after the
     * fields. */
    size_t bound = careful + (in_line ? sizeof " HTTP/1.1\r\n" : sizeof "\r\n") - 1;
    if (intake->position >= bound)
        return 0;
    return intake->position < careful && intake->span_count < HTTP_FIELDS_MAX
               ? careful - intake->position
               : 1;
}

/* The piece of the input that llhttp is shown next: the request line up to its end, field lines up
 * to a tab. Refuses the request when there is no room. */
static struct text next_piece_of_head(struct http_intake *intake, struct text input)
{
    size_t room = head_room(intake);
    struct text piece = {input.at, input.size < room ? input.size : room};
    if (room == 0) {
        (void)refuse(intake, intake->phase == INTAKE_LINE ? &error_malformed_line
                                                          : &error_headers_too_large);
    } else if (intake->phase == INTAKE_LINE) {
        const char *end = memchr(piece.at, '\n', piece.size);
        if (end != NULL)
            piece.size = (size_t)(end - piece.at) + 1;
    } else if (piece.at[0] == '\t') {
        /* White space around a value is spaces and tabs (RFC 9110 section 5.6.3). llhttp accepts
         * only spaces at the end of Content-Length and Transfer-Encoding, so it is shown a space
         * for each tab. */
        piece = TEXT(" ");
    } else {
        const char *tab = memchr(piece.at, '\t', piece.size);
        if (tab != NULL)
            piece.size = (size_t)(tab - piece.at);
    }
    return piece;
}

/* The piece of the input that llhttp is shown next: a chunk's line up to its end, else all of it up
 * to the bound. */
static struct text next_piece_of_body(struct http_intake *intake, struct text input)
{
    size_t room = INTAKE_WIRE_BODY_MAX - intake->wire_body;
    if (input.size > room)
        input.size = room;
    if (room == 0)
        (void)refuse(intake, &error_payload_too_large);
    if (intake->in_chunk || (intake->parser.flags & F_CHUNKED) == 0)
        return input;
    size_t size = 0;
    while (size < input.size && intake->chunk_line != CHUNK_LINE_END) {
        intake->chunk_line = chunk_line_step(intake->chunk_line, input.at[size++]);
        if (intake->chunk_line == CHUNK_LINE_BAD) {
            (void)refuse(intake, &error_malformed_chunk);
            break;
        }
    }
    return (struct text){input.at, size};
}

/* Checks the whole request line. */
static enum http_intake_result judge_line(struct http_intake *intake)
{
    if (intake->version_size == 0) /* HTTP/0.9 */
        return refuse(intake, &error_version_not_supported);
    /* llhttp also accepts RTSP, whose name is as long as HTTP. on_version has checked its
     * position. */
    if (memcmp(intake->bytes.data + intake->version_at - 5, "HTTP/", 5) != 0)
        return refuse(intake, &error_malformed_line);
    intake->fields_at = intake->position;
    intake->phase = INTAKE_FIELDS;
    return INTAKE_MORE;
}

/* Shows llhttp the next piece of the input. */
static enum http_intake_result run_parser(struct http_intake *intake, struct http_request *request,
                                          struct text *input)
{
    bool in_head = intake->phase != INTAKE_BODY;
    struct text piece =
        in_head ? next_piece_of_head(intake, *input) : next_piece_of_body(intake, *input);
    if (intake->error != NULL)
        return INTAKE_REFUSED;
    intake->feed = piece.at;
    size_t used = piece.size;
    llhttp_errno_t error = llhttp_execute(&intake->parser, piece.at, piece.size);
    if (error != HPE_OK && error != HPE_PAUSED)
        return refuse(intake, error_of_parser(intake, error));
    if (error == HPE_PAUSED) {
        used = (size_t)(llhttp_get_error_pos(&intake->parser) - piece.at);
        llhttp_resume(&intake->parser);
    }
    if (intake->chunk_line == CHUNK_LINE_END) /* llhttp saw no end of line there */
        return refuse(intake, &error_malformed_chunk);
    if (in_head) {
        buffer_append(&intake->bytes, input->at, used); /* as it was sent, with its tabs */
        intake->position += (uint32_t)used;
    } else {
        intake->wire_body += (uint32_t)used;
    }
    text_skip(input, used);
    if (intake->phase == INTAKE_LINE && used > 0 && piece.at[used - 1] == '\n')
        return judge_line(intake);
    if (in_head && intake->head_complete) {
        enum http_intake_result result = judge_head(intake, request);
        if (result != INTAKE_HEAD || !intake->message_complete)
            return result;
    }
    return intake->message_complete ? finish(intake, request) : INTAKE_MORE;
}

enum http_intake_result http_intake_feed(struct http_intake *intake, struct http_request *request,
                                         struct text *input)
{
    enum http_intake_result result = INTAKE_HEAD;
    CHECK(intake->phase != INTAKE_FINISHED && input->size > 0);
    if (intake->phase == INTAKE_METHOD)
        result = take_method(intake, request, input);
    if (result != INTAKE_HEAD)
        return result;
    do
        result = run_parser(intake, request, input);
    while (result == INTAKE_MORE && input->size > 0);
    return result;
}
