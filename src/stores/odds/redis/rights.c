/*
 * Asks whether the server's user may do what serving needs, by doing it: a user may not ask for its
 * own rights (ACL DRYRUN). The commands change nothing and bring little: they name an event and
 * members that do not exist, and a byte of a catalog. Redis's own error says what is missing.
 */

#include "stores/odds/redis/command.h"
#include "stores/odds/redis/store.h"

/* The keys of one sport stand for those of all, as rights are given by patterns of keys. */
static const struct asked {
    const char *command;
    const char *key;  /* "": none */
    const char *rest; /* follows the key */
} asked[] = {
    {"WATCH", "catalog:", "cricket"},
    {"GETRANGE", "catalog:", "cricket 0 0"},
    {"PTTL", "catalog:", "cricket"},
    {"GET", "odds:", "cricket:0"}, /* event 0 is the id of none */
    {"PTTL", "odds:", "cricket:0"},
    {"MULTI", "", ""},
    {"EXEC", "", ""},
    /* The rights from here on are for writing; those from TIME to EVAL are for the script of rate
     * limits. */
    {"ZADD", "interest:", "cricket XX GT 0 0"},
    {"ZREMRANGEBYSCORE", "interest:", "cricket 0 (0"},
    {"TIME", "", ""},
    {"GET", "rate:", "0"},
    {"SET", "rate:", "0 0 XX"},
    {"EVAL", "", "return(0) 0"},
    {"INFO", "", "memory"}, /* its policy, below */
};
#define ASKED (sizeof asked / sizeof asked[0])
#define ASKED_TO_READ 7U

struct redis_rights {
    struct redis_call call; /* first */
    enum status status;     /* of the first error that counts */
    bool refused;           /* it is a missing right, which counts most */
    struct error error;
};

static void on_reply(struct redis_call *call, unsigned index, const struct redis_reply *reply)
{
    struct redis_rights *rights = (struct redis_rights *)call;
    const struct asked *ask = &asked[index];
    char what[64];
    bool refused = redis_reply_is_refusal(reply);
    /* A server that evicts drops odds without a word. The status stays, as the server answers. */
    const char *policy =
        reply->type == REDIS_STRING ? strstr(reply->text.at, "maxmemory_policy:") : NULL;
    if (policy != NULL && strstr(policy, ":noeviction") == NULL && rights->status == STATUS_OK)
        (void)error_set(&rights->error, STATUS_OK, "Redis drops odds when memory is short: %.*s",
                        (int)strcspn(policy, "\r"), policy);
    /* The right was there. WRONGTYPE is about one sport's key, which its requests report. */
    if (call->redirected || text_starts_with(reply->text, TEXT("WRONGTYPE ")))
        return;
    if (reply->type != REDIS_ERROR || rights->refused || !(refused || index <= ASKED_TO_READ) ||
        (!refused && rights->status != STATUS_OK))
        return;
    (void)snprintf(what, sizeof what, "%s%s%s", ask->command, ask->key[0] != '\0' ? " " : "",
                   ask->key);
    rights->refused = refused;
    rights->status = redis_error_of_reply(reply, what, &rights->error);
    /* Memory, a disk or replicas are missing, and no right. */
    if (!refused && index == ASKED_TO_READ)
        rights->status = STATUS_READ_ONLY;
}

enum status redis_ping(struct odds_store *base, enum odds_need need, struct error *error)
{
    const struct redis_store *store = redis_store_of(base);
    struct redis_rights rights = {.status = STATUS_OK};
    struct buffer commands = {0};
    unsigned count = need == ODDS_TO_SERVE ? ASKED : ASKED_TO_READ;
    for (const struct asked *ask = asked; ask < asked + count; ask++) {
        bool bare = ask->key[0] == '\0' && ask->rest[0] == '\0';
        redis_command(&commands, "%s%s%s%s%s", ask->command, bare ? "" : " ",
                      ask->key[0] != '\0' ? store->prefix : "", ask->key, ask->rest);
    }
    rights.call =
        (struct redis_call){.bytes = buffer_text(&commands), .replies = count, .reply = on_reply};
    enum status status =
        redis_link_ask(redis_link_of(store), &rights.call, "the odds store does not answer", error);
    buffer_free(&commands);
    if (status == STATUS_OK && rights.error.text[0] != '\0' && error != NULL)
        *error = rights.error;
    return status == STATUS_OK ? rights.status : status;
}
