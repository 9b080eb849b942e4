/*
 * The audit reads each entry together with the entry that it follows, so it verifies an entry by
 * itself and remembers nothing of a player. Each account names its last entry; from there entries
 * lead back to the player's first. No entry is missing and none is beside the chains when there are
 * as many entries as the sequences of all accounts add up to. The audit then reads the accounts,
 * which must fit their last entry and last decline, and the declines, which are chained in the same
 * way.
 *
 * The store checks its own pages and indexes, because a damaged index hides rows, and compares the
 * rows outside the chains: on another thread, with a handle of its own, or before and after.
 */
#include "stores/ledger_audit.h"

#include "base/clock.h"
#include "base/threads.h"
#include "stores/platform/ledger/reads.h"
#include "stores/platform_entries.h"
#include "stores/platform_verifications.h"

#define PROGRESS_STEP 10000

struct audit {
    struct audit_result result;
    const struct audit_options *options;
    struct platform_store *store;
    uint64_t total;    /* number of entries */
    uint64_t followed; /* sequences of the entries before the first ones read, in a recent audit */
    uint64_t expected; /* entries, as the accounts say */
    struct error *error;
    enum status status; /* of a fault in a decline or a clearing account */
};

/* Of a player; they are counted by its sequence, and by position. */
enum broken_row { ENTRY, DECLINE };

static enum status broken(struct audit *audit, const char *player_id, enum broken_row row,
                          uint64_t at, const char *what)
{
    struct audit_break *place = &audit->result.broken;
    *place =
        row == DECLINE ? (struct audit_break){.decline = at} : (struct audit_break){.sequence = at};
    (void)snprintf(place->player_id, sizeof place->player_id, "%s", player_id);
    return error_set(audit->error, STATUS_MALFORMED,
                     "the ledger is broken: player %s, %s %" PRIu64 ": %s", player_id,
                     row == DECLINE ? "decline" : "sequence", at, what);
}

/* ---- entries --------------------------------------------------------------------------------- */

/* The entry before an entry. */
struct before {
    uint64_t sequence; /* 0: there is nothing before it */
    int64_t balance_minor;
    uint8_t hash[LEDGER_HASH_SIZE];
};

static bool movement_fits(const struct ledger_transaction *entry)
{
    int64_t amount = entry->amount_minor;
    if (entry->outcome == LEDGER_VOIDED)
        return entry->operation == LEDGER_ROLLBACK && entry->movement_minor == 0 && amount == 0;
    switch (entry->operation) {
    case LEDGER_DEBIT:
        return entry->movement_minor == -amount &&
               (amount > 0 || entry->provider_id[0] != '\0'); /* a provider's free round */
    case LEDGER_CREDIT:
        return entry->movement_minor == amount;
    case LEDGER_ROLLBACK:
        return entry->movement_minor == amount || entry->movement_minor == -amount;
    case LEDGER_BALANCE:
        break;
    }
    return false;
}

/* Only a provider gives a CREDIT a kind and ends a round. */
static bool words_fit(const struct ledger_transaction *entry)
{
    bool by_provider = entry->provider_id[0] != '\0';
    return (entry->kind == LEDGER_WIN || (by_provider && entry->operation == LEDGER_CREDIT)) &&
           (!entry->round_ended || by_provider);
}

static enum status verify_entry(struct audit *audit, const struct ledger_transaction *entry,
                                const struct before *before)
{
    const char *flaw = NULL;
    uint8_t hash[LEDGER_HASH_SIZE];
    if (entry->sequence != before->sequence + 1)
        return broken(audit, entry->player_id, ENTRY,
                      before->sequence > 0 ? before->sequence + 1 : entry->sequence - 1,
                      "this entry is not there, but a later one is");
    ledger_entry_hash(entry, before->hash, hash);
    if (!movement_fits(entry))
        flaw = "the movement is not what the operation says";
    else if (!words_fit(entry))
        flaw = "its kind or the end of its round is not the operation's";
    else if (entry->balance_minor < 0)
        flaw = "the balance is negative";
    else if (entry->balance_minor != before->balance_minor + entry->movement_minor)
        flaw = "the balance is not the one before plus the movement";
    else if (memcmp(hash, entry->hash, sizeof hash) != 0)
        flaw = "the chain is broken: something in the entry was changed";
    return flaw == NULL ? STATUS_OK : broken(audit, entry->player_id, ENTRY, entry->sequence, flaw);
}

