/*
 * The simulated feed's timetable: which events there are, when each is moved, and what is due for
 * publication. What happens in an event is demo/event.c and its models.
 *
 * State and publication are apart: advancing moves events by time and collects what is due;
 * only simulator_published marks it as done. So a store that is away loses nothing but time.
 */
#include "demo/simulate.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "demo/event.h"

#define STEP_MS 1000         /* the longest step of an event */
#define LEAP_MS (120 * 1000) /* a longer gap is left out */
#define UNPOLLED_MS (60 * 1000)
#define CATALOG_MS (60 * 1000)
#define POLLED_WITHIN_MS (10 * 1000)
#define LEAD_MS (20 * 1000) /* a new event starts no sooner than this */
#define RACES_SPAN_MS (20 * 60 * 1000)
#define RACE_EVERY_MS (60 * 1000)

struct slot {
    struct event *event;
    struct buffer document; /* while in a batch */
    int64_t requested_ms;   /* time of day of the last known request */
    int64_t published_ms;   /* 0: never */
    int64_t due_ms;         /* the next publication of an event that is not polled */
    enum stage published_stage;
    bool in_batch;
};

struct retired {
    struct event_id id;
    enum sport sport;
};

struct desk { /* one sport */
    struct slot *slots;
    struct slot **order; /* as the catalog lists them */
    struct buffer catalog;
    uint32_t serial; /* of the next event */
    int64_t last_start_ms;
    int64_t spacing_ms;
    int64_t catalog_due_ms;
    bool in_batch;
};

struct simulator {
    struct simulator_options options;
    struct desk desks[SPORT_COUNT];
    struct chance chance;
    uint64_t next_id;
    uint64_t next_large_id;
    int64_t clock_ms; /* time of day when last advanced */
    int64_t shift_ms; /* time of day minus the time that events live in */
    int64_t now_ms;   /* that time */
    bool cleared;     /* the store holds nothing from before */
    struct retired *retired;
    size_t retired_count, retired_capacity;
    struct odds_change *changes;
    size_t change_count, change_capacity;
    struct simulator_facts facts;
};

static bool simulates(const struct simulator *simulator, int sport)
{
    return (simulator->options.sports & SPORT_BIT(sport)) != 0;
}

/* ---- events come and go ---------------------------------------------------------------------- */

static struct event_id new_event_id(struct simulator *simulator, enum sport sport, uint32_t serial)
{
    /* A few ids are beyond what a double can hold, as real ones can be. */
    bool large = (sport == SPORT_CRICKET || sport == SPORT_TENNIS) && serial % 16 == 7;
    uint64_t *next = large ? &simulator->next_large_id : &simulator->next_id;
    struct event_id id = {0};
    id.size = (uint8_t)decimal_write(id.digits, *next);
    *next += large ? 2 : 1;
    return id;
}

static void fill_slot(struct simulator *simulator, enum sport sport, struct slot *slot,
                      int64_t start_ms)
{
    struct desk *desk = &simulator->desks[sport];
    uint32_t serial = desk->serial++;
    struct event_plan plan = {
        .sport = sport,
        .serial = serial,
        .id = new_event_id(simulator, sport, serial),
        .seed = chance_next(&simulator->chance),
        .start_ms = start_ms,
        .born_ms = simulator->now_ms,
    };
    *slot = (struct slot){.event = simulated_event_create(&plan)};
    slot->event->clock_shift_ms = simulator->shift_ms;
    desk->last_start_ms = start_ms;
}

static void step_event(struct event *event, int64_t now_ms)
{
    while (event->now_ms < now_ms && event->stage != STAGE_GONE) {
        int64_t left_ms = now_ms - event->now_ms;
        simulated_event_step(event, event->now_ms + (left_ms < STEP_MS ? left_ms : STEP_MS));
    }
}

