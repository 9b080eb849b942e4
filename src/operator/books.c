/*
 * One thread reads the ledger, another adds up; the sums come when all has been read.
 *
 * Sums are found by a hash. When there are more than may be kept, the upper half of them in their
 * order is dropped, and whatever is not below the least of those is passed over from then on: what
 * is left is exact. The ledger is then read again from that bound on, until nothing was dropped. So
 * memory is bounded whatever rounds there are, and the sums come in order all the same.
 *
 * Few references lead far back: what entries belong to is remembered for the newest of them, and
 * looked up by the other handle for the rest.
 */
#include "operator/books.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "operator/audit_relay.h"

#define PROGRESS_STEP 10000
#define LINES_AT_ONCE 100000 /* some 30 MB */
#define RECENT_COUNT 8192    /* some 2 MB; a power of two */

/* What an entry belongs to. */
struct origin {
    char owner_id[LEDGER_OWNER_SIZE]; /* of the id; "": nothing is remembered here */
    char transaction_id[TRANSACTION_ID_SIZE];
    char game_id[GAME_REFERENCE_SIZE];
    char round_id[GAME_REFERENCE_SIZE];
};

struct game_of {
    char game_id[GAME_ID_SIZE];
    char provider_id[PROVIDER_ID_SIZE];
};

struct sums {
    struct books_line *lines;
    uint32_t *slots; /* by hash; 0: empty; else a place in `lines`, from 1 */
    size_t count, slot_count, most;
    bool has_from, has_below;
    struct books_line from, below; /* keys: what is outside is another reading's */
};

struct books {
    const struct books_options *options;
    struct platform_store *store;
    struct error *error;
    struct relay *relay;
    uint64_t read, total;
    bool again;            /* the entries have been visited: this reading is for more sums */
    struct game_of *games; /* by id */
    size_t game_count;
    uint64_t seed;
    /* The relay's thread's, while it runs: */
    struct sums sums;
    struct origin *recent; /* by hash, the newest one; NULL: not wanted */
    enum status status;
    struct error failure;
    bool stopped;
};

/* ---- one sum --------------------------------------------------------------------------------- */

int64_t books_rollbacks_minor(const struct books_line *line)
{
    return line->debits_back_minor - line->credits_back_minor;
}

int64_t books_movement_minor(const struct books_line *line)
{
    return line->credits_minor - line->debits_minor + books_rollbacks_minor(line);
}

uint64_t books_entries(const struct books_line *line)
{
    uint64_t entries = 0;
    for (size_t i = 0; i < LEDGER_OPERATION_COUNT; i++)
        entries += line->entries[i];
    return entries;
}

/* Each sum is at least 0 and so small that no difference of two pairs of them leaves int64_t. */
static bool add_minor(int64_t *sum, int64_t more)
{
    return !__builtin_add_overflow(*sum, more, sum) && *sum < LEDGER_CLEARING_MAX;
}

bool books_add(struct books_line *sum, const struct books_line *line)
{
    struct books_line added = *sum;
    if (!add_minor(&added.debits_minor, line->debits_minor) ||
        !add_minor(&added.credits_minor, line->credits_minor) ||
        !add_minor(&added.debits_back_minor, line->debits_back_minor) ||
        !add_minor(&added.credits_back_minor, line->credits_back_minor))
        return false;
    for (size_t i = 0; i < LEDGER_OPERATION_COUNT; i++)
        added.entries[i] += line->entries[i];
    *sum = added;
    return true;
}

static int compare_lines(const void *left, const void *right)
{
    const struct books_line *a = left;
    const struct books_line *b = right;
    int order = strcmp(a->customer_id, b->customer_id);
    if (order == 0)
        order = strcmp(a->currency, b->currency);
    if (order == 0)
        order = (a->day > b->day) - (a->day < b->day);
    if (order == 0)
        order = strcmp(a->provider_id, b->provider_id);
    if (order == 0)
        order = strcmp(a->game_id, b->game_id);
    return order != 0 ? order : strcmp(a->round_id, b->round_id);
}

