/*
 * Games out of JSON, with errors that a person can act on; see document.h.
 *
 * Each member of a game is a row in a table: its name, where it goes, and which reader reads it.
 * The text has been checked for strict JSON before, so readers look at values alone.
 */
#include "games/document.h"

#include "base/json_text.h"
#include "base/memory.h"
#include "base/strict_json.h"
#include "records/currency.h"

#define WORD_SHOWN_MAX 64

struct reading {
    const char *name;
    struct text text;
    bool (*has_provider)(void *context, struct text id);
    void *context;
    struct error *error;
    struct game_record *record; /* the one being read */
    bool *set_enabled;
    struct buffer plain; /* scratch: a string unescaped */
};

/* ---- errors ---------------------------------------------------------------------------------- */

/* An error at a place of the text: "games.json:3:14: rtp_bps: …". */
static enum status wrong(struct reading *reading, struct text at, const char *member,
                         const char *reason)
{
    struct json_text_error place;
    json_text_locate(&place, reading->text, (size_t)(at.at - reading->text.at), reason);
    return error_set(reading->error, STATUS_INVALID, "%s:%zu:%zu: %s%s%s", reading->name,
                     place.line, place.column, member, member[0] != '\0' ? ": " : "", reason);
}

/* ---- readers --------------------------------------------------------------------------------- */

struct member {
    const char *name;
    bool required;
    bool nullable; /* null is the same as absent */
    size_t offset;
    size_t room;
    enum status (*read)(struct reading *reading, const struct member *member, struct text value);
    bool (*sound)(struct text text); /* of a text or an item */
    const char *rule;                /* the rule, for people */
};

static void *field(struct reading *reading, const struct member *member)
{
    return (char *)reading->record + member->offset;
}

/* The string in `plain`, or false. */
static bool read_plain(struct reading *reading, struct text value)
{
    buffer_clear(&reading->plain);
    if (json_text_kind(value) != JSON_TEXT_STRING)
        return false;
    return json_text_unescape(value, &reading->plain) &&
           memchr(buffer_string(&reading->plain), '\0', reading->plain.size) == NULL;
}

static enum status read_string_member(struct reading *reading, const struct member *member,
                                      struct text value)
{
    if (!read_plain(reading, value) || reading->plain.size >= member->room ||
        !member->sound(buffer_text(&reading->plain)))
        return wrong(reading, value, member->name, member->rule);
    memcpy(field(reading, member), buffer_string(&reading->plain), reading->plain.size + 1);
    return STATUS_OK;
}

static enum status read_provider_member(struct reading *reading, const struct member *member,
                                        struct text value)
{
    char reason[WORD_SHOWN_MAX * 2 + 64];
    enum status status = read_string_member(reading, member, value);
    if (status != STATUS_OK)
        return status;
    const char *id = reading->record->provider_id;
    if (reading->has_provider(reading->context, text_of(id)))
        return STATUS_OK;
    (void)snprintf(reason, sizeof reason, "there is no provider '%s'", id);
    return wrong(reading, value, member->name, reason);
}

static enum status read_list_member(struct reading *reading, const struct member *member,
                                    struct text value)
{
    struct buffer list = {0};
    struct text element;
    size_t count = 0;
    enum status status = STATUS_OK;
    if (json_text_kind(value) != JSON_TEXT_ARRAY)
        return wrong(reading, value, member->name, "must be an array of strings");
    struct json_text_cursor cursor = json_text_open(value);
    while (status == STATUS_OK && json_text_next_element(&cursor, &element)) {
        struct text item = {NULL, 0};
        if (read_plain(reading, element))
            item = buffer_text(&reading->plain);
        if (item.size == 0 || !member->sound(item))
            status = wrong(reading, element, member->name, member->rule);
        else if (game_list_has(buffer_text(&list), item))
            status = wrong(reading, element, member->name, "the same item stands there twice");
        else if (++count > GAME_LIST_ITEMS_MAX || list.size + item.size + 1 >= member->room)
            status = wrong(reading, element, member->name, "too many items (1024 bytes in all)");
        if (status != STATUS_OK)
            break;
        if (list.size > 0)
            buffer_append_char(&list, '\n');
        buffer_append_text(&list, item);
    }
    if (status == STATUS_OK)
        memcpy(field(reading, member), buffer_string(&list), list.size + 1);
    buffer_free(&list);
    return status;
}

static enum status read_countries_member(struct reading *reading, const struct member *member,
                                         struct text value)
{
    reading->record->keeps_countries = false;
    return read_list_member(reading, member, value);
}

static enum status read_flag_member(struct reading *reading, const struct member *member,
                                    struct text value)
{
    return strict_json_flag(value, field(reading, member))
               ? STATUS_OK
               : wrong(reading, value, member->name, "must be true or false");
}

static enum status read_enabled_member(struct reading *reading, const struct member *member,
                                       struct text value)
{
    *reading->set_enabled = true;
    return read_flag_member(reading, member, value);
}

