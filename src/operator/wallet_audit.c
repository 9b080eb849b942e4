/*
 * One walk over all transactions as they were decided, which a store reads fastest, and one over
 * all declines. One thread reads; another proves the chains, for which it keeps of each player what
 * the last entry came to. When they are more than may be kept, only a share of them is proved at a
 * time, and the ledger is read once more for each further share. Then each player's account is
 * compared with what its entries have come to.
 *
 * Meanwhile, or before and after, the store says whether it is sound itself, because who reads
 * through a damaged index may not see what is there, and compares the rows that no chain leads
 * through.
 */
#include "operator/wallet_audit.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/threads.h"
#include "operator/audit_relay.h"

#define PROGRESS_STEP 10000
#define PLAYERS_AT_ONCE 262144 /* some 30 MB */
#define SHARES_MAX 64          /* that wait: each is half of the one before */

/* What a player's entries have come to so far. */
struct chain {
    char player_id[PLAYER_ID_SIZE];
    uint64_t sequence;
    uint64_t proved; /* so many of its entries */
    int64_t balance_minor;
    uint8_t hash[LEDGER_HASH_SIZE];
};

/* Players whose hash has these low bits. */
struct share {
    uint64_t mask, bits;
};

struct audit {
    struct audit_result result;
    const struct audit_options *options;
    uint64_t total;
    struct error *error;
    enum status status;
    struct error refused; /* what the store said of accounts with which nothing was found wrong */
    struct relay *relay;
    uint64_t read; /* entries, of this walk */
    /* While entries are walked, the relay's thread's: */
    uint64_t seed;
    struct share share;
    struct share waiting[SHARES_MAX];
    size_t waiting_count;
    struct chain *chains; /* room for half as many as there are slots */
    uint32_t *slots;      /* by hash; 0: empty; else a position in `chains`, from 1 */
    size_t chain_count, slot_count;
    /* Of the player whose declines are walked: */
    char player_id[PLAYER_ID_SIZE]; /* "" before the first */
    uint8_t hash[LEDGER_HASH_SIZE];
    struct ledger_account account;
    uint64_t position;
};

static void note_break(struct audit *audit, const char *player_id, uint64_t sequence,
                       uint64_t decline)
{
    struct audit_break *found = &audit->result.broken;
    *found = (struct audit_break){.sequence = sequence, .decline = decline};
    (void)snprintf(found->player_id, sizeof found->player_id, "%s", player_id);
}

static bool broken(struct audit *audit, const char *player_id, uint64_t sequence, const char *what)
{
    note_break(audit, player_id, sequence, 0);
    audit->status = error_set(audit->error, STATUS_MALFORMED,
                              "the ledger is broken: player %s, sequence %" PRIu64 ": %s",
                              player_id, sequence, what);
    return false;
}

static bool broken_decline(struct audit *audit, const char *player_id, uint64_t position,
                           const char *what)
{
    note_break(audit, player_id, 0, position);
    audit->status = error_set(audit->error, STATUS_MALFORMED,
                              "the ledger is broken: player %s, decline %" PRIu64 ": %s", player_id,
                              position, what);
    return false;
}

static void forget_player(struct audit *audit)
{
    audit->player_id[0] = '\0';
    memset(audit->hash, 0, sizeof audit->hash);
    audit->position = 0;
}

/* After a player's last decline: does the account say so? */
static bool declines_fit(struct audit *audit)
{
    const struct ledger_account *account = &audit->account;
    if (audit->player_id[0] == '\0')
        return true;
    if (account->declines != audit->position)
        return broken_decline(audit, audit->player_id, audit->position,
                              "the account has another last decline than its declines");
    if (memcmp(account->declines_head, audit->hash, sizeof audit->hash) != 0)
        return broken_decline(audit, audit->player_id, audit->position,
                              "the account has another head than the chain of its declines");
    return true;
}

static bool audit_decline(void *context, const struct ledger_transaction *decline,
                          const struct ledger_account *account)
{
    struct audit *audit = context;
    uint8_t hash[LEDGER_HASH_SIZE];
    if (strcmp(audit->player_id, decline->player_id) != 0) {
        if (!declines_fit(audit))
            return false;
        forget_player(audit);
        memcpy(audit->player_id, decline->player_id, sizeof audit->player_id);
    }
    if (decline->decline != audit->position + 1)
        return broken_decline(audit, decline->player_id, audit->position + 1,
                              "this decline is not there, but a later one is");
    ledger_decline_hash(decline, audit->hash, hash);
    if (memcmp(hash, decline->hash, sizeof hash) != 0)
        return broken_decline(audit, decline->player_id, decline->decline,
                              "the chain is broken: something in the decline was changed");
    memcpy(audit->hash, hash, sizeof hash);
    audit->position = decline->decline;
    audit->account = *account;
    return true;
}

