/*
 * Three threads: one reads and checks lines, the caller's publishes and answers, one watches
 * interest. The queue between the first two holds lines that are not published yet; its lock is
 * held for no call that blocks. A thread that writes answers holds `output_lock`, so that lines
 * stay whole.
 *
 * The caller's thread takes groups from the queue. While one group is under way, an engine that
 * does not block gets the next one, so that its server need not wait until answers are written. A
 * thread of the engine reports that a group is over and does no other work.
 */
#include "feed/stream.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "base/threads.h"
#include "feed/line.h"
#include "feed/publication.h"
#include "sports/event_table.h"

#define READ_SIZE ((size_t)256 * 1024)
#define GROUPS_UNDER_WAY 2U
#define RENEWALS_TOGETHER 512U /* Redis compares them in one go: others wait for it */
#define INTEREST_EVERY_NS (50 * UINT64_C(1000000))
#define INTEREST_WINDOW_MS 10000 /* how far back each look goes: clocks of servers differ */

struct item {
    STAILQ_ENTRY(item) link;
    uint64_t number; /* of the line, from 1 */
    struct batch *batch;
    struct text text; /* the batch's; empty where it was too long */
    struct feed_line line;
    struct feed_publication changes;     /* of a line that takes more than it says */
    struct odds_publication publication; /* these, or the line's; unused for a refused line */
};
STAILQ_HEAD(items, item);

/* Lines that came in one read. The last of them frees it. */
struct batch {
    size_t count;
    char *bytes; /* of all of them */
    struct item items[];
};

/* Lines that are published at one time. */
struct group {
    STAILQ_ENTRY(group) link;
    struct stream *stream;
    struct items items;
    struct odds_publishing publishing;
    size_t bytes;
    bool over; /* under the stream's lock */
};
STAILQ_HEAD(groups, group);

struct stream {
    struct feed_stream_options options;
    uv_mutex_t lock; /* of the members up to the next lock */
    uv_cond_t changed;
    struct items queue;
    size_t queued_bytes;
    bool ended;    /* nothing will be added any more */
    bool stopping; /* nothing will be taken any more */
    int read_error;
    uv_mutex_t output_lock;
    /* The members from here on belong to the publishing thread. */
    struct event_table expiring;         /* of struct expiring */
    struct groups under_way;             /* begun and not answered, in their order */
    size_t group_count, bytes_under_way; /* of them */
};

/* ---- reading lines --------------------------------------------------------------------------- */

/* Bytes that are not a line yet, and lines that are not in the queue yet. */
struct rest {
    struct buffer bytes;
    size_t searched;     /* of them: there is no line end in these */
    uint32_t expires_s;  /* of the stream's options */
    struct buffer after; /* size_t: where each line after a line end begins */
    uint64_t number;     /* of the line that they are of */
    bool skipping;       /* it is too long, and has been answered */
    struct items items;
    size_t item_bytes;
};

static size_t held_by(const struct item *item)
{
    return item->text.size + sizeof *item;
}

/* Puts the items in the queue, when there is room. False: nothing is taken any more. */
static bool enqueue(struct stream *stream, struct rest *rest)
{
    if (STAILQ_EMPTY(&rest->items))
        return true;
    uv_mutex_lock(&stream->lock);
    /* One line alone may be larger than the whole queue is meant to be. */
    while (!stream->stopping && stream->queued_bytes > 0 &&
           stream->queued_bytes + rest->item_bytes > FEED_QUEUE_BYTES)
        uv_cond_wait(&stream->changed, &stream->lock);
    bool wanted = !stream->stopping;
    STAILQ_CONCAT(&stream->queue, &rest->items);
    stream->queued_bytes += rest->item_bytes;
    rest->item_bytes = 0;
    uv_cond_broadcast(&stream->changed);
    uv_mutex_unlock(&stream->lock);
    return wanted;
}

/* A batch with room for so many lines, and these bytes, which it owns from now on. */
static struct batch *make_batch(size_t lines, char *bytes)
{
    struct batch *batch = memory_alloc(sizeof *batch + lines * sizeof(struct item));
    batch->count = 0;
    batch->bytes = bytes;
    return batch;
}

static void free_batch(struct batch *batch)
{
    memory_free(batch->bytes);
    memory_free(batch);
}

