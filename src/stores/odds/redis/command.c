/* Commands as bytes, and what error replies mean; see command.h. */
#include "stores/odds/redis/command.h"

#include <stdarg.h>

#include "stores/odds_engine.h"

#define WORDS_MAX 16U /* of a line */

/* ---- commands -------------------------------------------------------------------------------- */

/* A line of the protocol that begins an array or a string. */
static void append_size(struct buffer *out, char type, size_t size)
{
    buffer_append_char(out, type);
    buffer_append_u64(out, size);
    buffer_append(out, "\r\n", 2);
}

void redis_command_words(struct buffer *out, const struct text *words, size_t count)
{
    append_size(out, '*', count);
    for (size_t i = 0; i < count; i++) {
        append_size(out, '$', words[i].size);
        buffer_append_text(out, words[i]);
        buffer_append(out, "\r\n", 2);
    }
}

void redis_command(struct buffer *out, const char *format, ...)
{
    char line[REDIS_LINE_MAX + 1];
    struct text words[WORDS_MAX];
    size_t count = 0;
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    CHECK(size >= 0 && (size_t)size < sizeof line);
    for (struct text rest = text_of(line); rest.at != NULL; count++) {
        CHECK(count < WORDS_MAX);
        words[count] = text_cut(&rest, ' ');
    }
    redis_command_words(out, words, count);
}

void redis_command_probe(struct buffer *out, const char *prefix)
{
    redis_command(out, "PTTL %sodds:cricket:0", prefix);
}

void redis_command_auth(struct buffer *out, const struct redis_location *location)
{
    struct text user = text_of(location->user), password = text_of(location->password);
    bool has_user = location->user != NULL;
    const struct text words[] = {TEXT("AUTH"), has_user ? user : password, password};
    redis_command_words(out, words, has_user ? 3 : 2);
}

/* Cuts one command off `commands`, which this file has written. `name`: its first word. */
static struct text cut_command(struct text *commands, struct text *name)
{
    const char *start = commands->at;
    unsigned long words = strtoul(text_cut(commands, '\n').at + 1, NULL, 10);
    for (unsigned long i = 0; i < words; i++) {
        size_t size = strtoul(text_cut(commands, '\n').at + 1, NULL, 10);
        if (i == 0)
            *name = (struct text){commands->at, size};
        text_skip(commands, size + 2);
    }
    return (struct text){start, (size_t)(commands->at - start)};
}

void redis_command_asking(struct buffer *out, struct buffer *kinds, struct text commands)
{
    bool transaction = false;
    while (commands.size > 0) {
        struct text name = {0};
        struct text command = cut_command(&commands, &name);
        if (!transaction) {
            redis_command(out, "ASKING");
            buffer_append_char(kinds, 1);
        }
        buffer_append_text(out, command);
        buffer_append_char(kinds, 0);
        transaction =
            text_equals(name, TEXT("MULTI")) || (transaction && !text_equals(name, TEXT("EXEC")));
    }
}

/* ---- keys ------------------------------------------------------------------------------------ */

struct redis_key redis_key_of_value(const char *prefix, const struct odds_subject *subject)
{
    struct redis_key key;
    (void)odds_name_write(key.text, sizeof key.text, prefix, subject);
    return key;
}

struct redis_key redis_key_of_interest(const char *prefix, enum sport sport)
{
    struct redis_key key;
    (void)snprintf(key.text, sizeof key.text, "%sinterest:%s", prefix, sport_key(sport));
    return key;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static const struct {
    const char *start;
    enum status status;
} meanings[] = {
    {"OOM ", STATUS_FULL},     /* maxmemory */
    {"MISCONF ", STATUS_FULL}, /* the server cannot save its data */
    {"WRONGTYPE ", STATUS_MALFORMED},
    {REDIS_TOO_LARGE, STATUS_MALFORMED},
};

/* Errors of code ERR whose text is known not to repeat the command, which may hold a password. */
static const char *const harmless[] = {"ERR AUTH ",
                                       "ERR Client sent AUTH",
                                       "ERR DB index",
                                       "ERR invalid DB index",
                                       "ERR max number of clients",
                                       "ERR SELECT is not allowed in cluster mode",
                                       "ERR This instance has cluster support disabled"};

static bool may_be_shown(const char *text)
{
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
        if (strncmp(text, harmless[i], strlen(harmless[i])) == 0)
            return true;
    size_t code = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return text[code] == ' ' && strncmp(text, "ERR ", 4) != 0;
}

/* NOPERM may also be inside: "EXECABORT Transaction discarded because of: NOPERM …". */
bool redis_reply_is_refusal(const struct redis_reply *reply)
{
    return reply->type == REDIS_ERROR && strstr(reply->text.at, "NOPERM ") != NULL;
}

enum status redis_error_of_reply(const struct redis_reply *reply, const char *what,
                                 struct error *error)
{
    const char *text = reply->type == REDIS_ERROR ? reply->text.at : "";
    enum status status = STATUS_UNAVAILABLE;
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strncmp(text, meanings[i].start, strlen(meanings[i].start)) == 0)
            status = meanings[i].status;
    if (may_be_shown(text))
        return error_set(error, status, "%s: %.200s%s", what, text,
                         redis_reply_is_refusal(reply) ? "; rights: docs/operations.md"
                         : strncmp(text, "NOREPLICAS ", 11) == 0
                             ? "; it takes no writes while replicas are missing: docs/deployment.md"
                             : "");
    int size = (int)strcspn(text, " ");
    return error_set(error, status, "%s: unexpected answer %.*s", what, size < 32 ? size : 32,
                     text);
}
