/*
 * The protocol of Redis, read as it comes; see reply.h.
 *
 * A value begins with a line: a letter that names its type, and a number or a text. After the line
 * of a string come its bytes; after that of a list come its elements, which are values. So there
 * are two states, in a line and in a string's bytes, and a stack of the lists that are not
 * complete.
 *
 * Elements of a list stand in one block of memory, which moves when it grows. It grows when an
 * element is added, and then no element before it is incomplete: so the stack may point to
 * elements.
 */
#include "stores/odds/redis/reply.h"

#include <string.h>

#include "base/memory.h"

#define DEPTH_MAX 8
#define LINE_MAX_SIZE ((size_t)16 * 1024) /* of an error, which may repeat what was sent */
#define VERBATIM_FORMAT 4                 /* "txt:" before the bytes of a verbatim string */

struct level {
    struct redis_reply *list;
    uint64_t left; /* elements that have to come */
    size_t capacity;
};

struct redis_parser {
    size_t string_max, reply_max;
    struct redis_reply root;
    bool complete; /* the root was handed out, and is freed before the next reply */
    size_t held;   /* bytes of memory, about */
    struct level levels[DEPTH_MAX];
    unsigned depth;
    struct buffer line; /* the part of one that has come */

    struct redis_reply *string; /* the string whose bytes come next; NULL: a line comes next */
    char *bytes;                /* its own; NULL: they are not taken in */
    uint64_t size, at;          /* how many there are, and have come; CR and LF follow */
    bool verbatim;
};

/* ---- life ------------------------------------------------------------------------------------ */

static void free_reply(struct redis_reply *reply)
{
    for (size_t i = 0; i < reply->count; i++)
        free_reply(&reply->elements[i]); /* at most DEPTH_MAX deep */
    memory_free(reply->elements);
    memory_free(reply->bytes);
    *reply = (struct redis_reply){.type = REDIS_NIL};
}

struct redis_parser *redis_parser_create(size_t string_max, size_t reply_max)
{
    struct redis_parser *parser = memory_alloc_zeroed(1, sizeof *parser);
    parser->string_max = string_max;
    parser->reply_max = reply_max;
    return parser;
}

void redis_parser_destroy(struct redis_parser **parser)
{
    struct redis_parser *mine = *parser;
    *parser = NULL;
    if (mine == NULL)
        return;
    free_reply(&mine->root);
    memory_free(mine->bytes);
    buffer_free(&mine->line);
    memory_free(mine);
}

/* ---- values ---------------------------------------------------------------------------------- */

static enum status hold(struct redis_parser *parser, uint64_t size)
{
    if (size > parser->reply_max - parser->held)
        return STATUS_FULL;
    parser->held += (size_t)size;
    return STATUS_OK;
}

/* The place of the value that begins now. */
static enum status add_value(struct redis_parser *parser, struct redis_reply **value)
{
    *value = &parser->root;
    if (parser->depth == 0)
        return STATUS_OK;
    struct level *level = &parser->levels[parser->depth - 1];
    struct redis_reply *list = level->list;
    if (list->count == level->capacity) {
        size_t more = level->capacity == 0 ? 4 : level->capacity;
        if (hold(parser, more * sizeof *list) != STATUS_OK)
            return STATUS_FULL;
        level->capacity += more;
        list->elements = memory_resize(list->elements, level->capacity * sizeof *list);
    }
    *value = &list->elements[list->count++];
    **value = (struct redis_reply){.type = REDIS_NIL};
    return STATUS_OK;
}

/* A value is complete, and with it perhaps the lists that it is in. STATUS_OK: the reply is. */
static enum status end_value(struct redis_parser *parser)
{
    while (parser->depth > 0) {
        if (--parser->levels[parser->depth - 1].left > 0)
            return STATUS_PENDING;
        parser->depth--;
    }
    parser->complete = true;
    return STATUS_OK;
}

static enum status set_text(struct redis_parser *parser, struct redis_reply *value,
                            enum redis_type type, struct text text)
{
    if (hold(parser, text.size + 1) != STATUS_OK)
        return STATUS_FULL;
    char *bytes = memory_alloc(text.size + 1);
    memcpy(bytes, text.at, text.size);
    bytes[text.size] = '\0';
    value->type = type;
    value->bytes = bytes;
    value->text = (struct text){bytes, text.size};
    return end_value(parser);
}

static enum status begin_list(struct redis_parser *parser, struct redis_reply *list,
                              enum redis_type type, uint64_t count)
{
    list->type = type;
    if (count == 0)
        return end_value(parser);
    if (parser->depth == DEPTH_MAX)
        return STATUS_MALFORMED;
    parser->levels[parser->depth++] = (struct level){.list = list, .left = count};
    return STATUS_PENDING;
}

static enum status begin_string(struct redis_parser *parser, struct redis_reply *value,
                                uint64_t size, char type)
{
    bool wanted = size <= parser->string_max;
    if (wanted && hold(parser, size + 1) != STATUS_OK)
        return STATUS_FULL;
    value->type = type == '!' ? REDIS_ERROR : REDIS_STRING;
    parser->string = value;
    parser->verbatim = type == '=';
    parser->size = size;
    parser->at = 0;
    parser->bytes = wanted ? memory_alloc((size_t)size + 1) : NULL;
    return STATUS_PENDING;
}

