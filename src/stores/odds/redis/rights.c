/*
 * What serving needs of the server's user, asked by doing it: a user of its own may not ask for its
 * rights (ACL DRYRUN). Each command is sent once for every sport, to keys of every kind, in a form
 * that changes nothing and brings little: to an event and to members that do not exist, a byte of a
 * catalog. What is refused is named as the rule that is missing, as `ACL SETUSER` takes it.
 */
#include <string.h>

#include "base/memory.h"
#include "stores/odds/redis/redis.h"

enum key_kind { KEY_NONE, KEY_CATALOG, KEY_ODDS, KEY_INTEREST, KEY_RATE };
#define KEY_KINDS 5
static const char *const kind_names[KEY_KINDS] = {"", "catalog:", "odds:", "interest:", "rate:"};

#define NO_EVENT "0" /* the id of none */

/* The commands that a lease's script calls; names those that it may not. */
#define SCRIPT                                                                               \
    "local refused = {}\n"                                                                   \
    "for _, words in ipairs({{'TIME'}, {'GET', KEYS[1]}, {'SET', KEYS[1], '0', 'XX'}}) do\n" \
    "  local answer = redis.pcall(unpack(words))\n"                                          \
    "  local text = type(answer) == 'table' and answer.err or ''\n"                          \
    "  if string.find(text, 'permission') or string.find(text, \"can't run\") then\n"        \
    "    refused[#refused + 1] = words[1]\n"                                                 \
    "  end\n"                                                                                \
    "end\n"                                                                                  \
    "return refused\n"

#define WORDS_MAX 4

/* The key is the first word after the command, and the third of a script. */
static const struct asked {
    const char *command;
    enum key_kind key;
    const char *script;
    const char *words[WORDS_MAX]; /* after the key */
    bool to_read;
} asked[] = {
    {"WATCH", KEY_CATALOG, NULL, {NULL}, true},
    {"GETRANGE", KEY_CATALOG, NULL, {"0", "0"}, true},
    {"PTTL", KEY_CATALOG, NULL, {NULL}, true},
    {"GET", KEY_ODDS, NULL, {NULL}, true},
    {"PTTL", KEY_ODDS, NULL, {NULL}, true},
    {"ZADD", KEY_INTEREST, NULL, {"XX", "GT", "0", NO_EVENT}, false},
    {"ZREMRANGEBYSCORE", KEY_INTEREST, NULL, {"0", "(0"}, false},
    {"EVAL", KEY_RATE, SCRIPT, {NULL}, false},
    {"MULTI", KEY_NONE, NULL, {NULL}, true},
    {"EXEC", KEY_NONE, NULL, {NULL}, true},
};
#define ASKED (sizeof asked / sizeof asked[0])

struct redis_rights {
    struct redis_call call; /* first */
    struct buffer commands;
    const char *prefix;
    struct step {
        const struct asked *asked;
        enum sport sport;
    } steps[ASKED * SPORT_COUNT];
    unsigned count;
    unsigned answered;
    bool commands_refused[ASKED];
    unsigned keys_refused[KEY_KINDS]; /* a bit a sport */
    struct buffer scripted;           /* rules for what a script may not call */
    enum status other;                /* of the first error that is no missing right; OK: none */
    struct error error;
    void *owner; /* of one that is not waited for */
    redis_rights_known *known;
};

/* ---- asking ---------------------------------------------------------------------------------- */

/* A key of that kind that means nothing. */
static void append_key(struct buffer *out, const char *prefix, enum key_kind kind, enum sport sport)
{
    buffer_append_format(out, "%s%s", prefix, kind_names[kind]);
    if (kind !=
        KEY_RATE) /* budgets are named after customers and addresses, none of which is empty */
        buffer_append_string(out, sport_key(sport));
    if (kind == KEY_ODDS)
        buffer_append_string(out, ":" NO_EVENT);
}

static void append_step(struct redis_rights *rights, const struct asked *ask, enum sport sport)
{
    size_t words = 0;
    while (words < WORDS_MAX && ask->words[words] != NULL)
        words++;
    size_t before = (ask->script != NULL ? 2U : 0U) + (ask->key != KEY_NONE ? 1U : 0U);
    redis_command_begin(&rights->commands, 1 + before + words);
    redis_command_word(&rights->commands, text_of(ask->command));
    if (ask->script != NULL) {
        redis_command_word(&rights->commands, text_of(ask->script));
        redis_command_word(&rights->commands, TEXT("1"));
    }
    if (ask->key != KEY_NONE) {
        struct buffer key = {0};
        append_key(&key, rights->prefix, ask->key, sport);
        redis_command_word(&rights->commands, buffer_text(&key));
        buffer_free(&key);
    }
    for (size_t i = 0; i < words; i++)
        redis_command_word(&rights->commands, text_of(ask->words[i]));
    rights->steps[rights->count++] = (struct step){ask, sport};
}

