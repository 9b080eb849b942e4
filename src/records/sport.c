/* The five sports; see sport.h. */
#include "records/sport.h"

static const struct {
    const char *key;
    const char *name;
} sports[SPORT_COUNT] = {
    [SPORT_CRICKET] = {"cricket", "Cricket"},
    [SPORT_FOOTBALL] = {"football", "Football"},
    [SPORT_TENNIS] = {"tennis", "Tennis"},
    [SPORT_HORSE_RACING] = {"horse-racing", "Horse Racing"},
    [SPORT_GREYHOUND_RACING] = {"greyhound-racing", "Greyhound Racing"},
};

const char *sport_key(enum sport sport)
{
    CHECK((unsigned)sport < SPORT_COUNT);
    return sports[sport].key;
}

const char *sport_name(enum sport sport)
{
    CHECK((unsigned)sport < SPORT_COUNT);
    return sports[sport].name;
}

enum status sport_from_key(struct text key, enum sport *sport)
{
    for (int i = 0; i < SPORT_COUNT; i++) {
        if (text_equals(key, text_of(sports[i].key))) {
            *sport = (enum sport)i;
            return STATUS_OK;
        }
    }
    return STATUS_NOT_FOUND;
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
            return error_set(error, STATUS_INVALID,
                             "'%.*s' is not a sport; sports are cricket, football, tennis, "
                             "horse-racing, greyhound-racing, or all, or none",
                             (int)(name.size < 64 ? name.size : 64), name.size > 0 ? name.at : "");
        found |= SPORT_BIT(sport);
    } while (rest.at != NULL);
    *set = found;
    return STATUS_OK;
}

void sport_set_append(struct buffer *buffer, sport_set set)
{
    if ((set & SPORT_SET_ALL) == SPORT_SET_ALL || (set & SPORT_SET_ALL) == 0) {
        buffer_append_string(buffer, (set & SPORT_SET_ALL) == 0 ? "none" : "all");
        return;
    }
    const char *separator = "";
    for (int i = 0; i < SPORT_COUNT; i++) {
        if ((set & SPORT_BIT(i)) == 0)
            continue;
        buffer_append_string(buffer, separator);
        buffer_append_string(buffer, sports[i].key);
        separator = ",";
    }
}