static uint64_t hash_line(uint64_t seed, const struct books_line *line)
{
    uint64_t hash = hash_string(seed ^ (uint64_t)line->day, line->customer_id);
    hash = hash_string(hash, line->currency);
    hash = hash_string(hash, line->game_id); /* which says the provider as well */
    return line->round_id[0] == '\0' ? hash : hash_string(hash, line->round_id);
}

/* ---- the sums in memory ---------------------------------------------------------------------- */

static uint32_t *slot_of(const struct books *books, const struct books_line *line)
{
    const struct sums *sums = &books->sums;
    for (uint64_t at = hash_line(books->seed, line);; at++) {
        uint32_t *slot = &sums->slots[at & (sums->slot_count - 1)];
        if (*slot == 0 || compare_lines(&sums->lines[*slot - 1], line) == 0)
            return slot;
    }
}

static void make_room(struct books *books, size_t slot_count)
{
    struct sums *sums = &books->sums;
    memory_free(sums->slots);
    sums->slot_count = slot_count;
    sums->slots = memory_alloc_zeroed(slot_count, sizeof sums->slots[0]);
    sums->lines = memory_resize(sums->lines, slot_count / 2 * sizeof sums->lines[0]);
    for (uint32_t i = 0; i < sums->count; i++)
        *slot_of(books, &sums->lines[i]) = i + 1;
}

static void drop_upper_half(struct books *books)
{
    struct sums *sums = &books->sums;
    qsort(sums->lines, sums->count, sizeof sums->lines[0], compare_lines);
    sums->count /= 2;
    sums->below = sums->lines[sums->count];
    sums->has_below = true;
    make_room(books, sums->slot_count);
}

/* Adds it to the sum that has its key. False: beyond what can be added. */
static bool add_line(struct books *books, const struct books_line *line)
{
    struct sums *sums = &books->sums;
    if ((sums->has_from && compare_lines(line, &sums->from) < 0) ||
        (sums->has_below && compare_lines(line, &sums->below) >= 0))
        return true;
    uint32_t *slot = slot_of(books, line);
    if (*slot != 0)
        return books_add(&sums->lines[*slot - 1], line);
    if (sums->count == sums->most) {
        drop_upper_half(books);
        return add_line(books, line);
    }
    if (sums->count == sums->slot_count / 2)
        make_room(books, sums->slot_count * 2);
    sums->lines[sums->count++] = *line;
    *slot_of(books, line) = (uint32_t)sums->count;
    return true;
}

/* ---- what an entry belongs to ---------------------------------------------------------------- */

static struct origin *recent_of(struct books *books, const char *owner_id, const char *id)
{
    uint64_t hash = hash_string(hash_string(books->seed, owner_id), id);
    return &books->recent[hash & (RECENT_COUNT - 1)];
}

static void take_over(struct origin *origin, const char *game_id, const char *round_id)
{
    if (origin->game_id[0] == '\0')
        memcpy(origin->game_id, game_id, sizeof origin->game_id);
    if (origin->round_id[0] == '\0')
        memcpy(origin->round_id, round_id, sizeof origin->round_id);
}

/* Follows references from the entry: a ROLLBACK's leads to a credit at most, and that one's to a
 * debit. */
static enum status follow(struct books *books, struct origin *origin, const char *reference,
                          struct error *error)
{
    struct ledger_fact fact;
    ledger_ask(&fact, origin->owner_id, reference);
    for (int steps = 0; steps < 2 && fact.transaction_id[0] != '\0' &&
                        (origin->game_id[0] == '\0' || origin->round_id[0] == '\0');
         steps++) {
        const struct origin *known = recent_of(books, fact.owner_id, fact.transaction_id);
        if (strcmp(known->transaction_id, fact.transaction_id) == 0 &&
            strcmp(known->owner_id, fact.owner_id) == 0) {
            take_over(origin, known->game_id, known->round_id);
            return STATUS_OK;
        }
        enum status status =
            books->options->beside->ledger->id(books->options->beside, &fact, error);
        if (status != STATUS_OK || !fact.id.known)
            return status;
        take_over(origin, fact.id.transaction.game_id, fact.id.transaction.round_id);
        memcpy(fact.transaction_id, fact.id.transaction.reference, sizeof fact.transaction_id);
    }
    return STATUS_OK;
}

