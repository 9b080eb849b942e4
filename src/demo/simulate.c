/*
 * The simulated feed: its timetable of events, the changes that are due for publication, and the
 * thread that advances it. demo/event.h is the model of a single event.
 *
 * The thread holds its lock during a tick. Once it runs, only it uses the simulator, except for the
 * facts, which other threads read under the lock.
 */
#include "demo/simulate.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "demo/event.h"
#include "feed/publication.h"

#define LEAP_MS (120 * 1000) /* a longer gap is skipped */
#define UNPOLLED_MS (60 * 1000)
#define CATALOG_MS (60 * 1000)
#define POLLED_WITHIN_MS (10 * 1000)
#define LEAD_MS (20 * 1000) /* a new event starts no sooner than this */
#define RACES_SPAN_MS (20 * 60 * 1000)
#define RACE_EVERY_MS (60 * 1000)
#define INTERRUPTION_MS (5 * 60 * 1000)
#define STANDING_MS (7 * 24 * 3600 * INT64_C(1000))

struct slot { /* holds an event, and then its successor */
    struct event *event;
    struct buffer document; /* of the last publication */
    int64_t requested_ms;   /* time of day of the last known request */
    int64_t published_ms;   /* 0: never */
    int64_t due_ms;         /* the next publication of an event that is not polled */
};

struct timetable {      /* of one sport */
    struct slot *slots; /* as many as options.events, in the order of the last catalog */
    struct buffer catalog;
    uint32_t serial; /* of the next event */
    int64_t last_start_ms;
    int64_t spacing_ms;
    int64_t catalog_due_ms;
};

struct simulator {
    struct simulator_options options;
    struct timetable timetables[SPORT_COUNT]; /* zeros for a sport that is not simulated */
    struct slot *slots;                       /* of all sports, one sport after the other */
    struct slot *slots_end;
    struct chance chance;
    uint64_t next_id;
    uint64_t next_large_id;
    int64_t clock_ms;           /* time of day when last advanced */
    int64_t begun_ms, shift_ms; /* time of day: at the start; minus the events' time */
    int64_t now_ms;             /* the events' time */
    bool cleared;               /* the store's older events are withdrawn */
    struct sports sports;
    struct feed_publication due;
    struct simulator_facts facts;
    /* The members from here on belong to the thread. */
    struct odds_store *store; /* NULL: there is no thread */
    struct log *log;
    struct background thread;
};

static bool simulates(const struct simulator *simulator, int sport)
{
    return (simulator->options.sports & SPORT_BIT(sport)) != 0;
}

/* ---- events come and go ---------------------------------------------------------------------- */

static void fill_slot(struct simulator *simulator, enum sport sport, struct slot *slot,
                      int64_t start_ms, bool standing)
{
    struct timetable *timetable = &simulator->timetables[sport];
    struct event *event = memory_alloc_zeroed(1, sizeof *event);
    event->sports = &simulator->sports;
    event->sport = sport;
    event->serial = timetable->serial++;
    event->chance.state = chance_next(&simulator->chance);
    event->start_ms = standing ? start_ms + STANDING_MS : start_ms;
    event->now_ms = simulator->now_ms;
    event->clock_shift_ms = simulator->shift_ms;
    event->offered = standing;
    /* A few ids are too large for a double, as real ones can be. */
    bool large = (sport == SPORT_CRICKET || sport == SPORT_TENNIS) && event->serial % 16 == 7;
    uint64_t *next = large ? &simulator->next_large_id : &simulator->next_id;
    uint64_t id = standing ? SIMULATOR_STANDING_ID + sport : *next;
    event->id.size = (uint8_t)decimal_write(event->id.digits, id);
    *next += large ? 2 : 1;
    buffer_free(&slot->document);
    simulated_event_begin(event);
    *slot = (struct slot){.event = event};
    timetable->last_start_ms = start_ms;
    if (standing)
        simulator->facts.standing[sport] = event->id;
}

/* Fills the sport's slots. About a third of the matches are in play at any time; races follow one
 * another. */
