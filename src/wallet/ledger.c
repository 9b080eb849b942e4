/*
 * Two lanes, each a bounded queue and a thread: one for operations that write, one for BALANCE. A
 * lane's lock guards its queue; a job belongs to the queue, then to the thread, then to its
 * mailbox. A third thread does the store's upkeep.
 */
#include "wallet/ledger.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/threads.h"
#include "stores/platform_players.h"

/* Between two attempts to open a store that cannot be used. Until then jobs are refused at once, so
 * one failure of the disk lasts at least so long. */
#define REOPEN_PAUSE_MS 100
#define ATTEMPTS_MAX 8   /* at a batch that conflicts with other writers */
#define ATTEMPTS_MS 2000 /* no attempt begins later than this */
#define MANY_TOGETHER 4  /* a batch of so many waits for the next requests of those it answers */
#define WAIT_OF_BATCH 2  /* for this part of the time that the batch took */
#define ASSUMES_LEAST 16 /* requests in a batch that does not look whether their ids are new */
#define LOOKS_AFTER 64   /* so many batches look after one that should have */
#define INDEX_SLOTS 1024 /* twice the look-ups of a batch; a power of two */

static const uint32_t batch_bounds[LEDGER_BATCH_BUCKETS - 1] = {1, 4, 16, 64, 256};
static const uint32_t commit_bounds_ms[LEDGER_COMMIT_BUCKETS - 1] = {1, 2, 5, 10, 50, 250, 1000};

struct lane {
    struct ledger *ledger;
    void (*run)(struct lane *lane, struct ledger_job **jobs, size_t count);
    struct platform_store *store; /* the thread's; NULL: not open */
    uint64_t failed_ms;           /* when opening last failed; 0: it has not, or it works again */
    enum status trouble;          /* the last failure */
    bool logged;                  /* and it was logged */
    struct ledger_job *decided[LEDGER_BATCH_MAX]; /* by the last batch, and not answered yet */
    size_t decided_count;

    uint64_t gather_until_ns; /* a batch of fewer than `enough` waits until then for more */

    struct background thread; /* its lock guards everything below */
    TAILQ_HEAD(, ledger_job) jobs;
    size_t depth, enough;
};

/* Does the store's upkeep beside the batches (platform_ledger.h). */
struct checkpointer {
    struct background thread; /* its lock guards the state */
    enum { CHECKPOINTER_RESTS, CHECKPOINTER_WORKS, CHECKPOINTER_IS_DONE } state;
};

struct ledger {
    struct platform_store_options store_options;
    size_t queue_limit, batch_max;
    int64_t session_ms;
    struct lane writer, reader;
    uv_sem_t begun; /* the writer has tried to open the store; the reader waits for that */
    atomic_bool has_tried, has_begun;
    atomic_bool recovered; /* the store was recovered since this process began */
    struct checkpointer checkpointer;
    struct ledger_batch *batch;        /* the writer's */
    struct ledger_batch_player *asked; /* the reader's */
    bool unsure;    /* the writer's: a used id may have been refused for another reason */
    unsigned looks; /* the writer's: so many of the next batches look whether ids are new */
    uint64_t seed;  /* of the next two: clients choose ids */
    uint16_t player_index[INDEX_SLOTS];
    uint16_t fact_index[INDEX_SLOTS];

    uv_mutex_t facts_lock;     /* guards the next; taken last */
    struct ledger_facts facts; /* without `depth` */
};

/* `counter` is one of the ledger's facts. */
static void add(struct ledger *ledger, uint64_t *counter, uint64_t amount)
{
    uv_mutex_lock(&ledger->facts_lock);
    *counter += amount;
    uv_mutex_unlock(&ledger->facts_lock);
}

static void count_operation(struct ledger *ledger, const struct ledger_job *job, size_t outcome)
{
    add(ledger, &ledger->facts.operations[job->request.operation][outcome], 1);
}

/* ---- answers --------------------------------------------------------------------------------- */

static size_t counted(const struct wallet_answer *answer)
{
    static const size_t numbers[] = {
        [WALLET_ANSWER_BALANCE] = LEDGER_APPLIED,
        [WALLET_ANSWER_REFUSED] = LEDGER_COUNTED_REFUSED,
        [WALLET_ANSWER_UNAVAILABLE] = LEDGER_COUNTED_UNAVAILABLE,
        [WALLET_ANSWER_UNKNOWN] = LEDGER_COUNTED_UNKNOWN,
    };
    if (answer->kind != WALLET_ANSWER_TRANSACTION)
        return numbers[answer->kind];
    return answer->replayed ? (size_t)LEDGER_COUNTED_REPLAYED : (size_t)answer->transaction.outcome;
}

/* Posts the answers for a mailbox together: a thread that is woken for the first of them alone goes
 * back to sleep before the second. Empties `jobs`. */
