/*
 * Keys that hold something else than they should, said in the log. See redis.h.
 *
 * An error says only that the type is another one. Which it is the server is asked with TYPE, in a
 * call of its own, behind what it is about; a user who may not ask that, and a server that is gone
 * meanwhile, leave it unsaid.
 */
#include "base/memory.h"
#include "stores/odds/redis/redis.h"

#define TYPE_NAME_MAX 32 /* of what is repeated; modules have types of their own */

struct misfit {
    struct redis_call call; /* first */
    struct log *log;
    char *key;
    const char *needed;
    struct buffer command;
    char type[TYPE_NAME_MAX + 1]; /* empty: not known */
};

static void say(struct log *log, const char *key, const char *holds, const char *needed)
{
    log_event(log, LOG_WARNING, "a key of the odds store cannot be used", LOG_STRING("key", key),
              LOG_STRING("holds", holds), LOG_STRING("needed", needed));
}

static void on_type(struct redis_call *call, unsigned index, const struct redis_reply *reply)
{
    struct misfit *misfit = (struct misfit *)call;
    (void)index;
    if (reply->type == REDIS_STATUS)
        (void)snprintf(misfit->type, sizeof misfit->type, "%s", reply->text.at);
}

static void on_done(struct redis_call *call, enum status status)
{
    struct misfit *misfit = (struct misfit *)call;
    (void)status;
    say(misfit->log, misfit->key, misfit->type[0] != '\0' ? misfit->type : "another type",
        misfit->needed);
    buffer_free(&misfit->command);
    memory_free(misfit->key);
    memory_free(misfit);
}

void redis_misfit_report(struct redis_link *link, struct log *log, const char *key,
                         const char *needed, const struct redis_reply *reply)
{
    if (!redis_reply_is_wrong_type(reply)) {
        say(log, key, "more than 32 MiB", needed);
        return;
    }
    struct misfit *misfit = memory_alloc_zeroed(1, sizeof *misfit);
    misfit->log = log;
    misfit->key = memory_copy_string(key);
    misfit->needed = needed;
    redis_command(&misfit->command, "TYPE", key, NULL);
    misfit->call = (struct redis_call){
        .bytes = buffer_text(&misfit->command), .replies = 1, .reply = on_type, .done = on_done};
    if (redis_link_submit(link, &misfit->call) != STATUS_PENDING)
        on_done(&misfit->call, STATUS_UNAVAILABLE);
}
