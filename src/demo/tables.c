/* The five sports, described. */
#include "demo/event.h"

static const struct market_plan football_markets[] = {
    {MARKET_MATCH, ASK_WINNER, "Match Odds", "MATCH_ODDS", "@|The Draw|#", 0, 0},
    {MARKET_BOOKMAKER, ASK_WINNER, "Bookmaker", "Bookmaker", "@|The Draw|#", 0, 0},
    {MARKET_MATCH, ASK_OVER, "Over/Under 0.5 Goals", "OVER_UNDER_05",
     "Under 0.5 Goals|Over 0.5 Goals", 0, 0},
    {MARKET_MATCH, ASK_OVER, "Over/Under 1.5 Goals", "OVER_UNDER_15",
     "Under 1.5 Goals|Over 1.5 Goals", 0, 1},
    {MARKET_MATCH, ASK_OVER, "Over/Under 2.5 Goals", "OVER_UNDER_25",
     "Under 2.5 Goals|Over 2.5 Goals", 0, 2},
    {MARKET_MATCH, ASK_OVER, "Over/Under 3.5 Goals", "OVER_UNDER_35",
     "Under 3.5 Goals|Over 3.5 Goals", 0, 3},
    {MARKET_MATCH, ASK_OVER, "Over/Under 4.5 Goals", "OVER_UNDER_45",
     "Under 4.5 Goals|Over 4.5 Goals", 0, 4},
    {MARKET_MATCH, ASK_BOTH, "Both Teams to Score", "BOTH_TEAMS_TO_SCORE", "Yes|No", 0, 0},
    {MARKET_MATCH, ASK_WINNER, "Draw No Bet", "DRAW_NO_BET", "@|#", 0, 0},
    {MARKET_MATCH, ASK_WINNER, "Half Time", "HALF_TIME", "@|The Draw|#", 1, 0},
    {MARKET_MATCH, ASK_SCORE, "Correct Score", "CORRECT_SCORE",
     "0 - 0|0 - 1|0 - 2|0 - 3|1 - 0|1 - 1|1 - 2|1 - 3|2 - 0|2 - 1|2 - 2|2 - 3|"
     "3 - 0|3 - 1|3 - 2|3 - 3|Any Other Score",
     0, 0},
    {MARKET_ODDEVEN, ASK_LINES, "oddeven", "oddeven", NULL, 0, 0},
    {0},
};
static const struct market_plan tennis_markets[] = {
    {MARKET_MATCH, ASK_WINNER, "Match Odds", "MATCH_ODDS", "@|#", 0, 0},
    {MARKET_BOOKMAKER, ASK_WINNER, "Bookmaker", "Bookmaker", "@|#", 0, 0},
    {MARKET_MATCH, ASK_WINNER, "Set 1 Winner", "SET_WINNER", "@|#", 1, 0},
    {MARKET_MATCH, ASK_WINNER, "Set 2 Winner", "SET_WINNER", "@|#", 2, 0},
    {MARKET_MATCH, ASK_SETS, "Set Betting", "SET_BETTING", "@ 2 - 0|@ 2 - 1|# 2 - 0|# 2 - 1", 0, 0},
    {MARKET_MATCH, ASK_OVER, "Total Games 20.5", "NUMBER_OF_GAMES",
     "Under 20.5 Games|Over 20.5 Games", 3, 0},
    {0},
};
static const struct market_plan cricket_markets[] = {
    {MARKET_MATCH, ASK_WINNER, "Match Odds", "MATCH_ODDS", "@|#", 0, 0},
    {MARKET_BOOKMAKER, ASK_WINNER, "Bookmaker", "Bookmaker", "@|#", 0, 0},
    {MARKET_MATCH, ASK_DRAW, "Tied Match", "TIED_MATCH", "Yes|No", 0, 0},
    {MARKET_FANCY, ASK_LINES, "Normal", "Normal", NULL, 0, 0},
    {MARKET_FANCY, ASK_LINES, "Over By Over", "Over By Over", NULL, 0, 0},
    {MARKET_FANCY, ASK_LINES, "Ball By Ball", "Ball By Ball", NULL, 0, 0},
    {MARKET_FANCY1, ASK_LINES, "fancy1", "fancy1", NULL, 0, 0},
    {MARKET_ODDEVEN, ASK_LINES, "oddeven", "oddeven", NULL, 0, 0},
    {MARKET_FANCY2, ASK_LINES, "khado", "khado", NULL, 0, 0},
    {MARKET_FANCY2, ASK_LINES, "meter", "meter", NULL, 0, 0},
    {0},
};
static const struct market_plan racing_markets[] = {
    {MARKET_MATCH, ASK_FIRST, "Win", "WIN", NULL, 0, 0},
    {MARKET_MATCH, ASK_PLACED, "To Be Placed", "PLACE", NULL, 0, 0},
    {0},
};

const struct sport_table sport_tables[SPORT_COUNT] = {
    [SPORT_CRICKET] = {4, 360000, "@p @c", "@C", NULL, cricket_markets, cricket_create, NULL,
                       cricket_play, cricket_expect, cricket_lines, cricket_score},
    [SPORT_FOOTBALL] = {1, 360000, "@p @u", "@F", NULL, football_markets, football_create, NULL,
                        football_play, football_expect, football_lines, football_score},
    [SPORT_TENNIS] = {2, 300000, "@f @s@e", "@T", NULL, tennis_markets, tennis_create, NULL,
                      tennis_play, tennis_expect, NULL, tennis_score},
    [SPORT_HORSE_RACING] = {7, 90000, "@a @n", "@p Downs", " R# @yy", racing_markets, racing_create,
                            racing_upcoming, racing_play, NULL, NULL, racing_score},
    [SPORT_GREYHOUND_RACING] = {4339, 35000, "@h @i", "@p Stadium", " A# @mm", racing_markets,
                                racing_create, racing_upcoming, racing_play, NULL, NULL,
                                racing_score},
};
