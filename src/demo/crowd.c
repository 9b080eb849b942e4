/* One thread plays for all players in turn, one round at a time. */
#include "demo/crowd.h"

#include <stdarg.h>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/threads.h"
#include "demo/casino.h"
#include "launch/document.h"
#include "launch/outgoing.h"
#include "stores/odds_read.h"

#define TURN_MS 250 /* one player's round; all of them together do not load a small machine */
#define ODD_TURNS 20
#define CALL_MS 2000
#define ANSWER_MAX 16384U
#define STAKE_MINOR 100
#define GIVEN_MINOR 20000
#define SESSION_MS 600000 /* then the player launches again */

struct player {
    char id[PLAYER_ID_SIZE]; /* "": not launched yet */
    char launch_url[LAUNCH_URL_SIZE];
    int64_t launched_ms;
};

struct crowd {
    struct background background;
    char *api;
    const struct demo_keys *keys;
    unsigned player_count;
    struct odds_store *odds;
    struct simulator *simulator;
    int64_t begun_ms; /* part of its ids */
    struct outgoing *outgoing;
    struct player players[CROWD_MAX];
};

/* Posts to a path of the customers' API with a key, or to another URL (NULL) without. 0: no
 * answer. */
static long PRINTF_LIKE(5, 6) post(struct crowd *crowd, const char *key, const char *to,
                                   struct buffer *answer, const char *format, ...)
{
    char body[256], key_field[KEY_SIZE + 16];
    struct buffer url = {0};
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(body, sizeof body, format, arguments);
    va_end(arguments);
    CHECK(size > 0 && (size_t)size < sizeof body);
    (void)snprintf(key_field, sizeof key_field, "X-Api-Key: %s", key != NULL ? key : "");
    buffer_append_format(&url, "%s%s", to[0] == '/' ? crowd->api : "", to);
    struct outgoing_post call = {
        .url = buffer_string(&url),
        .body = {body, (size_t)size},
        .fields = {"Content-Type: application/json", key != NULL ? key_field : NULL},
        .timeout_ms = CALL_MS,
        .answer_max = ANSWER_MAX};
    long status = outgoing_wait(crowd->outgoing, &call, answer) ? call.status : 0;
    explicit_bzero(key_field, sizeof key_field);
    buffer_free(&url);
    return status;
}

static void copy_member(struct text object, struct text name, char *out, size_t size)
{
    if (!strict_json_string(json_text_member(object, name), out, size))
        out[0] = '\0';
}

/* Each player has a game. */
static const char *const games[] = {DEMO_GAME, "arctic-reels", "bamboo-garden", "blackjack-atrium"};
#define GAME_COUNT (sizeof games / sizeof games[0])

static void take_turn(struct crowd *crowd, size_t number)
{
    struct player *player = &crowd->players[number];
    struct buffer answer = {0};
    int64_t now_ms = clock_wall_ms();
    if (player->id[0] == '\0' || now_ms - player->launched_ms > SESSION_MS) {
        char path[96];
        (void)snprintf(path, sizeof path, "/casino/games/%s/launch", games[number % GAME_COUNT]);
        long status = post(crowd, crowd->keys->all_sports, path, &answer,
                           "{\"mode\":\"real\",\"player_reference\":\"demo-player-%zu\","
                           "\"currency\":\"EUR\",\"country\":\"DE\","
                           "\"player_ip\":\"192.0.2.%zu\"}",
                           number + 1, number + 1);
        struct text launch = buffer_text(&answer);
        if (status != 200 || json_text_check(launch, NULL, NULL) != STATUS_OK)
            launch = TEXT("{}");
        copy_member(launch, TEXT("player_id"), player->id, sizeof player->id);
        copy_member(launch, TEXT("launch_url"), player->launch_url, sizeof player->launch_url);
        player->launched_ms = now_ms;
    } else {
        long status = post(crowd, NULL, player->launch_url, &answer, "{\"stake_minor\":%zu}",
                           STAKE_MINOR * (1 + number % 3));
        if (status == 403 || status == 404)
            player->id[0] = '\0'; /* the launch is over */
        if (status == 422)        /* insufficient funds */
            (void)post(crowd, crowd->keys->all_sports, "/casino/wallet", &answer,
                       "{\"operation\":\"CREDIT\",\"player_id\":\"%s\",\"transaction_id\":"
                       "\"demo-%lld-%zu\",\"amount_minor\":%d,\"currency\":\"EUR\"}",
                       player->id, (long long)now_ms, number + 1, GIVEN_MINOR);
    }
    buffer_free(&answer);
}

