/*
 * One walk over all entries, in order of player and sequence, and one over all declines; what is
 * kept between two of a player's is the last one and what its account should be. Before them the
 * store says whether it is sound itself, because who reads through a damaged index may not see what
 * is there; after them it compares the rows that no chain leads through.
 */
#include "operator/wallet_audit.h"

#include <inttypes.h>
#include <string.h>

#define PROGRESS_STEP 10000

struct audit {
    struct audit_result result;
    uint64_t total;
    audit_progress *progress;
    void *context;
    struct error *error;
    enum status status;
    /* Of the player whose entries are walked: */
    char player_id[PLAYER_ID_SIZE]; /* "" before the first */
    uint64_t sequence;
    int64_t balance_minor;
    uint8_t hash[LEDGER_HASH_SIZE];
    struct ledger_account account;
    /* Of the player whose declines are walked, with `player_id`, `hash` and `account` as above: */
    uint64_t position;
};

static bool broken(struct audit *audit, const char *player_id, uint64_t sequence, const char *what)
{
    audit->status = error_set(audit->error, STATUS_MALFORMED,
                              "the ledger is broken: player %s, sequence %" PRIu64 ": %s",
                              player_id, sequence, what);
    return false;
}

static bool broken_decline(struct audit *audit, const char *player_id, uint64_t position,
                           const char *what)
{
    audit->status = error_set(audit->error, STATUS_MALFORMED,
                              "the ledger is broken: player %s, decline %" PRIu64 ": %s", player_id,
                              position, what);
    return false;
}

static void forget_player(struct audit *audit)
{
    audit->player_id[0] = '\0';
    memset(audit->hash, 0, sizeof audit->hash);
    audit->sequence = audit->position = 0;
    audit->balance_minor = 0;
}

/* After a player's last entry: is the account what its entries come to? */
static bool account_fits(struct audit *audit)
{
    const struct ledger_account *account = &audit->account;
    if (audit->player_id[0] == '\0')
        return true;
    if (account->sequence != audit->sequence)
        return broken(audit, audit->player_id, audit->sequence,
                      "the account has another last sequence than its entries");
    if (account->balance_minor != audit->balance_minor)
        return broken(audit, audit->player_id, audit->sequence,
                      "the account has another balance than its entries come to");
    if (memcmp(account->head, audit->hash, sizeof audit->hash) != 0)
        return broken(audit, audit->player_id, audit->sequence,
                      "the account has another head than its chain");
    return true;
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

static bool begin_player(struct audit *audit, const struct ledger_transaction *entry)
{
    if (!account_fits(audit))
        return false;
    forget_player(audit);
    memcpy(audit->player_id, entry->player_id, sizeof audit->player_id);
    audit->result.players++;
    return true;
}

static bool audit_entry(void *context, const struct ledger_transaction *entry,
                        const struct ledger_account *account)
{
    struct audit *audit = context;
    uint8_t hash[LEDGER_HASH_SIZE];
    if (strcmp(audit->player_id, entry->player_id) != 0 && !begin_player(audit, entry))
        return false;
    if (entry->sequence != audit->sequence + 1)
        return broken(audit, entry->player_id, audit->sequence + 1,
                      "this entry is not there, but a later one is");
    if (!movement_fits(entry))
        return broken(audit, entry->player_id, entry->sequence,
                      "the movement is not what the operation says");
    if (entry->balance_minor < 0)
        return broken(audit, entry->player_id, entry->sequence, "the balance is negative");
    if (entry->balance_minor != audit->balance_minor + entry->movement_minor)
        return broken(audit, entry->player_id, entry->sequence,
                      "the balance is not the one before plus the movement");
    ledger_entry_hash(entry, audit->hash, hash);
    if (memcmp(hash, entry->hash, sizeof hash) != 0)
        return broken(audit, entry->player_id, entry->sequence,
                      "the chain is broken: something in the entry was changed");
    memcpy(audit->hash, hash, sizeof hash);
    audit->sequence = entry->sequence;
    audit->balance_minor = entry->balance_minor;
    audit->account = *account;
    audit->result.entries++;
    if (audit->progress != NULL && audit->result.entries % PROGRESS_STEP == 0)
        audit->progress(audit->context, audit->result.entries, audit->total);
    return true;
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

static enum status audit_entries(struct platform_store *store, struct audit *audit)
{
    enum status status = store->ledger->entries(store, NULL, audit_entry, audit, audit->error);
    if (status == STATUS_OK && audit->status == STATUS_OK)
        (void)account_fits(audit);
    return status == STATUS_OK ? audit->status : status;
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

static void tell_alive(void *context)
{
    struct audit *audit = context;
    if (audit->progress != NULL && audit->total > 0)
        audit->progress(audit->context, 0, audit->total);
}

static enum status audit_all(struct platform_store *store, struct audit *audit)
{
    const struct ledger_check check = {.alive = tell_alive, .context = audit};
    enum status status = store->ledger->count(store, &audit->total, audit->error);
    if (status == STATUS_OK)
        status = store->ledger->integrity(store, &check, &audit->result.how, audit->error);
    if (status == STATUS_OK)
        status = audit_entries(store, audit);
    if (status == STATUS_OK)
        status = audit_declines(store, audit);
    if (status == STATUS_OK)
        status = audit_clearings(store, audit);
    if (audit->progress != NULL)
        audit->progress(audit->context, audit->total, audit->total);
    if (status == STATUS_OK)
        status = store->ledger->counterparts(store, audit->error);
    /* Those of a player that is not there are not walked through. */
    if (status == STATUS_OK && audit->result.entries != audit->total)
        status = error_set(audit->error, STATUS_MALFORMED,
                           "the ledger is broken: rows are without their counterpart: of %" PRIu64
                           " entries only %" PRIu64 " are a player's",
                           audit->total, audit->result.entries);
    return status;
}

enum status wallet_audit(struct platform_store *store, audit_progress *progress, void *context,
                         struct audit_result *result, struct error *error)
{
    struct audit audit = {.progress = progress, .context = context, .error = error};
    enum status status = store->ledger->snapshot_begin(store, error);
    if (status != STATUS_OK)
        return status;
    status = audit_all(store, &audit);
    store->ledger->snapshot_end(store);
    if (status == STATUS_OK)
        *result = audit.result;
    return status;
}
