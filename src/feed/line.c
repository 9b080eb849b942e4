/*
 * A line is checked as a whole and cut into slices of itself, so that exactly the written bytes are
 * published.
 */
#include "feed/line.h"

#include "base/memory.h"
#include "base/strict_json.h"

enum member { CATALOG, ODDS, WITHDRAW, TOGETHER, ALIVE, EVENT, DOCUMENT, EXPIRES, ID, MEMBERS };
static const struct text names[MEMBERS] = {
    [CATALOG] = TEXT_INIT("catalog"),
    [ODDS] = TEXT_INIT("odds"),
    [WITHDRAW] = TEXT_INIT("withdraw"),
    [TOGETHER] = TEXT_INIT("together"),
    [ALIVE] = TEXT_INIT("alive"),
    [EVENT] = TEXT_INIT("event"),
    [DOCUMENT] = TEXT_INIT("document"),
    [EXPIRES] = TEXT_INIT("expires_s"),
    [ID] = TEXT_INIT("id"),
};
#define VERBS 5U /* the first of them */

struct reader {
    struct feed_line *line;
    struct text text;
    uint32_t expires_s; /* of documents that have none */
};

static bool refuse(struct reader *reader, const char *at, const char *reason)
{
    json_text_locate(&reader->line->wrong, reader->text, (size_t)(at - reader->text.at), reason);
    return false;
}

/* Finds the members of an object, each at most once. `at` is NULL of those that are not there. */
static bool read_members(struct reader *reader, struct text object, struct text members[MEMBERS])
{
    struct text name, value;
    if (json_text_kind(object) != JSON_TEXT_OBJECT)
        return refuse(reader, object.at, "expected an object");
    struct json_text_cursor cursor = json_text_open(object);
    while (json_text_next_member(&cursor, &name, &value)) {
        size_t which = 0;
        while (which < MEMBERS && !json_text_string_equals(name, names[which]))
            which++;
        if (which == MEMBERS)
            return refuse(reader, name.at,
                          "not a member of a line: those are catalog, odds, withdraw, together, "
                          "alive, event, document, expires_s and id");
        if (members[which].at != NULL)
            return refuse(reader, name.at, "given twice");
        members[which] = value;
    }
    return true;
}

static bool read_sport(struct reader *reader, struct text value, enum sport *sport)
{
    char key[32];
    return (strict_json_string(value, key, sizeof key) &&
            sport_from_key(text_of(key), sport) == STATUS_OK) ||
           refuse(reader, value.at,
                  "not a sport: those are cricket, football, tennis, horse-racing and "
                  "greyhound-racing");
}

static bool read_document(struct reader *reader, struct text value, struct odds_change *change)
{
    struct feed_report report;
    struct json_text_error wrong;
    /* The line was checked as a whole. */
    if (feed_check_value(change->kind, value, &report, &wrong) != STATUS_OK)
        return refuse(reader, value.at + wrong.offset, wrong.reason);
    reader->line->rows_without_id += report.without_id;
    reader->line->rows_repeated += report.repeated;
    change->bytes = value.at;
    change->size = value.size;
    return true;
}

/* Refuses the members that a verb does not go with, and asks for those that it needs. */
static bool check_members(struct reader *reader, struct text object,
                          const struct text members[MEMBERS], enum member verb)
{
    bool takes_event = verb == ODDS || verb == WITHDRAW;
    bool takes_document = verb == CATALOG || verb == ODDS;
    if (members[EVENT].at != NULL && !takes_event)
        return refuse(reader, members[EVENT].at, "no event goes with this");
    if (members[DOCUMENT].at != NULL && !takes_document)
        return refuse(reader, members[DOCUMENT].at, "no document goes with this");
    if (members[EXPIRES].at != NULL && !takes_document)
        return refuse(reader, members[EXPIRES].at, "expires_s goes with a document alone");
    if (members[EVENT].at == NULL && verb == ODDS)
        return refuse(reader, object.at, "the event is missing");
    if (members[DOCUMENT].at == NULL && takes_document)
        return refuse(reader, object.at, "the document is missing");
    return true;
}

static bool find_verb(struct reader *reader, struct text object, const struct text members[MEMBERS],
                      enum member *verb)
{
    unsigned found = 0;
    for (unsigned i = 0; i < VERBS; i++) {
        if (members[i].at != NULL) {
            *verb = (enum member)i;
            found++;
        }
    }
    return found == 1 ||
           refuse(reader, object.at, "expected one of catalog, odds, withdraw, together and alive");
}