/* Matches: about a third are being played at any time. Races: one after the other. */
static void open_desk(struct simulator *simulator, enum sport sport)
{
    struct desk *desk = &simulator->desks[sport];
    uint32_t count = simulator->options.events;
    int64_t length_ms = simulated_event_length_ms(sport), first_ms = simulator->now_ms;
    if (sport == SPORT_HORSE_RACING || sport == SPORT_GREYHOUND_RACING) {
        int64_t even_ms = RACES_SPAN_MS / count;
        desk->spacing_ms = even_ms < RACE_EVERY_MS ? even_ms : RACE_EVERY_MS;
        first_ms -= length_ms / 2;
    } else {
        desk->spacing_ms = length_ms * 3 / count;
        first_ms -= length_ms * 2 / 3;
    }
    desk->slots = memory_alloc_zeroed(count, sizeof *desk->slots);
    desk->order = memory_alloc_zeroed(count, sizeof(struct slot *));
    for (uint32_t i = 0; i < count; i++) {
        desk->order[i] = &desk->slots[i];
        fill_slot(simulator, sport, &desk->slots[i], first_ms + i * desk->spacing_ms);
        step_event(desk->slots[i].event, simulator->now_ms);
    }
}

struct simulator *simulator_create(const struct simulator_options *options, int64_t now_ms)
{
    CHECK(options->events > 0 && options->events <= SIMULATOR_EVENTS_MAX);
    CHECK(options->interval_ms > 0 && options->sports != 0);
    struct simulator *simulator = memory_alloc_zeroed(1, sizeof *simulator);
    simulator->options = *options;
    simulator->chance.state = chance_mix(options->seed);
    simulator->clock_ms = simulator->now_ms = now_ms;
    /* Ids go up with time, so that a restarted simulator does not give an old id to a new event. */
    simulator->next_id = 34000001 + (uint64_t)(now_ms / 3000) % 50000000;
    simulator->next_large_id = 9007199254740993U + simulator->next_id * 2;
    for (int sport = 0; sport < SPORT_COUNT; sport++)
        if (simulates(simulator, sport))
            open_desk(simulator, (enum sport)sport);
    return simulator;
}

void simulator_destroy(struct simulator **simulator)
{
    if (*simulator == NULL)
        return;
    for (int sport = 0; sport < SPORT_COUNT; sport++) {
        struct desk *desk = &(*simulator)->desks[sport];
        for (uint32_t i = 0; desk->slots != NULL && i < (*simulator)->options.events; i++) {
            simulated_event_destroy(&desk->slots[i].event);
            buffer_free(&desk->slots[i].document);
        }
        memory_free(desk->slots);
        memory_free(desk->order);
        buffer_free(&desk->catalog);
    }
    memory_free((*simulator)->retired);
    memory_free((*simulator)->changes);
    memory_free(*simulator);
    *simulator = NULL;
}

/* An event has left: a fresh one takes its place. Its odds must go from the store, if they are
 * there; so what waits here is never more than what was published. */
static void replace_event(struct simulator *simulator, enum sport sport, struct slot *slot)
{
    struct desk *desk = &simulator->desks[sport];
    if (slot->published_ms != 0) {
        if (simulator->retired_count == simulator->retired_capacity) {
            simulator->retired_capacity = simulator->retired_capacity * 2 + 64;
            simulator->retired = memory_resize(simulator->retired, simulator->retired_capacity *
                                                                       sizeof *simulator->retired);
        }
        simulator->retired[simulator->retired_count++] =
            (struct retired){.id = slot->event->id, .sport = sport};
    }
    simulated_event_destroy(&slot->event);
    buffer_free(&slot->document);
    int64_t start_ms = desk->last_start_ms + desk->spacing_ms;
    int64_t soonest_ms = simulator->now_ms + LEAD_MS;
    fill_slot(simulator, sport, slot, start_ms > soonest_ms ? start_ms : soonest_ms);
    simulator->facts.retired++;
}

