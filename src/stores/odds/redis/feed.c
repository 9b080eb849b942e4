/*
 * The feed's side of the Redis engine: SET, UNLINK, SCAN, a script of PEXPIRE and sorted sets.
 * Another feed may publish with the same commands.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds/redis/command.h"
#include "stores/odds/redis/store.h"

#define FEED_TIMEOUT_MS 10000                  /* for a large publication over a slow network */
#define BATCH_BYTES ((size_t)64 * 1024 * 1024) /* of one transaction; one change has up to 32 MiB */
#define BATCH_CHANGES 4096
#define CANNOT_PUBLISH "cannot publish"
#define SCAN_COUNT "1000"
#define MOVING_NS 50000000 /* until keys that are being moved are listed once more */
#define INTEREST_PAGE 10000

/* ---- publishing ------------------------------------------------------------------------------ */

static void append_renewal(struct buffer *out, const char *key, const struct odds_change *change)
{
    char hex[2 * DIGEST_SHA1_SIZE], milliseconds[16];
    hex_write(hex, change->renewed, sizeof change->renewed);
    (void)snprintf(milliseconds, sizeof milliseconds, "%" PRIu32 "000", change->expires_s);
    const struct text words[] = {TEXT("EVAL"),      text_of(redis_renewal_script),
                                 TEXT("1"),         text_of(key),
                                 {hex, sizeof hex}, text_of(milliseconds)};
    redis_command_words(out, words, sizeof words / sizeof words[0]);
}

static void append_change(struct buffer *out, const char *prefix, const struct odds_change *change)
{
    struct odds_subject subject = odds_subject_of(change->kind, change->sport, &change->event);
    struct redis_key key = redis_key_of_value(prefix, &subject);
    if (change->renew) {
        append_renewal(out, key.text, change);
        return;
    }
    if (change->bytes == NULL) {
        redis_command(out, "UNLINK %s", key.text);
        return;
    }
    char milliseconds[16] = "";
    if (change->expires_s > 0)
        (void)snprintf(milliseconds, sizeof milliseconds, "%" PRIu32 "000", change->expires_s);
    const struct text words[] = {TEXT("SET"),
                                 text_of(key.text),
                                 {change->bytes, change->size},
                                 TEXT("PX"),
                                 text_of(milliseconds)};
    redis_command_words(out, words, change->expires_s > 0 ? 5 : 3);
}

/* The replies to append_changes of so many changes. A transaction has replies to MULTI and EXEC
 * too. */
static unsigned replies_to(size_t count)
{
    return count > 1 ? (unsigned)count + 2 : 1;
}

/* One command, or a transaction of several. */
static void append_changes(struct buffer *out, const char *prefix,
                           const struct odds_change *changes, size_t count)
{
    if (count > 1)
        redis_command(out, "MULTI");
    for (size_t i = 0; i < count; i++)
        append_change(out, prefix, &changes[i]);
    if (count > 1)
        redis_command(out, "EXEC");
}

/* A list of publications under way. It belongs to the I/O thread once it is submitted. */
struct sending {
    struct redis_call call; /* first */
    struct buffer commands;
    struct odds_publishing *publishing;
    /* Those that are not over, in their order. STATUS_PENDING: redirected, to be sent again.
     * STATUS_CONFLICT: published, and to be sent again after an earlier one with the same key. */
    struct odds_publication **left;
    size_t left_count;
    size_t next;           /* of these: the next replies are about it */
    unsigned replies_left; /* to that publication */
    struct redis_store *store;
    bool counts; /* failures, which the verb does not return */
};

static void fail(struct odds_publication *publication, enum status status,
                 const struct error *error)
{
    if (publication->status != STATUS_OK) /* the first error says the most */
        return;
    publication->status = status;
    publication->reason = memory_copy_string(error->text);
}

/* A node of a cluster that redirects one of its commands has carried out none of them. */
static void note_redirect(struct odds_publication *publication)
{
    memory_free(publication->reason);
    publication->reason = NULL;
    publication->status = STATUS_PENDING;
}