static void open_timetable(struct simulator *simulator, enum sport sport)
{
    struct timetable *timetable = &simulator->timetables[sport];
    uint32_t count = simulator->options.events;
    struct text table = simulator->sports.tables[sport];
    int64_t length_ms = table_number(table, "length_s") * 1000, first_ms = simulator->now_ms;
    if (json_text_member(table, TEXT("race")).at != NULL) {
        int64_t even_ms = RACES_SPAN_MS / count;
        timetable->spacing_ms = even_ms < RACE_EVERY_MS ? even_ms : RACE_EVERY_MS;
        first_ms -= length_ms / 2;
    } else {
        timetable->spacing_ms = length_ms * 3 / count;
        first_ms -= length_ms * 2 / 3;
    }
    timetable->slots = simulator->slots_end;
    for (uint32_t i = 0; i < count; i++) {
        struct slot *slot = simulator->slots_end++;
        fill_slot(simulator, sport, slot, first_ms + i * timetable->spacing_ms,
                  simulator->options.standing && i == 0);
        simulated_event_advance(slot->event, simulator->now_ms);
    }
}

struct simulator *simulator_create(const struct simulator_options *options, int64_t now_ms)
{
    CHECK(options->events > 0 && options->events <= SIMULATOR_EVENTS_MAX);
    CHECK(options->interval_ms > 0 && options->sports != 0);
    struct simulator *simulator = memory_alloc_zeroed(1, sizeof *simulator);
    simulator->options = *options;
    sports_open(&simulator->sports);
    simulator->chance.state = chance_mix(options->seed);
    simulator->begun_ms = simulator->clock_ms = simulator->now_ms = now_ms;
    /* Ids grow with time, so that a restarted simulator does not give an old id to a new event. */
    simulator->next_id = SIMULATOR_STANDING_ID + SPORT_COUNT + (uint64_t)(now_ms / 3000) % 50000000;
    simulator->next_large_id = 9007199254740993U + simulator->next_id * 2;
    simulator->slots =
        memory_alloc_zeroed((size_t)options->events * SPORT_COUNT, sizeof *simulator->slots);
    simulator->slots_end = simulator->slots;
    for (int sport = 0; sport < SPORT_COUNT; sport++)
        if (simulates(simulator, sport))
            open_timetable(simulator, (enum sport)sport);
    return simulator;
}

void simulator_destroy(struct simulator **at)
{
    struct simulator *simulator = memory_take(at);
    if (simulator == NULL)
        return;
    if (simulator->store != NULL)
        background_stop(&simulator->thread);
    for (struct slot *slot = simulator->slots; slot < simulator->slots_end; slot++) {
        memory_free(slot->event);
        buffer_free(&slot->document);
    }
    for (int sport = 0; sport < SPORT_COUNT; sport++)
        buffer_free(&simulator->timetables[sport].catalog);
    memory_free(simulator->slots);
    feed_publication_free(&simulator->due);
    memory_free(simulator);
}

/* ---- what is due ----------------------------------------------------------------------------- */

static struct slot *find_slot(const struct simulator *simulator, enum sport sport,
                              const struct event_id *event)
{
    struct slot *slots = simulator->timetables[sport].slots;
    for (uint32_t i = 0; slots != NULL && i < simulator->options.events; i++)
        if (event_id_equals(&slots[i].event->id, event))
            return &slots[i];
    return NULL;
}

void simulator_note_interest(struct simulator *simulator, enum sport sport,
                             const struct event_id *event, int64_t requested_ms)
{
    struct slot *slot = find_slot(simulator, sport, event);
    if (slot != NULL && requested_ms > slot->requested_ms)
        slot->requested_ms = requested_ms;
}

/* Adds a change to the publication; an empty document withdraws the odds. */
static void add_change(struct simulator *simulator, enum odds_kind kind, enum sport sport,
                       struct event_id event, struct text document)
{
    simulator->facts.bytes += document.size;
    feed_publication_add(&simulator->due, &(struct odds_change){.kind = kind,
                                                                .sport = sport,
                                                                .event = event,
                                                                .bytes = document.at,
                                                                .size = document.size});
}

/* Replaces an event that has left by a new one, in the same slot. */
static void replace_event(struct simulator *simulator, struct slot *slot)
{
    enum sport sport = slot->event->sport;
    struct timetable *timetable = &simulator->timetables[sport];
    if (slot->published_ms != 0)
        add_change(simulator, ODDS_MARKETS, sport, slot->event->id, (struct text){0});
    memory_free(slot->event);
    int64_t start_ms = timetable->last_start_ms + timetable->spacing_ms;
    int64_t soonest_ms = simulator->now_ms + LEAD_MS;
    fill_slot(simulator, sport, slot, start_ms > soonest_ms ? start_ms : soonest_ms, false);
    simulator->facts.retired++;
}

