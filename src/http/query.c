/* A query by a table of its parameters; see query.h. */
#include "http/query.h"

static enum http_query read_parameter(struct text pair, const struct http_parameter *parameters,
                                      size_t count, uint32_t *seen, void *out, size_t *at)
{
    char name[HTTP_QUERY_VALUE_MAX + 1];
    char decoded[HTTP_QUERY_VALUE_MAX + 1];
    struct text rest = pair;
    if (!text_decode(text_cut(&rest, '='), true, name, sizeof name))
        return HTTP_QUERY_UNKNOWN;
    *at = 0;
    while (*at < count && !text_equals(text_of(name), parameters[*at].name))
        (*at)++;
    if (*at == count)
        return HTTP_QUERY_UNKNOWN;
    const struct http_parameter *parameter = &parameters[*at];
    if ((*seen & 1U << *at) != 0)
        return HTTP_QUERY_TWICE;
    *seen |= 1U << *at;
    char *to = (char *)out + parameter->offset;
    if (rest.at == NULL || !text_decode(rest, true, decoded, sizeof decoded))
        return HTTP_QUERY_UNSOUND;
    struct text value = text_of(decoded);
    if (parameter->read != NULL)
        return parameter->read(value, to) ? HTTP_QUERY_READ : HTTP_QUERY_UNSOUND;
    if (value.size == 0 || value.size >= parameter->room || !parameter->sound(value))
        return HTTP_QUERY_UNSOUND;
    memcpy(to, value.at, value.size + 1);
    return HTTP_QUERY_READ;
}

enum http_query http_query_read(struct text query, const struct http_parameter *parameters,
                                size_t count, void *out, size_t *at)
{
    struct text rest = query;
    uint32_t seen = 0;
    enum http_query result = HTTP_QUERY_READ;
    CHECK(count <= HTTP_QUERY_PARAMETERS_MAX);
    if (query.size > 0)
        do
            result = read_parameter(text_cut(&rest, '&'), parameters, count, &seen, out, at);
        while (result == HTTP_QUERY_READ && rest.at != NULL);
    return result;
}

bool http_query_limit(struct text value, void *to)
{
    uint64_t number;
    if (value.size > 3 || text_to_u64(value, HTTP_QUERY_LIMIT_MAX, &number) != STATUS_OK ||
        number == 0)
        return false;
    *(uint32_t *)to = (uint32_t)number;
    return true;
}
