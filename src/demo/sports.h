#pragma once

#include "base/json_text.h"
#include "demo/chance.h"
#include "records/sport.h"

/*
 * The tables of the simulated sports: the files cricket.json, football.json, tennis.json,
 * horse-racing.json and greyhound-racing.json. A table is an object:
 *
 *   id, length_s     the sport's number upstream, and how long an event lasts, about
 *   side, competition, race
 *                    patterns of names (sports_name). A sport with `race` has races, not matches.
 *   running          the status of an open section every other second, if it has one
 *   words            lists of words for the patterns; names.json has those that all sports share
 *   markets          `type`, `name`, `native` ("MATCH_ODDS") and either `runners` (patterns; in a
 *                    race all sides are runners) or `sections` (patterns; `spread` is how far the
 *                    back is above the lay). The first market is of type match.
 *   courses          what happens in an event; each event follows one of them
 *
 * A course has `sides` (their number) and `frames`. A frame takes effect `at` seconds after the
 * start. The first may be earlier; one is at 0; the last is the result. A frame may have:
 *
 *   score            what the score is from now on
 *   remark, halt     all markets are suspended for `halt` seconds, with this reason
 *   odds             an entry for each market: of each runner the chance in thousandths or a result
 *                    ("W", "L", "P", "R", "V": winner, loser, placed, removed, removed and vacant);
 *                    of sections the number of each that is quoted, from 1, and its line;
 *                    null for a bookmaker, which follows the first market
 *
 * Chances between two frames with odds are interpolated. The program does not know the rules of a
 * sport: a course must agree with itself (after a goal, all its markets know of it). The courses
 * are recordings of a simulation that knew the rules.
 */

struct sports {
    struct text tables[SPORT_COUNT], names; /* parts of the program */
};

void sports_open(struct sports *sports);

/* A member of an object; "" or 0 when there is none. A table's strings have no escapes. */
struct text table_string(struct text object, const char *name);
int64_t table_number(struct text object, const char *name);

/* A name from a pattern: "@word" is any word of that list, "@0" is home, "@1" is away (`sides` may
 * be NULL without them), '#' is `number`. */
#define NAME_SIZE 64
void sports_name(const struct sports *sports, enum sport sport, struct chance *chance,
                 struct text pattern, const char (*sides)[NAME_SIZE], uint32_t number,
                 char out[NAME_SIZE]);
