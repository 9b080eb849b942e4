/*
 * The feed's side of the Redis engine: plain SET, UNLINK, SCAN and sorted sets, waited for. Any
 * feed that can do the same may publish without croupier.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stores/odds/redis/redis.h"

#define FEED_TIMEOUT_MS 10000                  /* a publication may be large and the way slow */
#define BATCH_BYTES ((size_t)64 * 1024 * 1024) /* of one transaction; one change may have 32 MiB */
#define BATCH_CHANGES 4096
#define SCAN_COUNT "1000"
#define INTEREST_PAGE 10000

/* ---- keys ------------------------------------------------------------------------------------ */

void redis_key_of_value(struct buffer *out, const char *prefix, const struct odds_subject *subject)
{
    buffer_append_string(out, prefix);
    buffer_append_string(out, subject->kind == ODDS_CATALOG ? "catalog:" : "odds:");
    buffer_append_string(out, sport_key(subject->sport));
    if (subject->kind == ODDS_CATALOG)
        return;
    buffer_append_char(out, ':');
    buffer_append_text(out, event_id_text(&subject->event));
}

void redis_key_of_interest(struct buffer *out, const char *prefix, enum sport sport)
{
    buffer_append_format(out, "%sinterest:%s", prefix, sport_key(sport));
}

/* ---- publishing ------------------------------------------------------------------------------ */

static void append_change(struct buffer *out, const char *prefix, const struct odds_change *change)
{
    struct odds_subject subject = {.kind = change->kind, .sport = change->sport};
    if (change->kind == ODDS_MARKETS)
        subject.event = change->event;
    struct buffer key = {0};
    redis_key_of_value(&key, prefix, &subject);
    redis_command_begin(out, change->bytes == NULL ? 2 : 3);
    redis_command_word(out, change->bytes == NULL ? TEXT("UNLINK") : TEXT("SET"));
    redis_command_word(out, buffer_text(&key));
    if (change->bytes != NULL)
        redis_command_word(out, (struct text){change->bytes, change->size});
    buffer_free(&key);
}

static enum status ask(struct redis_link *link, const struct buffer *commands, unsigned replies,
                       const char *what, struct error *error)
{
    struct redis_call call = {
        .bytes = buffer_text(commands), .replies = replies, .timeout_ms = FEED_TIMEOUT_MS};
    return redis_link_ask(link, &call, what, error);
}

/* How many of the changes go into one transaction. */
static size_t batch_of(const struct odds_change *changes, size_t count)
{
    size_t bytes = 0;
    size_t taken = 0;
    while (taken < count && taken < BATCH_CHANGES &&
           (taken == 0 || bytes + changes[taken].size <= BATCH_BYTES))
        bytes += changes[taken++].size;
    return taken;
}

enum status redis_feed_publish(struct redis_link *link, const char *prefix,
                               const struct odds_change *changes, size_t count, struct error *error)
{
    enum status status = STATUS_OK;
    while (count > 0 && status == STATUS_OK) {
        size_t batch = batch_of(changes, count);
        struct buffer commands = {0};
        if (batch > 1)
            redis_command(&commands, "MULTI", NULL);
        for (size_t i = 0; i < batch; i++)
            append_change(&commands, prefix, &changes[i]);
        if (batch > 1)
            redis_command(&commands, "EXEC", NULL);
        unsigned replies = batch > 1 ? (unsigned)batch + 2 : 1;
        status = ask(link, &commands, replies, "cannot publish", error);
        buffer_free(&commands);
        changes += batch;
        count -= batch;
    }
    return status;
}

/* ---- walking the keys of a sport ------------------------------------------------------------- */

struct page {
    struct redis_call call; /* first */
    struct buffer cursor;
    void (*each)(void *context, struct text key);
    void *context;
};

static void on_page(struct redis_call *call, unsigned index, const struct redis_reply *reply)
{
    struct page *page = (struct page *)call;
    (void)index;
    buffer_clear(&page->cursor);
    if (reply->type != REDIS_LIST || reply->count != 2 || reply->elements[0].type != REDIS_STRING ||
        reply->elements[1].type != REDIS_LIST)
        return;
    buffer_append(&page->cursor, reply->elements[0].text.at, reply->elements[0].text.size);
    const struct redis_reply *keys = &reply->elements[1];
    for (size_t i = 0; i < keys->count; i++)
        if (keys->elements[i].type == REDIS_STRING)
            page->each(page->context,
                       (struct text){keys->elements[i].text.at, keys->elements[i].text.size});
}