static void note_error(struct odds_publication *publication, const struct redis_reply *reply)
{
    struct error error;
    if (reply->type != REDIS_ERROR)
        return;
    enum status status = redis_error_of_reply(reply, CANNOT_PUBLISH, &error);
    fail(publication, status, &error);
}

/* The publication, or the next one that was sent. */
static void expect(struct sending *sending)
{
    while (sending->next < sending->left_count &&
           sending->left[sending->next]->status == STATUS_CONFLICT)
        sending->next++;
    if (sending->next < sending->left_count)
        sending->replies_left = replies_to(sending->left[sending->next]->count);
}

static void on_published(struct redis_call *call, unsigned index, const struct redis_reply *reply)
{
    struct sending *sending = (struct sending *)call;
    struct odds_publication *publication = sending->left[sending->next];
    (void)index;
    if (call->redirected)
        note_redirect(publication);
    else
        note_error(publication, reply);
    for (size_t i = 0; reply->type == REDIS_LIST && i < reply->count; i++)
        note_error(publication, &reply->elements[i]); /* of EXEC */
    if (--sending->replies_left > 0)
        return;
    sending->next++;
    expect(sending);
}

static bool share_a_key(const struct odds_publication *a, const struct odds_publication *b)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t j = 0; j < b->count; j++) {
            const struct odds_change *one = &a->changes[i];
            const struct odds_change *other = &b->changes[j];
            if (one->kind == other->kind && one->sport == other->sport &&
                (one->kind == ODDS_CATALOG || event_id_equals(&one->event, &other->event)))
                return true;
        }
    return false;
}

/* Keeps those that have to be sent again. A value that was published after a redirected one of the
 * same key has to be published after it once more, or the older value would stay. */
static void keep_redirected(struct sending *sending)
{
    size_t kept = 0;
    for (size_t i = 0; i < sending->left_count; i++) {
        struct odds_publication *each = sending->left[i];
        for (size_t j = 0; j < kept && each->status == STATUS_OK; j++)
            if (share_a_key(sending->left[j], each))
                each->status = STATUS_CONFLICT;
        if (each->status == STATUS_PENDING || each->status == STATUS_CONFLICT)
            sending->left[kept++] = each;
    }
    sending->left_count = kept;
}

/* Writes the commands of what is left. With `ask` it sends only those that were redirected: the
 * node that gets the slot must not get a key that the other node still has. */
static void append_left(struct sending *sending, bool ask)
{
    buffer_clear(&sending->commands);
    sending->call.replies = 0;
    for (size_t i = 0; i < sending->left_count; i++) {
        struct odds_publication *each = sending->left[i];
        if (ask && each->status == STATUS_CONFLICT)
            continue;
        each->status = STATUS_OK;
        append_changes(&sending->commands, sending->store->prefix, each->changes, each->count);
        sending->call.replies += replies_to(each->count);
    }
    sending->call.bytes = buffer_text(&sending->commands);
    sending->next = 0;
    expect(sending);
}

static bool send_left(struct redis_call *call, enum redis_redirect redirect)
{
    struct sending *sending = (struct sending *)call;
    keep_redirected(sending);
    if (sending->left_count == 0)
        return false;
    append_left(sending, redirect == REDIS_ASK);
    return true;
}

/* A store that publishes forgets the values at once and waits for no report. One that feeds knows
 * none. */
static void see_changes(struct redis_store *store, const struct odds_change *changes, size_t count)
{
    int64_t now_ms = clock_wall_ms();
    for (size_t i = 0; i < count; i++) {
        struct odds_subject subject =
            odds_subject_of(changes[i].kind, changes[i].sport, &changes[i].event);
        if (!store->feeds)
            redis_versions_forget(store->versions, &subject);
        relaxed_store(&store->published_ms[subject.sport], now_ms);
    }
}

/* Publications without replies have failed with this status. */
static void end_sending(struct sending *sending, enum status status, const struct error *error)
{
    for (size_t i = 0; i < sending->left_count; i++) {
        struct odds_publication *each = sending->left[i];
        if (i < sending->next && each->status != STATUS_PENDING && each->status != STATUS_CONFLICT)
            continue;
        each->status = STATUS_OK;
        fail(each, status, error);
    }
    const struct odds_publication *over;
    STAILQ_FOREACH (over, &sending->publishing->list, others) {
        see_changes(sending->store, over->changes, over->count);
        if (sending->counts)
            (void)odds_store_counted(&sending->store->base, over->status);
    }
    buffer_free(&sending->commands);
    memory_free(sending->left);
    memory_free(sending);
}