static bool is_better_example(const struct event *event, const struct event *best)
{
    if (event->stage > STAGE_IN_PLAY)
        return false;
    if (best == NULL || event->stage != best->stage)
        return best == NULL || event->stage == STAGE_IN_PLAY;
    return event->stage == STAGE_IN_PLAY ? event->start_ms > best->start_ms
                                         : event->start_ms < best->start_ms;
}

void simulator_facts(const struct simulator *simulator, struct simulator_facts *facts)
{
    *facts = simulator->facts;
    for (int sport = 0; sport < SPORT_COUNT; sport++) {
        const struct event *best = NULL;
        for (uint32_t i = 0; simulates(simulator, sport) && i < simulator->options.events; i++) {
            const struct event *event = simulator->desks[sport].slots[i].event;
            if (is_better_example(event, best))
                best = event;
        }
        if (best != NULL)
            facts->example[sport] = best->id;
    }
}

/* ---- what is due ----------------------------------------------------------------------------- */

void simulator_note_interest(struct simulator *simulator, enum sport sport,
                             const struct event_id *event, int64_t requested_ms)
{
    const struct desk *desk = &simulator->desks[sport];
    for (uint32_t i = 0; desk->slots != NULL && i < simulator->options.events; i++) {
        if (!event_id_equals(&desk->slots[i].event->id, event))
            continue;
        if (requested_ms > desk->slots[i].requested_ms)
            desk->slots[i].requested_ms = requested_ms;
        return;
    }
}

static bool is_polled(const struct simulator *simulator, const struct slot *slot)
{
    return slot->requested_ms != 0 && slot->requested_ms >= simulator->clock_ms - POLLED_WITHIN_MS;
}

static bool odds_are_due(const struct simulator *simulator, const struct slot *slot)
{
    if (slot->published_ms == 0 || slot->published_stage != slot->event->stage)
        return true;
    /* A tick that comes a little early still counts. */
    int64_t interval_ms = simulator->options.interval_ms - simulator->options.interval_ms / 8;
    if (is_polled(simulator, slot))
        return simulator->now_ms - slot->published_ms >= interval_ms;
    return simulator->now_ms >= slot->due_ms;
}

static bool catalog_is_due(const struct simulator *simulator, const struct desk *desk)
{
    if (simulator->now_ms >= desk->catalog_due_ms)
        return true;
    for (uint32_t i = 0; i < simulator->options.events; i++)
        if (desk->slots[i].event->changed)
            return true;
    return false;
}

static void add_change(struct simulator *simulator, struct odds_change change)
{
    if (simulator->change_count == simulator->change_capacity) {
        simulator->change_capacity = simulator->change_capacity * 2 + 64;
        simulator->changes = memory_resize(simulator->changes,
                                           simulator->change_capacity * sizeof *simulator->changes);
    }
    simulator->changes[simulator->change_count++] = change;
}

/* In play first, then what comes next, then what is over. */
static int rank(const struct event *event)
{
    return event->stage == STAGE_IN_PLAY ? 0 : event->stage == STAGE_UPCOMING ? 1 : 2;
}

static int compare_slots(const void *left, const void *right)
{
    const struct event *a = (*(struct slot *const *)left)->event;
    const struct event *b = (*(struct slot *const *)right)->event;
    if (rank(a) != rank(b))
        return rank(a) - rank(b);
    if (a->start_ms != b->start_ms)
        return a->start_ms < b->start_ms ? -1 : 1;
    return a->serial < b->serial ? -1 : 1;
}