/* "PREFIXodds:SPORT:", and as a pattern that matches what begins so. */
static void append_start(struct buffer *out, const char *prefix, enum sport sport, bool pattern)
{
    for (const char *at = prefix; *at != '\0'; at++) {
        if (pattern && strchr("*?[]\\^-", *at) != NULL)
            buffer_append_char(out, '\\');
        buffer_append_char(out, *at);
    }
    buffer_append_format(out, "odds:%s:%s", sport_key(sport), pattern ? "*" : "");
}

/* Asks for one page after another; `between` (may be NULL) does something with each. */
static enum status walk(struct redis_link *link, const char *prefix, enum sport sport,
                        struct page *page,
                        enum status (*between)(struct redis_link *, void *, struct error *),
                        struct error *error)
{
    struct buffer pattern = {0};
    append_start(&pattern, prefix, sport, true);
    buffer_append_char(&page->cursor, '0');
    enum status status = STATUS_OK;
    do {
        struct buffer commands = {0};
        redis_command(&commands, "SCAN", buffer_string(&page->cursor), "MATCH",
                      buffer_string(&pattern), "COUNT", SCAN_COUNT, NULL);
        page->call = (struct redis_call){.bytes = buffer_text(&commands),
                                         .replies = 1,
                                         .timeout_ms = FEED_TIMEOUT_MS,
                                         .reply = on_page};
        status = redis_link_ask(link, &page->call, "cannot list the odds of a sport", error);
        buffer_free(&commands);
        if (status == STATUS_OK && between != NULL)
            status = between(link, page->context, error);
    } while (status == STATUS_OK && page->cursor.size > 0 &&
             !text_equals(buffer_text(&page->cursor), TEXT("0")));
    buffer_free(&page->cursor);
    buffer_free(&pattern);
    return status;
}

/* ---- withdrawing a sport --------------------------------------------------------------------- */

struct withdrawing {
    struct buffer words; /* of UNLINK */
    size_t count;
};

static void withdraw_key(void *context, struct text key)
{
    struct withdrawing *withdrawing = context;
    redis_command_word(&withdrawing->words, key);
    withdrawing->count++;
}

static enum status unlink_page(struct redis_link *link, void *context, struct error *error)
{
    struct withdrawing *withdrawing = context;
    if (withdrawing->count == 0)
        return STATUS_OK;
    struct buffer commands = {0};
    redis_command_begin(&commands, withdrawing->count + 1);
    redis_command_word(&commands, TEXT("UNLINK"));
    buffer_append_text(&commands, buffer_text(&withdrawing->words));
    enum status status = ask(link, &commands, 1, "cannot withdraw", error);
    buffer_free(&commands);
    buffer_clear(&withdrawing->words);
    withdrawing->count = 0;
    return status;
}

enum status redis_feed_withdraw_sport(struct redis_link *link, const char *prefix, enum sport sport,
                                      struct error *error)
{
    /* The catalog first: without it nothing of the sport is dealt any more. */
    const struct odds_change catalog = {.kind = ODDS_CATALOG, .sport = sport};
    enum status status = redis_feed_publish(link, prefix, &catalog, 1, error);
    if (status != STATUS_OK)
        return status;
    struct withdrawing withdrawing = {0};
    struct page page = {.each = withdraw_key, .context = &withdrawing};
    status = walk(link, prefix, sport, &page, unlink_page, error);
    buffer_free(&withdrawing.words);
    return status;
}

/* ---- listing events -------------------------------------------------------------------------- */

struct listing {
    size_t start; /* the length of what is before the id */
    struct event_id *list;
    size_t count;
    size_t capacity;
};

static void list_key(void *context, struct text key)
{
    struct listing *listing = context;
    struct event_id event;
    if (key.size <= listing->start)
        return;
    struct text digits = {key.at + listing->start, key.size - listing->start};
    /* A key that writes its number otherwise is never asked for. */
    if (event_id_parse(digits, &event) != STATUS_OK || event.size != digits.size)
        return;
    if (listing->count == listing->capacity) {
        listing->capacity = listing->capacity > 0 ? 2 * listing->capacity : 64;
        listing->list = memory_resize(listing->list, listing->capacity * sizeof *listing->list);
    }
    listing->list[listing->count++] = event;
}

static int by_digits(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct event_id));
}

enum status redis_feed_list_events(struct redis_link *link, const char *prefix, enum sport sport,
                                   struct event_id **list, size_t *count, struct error *error)
{
    struct buffer start = {0};
    append_start(&start, prefix, sport, false);
    struct listing listing = {.start = start.size};
    struct page page = {.each = list_key, .context = &listing};
    enum status status = walk(link, prefix, sport, &page, NULL, error);
    buffer_free(&start);
    if (status != STATUS_OK) {
        memory_free(listing.list);
        return status;
    }
    /* SCAN may name a key twice. */
    size_t kept = 0;
    if (listing.count > 0)
        qsort(listing.list, listing.count, sizeof *listing.list, by_digits);
    for (size_t i = 0; i < listing.count; i++)
        if (kept == 0 || by_digits(&listing.list[kept - 1], &listing.list[i]) != 0)
            listing.list[kept++] = listing.list[i];
    *list = listing.list;
    *count = kept;
    return STATUS_OK;
}

