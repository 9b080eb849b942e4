/*
 * One serving thread's side of games: the table it holds, and the pages that were asked for lately, ready
 * to send.
 *
 * A page is made when it is first asked for after a change and kept with its entity tag and its gzipped
 * form, in a slot that is chosen by hash; another one with that hash takes its place. When a change left
 * a page as it was, the kept answer stays.
 */
#include "games/internal.h"

#include <string.h>

#include "base/memory.h"

#define SLOTS 64U    /* pages that a thread keeps */
#define KEY_MAX 512U /* a longer query is answered without being kept */

struct slot {
    uint64_t generation; /* of the table that it was made from */
    char customer_id[CUSTOMER_ID_SIZE];
    char query[KEY_MAX];
    size_t query_size;
    struct answer *answer; /* NULL: empty */
};

struct games_desk {
    struct games *games;
    struct metrics_shard *metrics;
    struct games_edition *held;
    struct answer_tally tally;
    struct buffer body; /* scratch */
    struct slot slots[SLOTS];
};

struct games_desk *games_desk_create(struct games *games, struct metrics_shard *metrics)
{
    struct games_desk *desk = memory_alloc_zeroed(1, sizeof *desk);
    desk->games = games;
    desk->metrics = metrics;
    return desk;
}

void games_desk_destroy(struct games_desk **at)
{
    struct games_desk *desk = *at;
    *at = NULL;
    if (desk == NULL)
        return;
    for (size_t i = 0; i < SLOTS; i++)
        answer_release(&desk->slots[i].answer);
    games_exchange(desk->games, &desk->held, false);
    buffer_free(&desk->body);
    memory_free(desk);
}

const struct games_table *games_desk_table(struct games_desk *desk, uint64_t now_mono_ms)
{
    if (!games_confirmed(desk->games, now_mono_ms))
        return NULL;
    if (desk->held == NULL || desk->held->generation != games_generation(desk->games))
        games_exchange(desk->games, &desk->held, true);
    return desk->held == NULL ? NULL : desk->held->table;
}

/* ---- pages ------------------------------------------------------------------------------------------ */

static uint64_t hash(uint64_t seed, struct text text) /* FNV-1a */
{
    for (size_t i = 0; i < text.size; i++)
        seed = (seed ^ (unsigned char)text.at[i]) * 0x100000001B3U;
    return seed;
}

static struct slot *slot_of(struct games_desk *desk, const char *customer_id, struct text query)
{
    uint64_t value = hash(hash(0xCBF29CE484222325U, text_of(customer_id)), query);
    return &desk->slots[(value ^ (value >> 32)) % SLOTS];
}

static bool slot_is(const struct slot *slot, const char *customer_id, struct text query)
{
    return slot->answer != NULL && strcmp(slot->customer_id, customer_id) == 0 &&
           text_equals((struct text){slot->query, slot->query_size}, query);
}

static void slot_put(struct slot *slot, const char *customer_id, struct text query,
                     uint64_t generation, struct answer *answer)
{
    bool same = slot_is(slot, customer_id, query) && answer_equals(slot->answer, answer);
    slot->generation = generation;
    if (same) { /* keeps what is compressed already */
        answer_release(&answer);
        return;
    }
    answer_release(&slot->answer);
    slot->answer = answer;
    memcpy(slot->customer_id, customer_id, sizeof slot->customer_id);
    if (query.size > 0)
        memcpy(slot->query, query.at, query.size);
    slot->query_size = query.size;
}

static void send_answer(struct games_desk *desk, struct http_request *request,
                        struct answer *answer)
{
    struct http_message *message = answer_pick(answer, request);
    if (message == NULL) { /* gzip, which is not made yet; a page is small */
        answer_compress(answer);
        message = answer_pick(answer, request);
    }
    if (message->status == 304)
        metrics_add(desk->metrics, METRICS_NOT_MODIFIED, 1);
    http_reply_message(request, message);
}

/* The page, made anew. NULL: the cursor is not of this customer and query. */
static struct answer *make_page(struct games_desk *desk, const struct games_table *table,
                                const char *customer_id, const struct games_query *query)
{
    buffer_clear(&desk->body);
    if (!games_table_page(table, customer_id, query, &desk->body))
        return NULL;
    return answer_create(buffer_text(&desk->body), &desk->tally);
}

void games_route_list(struct games_desk *desk, struct http_request *request,
                      const char *customer_id)
{
    struct games_query query;
    struct text text = request->query;
    const struct games_table *table = games_desk_table(desk, request->started_ns / 1000000U);
    struct slot *slot = slot_of(desk, customer_id, text);
    if (table != NULL && slot_is(slot, customer_id, text) &&
        slot->generation == desk->held->generation) {
        send_answer(desk, request, slot->answer);
        return;
    }
    if (!games_query_parse(text, &query)) {
        http_reply_error(request, HTTP_ERROR_INVALID_REQUEST);
        return;
    }
    if (table == NULL) {
        http_reply_error(request, HTTP_ERROR_SECURITY_CONFIG_UNAVAILABLE);
        return;
    }
    struct answer *answer = make_page(desk, table, customer_id, &query);
    if (answer == NULL) {
        http_reply_error(request, HTTP_ERROR_INVALID_REQUEST);
        return;
    }
    if (text.size <= KEY_MAX) {
        slot_put(slot, customer_id, text, desk->held->generation, answer);
        send_answer(desk, request, slot->answer);
        return;
    }
    send_answer(desk, request, answer);
    answer_release(&answer);
}
