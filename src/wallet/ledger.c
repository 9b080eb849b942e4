/*
 * Two lanes, each a bounded queue and a thread: one for what writes, one for BALANCE. A lane's lock
 * guards its queue; a job belongs to the queue, then to the thread, then to its mailbox. A third
 * thread looks after the store meanwhile.
 *
 * The writer keeps the batch's view in memory: places and facts are loaded once and brought up to
 * date with each decision, so that the last request of a batch sees what the first one did. Nothing
 * of the view outlives the batch: every batch starts from what is stored.
 */
#include "wallet/ledger.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/threads.h"

/* Between two attempts to open a store that cannot be used. What comes meanwhile is refused at
 * once, so it is also how long one failure of the disk may be felt. */
#define REOPEN_PAUSE_MS 100
#define ATTEMPTS_MAX 8   /* at a batch that other writers come between */
#define ATTEMPTS_MS 2000 /* after which there is no further one */
#define INDEX_SLOTS 1024 /* twice what a batch can look up; a power of two */

static const uint32_t batch_bounds[LEDGER_BATCH_BUCKETS - 1] = {1, 4, 16, 64, 256};
static const uint32_t commit_bounds_ms[LEDGER_COMMIT_BUCKETS - 1] = {1, 2, 5, 10, 50, 250, 1000};

struct lane {
    struct ledger *ledger;
    uv_thread_t thread;
    void (*run)(struct lane *lane, struct ledger_job **jobs, size_t count);
    struct platform_store *store; /* the thread's; NULL: not open */
    uint64_t failed_ms;           /* when opening failed last; 0: never, or it is well again */
    bool told;                    /* the log knows that it cannot be used */

    uv_mutex_t lock; /* guards everything below */
    uv_cond_t more;
    struct ledger_job *first, *last;
    size_t depth;
    bool ending;
};

/* Does the store's upkeep beside the batches (platform_ledger.h). */
struct keeper {
    uv_thread_t thread;
    uv_mutex_t lock; /* guards everything below */
    uv_cond_t more;
    enum { KEEPER_RESTS, KEEPER_WORKS, KEEPER_IS_DONE } state;
    bool ending;
};

struct ledger {
    struct ledger_options options;
    struct lane writer, reader;
    uv_sem_t begun;        /* the writer has tried to open the store; the reader waits for that */
    atomic_bool recovered; /* the store, since this process began */
    struct keeper keeper;
    struct ledger_batch *batch; /* the writer's */
    struct ledger_place *asked; /* the reader's */
    uint64_t seed;              /* of the next two: clients choose ids */
    uint16_t place_index[INDEX_SLOTS];
    uint16_t fact_index[INDEX_SLOTS];

    atomic_uint_fast64_t operations[WALLET_OPERATION_COUNT][LEDGER_COUNTED_COUNT];
    atomic_uint_fast64_t batches[LEDGER_BATCH_BUCKETS];
    atomic_uint_fast64_t batched;
    atomic_uint_fast64_t commits[LEDGER_COMMIT_BUCKETS];
    atomic_uint_fast64_t commit_ns;
    atomic_uint_fast64_t reopened;
    atomic_uint_fast64_t conflicts;
    uv_mutex_t index_lock; /* guards the next, which the writer leaves after each batch */
    struct ledger_index_facts index;
};