/* Takes the first `size` bytes off. A copy of a few costs less than to hold a large buffer. */
static char *take_bytes(struct rest *rest, size_t size)
{
    struct buffer whole = rest->bytes;
    size_t left = whole.size - size;
    if (size < whole.capacity / 2) {
        char *copy = memory_copy(whole.data, size);
        memmove(whole.data, whole.data + size, left);
        rest->bytes.size = left;
        return copy;
    }
    rest->bytes = (struct buffer){0};
    buffer_append(&rest->bytes, whole.data + size, left);
    return whole.data;
}

static struct item *add_item(struct rest *rest, struct batch *batch, struct text text)
{
    struct item *item = &batch->items[batch->count++];
    *item = (struct item){.number = rest->number, .batch = batch, .text = text};
    STAILQ_INSERT_TAIL(&rest->items, item, link);
    rest->item_bytes += held_by(item);
    return item;
}

static void add_too_long(struct rest *rest, struct batch *batch)
{
    add_item(rest, batch, TEXT(""))->line.wrong = (struct json_text_error){
        .column = FEED_LINE_MAX + 1, .reason = "a line has at most 32 MiB"};
}

/* Adds a line, whose bytes are the batch's. An empty line says nothing. */
static void add_line(struct rest *rest, struct batch *batch, struct text text)
{
    if (text.size > FEED_LINE_MAX)
        add_too_long(rest, batch);
    else if (json_text_trim(text).size > 0)
        feed_line_read(&add_item(rest, batch, text)->line, text, rest->expires_s);
}

/* Looks for line ends in the bytes that have come. Returns how many lines are whole. */
static size_t find_lines(struct rest *rest)
{
    const char *end;
    buffer_clear(&rest->after);
    while ((end = memchr(rest->bytes.data + rest->searched, '\n',
                         rest->bytes.size - rest->searched)) != NULL) {
        rest->searched = (size_t)(end - rest->bytes.data) + 1;
        buffer_append(&rest->after, &rest->searched, sizeof rest->searched);
    }
    return rest->after.size / sizeof rest->searched;
}

/* Adds the lines that are whole, and takes their bytes off. */
static void take_lines(struct rest *rest, size_t lines)
{
    const size_t *after = (const size_t *)(const void *)rest->after.data;
    struct batch *batch = make_batch(lines, take_bytes(rest, after[lines - 1]));
    for (size_t i = 0, begin = 0; i < lines; begin = after[i++]) {
        if (!rest->skipping)
            add_line(rest, batch, (struct text){batch->bytes + begin, after[i] - begin - 1});
        rest->skipping = false;
        rest->number++;
    }
    if (batch->count == 0)
        free_batch(batch);
}

static void add_lines(struct rest *rest)
{
    size_t lines = find_lines(rest);
    if (lines > 0)
        take_lines(rest, lines);
    if (!rest->skipping && rest->bytes.size > FEED_LINE_MAX) {
        add_too_long(rest, make_batch(1, NULL));
        rest->skipping = true;
    }
    if (rest->skipping)
        rest->bytes.size = 0;
    rest->searched = rest->bytes.size;
}

static void read_lines(void *argument)
{
    struct stream *stream = argument;
    struct rest rest = {.number = 1,
                        .expires_s = stream->options.expires_s,
                        .items = STAILQ_HEAD_INITIALIZER(rest.items)};
    bool wanted = true;
    int failed = 0;
    while (wanted) {
        buffer_reserve(&rest.bytes, READ_SIZE);
        ssize_t size = read(stream->options.input, rest.bytes.data + rest.bytes.size, READ_SIZE);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0) {
            failed = size < 0 ? errno : 0;
            break;
        }
        rest.bytes.size += (size_t)size;
        add_lines(&rest);
        wanted = enqueue(stream, &rest);
    }
    if (wanted && failed == 0) {
        buffer_append_char(&rest.bytes, '\n'); /* the last line may have no line end */
        add_lines(&rest);
        (void)enqueue(stream, &rest);
    }
    buffer_free(&rest.bytes);
    buffer_free(&rest.after);
    uv_mutex_lock(&stream->lock);
    stream->ended = true;
    stream->read_error = failed;
    uv_cond_broadcast(&stream->changed);
    uv_mutex_unlock(&stream->lock);
}

