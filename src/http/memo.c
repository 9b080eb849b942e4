/* Repeated requests; see memo.h. */
#include "http/memo.h"

#include "base/memory.h"

struct http_memo {
    uint32_t size, capacity;
    bool comparable; /* `bytes` is exactly what arrived */
    bool keep_alive;
    uint8_t http_minor;
    uint32_t line_count;
    enum http_method method;
    struct http_codings codings;
    struct text path, query; /* these and the values of `lines` point into `bytes` */
    struct {                 /* values that may differ, in the order of `bytes` */
        size_t at, size;
    } values[2];
    unsigned value_count;
    uint8_t field_count[HTTP_FIELD_COUNT];
    char *bytes;
    uint32_t added_size;
    char added[HTTP_MEMO_ADDED_MAX];
    struct http_field_line lines[]; /* `bytes` follow them */
};

/* Does the parsed request depend on its bytes alone? It may have no body, nothing that was decoded
 * in place, and nothing that the connection must do besides answering. */
static bool is_memorable(const struct http_intake *intake, const struct http_request *request,
                         struct text raw)
{
    return raw.size <= HTTP_MEMO_MAX && raw.size == intake->bytes.size && intake->body_size == 0 &&
           intake->trailer_count == 0 && intake->keep_alive && intake->parser.http_minor == 1 &&
           (intake->parser.flags & F_CHUNKED) == 0 && request->method != METHOD_CONNECT &&
           request->line_count <= HTTP_MEMO_LINES && request->field_count[HTTP_FIELD_EXPECT] == 0 &&
           memcmp(raw.at, intake->bytes.data, raw.size) == 0;
}

/* The same text, in the memo's copy of the bytes. */
static struct text moved(const struct http_memo *memo, const struct http_intake *intake,
                         struct text text)
{
    if (text.at == NULL)
        return text;
    return (struct text){memo->bytes + (text.at - intake->bytes.data), text.size};
}

/* The only If-None-Match, and the only Available-Dictionary. */
static bool may_differ(const struct http_request *request, enum http_field field)
{
    return (field == HTTP_FIELD_IF_NONE_MATCH || field == HTTP_FIELD_AVAILABLE_DICTIONARY) &&
           request->field_count[field] == 1;
}

static void fill(struct http_memo **memo, const struct http_intake *intake,
                 const struct http_request *request, bool comparable)
{
    size_t lines = request->line_count * sizeof request->lines[0];
    size_t needed = lines + intake->bytes.size;
    if (*memo != NULL && (*memo)->capacity < needed)
        http_memo_forget(memo);
    if (*memo == NULL) {
        *memo = memory_alloc(sizeof **memo + needed);
        (*memo)->capacity = (uint32_t)needed;
    }
    struct http_memo *mine = *memo;
    mine->bytes = (char *)mine->lines + lines;
    memcpy(mine->bytes, intake->bytes.data, intake->bytes.size);
    mine->size = (uint32_t)intake->bytes.size;
    mine->comparable = comparable;
    mine->keep_alive = intake->keep_alive;
    mine->http_minor = intake->parser.http_minor;
    mine->method = request->method;
    mine->codings = http_accepted_codings(request);
    mine->path = moved(mine, intake, request->path);
    mine->query = moved(mine, intake, request->query);
    mine->line_count = request->line_count;
    memcpy(mine->field_count, request->field_count, sizeof mine->field_count);
    mine->value_count = 0;
    for (uint32_t i = 0; i < request->line_count; i++) {
        struct http_field_line line = request->lines[i];
        mine->lines[i] = (struct http_field_line){moved(mine, intake, line.value), line.field};
        if (may_differ(request, line.field)) {
            mine->values[mine->value_count].at = (size_t)(line.value.at - intake->bytes.data);
            mine->values[mine->value_count++].size = line.value.size;
        }
    }
}

bool http_memo_remember(struct http_memo **memo, const struct http_intake *intake,
                        const struct http_request *request, struct text raw)
{
    if (!is_memorable(intake, request, raw))
        return false;
    fill(memo, intake, request, true);
    return true;
}

static bool is_of(const struct http_memo *memo, const struct http_intake *intake,
                  const struct http_request *request)
{
    if (memo == NULL || request->lines == memo->lines)
        return memo != NULL;
    return memo->comparable && memo->size == intake->bytes.size &&
           memcmp(memo->bytes, intake->bytes.data, memo->size) == 0;
}

bool http_memo_keep(struct http_memo **memo, const struct http_intake *intake,
                    const struct http_request *request, struct text added)
{
    bool held = is_of(*memo, intake, request);
    if ((!held && (intake->wire_body > 0 || request->body.size > 0)) ||
        added.size > HTTP_MEMO_ADDED_MAX)
        return false;
    if (!held)
        fill(memo, intake, request, false);
    (*memo)->added_size = (uint32_t)added.size;
    memcpy((*memo)->added, added.at, added.size);
    return true;
}

struct text http_memo_added(const struct http_memo *memo)
{
    return (struct text){memo->added, memo->added_size};
}

void http_memo_restore(const struct http_memo *memo, struct http_intake *intake,
                       struct http_request *request)
{
    CHECK(intake->phase == INTAKE_METHOD && intake->bytes.size == 0);
    request->method = memo->method;
    request->codings = memo->codings;
    request->path = memo->path;
    request->query = memo->query;
    request->lines = memo->lines;
    request->line_count = memo->line_count;
    memcpy(request->field_count, memo->field_count, sizeof memo->field_count);
    request->body = (struct text){NULL, 0};
    intake->keep_alive = memo->keep_alive;
    intake->parser.http_minor = memo->http_minor;
    intake->phase = INTAKE_FINISHED;
}

static bool is_visible(const char *bytes, size_t size)
{
    unsigned others = 0;
    for (size_t i = 0; i < size; i++)
        others |= (unsigned)(bytes[i] <= ' ') | (unsigned)(bytes[i] >= 0x7F);
    return others == 0;
}

/* The new characters of a value must be visible: they cannot end the field or be trimmed from it,
 * so the rest of the parsed request stays valid. */
static bool begins_with(const struct http_memo *memo, const char *bytes)
{
    size_t from = 0;
    for (unsigned i = 0; i < memo->value_count; i++) {
        size_t at = memo->values[i].at;
        if (memcmp(bytes + from, memo->bytes + from, at - from) != 0 ||
            !is_visible(bytes + at, memo->values[i].size))
            return false;
        from = at + memo->values[i].size;
    }
    return memcmp(bytes + from, memo->bytes + from, memo->size - from) == 0;
}

bool http_memo_recall(struct http_memo *memo, struct http_intake *intake,
                      struct http_request *request, struct text *input)
{
    if (memo == NULL || !memo->comparable || input->size < memo->size ||
        !begins_with(memo, input->at))
        return false;
    for (unsigned i = 0; i < memo->value_count; i++)
        memcpy(memo->bytes + memo->values[i].at, input->at + memo->values[i].at,
               memo->values[i].size);
    http_memo_restore(memo, intake, request);
    text_skip(input, memo->size);
    return true;
}

void http_memo_forget(struct http_memo **memo)
{
    if (*memo == NULL)
        return;
    explicit_bzero(*memo, sizeof **memo + (*memo)->capacity);
    memory_free(*memo);
    *memo = NULL;
}