static void add(atomic_uint_fast64_t *counter, uint64_t amount)
{
    (void)atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

/* ---- answers --------------------------------------------------------------------------------- */

static size_t counted(const struct wallet_answer *answer)
{
    switch (answer->kind) {
    case WALLET_ANSWER_BALANCE:
        return LEDGER_APPLIED;
    case WALLET_ANSWER_TRANSACTION:
        return answer->replayed ? (size_t)LEDGER_COUNTED_REPLAYED
                                : (size_t)answer->transaction.outcome;
    case WALLET_ANSWER_REFUSED:
        return LEDGER_COUNTED_REFUSED;
    case WALLET_ANSWER_UNAVAILABLE:
        return LEDGER_COUNTED_UNAVAILABLE;
    case WALLET_ANSWER_UNKNOWN:
        return LEDGER_COUNTED_UNKNOWN;
    }
    return LEDGER_COUNTED_UNKNOWN;
}

static void answer(struct ledger *ledger, struct ledger_job *job)
{
    add(&ledger->operations[job->request.operation][counted(&job->answer)], 1);
    mailbox_post(job->mailbox, &job->mail); /* from here on it is the asker's */
}

static void answer_all(struct ledger *ledger, struct ledger_job **jobs, size_t count,
                       enum wallet_answer_kind kind)
{
    for (size_t i = 0; i < count; i++) {
        jobs[i]->answer.kind = kind;
        answer(ledger, jobs[i]);
    }
}

static void refuse(struct wallet_answer *to, enum wallet_verdict verdict)
{
    to->kind = WALLET_ANSWER_REFUSED;
    to->verdict = verdict;
}

/* ---- the store of a lane --------------------------------------------------------------------- */

/* Told once when it begins and once when it is over, not with every batch. */
static void cannot_be_used(struct lane *lane, const char *reason)
{
    platform_store_close(&lane->store);
    lane->failed_ms = clock_monotonic_ms();
    if (!lane->told)
        log_event(lane->ledger->options.log, LOG_ERROR, "ledger is unavailable",
                  LOG_STRING("reason", reason));
    lane->told = true;
}

/* A crash may have left visible what is not durable yet; so no answer is made from the store, not
 * even a BALANCE, before it was recovered once. */
static enum status open_store(struct lane *lane, struct error *error)
{
    struct ledger *ledger = lane->ledger;
    enum status status = platform_store_open(&lane->store, &ledger->options.platform, error);
    bool recovers =
        lane == &ledger->writer || !atomic_load_explicit(&ledger->recovered, memory_order_acquire);
    if (status != STATUS_OK || !recovers)
        return status;
    status = lane->store->ledger->recover(lane->store, error);
    if (status == STATUS_OK)
        atomic_store_explicit(&ledger->recovered, true, memory_order_release);
    return status;
}

/* Opens and checks a store that is not open. False: it cannot be used now. */
static bool store_is_ready(struct lane *lane)
{
    struct error error = {0};
    if (lane->store != NULL)
        return true;
    if (lane->failed_ms != 0 && clock_monotonic_ms() < lane->failed_ms + REOPEN_PAUSE_MS)
        return false;
    enum status status = open_store(lane, &error);
    if (status != STATUS_OK) {
        cannot_be_used(lane, error.text);
        return false;
    }
    if (lane->failed_ms != 0)
        add(&lane->ledger->reopened, 1);
    if (lane->told)
        log_event(lane->ledger->options.log, LOG_INFO, "ledger is available again");
    lane->failed_ms = 0;
    lane->told = false;
    return true;
}

/* ---- what a batch is about ------------------------------------------------------------------- */

static size_t place_of(struct ledger *ledger, const char *player_id)
{
    struct ledger_batch *batch = ledger->batch;
    for (size_t at = hash_string(ledger->seed, player_id);; at++) {
        uint16_t *slot = &ledger->place_index[at % INDEX_SLOTS];
        if (*slot == 0) {
            struct ledger_place *place = &batch->places[batch->place_count++];
            place->found = false;
            memcpy(place->player_id, player_id, sizeof place->player_id);
            *slot = (uint16_t)batch->place_count;
            return batch->place_count - 1;
        }
        if (strcmp(batch->places[*slot - 1].player_id, player_id) == 0)
            return *slot - 1U;
    }
}

/* With `make`, adds one that is not there yet; else its absence is SIZE_MAX. */
static size_t fact_of(struct ledger *ledger, const char *customer_id, const char *id, bool make)
{
    struct ledger_batch *batch = ledger->batch;
    for (size_t at = hash_string(hash_string(ledger->seed, customer_id), id);; at++) {
        uint16_t *slot = &ledger->fact_index[at % INDEX_SLOTS];
        if (*slot == 0) {
            if (!make)
                return SIZE_MAX;
            struct ledger_fact *fact = &batch->facts[batch->fact_count++];
            memcpy(fact->customer_id, customer_id, sizeof fact->customer_id);
            memcpy(fact->transaction_id, id, sizeof fact->transaction_id);
            fact->counts_credits = false;
            *slot = (uint16_t)batch->fact_count;
            return batch->fact_count - 1;
        }
        const struct ledger_fact *fact = &batch->facts[*slot - 1];
        if (strcmp(fact->transaction_id, id) == 0 && strcmp(fact->customer_id, customer_id) == 0)
            return *slot - 1U;
    }
}

static void gather(struct ledger *ledger, struct ledger_job **jobs, size_t count)
{
    struct ledger_batch *batch = ledger->batch;
    batch->place_count = batch->fact_count = batch->kept_count = 0;
    memset(ledger->place_index, 0, sizeof ledger->place_index);
    memset(ledger->fact_index, 0, sizeof ledger->fact_index);
    for (size_t i = 0; i < count; i++) {
        const struct wallet_request *request = &jobs[i]->request;
        jobs[i]->place = place_of(ledger, request->player_id);
        jobs[i]->id = fact_of(ledger, request->customer_id, request->transaction_id, true);
        jobs[i]->reference = request->reference[0] == '\0'
                                 ? SIZE_MAX
                                 : fact_of(ledger, request->customer_id, request->reference, true);
        if (request->operation == WALLET_ROLLBACK)
            batch->facts[jobs[i]->reference].counts_credits = true;
    }
}

/* ---- deciding -------------------------------------------------------------------------------- */

static struct ledger_transaction *keep(struct ledger_batch *batch, const struct ledger_job *job,
                                       const struct wallet_decision *decision, int64_t now_ms)
{
    static const enum ledger_operation operations[WALLET_OPERATION_COUNT] = {
        [WALLET_DEBIT] = LEDGER_DEBIT,
        [WALLET_CREDIT] = LEDGER_CREDIT,
        [WALLET_ROLLBACK] = LEDGER_ROLLBACK,
    };
    const struct wallet_request *request = &job->request;
    const struct player_record *player = &batch->places[job->place].account.player;
    batch->kept_of[batch->kept_count].place = (uint16_t)job->place;
    batch->kept_of[batch->kept_count].fact = (uint16_t)job->id;
    batch->kept_of[batch->kept_count].reference = (uint16_t)job->reference; /* cut: no hint */
    struct ledger_transaction *kept = &batch->kept[batch->kept_count++];
    *kept = (struct ledger_transaction){
        .operation = operations[request->operation],
        .outcome = decision->outcome,
        .amount_minor = decision->amount_minor,
        .currency_exponent = player->currency_exponent,
        .created_ms = now_ms,
    };
    memcpy(kept->customer_id, request->customer_id, sizeof kept->customer_id);
    memcpy(kept->player_id, player->id, sizeof kept->player_id);
    memcpy(kept->transaction_id, request->transaction_id, sizeof kept->transaction_id);
    memcpy(kept->reference, request->reference, sizeof kept->reference);
    memcpy(kept->game_id, request->game_id, sizeof kept->game_id);
    memcpy(kept->round_id, request->round_id, sizeof kept->round_id);
    memcpy(kept->currency, player->currency, sizeof kept->currency);
    return kept;
}

/* The entry after the account's last one. */
static void enter(struct ledger_batch *batch, struct ledger_place *place,
                  struct ledger_transaction *entry, int64_t movement_minor)
{
    struct ledger_account *account = &place->account;
    account->balance_minor += movement_minor;
    account->sequence++;
    entry->movement_minor = movement_minor;
    entry->balance_minor = account->balance_minor;
    entry->sequence = account->sequence;
    ledger_entry_hash(entry, account->head, entry->hash);
    memcpy(account->head, entry->hash, sizeof account->head);
    place->changed = true;
    if (movement_minor != 0) {
        batch->clearings[place->clearing].balance_minor -= movement_minor;
        batch->clearings[place->clearing].changed = true;
    }
}

/* The reference is rolled back from now on; when it was a credit, it stands for its debit no
 * more. */
static void roll_back(struct ledger *ledger, struct ledger_fact *target, const char *player_id)
{
    CHECK(target != NULL);
    const struct ledger_transaction *credit = &target->id.transaction;
    target->id.rolled_back = true;
    memcpy(target->id.rolled_back_player, player_id, sizeof target->id.rolled_back_player);
    if (!target->id.known || credit->operation != LEDGER_CREDIT ||
        credit->outcome != LEDGER_APPLIED || credit->reference[0] == '\0')
        return;
    size_t debit = fact_of(ledger, credit->customer_id, credit->reference, false);
    if (debit == SIZE_MAX || !ledger->batch->facts[debit].counts_credits)
        return;
    CHECK(ledger->batch->facts[debit].id.standing_credits > 0);
    ledger->batch->facts[debit].id.standing_credits--;
}

static void decide(struct ledger *ledger, struct ledger_job *job, int64_t now_ms)
{
    struct ledger_batch *batch = ledger->batch;
    struct ledger_place *place = &batch->places[job->place];
    struct ledger_fact *fact = &batch->facts[job->id];
    struct ledger_fact *reference =
        job->reference == SIZE_MAX ? NULL : &batch->facts[job->reference];
    struct wallet_answer *to = &job->answer;
    const struct wallet_state state = {
        .account = place->found ? &place->account : NULL,
        .id = &fact->id,
        .reference = reference != NULL ? &reference->id : NULL,
        .clearing_minor = place->found ? batch->clearings[place->clearing].balance_minor : 0,
        .game = job->game,
    };
    struct wallet_decision decision = wallet_decide(&state, &job->request);
    to->kind = WALLET_ANSWER_TRANSACTION;
    to->replayed = decision.verdict == WALLET_REPLAYED;
    if (decision.verdict == WALLET_REPLAYED) {
        to->transaction = fact->id.transaction;
        return;
    }
    if (decision.verdict != WALLET_KEPT) {
        refuse(to, decision.verdict);
        return;
    }
    struct ledger_transaction *kept = keep(batch, job, &decision, now_ms);
    if (ledger_is_entry(kept))
        enter(batch, place, kept, decision.movement_minor);
    fact->id.known = true;
    fact->id.transaction = *kept;
    if (decision.rolls_back)
        roll_back(ledger, reference, kept->player_id);
    else if (kept->operation == LEDGER_CREDIT && kept->outcome == LEDGER_APPLIED &&
             reference != NULL)
        reference->id.standing_credits++;
    to->transaction = *kept;
    if (!ledger_is_entry(kept)) { /* its id is used up all the same, so it is chained as well */
        ledger_chain_decline(&place->account, kept);
        place->declined = true;
    }
}

/* ---- upkeep ---------------------------------------------------------------------------------- */

/* Waits until there is something to do; false: the end. */
static bool keeper_waits(struct keeper *keeper)
{
    uv_mutex_lock(&keeper->lock);
    if (keeper->state == KEEPER_WORKS)
        keeper->state = KEEPER_IS_DONE;
    while (keeper->state != KEEPER_WORKS && !keeper->ending)
        uv_cond_wait(&keeper->more, &keeper->lock);
    bool goes_on = !keeper->ending;
    uv_mutex_unlock(&keeper->lock);
    return goes_on;
}

/* What fails here is found and logged by the batches. */
static void run_keeper(void *argument)
{
    struct ledger *ledger = argument;
    struct platform_store *store = NULL;
    while (keeper_waits(&ledger->keeper)) {
        struct error error = {0};
        enum status status = STATUS_OK;
        if (store == NULL)
            status = platform_store_open(&store, &ledger->options.platform, &error);
        if (status == STATUS_OK)
            status = store->ledger->upkeep(store, &error);
        if (status != STATUS_OK)
            platform_store_close(&store);
    }
    platform_store_close(&store);
}

/* The writer's, after a batch: has the keeper begin, or does the rest when it is done. */
static void look_after_store(struct lane *lane)
{
    struct keeper *keeper = &lane->ledger->keeper;
    struct error error = {0};
    bool wanted = lane->store->ledger->wants_upkeep(lane->store);
    uv_mutex_lock(&keeper->lock);
    bool is_done = keeper->state == KEEPER_IS_DONE;
    if (is_done) {
        keeper->state = KEEPER_RESTS;
    } else if (wanted && keeper->state == KEEPER_RESTS) {
        keeper->state = KEEPER_WORKS;
        uv_cond_signal(&keeper->more);
    }
    uv_mutex_unlock(&keeper->lock);
    if (wanted && is_done && lane->store->ledger->upkeep(lane->store, &error) != STATUS_OK)
        cannot_be_used(lane, error.text);
}

static void start_keeper(struct ledger *ledger)
{
    struct keeper *keeper = &ledger->keeper;
    CHECK(uv_mutex_init(&keeper->lock) == 0);
    CHECK(uv_cond_init(&keeper->more) == 0);
    thread_start(&keeper->thread, "ledger-upkeep", run_keeper, ledger);
}

static void stop_keeper(struct keeper *keeper)
{
    uv_mutex_lock(&keeper->lock);
    keeper->ending = true;
    uv_cond_signal(&keeper->more);
    uv_mutex_unlock(&keeper->lock);
    CHECK(uv_thread_join(&keeper->thread) == 0);
    uv_cond_destroy(&keeper->more);
    uv_mutex_destroy(&keeper->lock);
}

/* ---- a batch --------------------------------------------------------------------------------- */

static void count_batch(struct ledger *ledger, size_t count)
{
    size_t bucket = 0;
    while (bucket < LEDGER_BATCH_BUCKETS - 1 && count > batch_bounds[bucket])
        bucket++;
    add(&ledger->batches[bucket], 1);
    add(&ledger->batched, count);
}

static void count_commit(struct ledger *ledger, uint64_t took_ns)
{
    size_t bucket = 0;
    while (bucket < LEDGER_COMMIT_BUCKETS - 1 &&
           took_ns > (uint64_t)commit_bounds_ms[bucket] * 1000000U)
        bucket++;
    add(&ledger->commits[bucket], 1);
    add(&ledger->commit_ns, took_ns);
}

/* Everything is loaded and decided afresh. */
static enum status try_batch(struct lane *lane, struct ledger_job **jobs, size_t count,
                             bool *unknown, struct error *error)
{
    struct ledger *ledger = lane->ledger;
    gather(ledger, jobs, count);
    enum status status = lane->store->ledger->begin(lane->store, ledger->batch, error);
    if (status != STATUS_OK)
        return status;
    int64_t now_ms = clock_wall_ms();
    for (size_t i = 0; i < count; i++)
        decide(ledger, jobs[i], now_ms);
    uint64_t started_ns = clock_monotonic_ns();
    status = lane->store->ledger->commit(lane->store, ledger->batch, unknown, error);
    if (ledger->batch->kept_count > 0)
        count_commit(ledger, clock_monotonic_ns() - started_ns);
    return status;
}

/* After another writer was in the way: a moment that is longer each time and never quite the same,
 * so that two do not meet again and again. False: it has been tried for long enough. */
static bool may_try_again(struct ledger *ledger, unsigned attempt, uint64_t started_ms)
{
    uint64_t now_ns = clock_monotonic_ns();
    if (attempt >= ATTEMPTS_MAX || now_ns / 1000000U > started_ms + ATTEMPTS_MS)
        return false;
    add(&ledger->conflicts, 1);
    clock_pause_ns(now_ns % (1000000U << attempt));
    return true;
}

static void write_batch(struct lane *lane, struct ledger_job **jobs, size_t count)
{
    struct ledger *ledger = lane->ledger;
    struct error error = {0};
    bool unknown = false;
    uint64_t started_ms = clock_monotonic_ms();
    if (!store_is_ready(lane)) {
        answer_all(ledger, jobs, count, WALLET_ANSWER_UNAVAILABLE);
        return;
    }
    count_batch(ledger, count);
    enum status status = try_batch(lane, jobs, count, &unknown, &error);
    for (unsigned attempt = 1;
         status == STATUS_CONFLICT && may_try_again(ledger, attempt, started_ms); attempt++)
        status = try_batch(lane, jobs, count, &unknown, &error);
    if (status != STATUS_OK) {
        cannot_be_used(lane, error.text);
        answer_all(ledger, jobs, count,
                   unknown ? WALLET_ANSWER_UNKNOWN : WALLET_ANSWER_UNAVAILABLE);
        return;
    }
    for (size_t i = 0; i < count; i++)
        answer(ledger, jobs[i]);
    look_after_store(lane);
}

/* ---- balances -------------------------------------------------------------------------------- */

static void answer_balance(struct ledger *ledger, struct ledger_job *job,
                           const struct ledger_place *place)
{
    struct wallet_answer *to = &job->answer;
    to->kind = WALLET_ANSWER_BALANCE;
    to->account = place->account;
    if (!place->found || strcmp(place->account.player.customer_id, job->request.customer_id) != 0)
        refuse(to, WALLET_PLAYER_NOT_FOUND);
    answer(ledger, job);
}

static void read_balances(struct lane *lane, struct ledger_job **jobs, size_t count)
{
    struct ledger *ledger = lane->ledger;
    struct ledger_place *places = ledger->asked;
    struct error error = {0};
    for (size_t i = 0; i < count; i++)
        memcpy(places[i].player_id, jobs[i]->request.player_id, sizeof places[i].player_id);
    enum status status = STATUS_UNAVAILABLE;
    if (store_is_ready(lane)) {
        status = lane->store->ledger->balances(lane->store, places, count, &error);
        if (status != STATUS_OK)
            cannot_be_used(lane, error.text);
    }
    if (status != STATUS_OK) {
        answer_all(ledger, jobs, count, WALLET_ANSWER_UNAVAILABLE);
        return;
    }
    for (size_t i = 0; i < count; i++)
        answer_balance(ledger, jobs[i], &places[i]);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static void unlink_job(struct lane *lane, struct ledger_job *job)
{
    if (job->before == NULL)
        lane->first = job->next;
    else
        job->before->next = job->next;
    if (job->next == NULL)
        lane->last = job->before;
    else
        job->next->before = job->before;
    job->queued = false;
    lane->depth--;
}

/* Waits for work; 0: the end. */
static size_t take(struct lane *lane, struct ledger_job **jobs)
{
    size_t most = lane->ledger->options.batch_max;
    size_t count = 0;
    uv_mutex_lock(&lane->lock);
    while (lane->first == NULL && !lane->ending)
        uv_cond_wait(&lane->more, &lane->lock);
    while (lane->first != NULL && count < most) {
        jobs[count] = lane->first;
        unlink_job(lane, jobs[count]);
        count++;
    }
    uv_mutex_unlock(&lane->lock);
    return count;
}

static void prepare_store(struct lane *lane)
{
    struct error error = {0};
    if (lane->store != NULL && lane->store->ledger->prepare != NULL &&
        lane->store->ledger->prepare(lane->store, &error) != STATUS_OK)
        cannot_be_used(lane, error.text);
}

static void note_index(struct lane *lane)
{
    struct ledger_index_facts facts;
    if (lane->store == NULL || lane->store->ledger->index_facts == NULL)
        return;
    lane->store->ledger->index_facts(lane->store, &facts);
    uv_mutex_lock(&lane->ledger->index_lock);
    lane->ledger->index = facts;
    uv_mutex_unlock(&lane->ledger->index_lock);
}

static void run_lane(void *argument)
{
    struct lane *lane = argument;
    struct ledger_job *jobs[LEDGER_BATCH_MAX];
    bool writes = lane == &lane->ledger->writer;
    if (!writes)
        uv_sem_wait(&lane->ledger->begun);
    (void)store_is_ready(lane); /* so that what is wrong is in the log before anybody asks */
    if (writes) {
        uv_sem_post(&lane->ledger->begun); /* balances need not wait for what follows */
        prepare_store(lane);
        note_index(lane);
    }
    for (size_t count = take(lane, jobs); count > 0; count = take(lane, jobs)) {
        lane->run(lane, jobs, count);
        if (writes)
            note_index(lane);
    }
    platform_store_close(&lane->store);
}

static void start_lane(struct ledger *ledger, struct lane *lane, const char *name,
                       void (*run)(struct lane *lane, struct ledger_job **jobs, size_t count))
{
    lane->ledger = ledger;
    lane->run = run;
    CHECK(uv_mutex_init(&lane->lock) == 0);
    CHECK(uv_cond_init(&lane->more) == 0);
    thread_start(&lane->thread, name, run_lane, lane);
}

static void stop_lane(struct lane *lane)
{
    uv_mutex_lock(&lane->lock);
    lane->ending = true;
    uv_cond_signal(&lane->more);
    uv_mutex_unlock(&lane->lock);
    CHECK(uv_thread_join(&lane->thread) == 0);
    uv_cond_destroy(&lane->more);
    uv_mutex_destroy(&lane->lock);
}

struct ledger *ledger_create(const struct ledger_options *options)
{
    struct ledger *ledger = memory_alloc_zeroed(1, sizeof *ledger);
    CHECK(!options->platform.create && options->queue_limit > 0);
    CHECK(options->batch_max <= LEDGER_BATCH_MAX);
    ledger->options = *options;
    if (options->batch_max == 0)
        ledger->options.batch_max = LEDGER_BATCH_MAX;
    ledger->seed = hash_random_seed();
    ledger->batch = memory_alloc_zeroed(1, sizeof *ledger->batch);
    ledger->asked = memory_alloc_zeroed(LEDGER_BATCH_MAX, sizeof *ledger->asked);
    start_keeper(ledger); /* before whoever calls on it */
    CHECK(uv_sem_init(&ledger->begun, 0) == 0 && uv_mutex_init(&ledger->index_lock) == 0);
    start_lane(ledger, &ledger->writer, "ledger", write_batch);
    start_lane(ledger, &ledger->reader, "ledger-balance", read_balances);
    return ledger;
}

void ledger_destroy(struct ledger **ledger)
{
    if (*ledger == NULL)
        return;
    stop_lane(&(*ledger)->writer);
    stop_lane(&(*ledger)->reader);
    stop_keeper(&(*ledger)->keeper);
    uv_sem_destroy(&(*ledger)->begun);
    uv_mutex_destroy(&(*ledger)->index_lock);
    memory_free((*ledger)->batch);
    memory_free((*ledger)->asked);
    memory_free(*ledger);
    *ledger = NULL;
}

static struct lane *lane_of(struct ledger *ledger, const struct ledger_job *job)
{
    return job->request.operation == WALLET_BALANCE ? &ledger->reader : &ledger->writer;
}

enum status ledger_submit(struct ledger *ledger, struct ledger_job *job)
{
    struct lane *lane = lane_of(ledger, job);
    enum status status = STATUS_FULL;
    uv_mutex_lock(&lane->lock);
    CHECK(!lane->ending);
    if (lane->depth < ledger->options.queue_limit) {
        job->next = NULL;
        job->before = lane->last;
        if (lane->last == NULL)
            lane->first = job;
        else
            lane->last->next = job;
        lane->last = job;
        job->queued = true;
        lane->depth++;
        uv_cond_signal(&lane->more);
        status = STATUS_OK;
    }
    uv_mutex_unlock(&lane->lock);
    if (status != STATUS_OK)
        add(&ledger->operations[job->request.operation][LEDGER_COUNTED_UNAVAILABLE], 1);
    return status;
}

bool ledger_withdraw(struct ledger *ledger, struct ledger_job *job)
{
    struct lane *lane = lane_of(ledger, job);
    uv_mutex_lock(&lane->lock);
    bool queued = job->queued;
    if (queued)
        unlink_job(lane, job);
    uv_mutex_unlock(&lane->lock);
    if (queued)
        add(&ledger->operations[job->request.operation][LEDGER_COUNTED_UNAVAILABLE], 1);
    return queued;
}

/* ---- for the metrics ------------------------------------------------------------------------- */

static const char *counted_name(size_t at)
{
    switch (at) {
    case LEDGER_COUNTED_REPLAYED:
        return "replayed";
    case LEDGER_COUNTED_REFUSED:
        return "refused";
    case LEDGER_COUNTED_UNAVAILABLE:
        return "ledger_unavailable";
    case LEDGER_COUNTED_UNKNOWN:
        return "internal_error";
    default:
        return ledger_outcome_name((enum ledger_outcome)at);
    }
}

static size_t depth_of(struct lane *lane)
{
    uv_mutex_lock(&lane->lock);
    size_t depth = lane->depth;
    uv_mutex_unlock(&lane->lock);
    return depth;
}

static void load_all(const atomic_uint_fast64_t *from, uint64_t *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = atomic_load_explicit(&from[i], memory_order_relaxed);
}

void ledger_facts(struct ledger *ledger, struct ledger_facts *facts)
{
    for (size_t i = 0; i < WALLET_OPERATION_COUNT; i++)
        load_all(ledger->operations[i], facts->operations[i], LEDGER_COUNTED_COUNT);
    load_all(ledger->batches, facts->batches, LEDGER_BATCH_BUCKETS);
    load_all(&ledger->batched, &facts->batched, 1);
    load_all(ledger->commits, facts->commits, LEDGER_COMMIT_BUCKETS);
    load_all(&ledger->commit_ns, &facts->commit_ns, 1);
    load_all(&ledger->reopened, &facts->reopened, 1);
    load_all(&ledger->conflicts, &facts->conflicts, 1);
    facts->depth = depth_of(&ledger->writer) + depth_of(&ledger->reader);
    uv_mutex_lock(&ledger->index_lock);
    facts->index = ledger->index;
    uv_mutex_unlock(&ledger->index_lock);
}

static void write_operations(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct ledger_facts *ledger = facts;
    for (size_t i = 0; i < WALLET_OPERATION_COUNT; i++) {
        for (size_t j = 0; j < LEDGER_COUNTED_COUNT; j++) {
            if (ledger->operations[i][j] == 0)
                continue;
            buffer_append_format(out, "%s{operation=\"%s\",outcome=\"%s", metric->name,
                                 wallet_operation_name((enum wallet_operation)i), counted_name(j));
            metric_number(out, "\"}", NULL, ledger->operations[i][j]);
        }
    }
}

static void write_batches(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct ledger_facts *ledger = facts;
    metric_histogram(out, metric->name,
                     &(struct metric_histogram){batch_bounds, ledger->batches, LEDGER_BATCH_BUCKETS,
                                                ledger->batched, false});
}

static void write_commits(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct ledger_facts *ledger = facts;
    metric_histogram(out, metric->name,
                     &(struct metric_histogram){commit_bounds_ms, ledger->commits,
                                                LEDGER_COMMIT_BUCKETS, ledger->commit_ns, true});
}

const struct metric ledger_metrics[] = {
    METRIC_WRITTEN("croupier_wallet_operations_total", "counter", write_operations,
                   "Wallet requests that reached the ledger, by operation and outcome"),
    METRIC_WRITTEN("croupier_ledger_batch_operations", "histogram", write_batches,
                   "Operations in one transaction"),
    METRIC_WRITTEN("croupier_ledger_commit_seconds", "histogram", write_commits,
                   "Time to write and commit a batch of the ledger"),
    METRIC_FACT("croupier_ledger_queue_depth", "gauge", struct ledger_facts, depth,
                "Wallet requests waiting for the ledger"),
    METRIC_FACT("croupier_ledger_reopened_total", "counter", struct ledger_facts, reopened,
                "Times the ledger was opened and checked again"),
    METRIC_FACT("croupier_ledger_conflicts_total", "counter", struct ledger_facts, conflicts,
                "Batches that were begun again because another instance came between"),
    METRIC_FACT("croupier_ledger_index_ids", "gauge", struct ledger_facts, index.ids,
                "Transaction ids in the index beside a SQLite ledger"),
    METRIC_FACT("croupier_ledger_index_files", "gauge", struct ledger_facts, index.files,
                "Files of that index"),
    METRIC_FACT("croupier_ledger_index_memory_bytes", "gauge", struct ledger_facts,
                index.memory_bytes, "Memory of that index"),
    METRIC_FACT("croupier_ledger_index_made_again_total", "counter", struct ledger_facts,
                index.made_again, "Files of that index that were damaged and made again"),
    METRIC_FACT("croupier_ledger_index_write_failures_total", "counter", struct ledger_facts,
                index.write_failures, "Files of that index that could not be written"),
    {0},
};