static enum status read_rtp_member(struct reading *reading, const struct member *member,
                                   struct text value)
{
    uint64_t number;
    if (json_text_kind(value) != JSON_TEXT_NUMBER ||
        text_to_u64(value, 10000, &number) != STATUS_OK)
        return wrong(reading, value, member->name, member->rule);
    *(int32_t *)field(reading, member) = (int32_t)number;
    return STATUS_OK;
}

static enum status read_volatility_member(struct reading *reading, const struct member *member,
                                          struct text value)
{
    return strict_json_name(value, &game_volatilities, field(reading, member))
               ? STATUS_OK
               : wrong(reading, value, member->name, member->rule);
}

static enum status pass_over(struct reading *reading, const struct member *member,
                             struct text value)
{
    if (json_text_kind(value) != JSON_TEXT_STRING)
        return wrong(reading, value, member->name, member->rule);
    return STATUS_OK;
}

/* ---- the members ----------------------------------------------------------------------------- */

static bool is_known_currency(struct text code)
{
    uint8_t exponent;
    return currency_is_sound(code) && currency_exponent(code, &exponent);
}

static bool is_game_name(struct text name)
{
    return name.size > 0 && text_is_plain(name);
}

#define ID_RULE "must be 1 to 64 of a-z, 0-9 and '-', not beginning with '-'"
#define WORD_RULE "must be 1 to 64 bytes of text without control characters"
#define FIELD(name_) \
    .offset = offsetof(struct game_record, name_), .room = sizeof(((struct game_record *)0)->name_)

static const struct member members[] = {
    {"id", true, false, FIELD(id), read_string_member, game_id_is_sound, ID_RULE},
    {"name", true, false, FIELD(name), read_string_member, is_game_name,
     "must be 1 to 128 bytes of text without control characters"},
    {"provider", true, false, FIELD(provider_id), read_provider_member, game_id_is_sound, ID_RULE},
    {"category", true, false, FIELD(category), read_string_member, game_word_is_sound, WORD_RULE},
    {"features", false, false, FIELD(features), read_list_member, game_word_is_sound, WORD_RULE},
    {"rtp_bps", false, true, FIELD(rtp_bps), read_rtp_member, NULL,
     "must be a whole number from 0 to 10000 (hundredths of a percent), or null"},
    {"volatility", false, true, FIELD(volatility), read_volatility_member, NULL,
     "must be \"low\", \"medium\", \"high\" or null"},
    {"thumbnail_url", false, true, FIELD(thumbnail_url), read_string_member, game_url_is_sound,
     "must be an http:// or https:// URL of at most 1024 characters (RFC 3986), or null"},
    {"demo", false, false, FIELD(demo), read_flag_member, NULL, NULL},
    {"currencies", false, false, FIELD(currencies), read_list_member, is_known_currency,
     "must be codes that ISO 4217 has for money: three capitals, but not XAU, XTS and the like "
     "(BTC is none of them)"},
    {"languages", false, false, FIELD(languages), read_list_member, game_word_is_sound, WORD_RULE},
    {"devices", false, false, FIELD(devices), read_list_member, game_word_is_sound, WORD_RULE},
    {"blocked_countries", false, false, FIELD(blocked_countries), read_countries_member,
     country_is_known, "must be codes of ISO 3166-1: two capitals (GB, not UK)"},
    {"enabled", false, false, FIELD(enabled), read_enabled_member, NULL, NULL},
    {"updated_at", false, false, 0, 0, pass_over, NULL, "must be a string"},
};
#define MEMBER_COUNT (sizeof members / sizeof members[0])

/* ---- one game -------------------------------------------------------------------------------- */

static size_t find_member(struct text name)
{
    size_t i = 0;
    while (i < MEMBER_COUNT && !json_text_string_equals(name, text_of(members[i].name)))
        i++;
    return i;
}

