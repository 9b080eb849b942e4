/* Content negotiation and conditional requests: pure functions of the request's fields. */
#include "http/http.h"

#define Q_ABSENT (-1)
#define Q_ONE 1000

/* A qvalue in thousandths (RFC 9110 section 12.4.2: at most three digits), or Q_ABSENT. */
static int read_qvalue(struct text text)
{
    if (text.size == 0 || text.size > 5 || (text.at[0] != '0' && text.at[0] != '1') ||
        (text.size > 1 && text.at[1] != '.'))
        return Q_ABSENT;
    int value = text.at[0] == '1' ? Q_ONE : 0;
    int scale = 100;
    for (size_t i = 2; i < text.size; i++, scale /= 10) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return Q_ABSENT;
        value += (text.at[i] - '0') * scale;
    }
    return value <= Q_ONE ? value : Q_ABSENT;
}

/* "gzip", "gzip;q=0.5": gives the coding; the weight is Q_ABSENT when it cannot be read. */
static struct text read_coding(struct text element, int *weight)
{
    struct text rest = element;
    struct text coding = text_trim(text_cut(&rest, ';'));
    *weight = Q_ONE;
    if (rest.at != NULL) {
        struct text parameter = text_trim(rest);
        *weight = Q_ABSENT;
        if (parameter.size > 2 && (parameter.at[0] | 0x20) == 'q' && parameter.at[1] == '=')
            *weight = read_qvalue((struct text){parameter.at + 2, parameter.size - 2});
    }
    return coding;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

struct http_codings http_accepted_codings(const struct http_request *request)
{
    if (request->codings.known)
        return request->codings;
    int gzip = Q_ABSENT;
    int dcz = Q_ABSENT;
    int any = Q_ABSENT;
    int identity = Q_ABSENT;
    struct text rest;
    for (uint32_t at = 0;
         http_request_next_field(request, HTTP_FIELD_ACCEPT_ENCODING, &at, &rest);) {
        while (rest.at != NULL) {
            int weight;
            struct text coding = read_coding(text_cut(&rest, ','), &weight);
            if (text_equals_ignore_case(coding, TEXT("gzip")) ||
                text_equals_ignore_case(coding, TEXT("x-gzip")))
                gzip = larger(gzip, weight);
            else if (text_equals_ignore_case(coding, TEXT("identity")))
                identity = larger(identity, weight);
            else if (text_equals_ignore_case(coding, TEXT("dcz")))
                dcz = larger(dcz, weight);
            else if (text_equals(coding, TEXT("*")))
                any = larger(any, weight);
        }
    }
    int weight = gzip != Q_ABSENT ? gzip : any;
    return (struct http_codings){
        .gzip = weight > 0 && weight >= identity, .dcz = dcz > 0, .known = true};
}

bool http_body_is_encoded(const struct http_request *request)
{
    struct text rest;
    for (uint32_t at = 0;
         http_request_next_field(request, HTTP_FIELD_CONTENT_ENCODING, &at, &rest);) {
        while (rest.at != NULL) {
            struct text coding = text_trim(text_cut(&rest, ','));
            if (coding.size > 0 && !text_equals_ignore_case(coding, TEXT("identity")))
                return true;
        }
    }
    return false;
}

/* Does one line of If-Match or If-None-Match hold the tag, or one that begins with it? Entity tags
 * may hold commas, so the line is parsed tag by tag. `strong`: by strong comparison, in which a
 * weak tag matches nothing. */
static bool line_names(struct text line, struct text etag, bool strong, bool start_only)
{
    const char *at = line.at;
    const char *end = line.at + line.size;
    while (at < end) {
        if (*at == ' ' || *at == '\t' || *at == ',') {
            at++;
            continue;
        }
        bool weak = end - at >= 2 && at[0] == 'W' && at[1] == '/';
        at += weak ? 2 : 0;
        const char *start = at;
        if (at == end || *at != '"')
            return false; /* not an entity tag, so the rest of the line is not trusted */
        at = memchr(at + 1, '"', (size_t)(end - at - 1));
        if (at == NULL)
            return false;
        at++;
        struct text tag = {start, (size_t)(at - start)};
        if (!(weak && strong) &&
            (start_only ? text_starts_with(tag, etag) : text_equals(tag, etag)))
            return true;
    }
    return false;
}

/* Most clients send one tag, and it is compared as it is. */
static bool lines_match(const struct http_request *request, enum http_field field, struct text etag)
{
    struct text line;
    for (uint32_t at = 0; http_request_next_field(request, field, &at, &line);)
        if (text_equals(line, etag) || text_equals(line, TEXT("*")) ||
            line_names(line, etag, field == HTTP_FIELD_IF_MATCH, false))
            return true;
    return false;
}

bool http_precondition_fails(const struct http_request *request, struct text etag)
{
    return request->field_count[HTTP_FIELD_IF_MATCH] > 0 &&
           !lines_match(request, HTTP_FIELD_IF_MATCH, etag);
}

bool http_matches_etag(const struct http_request *request, struct text etag)
{
    return lines_match(request, HTTP_FIELD_IF_NONE_MATCH, etag);
}

bool http_names_form(const struct http_request *request, struct text start)
{
    struct text line;
    for (uint32_t at = 0; http_request_next_field(request, HTTP_FIELD_IF_NONE_MATCH, &at, &line);)
        if (line_names(line, start, false, true))
            return true;
    return false;
}

/* ---- preferences ----------------------------------------------------------------------------- */

/* Takes the text before the next comma that is not inside a quoted string. */
static struct text cut_preference(struct text *rest)
{
    bool quoted = false;
    size_t at = 0;
    for (; at < rest->size && (quoted || rest->at[at] != ','); at++) {
        if (rest->at[at] == '"')
            quoted = !quoted;
        else if (quoted && rest->at[at] == '\\')
            at++;
    }
    size_t size = at < rest->size ? at : rest->size;
    struct text preference = {rest->at, size};
    size_t used = size < rest->size ? size + 1 : size;
    text_skip(rest, used);
    return preference;
}

/* Is this preference `wait`? Its value may be quoted; parameters after it are ignored. */
static bool is_wait(struct text preference, struct text *value)
{
    struct text rest = preference;
    struct text word = text_cut(&rest, ';');
    rest = word;
    struct text name = text_trim(text_cut(&rest, '='));
    if (!text_equals_ignore_case(name, TEXT("wait")))
        return false;
    *value = rest.at == NULL ? TEXT("") : text_trim(rest);
    if (value->size >= 2 && value->at[0] == '"' && value->at[value->size - 1] == '"')
        *value = (struct text){value->at + 1, value->size - 2};
    return true;
}

static uint32_t read_seconds(struct text value, uint32_t most)
{
    uint32_t seconds = 0;
    for (size_t i = 0; i < value.size; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return 0;
        seconds = seconds * 10 + (uint32_t)(value.at[i] - '0');
        seconds = seconds < most ? seconds : most;
    }
    return seconds;
}

/* The seconds of a field that is `wait=N` as a whole, as most clients write it. 0: it is not, or it
 * must be read with more care. */
static uint32_t read_wait_alone(struct text line, uint32_t most)
{
    const struct text start = TEXT("wait=");
    return text_starts_with(line, start)
               ? read_seconds((struct text){line.at + start.size, line.size - start.size}, most)
               : 0;
}

uint32_t http_preferred_wait(const struct http_request *request, uint32_t most)
{
    struct text rest;
    struct text value;
    for (uint32_t at = 0; http_request_next_field(request, HTTP_FIELD_PREFER, &at, &rest);) {
        uint32_t alone = read_wait_alone(rest, most);
        if (alone > 0)
            return alone;
        while (rest.size > 0)
            if (is_wait(cut_preference(&rest), &value))
                return read_seconds(value, most);
    }
    return 0;
}

/* ---- trace context (www.w3.org/TR/trace-context) --------------------------------------------- */

/* A later version may go on after the flags. Of the flags it keeps those that version 00 has:
 * sampled and random. */
bool http_request_trace(const struct http_request *request, char out[HTTP_TRACE_SIZE])
{
    static const char zeros[] = "00000000000000000000000000000000";
    const size_t size = HTTP_TRACE_SIZE - 1;
    struct text value = http_request_only_field(request, HTTP_FIELD_TRACEPARENT);
    if (value.size < size || (value.size > size && value.at[size] != '-'))
        return false;
    for (size_t i = 0; i < size; i++) {
        bool dash = i == 2 || i == 35 || i == 52;
        bool capital = value.at[i] >= 'A' && value.at[i] <= 'F';
        if (dash ? value.at[i] != '-' : capital || hex_value(value.at[i]) < 0)
            return false;
    }
    bool first = memcmp(value.at, "00", 2) == 0;
    if ((first && value.size > size) || memcmp(value.at, "ff", 2) == 0 ||
        memcmp(value.at + 3, zeros, 32) == 0 || memcmp(value.at + 36, zeros, 16) == 0)
        return false;
    (void)snprintf(out, HTTP_TRACE_SIZE, "00%.50s-0%d", value.at + 2, hex_value(value.at[54]) & 3);
    return true;
}