/* ---- listing interest ------------------------------------------------------------------------ */

struct interest_page {
    struct redis_call call; /* first */
    struct odds_interest *list;
    size_t count;
    size_t capacity;
    size_t came; /* of this page, usable or not */
};

static void on_interest(struct redis_call *call, unsigned index, const struct redis_reply *reply)
{
    struct interest_page *page = (struct interest_page *)call;
    (void)index;
    page->came = 0;
    if (reply->type != REDIS_LIST)
        return;
    page->came = reply->count;
    for (size_t i = 0; i < reply->count; i++) {
        const struct redis_reply *pair = &reply->elements[i];
        struct odds_interest entry;
        if (pair->type != REDIS_LIST || pair->count != 2)
            continue;
        const struct redis_reply *member = &pair->elements[0];
        const struct redis_reply *score = &pair->elements[1];
        if (member->type != REDIS_STRING || score->type != REDIS_STRING ||
            event_id_parse(member->text, &entry.event) != STATUS_OK)
            continue;
        double milliseconds = strtod(score->text.at, NULL);
        if (!(milliseconds >= 0 && milliseconds < 9e15))
            continue;
        entry.requested_ms = (int64_t)milliseconds;
        if (page->count == page->capacity) {
            page->capacity = page->capacity > 0 ? 2 * page->capacity : 64;
            page->list = memory_resize(page->list, page->capacity * sizeof *page->list);
        }
        page->list[page->count++] = entry;
    }
}

static int by_event_then_latest(const void *a, const void *b)
{
    const struct odds_interest *left = a;
    const struct odds_interest *right = b;
    int order = memcmp(&left->event, &right->event, sizeof left->event);
    if (order != 0)
        return order;
    return left->requested_ms > right->requested_ms ? -1 : left->requested_ms < right->requested_ms;
}

static int latest_first(const void *a, const void *b)
{
    const struct odds_interest *left = a;
    const struct odds_interest *right = b;
    if (left->requested_ms != right->requested_ms)
        return left->requested_ms > right->requested_ms ? -1 : 1;
    return strcmp(left->event.digits, right->event.digits);
}

/* What was asked for again between two pages stands in both. */
static size_t remove_doubles(struct odds_interest *list, size_t count)
{
    size_t kept = 0;
    if (count > 0)
        qsort(list, count, sizeof *list, by_event_then_latest);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !event_id_equals(&list[kept - 1].event, &list[i].event))
            list[kept++] = list[i];
    if (kept > 0)
        qsort(list, kept, sizeof *list, latest_first);
    return kept;
}

enum status redis_feed_list_interest(struct redis_link *link, const char *prefix, enum sport sport,
                                     int64_t since_ms, struct odds_interest **list, size_t *count,
                                     struct error *error)
{
    struct interest_page page = {.came = INTEREST_PAGE};
    struct buffer key = {0};
    redis_key_of_interest(&key, prefix, sport);
    enum status status = STATUS_OK;
    for (size_t offset = 0; status == STATUS_OK && page.came == INTEREST_PAGE;
         offset += INTEREST_PAGE) {
        char since[24];
        char from[24];
        char most[24];
        (void)snprintf(since, sizeof since, "%lld", (long long)since_ms);
        (void)snprintf(from, sizeof from, "%zu", offset);
        (void)snprintf(most, sizeof most, "%d", INTEREST_PAGE);
        struct buffer commands = {0};
        redis_command(&commands, "ZREVRANGEBYSCORE", buffer_string(&key), "+inf", since,
                      "WITHSCORES", "LIMIT", from, most, NULL);
        page.call = (struct redis_call){.bytes = buffer_text(&commands),
                                        .replies = 1,
                                        .timeout_ms = FEED_TIMEOUT_MS,
                                        .reply = on_interest};
        status = redis_link_ask(link, &page.call, "cannot list the interest in a sport", error);
        buffer_free(&commands);
    }
    buffer_free(&key);
    if (status != STATUS_OK) {
        memory_free(page.list);
        return status == STATUS_MALFORMED ? STATUS_UNAVAILABLE : status;
    }
    *count = remove_doubles(page.list, page.count);
    *list = page.list;
    return STATUS_OK;
}