static void answer_all(struct ledger *ledger, struct ledger_job **jobs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (jobs[i] == NULL)
            continue;
        struct mailbox *mailbox = jobs[i]->mailbox;
        struct mail_list mails = STAILQ_HEAD_INITIALIZER(mails);
        for (size_t j = i; j < count; j++) {
            struct ledger_job *job = jobs[j];
            if (job == NULL || job->mailbox != mailbox)
                continue;
            count_operation(ledger, job, counted(&job->answer));
            STAILQ_INSERT_TAIL(&mails, &job->mail, link);
            jobs[j] = NULL;
        }
        mailbox_post_all(mailbox, &mails); /* from here on they are the asker's */
    }
}

/* Answers that the jobs were not applied, or that their outcome is `unknown`. */
static void answer_in_trouble(struct lane *lane, struct ledger_job **jobs, size_t count,
                              bool unknown)
{
    for (size_t i = 0; i < count; i++) {
        jobs[i]->answer.kind = unknown ? WALLET_ANSWER_UNKNOWN : WALLET_ANSWER_UNAVAILABLE;
        jobs[i]->answer.trouble = lane->trouble;
    }
    answer_all(lane->ledger, jobs, count);
}

/* Also while the store waits for its server (platform_store's `on_wait`). To answer wakes the
 * threads that serve requests, and they would compete with this one before the server has its next
 * batch. */
static void answer_decided(void *argument)
{
    struct lane *lane = argument;
    answer_all(lane->ledger, lane->decided, lane->decided_count);
    lane->decided_count = 0;
}

static void refuse(struct wallet_answer *to, enum wallet_verdict verdict)
{
    to->kind = WALLET_ANSWER_REFUSED;
    to->verdict = verdict;
}

/* ---- the store of a lane --------------------------------------------------------------------- */

/* Logs a failure once when it begins, or becomes one of another kind, not with every batch. */
static void close_failed(struct lane *lane, enum status status, const char *reason)
{
    platform_store_close(&lane->store);
    lane->failed_ms = clock_monotonic_ms();
    if (!lane->logged || lane->trouble != status)
        log_event(lane->ledger->store_options.log, LOG_ERROR, "ledger is unavailable",
                  LOG_STRING("reason", reason));
    lane->trouble = status;
    lane->logged = true;
}

/* Logs once that a failure is over. A store that opens may still refuse to be written. */
static void note_success(struct lane *lane)
{
    if (lane->logged)
        log_event(lane->ledger->store_options.log, LOG_INFO, "ledger is available again");
    lane->logged = false;
}

/* A crash may have left visible rows that are not durable yet. So the ledger recovers the store
 * once before any answer, even a BALANCE. */
static enum status open_store(struct lane *lane, struct error *error)
{
    struct ledger *ledger = lane->ledger;
    enum status status = platform_store_open(&lane->store, &ledger->store_options, error);
    bool recovers =
        lane == &ledger->writer || !atomic_load_explicit(&ledger->recovered, memory_order_acquire);
    if (status == STATUS_OK) {
        lane->store->on_wait_context = lane;
        lane->store->on_wait = answer_decided;
    }
    if (status != STATUS_OK || !recovers)
        return status;
    status = lane->store->ledger->recover(lane->store, error);
    if (status == STATUS_OK)
        atomic_store_explicit(&ledger->recovered, true, memory_order_release);
    return status;
}

/* Opens and recovers a store that is not open. A failure: it cannot be used now. */
static enum status reopen_store(struct lane *lane)
{
    struct error error = {0};
    if (lane->store != NULL)
        return STATUS_OK;
    if (lane->failed_ms != 0 && clock_monotonic_ms() < lane->failed_ms + REOPEN_PAUSE_MS)
        return lane->trouble;
    enum status status = open_store(lane, &error);
    if (status == STATUS_OK && lane->failed_ms != 0)
        add(lane->ledger, &lane->ledger->facts.reopened, 1);
    lane->failed_ms = 0;
    if (status != STATUS_OK)
        close_failed(lane, status, error.text);
    return status;
}

/* ---- sessions -------------------------------------------------------------------------------- */

_Static_assert(LEDGER_BATCH_MAX <= LAUNCH_LOOK_UPS_MAX, "one question for a batch");

static void take_found(struct ledger_job *job, const struct launch_look_up *found)
{
    char *player_id = job->request.player_id;
    job->launched = found->launched;
    job->launched_ms = found->launched_ms;
    memset(player_id, 0, sizeof job->request.player_id);
    if (found->known)
        memcpy(player_id, found->player_id, sizeof found->player_id);
}

/*
 * Fills in the player of each provider's request ("" if the provider has never launched a player of
 * that id) and the time of the launch. Jobs of customers stay as they are.
 *
 * The store is asked once for all requests of a batch. Nothing is remembered: the store may be
 * another one when it is opened again, such as a restored backup, and one look-up in an index costs
 * less than the commit that follows.
 */