static int compare_games(const void *a, const void *b)
{
    return strcmp(((const struct game_of *)a)->game_id, ((const struct game_of *)b)->game_id);
}

static const char *provider_of(const struct books *books, const char *game_id)
{
    struct game_of asked = {.game_id = ""};
    if (strlen(game_id) >= sizeof asked.game_id)
        return "";
    memcpy(asked.game_id, game_id, strlen(game_id));
    const struct game_of *found =
        bsearch(&asked, books->games, books->game_count, sizeof asked, compare_games);
    return found == NULL ? "" : found->provider_id;
}

/* ---- an entry -------------------------------------------------------------------------------- */

/* Its amount, under what it belongs to as far as lines differ by it. */
static struct books_line line_of(const struct books *books, const struct ledger_transaction *entry,
                                 const struct origin *origin, const char *provider_id)
{
    const struct books_options *options = books->options;
    struct books_line line = {.currency_exponent = entry->currency_exponent,
                              .day = options->by_day ? clock_day(entry->created_ms) : 0};
    int64_t movement = entry->movement_minor;
    memcpy(line.customer_id, entry->customer_id, sizeof line.customer_id);
    memcpy(line.currency, entry->currency, sizeof line.currency);
    if (options->by_game) {
        memcpy(line.provider_id, provider_id, strlen(provider_id));
        memcpy(line.game_id, origin->game_id, sizeof line.game_id);
    }
    if (options->by_round)
        memcpy(line.round_id, origin->round_id, sizeof line.round_id);
    line.entries[entry->operation] = 1;
    if (entry->operation == LEDGER_DEBIT)
        line.debits_minor = -movement;
    else if (entry->operation == LEDGER_CREDIT)
        line.credits_minor = movement;
    else if (movement > 0) /* money that comes back to the player was bet */
        line.debits_back_minor = movement;
    else
        line.credits_back_minor = -movement;
    return line;
}

static bool fails(struct books *books, enum status status)
{
    books->status = status;
    return false;
}

