/*
 * Asks whether the server's user may do what serving needs, by doing it: a user may not ask for its
 * own rights (ACL DRYRUN). The commands change nothing and bring little: they name an event and
 * members that do not exist, and a byte of a catalog. Redis's own error says what is missing.
 */
#include "stores/odds/redis/rights.h"

#include <string.h>

#include "stores/odds/redis/command.h"

static const struct asked {
    const char *command;
    const char *key;  /* NULL: none; of each sport in turn when it ends with ':' */
    const char *rest; /* follows the key, or the key and the sport */
    bool to_read;
} asked[] = {
    {"WATCH", "catalog:", "", true},
    {"GETRANGE", "catalog:", " 0 0", true},
    {"PTTL", "catalog:", "", true},
    {"GET", "odds:", ":0", true}, /* event 0 is the id of none */
    {"PTTL", "odds:", ":0", true},
    {"MULTI", NULL, "", true},
    {"EXEC", NULL, "", true},
    {"ZADD", "interest:", " XX GT 0 0", false},
    {"ZREMRANGEBYSCORE", "interest:", " 0 (0", false},
    /* The commands of the script of rate limits, and a script. */
    {"TIME", NULL, "", false},
    {"GET", "rate:0", "", false},
    {"SET", "rate:0", " 0 XX", false},
    {"EVAL", NULL, " return(0) 0", false},
};
#define ASKED (sizeof asked / sizeof asked[0])
#define STEPS_MAX (ASKED * SPORT_COUNT)

struct redis_rights {
    struct redis_call call; /* first */
    struct buffer commands;
    const struct asked *steps[STEPS_MAX];
    unsigned count;
    enum status status; /* of the first error that counts */
    bool refused;       /* it is a missing right, which counts most */
    struct error error;
};

static void append_step(struct redis_rights *rights, const struct asked *ask, const char *prefix,
                        const char *sport)
{
    if (ask->key == NULL)
        redis_command(&rights->commands, "%s%s", ask->command, ask->rest);
    else
        redis_command(&rights->commands, "%s %s%s%s%s", ask->command, prefix, ask->key, sport,
                      ask->rest);
    rights->steps[rights->count++] = ask;
}

static void on_reply(struct redis_call *call, unsigned index, const struct redis_reply *reply)
{
    struct redis_rights *rights = (struct redis_rights *)call;
    const struct asked *ask = rights->steps[index];
    bool refused = redis_reply_is_refusal(reply);
    /* Writing may be refused for a time, which is no missing right. */
    if (reply->type != REDIS_ERROR || rights->refused || !(refused || ask->to_read) ||
        (!refused && rights->status != STATUS_OK))
        return;
    struct buffer what = {0};
    buffer_append_format(&what, "%s%s%s", ask->command, ask->key != NULL ? " " : "",
                         ask->key != NULL ? ask->key : "");
    rights->refused = refused;
    rights->status = redis_error_of_reply(reply, buffer_string(&what), &rights->error);
    buffer_free(&what);
}

enum status redis_rights_ask(struct redis_link *link, const char *prefix, bool all,
                             struct error *error)
{
    struct redis_rights rights = {.status = STATUS_OK};
    for (const struct asked *ask = asked; ask < asked + ASKED; ask++) {
        bool each = ask->key != NULL && ask->key[strlen(ask->key) - 1] == ':';
        for (unsigned sport = 0; sport < (each ? SPORT_COUNT : 1) && (all || ask->to_read); sport++)
            append_step(&rights, ask, prefix, each ? sport_key((enum sport)sport) : "");
    }
    rights.call = (struct redis_call){
        .bytes = buffer_text(&rights.commands), .replies = rights.count, .reply = on_reply};
    enum status status =
        redis_link_ask(link, &rights.call, "the odds store does not answer", error);
    buffer_free(&rights.commands);
    if (status == STATUS_OK && rights.status != STATUS_OK && error != NULL)
        *error = rights.error;
    return status == STATUS_OK ? rights.status : status;
}