static enum status end_string(struct redis_parser *parser)
{
    struct redis_reply *value = parser->string;
    size_t cut = parser->verbatim ? VERBATIM_FORMAT : 0;
    char *bytes = parser->bytes;
    parser->string = NULL;
    parser->bytes = NULL;
    if (bytes == NULL)
        return set_text(parser, value, REDIS_ERROR, TEXT(REDIS_TOO_LARGE));
    size_t size = (size_t)parser->size;
    if (size < cut) {
        memory_free(bytes);
        return STATUS_MALFORMED;
    }
    memmove(bytes, bytes + cut, size - cut);
    bytes[size - cut] = '\0';
    value->bytes = bytes;
    value->text = (struct text){bytes, size - cut};
    return end_value(parser);
}

/* ---- lines ----------------------------------------------------------------------------------- */

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

static enum status begin_sized(struct redis_parser *parser, struct redis_reply *value, char type,
                               struct text number)
{
    int64_t size;
    if (!read_integer(number, &size) || size < -1)
        return STATUS_MALFORMED;
    if (size == -1) /* RESP2's "no such thing" */
        return type == '$' || type == '*' ? end_value(parser) : STATUS_MALFORMED;
    switch (type) {
    case '*':
    case '~':
        return begin_list(parser, value, REDIS_LIST, (uint64_t)size);
    case '%':
        return begin_list(parser, value, REDIS_LIST, 2 * (uint64_t)size);
    case '>':
        return begin_list(parser, value, REDIS_PUSH, (uint64_t)size);
    default:
        return begin_string(parser, value, (uint64_t)size, type);
    }
}

static enum status take_line(struct redis_parser *parser, struct text line)
{
    struct redis_reply *value;
    char type = line.size > 0 ? line.at[0] : '\0';
    struct text rest = {line.at + 1, line.size > 0 ? line.size - 1 : 0};
    bool outermost = parser->depth == 0;
    enum status status = add_value(parser, &value);
    if (status != STATUS_OK)
        return status;
    switch (type) {
    case '+':
        return set_text(parser, value, REDIS_STATUS, rest);
    case '-':
        return set_text(parser, value, REDIS_ERROR, rest);
    case ',': /* a double */
    case '(': /* a big number */
        return set_text(parser, value, REDIS_STRING, rest);
    case ':':
        value->type = REDIS_INTEGER;
        return read_integer(rest, &value->integer) ? end_value(parser) : STATUS_MALFORMED;
    case '#':
        value->type = REDIS_INTEGER;
        value->integer = text_equals(rest, TEXT("t"));
        return value->integer == 1 || text_equals(rest, TEXT("f")) ? end_value(parser)
                                                                   : STATUS_MALFORMED;
    case '_':
        return rest.size == 0 ? end_value(parser) : STATUS_MALFORMED;
    case '>':
        if (!outermost)
            return STATUS_MALFORMED;
        return begin_sized(parser, value, type, rest);
    case '$':
    case '=':
    case '!':
    case '*':
    case '~':
    case '%':
        return begin_sized(parser, value, type, rest);
    default: /* attributes and streams among them, which no server sends unasked */
        return STATUS_MALFORMED;
    }
}

/* ---- taking ---------------------------------------------------------------------------------- */

static void skip(struct text *bytes, size_t size)
{
    bytes->at += size;
    bytes->size -= size;
}

static enum status take_from_line(struct redis_parser *parser, struct text *bytes)
{
    const char *end = memchr(bytes->at, '\n', bytes->size);
    size_t size = end == NULL ? bytes->size : (size_t)(end - bytes->at) + 1;
    if (size > LINE_MAX_SIZE - parser->line.size)
        return STATUS_MALFORMED;
    struct text line = {bytes->at, size};
    bool whole = parser->line.size == 0; /* it need not be kept */
    if (end == NULL || !whole) {
        buffer_append(&parser->line, bytes->at, size);
        line = buffer_text(&parser->line);
    }
    skip(bytes, size);
    if (end == NULL)
        return STATUS_PENDING;
    enum status status = STATUS_MALFORMED;
    if (line.size >= 2 && line.at[line.size - 2] == '\r')
        status = take_line(parser, (struct text){line.at, line.size - 2});
    buffer_clear(&parser->line);
    return status;
}

static enum status take_from_string(struct redis_parser *parser, struct text *bytes)
{
    static const char end[] = {'\r', '\n'};
    if (parser->at < parser->size) {
        uint64_t left = parser->size - parser->at;
        size_t size = bytes->size < left ? bytes->size : (size_t)left;
        if (parser->bytes != NULL)
            memcpy(parser->bytes + parser->at, bytes->at, size);
        parser->at += size;
        skip(bytes, size);
    }
    for (; bytes->size > 0 && parser->at < parser->size + 2; skip(bytes, 1))
        if (bytes->at[0] != end[parser->at++ - parser->size])
            return STATUS_MALFORMED;
    return parser->at < parser->size + 2 ? STATUS_PENDING : end_string(parser);
}

enum status redis_parser_take(struct redis_parser *parser, struct text *bytes,
                              const struct redis_reply **reply)
{
    if (parser->complete) {
        free_reply(&parser->root);
        parser->complete = false;
        parser->held = 0;
    }
    enum status status = STATUS_PENDING;
    while (bytes->size > 0 && status == STATUS_PENDING)
        status = parser->string != NULL ? take_from_string(parser, bytes)
                                        : take_from_line(parser, bytes);
    if (status == STATUS_OK)
        *reply = &parser->root;
    return status;
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