static bool read_expiry(struct reader *reader, struct text value, struct odds_change *change)
{
    uint64_t seconds = reader->expires_s;
    if (value.at != NULL && text_to_u64(value, ODDS_EXPIRES_MOST_S, &seconds) != STATUS_OK)
        return refuse(reader, value.at, "expires_s is a number of seconds, 0 (never) to 86400");
    change->expires_s = (uint32_t)seconds;
    return true;
}

static bool read_change(struct reader *reader, struct text object,
                        const struct text members[MEMBERS], enum member verb)
{
    struct odds_change *change = &reader->line->changes[reader->line->count];
    bool of_event = members[EVENT].at != NULL;
    *change = (struct odds_change){.kind = of_event ? ODDS_MARKETS : ODDS_CATALOG};
    if (!check_members(reader, object, members, verb) ||
        !read_sport(reader, members[verb], &change->sport))
        return false;
    if (of_event && event_id_read(members[EVENT], &change->event) != STATUS_OK)
        return refuse(reader, members[EVENT].at, "not an event id: 1 to 20 digits, above zero");
    if (verb != WITHDRAW && (!read_document(reader, members[DOCUMENT], change) ||
                             !read_expiry(reader, members[EXPIRES], change)))
        return false;
    reader->line->withdraws_sport |= verb == WITHDRAW && !of_event;
    reader->line->count++;
    return true;
}

static bool read_together(struct reader *reader, struct text array)
{
    struct text element;
    if (json_text_kind(array) != JSON_TEXT_ARRAY)
        return refuse(reader, array.at, "expected an array of what is published together");
    size_t count = json_text_count(array);
    if (count > FEED_TOGETHER_MAX)
        return refuse(reader, json_text_element(array, FEED_TOGETHER_MAX).at,
                      "more than 4096 are not published together");
    if (count == 0)
        return refuse(reader, array.at, "there is nothing to publish");
    reader->line->changes = memory_alloc_zeroed(count, sizeof(struct odds_change));
    struct json_text_cursor cursor = json_text_open(array);
    while (json_text_next_element(&cursor, &element)) {
        struct text members[MEMBERS] = {{NULL, 0}};
        enum member verb;
        if (!read_members(reader, element, members) || !find_verb(reader, element, members, &verb))
            return false;
        if (verb == TOGETHER || verb == ALIVE || members[ID].at != NULL)
            return refuse(reader, members[verb == TOGETHER || verb == ALIVE ? verb : ID].at,
                          "this is of a whole line, not of a part");
        if (!read_change(reader, element, members, verb))
            return false;
    }
    return true;
}

static bool read_id(struct reader *reader, struct text value)
{
    enum json_text_kind kind = json_text_kind(value);
    if ((kind != JSON_TEXT_STRING && kind != JSON_TEXT_NUMBER) || value.size > FEED_LINE_ID_MAX)
        return refuse(reader, value.at, "an id is a number or a string, of at most 256 bytes");
    reader->line->id = value;
    return true;
}

static bool read_line(struct reader *reader)
{
    struct feed_line *line = reader->line;
    struct text members[MEMBERS] = {{NULL, 0}};
    enum member verb;
    if (json_text_check(reader->text, NULL, &line->wrong) != STATUS_OK)
        return false;
    struct text object = json_text_trim(reader->text);
    if (!read_members(reader, object, members) ||
        (members[ID].at != NULL && !read_id(reader, members[ID])) ||
        !find_verb(reader, object, members, &verb))
        return false;
    if (verb == TOGETHER)
        return check_members(reader, object, members, verb) &&
               read_together(reader, members[TOGETHER]);
    if (verb == ALIVE) {
        line->alive = text_equals(members[ALIVE], TEXT("true"));
        return check_members(reader, object, members, verb) &&
               (line->alive || refuse(reader, members[ALIVE].at, "alive is true"));
    }
    line->changes = &line->only;
    return read_change(reader, object, members, verb);
}

static void free_changes(struct feed_line *line)
{
    if (line->changes != &line->only)
        memory_free(line->changes);
    line->changes = NULL;
    line->count = 0;
    line->alive = line->withdraws_sport = false;
}

void feed_line_read(struct feed_line *line, struct text text, uint32_t expires_s)
{
    struct reader reader = {line, text, expires_s};
    *line = (struct feed_line){0};
    if (!read_line(&reader))
        free_changes(line);
}

void feed_line_free(struct feed_line *line)
{
    free_changes(line);
    *line = (struct feed_line){0};
}
