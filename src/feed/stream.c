/*
 * Three threads: one reads and checks lines, the caller's publishes and answers, one watches
 * interest. The queue between the first two is what is not published yet; its lock is held for no
 * call that blocks. Whoever writes answers holds `output_lock`, so that lines stay whole.
 */
#include "feed/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "base/threads.h"
#include "feed/line.h"
#include "feed/publication.h"

#define READ_SIZE ((size_t)256 * 1024)
#define INTEREST_EVERY_NS (50 * UINT64_C(1000000))
#define INTEREST_WINDOW_MS 10000 /* how far back each look goes: clocks of servers differ */

struct item {
    STAILQ_ENTRY(item) link;
    uint64_t number; /* of the line, from 1 */
    char *bytes;     /* of the line; the item's own */
    size_t size;
    struct feed_line line;
    enum status status; /* of its publication, */
    struct error error; /* and why */
};
STAILQ_HEAD(items, item);

struct stream {
    struct feed_stream_options options;
    uv_mutex_t lock; /* of what follows, up to the next lock */
    uv_cond_t changed;
    struct items queue;
    size_t queued_bytes;
    bool ended;    /* nothing will be added any more */
    bool stopping; /* nothing will be taken any more */
    int read_error;
    uv_mutex_t output_lock;
};

/* ---- reading lines --------------------------------------------------------------------------- */

/* Waits until there is room. False: nothing is taken any more. The item is the stream's. */
static bool add_item(struct stream *stream, struct item *item)
{
    uv_mutex_lock(&stream->lock);
    /* One line alone may be larger than the whole queue is meant to be. */
    while (!stream->stopping && stream->queued_bytes > 0 &&
           stream->queued_bytes + item->size > FEED_QUEUE_BYTES)
        uv_cond_wait(&stream->changed, &stream->lock);
    bool wanted = !stream->stopping;
    STAILQ_INSERT_TAIL(&stream->queue, item, link);
    stream->queued_bytes += item->size + sizeof *item;
    uv_cond_broadcast(&stream->changed);
    uv_mutex_unlock(&stream->lock);
    return wanted;
}

static bool add_line(struct stream *stream, uint64_t number, struct text text)
{
    if (json_text_trim(text).size == 0) /* an empty line says nothing */
        return true;
    struct item *item = memory_alloc_zeroed(1, sizeof *item);
    item->number = number;
    item->size = text.size;
    item->bytes = memory_copy(text.at, text.size);
    feed_line_read(&item->line, (struct text){item->bytes, item->size});
    return add_item(stream, item);
}

static bool add_too_long(struct stream *stream, uint64_t number)
{
    struct item *item = memory_alloc_zeroed(1, sizeof *item);
    item->number = number;
    item->line.wrong = (struct json_text_error){.column = FEED_LINE_MAX + 1,
                                                .reason = "a line has at most 32 MiB"};
    return add_item(stream, item);
}

/* What was read and is not a line yet. */
struct rest {
    struct buffer bytes;
    size_t searched; /* of them: there is no line end in these */
    uint64_t number; /* of the line that they are of */
    bool skipping;   /* it is too long, and has been answered */
};

/* Adds the lines that are whole. False: nothing is taken any more. */
static bool add_lines(struct stream *stream, struct rest *rest)
{
    size_t taken = 0;
    char *end;
    bool wanted = true;
    while (wanted && (end = memchr(rest->bytes.data + rest->searched, '\n',
                                   rest->bytes.size - rest->searched)) != NULL) {
        struct text text = {rest->bytes.data + taken, (size_t)(end - rest->bytes.data) - taken};
        if (!rest->skipping)
            wanted = text.size > FEED_LINE_MAX ? add_too_long(stream, rest->number)
                                               : add_line(stream, rest->number, text);
        rest->skipping = false;
        rest->number++;
        taken += text.size + 1;
        rest->searched = taken;
    }
    memmove(rest->bytes.data, rest->bytes.data + taken, rest->bytes.size - taken);
    rest->bytes.size -= taken;
    if (wanted && !rest->skipping && rest->bytes.size > FEED_LINE_MAX) {
        wanted = add_too_long(stream, rest->number);
        rest->skipping = true;
    }
    if (rest->skipping)
        rest->bytes.size = 0;
    rest->searched = rest->bytes.size;
    return wanted;
}