/* ---- writing answers ------------------------------------------------------------------------- */

static enum status write_out(struct stream *stream, struct buffer *out, struct error *error)
{
    enum status status = STATUS_OK;
    uv_mutex_lock(&stream->output_lock);
    if (file_write(stream->options.output, out->data, out->size) != out->size)
        status = error_invalid(error, "cannot write to standard output: %s", strerror(errno));
    uv_mutex_unlock(&stream->output_lock);
    buffer_clear(out);
    return status;
}

static void append_count(struct buffer *out, struct text name, uint64_t count)
{
    buffer_append_text(out, name);
    buffer_append_u64(out, count);
}

static void append_error(struct buffer *out, const char *reason)
{
    buffer_append_text(out, TEXT(", \"error\": "));
    buffer_append_json_string(out, text_of(reason));
}

/* Writes by hand, because a struct json_writer takes a twentieth of the time of a publication. */
static void append_answer(struct buffer *out, const struct item *item)
{
    const struct feed_line *line = &item->line;
    append_count(out, TEXT("{\"line\": "), item->number);
    if (line->id.size > 0) {
        buffer_append_text(out, TEXT(", \"id\": "));
        buffer_append_text(out, line->id);
    }
    if (line->wrong.reason != NULL) {
        append_error(out, line->wrong.reason);
        append_count(out, TEXT(", \"column\": "), line->wrong.column);
    } else if (item->publication.status != STATUS_OK) {
        append_error(out, item->publication.reason);
    } else {
        buffer_append_text(out, TEXT(", \"published\": true"));
        if (line->rows_without_id > 0)
            append_count(out, TEXT(", \"rows_without_id\": "), line->rows_without_id);
        if (line->rows_repeated > 0)
            append_count(out, TEXT(", \"rows_repeated\": "), line->rows_repeated);
    }
    buffer_append_text(out, TEXT("}\n"));
}

/* ---- signs of life --------------------------------------------------------------------------- */

/* A value that this stream has published with an expiry; a catalog has no event. */
struct expiring {
    struct event_node node; /* first */
    uint32_t expires_s;
    uint8_t published[DIGEST_SHA1_SIZE]; /* the digest of its bytes */
    uint64_t until_ms;                   /* monotonic; the store's time is over before */
};

static void forget(struct event_table *table, struct event_node *node)
{
    event_table_remove(table, node);
    memory_free(node);
}

static void forget_all(struct event_table *table)
{
    while (table->count > 0)
        forget(table, event_table_oldest(table));
    event_table_free(table);
}

/* Notes a change that is stored now. Values that have expired need no sign of life any more. */
static void note_expiry(struct event_table *table, const struct odds_change *change,
                        uint64_t now_ms)
{
    struct event_node *node;
    while ((node = event_table_oldest(table)) != NULL &&
           ((const struct expiring *)node)->until_ms <= now_ms)
        forget(table, node);
    node = event_table_find(table, change->sport, &change->event);
    if (change->expires_s == 0) {
        if (node != NULL)
            forget(table, node);
        return;
    }
    if (node == NULL) {
        node = memory_alloc_zeroed(1, sizeof(struct expiring));
        event_table_add(table, node, change->sport, &change->event, now_ms);
    }
    event_table_touch(table, node, now_ms);
    struct expiring *expiring = (struct expiring *)node;
    expiring->expires_s = change->expires_s;
    if (!change->renew)
        digest_sha1(change->bytes, change->size, expiring->published);
    expiring->until_ms = now_ms + change->expires_s * UINT64_C(1000);
}

static void note_expiries(struct stream *stream, const struct item *item)
{
    const struct odds_publication *publication = &item->publication;
    uint64_t now_ms = clock_monotonic_ms();
    if (publication->status != STATUS_OK)
        return;
    for (size_t i = 0; i < publication->count; i++)
        note_expiry(&stream->expiring, &publication->changes[i], now_ms);
}