/* On the relay's thread. */
static bool enter(void *context, const struct ledger_transaction *entry)
{
    struct books *books = context;
    const struct books_options *options = books->options;
    struct origin origin = {.game_id = ""};
    const char *provider_id = "";
    if (books->recent != NULL) {
        memcpy(origin.owner_id, ledger_owner(entry), strlen(ledger_owner(entry)) + 1);
        memcpy(origin.transaction_id, entry->transaction_id, sizeof origin.transaction_id);
        take_over(&origin, entry->game_id, entry->round_id);
        enum status status = follow(books, &origin, entry->reference, &books->failure);
        if (status != STATUS_OK)
            return fails(books, status);
        *recent_of(books, origin.owner_id, origin.transaction_id) = origin;
        provider_id =
            entry->provider_id[0] != '\0' ? entry->provider_id : provider_of(books, origin.game_id);
    }
    if (options->provider_id != NULL && strcmp(options->provider_id, provider_id) != 0)
        return true;
    if (options->entry != NULL && !books->again && !options->entry(options->context, entry)) {
        books->stopped = true;
        return false;
    }
    const struct books_line line = line_of(books, entry, &origin, provider_id);
    if (options->line == NULL || add_line(books, &line))
        return true;
    return fails(books, error_set(&books->failure, STATUS_MALFORMED,
                                  "the sums of customer %s in %s are beyond what a ledger can have",
                                  entry->customer_id, entry->currency));
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool hand_on(void *context, const struct ledger_transaction *entry)
{
    struct books *books = context;
    const struct books_options *options = books->options;
    if (++books->read % PROGRESS_STEP == 0 && options->progress != NULL)
        options->progress(options->context, books->read, books->total);
    if (options->customer_id != NULL && strcmp(options->customer_id, entry->customer_id) != 0)
        return true;
    return relay_put(books->relay, entry);
}

static bool hand_on_of_player(void *context, const struct ledger_transaction *entry,
                              const struct ledger_account *account)
{
    (void)account;
    return hand_on(context, entry);
}

static enum status read_entries(struct books *books)
{
    const struct books_options *options = books->options;
    const struct ledger_verbs *ledger = books->store->ledger;
    books->relay = relay_create(enter, books);
    enum status status =
        options->timed ? ledger->entered(books->store, options->from_ms, options->to_ms, hand_on,
                                         books, books->error)
                       : ledger->entries(books->store,
                                         (struct ledger_whose){.customer_id = options->customer_id},
                                         hand_on_of_player, books, books->error);
    relay_destroy(&books->relay);
    if (status == STATUS_OK && books->status != STATUS_OK) {
        *books->error = books->failure;
        return books->status;
    }
    return status;
}

/* The sums of this reading. */
static void hand_out(struct books *books)
{
    const struct books_options *options = books->options;
    struct sums *sums = &books->sums;
    qsort(sums->lines, sums->count, sizeof sums->lines[0], compare_lines);
    for (size_t i = 0; i < sums->count && !books->stopped; i++)
        books->stopped = !options->line(options->context, &sums->lines[i]);
}

static enum status read_all(struct books *books)
{
    struct sums *sums = &books->sums;
    for (;;) {
        sums->count = 0;
        make_room(books, 64);
        enum status status = read_entries(books);
        if (status != STATUS_OK || books->stopped || books->options->line == NULL)
            return status;
        hand_out(books);
        if (!sums->has_below || books->stopped)
            return STATUS_OK;
        sums->from = sums->below;
        sums->has_from = true;
        sums->has_below = false;
        books->again = true;
        books->read = 0;
    }
}

static bool note_game(void *context, const void *visited)
{
    const struct game_record *record = visited;
    struct books *books = context;
    CHECK(books->game_count < GAMES_MAX);
    struct game_of *game = &books->games[books->game_count++];
    memcpy(game->game_id, record->id, sizeof game->game_id);
    memcpy(game->provider_id, record->provider_id, sizeof game->provider_id);
    return true;
}

/* Whatever is not a matter of each entry. */
static enum status prepare(struct books *books)
{
    const struct books_options *options = books->options;
    enum status status = STATUS_OK;
    if (options->by_game || options->by_round || options->provider_id != NULL) {
        CHECK(options->beside != NULL);
        books->recent = memory_alloc_zeroed(RECENT_COUNT, sizeof books->recent[0]);
        books->games = memory_alloc_zeroed(GAMES_MAX, sizeof books->games[0]);
        status = platform_list(options->beside, &game_table, NULL, note_game, books, books->error);
        qsort(books->games, books->game_count, sizeof books->games[0], compare_games);
    }
    if (status == STATUS_OK && !options->timed && options->customer_id == NULL)
        status = books->store->ledger->count(books->store, &books->total, books->error);
    return status;
}

enum status books_read(struct platform_store *store, const struct books_options *options,
                       struct error *error)
{
    struct books *books = memory_alloc_zeroed(1, sizeof *books);
    books->options = options;
    books->store = store;
    books->error = error;
    books->seed = hash_random_seed();
    books->sums.most = options->lines_at_once != 0 ? options->lines_at_once : LINES_AT_ONCE;
    CHECK(books->sums.most >= 2); /* or none would be left when half are dropped */
    enum status status = store->ledger->snapshot_begin(store, error);
    if (status == STATUS_OK) {
        status = prepare(books);
        if (status == STATUS_OK)
            status = read_all(books);
        store->ledger->snapshot_end(store);
    }
    memory_free(books->sums.lines);
    memory_free(books->sums.slots);
    memory_free(books->recent);
    memory_free(books->games);
    memory_free(books);
    return status;
}