static enum status find_sessions(struct platform_store *store, struct ledger_job **jobs,
                                 size_t count, struct error *error)
{
    struct launch_look_up *asked = memory_alloc_zeroed(count, sizeof *asked);
    size_t asked_count = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count; i++) {
        const struct wallet_request *request = &jobs[i]->request;
        if (request->provider_id[0] != '\0')
            asked[asked_count++] = (struct launch_look_up){.provider_id = request->provider_id,
                                                           .subject = request->subject,
                                                           .launch_id = request->launch_id};
    }
    if (asked_count > 0)
        status = platform_launches_find(store, asked, asked_count, error);
    const struct launch_look_up *found = asked;
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        if (jobs[i]->request.provider_id[0] != '\0')
            take_found(jobs[i], found++);
    memory_free(asked);
    return status;
}

/* ---- players and ids of a batch -------------------------------------------------------------- */

static size_t player_of(struct ledger *ledger, const char *player_id)
{
    struct ledger_batch *batch = ledger->batch;
    /* Ends at an empty slot: the index has twice the slots that a batch can fill. */
    for (size_t at = hash_string(ledger->seed, player_id);; at++) {
        uint16_t *slot = &ledger->player_index[at % INDEX_SLOTS];
        if (*slot == 0) {
            struct ledger_batch_player *player = &batch->players[batch->player_count++];
            player->found = false;
            memcpy(player->player_id, player_id, sizeof player->player_id);
            *slot = (uint16_t)batch->player_count;
            return batch->player_count - 1;
        }
        if (strcmp(batch->players[*slot - 1].player_id, player_id) == 0)
            return *slot - 1U;
    }
}

/* With `make`, adds a missing fact; else returns SIZE_MAX for it. */
static size_t fact_of(struct ledger *ledger, const char *owner_id, const char *id, bool make)
{
    struct ledger_batch *batch = ledger->batch;
    for (size_t at = hash_string(hash_string(ledger->seed, owner_id), id);; at++) {
        uint16_t *slot = &ledger->fact_index[at % INDEX_SLOTS];
        if (*slot == 0) {
            if (!make)
                return SIZE_MAX;
            struct ledger_fact *fact = &batch->facts[batch->fact_count++];
            ledger_ask(fact, owner_id, id);
            *slot = (uint16_t)batch->fact_count;
            return batch->fact_count - 1;
        }
        const struct ledger_fact *fact = &batch->facts[*slot - 1];
        if (strcmp(fact->transaction_id, id) == 0 && strcmp(fact->owner_id, owner_id) == 0)
            return *slot - 1U;
    }
}

static void gather(struct ledger *ledger, struct ledger_job **jobs, size_t count)
{
    struct ledger_batch *batch = ledger->batch;
    batch->player_count = batch->fact_count = batch->kept_count = 0;
    memset(ledger->player_index, 0, sizeof ledger->player_index);
    memset(ledger->fact_index, 0, sizeof ledger->fact_index);
    for (size_t i = 0; i < count; i++) {
        const struct wallet_request *request = &jobs[i]->request;
        const char *owner =
            request->provider_id[0] != '\0' ? request->provider_id : request->customer_id;
        jobs[i]->player = player_of(ledger, request->player_id);
        jobs[i]->id = fact_of(ledger, owner, request->transaction_id, true);
        jobs[i]->reference = request->reference[0] == '\0'
                                 ? SIZE_MAX
                                 : fact_of(ledger, owner, request->reference, true);
        if (jobs[i]->reference != SIZE_MAX)
            batch->facts[jobs[i]->reference].is_reference = true;
        if (request->operation == LEDGER_ROLLBACK)
            batch->facts[jobs[i]->reference].counts_credits = true;
    }
}

/* ---- deciding -------------------------------------------------------------------------------- */

static struct ledger_transaction *keep(struct ledger_batch *batch, const struct ledger_job *job,
                                       const struct wallet_decision *decision, int64_t now_ms)
{
    const struct wallet_request *request = &job->request;
    const struct player_record *player = &batch->players[job->player].account.player;
    batch->kept_of[batch->kept_count].player = (uint16_t)job->player;
    batch->kept_of[batch->kept_count].fact = (uint16_t)job->id;
    batch->kept_of[batch->kept_count].reference = (uint16_t)job->reference; /* cut: no hint */
    struct ledger_transaction *kept = &batch->kept[batch->kept_count++];
    *kept = (struct ledger_transaction){
        .operation = request->operation,
        .outcome = decision->outcome,
        .kind = request->kind,
        .round_ended = request->round_ended,
        .amount_minor = decision->amount_minor,
        .currency_exponent = player->currency_exponent,
        .created_ms = now_ms,
    };
    memcpy(kept->customer_id, player->customer_id, sizeof kept->customer_id);
    memcpy(kept->player_id, player->id, sizeof kept->player_id);
    memcpy(kept->provider_id, request->provider_id, sizeof kept->provider_id);
    memcpy(kept->launch_id, request->launch_id, sizeof kept->launch_id);
    memcpy(kept->transaction_id, request->transaction_id, sizeof kept->transaction_id);
    memcpy(kept->reference, request->reference, sizeof kept->reference);
    memcpy(kept->game_id, request->game_id, sizeof kept->game_id);
    memcpy(kept->round_id, request->round_id, sizeof kept->round_id);
    memcpy(kept->currency, player->currency, sizeof kept->currency);
    return kept;
}