/* The line's changes: a renewal of each value. */
static void add_renewals(struct stream *stream, struct feed_publication *changes)
{
    struct event_node *node;
    TAILQ_FOREACH (node, &stream->expiring.order, order) {
        const struct expiring *expiring = (const struct expiring *)node;
        struct odds_change change = {.kind = node->id.size > 0 ? ODDS_MARKETS : ODDS_CATALOG,
                                     .sport = node->sport,
                                     .event = node->id,
                                     .expires_s = expiring->expires_s,
                                     .renew = true};
        memcpy(change.renewed, expiring->published, sizeof change.renewed);
        feed_publication_add(changes, &change);
    }
}

/* In place, a commit after the other: other processes follow short commits more cheaply, and
 * values need not be renewed at one moment. */
static void renew_all(struct stream *stream, struct item *item)
{
    struct odds_publication *publication = &item->publication;
    struct error error;
    add_renewals(stream, &item->changes);
    publication->changes = item->changes.changes;
    publication->count = item->changes.count;
    publication->status = STATUS_OK;
    for (size_t at = 0; at < publication->count && publication->status == STATUS_OK;
         at += RENEWALS_TOGETHER) {
        size_t left = publication->count - at;
        publication->status =
            odds_store_publish(stream->options.store, publication->changes + at,
                               left < RENEWALS_TOGETHER ? left : RENEWALS_TOGETHER, &error);
    }
    if (publication->status != STATUS_OK)
        publication->reason = memory_copy_string(error.text);
}

/* ---- publishing ------------------------------------------------------------------------------ */

/* Makes the publication of a good line. False: it has failed. */
static bool make_publication(struct stream *stream, struct item *item)
{
    struct feed_publication *changes = &item->changes;
    enum status status = STATUS_OK;
    struct error error;
    if (!item->line.withdraws_sport) {
        item->publication.changes = item->line.changes;
        item->publication.count = item->line.count;
        return true;
    }
    for (size_t i = 0; i < item->line.count && status == STATUS_OK; i++) {
        const struct odds_change *change = &item->line.changes[i];
        if (feed_withdraws_sport(change))
            status = feed_publication_withdraw_sport(changes, stream->options.store, change->sport,
                                                     &error);
        else
            feed_publication_add(changes, change);
    }
    item->publication.changes = changes->changes;
    item->publication.count = changes->count;
    item->publication.status = status;
    item->publication.reason = status == STATUS_OK ? NULL : memory_copy_string(error.text);
    return status == STATUS_OK;
}

static void on_published(struct odds_publishing *publishing)
{
    struct group *group = publishing->owner;
    struct stream *stream = group->stream;
    uv_mutex_lock(&stream->lock);
    group->over = true;
    uv_cond_broadcast(&stream->changed);
    uv_mutex_unlock(&stream->lock);
}

/* Publishes a group, which is over now or later. */
static void begin_group(struct stream *stream, struct group *group)
{
    struct item *item;
    STAILQ_INSERT_TAIL(&stream->under_way, group, link);
    stream->group_count++;
    stream->bytes_under_way += group->bytes;
    STAILQ_INIT(&group->publishing.list);
    STAILQ_FOREACH (item, &group->items, link) {
        if (item->line.alive)
            renew_all(stream, item);
        else if (item->line.count > 0 && make_publication(stream, item))
            STAILQ_INSERT_TAIL(&group->publishing.list, &item->publication, others);
    }
    group->publishing.done = on_published;
    group->publishing.owner = group;
    if (STAILQ_EMPTY(&group->publishing.list) ||
        odds_store_publish_each(stream->options.store, &group->publishing) == STATUS_OK)
        on_published(&group->publishing);
}

/* Must the line have a group for itself, with nothing else under way? A withdrawal of a sport and a
 * sign of life need what the store has when all earlier lines are published. */
static bool needs_own_group(const struct item *item)
{
    return item->line.alive || item->line.withdraws_sport;
}

/* All lines under way together have at most the bytes of one group: deadlines are made for that. */
static bool fits(const struct item *item, size_t bytes)
{
    return bytes == 0 || (bytes + item->text.size <= FEED_GROUP_BYTES && !needs_own_group(item));
}