static void read_lines(void *argument)
{
    struct stream *stream = argument;
    struct rest rest = {.number = 1};
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
        wanted = add_lines(stream, &rest);
    }
    if (wanted && failed == 0 && !rest.skipping && rest.bytes.size > 0) /* without a line end */
        (void)add_line(stream, rest.number, buffer_text(&rest.bytes));
    buffer_free(&rest.bytes);
    uv_mutex_lock(&stream->lock);
    stream->ended = true;
    stream->read_error = failed;
    uv_cond_broadcast(&stream->changed);
    uv_mutex_unlock(&stream->lock);
}

/* ---- writing answers ------------------------------------------------------------------------- */

static enum status write_out(struct stream *stream, struct buffer *out, struct error *error)
{
    size_t written = 0;
    enum status status = STATUS_OK;
    uv_mutex_lock(&stream->output_lock);
    while (written < out->size) {
        ssize_t size = write(stream->options.output, out->data + written, out->size - written);
        if (size < 0 && errno != EINTR) {
            status = error_set(error, STATUS_INVALID, "cannot write to standard output: %s",
                               strerror(errno));
            break;
        }
        written += size > 0 ? (size_t)size : 0;
    }
    uv_mutex_unlock(&stream->output_lock);
    buffer_clear(out);
    return status;
}

static void append_answer(struct buffer *out, const struct item *item)
{
    struct json_writer json = {.out = out, .layout = JSON_SPACED};
    const struct feed_line *line = &item->line;
    json_object(&json, NULL);
    json_unsigned(&json, "line", item->number);
    if (line->id.size > 0)
        json_raw(&json, "id", line->id);
    if (line->wrong.reason != NULL) {
        json_string(&json, "error", line->wrong.reason);
        json_unsigned(&json, "column", line->wrong.column);
    } else if (item->status != STATUS_OK) {
        json_string(&json, "error", item->error.text);
    } else {
        json_bool(&json, "published", true);
        if (line->rows_without_id > 0)
            json_unsigned(&json, "rows_without_id", line->rows_without_id);
        if (line->rows_repeated > 0)
            json_unsigned(&json, "rows_repeated", line->rows_repeated);
    }
    json_end(&json);
    buffer_append_char(out, '\n');
}

/* ---- publishing ------------------------------------------------------------------------------ */

/* Withdraws every event of a sport that has odds: those that are stored, and those that were
 * published earlier in the same line. */
static enum status add_events(struct stream *stream, struct feed_publication *publication,
                              size_t first, enum sport sport, struct error *error)
{
    size_t before = publication->count;
    enum status status = feed_publication_withdraw_odds(publication, stream->options.store, sport,
                                                        NULL, NULL, error);
    struct odds_change withdrawn = {.kind = ODDS_MARKETS, .sport = sport};
    for (size_t i = first; i < before && status == STATUS_OK; i++) {
        const struct odds_change *change = &publication->changes[i];
        withdrawn.event = change->event;
        if (change->kind == ODDS_MARKETS && change->sport == sport)
            feed_publication_add(publication, &withdrawn);
    }
    return status;
}

static enum status add_line_changes(struct stream *stream, struct feed_publication *publication,
                                    const struct feed_line *line, struct error *error)
{
    size_t first = publication->count;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < line->count && status == STATUS_OK; i++) {
        const struct feed_step *step = &line->steps[i];
        feed_publication_add(publication, &step->change);
        if (step->whole_sport)
            status = add_events(stream, publication, first, step->change.sport, error);
    }
    return status;
}

/* Publishes the good lines from `first` on, before `end` (NULL: all), as one. */
static enum status publish_items(struct stream *stream, const struct item *first,
                                 const struct item *end, struct error *error)
{
    struct feed_publication publication = {0};
    enum status status = STATUS_OK;
    for (const struct item *item = first; item != end && status == STATUS_OK;
         item = STAILQ_NEXT(item, link))
        status = add_line_changes(stream, &publication, &item->line, error);
    if (status == STATUS_OK)
        status = feed_publication_publish(&publication, stream->options.store, error);
    feed_publication_free(&publication);
    return status;
}