static bool movement_fits(const struct ledger_transaction *entry)
{
    int64_t amount = entry->amount_minor;
    if (entry->outcome == LEDGER_VOIDED)
        return entry->operation == LEDGER_ROLLBACK && entry->movement_minor == 0 && amount == 0;
    switch (entry->operation) {
    case LEDGER_DEBIT:
        return entry->movement_minor == -amount && amount > 0;
    case LEDGER_CREDIT:
        return entry->movement_minor == amount;
    case LEDGER_ROLLBACK:
        return entry->movement_minor == amount || entry->movement_minor == -amount;
    }
    return false;
}

/* ---- chains ---------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct audit *audit, const char *player_id)
{
    return hash_string(audit->seed, player_id);
}

static bool is_in_share(const struct audit *audit, uint64_t hash)
{
    return (hash & audit->share.mask) == audit->share.bits;
}

/* The slot that has the player, or the empty one. Low bits are the share's, so others choose. */
static uint32_t *slot_of(const struct audit *audit, uint64_t hash, const char *player_id)
{
    for (uint64_t at = hash >> 24;; at++) {
        uint32_t *slot = &audit->slots[at & (audit->slot_count - 1)];
        if (*slot == 0 || strcmp(audit->chains[*slot - 1].player_id, player_id) == 0)
            return slot;
    }
}

static void make_room(struct audit *audit, size_t slot_count)
{
    memory_free(audit->slots);
    audit->slot_count = slot_count;
    audit->slots = memory_alloc_zeroed(slot_count, sizeof audit->slots[0]);
    audit->chains = memory_resize(audit->chains, slot_count / 2 * sizeof audit->chains[0]);
    for (uint32_t i = 0; i < audit->chain_count; i++) {
        const char *player_id = audit->chains[i].player_id;
        *slot_of(audit, hash_of(audit, player_id), player_id) = i + 1;
    }
}

/* Goes on with one half of the share; the other waits for a walk of its own. */
static void halve_share(struct audit *audit)
{
    const struct share other = {audit->share.mask << 1 | 1,
                                audit->share.bits | (audit->share.mask + 1)};
    size_t kept = 0;
    CHECK(audit->waiting_count < SHARES_MAX);
    audit->waiting[audit->waiting_count++] = other;
    audit->share.mask = other.mask;
    for (size_t i = 0; i < audit->chain_count; i++)
        if (is_in_share(audit, hash_of(audit, audit->chains[i].player_id)))
            audit->chains[kept++] = audit->chains[i];
    audit->chain_count = kept;
    make_room(audit, audit->slot_count);
}

/* The chain of a player, begun when this is its first entry. NULL: another walk's. */
static struct chain *chain_of(struct audit *audit, const char *player_id)
{
    uint64_t hash = hash_of(audit, player_id);
    if (!is_in_share(audit, hash))
        return NULL;
    uint32_t *slot = slot_of(audit, hash, player_id);
    if (*slot != 0)
        return &audit->chains[*slot - 1];
    size_t most = audit->options->players_at_once;
    while (audit->chain_count == most) {
        halve_share(audit);
        if (!is_in_share(audit, hash))
            return NULL;
    }
    if (audit->chain_count == audit->slot_count / 2)
        make_room(audit, audit->slot_count * 2);
    struct chain *chain = &audit->chains[audit->chain_count++];
    *chain = (struct chain){0};
    memcpy(chain->player_id, player_id, sizeof chain->player_id);
    *slot_of(audit, hash, player_id) = (uint32_t)audit->chain_count;
    return chain;
}