/* Order: events in play, then upcoming, then finished. */
static int compare_slots(const void *left, const void *right)
{
    static const int ranks[] = {[STAGE_UPCOMING] = 1, 0, 2, 2, 2, 2};
    const struct event *a = ((const struct slot *)left)->event;
    const struct event *b = ((const struct slot *)right)->event;
    if (ranks[a->stage] != ranks[b->stage])
        return ranks[a->stage] - ranks[b->stage];
    if (a->start_ms != b->start_ms)
        return a->start_ms < b->start_ms ? -1 : 1;
    return a->serial < b->serial ? -1 : 1;
}

static void publish_catalog(struct simulator *simulator, enum sport sport)
{
    struct timetable *timetable = &simulator->timetables[sport];
    struct buffer *catalog = &timetable->catalog;
    bool due = simulator->now_ms >= timetable->catalog_due_ms;
    for (uint32_t i = 0; i < simulator->options.events; i++)
        due = due || timetable->slots[i].event->changed;
    if (!due)
        return;
    qsort(timetable->slots, simulator->options.events, sizeof *timetable->slots, compare_slots);
    buffer_clear(catalog);
    buffer_append_char(catalog, '[');
    for (uint32_t i = 0; i < simulator->options.events; i++)
        simulated_event_write_row(timetable->slots[i].event, catalog);
    buffer_append_char(catalog, ']');
    timetable->catalog_due_ms = simulator->now_ms + CATALOG_MS;
    simulator->facts.catalogs++;
    add_change(simulator, ODDS_CATALOG, sport, (struct event_id){0}, buffer_text(catalog));
}

static void publish_odds(struct simulator *simulator, struct slot *slot)
{
    struct event *event = slot->event;
    int64_t now_ms = simulator->now_ms;
    /* A tick that comes a little early still counts. */
    int64_t interval_ms = simulator->options.interval_ms - simulator->options.interval_ms / 8;
    bool polled =
        slot->requested_ms != 0 && slot->requested_ms >= simulator->clock_ms - POLLED_WITHIN_MS;
    simulator->facts.events++;
    simulator->facts.in_play += event->stage == STAGE_IN_PLAY;
    simulator->facts.polled += polled;
    if (!event->changed && now_ms < slot->due_ms &&
        (!polled || now_ms - slot->published_ms < interval_ms))
        return;
    buffer_free(&slot->document);
    simulated_event_write_markets(event, &slot->document);
    add_change(simulator, ODDS_MARKETS, event->sport, event->id, buffer_text(&slot->document));
    /* Spreads the second publication of all events over a minute, so that the later ones stay
     * spread. */
    uint64_t spread_ms = slot->published_ms == 0 ? event->salt % UNPOLLED_MS + 1 : UNPOLLED_MS;
    slot->due_ms = now_ms + (int64_t)spread_ms;
    slot->published_ms = now_ms;
    event->changed = false;
    simulator->facts.markets++;
}

/* Advances the events' time: the time of day without long gaps and steps back. */
static void move_clock(struct simulator *simulator, int64_t clock_ms)
{
    int64_t passed_ms = clock_ms - simulator->clock_ms;
    bool leapt = passed_ms < 0 || passed_ms > LEAP_MS;
    simulator->clock_ms = clock_ms;
    simulator->now_ms += leapt ? 0 : passed_ms;
    simulator->shift_ms = clock_ms - simulator->now_ms;
    for (struct slot *slot = simulator->slots; slot < simulator->slots_end; slot++) {
        slot->event->clock_shift_ms = simulator->shift_ms;
        slot->event->changed |= leapt;
    }
}

void simulator_advance(struct simulator *simulator, int64_t now_ms,
                       const struct odds_change **changes, size_t *count)
{
    simulator->facts.events = simulator->facts.in_play = simulator->facts.polled = 0;
    simulator->due.count = 0;
    move_clock(simulator, now_ms);
    sport_set running = simulator->options.sports;
    if ((simulator->now_ms - simulator->begun_ms) / INTERRUPTION_MS % 2 == 1)
        running &= ~simulator->options.interrupted;
    for (struct slot *slot = simulator->slots; slot < simulator->slots_end; slot++) {
        if ((running & SPORT_BIT(slot->event->sport)) == 0)
            continue;
        simulated_event_advance(slot->event, simulator->now_ms);
        if (slot->event->stage == STAGE_GONE)
            replace_event(simulator, slot);
    }
    for (int sport = 0; sport < SPORT_COUNT; sport++)
        if ((running & SPORT_BIT(sport)) != 0)
            publish_catalog(simulator, (enum sport)sport);
    for (struct slot *slot = simulator->slots; slot < simulator->slots_end; slot++)
        if ((running & SPORT_BIT(slot->event->sport)) != 0)
            publish_odds(simulator, slot);
    *changes = simulator->due.changes;
    *count = simulator->due.count;
}