/* Takes a group from the queue, which is not empty. The caller holds the lock. */
static struct group *take_group(struct stream *stream)
{
    struct group *group = memory_alloc_zeroed(1, sizeof *group);
    size_t lines = 0;
    struct item *item;
    group->stream = stream;
    STAILQ_INIT(&group->items);
    while ((item = STAILQ_FIRST(&stream->queue)) != NULL && lines < FEED_GROUP_LINES &&
           fits(item, stream->bytes_under_way + group->bytes)) {
        STAILQ_REMOVE_HEAD(&stream->queue, link);
        STAILQ_INSERT_TAIL(&group->items, item, link);
        stream->queued_bytes -= held_by(item);
        group->bytes += held_by(item);
        lines++;
        if (needs_own_group(item))
            break;
    }
    uv_cond_broadcast(&stream->changed);
    return group;
}

static void free_items(struct items *items)
{
    struct item *item;
    while ((item = STAILQ_FIRST(items)) != NULL) {
        STAILQ_REMOVE_HEAD(items, link);
        feed_publication_free(&item->changes);
        feed_line_free(&item->line);
        memory_free(item->publication.reason);
        if (--item->batch->count == 0)
            free_batch(item->batch);
    }
}

/* Waits until the oldest group is over, or until another can be begun beside it, which is not over
 * yet. `ending`: no other is begun. NULL: all is done. */
static struct group *await_group(struct stream *stream, bool ending)
{
    struct group *oldest = STAILQ_FIRST(&stream->under_way), *group = NULL;
    uv_mutex_lock(&stream->lock);
    for (;;) {
        const struct item *next = ending ? NULL : STAILQ_FIRST(&stream->queue);
        if (oldest != NULL && oldest->over)
            group = oldest;
        else if (next != NULL && stream->group_count < GROUPS_UNDER_WAY &&
                 fits(next, stream->bytes_under_way))
            group = take_group(stream);
        if (group != NULL || (oldest == NULL && next == NULL && (ending || stream->ended)))
            break;
        uv_cond_wait(&stream->changed, &stream->lock);
    }
    uv_mutex_unlock(&stream->lock);
    return group;
}

/* Answers the item, and records it if it was accepted. */
static void answer(const struct feed_stream_options *options, struct buffer *out,
                   const struct item *item)
{
    size_t before = out->size;
    append_answer(out, item);
    if (options->recorder != NULL && item->line.wrong.reason == NULL)
        feed_recorder_add(options->recorder,
                          (struct text){out->data + before, out->size - before - 1}, item->text);
    if (options->failed == NULL)
        return;
    if (item->line.wrong.reason == NULL && item->publication.status == STATUS_OK)
        out->size = before;
    else
        ++*options->failed;
}

/* Answers the oldest group, and frees it. */
static void end_group(struct stream *stream, struct buffer *out)
{
    struct group *group = STAILQ_FIRST(&stream->under_way);
    const struct item *item;
    STAILQ_FOREACH (item, &group->items, link) {
        note_expiries(stream, item);
        answer(&stream->options, out, item);
    }
    STAILQ_REMOVE_HEAD(&stream->under_way, link);
    stream->group_count--;
    stream->bytes_under_way -= group->bytes;
    free_items(&group->items);
    memory_free(group);
}

/* After an answer that cannot be written, waits for the groups under way and writes no more. */
static enum status publish_all(struct stream *stream, struct error *error)
{
    struct buffer out = {0};
    struct group *group;
    enum status status = STATUS_OK;
    while ((group = await_group(stream, status != STATUS_OK)) != NULL) {
        if (!group->over) {
            begin_group(stream, group);
            continue;
        }
        end_group(stream, &out);
        if (status == STATUS_OK)
            status = write_out(stream, &out, error);
    }
    buffer_free(&out);
    return status;
}

/* ---- interest -------------------------------------------------------------------------------- */

/* An event that was reported; in a table by when its last request was. */
struct sighting {
    struct event_node node; /* first */
    int64_t requested_ms;   /* as it was reported */
    uint64_t reported_ms;
};

/* Must the event be reported now? Notes that it is. */
static bool is_news(struct event_table *sightings, enum sport sport,
                    const struct odds_interest *interest, uint64_t now_ms, uint64_t every_ms)
{
    struct sighting *found =
        (struct sighting *)event_table_find(sightings, sport, &interest->event);
    if (found == NULL) {
        found = memory_alloc_zeroed(1, sizeof *found);
        event_table_add(sightings, &found->node, sport, &interest->event, now_ms);
    } else if (interest->requested_ms <= found->requested_ms ||
               now_ms - found->reported_ms < every_ms) {
        return false;
    }
    event_table_touch(sightings, &found->node, now_ms);
    found->requested_ms = interest->requested_ms;
    found->reported_ms = now_ms;
    return true;
}

