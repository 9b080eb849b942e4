/* One thread plays for all players in turn, one round at a time. */
#include "demo/crowd.h"

#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yyjson.h>

#include "admission/key.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "demo/casino.h"
#include "launch/document.h"
#include "launch/outgoing.h"
#include "records/player.h"

#define TURN_MS 1000
#define CALL_MS 2000
#define ANSWER_MAX 16384U
#define STAKE_MINOR 100
#define GIVEN_MINOR 20000
#define SESSION_MS 600000 /* then the player launches again */

struct player {
    char id[PLAYER_ID_SIZE]; /* "": not launched yet */
    char launch_url[LAUNCH_URL_SIZE];
    int64_t launched_ms;
    uint64_t given; /* times it got money */
};

struct crowd {
    struct background background;
    struct crowd_options options;
    char *api;
    char key_field[KEY_SIZE + 16];
    int64_t begun_ms; /* part of its ids */
    struct outgoing *outgoing;
    struct player players[CROWD_MAX];
};

/* Posts to a path of the customers' API, or to another URL without the key. 0: no answer. */
static long PRINTF_LIKE(4, 5)
    post(struct crowd *crowd, const char *to, struct buffer *answer, const char *format, ...)
{
    char body[256];
    struct buffer url = {0};
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(body, sizeof body, format, arguments);
    va_end(arguments);
    CHECK(size > 0 && (size_t)size < sizeof body);
    buffer_append_format(&url, "%s%s", to[0] == '/' ? crowd->api : "", to);
    struct outgoing_post call = {
        .url = buffer_string(&url),
        .body = {body, (size_t)size},
        .fields = {"Content-Type: application/json", to[0] == '/' ? crowd->key_field : NULL},
        .timeout_ms = CALL_MS,
        .answer_max = ANSWER_MAX};
    long status = outgoing_wait(crowd->outgoing, &call, answer) ? call.status : 0;
    buffer_free(&url);
    return status;
}

static void copy_member(yyjson_doc *doc, const char *name, char *out, size_t size)
{
    const char *text = yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), name));
    (void)snprintf(out, size, "%s", text != NULL ? text : "");
}

static void take_turn(struct crowd *crowd, size_t number)
{
    struct player *player = &crowd->players[number];
    struct buffer answer = {0};
    int64_t now_ms = clock_wall_ms();
    if (player->id[0] == '\0' || now_ms - player->launched_ms > SESSION_MS) {
        long status = post(crowd, "/casino/games/" DEMO_GAME "/launch", &answer,
                           "{\"mode\":\"real\",\"player_reference\":\"demo-player-%zu\","
                           "\"currency\":\"EUR\"}",
                           number + 1);
        yyjson_doc *doc = status == 200 ? yyjson_read(answer.data, answer.size, 0) : NULL;
        copy_member(doc, "player_id", player->id, sizeof player->id);
        copy_member(doc, "launch_url", player->launch_url, sizeof player->launch_url);
        player->launched_ms = now_ms;
        yyjson_doc_free(doc);
    } else {
        long status = post(crowd, player->launch_url, &answer, "{\"stake_minor\":%zu}",
                           STAKE_MINOR * (1 + number % 3));
        if (status == 403 || status == 404)
            player->id[0] = '\0'; /* the launch is over */
        if (status == 422 &&      /* insufficient funds */
            post(crowd, "/casino/wallet", &answer,
                 "{\"operation\":\"CREDIT\",\"player_id\":\"%s\",\"transaction_id\":"
                 "\"demo-%lld-%zu-%llu\",\"amount_minor\":%d,\"currency\":\"EUR\"}",
                 player->id, (long long)crowd->begun_ms, number + 1,
                 (unsigned long long)player->given, GIVEN_MINOR) == 200)
            player->given++;
    }
    buffer_free(&answer);
}

static void look_at_events(struct crowd *crowd)
{
    struct simulator_facts facts;
    simulation_facts(crowd->options.simulation, &facts);
    for (int i = 0; i < SPORT_COUNT; i++)
        if (facts.standing[i].size > 0)
            odds_store_note_interest(crowd->options.odds, (enum sport)i, &facts.standing[i]);
}

static void run(void *argument)
{
    struct crowd *crowd = argument;
    uint64_t turn_ns = TURN_MS * 1000000ULL / crowd->options.players;
    for (size_t turn = 0; !background_sleep(&crowd->background, clock_monotonic_ns() + turn_ns);
         turn++) {
        size_t number = turn % crowd->options.players;
        if (number == 0)
            look_at_events(crowd);
        take_turn(crowd, number);
    }
}

struct crowd *crowd_start(const struct crowd_options *options)
{
    struct crowd *crowd = memory_alloc_zeroed(1, sizeof *crowd);
    CHECK(options->players > 0 && options->players <= CROWD_MAX);
    crowd->options = *options;
    crowd->api = memory_copy_string(options->api);
    crowd->begun_ms = clock_wall_ms();
    (void)snprintf(crowd->key_field, sizeof crowd->key_field, "X-Api-Key: %s", options->key);
    CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    crowd->outgoing = outgoing_create("", 2);
    background_start(&crowd->background, "demo-players", run, crowd);
    return crowd;
}

void crowd_stop(struct crowd **at)
{
    struct crowd *crowd = *at;
    *at = NULL;
    if (crowd == NULL)
        return;
    background_stop(&crowd->background);
    outgoing_destroy(&crowd->outgoing);
    curl_global_cleanup();
    OPENSSL_cleanse(crowd->key_field, sizeof crowd->key_field);
    memory_free(crowd->api);
    memory_free(crowd);
}