static void publish_group(struct stream *stream, struct items *group)
{
    struct error error;
    struct item *first = STAILQ_FIRST(group), *item;
    enum status status = publish_items(stream, first, NULL, &error);
    bool alone = STAILQ_NEXT(first, link) == NULL;
    bool each = status != STATUS_OK && status != STATUS_UNAVAILABLE && status != STATUS_TIMEOUT;
    STAILQ_FOREACH (item, group, link) {
        if (!alone && each) {
            item->status = publish_items(stream, item, STAILQ_NEXT(item, link), &item->error);
        } else if (status != STATUS_OK) {
            item->status = status;
            item->error = error;
        }
    }
}

/* Whether a line has to begin a group, or has it for itself: what is withdrawn with a sport is what
 * the store holds when everything before it is published. */
static bool stands_alone(const struct item *item)
{
    for (size_t i = 0; i < item->line.count; i++)
        if (item->line.steps[i].whole_sport)
            return true;
    return false;
}

/* Takes what is queued, up to a group; waits for the first. False: there is nothing any more. */
static bool take_group(struct stream *stream, struct items *group)
{
    size_t bytes = 0, lines = 0;
    struct item *item;
    uv_mutex_lock(&stream->lock);
    while (STAILQ_EMPTY(&stream->queue) && !stream->ended)
        uv_cond_wait(&stream->changed, &stream->lock);
    while ((item = STAILQ_FIRST(&stream->queue)) != NULL && lines < FEED_GROUP_LINES &&
           (lines == 0 || (bytes + item->size <= FEED_GROUP_BYTES && !stands_alone(item)))) {
        STAILQ_REMOVE_HEAD(&stream->queue, link);
        STAILQ_INSERT_TAIL(group, item, link);
        stream->queued_bytes -= item->size + sizeof *item;
        bytes += item->size;
        lines++;
        if (stands_alone(item))
            break;
    }
    uv_cond_broadcast(&stream->changed);
    uv_mutex_unlock(&stream->lock);
    return lines > 0;
}

static void free_items(struct items *items)
{
    struct item *item;
    while ((item = STAILQ_FIRST(items)) != NULL) {
        STAILQ_REMOVE_HEAD(items, link);
        feed_line_free(&item->line);
        memory_free(item->bytes);
        memory_free(item);
    }
}

static enum status publish_all(struct stream *stream, struct error *error)
{
    struct items group = STAILQ_HEAD_INITIALIZER(group);
    struct buffer out = {0};
    enum status status = STATUS_OK;
    while (status == STATUS_OK && take_group(stream, &group)) {
        struct item *item;
        publish_group(stream, &group);
        STAILQ_FOREACH (item, &group, link)
            append_answer(&out, item);
        free_items(&group);
        status = write_out(stream, &out, error);
    }
    buffer_free(&out);
    return status;
}

/* ---- interest -------------------------------------------------------------------------------- */

struct seen {
    struct event_id event;
    int64_t requested_ms; /* as it was reported */
    uint64_t reported_ns;
};

/* The events of a sport that were reported, sorted by id. */
struct sightings {
    struct seen *list;
    size_t count, room;
};

static int compare_seen(const void *one, const void *other)
{
    return memcmp(&((const struct seen *)one)->event, &((const struct seen *)other)->event,
                  sizeof(struct event_id));
}

/* Forgets those whose last request is older than any that could be reported again. */
static void forget_old(struct sightings *sightings, uint64_t now_ns, uint64_t every_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < sightings->count; i++)
        if (now_ns - sightings->list[i].reported_ns <
            every_ns + 2 * INTEREST_WINDOW_MS * UINT64_C(1000000))
            sightings->list[kept++] = sightings->list[i];
    sightings->count = kept;
}

