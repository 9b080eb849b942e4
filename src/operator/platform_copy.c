/*
 * A copy is made of parts: the kinds of records, the ledger and usage. The walk over a part of the
 * source writes what it visits into the target and takes its fingerprint, one SHA-256; the same
 * walk over the target must come to the same one. The source is read once, in one snapshot. A write
 * into it after that changes its state (platform_state), which is compared last.
 */
#include "operator/platform_copy.h"

#include "base/digest.h"
#include "base/memory.h"
#include "stores/ledger_audit.h"
#include "stores/platform_entries.h"
#include "stores/platform_games.h"
#include "stores/platform_players.h"
#include "stores/platform_records.h"
#include "stores/platform_usage.h"

#define ROWS_AT_ONCE 1000
/* The parts beside the kinds of records. */
#define PART_LEDGER RECORD_KIND_COUNT
#define PART_USAGE (PART_LEDGER + 1)

/* The order of copying: owners before their records, and records that admit callers last.
 * Credentials are not copied, so the copy has no sessions. */
static const int parts[] = {RECORD_CUSTOMER, RECORD_PROVIDER, RECORD_GAME,   RECORD_GAME_POLICY,
                            RECORD_PLAYER,   RECORD_BLOCK,    RECORD_LAUNCH, RECORD_TRAIL,
                            RECORD_OPERATOR, PART_LEDGER,     PART_USAGE,    RECORD_KEY,
                            RECORD_ADDRESS,  RECORD_TOKEN};
#define PARTS (sizeof parts / sizeof parts[0])

struct copy {
    struct platform_store *to;
    const struct progress_watch *watch;
    struct error *error;
    enum status status; /* of the target, or of a record; the walks' own are returned by them */
    struct platform_counts counts;

    int part;                         /* the one being walked through */
    const struct record_table *table; /* of a kind of records, else NULL */
    char what[32];                    /* "copying players" */
    uint64_t count;
    bool writes; /* it is the source's */
    struct digest *digest;

    /* Rows that go into the target together, and are not yet written: players, launches, games with
     * one updated_ms, transactions or usage. */
    char *rows;
    size_t row_size, row_count, rows_most;
    struct ledger_batch *batch;
};

/* ---- the ledger ------------------------------------------------------------------------------ */

static size_t player_of(const struct ledger_batch *batch, const char *player_id)
{
    size_t at = 0;
    while (at < batch->player_count && strcmp(batch->players[at].player_id, player_id) != 0)
        at++;
    return at;
}

/* The entry as it is, after the account's last one; or it is not the next one. */
static enum status enter(struct ledger_batch *batch, struct ledger_batch_player *player,
                         const struct ledger_transaction *entry, struct error *error)
{
    struct ledger_account *account = &player->account;
    struct ledger_clearing *clearing = &batch->clearings[player->clearing];
    uint8_t hash[LEDGER_HASH_SIZE];
    const char *flaw = NULL;
    ledger_entry_hash(entry, account->head, hash);
    if (entry->sequence != account->sequence + 1)
        flaw = "it is not the next entry";
    else if (entry->balance_minor != account->balance_minor + entry->movement_minor)
        flaw = "the balance is not the one before plus the movement";
    else if (memcmp(hash, entry->hash, sizeof hash) != 0)
        flaw = "the chain is broken";
    if (flaw != NULL)
        return error_set(error, STATUS_MALFORMED,
                         "the source's ledger is broken: player %s, sequence %" PRIu64 ": %s",
                         entry->player_id, entry->sequence, flaw);
    account->sequence = entry->sequence;
    account->balance_minor = entry->balance_minor;
    memcpy(account->head, hash, sizeof account->head);
    player->changed = true;
    clearing->balance_minor -= entry->movement_minor;
    clearing->changed = clearing->changed || entry->movement_minor != 0;
    return STATUS_OK;
}

