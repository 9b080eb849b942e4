/* Calls of the providers' wallet; see wallet_call.h. */
#include "demo/wallet_call.h"

#include "base/clock.h"
#include "launch/document.h"
#include "launch/outgoing.h"

#define ATTEMPTS 4U
#define ATTEMPT_MS 2000U
#define ANSWER_MAX 16384U

static const char provider_field[] = "X-Croupier-Provider: " DEMO_PROVIDER;

struct attempt {
    struct outgoing_post post;
    struct wallet_answer *answer;
    bool over;
};

/* A 500 or 503 leaves open what happened, as no answer does. */
static void end_attempt(struct outgoing_post *post)
{
    struct attempt *attempt = post->context;
    attempt->over = true;
    if (post->result != OUTGOING_ANSWERED || post->status >= 500)
        return;
    attempt->answer->status = post->status;
    buffer_append_text(&attempt->answer->body, buffer_text(&post->answer));
}

/* Signed each time: a timestamp is good for a minute. */
static void try_once(const char *url, const struct demo_secret *secret, struct outgoing *outgoing,
                     struct text document, struct wallet_answer *answer)
{
    struct launch_fields fields;
    launch_fields_make(&fields, clock_wall_ms() / 1000, document, secret->kid,
                       buffer_text(&secret->plain));
    struct attempt attempt = {
        .post = {.url = url,
                 .body = document,
                 .fields = {"Content-Type: application/json", provider_field, fields.lines[0],
                            fields.lines[1], fields.lines[2]},
                 .timeout_ms = ATTEMPT_MS,
                 .answer_max = ANSWER_MAX,
                 .done = end_attempt},
        .answer = answer,
    };
    attempt.post.context = &attempt;
    outgoing_start(outgoing, &attempt.post);
    while (!attempt.over)
        outgoing_turn(outgoing, ATTEMPT_MS);
}

void wallet_call(const char *url, const struct demo_secret *secret, struct text document,
                 struct wallet_answer *answer)
{
    struct outgoing *outgoing = outgoing_create("", 1);
    for (size_t i = 0; i < ATTEMPTS && answer->status == 0; i++)
        try_once(url, secret, outgoing, document, answer);
    outgoing_destroy(&outgoing);
}