static void collect_catalog(struct simulator *simulator, enum sport sport)
{
    struct desk *desk = &simulator->desks[sport];
    uint32_t count = simulator->options.events;
    qsort(desk->order, count, sizeof(struct slot *), compare_slots);
    buffer_clear(&desk->catalog);
    for (uint32_t i = 0; i < count; i++) {
        buffer_append_char(&desk->catalog, i == 0 ? '[' : ',');
        simulated_event_write_row(desk->order[i]->event, &desk->catalog);
    }
    buffer_append_char(&desk->catalog, ']');
    desk->in_batch = true;
    add_change(simulator, (struct odds_change){.kind = ODDS_CATALOG,
                                               .sport = sport,
                                               .bytes = desk->catalog.data,
                                               .size = desk->catalog.size});
}

static void collect_desk(struct simulator *simulator, enum sport sport)
{
    struct desk *desk = &simulator->desks[sport];
    if (catalog_is_due(simulator, desk))
        collect_catalog(simulator, sport);
    for (uint32_t i = 0; i < simulator->options.events; i++) {
        struct slot *slot = &desk->slots[i];
        simulator->facts.events++;
        simulator->facts.in_play += slot->event->stage == STAGE_IN_PLAY;
        simulator->facts.polled += is_polled(simulator, slot);
        if (!odds_are_due(simulator, slot))
            continue;
        buffer_clear(&slot->document);
        simulated_event_write_markets(slot->event, &slot->document);
        slot->in_batch = true;
        add_change(simulator, (struct odds_change){.kind = ODDS_MARKETS,
                                                   .sport = sport,
                                                   .event = slot->event->id,
                                                   .bytes = slot->document.data,
                                                   .size = slot->document.size});
    }
}

/* The time that events live in: the time of day without the gaps and the steps back. */
static void move_clock(struct simulator *simulator, int64_t clock_ms)
{
    int64_t passed_ms = clock_ms - simulator->clock_ms;
    simulator->clock_ms = clock_ms;
    if (passed_ms >= 0 && passed_ms <= LEAP_MS) {
        simulator->now_ms += passed_ms;
        return;
    }
    simulator->shift_ms = clock_ms - simulator->now_ms;
    for (int sport = 0; sport < SPORT_COUNT; sport++)
        for (uint32_t i = 0; simulates(simulator, sport) && i < simulator->options.events; i++) {
            simulator->desks[sport].slots[i].event->clock_shift_ms = simulator->shift_ms;
            simulator->desks[sport].slots[i].event->changed = true;
        }
}

static void drop_batch(struct simulator *simulator)
{
    simulator->change_count = 0;
    simulator->facts.events = simulator->facts.in_play = simulator->facts.polled = 0;
    for (int sport = 0; sport < SPORT_COUNT; sport++) {
        simulator->desks[sport].in_batch = false;
        for (uint32_t i = 0; simulates(simulator, sport) && i < simulator->options.events; i++)
            simulator->desks[sport].slots[i].in_batch = false;
    }
}

void simulator_advance(struct simulator *simulator, int64_t now_ms,
                       const struct odds_change **changes, size_t *count)
{
    drop_batch(simulator);
    move_clock(simulator, now_ms);
    for (int sport = 0; sport < SPORT_COUNT; sport++) {
        for (uint32_t i = 0; simulates(simulator, sport) && i < simulator->options.events; i++) {
            struct slot *slot = &simulator->desks[sport].slots[i];
            step_event(slot->event, simulator->now_ms);
            if (slot->event->stage == STAGE_GONE)
                replace_event(simulator, (enum sport)sport, slot);
        }
    }
    for (size_t i = 0; i < simulator->retired_count; i++)
        add_change(simulator, (struct odds_change){.kind = ODDS_MARKETS,
                                                   .sport = simulator->retired[i].sport,
                                                   .event = simulator->retired[i].id});
    for (int sport = 0; sport < SPORT_COUNT; sport++)
        if (simulates(simulator, sport))
            collect_desk(simulator, (enum sport)sport);
    *changes = simulator->changes;
    *count = simulator->change_count;
}

