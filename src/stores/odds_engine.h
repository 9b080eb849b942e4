#pragma once

#include <uv.h>

#include "stores/odds/interest_notes.h"
#include "stores/odds_feed.h"
#include "stores/odds_lease.h"
#include "stores/odds_read.h"

/*
 * The interface of an engine of the odds store, for engines and stores/odds.c alone; all others
 * include odds.h, odds_read.h, odds_lease.h or odds_feed.h.
 *
 * An engine is one constant of this struct, listed in stores/odds.c. The functions do what
 * these headers say of the function of the same name. Arguments were checked: kinds and sports are
 * real ones, event ids are there where one is needed, sizes are in bounds. An engine's own struct
 * starts with a `struct odds_store`.
 */

struct odds_engine {
    const char *schemes[6]; /* each with its colon: "embedded:"; a NULL ends the list */

    /* `rest` is what follows the scheme, never empty. */
    enum status (*open)(struct odds_store **store, const struct odds_store_options *options,
                        const char *rest, struct error *error);
    void (*close)(struct odds_store *store);

    enum status (*stamp)(struct odds_store *store, uint64_t *stamp);
    bool (*asks)(struct odds_store *store); /* NULL: never */
    enum status (*versions)(struct odds_store *store, enum sport sport,
                            const struct event_id *event, struct odds_versions *versions);
    enum status (*read)(struct odds_store *store, struct odds_read *read);
    int64_t (*published_ms)(struct odds_store *store, enum sport sport,
                            const struct event_id *event);
    enum status (*ping)(struct odds_store *store, enum odds_need need, struct error *error);
    void (*wake)(struct odds_store *store); /* an event was noted: write it soon. Does not block */
    enum status (*lease)(struct odds_store *store,
                         struct odds_lease *lease); /* or NULL: has none */
    /* Fills in all facts but those that `struct odds_store` has. */
    void (*facts)(struct odds_store *store, struct odds_facts *facts);

    enum status (*publish)(struct odds_store *store, const struct odds_change *changes,
                           size_t count, struct error *error);
    /* NULL: `publish` does all of them or none, and odds.c makes it of that. */
    enum status (*publish_each)(struct odds_store *store, struct odds_publishing *publishing);
    /* They come in any order, and events more than once: odds.c sorts them. */
    enum status (*list_interest)(struct odds_store *store, enum sport sport, int64_t since_ms,
                                 struct odds_interest **list, size_t *count, struct error *error);
    enum status (*list_events)(struct odds_store *store, enum sport sport, struct event_id **list,
                               size_t *count, struct error *error);
    enum status (*back_up)(struct odds_store *store, const char *path,
                           struct error *error); /* NULL: its own tools do */
};

struct odds_store {
    const struct odds_engine *engine; /* odds.c's, which opened it */
    struct odds_notes *notes;         /* of events that were asked for; the engine writes them */
    atomic_uint_fast64_t reads;
    atomic_uint_fast64_t errors;
    atomic_uint_fast64_t interest_written;
    atomic_uint_fast64_t expired[SPORT_COUNT]; /* values whose time was over */
    atomic_int_fast64_t expired_ms[SPORT_COUNT];
    uint64_t expired_logged[SPORT_COUNT]; /* odds_store_report_expired's */
    uv_mutex_t watch_lock;
    struct odds_watch *watch; /* guarded by the lock, which is held while it is called */
};

/* Begins and ends the part of it that all engines have. */
void odds_store_begin(struct odds_store *store);
void odds_store_end(struct odds_store *store);

/* `event` is of ODDS_MARKETS alone. */
struct odds_subject odds_subject_of(enum odds_kind kind, enum sport sport,
                                    const struct event_id *event);
/* The name of a value in all engines: "PREFIXcatalog:SPORT" or "PREFIXodds:SPORT:EVENT", with a
 * NUL. The caller has made room for it. Returns its size. */
size_t odds_name_write(char *name, size_t room, const char *prefix,
                       const struct odds_subject *subject);
/* Reads a name without its prefix; false: it is none. */
bool odds_name_read(struct text name, struct odds_subject *subject);

/* Counts a call that failed, and returns its status. odds.c does so for what a verb returns, the
 * engine for what comes later. */
enum status odds_store_counted(struct odds_store *store, enum status status);

/* The engine has noticed that the time of so many values was over. */
void odds_store_count_expired(struct odds_store *store, enum sport sport, uint64_t count);

bool odds_store_is_watched(struct odds_store *store);
/* Tells the watch. Any thread of the engine's. */
void odds_store_tell(struct odds_store *store, const struct odds_subject *subjects, size_t count);

extern const struct odds_engine odds_engine_lmdb;
extern const struct odds_engine odds_engine_redis;