static enum status fill_batch(struct copy *copy, const struct ledger_transaction *transactions,
                              size_t count)
{
    struct ledger_batch *batch = copy->batch;
    for (size_t i = 0; i < count; i++) {
        const size_t at = player_of(batch, transactions[i].player_id);
        struct ledger_batch_player *player = &batch->players[at];
        if (!player->found)
            return error_set(copy->error, STATUS_MALFORMED,
                             "the source's ledger has a player that is not among its players");
        batch->kept_of[i].player = (uint16_t)at;
        batch->kept[i] = transactions[i];
        if (!ledger_is_entry(&transactions[i])) { /* the fingerprint has the source's chain */
            ledger_chain_decline(&player->account, &batch->kept[i]);
            player->declined = true;
            continue;
        }
        enum status status = enter(batch, player, &transactions[i], copy->error);
        if (status != STATUS_OK)
            return status;
    }
    batch->kept_count = count;
    return STATUS_OK;
}

static enum status write_transactions(struct copy *copy,
                                      const struct ledger_transaction *transactions, size_t count)
{
    struct ledger_batch *batch = copy->batch;
    struct error of_ending = {0};
    bool unknown = false;
    batch->player_count = batch->fact_count = batch->kept_count = 0;
    for (size_t i = 0; i < count; i++) {
        const char *player_id = transactions[i].player_id;
        if (player_of(batch, player_id) == batch->player_count) {
            struct ledger_batch_player *player = &batch->players[batch->player_count++];
            *player = (struct ledger_batch_player){.found = false};
            memcpy(player->player_id, player_id, sizeof transactions[i].player_id);
        }
        if (transactions[i].provider_id[0] != '\0')
            ledger_ask(&batch->facts[batch->fact_count++], transactions[i].provider_id,
                       transactions[i].transaction_id);
    }
    enum status status = copy->to->ledger->begin(copy->to, batch, copy->error);
    if (status != STATUS_OK)
        return status;
    status = fill_batch(copy, transactions, count);
    /* A batch that was not filled keeps nothing: it ends, and the first failure is reported. */
    enum status ended = copy->to->ledger->commit(copy->to, batch, &unknown,
                                                 status == STATUS_OK ? copy->error : &of_ending);
    return status == STATUS_OK ? ended : status;
}

/* ---- writing --------------------------------------------------------------------------------- */

static enum status write_rows(struct copy *copy)
{
    const void *rows = copy->rows;
    const struct game_record *games = rows;
    struct games_put_result result;
    const size_t count = copy->row_count;
    copy->row_count = 0;
    if (count == 0)
        return STATUS_OK;
    switch (copy->part) {
    case RECORD_PLAYER:
        return platform_player_put(copy->to, rows, count, copy->error);
    case RECORD_LAUNCH:
        return platform_launches_add(copy->to, rows, count, copy->error);
    case RECORD_GAME:
        /* Every game keeps its updated_ms, which is one for all that are put at once. */
        return platform_games_put(copy->to, games, NULL, count, games->updated_ms, &result,
                                  copy->error);
    case PART_USAGE:
        return platform_usage_add(copy->to, rows, count, copy->error);
    default:
        return write_transactions(copy, rows, count);
    }
}

static enum status add_row(struct copy *copy, const void *row)
{
    const struct game_record *first = (const void *)copy->rows;
    enum status status = STATUS_OK;
    if (copy->part == RECORD_GAME && copy->row_count > 0 &&
        first->updated_ms != ((const struct game_record *)row)->updated_ms)
        status = write_rows(copy);
    memcpy(copy->rows + copy->row_count++ * copy->row_size, row, copy->row_size);
    return status == STATUS_OK && copy->row_count == copy->rows_most ? write_rows(copy) : status;
}

static enum status check_usable(const struct copy *copy, const void *record)
{
    const struct record_table *table = copy->table;
    const struct column *key = &table->columns[0];
    char id[ADDRESS_TEXT_SIZE + GAME_ID_SIZE];
    if (table->usable == 0 || *(const bool *)((const char *)record + table->usable))
        return STATUS_OK;
    if (key->type->kind == COLUMN_BYTES)
        address_format(column_field(key, record), id);
    else
        (void)snprintf(id, sizeof id, "%s", (const char *)column_field(key, record));
    return error_set(copy->error, STATUS_MALFORMED,
                     "%s %s cannot be read in the source; mend it first", table->what, id);
}

/* Rows of the trail have numbers without a gap: one that is not there was taken away. */
static enum status check_follows(const struct copy *copy, const void *record)
{
    if (copy->part != RECORD_TRAIL || ((const struct trail_record *)record)->number == copy->count)
        return STATUS_OK;
    return error_set(copy->error, STATUS_MALFORMED,
                     "the source's audit trail is broken: row %" PRIu64 " is not there",
                     copy->count);
}