/* One call after the other that a customer has questions about later: a refused key, a stake that
 * is declined, a blocked player's stake and launch. Money may come in for that player and go
 * out. */
static void call_oddly(struct crowd *crowd, size_t round)
{
    static const char move[] = "{\"operation\":\"%s\",\"player_id\":\"%s\",\"transaction_id\":"
                               "\"odd-%lld-%zu\",\"amount_minor\":%d,\"currency\":\"EUR\"%s}";
    static const char play[] = ",\"game_id\":\"" DEMO_GAME "\",\"round_id\":\"odd\"";
    const struct demo_keys *keys = crowd->keys;
    const struct {
        const char *operation, *player;
        int amount_minor;
        const char *more;
    } moves[] = {{"CREDIT", keys->blocked_player, 500, ""},
                 {"DEBIT", crowd->players[0].id, 99999999, play},
                 {"DEBIT", keys->blocked_player, 100, play},
                 {"DEBIT", keys->blocked_player, 300, ""}};
    struct buffer answer = {0};
    size_t at = round % (sizeof moves / sizeof moves[0]);
    (void)post(crowd, keys->disabled, "/casino/wallet", &answer, "{}");
    if (moves[at].player[0] != '\0')
        (void)post(crowd, keys->all_sports, "/casino/wallet", &answer, move, moves[at].operation,
                   moves[at].player, (long long)crowd->begun_ms, round, moves[at].amount_minor,
                   moves[at].more);
    if (at == 0)
        (void)post(crowd, keys->all_sports, "/casino/games/" DEMO_GAME "/launch", &answer,
                   "{\"mode\":\"real\",\"player_reference\":\"blocked-player\","
                   "\"currency\":\"EUR\"}");
    buffer_free(&answer);
}

static void look_at_events(struct crowd *crowd)
{
    struct simulator_facts facts;
    simulator_facts(crowd->simulator, &facts);
    for (int i = 0; i < SPORT_COUNT; i++)
        if (facts.standing[i].size > 0)
            odds_store_note_interest(crowd->odds, (enum sport)i, &facts.standing[i]);
}

static void run(void *argument)
{
    struct crowd *crowd = argument;
    for (size_t turn = 0;
         !background_sleep(&crowd->background, clock_monotonic_ns() + TURN_MS * 1000000ULL);
         turn++) {
        if (turn % 4 == 0)
            look_at_events(crowd);
        if (turn % ODD_TURNS == ODD_TURNS - 1)
            call_oddly(crowd, turn / ODD_TURNS);
        take_turn(crowd, turn % crowd->player_count);
    }
}

struct crowd *crowd_start(const char *api, const struct demo_keys *keys, unsigned players,
                          struct odds_store *odds, struct simulator *simulator)
{
    struct crowd *crowd = memory_alloc_zeroed(1, sizeof *crowd);
    CHECK(players > 0 && players <= CROWD_MAX);
    crowd->api = memory_copy_string(api);
    crowd->keys = keys;
    crowd->player_count = players;
    crowd->odds = odds;
    crowd->simulator = simulator;
    crowd->begun_ms = clock_wall_ms();
    CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    crowd->outgoing = outgoing_create("", 2);
    background_start(&crowd->background, "demo-players", run, crowd);
    return crowd;
}

void crowd_stop(struct crowd **at)
{
    struct crowd *crowd = memory_take(at);
    if (crowd == NULL)
        return;
    background_stop(&crowd->background);
    outgoing_destroy(&crowd->outgoing);
    curl_global_cleanup();
    memory_free(crowd->api);
    memory_free(crowd);
}