static void on_all_published(struct redis_call *call, enum status status)
{
    struct sending *sending = (struct sending *)call;
    struct odds_publishing *publishing = sending->publishing;
    struct error why;
    struct error error = {.text = ""};
    if (status != STATUS_OK) {
        redis_link_explain(call->link, status, CANNOT_PUBLISH, &why);
        (void)error_set(&error, status,
                        "%s; Redis may take it all the same, so send the newest again", why.text);
    }
    end_sending(sending, status, &error);
    publishing->done(publishing);
}

/* Room for the rest of most commands beside their values; longer ones make the buffer grow. */
#define COMMAND_ROOM 96

static enum status publish_each(struct redis_store *store, struct odds_publishing *publishing,
                                bool counts)
{
    struct redis_link *link = redis_link_of(store);
    struct sending *sending = memory_alloc_zeroed(1, sizeof *sending);
    struct odds_publication *each;
    size_t room = 0;
    size_t count = 0;
    STAILQ_FOREACH (each, &publishing->list, others) {
        count++;
        for (size_t i = 0; i < each->count; i++)
            room += each->changes[i].size + COMMAND_ROOM;
    }
    buffer_reserve(&sending->commands, room);
    sending->left = memory_alloc(count * sizeof(struct odds_publication *));
    STAILQ_FOREACH (each, &publishing->list, others) {
        each->status = STATUS_OK;
        each->reason = NULL;
        sending->left[sending->left_count++] = each;
    }
    sending->call = (struct redis_call){.timeout_ms = FEED_TIMEOUT_MS,
                                        .settle = true,
                                        .more = send_left,
                                        .reply = on_published,
                                        .done = on_all_published};
    sending->store = store;
    sending->publishing = publishing;
    sending->counts = counts;
    append_left(sending, false);
    enum status status = redis_link_submit(link, &sending->call);
    if (status == STATUS_PENDING)
        return STATUS_PENDING;
    struct error error;
    redis_link_explain(link, status, CANNOT_PUBLISH, &error);
    end_sending(sending, status, &error);
    return STATUS_OK;
}

enum status redis_publish_each(struct odds_store *base, struct odds_publishing *publishing)
{
    return publish_each(redis_store_of(base), publishing, true);
}

/* ---- publishing one, waited for -------------------------------------------------------------- */

/* Returns how many of the changes go into one transaction. */
static size_t batch_of(const struct odds_change *changes, size_t count)
{
    size_t bytes = 0;
    size_t taken = 0;
    while (taken < count && taken < BATCH_CHANGES &&
           (taken == 0 || bytes + changes[taken].size <= BATCH_BYTES))
        bytes += changes[taken++].size;
    return taken;
}

static void on_over(struct odds_publishing *publishing)
{
    uv_sem_post(publishing->owner);
}

enum status redis_publish(struct odds_store *base, const struct odds_change *changes, size_t count,
                          struct error *error)
{
    enum status status = STATUS_OK;
    uv_sem_t over;
    CHECK(uv_sem_init(&over, 0) == 0);
    while (count > 0 && status == STATUS_OK) {
        struct odds_publication batch = {.changes = changes, .count = batch_of(changes, count)};
        struct odds_publishing publishing = {
            .list = STAILQ_HEAD_INITIALIZER(publishing.list), .done = on_over, .owner = &over};
        STAILQ_INSERT_TAIL(&publishing.list, &batch, others);
        if (publish_each(redis_store_of(base), &publishing, false) == STATUS_PENDING)
            uv_sem_wait(&over);
        status = batch.status;
        if (status != STATUS_OK)
            (void)error_set(error, status, "%s", batch.reason);
        memory_free(batch.reason);
        changes += batch.count;
        count -= batch.count;
    }
    uv_sem_destroy(&over);
    return status;
}

/* ---- listing --------------------------------------------------------------------------------- */

