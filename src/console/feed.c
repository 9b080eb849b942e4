/*
 * The feed as customers have it: catalogs and bodies come from sports/reader.h, as their answers
 * do. An operator who looks at an event shows interest in it, as a customer does, so a feed that
 * goes by interest keeps it fresh.
 */
#include "console/handlers.h"

#include "admission/error_rows.h"
#include "base/json_text.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "operator/customers.h"
#include "sports/errors.h"
#include "sports/reader.h"
#include "stores/odds_feed.h"

#define ASKED_MS 60000 /* within which an event counts as asked for */

/* ---- small things ---------------------------------------------------------------------------- */

static int by_event(const void *a, const void *b)
{
    const struct odds_interest *left = a;
    const struct odds_interest *right = b;
    return strcmp(left->event.digits, right->event.digits);
}

static enum status find_sport(struct console_call *call, enum sport *sport, struct error *error)
{
    return sport_from_key(text_of(call->id), sport) == STATUS_OK
               ? STATUS_OK
               : error_not_found(error, "there is no such sport");
}

/* ---- all sports ------------------------------------------------------------------------------ */

/* Facts about the events that were asked for lately. */
struct asked {
    uint64_t count, stale;
    int64_t oldest_ms; /* publication of the oldest odds; 0: not known */
};

static enum status look_at_asked(struct console_call *call, enum sport sport, int64_t stale_ms,
                                 struct asked *asked, struct error *error)
{
    struct odds_store *odds = call->services->sources.odds;
    struct odds_interest *list = NULL;
    size_t count = 0;
    *asked = (struct asked){.count = 0};
    enum status status =
        odds_store_list_interest(odds, sport, call->now_ms - ASKED_MS, &list, &count, error);
    for (size_t i = 0; i < count; i++) {
        int64_t published_ms = odds_store_published_ms(odds, sport, &list[i].event);
        if (published_ms == 0)
            continue;
        asked->stale += stale_ms > 0 && call->now_ms - published_ms > stale_ms ? 1 : 0;
        if (asked->oldest_ms == 0 || published_ms < asked->oldest_ms)
            asked->oldest_ms = published_ms;
    }
    asked->count = count;
    memory_free(list);
    return status;
}

static enum status write_sport(struct console_call *call, enum sport sport, int64_t stale_ms,
                               const struct odds_facts *facts, struct json_writer *json,
                               struct error *error)
{
    struct catalog *catalog = NULL;
    struct asked asked;
    int64_t published_ms = 0;
    size_t events = 0;
    enum status status = look_at_asked(call, sport, stale_ms, &asked, error);
    if (status != STATUS_OK)
        return status;
    const struct http_error *refusal =
        sports_read_catalog(call->services->sources.odds, sport, &catalog, &published_ms);
    while (catalog != NULL && catalog_row(catalog, events) != NULL)
        events++;
    catalog_destroy(&catalog);
    json_object(json, NULL);
    json_string(json, "sport", sport_key(sport));
    json_string(json, "name", sport_name(sport));
    json_unsigned(json, "events", events);
    json_time(json, "published_at", published_ms);
    json_unsigned(json, "asked_for", asked.count);
    json_time(json, "oldest_odds_at", asked.oldest_ms);
    json_unsigned(json, "stale", asked.stale);
    json_unsigned(json, "expired", facts->expired[sport]);
    json_time(json, "expired_at", facts->expired_ms[sport]);
    json_string_or_null(json, "problem", refusal != NULL ? refusal->message : NULL);
    json_end(json);
    return STATUS_OK;
}

enum status console_feed(struct console_call *call, struct error *error)
{
    int64_t stale_ms = (int64_t)call->config->stale_after_s * 1000;
    enum status status = STATUS_OK;
    struct odds_facts facts;
    odds_store_facts(call->services->sources.odds, &facts);
    json_object(&call->json, NULL);
    json_array(&call->json, "items");
    for (int i = 0; i < SPORT_COUNT && status == STATUS_OK; i++)
        status = write_sport(call, (enum sport)i, stale_ms, &facts, &call->json, error);
    console_tag_answer(call);
    return status;
}

/* ---- the events of a sport ------------------------------------------------------------------- */

enum order { ORDER_CATALOG, ORDER_INTEREST, ORDER_AGE };
static const char *const orders[] = {"catalog", "interest", "age", NULL};