static bool is_of_each_sport(const struct asked *ask)
{
    return ask->key != KEY_NONE && ask->key != KEY_RATE;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Redis names what it refuses, in words that differ from version to version. */
static bool is_of_a_key(const struct redis_reply *reply)
{
    return strstr(reply->text.at, " key") != NULL && strstr(reply->text.at, " command") == NULL;
}

static void append_rule(struct buffer *out, const char *command)
{
    buffer_append_string(out, " +");
    for (; *command != '\0'; command++)
        buffer_append_char(out, (char)(*command | 0x20)); /* lower case */
}

static void take_refused(struct redis_rights *rights, const char *command)
{
    for (size_t i = 0; i < ASKED; i++) {
        if (strcmp(asked[i].command, command) == 0) {
            rights->commands_refused[i] = true;
            return;
        }
    }
    append_rule(&rights->scripted, command);
}

static void take_script(struct redis_rights *rights, const struct redis_reply *reply)
{
    for (size_t i = 0; i < reply->count && i < WORDS_MAX; i++)
        if (reply->elements[i].type == REDIS_STRING && reply->elements[i].text.size < 8)
            take_refused(rights, reply->elements[i].text.at);
}

static void on_reply(struct redis_call *call, unsigned index, const struct redis_reply *reply)
{
    struct redis_rights *rights = (struct redis_rights *)call;
    const struct step *step = &rights->steps[index];
    rights->answered++;
    if (reply->type == REDIS_LIST && step->asked->script != NULL) {
        take_script(rights, reply);
        return;
    }
    if (reply->type != REDIS_ERROR)
        return;
    if (!redis_reply_is_refusal(reply)) {
        /* Writing may be refused for a time, and a script is not always there. */
        if (rights->other == STATUS_OK && step->asked->to_read)
            rights->other = redis_error_of_reply(reply, step->asked->command, &rights->error);
    } else if (is_of_a_key(reply)) {
        rights->keys_refused[step->asked->key] |= SPORT_BIT(step->sport);
    } else {
        rights->commands_refused[step->asked - asked] = true;
    }
}

static bool is_listed(const struct redis_rights *rights, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (rights->commands_refused[i] && strcmp(asked[i].command, asked[at].command) == 0)
            return true;
    return false;
}

/* " ~odds:*", or one for each sport when some are permitted. */
static void append_missing_keys(const struct redis_rights *rights, enum key_kind kind,
                                struct buffer *out)
{
    unsigned refused = rights->keys_refused[kind];
    const char *after = kind == KEY_ODDS ? ":*" : "";
    if (refused == SPORT_SET_ALL || (refused != 0 && kind == KEY_RATE)) {
        buffer_append_format(out, " ~%s%s*", rights->prefix, kind_names[kind]);
        return;
    }
    for (unsigned sport = 0; sport < SPORT_COUNT; sport++)
        if ((refused & SPORT_BIT(sport)) != 0)
            buffer_append_format(out, " ~%s%s%s%s", rights->prefix, kind_names[kind],
                                 sport_key((enum sport)sport), after);
}

/* " +get +pttl ~odds:*"; empty: nothing is missing. */
static void append_missing(const struct redis_rights *rights, struct buffer *out)
{
    for (size_t i = 0; i < ASKED; i++)
        if (rights->commands_refused[i] && !is_listed(rights, i))
            append_rule(out, asked[i].command);
    buffer_append_text(out, buffer_text(&rights->scripted));
    for (int kind = KEY_CATALOG; kind < KEY_KINDS; kind++)
        append_missing_keys(rights, (enum key_kind)kind, out);
}

/* ---- both ways ------------------------------------------------------------------------------- */

static struct redis_rights *prepare(const char *prefix, bool all)
{
    struct redis_rights *rights = memory_alloc_zeroed(1, sizeof *rights);
    rights->prefix = prefix;
    for (size_t i = 0; i < ASKED; i++) {
        unsigned sports = is_of_each_sport(&asked[i]) ? SPORT_COUNT : 1;
        for (unsigned sport = 0; sport < sports && (all || asked[i].to_read); sport++)
            append_step(rights, &asked[i], (enum sport)sport);
    }
    rights->call = (struct redis_call){
        .bytes = buffer_text(&rights->commands), .replies = rights->count, .reply = on_reply};
    return rights;
}

static void finish(struct redis_rights *rights)
{
    buffer_free(&rights->commands);
    buffer_free(&rights->scripted);
    memory_free(rights);
}

/* All has been answered. */
static enum status judge(const struct redis_rights *rights, struct error *error)
{
    struct buffer missing = {0};
    append_missing(rights, &missing);
    enum status status = rights->other;
    if (missing.size > 0)
        status = error_set(error, STATUS_UNAVAILABLE, "the user lacks rights:%s",
                           buffer_string(&missing));
    else if (error != NULL)
        *error = rights->error;
    buffer_free(&missing);
    return status;
}

enum status redis_rights_ask(struct redis_link *link, const char *prefix, bool all,
                             struct error *error)
{
    struct redis_rights *rights = prepare(prefix, all);
    /* That there is an error among the answers does not say that one is missing. */
    enum status status =
        redis_link_ask(link, &rights->call, "the odds store does not answer", error);
    if (rights->answered == rights->count)
        status = judge(rights, error);
    finish(rights);
    return status;
}

static void on_done(struct redis_call *call, enum status status)
{
    struct redis_rights *rights = (struct redis_rights *)call;
    struct error error = {{0}};
    if (status == STATUS_OK)
        status = judge(rights, &error);
    rights->known(rights->owner, status, error.text);
    finish(rights);
}

enum status redis_rights_begin(struct redis_link *link, const char *prefix, void *owner,
                               redis_rights_known *known)
{
    struct redis_rights *rights = prepare(prefix, true);
    rights->owner = owner;
    rights->known = known;
    rights->call.done = on_done;
    enum status status = redis_link_submit(link, &rights->call);
    if (status != STATUS_PENDING)
        finish(rights);
    return status;
}