/* On the relay's thread. */
static bool prove_entry(void *context, const struct ledger_transaction *entry)
{
    struct audit *audit = context;
    struct chain *chain = chain_of(audit, entry->player_id);
    uint8_t hash[LEDGER_HASH_SIZE];
    if (chain == NULL)
        return true;
    if (entry->sequence != chain->sequence + 1)
        return broken(audit, entry->player_id, chain->sequence + 1,
                      "this entry is not there, but a later one is");
    if (!movement_fits(entry))
        return broken(audit, entry->player_id, entry->sequence,
                      "the movement is not what the operation says");
    if (entry->balance_minor < 0)
        return broken(audit, entry->player_id, entry->sequence, "the balance is negative");
    if (entry->balance_minor != chain->balance_minor + entry->movement_minor)
        return broken(audit, entry->player_id, entry->sequence,
                      "the balance is not the one before plus the movement");
    ledger_entry_hash(entry, chain->hash, hash);
    if (memcmp(hash, entry->hash, sizeof hash) != 0)
        return broken(audit, entry->player_id, entry->sequence,
                      "the chain is broken: something in the entry was changed");
    chain->proved++;
    memcpy(chain->hash, entry->hash, sizeof chain->hash);
    chain->sequence = entry->sequence;
    chain->balance_minor = entry->balance_minor;
    return true;
}

/* Of what is recent; on the thread that reads. What a player's first entry among it follows is
 * taken as it is. */
static bool prove_recent(void *context, const struct ledger_transaction *transaction, bool before)
{
    struct audit *audit = context;
    const struct audit_options *options = audit->options;
    if (!ledger_is_entry(transaction))
        return true;
    if (++audit->read % PROGRESS_STEP == 0 && options->progress != NULL)
        options->progress(options->context, audit->read, 0);
    struct chain *chain = before ? chain_of(audit, transaction->player_id) : NULL;
    if (!before || (chain != NULL && chain->sequence > 0))
        return prove_entry(audit, transaction);
    if (chain != NULL) {
        chain->sequence = transaction->sequence;
        chain->balance_minor = transaction->balance_minor;
        memcpy(chain->hash, transaction->hash, sizeof chain->hash);
    }
    return true;
}

static bool read_entry(void *context, const struct ledger_transaction *transaction)
{
    struct audit *audit = context;
    const struct audit_options *options = audit->options;
    if (!ledger_is_entry(transaction))
        return true;
    audit->read++;
    if (options->progress != NULL && audit->read % PROGRESS_STEP == 0)
        options->progress(options->context, audit->read, audit->total);
    return relay_put(audit->relay, transaction);
}

/* ---- accounts -------------------------------------------------------------------------------- */

/* Is the account what the player's entries come to? */
static bool account_fits(struct audit *audit, const struct chain *chain,
                         const struct ledger_batch_player *player)
{
    const struct ledger_account *account = &player->account;
    if (!player->found || account->sequence != chain->sequence)
        return broken(audit, chain->player_id, chain->sequence,
                      "the account has another last sequence than its entries");
    if (account->balance_minor != chain->balance_minor)
        return broken(audit, chain->player_id, chain->sequence,
                      "the account has another balance than its entries come to");
    if (memcmp(account->head, chain->hash, sizeof chain->hash) != 0)
        return broken(audit, chain->player_id, chain->sequence,
                      "the account has another head than its chain");
    return true;
}

struct account_found {
    struct audit *audit;
    const struct chain *chain;
};

static bool account_of_entry(void *context, const struct ledger_transaction *entry,
                             const struct ledger_account *account)
{
    const struct account_found *found = context;
    const struct ledger_batch_player player = {.found = true, .account = *account};
    (void)entry;
    (void)account_fits(found->audit, found->chain, &player);
    return false; /* one entry is enough */
}

/* A store that looks at its accounts itself may refuse one that is malformed to it. Then what is
 * wrong with it is found by its entries, which lead to it too, or later by its counterparts; where
 * neither finds anything, the store's word stands. */
static enum status name_account(struct platform_store *store, struct audit *audit,
                                const struct chain *chains, size_t count)
{
    if (audit->refused.text[0] == '\0')
        audit->refused = *audit->error;
    for (size_t i = 0; i < count && audit->status == STATUS_OK; i++) {
        struct account_found found = {audit, &chains[i]};
        enum status status =
            store->ledger->entries(store, (struct ledger_whose){.player_id = chains[i].player_id},
                                   account_of_entry, &found, audit->error);
        if (status != STATUS_OK)
            return status;
    }
    return audit->status;
}

static enum status audit_accounts(struct platform_store *store, struct audit *audit)
{
    struct ledger_batch_player *players = memory_alloc_zeroed(LEDGER_BATCH_MAX, sizeof *players);
    enum status status = STATUS_OK;
    for (size_t first = 0; first < audit->chain_count && status == STATUS_OK;) {
        const struct chain *chains = &audit->chains[first];
        size_t left = audit->chain_count - first;
        size_t count = left < LEDGER_BATCH_MAX ? left : LEDGER_BATCH_MAX;
        for (size_t i = 0; i < count; i++)
            memcpy(players[i].player_id, chains[i].player_id, sizeof chains[i].player_id);
        status = store->ledger->balances(store, players, count, audit->error);
        bool refused = status == STATUS_MALFORMED;
        if (refused)
            status = name_account(store, audit, chains, count);
        for (size_t i = 0; i < count && status == STATUS_OK && !refused; i++)
            if (!account_fits(audit, &chains[i], &players[i]))
                status = audit->status;
        first += count;
    }
    memory_free(players);
    return status;
}