static enum status take_entry(void *context, const struct sql_row *row, struct error *error)
{
    const int after = LEDGER_TRANSACTION_COLUMN_COUNT;
    struct audit *audit = context;
    const struct audit_options *options = audit->options;
    struct before before = {.sequence = (uint64_t)sql_integer(row, after),
                            .balance_minor = sql_integer(row, after + 1)};
    struct ledger_transaction entry;
    bool sound = ledger_read_row(audit->store, row, &entry) && ledger_is_entry(&entry);
    sound &= ledger_read_hash(row, after + 2, before.hash) || before.sequence == 0;
    if (!sound)
        return platform_damaged(audit->store, "an entry of the ledger is malformed", error);
    if (sql_integer(row, after + 3) != 0)
        audit->followed += before.sequence;
    enum status status = verify_entry(audit, &entry, &before);
    if (status != STATUS_OK)
        return status;
    if (++audit->result.entries % PROGRESS_STEP == 0)
        progress_tell(options->watch, "entries", audit->result.entries, audit->total);
    return STATUS_OK;
}

/* ---- accounts -------------------------------------------------------------------------------- */

static enum status account_fits(struct audit *audit, const struct ledger_account *account,
                                const struct before *last)
{
    const char *flaw = NULL;
    if (account->sequence != last->sequence)
        flaw = "the account has another last sequence than its entries";
    else if (account->balance_minor != last->balance_minor)
        flaw = "the account has another balance than its entries come to";
    else if (memcmp(account->head, last->hash, sizeof last->hash) != 0)
        flaw = "the account has another head than its chain";
    if (flaw == NULL)
        return STATUS_OK;
    /* Where the last entry is not there, the one before it is what there is. */
    bool gone = last->sequence == 0 && account->sequence > 0;
    return broken(audit, account->player.id, ENTRY, gone ? account->sequence - 1 : last->sequence,
                  flaw);
}

static enum status declines_fit(struct audit *audit, const struct ledger_account *account,
                                uint64_t declines, const uint8_t head[LEDGER_HASH_SIZE])
{
    const char *flaw = NULL;
    if (account->declines != declines)
        flaw = "the account has another last decline than its declines";
    else if (memcmp(account->declines_head, head, LEDGER_HASH_SIZE) != 0)
        flaw = "the account has another head than the chain of its declines";
    return flaw == NULL ? STATUS_OK : broken(audit, account->player.id, DECLINE, declines, flaw);
}

static enum status take_account(void *context, const struct sql_row *row, struct error *error)
{
    const int after = LEDGER_ACCOUNT_COLUMN_COUNT + LEDGER_DECLINED_COLUMN_COUNT;
    struct audit *audit = context;
    struct ledger_account account = {.sequence = 0};
    struct before last = {.sequence = (uint64_t)sql_integer(row, after),
                          .balance_minor = sql_integer(row, after + 1)};
    uint8_t head[LEDGER_HASH_SIZE];
    if (!ledger_read_account(row, 0, &account) ||
        !ledger_read_declined(row, LEDGER_ACCOUNT_COLUMN_COUNT, &account))
        return platform_damaged(audit->store, "an account is malformed", error);
    (void)ledger_read_hash(row, after + 2, last.hash);
    (void)ledger_read_hash(row, after + 4, head);
    audit->expected += account.sequence;
    audit->result.players += account.sequence > 0;
    enum status status = account_fits(audit, &account, &last);
    return status != STATUS_OK || audit->options->recent
               ? status
               : declines_fit(audit, &account, (uint64_t)sql_integer(row, after + 3), head);
}

/* A player whose entries are not as many as its account says. */
static enum status take_miscounted(void *context, const struct sql_row *row, struct error *error)
{
    struct audit *audit = context;
    char player_id[PLAYER_ID_SIZE];
    (void)error;
    (void)ledger_read_string(row, 0, player_id, sizeof player_id);
    return broken(audit, player_id, ENTRY, (uint64_t)sql_integer(row, 1),
                  "the account has another last sequence than its entries");
}

/* ---- declines and clearing accounts ---------------------------------------------------------- */