static enum status write_record(struct copy *copy, const void *record)
{
    enum status status = check_usable(copy, record);
    if (status == STATUS_OK)
        status = check_follows(copy, record);
    if (status != STATUS_OK)
        return status;
    return copy->rows_most > 0 ? add_row(copy, record)
                               : platform_add(copy->to, copy->table, record, copy->error);
}

/* ---- walking --------------------------------------------------------------------------------- */

static void mix(struct copy *copy, const void *bytes, size_t size)
{
    uint64_t length = size;
    digest_add(copy->digest, &length, sizeof length);
    digest_add(copy->digest, bytes, size);
}

static void mix_string(struct copy *copy, const char *string)
{
    mix(copy, string, strlen(string));
}

static void mix_number(struct copy *copy, int64_t number)
{
    mix(copy, &number, sizeof number);
}

static bool may_go_on(struct copy *copy, enum status status)
{
    if (copy->status == STATUS_OK)
        copy->status = status;
    return copy->status == STATUS_OK;
}

/* All that a record holds but its revision, which is the store's. */
static bool see_record(void *context, const void *record)
{
    struct copy *copy = context;
    for (size_t i = 0; i < copy->table->column_count; i++) {
        const struct column *column = &copy->table->columns[i];
        struct column_value value;
        if (column->type == &column_revision)
            continue;
        column_get(column, record, &value);
        mix_number(copy, value.null);
        mix_number(copy, value.integer);
        mix(copy, value.bytes.at, value.bytes.size);
        column_value_free(&value);
    }
    progress_tell(copy->watch, copy->what, ++copy->count, 0);
    return !copy->writes || may_go_on(copy, write_record(copy, record));
}

/* The hash is of all fields of an entry: `enter` has compared it with them in the source, and the
 * audit does in the copy. Declines have theirs in their own walk. */
static bool see_transaction(void *context, const struct ledger_transaction *transaction)
{
    struct copy *copy = context;
    mix_string(copy, transaction->player_id);
    mix_string(copy, transaction->transaction_id);
    mix(copy, transaction->hash, sizeof transaction->hash);
    copy->counts.entries += copy->writes && ledger_is_entry(transaction);
    progress_tell(copy->watch, copy->what, ++copy->count, 0);
    return !copy->writes || may_go_on(copy, add_row(copy, transaction));
}

static bool see_decline(void *context, const struct ledger_transaction *decline,
                        const uint8_t *before)
{
    struct copy *copy = context;
    (void)before;
    mix_string(copy, decline->transaction_id);
    mix(copy, decline->hash, sizeof decline->hash);
    return true;
}

static bool see_usage(void *context, const struct usage_record *record)
{
    struct copy *copy = context;
    mix_string(copy, record->customer_id);
    mix_number(copy, record->day);
    mix_number(copy, record->group);
    mix(copy, record->requests, sizeof record->requests);
    progress_tell(copy->watch, copy->what, ++copy->count, 0);
    return !copy->writes || may_go_on(copy, add_row(copy, record));
}

static const char *part_name(int part)
{
    return part == PART_LEDGER  ? "transactions"
           : part == PART_USAGE ? "usage"
                                : record_tables[part]->plural;
}

static void begin_part(struct copy *copy, int part, bool writes)
{
    copy->part = part;
    copy->table = part < RECORD_KIND_COUNT ? record_tables[part] : NULL;
    (void)snprintf(copy->what, sizeof copy->what, "%s %s", writes ? "copying" : "comparing",
                   part_name(part));
    copy->writes = writes;
    copy->count = 0;
    copy->digest = digest_begin();
    copy->row_size = part == PART_LEDGER  ? sizeof(struct ledger_transaction)
                     : part == PART_USAGE ? sizeof(struct usage_record)
                                          : copy->table->size;
    copy->rows_most = part == RECORD_GAME                              ? GAMES_MAX
                      : part == PART_LEDGER                            ? LEDGER_BATCH_MAX
                      : part == PART_USAGE                             ? PLATFORM_USAGE_MAX
                      : part == RECORD_PLAYER || part == RECORD_LAUNCH ? ROWS_AT_ONCE
                                                                       : 0;
    copy->rows = memory_alloc(writes ? copy->rows_most * copy->row_size + 1 : 1);
}

