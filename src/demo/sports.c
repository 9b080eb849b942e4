/* Reads the tables of the simulated sports. They are part of the program, so an error in one is a
 * bug. All names are invented. */
#include "demo/sports.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "demo/texts.h"

static yyjson_doc *read_table(const char *text)
{
    yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    CHECK(doc != NULL);
    return doc;
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

void sports_close(struct sports *sports)
{
    for (int sport = 0; sport < SPORT_COUNT; sport++)
        yyjson_doc_free(sports->tables[sport]);
    yyjson_doc_free(sports->names);
}

yyjson_val *sports_table(const struct sports *sports, enum sport sport)
{
    return yyjson_doc_get_root(sports->tables[sport]);
}

const char *table_string(yyjson_val *object, const char *name)
{
    const char *text = yyjson_get_str(yyjson_obj_get(object, name));
    return text != NULL ? text : "";
}

int64_t table_number(yyjson_val *object, const char *name)
{
    return yyjson_get_sint(yyjson_obj_get(object, name));
}

/* Any word of the list that `pattern` begins with. */
static const char *pick_word(const struct sports *sports, enum sport sport, struct chance *chance,
                             const char *pattern, size_t size)
{
    yyjson_val *words = yyjson_obj_get(sports_table(sports, sport), "words");
    yyjson_val *list = yyjson_obj_getn(words, pattern, size);
    if (list == NULL)
        list = yyjson_obj_getn(yyjson_doc_get_root(sports->names), pattern, size);
    CHECK(list != NULL);
    return yyjson_get_str(
        yyjson_arr_get(list, chance_below(chance, (uint32_t)yyjson_arr_size(list))));
}

void sports_name(const struct sports *sports, enum sport sport, struct chance *chance,
                 const char *pattern, const char (*sides)[NAME_SIZE], uint32_t number,
                 char out[NAME_SIZE])
{
    struct buffer name = {0};
    while (*pattern != '\0') {
        size_t word = *pattern == '@' ? strspn(pattern + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
        if (word > 0)
            buffer_append_string(&name, pick_word(sports, sport, chance, pattern + 1, word));
        else if (*pattern == '@')
            buffer_append_string(&name, sides[*++pattern - '0']);
        else if (*pattern == '#')
            buffer_append_u64(&name, number);
        else
            buffer_append_char(&name, *pattern);
        pattern += 1 + word;
    }
    (void)snprintf(out, NAME_SIZE, "%s", buffer_string(&name));
    buffer_free(&name);
}