static bool verify_decline(void *context, const struct ledger_transaction *decline,
                           const uint8_t *before)
{
    static const uint8_t zeros[LEDGER_HASH_SIZE];
    struct audit *audit = context;
    uint8_t hash[LEDGER_HASH_SIZE];
    if ((before == NULL) != (decline->decline == 1)) {
        audit->status = broken(audit, decline->player_id, DECLINE, decline->decline - 1,
                               "this decline is not there, but a later one is");
        return false;
    }
    ledger_decline_hash(decline, before != NULL ? before : zeros, hash);
    if (memcmp(hash, decline->hash, sizeof hash) == 0)
        return true;
    audit->status = broken(audit, decline->player_id, DECLINE, decline->decline,
                           "the chain is broken: something in the decline was changed");
    return false;
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

/* ---- rows ------------------------------------------------------------------------------------ */

/* Reads with the text for all entries, or with the one for recent entries. */
static enum status read_rows(struct audit *audit, const char *all, const char *since,
                             ledger_row_taker *take)
{
    struct sql_parameters parameters = SQL_PARAMETERS(SQL_INTEGER(audit->options->since_ms));
    bool recent = audit->options->recent;
    return ledger_read(audit->store, recent ? since : all, recent ? &parameters : NULL, take, audit,
                       audit->error);
}

static enum status audit_accounts(struct audit *audit)
{
    const struct sql_texts *texts = audit->store->engine->texts;
    enum status status = read_rows(audit, texts->accounts, texts->accounts_since, take_account);
    if (status != STATUS_OK || audit->expected == audit->followed + audit->result.entries)
        return status;
    status =
        ledger_read(audit->store, texts->miscounted, NULL, take_miscounted, audit, audit->error);
    return status != STATUS_OK
               ? status
               : ledger_broken_row(audit->error, TEXT("entries"), "they are no account's");
}

static enum status audit_rows(struct audit *audit)
{
    const struct sql_texts *texts = audit->store->engine->texts;
    const struct audit_options *options = audit->options;
    enum status status = read_rows(audit, texts->chained, texts->chained_since, take_entry);
    if (status == STATUS_OK && !options->recent)
        status = platform_ledger_declines(audit->store, verify_decline, audit, audit->error);
    if (status == STATUS_OK)
        status = audit->status;
    if (status == STATUS_OK)
        status = audit_accounts(audit);
    if (status == STATUS_OK)
        status = platform_ledger_clearings(audit->store, audit_clearing, audit, audit->error);
    if (status == STATUS_OK)
        status = audit->status;
    if (!options->recent)
        progress_tell(options->watch, "looking for rows without their counterpart", audit->total,
                      audit->total);
    return status;
}

/* ---- the store itself ------------------------------------------------------------------------ */

/* The store's checks of itself, on the thread of the audit or, with a handle for them, beside
 * it. */
struct self_check {
    struct platform_store *store;
    const char *how;
    enum status integrity, counterparts; /* STATUS_OK where it was not begun */
    struct error error;
    atomic_bool unwanted; /* something is broken already: the second half is not needed */
    uv_thread_t thread;
};

static void check_integrity(struct self_check *check)
{
    check->integrity = check->store->ledger->integrity(check->store, &check->how, &check->error);
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

/* Damage of the store comes first, because it may be the cause of the rest; then a broken chain,
 * which names the row; then rows without counterparts. */
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
    audit->result.how = check->how;
    /* Those of a player that is not there are not read. */
    if (audit->result.entries != audit->total)
        return error_set(audit->error, STATUS_MALFORMED,
                         "the ledger is broken: rows are without their counterpart: of %" PRIu64
                         " entries only %" PRIu64 " are a player's",
                         audit->total, audit->result.entries);
    return STATUS_OK;
}

static enum status audit_all(struct audit *audit)
{
    struct platform_store *beside = audit->options->beside;
    struct self_check check = {.store = beside != NULL ? beside : audit->store};
    enum status rows = STATUS_OK;
    if (audit->options->recent)
        return audit_rows(audit);
    enum status status = platform_ledger_count(audit->store, &audit->total, audit->error);
    if (status != STATUS_OK)
        return status;
    atomic_init(&check.unwanted, false);
    if (beside != NULL) {
        thread_start(&check.thread, "self-check", run_self_check, &check);
    } else {
        audit->store->watch = audit->options->watch;
        check_integrity(&check);
        audit->store->watch = NULL;
    }
    if (beside != NULL || check.integrity == STATUS_OK)
        rows = audit_rows(audit);
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
    struct audit audit = {.options = options, .store = store, .error = error};
    struct ledger_end end;
    enum status status = platform_ledger_check_end(store, &end, error);
    if (status == STATUS_OK)
        status = store->ledger->snapshot_begin(store, error);
    if (status == STATUS_OK) {
        status = audit_all(&audit);
        store->ledger->snapshot_end(store);
    }
    if (status == STATUS_OK && !options->recent) /* last: broken rows say more */
        status = store->engine->check_shape(store, &audit.result.compared, error);
    *result = audit.result;
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