/* Takes the fingerprint of a part of a store, and copies it where the store is the source. */
static enum status walk(struct copy *copy, struct platform_store *store, int part,
                        uint8_t print[DIGEST_SIZE])
{
    enum status status;
    begin_part(copy, part, store != copy->to);
    if (part == PART_LEDGER)
        status = platform_ledger_transactions(store, see_transaction, copy, copy->error);
    else if (part == PART_USAGE)
        status =
            platform_usage_list(store, NULL, INT64_MIN, INT64_MAX, see_usage, copy, copy->error);
    else
        status = platform_list(store, copy->table, NULL, see_record, copy, copy->error);
    if (status == STATUS_OK)
        status = copy->status;
    if (status == STATUS_OK) /* the rest */
        status = write_rows(copy);
    if (status == STATUS_OK && part == PART_LEDGER)
        status = platform_ledger_declines(store, see_decline, copy, copy->error);
    if (copy->writes && part == PART_LEDGER)
        copy->counts.transactions = copy->count;
    else if (copy->writes && part != PART_USAGE)
        copy->counts.records[part] = copy->count;
    digest_end(&copy->digest, print);
    memory_free(copy->rows);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Reads the source, from one snapshot, into the target. */
static enum status copy_all(struct copy *copy, struct platform_store *from,
                            uint8_t prints[PARTS][DIGEST_SIZE], struct platform_state *state)
{
    enum status status = from->ledger->snapshot_begin(from, copy->error);
    if (status != STATUS_OK)
        return status;
    copy->batch = memory_alloc_zeroed(1, sizeof *copy->batch);
    status = platform_state(from, state, copy->error);
    for (size_t i = 0; i < PARTS && status == STATUS_OK; i++)
        status = walk(copy, from, parts[i], prints[i]);
    memory_free(copy->batch);
    from->ledger->snapshot_end(from);
    return status;
}

static enum status verify_copy(struct copy *copy, uint8_t prints[PARTS][DIGEST_SIZE])
{
    const struct audit_options options = {.watch = copy->watch};
    struct audit_result audited = {0};
    for (size_t i = 0; i < PARTS; i++) {
        uint8_t print[DIGEST_SIZE];
        enum status status = walk(copy, copy->to, parts[i], print);
        if (status != STATUS_OK)
            return status;
        if (memcmp(print, prints[i], sizeof print) != 0)
            return error_set(copy->error, STATUS_MALFORMED,
                             "%s of the copy are not those of the source: throw the copy away, and "
                             "copy again",
                             part_name(parts[i]));
    }
    return wallet_audit(copy->to, &options, &audited, copy->error);
}

static enum status check_untouched(struct platform_store *from, const struct platform_state *before,
                                   struct error *error)
{
    struct platform_state now;
    enum status status = from->ledger->snapshot_begin(from, error);
    if (status != STATUS_OK)
        return status;
    status = platform_state(from, &now, error);
    from->ledger->snapshot_end(from);
    const char *what = status == STATUS_OK ? platform_state_difference(before, &now) : NULL;
    if (what != NULL)
        return error_set(
            error, STATUS_MALFORMED,
            "%s of the source were written to meanwhile, and the copy lacks that: stop "
            "every instance, throw the copy away, and copy again",
            what);
    return status;
}

enum status platform_copy(struct platform_store *from, struct platform_store *to,
                          const struct progress_watch *watch, struct platform_counts *counts,
                          struct error *error)
{
    struct copy copy = {.to = to, .watch = watch, .error = error};
    struct platform_state state = {{0}};
    const struct platform_state empty = {{0}};
    uint8_t prints[PARTS][DIGEST_SIZE];
    enum status status = platform_state(to, &state, error);
    if (status == STATUS_OK && platform_state_difference(&state, &empty) != NULL)
        status = error_set(error, STATUS_EXISTS,
                           "the target is not empty; a copy needs a store of its own (one that "
                           "broke off is to be thrown away)");
    if (status != STATUS_OK)
        return status;
    to->copying = true;
    status = copy_all(&copy, from, prints, &state);
    if (status == STATUS_OK)
        status = verify_copy(&copy, prints);
    if (status == STATUS_OK)
        status = check_untouched(from, &state, error);
    if (status == STATUS_OK)
        *counts = copy.counts;
    return status;
}
