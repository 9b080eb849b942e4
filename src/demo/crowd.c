/* One thread plays for all of them, one after the other: a round of one of them a turn. */
#include "demo/crowd.h"

#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "admission/key.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/strict_json.h"
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
#define SESSION_MS 600000 /* after which a player launches again */

struct one {
    char player_id[PLAYER_ID_SIZE]; /* "": not launched yet */
    char launch_url[LAUNCH_URL_SIZE];
    int64_t launched_ms;
    uint64_t given; /* times that it was given money */
};

struct crowd {
    struct background background;
    struct crowd_options options;
    char *api;
    char key_field[KEY_SIZE + 16];
    char run[24]; /* of its ids: the time of the start */
    struct outgoing *outgoing;
    struct one players[CROWD_MAX];
};

/* ---- a call ---------------------------------------------------------------------------------- */

struct call {
    struct outgoing_post post;
    struct buffer answer;
    long status; /* 0: none */
    bool over;
};

static void end_call(struct outgoing_post *post)
{
    struct call *call = post->context;
    call->over = true;
    if (post->result != OUTGOING_ANSWERED)
        return;
    call->status = post->status;
    buffer_append_text(&call->answer, buffer_text(&post->answer));
}

/* The status, with the answer in `answer`; 0: there was none. The key is for the customers' API
 * alone. */
static long post(struct crowd *crowd, const char *url, const char *key_field, struct text body,
                 struct buffer *answer)
{
    struct call call = {.post = {.url = url,
                                 .body = body,
                                 .fields = {"Content-Type: application/json", key_field},
                                 .timeout_ms = CALL_MS,
                                 .answer_max = ANSWER_MAX,
                                 .done = end_call}};
    call.post.context = &call;
    outgoing_start(crowd->outgoing, &call.post);
    while (!call.over)
        outgoing_turn(crowd->outgoing, CALL_MS);
    *answer = call.answer;
    return call.status;
}

/* ---- a player -------------------------------------------------------------------------------- */

/* Posts to a path of the customers' API. */
static long PRINTF_LIKE(4, 5)
    post_api(struct crowd *crowd, const char *path, struct buffer *answer, const char *format, ...)
{
    char body[256];
    struct buffer url = {0};
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(body, sizeof body, format, arguments);
    va_end(arguments);
    CHECK(size > 0 && (size_t)size < sizeof body);
    buffer_append_format(&url, "%s%s", crowd->api, path);
    long status = post(crowd, buffer_string(&url), crowd->key_field,
                       (struct text){body, (size_t)size}, answer);
    buffer_free(&url);
    return status;
}

static void launch(struct crowd *crowd, size_t number)
{
    static const struct text names[] = {TEXT_INIT("player_id"), TEXT_INIT("launch_url")};
    struct one *player = &crowd->players[number];
    struct text values[2];
    struct buffer answer = {0};
    long status = post_api(crowd, "/casino/games/" DEMO_GAME "/launch", &answer,
                           "{\"mode\":\"real\",\"player_reference\":\"demo-player-%zu\","
                           "\"currency\":\"EUR\"}",
                           number + 1);
    if (status == 200 &&
        strict_json_object(buffer_text(&answer), names, 2, values) != STRICT_JSON_INVALID &&
        strict_json_string(values[0], player->player_id, sizeof player->player_id) &&
        strict_json_string(values[1], player->launch_url, sizeof player->launch_url))
        player->launched_ms = clock_wall_ms();
    buffer_free(&answer);
}

static void give(struct crowd *crowd, size_t number)
{
    struct one *player = &crowd->players[number];
    struct buffer answer = {0};
    long status = post_api(crowd, "/casino/wallet", &answer,
                           "{\"operation\":\"CREDIT\",\"player_id\":\"%s\",\"transaction_id\":"
                           "\"demo-%s-%zu-%llu\",\"amount_minor\":%d,\"currency\":\"EUR\"}",
                           player->player_id, crowd->run, number + 1,
                           (unsigned long long)player->given, GIVEN_MINOR);
    if (status == 200)
        player->given++;
    buffer_free(&answer);
}

static void play(struct crowd *crowd, size_t number)
{
    struct one *player = &crowd->players[number];
    struct buffer answer = {0};
    char body[32];
    int size =
        snprintf(body, sizeof body, "{\"stake_minor\":%d}", STAKE_MINOR * (int)(1 + number % 3));
    long status = post(crowd, player->launch_url, NULL, (struct text){body, (size_t)size}, &answer);
    if (status == 422) /* insufficient funds */
        give(crowd, number);
    else if (status == 403 || status == 404)
        player->player_id[0] = '\0'; /* the launch is over */
    buffer_free(&answer);
}

static void take_turn(struct crowd *crowd, size_t number)
{
    struct one *player = &crowd->players[number];
    if (player->player_id[0] == '\0' || clock_wall_ms() - player->launched_ms > SESSION_MS)
        launch(crowd, number);
    else
        play(crowd, number);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void look_at_events(struct crowd *crowd)
{
    struct simulator_facts facts;
    simulation_facts(crowd->options.simulation, &facts);
    for (int i = 0; i < SPORT_COUNT; i++)
        if (facts.example[i].digits[0] != '\0')
            odds_store_note_interest(crowd->options.odds, (enum sport)i, &facts.example[i]);
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
    (void)snprintf(crowd->key_field, sizeof crowd->key_field, "X-Api-Key: %s", options->key);
    (void)snprintf(crowd->run, sizeof crowd->run, "%lld", (long long)clock_wall_ms());
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