void simulator_failed(struct simulator *simulator)
{
    simulator->cleared = false;
    for (struct slot *slot = simulator->slots; slot < simulator->slots_end; slot++)
        slot->event->changed = true;
}

/* ---- into a store ---------------------------------------------------------------------------- */

static enum status read_interest(struct simulator *simulator, enum sport sport,
                                 struct odds_store *store, int64_t now_ms, struct error *error)
{
    struct odds_interest *list = NULL;
    size_t count = 0;
    enum status status =
        odds_store_list_interest(store, sport, now_ms - POLLED_WITHIN_MS, &list, &count, error);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        simulator_note_interest(simulator, sport, &list[i].event, list[i].requested_ms);
    memory_free(list);
    return status;
}

static bool is_simulated(const void *context, enum sport sport, const struct event_id *event)
{
    return find_slot(context, sport, event) != NULL;
}

enum status simulator_tick(struct simulator *simulator, int64_t now_ms, struct odds_store *store,
                           struct error *error)
{
    const struct odds_change *changes;
    size_t count;
    enum status status = STATUS_OK;
    for (int sport = 0; sport < SPORT_COUNT && status == STATUS_OK; sport++)
        if (simulates(simulator, sport))
            status = read_interest(simulator, (enum sport)sport, store, now_ms, error);
    if (status != STATUS_OK)
        return status;
    simulator_advance(simulator, now_ms, &changes, &count);
    /* Withdraw the events that were published before this simulator. */
    for (int sport = 0; sport < SPORT_COUNT && status == STATUS_OK; sport++)
        if (simulates(simulator, sport) && !simulator->cleared)
            status = feed_publication_withdraw_odds(&simulator->due, store, (enum sport)sport,
                                                    is_simulated, simulator, error);
    if (status == STATUS_OK)
        status = odds_store_publish(store, simulator->due.changes, simulator->due.count, error);
    simulator->cleared = true;
    if (status != STATUS_OK)
        simulator_failed(simulator);
    return status;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void run(void *argument)
{
    struct simulator *simulator = argument;
    uint64_t interval_ns = (uint64_t)simulator->options.interval_ms * 1000000U;
    uint64_t next_ns = clock_monotonic_ns() + interval_ns;
    while (!background_sleep(&simulator->thread, next_ns)) {
        struct error error = {0};
        uv_mutex_lock(&simulator->thread.lock);
        bool failed = simulator->facts.failing;
        bool failing =
            simulator_tick(simulator, clock_wall_ms(), simulator->store, &error) != STATUS_OK;
        simulator->facts.failing = failing;
        uv_mutex_unlock(&simulator->thread.lock);
        if (failing && !failed)
            log_event(simulator->log, LOG_WARNING, "simulated feed cannot publish; goes on trying",
                      LOG_STRING("reason", error.text));
        else if (!failing && failed)
            log_event(simulator->log, LOG_INFO, "simulated feed publishes again");
        /* Missed ticks are not repeated: the next tick covers their time. */
        uint64_t now_ns = clock_monotonic_ns();
        next_ns += interval_ns;
        next_ns = next_ns < now_ns ? now_ns + interval_ns : next_ns;
    }
}

enum status simulator_start(struct simulator *simulator, struct odds_store *store, struct log *log,
                            struct error *error)
{
    enum status status = simulator_tick(simulator, clock_wall_ms(), store, error);
    if (status != STATUS_OK)
        return status;
    simulator->store = store;
    simulator->log = log;
    background_start(&simulator->thread, "feed", run, simulator);
    return STATUS_OK;
}

void simulator_facts(struct simulator *simulator, struct simulator_facts *facts)
{
    if (simulator->store != NULL)
        uv_mutex_lock(&simulator->thread.lock);
    *facts = simulator->facts;
    if (simulator->store != NULL)
        uv_mutex_unlock(&simulator->thread.lock);
}