struct listed {
    const struct catalog_row *row;
    size_t number; /* in the catalog */
    int64_t requested_ms;
    uint64_t rank; /* before `number` */
};

struct event_list {
    struct odds_store *odds;
    enum sport sport;
    enum order order;
    struct console_page page;
    struct odds_interest *interest; /* in the order of the ids */
    size_t interest_count;
    struct listed *events; /* found by the search */
    size_t count;
};

/* Appends the event's name; nothing: it has none that is a text. */
static void append_name(const struct catalog_row *row, struct buffer *name)
{
    struct text value = json_text_member(row->text, TEXT("ename"));
    if (value.at != NULL && json_text_kind(value) == JSON_TEXT_STRING)
        (void)json_text_unescape(value, name);
}

static bool is_searched_for(const struct event_list *list, const struct catalog_row *row,
                            struct buffer *name)
{
    if (list->page.words[0] == '\0' || strcasestr(row->id.digits, list->page.words) != NULL)
        return true;
    buffer_clear(name);
    append_name(row, name);
    return strcasestr(buffer_string(name), list->page.words) != NULL;
}

static int64_t requested_ms(const struct event_list *list, const struct event_id *event)
{
    const struct odds_interest key = {.event = *event};
    const struct odds_interest *found =
        list->interest_count == 0
            ? NULL
            : bsearch(&key, list->interest, list->interest_count, sizeof key, by_event);
    return found == NULL ? 0 : found->requested_ms;
}

/* The latest asked for first, or the oldest odds first: those without odds, or of which it is not
 * known, come last. */
static uint64_t rank_of(const struct event_list *list, const struct listed *event)
{
    if (list->order == ORDER_INTEREST)
        return UINT64_MAX - (uint64_t)event->requested_ms;
    if (list->order == ORDER_AGE)
        return (uint64_t)odds_store_published_ms(list->odds, list->sport, &event->row->id) - 1;
    return 0;
}

static void collect(struct event_list *list, const struct catalog *catalog)
{
    const struct catalog_row *row;
    struct buffer name = {0};
    size_t room = 0;
    for (size_t number = 0; (row = catalog_row(catalog, number)) != NULL; number++) {
        if (!is_searched_for(list, row, &name))
            continue;
        if (list->count == room) {
            room = room == 0 ? 64 : 2 * room;
            list->events = memory_resize(list->events, room * sizeof list->events[0]);
        }
        struct listed *event = &list->events[list->count++];
        *event = (struct listed){
            .row = row, .number = number, .requested_ms = requested_ms(list, &row->id)};
        event->rank = rank_of(list, event);
    }
    buffer_free(&name);
}

static int by_rank(const void *a, const void *b)
{
    const struct listed *left = a;
    const struct listed *right = b;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return left->number < right->number ? -1 : left->number > right->number;
}

static void write_event(const struct event_list *list, const struct listed *event,
                        struct json_writer *json)
{
    struct odds_versions versions;
    struct buffer name = {0};
    bool known =
        odds_store_versions(list->odds, list->sport, &event->row->id, &versions) == STATUS_OK &&
        versions.odds != ODDS_VERSION_UNKNOWN;
    append_name(event->row, &name);
    json_object(json, NULL);
    json_string(json, "event_id", event->row->id.digits);
    json_string_or_null(json, "name", name.size > 0 ? buffer_string(&name) : NULL);
    if (known)
        json_bool(json, "odds", versions.odds != 0);
    else
        json_null(json, "odds");
    json_time(json, "published_at",
              odds_store_published_ms(list->odds, list->sport, &event->row->id));
    json_time(json, "requested_at", event->requested_ms);
    json_end(json);
    buffer_free(&name);
}

static void write_events(const struct event_list *list, int64_t published_ms,
                         struct console_call *call)
{
    uint64_t at = list->page.offset;
    json_object(&call->json, NULL);
    json_string(&call->json, "sport", sport_key(list->sport));
    json_time(&call->json, "published_at", published_ms);
    json_array(&call->json, "items");
    for (; at < list->count && at - list->page.offset < list->page.limit; at++)
        write_event(list, &list->events[at], &call->json);
    console_end_page(&call->json, list->count, console_next(&list->page, list->count));
    console_tag_answer(call);
}

