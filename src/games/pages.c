/*
 * One serving thread's side of games: the table it holds, and the pages that were asked for lately,
 * ready to send.
 *
 * A page is made when it is first asked for after a change and kept with its entity tag and its
 * gzipped form, in a slot that is chosen by hash; another one with that hash takes its place. When
 * a change left a page as it was, the kept answer stays.
 */
#include "games/games.h"

#include "admission/error_rows.h"
#include "base/hash.h"
#include "base/memory.h"
#include "games/errors.h"

#define SLOTS 64U    /* pages that a thread keeps */
#define KEY_MAX 512U /* a longer query is answered without being kept */

struct slot {
    uint64_t generation; /* of the table that it was made from */
    char customer_id[CUSTOMER_ID_SIZE];
    bool sandbox;
    char query[KEY_MAX];
    size_t query_size;
    struct answer *answer; /* NULL: empty */
};

struct games_pages {
    struct refresher *games;
    struct table_hold hold;
    struct answer_counts counts;
    struct buffer body; /* scratch */
    struct slot slots[SLOTS];
};

struct games_pages *games_pages_create(struct games *games)
{
    struct games_pages *pages = memory_alloc_zeroed(1, sizeof *pages);
    pages->games = games_refresher(games);
    return pages;
}

void games_pages_destroy(struct games_pages **at)
{
    struct games_pages *pages = memory_take(at);
    if (pages == NULL)
        return;
    for (size_t i = 0; i < SLOTS; i++)
        answer_release(&pages->slots[i].answer);
    refresher_release(pages->games, &pages->hold);
    buffer_free(&pages->body);
    memory_free(pages);
}

const struct games_table *games_pages_table(struct games_pages *pages, uint64_t now_mono_ms)
{
    return refresher_confirmed(pages->games, &pages->hold, now_mono_ms);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static bool slot_is(const struct slot *slot, const char *customer_id, bool sandbox,
                    struct text query)
{
    return slot->answer != NULL && slot->sandbox == sandbox &&
           strcmp(slot->customer_id, customer_id) == 0 &&
           text_equals((struct text){slot->query, slot->query_size}, query);
}

static void slot_put(struct slot *slot, const char *customer_id, bool sandbox, struct text query,
                     uint64_t generation, struct answer *answer)
{
    bool same = slot_is(slot, customer_id, sandbox, query) &&
                text_equals(answer_body(slot->answer), answer_body(answer));
    slot->generation = generation;
    if (same) { /* keeps what is compressed already */
        answer_release(&answer);
        return;
    }
    answer_release(&slot->answer);
    slot->answer = answer;
    slot->sandbox = sandbox;
    memcpy(slot->customer_id, customer_id, sizeof slot->customer_id);
    if (query.size > 0)
        memcpy(slot->query, query.at, query.size);
    slot->query_size = query.size;
}

static void send_answer(struct http_request *request, struct answer *answer)
{
    struct http_message *message = answer_pick(answer, request);
    if (message == NULL) { /* gzip, which is not made yet; a page is small */
        answer_compress(answer);
        message = answer_pick(answer, request);
    }
    answer_reply(answer, request, message);
}

void games_route_list(struct games_pages *pages, struct http_request *request,
                      const char *customer_id, bool sandbox)
{
    struct games_query query;
    struct text text = request->query;
    const struct games_table *table = games_pages_table(pages, request->started_ns / 1000000U);
    struct slot *slot = &pages->slots[hash_text(hash_string(0, customer_id), text) % SLOTS];
    if (table != NULL && slot_is(slot, customer_id, sandbox, text) &&
        slot->generation == pages->hold.generation) {
        send_answer(request, slot->answer);
        return;
    }
    const char *flaw = games_query_parse(text, &query);
    buffer_clear(&pages->body);
    if (flaw == NULL && table == NULL) {
        http_reply_error(request, &error_games_unconfirmed);
        return;
    }
    if (flaw == NULL && !games_table_page(table, customer_id, sandbox, &query, &pages->body))
        flaw = GAMES_CURSOR_RULE;
    if (flaw != NULL) {
        games_reply_fault(request, STRICT_JSON_INVALID, flaw);
        return;
    }
    struct answer *answer = answer_create(buffer_text(&pages->body), &pages->counts);
    if (text.size <= KEY_MAX) {
        slot_put(slot, customer_id, sandbox, text, pages->hold.generation, answer);
        send_answer(request, slot->answer);
        return;
    }
    send_answer(request, answer);
    answer_release(&answer);
}
