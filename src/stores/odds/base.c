/* The part of a store that all engines share; see odds_engine.h. */
#include "stores/odds_engine.h"

#include "base/clock.h"
#include "base/status.h"

void odds_store_begin(struct odds_store *store)
{
    store->notes = odds_notes_create();
    store->watch = NULL;
    CHECK(uv_mutex_init(&store->watch_lock) == 0);
}

void odds_store_end(struct odds_store *store)
{
    odds_notes_destroy(&store->notes);
    uv_mutex_destroy(&store->watch_lock);
}

enum status odds_store_counted(struct odds_store *store, enum status status)
{
    if (status != STATUS_OK && status != STATUS_PENDING)
        relaxed_add(&store->errors, 1);
    return status;
}

void odds_store_count_expired(struct odds_store *store, enum sport sport, uint64_t count)
{
    relaxed_add(&store->expired[sport], count);
    relaxed_store(&store->expired_ms[sport], clock_wall_ms());
}

void odds_store_report_expired(struct odds_store *store, struct log *log)
{
    for (size_t i = 0; i < SPORT_COUNT; i++) {
        uint64_t expired = relaxed_load(&store->expired[i]);
        if (expired != store->expired_logged[i])
            log_event(log, LOG_WARNING, "odds have expired without a new publication",
                      LOG_STRING("sport", sport_key((enum sport)i)),
                      LOG_INTEGER("values", (int64_t)(expired - store->expired_logged[i])));
        store->expired_logged[i] = expired;
    }
}

void odds_store_watch(struct odds_store *store, struct odds_watch *watch)
{
    uv_mutex_lock(&store->watch_lock);
    store->watch = watch;
    uv_mutex_unlock(&store->watch_lock);
}

struct odds_subject odds_subject_of(enum odds_kind kind, enum sport sport,
                                    const struct event_id *event)
{
    struct odds_subject subject = {.kind = kind, .sport = sport};
    if (kind == ODDS_MARKETS)
        subject.event = *event;
    return subject;
}

size_t odds_name_write(char *name, size_t room, const char *prefix,
                       const struct odds_subject *subject)
{
    bool catalog = subject->kind == ODDS_CATALOG;
    const char *parts[] = {prefix, catalog ? "catalog:" : "odds:", sport_key(subject->sport),
                           catalog ? "" : ":", catalog ? "" : subject->event.digits};
    size_t size = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t more = strlen(parts[i]);
        CHECK(more < room - size);
        memcpy(name + size, parts[i], more);
        size += more;
    }
    name[size] = '\0';
    return size;
}

bool odds_name_read(struct text name, struct odds_subject *subject)
{
    struct text kind = text_cut(&name, ':');
    struct text sport = text_cut(&name, ':');
    bool catalog = text_equals(kind, TEXT("catalog"));
    *subject = (struct odds_subject){.kind = catalog ? ODDS_CATALOG : ODDS_MARKETS};
    if (sport_from_key(sport, &subject->sport) != STATUS_OK)
        return false;
    if (catalog)
        return name.at == NULL;
    /* An event id has one spelling. */
    return text_equals(kind, TEXT("odds")) && event_id_parse(name, &subject->event) == STATUS_OK &&
           subject->event.size == name.size;
}

bool odds_store_is_watched(struct odds_store *store)
{
    uv_mutex_lock(&store->watch_lock);
    bool watched = store->watch != NULL;
    uv_mutex_unlock(&store->watch_lock);
    return watched;
}

void odds_store_tell(struct odds_store *store, const struct odds_subject *subjects, size_t count)
{
    uv_mutex_lock(&store->watch_lock);
    if (store->watch != NULL)
        store->watch->changed(store->watch, subjects, count);
    uv_mutex_unlock(&store->watch_lock);
}
