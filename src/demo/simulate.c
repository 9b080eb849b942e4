/*
 * The simulated feed's timetable: which events there are, when each is moved, and what is due for
 * publication. What happens in an event is demo/event.c and its models.
 *
 * State and publication are apart: advancing moves events by time and collects what is due; only
 * simulator_published marks it as done. So a store that is away loses nothing but time.
 */
#include "demo/simulate.h"

#include <stdlib.h>

#include "base/memory.h"
#include "demo/event.h"
#include "feed/publication.h"

#define STEP_MS 1000         /* the longest step of an event */
#define LEAP_MS (120 * 1000) /* a longer gap is left out */
#define UNPOLLED_MS (60 * 1000)
#define CATALOG_MS (60 * 1000)
#define POLLED_WITHIN_MS (10 * 1000)
#define LEAD_MS (20 * 1000) /* a new event starts no sooner than this */
#define RACES_SPAN_MS (20 * 60 * 1000)
#define RACE_EVERY_MS (60 * 1000)

struct slot { /* of an event, and after it of the next one */
    struct event *event;
    struct buffer document; /* while in a batch */
    struct event_id left;   /* was published here before, and is to be withdrawn; size 0: none */
    int64_t requested_ms;   /* time of day of the last known request */
    int64_t published_ms;   /* 0: never */
    int64_t due_ms;         /* the next publication of an event that is not polled */
    enum stage published_stage;
    bool in_batch;
};

struct timetable {      /* of one sport */
    struct slot *slots; /* as many as options.events, in the order of the last catalog */
    struct buffer catalog;
    uint32_t serial; /* of the next event */
    int64_t last_start_ms;
    int64_t spacing_ms;
    int64_t catalog_due_ms;
    bool in_batch;
};

struct simulator {
    struct simulator_options options;
    struct timetable timetables[SPORT_COUNT]; /* zeros of a sport that is not simulated */
    struct slot *slots;                       /* of all sports, one sport after the other */
    struct slot *slots_end;
    struct chance chance;
    uint64_t next_id;
    uint64_t next_large_id;
    int64_t clock_ms; /* time of day when last advanced */
    int64_t shift_ms; /* time of day minus the time that events live in */
    int64_t now_ms;   /* that time */
    bool cleared;     /* the store holds nothing from before */
    struct feed_publication due;
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
    struct timetable *timetable = &simulator->timetables[sport];
    uint32_t serial = timetable->serial++;
    struct event_plan plan = {
        .sport = sport,
        .serial = serial,
        .id = new_event_id(simulator, sport, serial),
        .seed = chance_next(&simulator->chance),
        .start_ms = start_ms,
        .born_ms = simulator->now_ms,
    };
    *slot = (struct slot){.event = simulated_event_create(&plan), .left = slot->left};
    slot->event->clock_shift_ms = simulator->shift_ms;
    timetable->last_start_ms = start_ms;
}

static void step_event(struct event *event, int64_t now_ms)
{
    while (event->now_ms < now_ms && event->stage != STAGE_GONE) {
        int64_t left_ms = now_ms - event->now_ms;
        simulated_event_step(event, event->now_ms + (left_ms < STEP_MS ? left_ms : STEP_MS));
    }
}

