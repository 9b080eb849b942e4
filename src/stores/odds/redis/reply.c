/*
 * The protocol of Redis, read as it comes; see reply.h.
 *
 * A value begins with a line: a letter that names its type, and a number or a text. After the line
 * of a string come its bytes and an empty line; after that of a list come its elements, which are
 * values. So a reply is complete when no value is left to come. Until then its bytes are kept in
 * one buffer and its values in another, in the order in which they came. Both move when they grow,
 * so a text is an offset. At the end the elements of each list are placed beside each other.
 */
#include "stores/odds/redis/reply.h"

#include "base/memory.h"

#define DEPTH_MAX 8
#define LINE_MAX_SIZE ((size_t)16 * 1024) /* of an error, which may repeat what was sent */
#define VERBATIM_FORMAT 4                 /* "txt:" before the bytes of a verbatim string */
#define KEPT_MAX ((size_t)64 * 1024)      /* of memory, for the next reply */
#define VALUE_SIZE sizeof(struct redis_reply)

enum form { FORM_LINE, FORM_INTEGER, FORM_BOOLEAN, FORM_NIL, FORM_STRING, FORM_LIST };

/* Attributes and streams are left out, because no server sends them unasked. */
static const struct kind {
    char letter;
    enum redis_type type;
    enum form form;
} kinds[] = {
    {'+', REDIS_STATUS, FORM_LINE},     {'-', REDIS_ERROR, FORM_LINE},
    {',', REDIS_STRING, FORM_LINE}, /* a double */
    {'(', REDIS_STRING, FORM_LINE}, /* a big number */
    {':', REDIS_INTEGER, FORM_INTEGER}, {'#', REDIS_INTEGER, FORM_BOOLEAN},
    {'_', REDIS_NIL, FORM_NIL},         {'$', REDIS_STRING, FORM_STRING},
    {'=', REDIS_STRING, FORM_STRING}, /* verbatim */
    {'!', REDIS_ERROR, FORM_STRING},    {'*', REDIS_LIST, FORM_LIST},
    {'~', REDIS_LIST, FORM_LIST},       {'%', REDIS_LIST, FORM_LIST}, /* a map */
    {'>', REDIS_PUSH, FORM_LIST},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

struct redis_parser {
    size_t string_max, reply_max;
    struct buffer bytes;  /* of the reply, but for strings that are too large */
    struct buffer values; /* of struct redis_reply */
    uint64_t left;        /* values to come */
    size_t line;          /* where in the bytes the present line begins */
    uint64_t string_left; /* bytes to come of the present string */
    bool string_ends;     /* the next line is the empty one after a string */
    bool dropped;         /* the string is too large, so its bytes are not kept */
    bool complete;        /* the reply was handed out */
    struct redis_reply root;
    struct redis_reply *elements; /* of all lists of the reply */
    size_t placed, used;          /* values, and elements */
};

/* ---- life ------------------------------------------------------------------------------------ */

struct redis_parser *redis_parser_create(size_t string_max, size_t reply_max)
{
    struct redis_parser *parser = memory_alloc_zeroed(1, sizeof *parser);
    parser->string_max = string_max;
    parser->reply_max = reply_max;
    parser->left = 1;
    return parser;
}

static void reset(struct buffer *buffer)
{
    buffer_clear(buffer);
    if (buffer->capacity > KEPT_MAX)
        buffer_free(buffer);
}

static void begin_reply(struct redis_parser *parser)
{
    memory_free(parser->elements);
    parser->elements = NULL;
    reset(&parser->bytes);
    reset(&parser->values);
    parser->left = 1;
    parser->line = 0;
    parser->complete = false;
}

void redis_parser_destroy(struct redis_parser **parser)
{
    struct redis_parser *mine = memory_take(parser);
    if (mine == NULL)
        return;
    memory_free(mine->elements);
    buffer_free(&mine->bytes);
    buffer_free(&mine->values);
    memory_free(mine);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* STATUS_PENDING: there is room for so many bytes more. A value is held twice at the end. */
static enum status hold(const struct redis_parser *parser, uint64_t more)
{
    size_t held = parser->bytes.size + 2 * parser->values.size;
    return held <= parser->reply_max && more <= parser->reply_max - held ? STATUS_PENDING
                                                                         : STATUS_FULL;
}

static bool read_integer(struct text text, int64_t *integer)
{
    uint64_t number = 0;
    bool negative = text.size > 0 && text.at[0] == '-';
    if (text.size > 0 && (text.at[0] == '-' || text.at[0] == '+'))
        text = (struct text){text.at + 1, text.size - 1};
    if (text_to_u64(text, INT64_MAX, &number) != STATUS_OK)
        return false;
    *integer = negative ? -(int64_t)number : (int64_t)number;
    return true;
}

static enum status begin_string(struct redis_parser *parser, char letter, uint64_t size,
                                struct redis_reply *value)
{
    size_t format = letter == '=' ? VERBATIM_FORMAT : 0;
    if (size < format)
        return STATUS_MALFORMED;
    parser->string_left = size;
    parser->string_ends = true;
    parser->dropped = size > parser->string_max;
    if (parser->dropped) {
        value->type = REDIS_ERROR;
        value->text.size = strlen(REDIS_TOO_LARGE);
        parser->bytes.size = value->offset;
        buffer_append_string(&parser->bytes, REDIS_TOO_LARGE "\r\n");
        return STATUS_PENDING;
    }
    value->offset = parser->bytes.size + format;
    value->text.size = (size_t)size - format;
    return hold(parser, size);
}

static enum status begin_list(struct redis_parser *parser, char letter, uint64_t count,
                              struct redis_reply *value)
{
    count = letter == '%' ? 2 * count : count;
    if (count > UINT64_MAX - parser->left)
        return STATUS_FULL;
    parser->left += count;
    value->count = count;
    return STATUS_PENDING;
}

/* Reads the line in which a value begins. */
static enum status read_form(struct redis_parser *parser, const struct kind *kind, struct text rest,
                             struct redis_reply *value)
{
    int64_t size = 0;
    bool good = true;
    switch (kind->form) {
    case FORM_LINE:
        value->text.size = rest.size;
        break;
    case FORM_INTEGER:
        good = read_integer(rest, &value->integer);
        break;
    case FORM_BOOLEAN:
        value->integer = text_equals(rest, TEXT("t"));
        good = value->integer == 1 || text_equals(rest, TEXT("f"));
        break;
    case FORM_NIL:
        good = rest.size == 0;
        break;
    case FORM_STRING:
    case FORM_LIST:
        good = read_integer(rest, &size) && size >= -1;
        if (good && size == -1) { /* RESP2's "no such thing" */
            value->type = REDIS_NIL;
            good = kind->letter == '$' || kind->letter == '*';
        } else if (good) {
            return kind->form == FORM_LIST
                       ? begin_list(parser, kind->letter, (uint64_t)size, value)
                       : begin_string(parser, kind->letter, (uint64_t)size, value);
        }
        break;
    }
    return good ? STATUS_PENDING : STATUS_MALFORMED;
}

static enum status begin_value(struct redis_parser *parser, struct text line)
{
    size_t i = 0;
    while (i < KINDS && (line.size == 0 || line.at[0] != kinds[i].letter))
        i++;
    if (i == KINDS || (kinds[i].type == REDIS_PUSH && parser->values.size > 0))
        return STATUS_MALFORMED;
    struct redis_reply value = {.type = kinds[i].type, .offset = parser->line + 1};
    struct text rest = {line.at + 1, line.size - 1};
    enum status status = read_form(parser, &kinds[i], rest, &value);
    if (status != STATUS_PENDING)
        return status;
    parser->left--;
    buffer_append(&parser->values, &value, VALUE_SIZE);
    return hold(parser, 0);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static void take_bytes(struct redis_parser *parser, struct text *bytes, size_t size, bool kept)
{
    if (kept)
        buffer_append(&parser->bytes, bytes->at, size);
    text_skip(bytes, size);
}

static enum status take_string(struct redis_parser *parser, struct text *bytes)
{
    size_t size = bytes->size < parser->string_left ? bytes->size : (size_t)parser->string_left;
    take_bytes(parser, bytes, size, !parser->dropped);
    parser->string_left -= size;
    parser->line = parser->bytes.size;
    return STATUS_PENDING;
}

static enum status take_line(struct redis_parser *parser, struct text *bytes)
{
    const char *end = memchr(bytes->at, '\n', bytes->size);
    size_t size = end == NULL ? bytes->size : (size_t)(end - bytes->at) + 1;
    if (size > LINE_MAX_SIZE - (parser->bytes.size - parser->line))
        return STATUS_MALFORMED;
    take_bytes(parser, bytes, size, true);
    if (end == NULL)
        return STATUS_PENDING;
    struct text line = {parser->bytes.data + parser->line, parser->bytes.size - parser->line};
    if (line.size < 2 || line.at[line.size - 2] != '\r' || (parser->string_ends && line.size > 2))
        return STATUS_MALFORMED;
    line.size -= 2;
    enum status status = STATUS_PENDING;
    if (parser->string_ends)
        parser->string_ends = false;
    else
        status = begin_value(parser, line);
    parser->line = parser->bytes.size;
    return status;
}

/* Places the next value, and all that is in it. */
static enum status place(struct redis_parser *parser, struct redis_reply *value, unsigned depth)
{
    memcpy(value, parser->values.data + parser->placed++ * VALUE_SIZE, VALUE_SIZE);
    if (value->type == REDIS_STATUS || value->type == REDIS_STRING || value->type == REDIS_ERROR) {
        value->text.at = parser->bytes.data + value->offset;
        parser->bytes.data[value->offset + value->text.size] = '\0'; /* in the place of the CR */
    }
    if (value->count == 0)
        return STATUS_OK;
    if (depth == DEPTH_MAX)
        return STATUS_MALFORMED;
    value->elements = parser->elements + parser->used;
    parser->used += value->count;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < value->count && status == STATUS_OK; i++)
        status = place(parser, &value->elements[i], depth + 1);
    return status;
}

enum status redis_parser_take(struct redis_parser *parser, struct text *bytes,
                              const struct redis_reply **reply)
{
    if (parser->complete)
        begin_reply(parser);
    enum status status = STATUS_PENDING;
    while (bytes->size > 0 && status == STATUS_PENDING && !parser->complete) {
        status = parser->string_left > 0 ? take_string(parser, bytes) : take_line(parser, bytes);
        parser->complete = parser->left == 0 && parser->string_left == 0 && !parser->string_ends;
    }
    if (status != STATUS_PENDING || !parser->complete)
        return status;
    if (parser->values.size > VALUE_SIZE)
        parser->elements = memory_alloc(parser->values.size);
    parser->placed = 0;
    parser->used = 0;
    *reply = &parser->root;
    return place(parser, &parser->root, 0);
}

/* ---- looking at a reply ---------------------------------------------------------------------- */

bool redis_reply_is(const struct redis_reply *reply, const char *text)
{
    return (reply->type == REDIS_STRING || reply->type == REDIS_STATUS) &&
           text_equals(reply->text, text_of(text));
}

const struct redis_reply *redis_reply_value(const struct redis_reply *reply, const char *name)
{
    for (size_t i = 0; i + 1 < reply->count; i += 2)
        if (redis_reply_is(&reply->elements[i], name))
            return &reply->elements[i + 1];
    return NULL;
}