static bool audit_clearing(void *context, const struct ledger_clearing *clearing,
                           int64_t players_minor)
{
    struct audit *audit = context;
    if (clearing->balance_minor == -players_minor)
        return true;
    audit->status = error_set(audit->error, STATUS_MALFORMED,
                              "the ledger is broken: customer %s, %s: the players hold %" PRId64
                              " but the clearing account has %" PRId64,
                              clearing->customer_id, clearing->currency, players_minor,
                              clearing->balance_minor);
    return false;
}

/* All entries. The relay's thread has an error of its own until it has ended. */
static enum status walk_all(struct platform_store *store, struct audit *audit)
{
    struct error *error = audit->error;
    struct error found = {0};
    audit->error = &found;
    audit->relay = relay_create(prove_entry, audit);
    enum status status = store->ledger->transactions(store, read_entry, audit, error);
    relay_destroy(&audit->relay);
    audit->error = error;
    if (status == STATUS_OK && audit->status != STATUS_OK)
        *error = found;
    return status;
}

/* One walk, for one share of the players. */
static enum status audit_share(struct platform_store *store, struct audit *audit)
{
    audit->chain_count = 0;
    make_room(audit, audit->slot_count);
    audit->read = 0;
    enum status status = audit->options->recent
                             ? store->ledger->recent(store, audit->options->since_ms, prove_recent,
                                                     audit, audit->error)
                             : walk_all(store, audit);
    return status == STATUS_OK ? audit->status : status;
}

static void count_share(struct audit *audit)
{
    audit->result.players += audit->chain_count;
    for (size_t i = 0; i < audit->chain_count; i++)
        audit->result.entries += audit->chains[i].proved;
}

static enum status audit_entries(struct platform_store *store, struct audit *audit)
{
    enum status status = STATUS_OK;
    audit->seed = hash_random_seed();
    audit->slot_count = 1024;
    audit->waiting_count = 1; /* all players */
    while (status == STATUS_OK && audit->waiting_count > 0) {
        audit->share = audit->waiting[--audit->waiting_count];
        status = audit_share(store, audit);
        if (status == STATUS_OK)
            status = audit_accounts(store, audit);
        count_share(audit);
    }
    memory_free(audit->chains);
    memory_free(audit->slots);
    return status;
}

static enum status audit_declines(struct platform_store *store, struct audit *audit)
{
    forget_player(audit);
    enum status status = store->ledger->declines(store, audit_decline, audit, audit->error);
    if (status == STATUS_OK && audit->status == STATUS_OK)
        (void)declines_fit(audit);
    return status == STATUS_OK ? audit->status : status;
}

static enum status audit_clearings(struct platform_store *store, struct audit *audit)
{
    enum status status = store->ledger->clearings(store, audit_clearing, audit, audit->error);
    return status == STATUS_OK ? audit->status : status;
}

/* ---- the store itself ------------------------------------------------------------------------ */

/* What the store checks by itself: on the thread of the audit or, with a handle for it, beside
 * it. */
struct self_check {
    struct platform_store *store;
    const char *how;
    enum status integrity, counterparts; /* STATUS_OK where it was not begun */
    struct error error;
    struct ledger_check check;
    atomic_bool unwanted; /* something is broken already: the second half is not needed */
    uv_thread_t thread;
};

static void say_nothing(void *context)
{
    (void)context;
}

static void tell_alive(void *context)
{
    struct audit *audit = context;
    if (audit->options->progress != NULL && audit->total > 0)
        audit->options->progress(audit->options->context, 0, audit->total);
}

static void check_integrity(struct self_check *check)
{
    check->integrity =
        check->store->ledger->integrity(check->store, &check->check, &check->how, &check->error);
}

static void check_counterparts(struct self_check *check)
{
    if (check->integrity == STATUS_OK && !atomic_load(&check->unwanted))
        check->counterparts = check->store->ledger->counterparts(check->store, &check->error);
}

