/* The five sports; see sport.h. */
#include "records/sport.h"

static const char *const keys[SPORT_COUNT] = {"cricket", "football", "tennis", "horse-racing",
                                              "greyhound-racing"};
static const char *const names[SPORT_COUNT] = {"Cricket", "Football", "Tennis", "Horse Racing",
                                               "Greyhound Racing"};

const struct enum_names sport_keys = ENUM_NAMES(keys);

const char *sport_key(enum sport sport)
{
    return enum_name(&sport_keys, sport);
}

const char *sport_name(enum sport sport)
{
    CHECK((unsigned)sport < SPORT_COUNT);
    return names[sport];
}

enum status sport_from_key(struct text key, enum sport *sport)
{
    return enum_read(&sport_keys, key, sport) ? STATUS_OK : STATUS_NOT_FOUND;
}

enum status sport_set_parse(struct text list, sport_set *set, struct error *error)
{
    sport_set found = 0;
    struct text rest = text_trim(list);
    if (text_equals(rest, TEXT("all")) || text_equals(rest, TEXT("none"))) {
        *set = text_equals(rest, TEXT("all")) ? SPORT_SET_ALL : 0;
        return STATUS_OK;
    }
    do {
        struct text name = text_trim(text_cut(&rest, ','));
        enum sport sport;
        if (sport_from_key(name, &sport) != STATUS_OK)
            return error_invalid(error,
                                 "'%.*s' is not a sport; sports are cricket, football, tennis, "
                                 "horse-racing, greyhound-racing, or all, or none",
                                 TEXT_SHOWN(name));
        found |= SPORT_BIT(sport);
    } while (rest.at != NULL);
    *set = found;
    return STATUS_OK;
}

void sport_set_append(struct buffer *buffer, sport_set set)
{
    if ((set & SPORT_SET_ALL) == SPORT_SET_ALL || (set & SPORT_SET_ALL) == 0)
        buffer_append_string(buffer, (set & SPORT_SET_ALL) == 0 ? "none" : "all");
    else
        buffer_append_set(buffer, &sport_keys, set);
}