/* Enters the entry after the account's last one. */
static void enter(struct ledger_batch *batch, struct ledger_batch_player *player,
                  struct ledger_transaction *entry, int64_t movement_minor)
{
    struct ledger_account *account = &player->account;
    /* The hash is of the whole entry and of the head before it, so it is computed last. */
    account->balance_minor += movement_minor;
    account->sequence++;
    entry->movement_minor = movement_minor;
    entry->balance_minor = account->balance_minor;
    entry->sequence = account->sequence;
    ledger_entry_hash(entry, account->head, entry->hash);
    memcpy(account->head, entry->hash, sizeof account->head);
    player->changed = true;
    if (movement_minor != 0) { /* the other side of the double entry: the two add up to 0 */
        batch->clearings[player->clearing].balance_minor -= movement_minor;
        batch->clearings[player->clearing].changed = true;
    }
}

/* The reference is rolled back from now on; if it was a credit, it no longer counts for its
 * debit. */
static void roll_back(struct ledger *ledger, struct ledger_fact *target, const char *player_id)
{
    CHECK(target != NULL);
    const struct ledger_transaction *credit = &target->id.transaction;
    target->id.rolled_back = true;
    memcpy(target->id.rolled_back_player, player_id, sizeof target->id.rolled_back_player);
    if (!target->id.known || credit->operation != LEDGER_CREDIT ||
        credit->outcome != LEDGER_APPLIED || credit->reference[0] == '\0')
        return;
    size_t debit = fact_of(ledger, ledger_owner(credit), credit->reference, false);
    if (debit == SIZE_MAX || !ledger->batch->facts[debit].counts_credits)
        return;
    CHECK(ledger->batch->facts[debit].id.standing_credits > 0);
    ledger->batch->facts[debit].id.standing_credits--;
}

static void decide(struct ledger *ledger, struct ledger_job *job, int64_t now_ms)
{
    struct ledger_batch *batch = ledger->batch;
    struct ledger_batch_player *player = &batch->players[job->player];
    struct ledger_fact *fact = &batch->facts[job->id];
    struct ledger_fact *reference =
        job->reference == SIZE_MAX ? NULL : &batch->facts[job->reference];
    struct wallet_answer *to = &job->answer;
    const struct wallet_state state = {
        .account = player->found ? &player->account : NULL,
        .id = &fact->id,
        .reference = reference != NULL ? &reference->id : NULL,
        .clearing_minor = player->found ? batch->clearings[player->clearing].balance_minor : 0,
        .session = wallet_session_at(&job->request, job->launched, now_ms - job->launched_ms,
                                     ledger->session_ms),
        .blocked = player->found && player_is_blocked(&player->account.player, now_ms),
        .game = job->game,
    };
    struct wallet_decision decision = wallet_decide(&state, &job->request);
    if (decision.verdict != WALLET_KEPT && !fact->is_reference && !fact->id.known)
        ledger->unsure = batch->assumes_new;
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
        enter(batch, player, kept, decision.movement_minor);
    /* From here on the next request of the batch is decided as if this one were stored. */
    fact->id.known = true;
    fact->id.transaction = *kept;
    if (decision.rolls_back)
        roll_back(ledger, reference, kept->player_id);
    else if (ledger_settles(kept) && reference != NULL)
        reference->id.standing_credits++;
    to->transaction = *kept;
    if (!ledger_is_entry(kept)) { /* a decline uses its id too, so it is chained as well */
        ledger_chain_decline(&player->account, kept);
        player->declined = true;
    }
}

/* ---- upkeep ---------------------------------------------------------------------------------- */

/* Waits for work; false: the thread ends. */
static bool checkpointer_waits(struct checkpointer *checkpointer)
{
    uv_mutex_lock(&checkpointer->thread.lock);
    if (checkpointer->state == CHECKPOINTER_WORKS)
        checkpointer->state = CHECKPOINTER_IS_DONE;
    while (checkpointer->state != CHECKPOINTER_WORKS && !checkpointer->thread.stopping)
        uv_cond_wait(&checkpointer->thread.wake, &checkpointer->thread.lock);
    bool goes_on = !checkpointer->thread.stopping;
    uv_mutex_unlock(&checkpointer->thread.lock);
    return goes_on;
}