/* The handle's snapshot is its own, taken when the audit's was there already. */
static void run_self_check(void *argument)
{
    struct self_check *check = argument;
    check->integrity = check->store->ledger->snapshot_begin(check->store, &check->error);
    if (check->integrity != STATUS_OK)
        return;
    check_integrity(check);
    check_counterparts(check);
    check->store->ledger->snapshot_end(check->store);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status audit_rows(struct platform_store *store, struct audit *audit)
{
    enum status status = audit_entries(store, audit);
    if (status == STATUS_OK && !audit->options->recent)
        status = audit_declines(store, audit);
    if (status == STATUS_OK)
        status = audit_clearings(store, audit);
    if (audit->options->progress != NULL && !audit->options->recent)
        audit->options->progress(audit->options->context, audit->total, audit->total);
    return status;
}

/* A damaged store comes first, because what else was found may be owed to it; then what a chain
 * says, which names the row; then rows without counterparts. */
static enum status judge(struct audit *audit, struct self_check *check, enum status rows)
{
    enum status status = check->integrity != STATUS_OK ? check->integrity
                         : rows != STATUS_OK           ? rows
                                                       : check->counterparts;
    if (status != STATUS_OK) {
        if (check->integrity != STATUS_OK || rows == STATUS_OK) {
            *audit->error = check->error;
            audit->result.broken = (struct audit_break){.sequence = 0};
        }
        return status;
    }
    if (audit->refused.text[0] != '\0') {
        *audit->error = audit->refused;
        return STATUS_MALFORMED;
    }
    audit->result.how = check->how;
    /* Those of a player that is not there are not walked through. */
    if (audit->result.entries != audit->total)
        return error_set(audit->error, STATUS_MALFORMED,
                         "the ledger is broken: rows are without their counterpart: of %" PRIu64
                         " entries only %" PRIu64 " are a player's",
                         audit->total, audit->result.entries);
    return STATUS_OK;
}

static enum status audit_all(struct platform_store *store, struct audit *audit)
{
    struct platform_store *beside = audit->options->beside;
    struct self_check check = {
        .store = beside != NULL ? beside : store,
        .check = {.alive = beside != NULL ? say_nothing : tell_alive, .context = audit}};
    enum status rows = STATUS_OK;
    if (audit->options->recent)
        return audit_rows(store, audit);
    enum status status = store->ledger->count(store, &audit->total, audit->error);
    if (status != STATUS_OK)
        return status;
    atomic_init(&check.unwanted, false);
    if (beside != NULL)
        thread_start(&check.thread, "self-check", run_self_check, &check);
    else
        check_integrity(&check);
    if (beside != NULL || check.integrity == STATUS_OK)
        rows = audit_rows(store, audit);
    if (rows != STATUS_OK)
        atomic_store(&check.unwanted, true);
    if (beside != NULL)
        CHECK(uv_thread_join(&check.thread) == 0);
    else
        check_counterparts(&check);
    return judge(audit, &check, rows);
}

enum status wallet_audit(struct platform_store *store, const struct audit_options *options,
                         struct audit_result *result, struct error *error)
{
    struct audit_options chosen = *options;
    if (chosen.players_at_once == 0)
        chosen.players_at_once = PLAYERS_AT_ONCE;
    struct audit *audit = memory_alloc_zeroed(1, sizeof *audit);
    audit->options = &chosen;
    audit->error = error;
    enum status status = store->ledger->snapshot_begin(store, error);
    if (status == STATUS_OK) {
        status = audit_all(store, audit);
        store->ledger->snapshot_end(store);
    }
    *result = audit->result;
    memory_free(audit);
    return status;
}

enum status wallet_verify(struct platform_store *store, const struct audit_options *options,
                          struct audit_result *result, struct error *unkept, struct error *error)
{
    struct verification_record record = {
        .scope = options->recent ? VERIFICATION_RECENT : VERIFICATION_WHOLE,
        .started_ms = clock_wall_ms(),
        .since_ms = options->recent ? options->since_ms : 0,
    };
    enum status status = wallet_audit(store, options, result, error);
    *unkept = (struct error){.text = ""};
    if (status != STATUS_OK && status != STATUS_MALFORMED)
        return status;
    record.ended_ms = clock_wall_ms();
    record.sound = status == STATUS_OK;
    record.entries = result->entries;
    record.players = result->players;
    if (!record.sound)
        verification_set_reason(&record, error->text);
    if (platform_verification_put(store, &record, unkept) == STATUS_OK)
        *unkept = (struct error){.text = ""};
    return status;
}
