/* Reads the tables of the simulated sports. They are part of the program, so an error in one is a
 * bug. All names are invented. */
#include "demo/sports.h"

#include "base/text.h"
#include "demo/texts.h"

static struct text read_table(const char *text)
{
    CHECK(json_text_check(text_of(text), NULL, NULL) == STATUS_OK);
    return text_of(text);
}

void sports_open(struct sports *sports)
{
    static const char *const texts[] = {
        [SPORT_CRICKET] = demo_cricket,
        [SPORT_FOOTBALL] = demo_football,
        [SPORT_TENNIS] = demo_tennis,
        [SPORT_HORSE_RACING] = demo_horse_racing,
        [SPORT_GREYHOUND_RACING] = demo_greyhound_racing,
    };
    for (int sport = 0; sport < SPORT_COUNT; sport++)
        sports->tables[sport] = read_table(texts[sport]);
    sports->names = read_table(demo_names);
}

struct text table_string(struct text object, const char *name)
{
    return json_text_inside(json_text_member(object, text_of(name)));
}

int64_t table_number(struct text object, const char *name)
{
    int64_t number;
    (void)json_text_integer(json_text_member(object, text_of(name)), &number);
    return number;
}

/* Any word of the list of this name. */
static struct text pick_word(const struct sports *sports, enum sport sport, struct chance *chance,
                             struct text name)
{
    struct text words = json_text_member(sports->tables[sport], TEXT("words"));
    struct text list = json_text_member(words, name);
    if (list.at == NULL)
        list = json_text_member(sports->names, name);
    CHECK(list.at != NULL);
    uint32_t count = (uint32_t)json_text_count(list);
    return json_text_inside(json_text_element(list, chance_below(chance, count)));
}

void sports_name(const struct sports *sports, enum sport sport, struct chance *chance,
                 struct text pattern, const char (*sides)[NAME_SIZE], uint32_t number,
                 char out[NAME_SIZE])
{
    struct buffer name = {0};
    const char *end = pattern.at + pattern.size;
    for (const char *at = pattern.at; at < end; at++) {
        const char *word = at + 1;
        while (*at == '@' && word < end && *word >= 'a' && *word <= 'z')
            word++;
        if (word > at + 1) {
            buffer_append_text(&name, pick_word(sports, sport, chance,
                                                (struct text){at + 1, (size_t)(word - at - 1)}));
            at = word - 1;
        } else if (*at == '@') {
            buffer_append_string(&name, sides[*++at - '0']);
        } else if (*at == '#') {
            buffer_append_u64(&name, number);
        } else {
            buffer_append_char(&name, *at);
        }
    }
    (void)snprintf(out, NAME_SIZE, "%s", buffer_string(&name));
    buffer_free(&name);
}