/* Whether an event is to be reported now; notes that it is. */
static bool is_news(struct sightings *sightings, size_t sorted,
                    const struct odds_interest *interest, uint64_t now_ns, uint64_t every_ns)
{
    struct seen key = {.event = interest->event};
    struct seen *found =
        sorted == 0 ? NULL
                    : bsearch(&key, sightings->list, sorted, sizeof *sightings->list, compare_seen);
    if (found == NULL) {
        if (sightings->count == sightings->room) {
            sightings->room = sightings->room == 0 ? 64 : 2 * sightings->room;
            sightings->list =
                memory_resize(sightings->list, sightings->room * sizeof *sightings->list);
        }
        found = &sightings->list[sightings->count++];
        *found = key;
    } else if (interest->requested_ms <= found->requested_ms ||
               now_ns - found->reported_ns < every_ns) {
        return false;
    }
    found->requested_ms = interest->requested_ms;
    found->reported_ns = now_ns;
    return true;
}

static void look_at_sport(struct stream *stream, struct sightings *sightings, enum sport sport,
                          struct buffer *out)
{
    struct odds_interest *list = NULL;
    size_t count = 0, sorted = sightings->count;
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t every_ns = stream->options.interest_s * UINT64_C(1000000000);
    /* A store that is away tells of no interest; what it means for publications their answers
     * say. */
    if (odds_store_list_interest(stream->options.store, sport, clock_wall_ms() - INTEREST_WINDOW_MS,
                                 &list, &count, NULL) != STATUS_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        if (!is_news(sightings, sorted, &list[i], now_ns, every_ns))
            continue;
        struct json_writer json = {.out = out, .layout = JSON_SPACED};
        json_object(&json, NULL);
        json_string(&json, "interest", sport_key(sport));
        json_string(&json, "event", list[i].event.digits);
        json_end(&json);
        buffer_append_char(out, '\n');
    }
    memory_free(list);
    if (sightings->count > sorted) {
        forget_old(sightings, now_ns, every_ns);
        qsort(sightings->list, sightings->count, sizeof *sightings->list, compare_seen);
    }
}

static void watch_interest(void *argument)
{
    struct stream *stream = argument;
    struct sightings sightings[SPORT_COUNT] = {{0}};
    struct buffer out = {0};
    uint64_t next_ns = clock_monotonic_ns();
    uv_mutex_lock(&stream->lock);
    while (!stream->stopping) {
        if (condition_wait_until(&stream->changed, &stream->lock, next_ns))
            continue; /* woken for something else, or for the end */
        uv_mutex_unlock(&stream->lock);
        for (unsigned i = 0; i < SPORT_COUNT; i++)
            look_at_sport(stream, &sightings[i], (enum sport)i, &out);
        /* When it cannot be written, the answers cannot either, and those end the stream. */
        (void)write_out(stream, &out, NULL);
        next_ns = clock_monotonic_ns() + INTEREST_EVERY_NS;
        uv_mutex_lock(&stream->lock);
    }
    uv_mutex_unlock(&stream->lock);
    for (unsigned i = 0; i < SPORT_COUNT; i++)
        memory_free(sightings[i].list);
    buffer_free(&out);
}

/* ---- the whole ------------------------------------------------------------------------------- */

enum status feed_stream(const struct feed_stream_options *options, struct error *error)
{
    struct stream *stream = memory_alloc_zeroed(1, sizeof *stream);
    uv_thread_t reader, watcher;
    stream->options = *options;
    STAILQ_INIT(&stream->queue);
    CHECK(uv_mutex_init(&stream->lock) == 0 && uv_mutex_init(&stream->output_lock) == 0);
    CHECK(uv_cond_init(&stream->changed) == 0);
    thread_start(&reader, "feed-lines", read_lines, stream);
    if (options->interest_s > 0)
        thread_start(&watcher, "feed-interest", watch_interest, stream);
    enum status status = publish_all(stream, error);
    uv_mutex_lock(&stream->lock);
    stream->stopping = true;
    bool ended = stream->ended;
    int read_error = stream->read_error;
    uv_cond_broadcast(&stream->changed);
    uv_mutex_unlock(&stream->lock);
    if (options->interest_s > 0)
        CHECK(uv_thread_join(&watcher) == 0);
    /* A reader that waits for input cannot be called off. It is left with what it uses: the caller
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
        status = error_set(error, STATUS_INVALID, "cannot read standard input: %s",
                           strerror(read_error));
    return status;
}