static void look_at_sport(struct stream *stream, struct event_table *sightings, enum sport sport,
                          struct buffer *out)
{
    struct odds_interest *list = NULL;
    size_t count = 0;
    uint64_t now_ms = clock_monotonic_ms();
    uint64_t every_ms = stream->options.interest_s * UINT64_C(1000);
    struct event_node *oldest;
    /* While the store is away there is no interest. The answers to publications report it. */
    if (odds_store_list_interest(stream->options.store, sport, clock_wall_ms() - INTEREST_WINDOW_MS,
                                 &list, &count, NULL) != STATUS_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        if (!is_news(sightings, sport, &list[i], now_ms, every_ms))
            continue;
        struct json_writer json = {.out = out, .layout = JSON_SPACED};
        json_object(&json, NULL);
        json_string(&json, "interest", sport_key(sport));
        json_string(&json, "event", list[i].event.digits);
        json_end(&json);
        buffer_append_char(out, '\n');
    }
    memory_free(list);
    /* Forgets those whose last request is older than any that could be reported again. */
    while ((oldest = event_table_oldest(sightings)) != NULL &&
           now_ms - oldest->used_ms >= every_ms + 2 * (uint64_t)INTEREST_WINDOW_MS)
        forget(sightings, oldest);
}

static void watch_interest(void *argument)
{
    struct stream *stream = argument;
    struct event_table sightings;
    struct buffer out = {0};
    uint64_t next_ns = clock_monotonic_ns();
    event_table_init(&sightings);
    uv_mutex_lock(&stream->lock);
    while (!stream->stopping) {
        if (condition_wait_until(&stream->changed, &stream->lock, next_ns))
            continue; /* woken for something else, or for the end */
        uv_mutex_unlock(&stream->lock);
        for (unsigned i = 0; i < SPORT_COUNT; i++)
            look_at_sport(stream, &sightings, (enum sport)i, &out);
        /* When it cannot be written, the answers cannot either, and those end the stream. */
        (void)write_out(stream, &out, NULL);
        next_ns = clock_monotonic_ns() + INTEREST_EVERY_NS;
        uv_mutex_lock(&stream->lock);
    }
    uv_mutex_unlock(&stream->lock);
    forget_all(&sightings);
    buffer_free(&out);
}

/* ---- the whole ------------------------------------------------------------------------------- */

enum status feed_stream(const struct feed_stream_options *options, struct error *error)
{
    struct stream *stream = memory_alloc_zeroed(1, sizeof *stream);
    uv_thread_t reader, watcher;
    stream->options = *options;
    STAILQ_INIT(&stream->queue);
    STAILQ_INIT(&stream->under_way);
    CHECK(uv_mutex_init(&stream->lock) == 0 && uv_mutex_init(&stream->output_lock) == 0);
    CHECK(uv_cond_init(&stream->changed) == 0);
    thread_start(&reader, "feed-lines", read_lines, stream);
    if (options->interest_s > 0)
        thread_start(&watcher, "feed-interest", watch_interest, stream);
    event_table_init(&stream->expiring);
    enum status status = publish_all(stream, error);
    forget_all(&stream->expiring);
    uv_mutex_lock(&stream->lock);
    stream->stopping = true;
    bool ended = stream->ended;
    int read_error = stream->read_error;
    uv_cond_broadcast(&stream->changed);
    uv_mutex_unlock(&stream->lock);
    if (options->interest_s > 0)
        CHECK(uv_thread_join(&watcher) == 0);
    /* A thread that waits for input cannot be stopped. It is left alone with its memory: the caller
     * ends the process. */
    if (!ended)
        return status;
    CHECK(uv_thread_join(&reader) == 0);
    free_items(&stream->queue);
    uv_cond_destroy(&stream->changed);
    uv_mutex_destroy(&stream->output_lock);
    uv_mutex_destroy(&stream->lock);
    memory_free(stream);
    if (status == STATUS_OK && read_error != 0)
        status = error_invalid(error, "cannot read standard input: %s", strerror(read_error));
    return status;
}