static enum status read_members(struct reading *reading, struct text object, uint32_t *seen)
{
    struct json_text_cursor cursor = json_text_open(object);
    struct text name;
    struct text value;
    while (json_text_next_member(&cursor, &name, &value)) {
        size_t at = find_member(name);
        if (at == MEMBER_COUNT)
            return wrong(reading, name, "", "a game has no such member");
        if ((*seen & (1U << at)) != 0)
            return wrong(reading, name, members[at].name, "stands there twice");
        *seen |= 1U << at;
        if (members[at].nullable && json_text_kind(value) == JSON_TEXT_NULL)
            continue;
        enum status status = members[at].read(reading, &members[at], value);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status read_game(struct reading *reading, struct text element)
{
    uint32_t seen = 0;
    if (json_text_kind(element) != JSON_TEXT_OBJECT)
        return wrong(reading, element, "", "must be a game: an object");
    *reading->record = (struct game_record){.rtp_bps = -1,
                                            .since_ms = GAME_SINCE_NOW,
                                            .keeps_countries = true,
                                            .enabled = true,
                                            .usable = true};
    enum status status = read_members(reading, element, &seen);
    for (size_t i = 0; status == STATUS_OK && i < MEMBER_COUNT; i++)
        if (members[i].required && (seen & (1U << i)) == 0)
            status = wrong(reading, element, members[i].name, "is missing");
    return status;
}

/* ---- the document ---------------------------------------------------------------------------- */

struct place_of_id {
    const char *id;
    struct text element;
};

static int compare_ids(const void *a, const void *b)
{
    const struct place_of_id *left = a;
    const struct place_of_id *right = b;
    int order = strcmp(left->id, right->id);
    return order != 0 ? order : (left->element.at > right->element.at) - 1;
}

static enum status check_ids_differ(struct reading *reading, struct place_of_id *places,
                                    size_t count)
{
    char reason[GAME_ID_SIZE + 64];
    if (count > 1)
        qsort(places, count, sizeof places[0], compare_ids);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(places[i].id, places[i - 1].id) != 0)
            continue;
        (void)snprintf(reason, sizeof reason, "'%s' stands in the document twice", places[i].id);
        return wrong(reading, places[i].element, "id", reason);
    }
    return STATUS_OK;
}

static enum status read_array(struct reading *reading, struct games_document *document,
                              struct text array)
{
    struct json_text_cursor cursor = json_text_open(array);
    struct text element;
    size_t room = json_text_count(array);
    enum status status = STATUS_OK;
    if (room > GAMES_MAX)
        return wrong(reading, array, "", "holds more games than a store may have (10000)");
    document->records = memory_alloc_zeroed(room + 1, sizeof document->records[0]);
    document->set_enabled = memory_alloc_zeroed(room + 1, sizeof document->set_enabled[0]);
    struct place_of_id *places = memory_alloc_zeroed(room + 1, sizeof places[0]);
    while (status == STATUS_OK && json_text_next_element(&cursor, &element)) {
        size_t at = document->count++;
        reading->record = &document->records[at];
        reading->set_enabled = &document->set_enabled[at];
        status = read_game(reading, element);
        places[at] = (struct place_of_id){document->records[at].id, element};
    }
    if (status == STATUS_OK)
        status = check_ids_differ(reading, places, document->count);
    memory_free(places);
    return status;
}

enum status games_document_read(struct games_document *document, const char *name, struct text text,
                                bool has_provider(void *context, struct text id), void *context,
                                struct error *error)
{
    struct games_document made = {0};
    struct json_text_error syntax;
    struct reading reading = {.name = name,
                              .text = text,
                              .has_provider = has_provider,
                              .context = context,
                              .error = error};
    if (text.size > GAMES_DOCUMENT_MAX)
        return error_invalid(error, "%s: is larger than %u MiB", name,
                             GAMES_DOCUMENT_MAX / 1024 / 1024);
    if (json_text_check(text, NULL, &syntax) != STATUS_OK)
        return error_invalid(error, "%s:%zu:%zu: not JSON: %s", name, syntax.line, syntax.column,
                             syntax.reason);
    struct text array = json_text_trim(text);
    enum status status = json_text_kind(array) == JSON_TEXT_ARRAY
                             ? read_array(&reading, &made, array)
                             : wrong(&reading, array, "", "must be an array of games");
    buffer_free(&reading.plain);
    if (status == STATUS_OK)
        *document = made;
    else
        games_document_free(&made);
    return status;
}

void games_document_free(struct games_document *document)
{
    memory_free(document->records);
    memory_free(document->set_enabled);
    *document = (struct games_document){0};
}

/* ---- writing --------------------------------------------------------------------------------- */

void game_record_write_offer(struct json_writer *json, const struct game_record *record)
{
    json_string(json, "category", record->category);
    json_lines(json, "features", text_of(record->features));
    if (record->rtp_bps < 0)
        json_null(json, "rtp_bps");
    else
        json_integer(json, "rtp_bps", record->rtp_bps);
    json_string_or_null(json, "volatility", enum_name(&game_volatilities, record->volatility));
    json_string_or_null(json, "thumbnail_url", record->thumbnail_url);
    json_bool(json, "demo", record->demo);
    json_lines(json, "currencies", text_of(record->currencies));
    json_lines(json, "languages", text_of(record->languages));
    json_lines(json, "devices", text_of(record->devices));
}

void game_record_write(struct json_writer *json, const struct game_record *record)
{
    json_object(json, NULL);
    json_string(json, "id", record->id);
    json_string(json, "name", record->name);
    json_string(json, "provider", record->provider_id);
    game_record_write_offer(json, record);
    json_lines(json, "blocked_countries", text_of(record->blocked_countries));
    json_bool(json, "enabled", record->enabled);
    json_time(json, "updated_at", record->updated_ms);
    json_end(json);
}