/* Matches: about a third are being played at any time. Races: one after the other. */
static void open_timetable(struct simulator *simulator, enum sport sport)
{
    struct timetable *timetable = &simulator->timetables[sport];
    uint32_t count = simulator->options.events;
    int64_t length_ms = simulated_event_length_ms(sport), first_ms = simulator->now_ms;
    if (sport == SPORT_HORSE_RACING || sport == SPORT_GREYHOUND_RACING) {
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
        fill_slot(simulator, sport, slot, first_ms + i * timetable->spacing_ms);
        step_event(slot->event, simulator->now_ms);
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
    struct simulator *simulator = *at;
    *at = NULL;
    if (simulator == NULL)
        return;
    for (struct slot *slot = simulator->slots; slot < simulator->slots_end; slot++) {
        simulated_event_destroy(&slot->event);
        buffer_free(&slot->document);
    }
    for (int sport = 0; sport < SPORT_COUNT; sport++)
        buffer_free(&simulator->timetables[sport].catalog);
    memory_free(simulator->slots);
    feed_publication_free(&simulator->due);
    memory_free(simulator);
}

/* An event has left: a new one follows it in its slot. What was published of it must go from the
 * store. One id a slot is enough: an event that came and left while the store was away was never
 * published. */
static void replace_event(struct simulator *simulator, struct slot *slot)
{
    enum sport sport = slot->event->sport;
    struct timetable *timetable = &simulator->timetables[sport];
    if (slot->published_ms != 0)
        slot->left = slot->event->id;
    simulated_event_destroy(&slot->event);
    buffer_free(&slot->document);
    int64_t start_ms = timetable->last_start_ms + timetable->spacing_ms;
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
    const struct event *best[SPORT_COUNT] = {NULL};
    *facts = simulator->facts;
    for (const struct slot *slot = simulator->slots; slot < simulator->slots_end; slot++) {
        enum sport sport = slot->event->sport;
        if (!is_better_example(slot->event, best[sport]))
            continue;
        best[sport] = slot->event;
        facts->example[sport] = slot->event->id;
    }
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

static bool catalog_is_due(const struct simulator *simulator, const struct timetable *timetable)
{
    if (simulator->now_ms >= timetable->catalog_due_ms)
        return true;
    for (uint32_t i = 0; i < simulator->options.events; i++)
        if (timetable->slots[i].event->changed)
            return true;
    return false;
}

/* Odds without a document are withdrawn. */
static void add_change(struct simulator *simulator, enum odds_kind kind, enum sport sport,
                       const struct event_id *event, const struct buffer *document)
{
    struct odds_change change = {.kind = kind, .sport = sport};
    if (event != NULL)
        change.event = *event;
    if (document != NULL) {
        change.bytes = document->data;
        change.size = document->size;
    }
    feed_publication_add(&simulator->due, &change);
}

/* In play first, then what comes next, then what is over. */
static int rank(const struct event *event)
{
    return event->stage == STAGE_IN_PLAY ? 0 : event->stage == STAGE_UPCOMING ? 1 : 2;
}

static int compare_slots(const void *left, const void *right)
{
    const struct event *a = ((const struct slot *)left)->event;
    const struct event *b = ((const struct slot *)right)->event;
    if (rank(a) != rank(b))
        return rank(a) - rank(b);
    if (a->start_ms != b->start_ms)
        return a->start_ms < b->start_ms ? -1 : 1;
    return a->serial < b->serial ? -1 : 1;
}

static void collect_catalog(struct simulator *simulator, enum sport sport)
{
    struct timetable *timetable = &simulator->timetables[sport];
    struct json_writer json = {.out = &timetable->catalog};
    qsort(timetable->slots, simulator->options.events, sizeof *timetable->slots, compare_slots);
    buffer_clear(&timetable->catalog);
    json_array(&json, NULL);
    for (uint32_t i = 0; i < simulator->options.events; i++)
        simulated_event_write_row(timetable->slots[i].event, &json);
    json_end(&json);
    timetable->in_batch = true;
    add_change(simulator, ODDS_CATALOG, sport, NULL, &timetable->catalog);
}

static void collect_odds(struct simulator *simulator, struct slot *slot)
{
    simulator->facts.events++;
    simulator->facts.in_play += slot->event->stage == STAGE_IN_PLAY;
    simulator->facts.polled += is_polled(simulator, slot);
    slot->in_batch = odds_are_due(simulator, slot);
    if (!slot->in_batch)
        return;
    buffer_clear(&slot->document);
    simulated_event_write_markets(slot->event, &slot->document);
    add_change(simulator, ODDS_MARKETS, slot->event->sport, &slot->event->id, &slot->document);
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
    for (struct slot *slot = simulator->slots; slot < simulator->slots_end; slot++) {
        slot->event->clock_shift_ms = simulator->shift_ms;
        slot->event->changed = true;
    }
}

void simulator_advance(struct simulator *simulator, int64_t now_ms,
                       const struct odds_change **changes, size_t *count)
{
    simulator->facts.events = simulator->facts.in_play = simulator->facts.polled = 0;
    feed_publication_clear(&simulator->due);
    move_clock(simulator, now_ms);
    for (struct slot *slot = simulator->slots; slot < simulator->slots_end; slot++) {
        step_event(slot->event, simulator->now_ms);
        if (slot->event->stage == STAGE_GONE)
            replace_event(simulator, slot);
        if (slot->left.size > 0)
            add_change(simulator, ODDS_MARKETS, slot->event->sport, &slot->left, NULL);
    }
    for (int sport = 0; sport < SPORT_COUNT; sport++) {
        struct timetable *timetable = &simulator->timetables[sport];
        timetable->in_batch = false;
        if (simulates(simulator, sport) && catalog_is_due(simulator, timetable))
            collect_catalog(simulator, (enum sport)sport);
    }
    for (struct slot *slot = simulator->slots; slot < simulator->slots_end; slot++)
        collect_odds(simulator, slot);
    *changes = simulator->due.changes;
    *count = simulator->due.count;
}

static void mark_published(struct simulator *simulator, struct slot *slot)
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
    for (struct slot *slot = simulator->slots; slot < simulator->slots_end; slot++) {
        slot->left = (struct event_id){0};
        if (slot->in_batch)
            mark_published(simulator, slot);
        if (simulator->timetables[slot->event->sport].in_batch)
            slot->event->changed = false;
    }
    for (int sport = 0; sport < SPORT_COUNT; sport++) {
        struct timetable *timetable = &simulator->timetables[sport];
        if (!timetable->in_batch)
            continue;
        simulator->facts.catalogs++;
        simulator->facts.bytes += timetable->catalog.size;
        timetable->catalog_due_ms = simulator->now_ms + CATALOG_MS;
        timetable->in_batch = false;
    }
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
    /* And what was published before this simulator is withdrawn. */
    for (int sport = 0; sport < SPORT_COUNT && status == STATUS_OK; sport++)
        if (simulates(simulator, sport) && !simulator->cleared)
            status = feed_publication_withdraw_odds(&simulator->due, store, (enum sport)sport,
                                                    is_simulated, simulator, error);
    if (status == STATUS_OK)
        status = feed_publication_publish(&simulator->due, store, error);
    if (status != STATUS_OK)
        return status;
    simulator->cleared = true;
    simulator_published(simulator);
    return STATUS_OK;
}