static enum status begin_events(struct console_call *call, struct event_list *list,
                                struct error *error)
{
    *list = (struct event_list){.odds = call->services->sources.odds};
    enum status status = find_sport(call, &list->sport, error);
    if (status != STATUS_OK)
        return status;
    console_page(&call->query, &list->page);
    list->order = (enum order)console_choice(&call->query, "order", orders);
    status = call->query.status;
    if (status == STATUS_OK)
        status = odds_store_list_interest(list->odds, list->sport, 0, &list->interest,
                                          &list->interest_count, error);
    if (list->interest_count > 0)
        qsort(list->interest, list->interest_count, sizeof list->interest[0], by_event);
    return status;
}

/* A sport that was never published has an empty list. */
enum status console_feed_sport(struct console_call *call, struct error *error)
{
    struct event_list list;
    struct catalog *catalog = NULL;
    int64_t published_ms = 0;
    enum status status = begin_events(call, &list, error);
    if (status != STATUS_OK)
        return status;
    const struct http_error *refusal =
        sports_read_catalog(call->services->sources.odds, list.sport, &catalog, &published_ms);
    if (refusal != NULL && refusal != &error_catalog_unavailable)
        status = error_unavailable(error, "%s", refusal->message);
    if (catalog != NULL)
        collect(&list, catalog);
    if (list.count > 0)
        qsort(list.events, list.count, sizeof list.events[0], by_rank);
    if (status == STATUS_OK)
        write_events(&list, published_ms, call);
    catalog_destroy(&catalog);
    memory_free(list.events);
    memory_free(list.interest);
    return status;
}

/* ---- a customer's answer --------------------------------------------------------------------- */

/* The refusal that the customer would get, in the order in which a request is judged; NULL: none.
 * "": a customer who may have the sport. */
static enum status judge_customer(struct console_call *call, const char *customer_id,
                                  enum sport sport, const struct http_error **refusal,
                                  struct error *error)
{
    struct customer_view customer;
    *refusal = NULL;
    if (customer_id[0] == '\0')
        return STATUS_OK;
    enum status status =
        resource_get(&customer_resource, call->store, customer_id, &customer, error);
    if (status == STATUS_NOT_FOUND)
        return error_invalid(error, "customer: there is no such customer");
    if (status != STATUS_OK)
        return status;
    if (!customer.record.enabled || !customer.record.usable)
        *refusal = &error_customer_disabled;
    else if ((customer.record.sports & SPORT_BIT(sport)) == 0)
        *refusal = &error_sport_not_allowed;
    return STATUS_OK;
}

static void write_answer(struct console_call *call, enum sport sport, const struct event_id *event,
                         const char *customer_id, const struct http_error *refusal)
{
    struct buffer body = {0};
    char tag[CONSOLE_TAG_SIZE] = "";
    int64_t published_ms = 0;
    if (refusal == NULL)
        refusal =
            sports_read_event(call->services->sources.odds, sport, event, &body, &published_ms);
    if (refusal != NULL)
        http_error_write(refusal, NULL, &body);
    else
        console_tag(buffer_text(&body), tag); /* as http/answer.h has it */
    json_object(&call->json, NULL);
    json_string(&call->json, "sport", sport_key(sport));
    json_string(&call->json, "event_id", event->digits);
    json_string_or_null(&call->json, "customer", customer_id);
    json_integer(&call->json, "status", refusal != NULL ? refusal->status : 200);
    json_string_or_null(&call->json, "etag", tag);
    json_time(&call->json, "published_at", refusal != NULL ? 0 : published_ms);
    json_text(&call->json, "body", buffer_text(&body));
    buffer_free(&body);
    console_tag_answer(call);
}

enum status console_feed_event(struct console_call *call, struct error *error)
{
    const struct http_error *refusal = NULL;
    struct event_id event;
    enum sport sport;
    enum status status = find_sport(call, &sport, error);
    if (status == STATUS_OK && event_id_parse(text_of(call->part), &event) != STATUS_OK)
        status = error_not_found(error, "there is no such event");
    if (status != STATUS_OK)
        return status;
    const char *customer_id = console_parameter(&call->query, "customer");
    status = call->query.status;
    if (status == STATUS_OK)
        status = judge_customer(call, customer_id, sport, &refusal, error);
    if (status != STATUS_OK)
        return status;
    odds_store_note_interest(call->services->sources.odds, sport, &event);
    write_answer(call, sport, &event, customer_id, refusal);
    return STATUS_OK;
}
