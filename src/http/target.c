/* Request targets and Host; see intake.h. */
#include "http/intake.h"

#include "http/characters.h"

/* The percent-encoded unreserved characters: RFC 3986 section 6.2.2.2. The rest stays as it is. */
static size_t decode_unreserved(char *at, size_t size)
{
    const char *first = memchr(at, '%', size);
    if (first == NULL)
        return size;
    size_t length = (size_t)(first - at);
    for (size_t i = length; i < size; i++) {
        at[length] = at[i];
        if (at[i] == '%') { /* two digits follow: see http_target_split */
            char decoded = (char)(hex_value(at[i + 1]) * 16 + hex_value(at[i + 2]));
            if (is_unreserved(decoded)) {
                at[length] = decoded;
                i += 2;
            }
        }
        length++;
    }
    return length;
}

/* Returns how many bytes the character at `i` takes: a percent-encoding, an unreserved character or
 * one of `others` (RFC 3986 section 2); 0: it is none of these. */
static size_t character_size(struct text text, size_t i, const char *others)
{
    if (text.at[i] == '%')
        return text.size - i > 2 && hex_value(text.at[i + 1]) >= 0 && hex_value(text.at[i + 2]) >= 0
                   ? 3
                   : 0;
    return is_unreserved(text.at[i]) || is_one_of(text.at[i], others) ? 1 : 0;
}

static bool consists_of(struct text text, const char *others)
{
    for (size_t i = 0, size; i < text.size; i += size) {
        size = character_size(text, i, others);
        if (size == 0)
            return false;
    }
    return text.size > 0;
}

/* "http://host/path?query" becomes "/path?query"; false when it is not of that form. */
static bool skip_authority(char **at, size_t *size)
{
    struct text target = {*at, *size};
    size_t scheme = 0;
    if (target.size >= 7 && text_equals_ignore_case((struct text){target.at, 7}, TEXT("http://")))
        scheme = 7;
    else if (target.size >= 8 &&
             text_equals_ignore_case((struct text){target.at, 8}, TEXT("https://")))
        scheme = 8;
    else
        return false;
    size_t end = scheme;
    while (end < target.size && target.at[end] != '/' && target.at[end] != '?')
        end++;
    if (!http_host_is_valid((struct text){target.at + scheme, end - scheme}))
        return false;
    if (end == target.size || target.at[end] == '?')
        (*at)[--end] = '/'; /* an empty path is "/"; the authority's last byte makes room */
    *at += end;
    *size -= end;
    return true;
}

enum status http_target_split(char *target, size_t size, enum http_method method, struct text *path,
                              struct text *query)
{
    /* No fragment. '[' and ']' belong to a host alone, but clients write them in queries, where
     * they harm nothing. */
    if (!consists_of((struct text){target, size}, ":/?[]@!$&'()*+,;="))
        return STATUS_INVALID;
    if (method == METHOD_CONNECT) {
        *path = (struct text){target, size};
        *query = (struct text){NULL, 0};
        return target[0] != '/' ? STATUS_OK : STATUS_INVALID;
    }
    bool asterisk = method == METHOD_OPTIONS && size == 1 && target[0] == '*';
    if (target[0] != '/' && !asterisk && !skip_authority(&target, &size))
        return STATUS_INVALID;
    const char *mark = memchr(target, '?', size);
    size_t path_size = mark == NULL ? size : (size_t)(mark - target);
    *query = mark == NULL ? (struct text){NULL, 0} : (struct text){mark + 1, size - path_size - 1};
    *path = (struct text){target, decode_unreserved(target, path_size)};
    return STATUS_OK;
}

static bool is_ip_literal(struct text literal)
{
    if (literal.size < 2)
        return false;
    for (size_t i = 0; i < literal.size; i++)
        if (hex_value(literal.at[i]) < 0 && literal.at[i] != ':' && literal.at[i] != '.')
            return false;
    return memchr(literal.at, ':', literal.size) != NULL;
}

static bool is_port(struct text port)
{
    uint64_t number;
    return port.size == 0 || (port.size <= 5 && text_to_u64(port, 65535, &number) == STATUS_OK);
}

bool http_host_is_valid(struct text host)
{
    if (host.size == 0)
        return false;
    if (host.at[0] == '[') {
        const char *end = memchr(host.at, ']', host.size);
        if (end == NULL || !is_ip_literal((struct text){host.at + 1, (size_t)(end - host.at - 1)}))
            return false;
        struct text rest = {end + 1, host.size - (size_t)(end - host.at) - 1};
        return rest.size == 0 ||
               (rest.at[0] == ':' && is_port((struct text){rest.at + 1, rest.size - 1}));
    }
    struct text port = host;
    struct text name = text_cut(&port, ':');
    /* reg-name: RFC 3986 section 3.2.2 */
    return (port.at == NULL || is_port(port)) && consists_of(name, "!$&'()*+,;=");
}