/* Sends one command, or two, and waits. Frees the command. `reply` sets `replied` and `error`. */
struct question {
    struct redis_call call; /* first */
    const char *what;       /* cannot be done */
    enum status replied;
    struct error *error;
};

static bool is_error(struct redis_call *call, const struct redis_reply *reply)
{
    struct question *question = (struct question *)call;
    question->replied = reply->type == REDIS_ERROR
                            ? redis_error_of_reply(reply, question->what, question->error)
                            : STATUS_OK;
    return question->replied != STATUS_OK;
}

static enum status ask(struct redis_link *link, struct question *question, struct buffer *command)
{
    question->call.bytes = buffer_text(command);
    question->call.timeout_ms = FEED_TIMEOUT_MS;
    enum status status = redis_link_ask(link, &question->call, question->what, question->error);
    buffer_free(command);
    return status == STATUS_OK ? question->replied : status;
}

struct listing {
    struct question question; /* first */
    struct buffer cursor;
    size_t start;      /* the length of the key before the id */
    struct buffer ids; /* of struct event_id */
    bool partial;      /* the keys are moving to another node of a cluster */
};

static void list_key(struct listing *listing, struct text key)
{
    struct event_id event;
    if (key.size <= listing->start)
        return;
    struct text digits = {key.at + listing->start, key.size - listing->start};
    /* A key with another spelling of the number is never asked for. */
    if (event_id_parse(digits, &event) == STATUS_OK && event.size == digits.size)
        buffer_append(&listing->ids, &event, sizeof event);
}

/* The second reply is about a key that never exists: while the slot of a cluster is being moved,
 * the node has only some of the keys, and says so there. */
static void on_page(struct redis_call *call, unsigned index, const struct redis_reply *reply)
{
    struct listing *listing = (struct listing *)call;
    if (index == 1) {
        listing->partial = call->redirected;
        return;
    }
    buffer_clear(&listing->cursor);
    if (is_error(call, reply) || reply->type != REDIS_LIST || reply->count != 2 ||
        reply->elements[0].type != REDIS_STRING || reply->elements[1].type != REDIS_LIST)
        return;
    buffer_append_text(&listing->cursor, reply->elements[0].text);
    const struct redis_reply *keys = &reply->elements[1];
    for (size_t i = 0; i < keys->count; i++)
        if (keys->elements[i].type == REDIS_STRING)
            list_key(listing, keys->elements[i].text);
}

/* A pattern that matches keys with this start. */
static void append_pattern(struct buffer *out, const char *start)
{
    for (; *start != '\0'; start++) {
        if (strchr("*?[]\\^-", *start) != NULL)
            buffer_append_char(out, '\\');
        buffer_append_char(out, *start);
    }
    buffer_append_char(out, '*');
}

static int by_digits(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct event_id));
}

/* Lists all pages; once more from the first while keys are moving. */
static enum status list_pages(const struct redis_store *store, struct listing *listing,
                              const char *pattern)
{
    uint64_t end_ms = clock_monotonic_ms() + FEED_TIMEOUT_MS;
    enum status status = STATUS_OK;
    buffer_append_char(&listing->cursor, '0');
    do {
        struct buffer commands = {0};
        redis_command(&commands, "SCAN %s MATCH %s COUNT " SCAN_COUNT,
                      buffer_string(&listing->cursor), pattern);
        redis_command_probe(&commands, store->prefix);
        listing->partial = false;
        status = ask(redis_link_of(store), &listing->question, &commands);
        if (listing->partial && clock_monotonic_ms() >= end_ms)
            return error_set(listing->question.error, STATUS_TIMEOUT,
                             "%s: the keys are being moved to another node of the cluster",
                             listing->question.what);
        if (listing->partial) {
            clock_pause_ns(MOVING_NS);
            buffer_clear(&listing->cursor);
            buffer_append_char(&listing->cursor, '0');
        }
    } while (listing->partial || (status == STATUS_OK && listing->cursor.size > 0 &&
                                  !text_equals(buffer_text(&listing->cursor), TEXT("0"))));
    return status;
}

