/*
 * Leases; see odds_lease.h. The script (lease.lua) runs in the server as one step and uses the
 * server's time, so its decisions depend on no other clock. Each lease, of which there are a few
 * dozen in a window, carries the whole script, so a server that was restarted lacks nothing.
 *
 * The key holds "START:USED", the second in which the window began and the units drawn in it since.
 * The key lives a little longer than the window, in case the clock is set back a little. A count
 * that began after the start of the present window is kept: the configured window has become
 * longer.
 */

#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds/redis/command.h"
#include "stores/odds/redis/store.h"

enum { GRANTED, LEFT, START, LEFT_US, STORE_MS, NUMBERS };

/* One lease under way. */
struct lease_call {
    struct redis_call call; /* first */
    struct redis_store *store;
    struct odds_lease *lease;
    struct buffer bytes;
    enum status reply; /* the outcome of the reply */
};

/* ---- the command ----------------------------------------------------------------------------- */

static void append_command(struct buffer *out, const char *prefix, const struct odds_lease *lease)
{
    const uint32_t numbers[] = {lease->window_seconds, lease->limit,      lease->demand,
                                lease->since,          lease->since_used, lease->since_spent};
    enum { COUNT = sizeof numbers / sizeof numbers[0] };
    struct redis_key key;
    char digits[COUNT][20];
    (void)snprintf(key.text, sizeof key.text, "%srate:%s", prefix, lease->client);
    struct text words[4 + COUNT] = {TEXT("EVAL"), text_of(redis_lease_script), TEXT("1"),
                                    text_of(key.text)};
    for (size_t i = 0; i < COUNT; i++)
        words[4 + i] = (struct text){digits[i], decimal_write(digits[i], numbers[i])};
    redis_command_words(out, words, 4 + COUNT);
}

/* ---- the reply ------------------------------------------------------------------------------- */

static void report_problem(struct redis_store *store, const struct error *error)
{
    if (!atomic_exchange(&store->lease_complained, true))
        log_event(store->log, LOG_WARNING, "the odds store does not lease rate limits",
                  LOG_STRING("reason", error->text));
}

static bool is_number(const struct redis_reply *reply, int64_t least, int64_t most)
{
    return reply->type == REDIS_INTEGER && reply->integer >= least && reply->integer <= most;
}

/* Checked, as what answers may be another server than it says it is. */
static bool read_numbers(const struct redis_reply *reply, struct odds_lease *lease)
{
    const int64_t limit = lease->limit;
    if (reply->type != REDIS_LIST || reply->count != NUMBERS)
        return false;
    const struct redis_reply *at = reply->elements;
    if (!is_number(&at[GRANTED], 0, limit) || !is_number(&at[LEFT], INT64_MIN / 2, limit) ||
        !is_number(&at[START], 0, UINT32_MAX) ||
        !is_number(&at[LEFT_US], 1, (int64_t)lease->window_seconds * 1000000) ||
        !is_number(&at[STORE_MS], 0, INT64_MAX / 2))
        return false;
    if (at[GRANTED].integer > 0 &&
        (at[LEFT].integer < 0 || at[GRANTED].integer + at[LEFT].integer > limit))
        return false;
    lease->granted = (uint32_t)at[GRANTED].integer;
    lease->left = at[LEFT].integer;
    lease->start = (uint32_t)at[START].integer;
    lease->left_us = (uint64_t)at[LEFT_US].integer;
    lease->store_ms = at[STORE_MS].integer;
    return true;
}

static void on_reply(struct redis_call *base, unsigned index, const struct redis_reply *reply)
{
    struct lease_call *call = (struct lease_call *)base;
    struct redis_store *store = call->store;
    struct error error;
    (void)index;
    if (reply->type == REDIS_ERROR) {
        call->reply = redis_error_of_reply(reply, "leasing a rate limit", &error);
        if (call->reply != STATUS_MALFORMED) /* which is of one key, and reported by who asked */
            report_problem(store, &error);
    } else if (read_numbers(reply, call->lease)) {
        call->reply = STATUS_OK;
        if (relaxed_load(&store->lease_complained))
            atomic_store(&store->lease_complained, false);
    } else {
        call->reply = STATUS_MALFORMED;
    }
}

static void on_done(struct redis_call *base, enum status status)
{
    struct lease_call *call = (struct lease_call *)base;
    struct odds_lease *lease = call->lease;
    if (status == STATUS_OK)
        status = call->reply;
    buffer_free(&call->bytes);
    memory_free(call);
    lease->answered_ns = clock_monotonic_ns();
    lease->result = status;
    lease->done(lease);
}

enum status redis_lease(struct odds_store *base, struct odds_lease *lease)
{
    struct redis_store *store = redis_store_of(base);
    struct lease_call *call = memory_alloc_zeroed(1, sizeof *call);
    call->store = store;
    call->lease = lease;
    append_command(&call->bytes, store->prefix, lease);
    /* The link sends it again after a lost connection. Units that were granted before the loss are
     * stranded, never spent twice. */
    call->call = (struct redis_call){.bytes = buffer_text(&call->bytes),
                                     .replies = 1,
                                     .again = true,
                                     .reply = on_reply,
                                     .done = on_done};
    enum status status = redis_link_submit(redis_link_of(store), &call->call);
    if (status != STATUS_PENDING) {
        buffer_free(&call->bytes);
        memory_free(call);
    }
    return status;
}
