/* Invented names: no club, person, course or animal is meant. */
#include <stdio.h>

#include "demo/event.h"

#define PICK(chance, list) ((list)[chance_below((chance), sizeof(list) / sizeof((list)[0]))])

static const char *const places[] = {
    "Aldermoor",   "Brackenvale", "Castlemarch", "Dunhollow", "Eastmere",    "Fernwater",
    "Grayhaven",   "Highmarsh",   "Ironmead",    "Jasperton", "Kestrel Bay", "Larkstone",
    "Mallowfield", "Norhaven",    "Oakmarch",    "Pinecross", "Quarrydown",  "Redwater",
    "Saltmere",    "Thornhollow", "Umberford",   "Velmoor",   "Westmarch",   "Yarrowdale",
};
static const char *const football_suffixes[] = {"United", "City",      "Rovers", "Athletic",
                                                "Town",   "Wanderers", "Albion", "Harbour"};
static const char *const cricket_suffixes[] = {"Monsoons", "Comets", "Herons",   "Lanterns",
                                               "Mariners", "Foxes",  "Thunders", "Kites"};
static const char *const forenames[] = {"Ilan",  "Mara",  "Teo",   "Sunil", "Nadia", "Oskar",
                                        "Priya", "Lucan", "Elise", "Davor", "Anika", "Rohit",
                                        "Wen",   "Tomas", "Zara",  "Kofi"};
static const char *const surname_starts[] = {"Bra", "Cor", "Del", "Fen", "Gar", "Hal", "Jor",
                                             "Kel", "Lan", "Mor", "Nar", "Ost", "Pel", "Ran",
                                             "Sel", "Tor", "Ul",  "Ven", "Wes", "Yar"};
static const char *const surname_ends[] = {"by",  "dane", "kin", "low",  "mund", "nell",
                                           "osh", "rick", "san", "tova", "vek",  "wyn"};
static const char *const horse_adjectives[] = {
    "Copper", "Velvet", "Silent",   "Rolling", "Amber",  "Midnight", "Paper",   "Second",
    "Winter", "Honest", "Borrowed", "Quiet",   "Golden", "Crooked",  "Distant", "Salted"};
static const char *const horse_nouns[] = {
    "Harbour", "Lantern", "Fiddle", "Comet",   "Orchard", "Postman", "Biscuit",  "Meadow",
    "Captain", "Whisper", "Ledger", "Almanac", "Compass", "Thunder", "Envelope", "Parade"};
static const char *const hound_starts[] = {"Ballyrow", "Swift",  "Kilmarra", "Droopy", "Rapid",
                                           "Coolagh",  "Savage", "Jetty",    "Mossy",  "Tullymoor"};
static const char *const hound_ends[] = {"Bolt",  "Ginger", "Rocket", "Duchess",  "Jack",
                                         "Ember", "Tango",  "Breeze", "Sergeant", "Pip"};

static const char *const football_competitions[] = {"Northern Premier Division", "Coastal League",
                                                    "Republic Cup", "Second Division East"};
static const char *const cricket_competitions[] = {"Island Short League", "Continental Series",
                                                   "Provincial Shield"};
static const char *const tennis_competitions[] = {"Kestrel Bay Open", "Oakmarch Challenger",
                                                  "Saltmere Indoors"};

void name_place(struct chance *chance, char out[NAME_SIZE])
{
    (void)snprintf(out, NAME_SIZE, "%s", PICK(chance, places));
}

void name_team(struct chance *chance, enum sport sport, char out[NAME_SIZE])
{
    const char *place = PICK(chance, places);
    (void)snprintf(out, NAME_SIZE, "%s %s", place,
                   sport == SPORT_CRICKET ? PICK(chance, cricket_suffixes)
                                          : PICK(chance, football_suffixes));
}

void name_player(struct chance *chance, char out[NAME_SIZE])
{
    const char *forename = PICK(chance, forenames);
    const char *start = PICK(chance, surname_starts);
    (void)snprintf(out, NAME_SIZE, "%s %s%s", forename, start, PICK(chance, surname_ends));
}

void name_runner(struct chance *chance, enum sport sport, char out[NAME_SIZE])
{
    if (sport == SPORT_HORSE_RACING) {
        const char *adjective = PICK(chance, horse_adjectives);
        (void)snprintf(out, NAME_SIZE, "%s %s", adjective, PICK(chance, horse_nouns));
    } else {
        const char *start = PICK(chance, hound_starts);
        (void)snprintf(out, NAME_SIZE, "%s %s", start, PICK(chance, hound_ends));
    }
}

const char *name_competition(struct chance *chance, enum sport sport)
{
    return sport == SPORT_CRICKET    ? PICK(chance, cricket_competitions)
           : sport == SPORT_FOOTBALL ? PICK(chance, football_competitions)
                                     : PICK(chance, tennis_competitions);
}
