/* Decoding what requests say in their targets; see query.h. */
#include "console/query.h"

bool console_decode(struct text encoded, bool of_query, char out[CONSOLE_VALUE_SIZE])
{
    return text_decode(encoded, of_query, out, CONSOLE_VALUE_SIZE) && text_is_plain(text_of(out));
}

void console_refuse_parameter(struct console_query *query, const char *name, const char *rule)
{
    if (query->status == STATUS_OK)
        query->status = error_set(query->error, STATUS_INVALID, "%s: %s", name, rule);
}

static void read_parameter(struct console_query *query, const char *name,
                           char out[CONSOLE_VALUE_SIZE])
{
    struct text rest = query->text;
    bool found = false;
    out[0] = '\0';
    while (rest.at != NULL && rest.size > 0) {
        struct text value = text_cut(&rest, '&');
        struct text key = text_cut(&value, '=');
        if (!text_equals(key, text_of(name)))
            continue;
        if (found || !console_decode(value, true, out)) {
            console_refuse_parameter(query, name,
                                     found ? "is given twice" : "is not properly encoded");
            out[0] = '\0';
            return;
        }
        found = true;
    }
}

const char *console_parameter(struct console_query *query, const char *name)
{
    CHECK(query->count < CONSOLE_PARAMETERS_MAX);
    char *value = query->values[query->count++];
    read_parameter(query, name, value);
    return value;
}

uint64_t console_number(struct console_query *query, const char *name, uint64_t most,
                        uint64_t otherwise)
{
    char text[CONSOLE_VALUE_SIZE];
    char rule[64];
    uint64_t number = 0;
    read_parameter(query, name, text);
    if (text[0] == '\0')
        return otherwise;
    if (text_to_u64(text_of(text), most, &number) == STATUS_OK && number > 0)
        return number;
    (void)snprintf(rule, sizeof rule, "must be a whole number from 1 to %llu",
                   (unsigned long long)most);
    console_refuse_parameter(query, name, rule);
    return otherwise;
}

size_t console_choice(struct console_query *query, const char *name, const char *const *words)
{
    char text[CONSOLE_VALUE_SIZE];
    struct buffer rule = {0};
    size_t at = 0;
    read_parameter(query, name, text);
    if (text[0] == '\0')
        return 0;
    while (words[at] != NULL && strcmp(text, words[at]) != 0)
        at++;
    if (words[at] != NULL)
        return at;
    buffer_append_string(&rule, "must be ");
    buffer_append_choices(&rule, words, at);
    console_refuse_parameter(query, name, buffer_string(&rule));
    buffer_free(&rule);
    return 0;
}

void console_page(struct console_query *query, struct console_page *page)
{
    page->words = console_parameter(query, "q");
    page->limit = console_number(query, "limit", CONSOLE_PAGE_MAX, 50);
    page->offset = console_number(query, "cursor", INT64_MAX, 0);
}

void console_end_page(struct json_writer *json, uint64_t found, uint64_t next)
{
    char cursor[24] = "";
    if (next > 0)
        (void)snprintf(cursor, sizeof cursor, "%" PRIu64, next);
    json_end(json);
    if (found == UINT64_MAX)
        json_null(json, "found");
    else
        json_unsigned(json, "found", found);
    json_string_or_null(json, "next", cursor);
}

uint64_t console_next(const struct console_page *page, uint64_t found)
{
    return found > page->offset + page->limit ? page->offset + page->limit : 0;
}