/* The batches find and log a failure here. */
static void run_checkpointer(void *argument)
{
    struct ledger *ledger = argument;
    struct platform_store *store = NULL;
    while (checkpointer_waits(&ledger->checkpointer)) {
        struct error error = {0};
        enum status status = platform_store_open(&store, &ledger->store_options, &error);
        if (status == STATUS_OK)
            status = store->ledger->upkeep(store, &error);
        if (status != STATUS_OK)
            platform_store_close(&store);
    }
    platform_store_close(&store);
}

/* On the writer's thread, after a batch: starts the checkpointer, or finishes upkeep when it is
 * done. */
static void look_after_store(struct lane *lane)
{
    struct checkpointer *checkpointer = &lane->ledger->checkpointer;
    struct error error = {0};
    const struct ledger_verbs *verbs = lane->store->ledger;
    bool wanted = verbs->wants_upkeep != NULL && verbs->wants_upkeep(lane->store);
    uv_mutex_lock(&checkpointer->thread.lock);
    bool is_done = checkpointer->state == CHECKPOINTER_IS_DONE;
    if (is_done) {
        checkpointer->state = CHECKPOINTER_RESTS;
    } else if (wanted && checkpointer->state == CHECKPOINTER_RESTS) {
        checkpointer->state = CHECKPOINTER_WORKS;
        uv_cond_signal(&checkpointer->thread.wake);
    }
    uv_mutex_unlock(&checkpointer->thread.lock);
    /* Without the lock, which the checkpointer needs: this waits for the disk. */
    enum status status =
        wanted && is_done ? lane->store->ledger->upkeep(lane->store, &error) : STATUS_OK;
    if (status != STATUS_OK)
        close_failed(lane, status, error.text);
}

/* ---- a batch --------------------------------------------------------------------------------- */

static void count_batch(struct ledger *ledger, size_t count)
{
    struct ledger_facts *facts = &ledger->facts;
    add(ledger, &facts->batches[metric_bucket(batch_bounds, LEDGER_BATCH_BUCKETS, count)], 1);
    add(ledger, &facts->batched, count);
}

static void count_commit(struct ledger *ledger, uint64_t took_ns)
{
    struct ledger_facts *facts = &ledger->facts;
    size_t bucket = metric_bucket(commit_bounds_ms, LEDGER_COMMIT_BUCKETS,
                                  /* rounded up */ (took_ns + 999999) / 1000000);
    add(ledger, &facts->commits[bucket], 1);
    add(ledger, &facts->commit_ns, took_ns);
}

/* Loads and decides everything from the beginning. */
static enum status decide_batch(struct lane *lane, struct ledger_job **jobs, size_t count,
                                bool *unknown, struct error *error)
{
    struct ledger *ledger = lane->ledger;
    ledger->unsure = false;
    gather(ledger, jobs, count);
    enum status status = lane->store->ledger->begin(lane->store, ledger->batch, error);
    if (status != STATUS_OK)
        return status;
    int64_t now_ms = clock_wall_ms();
    for (size_t i = 0; i < count; i++)
        decide(ledger, jobs[i], now_ms);
    if (ledger->unsure)
        ledger->batch->kept_count = 0; /* so that the commit writes nothing */
    uint64_t started_ns = clock_monotonic_ns();
    status = lane->store->ledger->commit(lane->store, ledger->batch, unknown, error);
    if (ledger->batch->kept_count > 0)
        count_commit(ledger, clock_monotonic_ns() - started_ns);
    return status == STATUS_OK && ledger->unsure ? STATUS_CONFLICT : status;
}

/* A server's keys refuse an id that is used, so a large batch saves the look whether its ids are
 * new: nearly all are. If one is not, the batch is decided again with that look, and the batches
 * after it look for a while. (A small one would save little; and each refusal is in the server's
 * log.) */
static enum status try_batch(struct lane *lane, struct ledger_job **jobs, size_t count,
                             bool *unknown, struct error *error)
{
    struct ledger *ledger = lane->ledger;
    ledger->batch->assumes_new =
        lane->store->ledger->keys_refuse && ledger->looks == 0 && count >= ASSUMES_LEAST;
    enum status status = decide_batch(lane, jobs, count, unknown, error);
    if (ledger->looks > 0)
        ledger->looks--;
    else if (ledger->batch->assumes_new && status == STATUS_CONFLICT)
        ledger->looks = LOOKS_AFTER;
    return status;
}

static bool may_try_again(unsigned attempt, uint64_t started_ms)
{
    return attempt < ATTEMPTS_MAX && clock_monotonic_ms() <= started_ms + ATTEMPTS_MS;
}

/* After a conflict with another writer. The pause grows with each attempt and is never exactly as
 * long, so that two writers do not keep meeting. */
static void pause_after_conflict(struct ledger *ledger, unsigned attempt)
{
    add(ledger, &ledger->facts.conflicts, 1);
    clock_pause_ns(clock_monotonic_ns() % (1000000U << attempt));
}

/* Most of a batch's cost is that of a commit, so the clients that are answered now, and ask again
 * at once, should be in one batch with those that wait. */
