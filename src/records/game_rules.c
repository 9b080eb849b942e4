/* What is acceptable; see game_rules.h. */
#include "records/game_rules.h"

#include "records/record.h"

static bool is_lower_or_digit(char character)
{
    return (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9');
}

bool game_id_is_sound(struct text id)
{
    if (id.size == 0 || id.size >= GAME_ID_SIZE || id.at[0] == '-')
        return false;
    for (size_t i = 0; i < id.size; i++)
        if (!is_lower_or_digit(id.at[i]) && id.at[i] != '-')
            return false;
    return true;
}

bool game_word_is_sound(struct text word)
{
    return word.size > 0 && word.size < GAME_WORD_SIZE && text_is_plain(word);
}

bool url_is_sound(struct text url)
{
    size_t scheme = text_starts_with(url, TEXT("https://"))  ? 8
                    : text_starts_with(url, TEXT("http://")) ? 7
                                                             : 0;
    if (scheme == 0 || url.size <= scheme || url.at[scheme] == '/')
        return false;
    for (size_t i = 0; i < url.size; i++)
        if (url.at[i] <= ' ' || url.at[i] >= 0x7F || strchr("\"<>\\^`{|}", url.at[i]) != NULL)
            return false;
    return true;
}

bool game_url_is_sound(struct text url)
{
    return url.size < GAME_URL_SIZE && url_is_sound(url);
}

/* "host:port" of a sound URL, with what stands before an '@'. */
static struct text authority_of(struct text url)
{
    struct text rest = url;
    size_t size = 0;
    (void)text_cut(&rest, '/');
    (void)text_cut(&rest, '/');
    while (size < rest.size && memchr("/?#", rest.at[size], 3) == NULL)
        size++;
    return (struct text){rest.at, size};
}

bool game_url_is_guarded(struct text url)
{
    static const struct text loopbacks[] = {TEXT_INIT("127.0.0.1"), TEXT_INIT("[::1]"),
                                            TEXT_INIT("localhost")};
    struct text authority = authority_of(url);
    bool guarded = text_starts_with(url, TEXT("https://"));
    if (memchr(authority.at, '@', authority.size) != NULL)
        return false;
    for (size_t i = 0; !guarded && i < sizeof loopbacks / sizeof loopbacks[0]; i++)
        guarded = text_starts_with(authority, loopbacks[i]) &&
                  (authority.size == loopbacks[i].size || authority.at[loopbacks[i].size] == ':');
    return guarded;
}

bool game_list_has(struct text list, struct text item)
{
    struct text rest = list;
    while (rest.size > 0)
        if (text_equals(text_cut(&rest, '\n'), item))
            return true;
    return false;
}

bool game_list_offers(const char *list, const char *wanted)
{
    return wanted[0] == '\0' || game_list_has(text_of(list), text_of(wanted));
}

/* ---- fields ---------------------------------------------------------------------------------- */

enum status game_id_check(const char *id, struct error *error)
{
    if (!game_id_is_sound(record_field_text(id, GAME_ID_SIZE)))
        return error_invalid(error,
                             "id: must be 1 to %d of a-z, 0-9 and '-', not beginning with '-'",
                             GAME_ID_SIZE - 1);
    return STATUS_OK;
}

enum status game_url_check(const char *what, const char *url, bool fragment, struct error *error)
{
    struct text text = record_field_text(url, GAME_URL_SIZE);
    if (!game_url_is_sound(text))
        return error_set(
            error, STATUS_INVALID,
            "%s: must be http:// or https:// and at most %d characters that a URL may have "
            "(RFC 3986)",
            what, GAME_URL_SIZE - 1);
    if (!fragment && memchr(text.at, '#', text.size) != NULL)
        return error_invalid(error, "%s: must not have a fragment (#…)", what);
    return STATUS_OK;
}

static bool is_list(const char *field, bool sound(struct text item))
{
    struct text rest = record_field_text(field, GAME_LIST_SIZE);
    if (rest.size == GAME_LIST_SIZE)
        return false;
    for (size_t count = 0; rest.size > 0; count++) {
        struct text item = text_cut(&rest, '\n');
        bool ends_in_separator = rest.at != NULL && rest.size == 0;
        if (count == GAME_LIST_ITEMS_MAX || ends_in_separator || !sound(item))
            return false;
    }
    return true;
}

enum status game_list_check(const char *what, const char *list, bool sound(struct text item),
                            struct error *error)
{
    return is_list(list, sound)
               ? STATUS_OK
               : error_invalid(error, "%s: holds something that is not acceptable", what);
}