enum status redis_list_events(struct odds_store *base, enum sport sport, struct event_id **list,
                              size_t *count, struct error *error)
{
    const struct redis_store *store = redis_store_of(base);
    struct buffer start = {0};
    struct buffer pattern = {0};
    struct listing listing = {.question = {.call = {.replies = 2, .reply = on_page},
                                           .what = "cannot list the odds of a sport",
                                           .error = error}};
    buffer_append_format(&start, "%sodds:%s:", store->prefix, sport_key(sport));
    append_pattern(&pattern, buffer_string(&start));
    listing.start = start.size;
    enum status status = list_pages(store, &listing, buffer_string(&pattern));
    buffer_free(&listing.cursor);
    buffer_free(&pattern);
    buffer_free(&start);
    if (status != STATUS_OK) {
        buffer_free(&listing.ids);
        return status;
    }
    /* SCAN may name a key twice. */
    struct event_id *ids = (struct event_id *)(void *)listing.ids.data;
    size_t all = listing.ids.size / sizeof *ids;
    size_t kept = 0;
    if (all > 0)
        qsort(ids, all, sizeof *ids, by_digits);
    for (size_t i = 0; i < all; i++)
        if (kept == 0 || by_digits(&ids[kept - 1], &ids[i]) != 0)
            ids[kept++] = ids[i];
    *list = ids;
    *count = kept;
    return STATUS_OK;
}

struct interest_page {
    struct question question; /* first */
    struct buffer list;       /* of struct odds_interest, of all pages */
    size_t came;              /* of this page, usable or not */
};

static void on_interest(struct redis_call *call, unsigned index, const struct redis_reply *reply)
{
    struct interest_page *page = (struct interest_page *)call;
    (void)index;
    page->came = 0;
    if (is_error(call, reply) || reply->type != REDIS_LIST)
        return;
    /* RESP3 has pairs, RESP2 a flat list. */
    bool pairs = reply->count > 0 && reply->elements[0].type == REDIS_LIST;
    page->came = pairs ? reply->count : reply->count / 2;
    for (size_t i = 0; i < page->came; i++) {
        const struct redis_reply *member = &reply->elements[pairs ? i : 2 * i];
        struct odds_interest entry;
        if (pairs && (member->type != REDIS_LIST || member->count != 2))
            continue;
        member = pairs ? member->elements : member;
        const struct redis_reply *score = member + 1;
        if (member->type != REDIS_STRING || score->type != REDIS_STRING ||
            event_id_parse(member->text, &entry.event) != STATUS_OK)
            continue;
        double milliseconds = strtod(score->text.at, NULL);
        if (!(milliseconds >= 0 && milliseconds < 9e15))
            continue;
        entry.requested_ms = (int64_t)milliseconds;
        buffer_append(&page->list, &entry, sizeof entry);
    }
}

enum status redis_list_interest(struct odds_store *base, enum sport sport, int64_t since_ms,
                                struct odds_interest **list, size_t *count, struct error *error)
{
    const struct redis_store *store = redis_store_of(base);
    struct interest_page page = {
        .question = {.call = {.replies = 1, .again = true, .reply = on_interest},
                     .what = "cannot list the interest in a sport",
                     .error = error},
        .came = INTEREST_PAGE};
    struct redis_key key = redis_key_of_interest(store->prefix, sport);
    enum status status = STATUS_OK;
    for (size_t offset = 0; status == STATUS_OK && page.came == INTEREST_PAGE;
         offset += INTEREST_PAGE) {
        struct buffer commands = {0};
        redis_command(&commands, "ZREVRANGEBYSCORE %s +inf %lld WITHSCORES LIMIT %zu %d", key.text,
                      (long long)since_ms, offset, INTEREST_PAGE);
        status = ask(redis_link_of(store), &page.question, &commands);
    }
    if (status != STATUS_OK) {
        buffer_free(&page.list);
        return status == STATUS_MALFORMED ? STATUS_UNAVAILABLE : status;
    }
    /* An event that was asked for again between two pages is in both; stores/odds.c removes it. */
    *list = (struct odds_interest *)(void *)page.list.data;
    *count = page.list.size / sizeof **list;
    return STATUS_OK;
}