static void gather_more(struct lane *lane, size_t count, uint64_t started_ns)
{
    uint64_t now_ns = clock_monotonic_ns();
    if (count < MANY_TOGETHER)
        return;
    lane->gather_until_ns = now_ns + (now_ns - started_ns) / WAIT_OF_BATCH;
    uv_mutex_lock(&lane->thread.lock);
    lane->enough = lane->depth + count;
    if (lane->enough > lane->ledger->batch_max)
        lane->enough = lane->ledger->batch_max;
    uv_mutex_unlock(&lane->thread.lock);
}

static void write_batch(struct lane *lane, struct ledger_job **jobs, size_t count)
{
    struct ledger *ledger = lane->ledger;
    struct error error = {0};
    bool unknown = false;
    uint64_t started_ns = clock_monotonic_ns();
    if (reopen_store(lane) != STATUS_OK) {
        answer_decided(lane);
        answer_in_trouble(lane, jobs, count, false);
        return;
    }
    count_batch(ledger, count);
    enum status status = find_sessions(lane->store, jobs, count, &error);
    if (status == STATUS_OK)
        status = try_batch(lane, jobs, count, &unknown, &error);
    if (status == STATUS_CONFLICT && ledger->batch->assumes_new) {
        add(ledger, &ledger->facts.conflicts, 1);
        status = try_batch(lane, jobs, count, &unknown, &error); /* with a look */
    }
    for (unsigned attempt = 1;
         status == STATUS_CONFLICT && may_try_again(attempt, started_ns / 1000000); attempt++) {
        pause_after_conflict(ledger, attempt);
        status = try_batch(lane, jobs, count, &unknown, &error);
    }
    answer_decided(lane); /* if the store has not waited */
    if (status != STATUS_OK) {
        /* No second attempt here: `recover` finds out the commit's effect before the next batch is
         * decided from it. */
        close_failed(lane, status, error.text);
        answer_in_trouble(lane, jobs, count, unknown);
        return;
    }
    note_success(lane);
    for (size_t i = 0; i < count; i++)
        lane->decided[i] = jobs[i];
    lane->decided_count = count;
    if (!lane->store->ledger->waits) {
        gather_more(lane, count, started_ns);
        answer_decided(lane);
    }
    look_after_store(lane); /* after the answers, which need not wait for it */
}

/* ---- balances -------------------------------------------------------------------------------- */

static void take_balance(struct ledger_job *job, const struct ledger_batch_player *player)
{
    struct wallet_answer *to = &job->answer;
    to->kind = WALLET_ANSWER_BALANCE;
    to->account = player->account;
    if (!wallet_may_see(player->found ? &player->account.player : NULL, &job->request))
        refuse(to, WALLET_PLAYER_NOT_FOUND);
}