static void publish_slot(struct simulator *simulator, struct slot *slot)
{
    bool first = slot->published_ms == 0;
    slot->published_ms = simulator->now_ms;
    slot->published_stage = slot->event->stage;
    /* The first minute's work is spread out, so that the following ones are. */
    slot->due_ms =
        simulator->now_ms + (first ? (int64_t)(slot->event->salt % UNPOLLED_MS) + 1 : UNPOLLED_MS);
    slot->in_batch = false;
    simulator->facts.markets++;
    simulator->facts.bytes += slot->document.size;
    buffer_free(&slot->document);
}

void simulator_published(struct simulator *simulator)
{
    for (int sport = 0; sport < SPORT_COUNT; sport++) {
        struct desk *desk = &simulator->desks[sport];
        for (uint32_t i = 0; simulates(simulator, sport) && i < simulator->options.events; i++) {
            if (desk->slots[i].in_batch)
                publish_slot(simulator, &desk->slots[i]);
            if (desk->in_batch)
                desk->slots[i].event->changed = false;
        }
        if (desk->in_batch) {
            simulator->facts.catalogs++;
            simulator->facts.bytes += desk->catalog.size;
            desk->catalog_due_ms = simulator->now_ms + CATALOG_MS;
            desk->in_batch = false;
        }
    }
    simulator->retired_count = 0;
    simulator->change_count = 0;
}

/* ---- into a store ---------------------------------------------------------------------------- */

static enum status read_interest(struct simulator *simulator, int64_t now_ms,
                                 struct odds_store *store, struct error *error)
{
    for (int sport = 0; sport < SPORT_COUNT; sport++) {
        if (!simulates(simulator, sport))
            continue;
        struct odds_interest *list = NULL;
        size_t count = 0;
        enum status status = odds_store_list_interest(
            store, (enum sport)sport, now_ms - POLLED_WITHIN_MS, &list, &count, error);
        if (status != STATUS_OK)
            return status;
        for (size_t i = 0; i < count; i++)
            simulator_note_interest(simulator, (enum sport)sport, &list[i].event,
                                    list[i].requested_ms);
        memory_free(list);
    }
    return STATUS_OK;
}

static bool has_event(const struct simulator *simulator, enum sport sport,
                      const struct event_id *event)
{
    const struct desk *desk = &simulator->desks[sport];
    for (uint32_t i = 0; i < simulator->options.events; i++)
        if (event_id_equals(&desk->slots[i].event->id, event))
            return true;
    return false;
}

/* Adds the withdrawal of what somebody published before this simulator. */
static enum status collect_leftovers(struct simulator *simulator, struct odds_store *store,
                                     struct error *error)
{
    for (int sport = 0; sport < SPORT_COUNT; sport++) {
        struct event_id *list = NULL;
        size_t count = 0;
        if (!simulates(simulator, sport))
            continue;
        enum status status = odds_store_list_events(store, (enum sport)sport, &list, &count, error);
        if (status != STATUS_OK)
            return status;
        for (size_t i = 0; i < count; i++)
            if (!has_event(simulator, (enum sport)sport, &list[i]))
                add_change(simulator, (struct odds_change){.kind = ODDS_MARKETS,
                                                           .sport = (enum sport)sport,
                                                           .event = list[i]});
        memory_free(list);
    }
    return STATUS_OK;
}

enum status simulator_tick(struct simulator *simulator, int64_t now_ms, struct odds_store *store,
                           struct error *error)
{
    enum status status = read_interest(simulator, now_ms, store, error);
    if (status != STATUS_OK)
        return status;
    const struct odds_change *changes;
    size_t count;
    simulator_advance(simulator, now_ms, &changes, &count);
    if (!simulator->cleared)
        status = collect_leftovers(simulator, store, error);
    if (status == STATUS_OK && simulator->change_count > 0)
        status = odds_store_publish(store, simulator->changes, simulator->change_count, error);
    if (status != STATUS_OK)
        return status;
    simulator->cleared = true;
    simulator_published(simulator);
    return STATUS_OK;
}