static void read_balances(struct lane *lane, struct ledger_job **jobs, size_t count)
{
    struct ledger *ledger = lane->ledger;
    struct ledger_batch_player *players = ledger->asked;
    struct error error = {0};
    enum status status = reopen_store(lane);
    if (status == STATUS_OK) {
        status = find_sessions(lane->store, jobs, count, &error);
        for (size_t i = 0; i < count; i++)
            memcpy(players[i].player_id, jobs[i]->request.player_id, sizeof players[i].player_id);
        if (status == STATUS_OK)
            status = lane->store->ledger->balances(lane->store, players, count, &error);
        if (status != STATUS_OK)
            close_failed(lane, status, error.text);
    }
    if (status != STATUS_OK) {
        answer_in_trouble(lane, jobs, count, false);
        return;
    }
    note_success(lane);
    for (size_t i = 0; i < count; i++)
        take_balance(jobs[i], &players[i]);
    answer_all(ledger, jobs, count);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static void unlink_job(struct lane *lane, struct ledger_job *job)
{
    TAILQ_REMOVE(&lane->jobs, job, in_lane);
    job->queued = false;
    lane->depth--;
}

/* Waits for work. 0: the ledger ends and the queue is empty, since submitted jobs are done
 * first. */
static size_t take(struct lane *lane, struct ledger_job **jobs)
{
    size_t most = lane->ledger->batch_max;
    size_t count = 0;
    uv_mutex_lock(&lane->thread.lock);
    bool idle = TAILQ_EMPTY(&lane->jobs);
    uv_mutex_unlock(&lane->thread.lock);
    if (idle) /* else the answers go while the server begins the next batch */
        answer_decided(lane);
    uv_mutex_lock(&lane->thread.lock);
    while (lane->depth < lane->enough && !lane->thread.stopping &&
           condition_wait_until(&lane->thread.wake, &lane->thread.lock, lane->gather_until_ns)) {
    }
    lane->enough = 0;
    while (TAILQ_EMPTY(&lane->jobs) && !lane->thread.stopping)
        uv_cond_wait(&lane->thread.wake, &lane->thread.lock);
    while (!TAILQ_EMPTY(&lane->jobs) && count < most) {
        jobs[count] = TAILQ_FIRST(&lane->jobs);
        unlink_job(lane, jobs[count++]);
    }
    uv_mutex_unlock(&lane->thread.lock);
    return count;
}

static void prepare_store(struct lane *lane)
{
    struct error error = {0};
    if (lane->store == NULL || lane->store->ledger->prepare == NULL)
        return;
    enum status status = lane->store->ledger->prepare(lane->store, &error);
    if (status != STATUS_OK)
        close_failed(lane, status, error.text);
}

static void note_index(struct lane *lane)
{
    struct ledger_index_facts facts;
    if (lane->store == NULL || lane->store->ledger->index_facts == NULL)
        return;
    lane->store->ledger->index_facts(lane->store, &facts);
    uv_mutex_lock(&lane->ledger->facts_lock);
    lane->ledger->facts.index = facts;
    uv_mutex_unlock(&lane->ledger->facts_lock);
}

static void run_lane(void *argument)
{
    struct lane *lane = argument;
    struct ledger_job *jobs[LEDGER_BATCH_MAX];
    bool writes = lane == &lane->ledger->writer;
    if (!writes)
        uv_sem_wait(&lane->ledger->begun);
    (void)reopen_store(lane); /* so that a fault is in the log before the first request */
    if (writes) {
        uv_sem_post(&lane->ledger->begun); /* balances need not wait for what follows */
        prepare_store(lane);
        note_index(lane);
        atomic_store(&lane->ledger->has_begun, lane->store != NULL);
        atomic_store(&lane->ledger->has_tried, true);
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
    TAILQ_INIT(&lane->jobs);
    background_start(&lane->thread, name, run_lane, lane);
}

struct ledger *ledger_create(const struct platform_store_options *store, size_t queue_limit,
                             size_t batch_max, int64_t session_ms)
{
    struct ledger *ledger = memory_alloc_zeroed(1, sizeof *ledger);
    CHECK(!store->create && queue_limit > 0 && batch_max > 0 && batch_max <= LEDGER_BATCH_MAX);
    ledger->store_options = *store;
    ledger->queue_limit = queue_limit;
    ledger->batch_max = batch_max;
    ledger->session_ms = session_ms;
    ledger->seed = hash_random_seed();
    ledger->batch = memory_alloc_zeroed(1, sizeof *ledger->batch);
    ledger->asked = memory_alloc_zeroed(LEDGER_BATCH_MAX, sizeof *ledger->asked);
    /* Before the writer, which calls on it. */
    background_start(&ledger->checkpointer.thread, "ledger-upkeep", run_checkpointer, ledger);
    CHECK(uv_sem_init(&ledger->begun, 0) == 0 && uv_mutex_init(&ledger->facts_lock) == 0);
    start_lane(ledger, &ledger->writer, "ledger", write_batch);
    start_lane(ledger, &ledger->reader, "ledger-balance", read_balances);
    return ledger;
}

void ledger_destroy(struct ledger **at)
{
    struct ledger *ledger = memory_take(at);
    if (ledger == NULL)
        return;
    /* The lanes before the checkpointer, which the writer calls on to the end. */
    background_stop(&ledger->writer.thread);
    background_stop(&ledger->reader.thread);
    background_stop(&ledger->checkpointer.thread);
    uv_sem_destroy(&ledger->begun);
    uv_mutex_destroy(&ledger->facts_lock);
    memory_free(ledger->batch);
    memory_free(ledger->asked);
    memory_free(ledger);
}

static struct lane *lane_of(struct ledger *ledger, const struct ledger_job *job)
{
    return job->request.operation == LEDGER_BALANCE ? &ledger->reader : &ledger->writer;
}

/* Under the lane's lock. False: the queue is full. */
static bool append_job(struct lane *lane, struct ledger_job *job)
{
    CHECK(!lane->thread.stopping);
    if (lane->depth >= lane->ledger->queue_limit)
        return false;
    TAILQ_INSERT_TAIL(&lane->jobs, job, in_lane);
    job->queued = true;
    lane->depth++;
    return true;
}

void ledger_submit(struct ledger *ledger, struct mail_list *jobs)
{
    struct lane *const lanes[] = {&ledger->writer, &ledger->reader};
    struct mail_list full = STAILQ_HEAD_INITIALIZER(full);
    /* The writer's lock first. Only here are both held at once. */
    for (size_t i = 0; i < 2; i++)
        uv_mutex_lock(&lanes[i]->thread.lock);
    while (!STAILQ_EMPTY(jobs)) {
        struct ledger_job *job = (struct ledger_job *)(void *)STAILQ_FIRST(jobs);
        STAILQ_REMOVE_HEAD(jobs, link);
        if (append_job(lane_of(ledger, job), job))
            continue;
        count_operation(ledger, job, LEDGER_COUNTED_UNAVAILABLE);
        STAILQ_INSERT_TAIL(&full, &job->mail, link);
    }
    for (size_t i = 0; i < 2; i++) {
        if (lanes[i]->depth > 0 && lanes[i]->depth >= lanes[i]->enough)
            uv_cond_signal(&lanes[i]->thread.wake);
        uv_mutex_unlock(&lanes[i]->thread.lock);
    }
    STAILQ_CONCAT(jobs, &full);
}

bool ledger_withdraw(struct ledger *ledger, struct ledger_job *job)
{
    struct lane *lane = lane_of(ledger, job);
    uv_mutex_lock(&lane->thread.lock);
    bool queued = job->queued; /* else the lane's thread has it, and answers it */
    if (queued)
        unlink_job(lane, job);
    uv_mutex_unlock(&lane->thread.lock);
    if (queued)
        count_operation(ledger, job, LEDGER_COUNTED_UNAVAILABLE);
    return queued;
}

/* ---- for the metrics ------------------------------------------------------------------------- */

static const char *counted_name(size_t at)
{
    static const char *const names[LEDGER_COUNTED_COUNT] = {
        [LEDGER_COUNTED_REPLAYED] = "replayed",
        [LEDGER_COUNTED_REFUSED] = "refused",
        [LEDGER_COUNTED_UNAVAILABLE] = "ledger_unavailable",
        [LEDGER_COUNTED_UNKNOWN] = "internal_error",
    };
    return names[at] != NULL ? names[at] : ledger_outcome_name((enum ledger_outcome)at);
}

static size_t depth_of(struct lane *lane)
{
    uv_mutex_lock(&lane->thread.lock);
    size_t depth = lane->depth;
    uv_mutex_unlock(&lane->thread.lock);
    return depth;
}

bool ledger_has_tried(struct ledger *ledger)
{
    return atomic_load(&ledger->has_tried);
}

bool ledger_has_begun(struct ledger *ledger)
{
    return atomic_load(&ledger->has_begun);
}

void ledger_facts(struct ledger *ledger, struct ledger_facts *facts)
{
    uv_mutex_lock(&ledger->facts_lock);
    *facts = ledger->facts;
    uv_mutex_unlock(&ledger->facts_lock);
    facts->depth = depth_of(&ledger->writer) + depth_of(&ledger->reader);
}

double ledger_commit_ms(const uint64_t commits[LEDGER_COMMIT_BUCKETS], unsigned percent)
{
    return metric_percentile(&(struct metric_histogram){.bounds = commit_bounds_ms,
                                                        .counts = commits,
                                                        .bucket_count = LEDGER_COMMIT_BUCKETS},
                             percent);
}

static void write_operations(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct ledger_facts *ledger = facts;
    for (size_t i = 0; i < WALLET_OPERATION_COUNT; i++) {
        for (size_t j = 0; j < LEDGER_COUNTED_COUNT; j++) {
            if (ledger->operations[i][j] == 0)
                continue;
            buffer_append_format(out, "%s{operation=\"%s\",outcome=\"%s", metric->name,
                                 ledger_operation_name((enum ledger_operation)i), counted_name(j));
            metric_number(out, "\"}", NULL, ledger->operations[i][j]);
        }
    }
}

static void write_batches(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct ledger_facts *ledger = facts;
    metric_histogram(out, metric->name,
                     &(struct metric_histogram){batch_bounds, ledger->batches, LEDGER_BATCH_BUCKETS,
                                                ledger->batched, 1, NULL});
}

static void write_commits(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct ledger_facts *ledger = facts;
    metric_histogram(out, metric->name,
                     &(struct metric_histogram){commit_bounds_ms, ledger->commits,
                                                LEDGER_COMMIT_BUCKETS, ledger->commit_ns, 1000,
                                                NULL});
}

const struct metric ledger_metrics[] = {
    METRIC_WRITTEN("croupier_wallet_operations_total", write_operations),
    METRIC_WRITTEN("croupier_ledger_batch_operations", write_batches),
    METRIC_WRITTEN("croupier_ledger_commit_seconds", write_commits),
    METRIC_FACT("croupier_ledger_queue_depth", struct ledger_facts, depth),
    METRIC_FACT("croupier_ledger_reopened_total", struct ledger_facts, reopened),
    METRIC_FACT("croupier_ledger_conflicts_total", struct ledger_facts, conflicts),
    METRIC_FACT("croupier_ledger_index_ids", struct ledger_facts, index.ids),
    METRIC_FACT("croupier_ledger_index_files", struct ledger_facts, index.files),
    METRIC_FACT("croupier_ledger_index_memory_bytes", struct ledger_facts, index.memory_bytes),
    METRIC_FACT("croupier_ledger_index_made_again_total", struct ledger_facts, index.made_again),
    METRIC_FACT("croupier_ledger_index_write_failures_total", struct ledger_facts,
                index.write_failures),
    {0},
};
