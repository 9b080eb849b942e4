/*
 * Each kind of record is listed from the source by a function that writes into the target. The
 * first error of the target ends the list.
 *
 * The comparison at the end is of fingerprints: the same walk over both stores, every field of
 * every record mixed into one SHA-256 a kind. It also shows writes into the source
 * during the copy. Writes during the comparison itself show in the revisions and counts, which are
 * read first.
 */
#include "operator/platform_copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/memory.h"
#include "stores/ledger_audit.h"
#include "stores/platform.h"

#define ROWS_AT_ONCE 1000
#define DIGEST_SIZE 32
/* What is compared: the kinds of records, and */
#define PART_LEDGER RECORD_KIND_COUNT
#define PART_USAGE (PART_LEDGER + 1)
#define PART_COUNT (PART_USAGE + 1)

/* The order of copying: owners before their records, and records that admit callers last.
 * Credentials are not copied, so the copy has no sessions. */
static const enum record_kind before_ledger[] = {RECORD_CUSTOMER,    RECORD_PROVIDER, RECORD_GAME,
                                                 RECORD_GAME_POLICY, RECORD_PLAYER,   RECORD_LAUNCH,
                                                 RECORD_TRAIL,       RECORD_OPERATOR};
static const enum record_kind after_ledger[] = {RECORD_KEY, RECORD_ADDRESS};

struct copy {
    struct platform_store *to;
    platform_copy_progress *progress;
    void *context;
    struct error *error;
    enum status status; /* of the target, or of a record; the walks' own are returned by them */
    struct platform_counts counts;

    const struct record_table *table; /* of the kind that is being copied */
    char what[32];                    /* "copying players" */

    struct player_record *players;  /* up to ROWS_AT_ONCE, not yet written, */
    struct launch_record *launches; /* or of these */
    size_t row_count;

    struct game_record *games; /* GAMES_MAX; those with one updated_ms are written at once */
    bool *set_enabled;
    size_t game_count;

    struct ledger_transaction *waiting; /* up to LEDGER_BATCH_MAX, not yet written */
    size_t waiting_count;
    struct ledger_batch *batch;

    struct usage_record *usage; /* up to PLATFORM_USAGE_MAX, not yet written */
    size_t usage_count;
};

static void report(const struct copy *copy, const char *what, uint64_t done)
{
    if (copy->progress != NULL)
        copy->progress(copy->context, what, done);
}

static bool may_go_on(struct copy *copy, enum status status)
{
    if (copy->status == STATUS_OK)
        copy->status = status;
    return copy->status == STATUS_OK;
}

/* ---- records --------------------------------------------------------------------------------- */

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
    uint64_t next = copy->counts.records[copy->table->kind];
    if (copy->table != &trail_table || ((const struct trail_record *)record)->number == next)
        return STATUS_OK;
    return error_set(copy->error, STATUS_MALFORMED,
                     "the source's audit trail is broken: row %" PRIu64 " is not there", next);
}

static enum status write_rows(struct copy *copy)
{
    size_t count = copy->row_count;
    copy->row_count = 0;
    return copy->table == &launch_table
               ? platform_launches_add(copy->to, copy->launches, count, copy->error)
               : platform_player_put(copy->to, copy->players, count, copy->error);
}

/* Every game keeps its updated_ms, which is one for all that are put at once. */
static enum status write_games(struct copy *copy)
{
    struct games_put_result result;
    size_t count = copy->game_count;
    copy->game_count = 0;
    return count == 0 ? STATUS_OK
                      : platform_games_put(copy->to, copy->games, copy->set_enabled, count,
                                           copy->games[0].updated_ms, &result, copy->error);
}

static enum status add_row(struct copy *copy, const void *record)
{
    if (copy->table == &launch_table)
        memcpy(&copy->launches[copy->row_count++], record, sizeof *copy->launches);
    else
        memcpy(&copy->players[copy->row_count++], record, sizeof *copy->players);
    return copy->row_count == ROWS_AT_ONCE ? write_rows(copy) : STATUS_OK;
}

static enum status add_game(struct copy *copy, const void *record)
{
    const struct game_record *game = record;
    enum status status = STATUS_OK;
    if (copy->game_count > 0 && copy->games[0].updated_ms != game->updated_ms)
        status = write_games(copy);
    CHECK(copy->game_count < GAMES_MAX);
    copy->games[copy->game_count] = *game;
    copy->set_enabled[copy->game_count++] = true;
    return status;
}

static bool copy_record(void *context, const void *record)
{
    struct copy *copy = context;
    report(copy, copy->what, ++copy->counts.records[copy->table->kind]);
    enum status status = check_usable(copy, record);
    if (status == STATUS_OK)
        status = check_follows(copy, record);
    if (status == STATUS_OK)
        status =
            copy->table == &player_table || copy->table == &launch_table ? add_row(copy, record)
            : copy->table == &game_table                                 ? add_game(copy, record)
                                         : platform_add(copy->to, copy->table, record, copy->error);
    return may_go_on(copy, status);
}

static enum status copy_kinds(struct copy *copy, struct platform_store *from,
                              const enum record_kind *kinds, size_t count)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        copy->table = record_tables[kinds[i]];
        (void)snprintf(copy->what, sizeof copy->what, "copying %s", copy->table->plural);
        status = platform_list(from, copy->table, NULL, copy_record, copy, copy->error);
        if (status == STATUS_OK)
            status = copy->status;
        if (status == STATUS_OK) /* the rest of the last batch */
            status = write_games(copy);
        if (status == STATUS_OK)
            status = write_rows(copy);
    }
    return status;
}

/* ---- the ledger ------------------------------------------------------------------------------ */

static struct ledger_batch_player *player_of(struct ledger_batch *batch, const char *player_id)
{
    for (size_t i = 0; i < batch->player_count; i++)
        if (strcmp(batch->players[i].player_id, player_id) == 0)
            return &batch->players[i];
    return NULL;
}

static enum status does_not_follow(struct error *error, const struct ledger_transaction *entry,
                                   const char *what)
{
    return error_set(error, STATUS_MALFORMED,
                     "the source's ledger is broken: player %s, sequence %" PRIu64 ": %s",
                     entry->player_id, entry->sequence, what);
}

/* The entry as it is, after the account's last one; or it is not the next one. */
static enum status enter(struct ledger_batch *batch, struct ledger_batch_player *player,
                         const struct ledger_transaction *entry, struct error *error)
{
    struct ledger_account *account = &player->account;
    struct ledger_clearing *clearing = &batch->clearings[player->clearing];
    uint8_t hash[LEDGER_HASH_SIZE];
    if (entry->sequence != account->sequence + 1)
        return does_not_follow(error, entry, "it is not the next entry");
    if (entry->balance_minor != account->balance_minor + entry->movement_minor)
        return does_not_follow(error, entry, "the balance is not the one before plus the movement");
    ledger_entry_hash(entry, account->head, hash);
    if (memcmp(hash, entry->hash, sizeof hash) != 0)
        return does_not_follow(error, entry, "the chain is broken");
    account->sequence = entry->sequence;
    account->balance_minor = entry->balance_minor;
    memcpy(account->head, hash, sizeof hash);
    player->changed = true;
    if (entry->movement_minor != 0) {
        clearing->balance_minor -= entry->movement_minor;
        clearing->changed = true;
    }
    return STATUS_OK;
}

static enum status put_waiting(struct copy *copy)
{
    struct ledger_batch *batch = copy->batch;
    for (size_t i = 0; i < copy->waiting_count; i++) {
        const struct ledger_transaction *transaction = &copy->waiting[i];
        struct ledger_batch_player *player = player_of(batch, transaction->player_id);
        if (player == NULL || !player->found)
            return error_set(copy->error, STATUS_MALFORMED,
                             "the source's ledger has a player that is not among its players");
        if (ledger_is_entry(transaction)) {
            enum status status = enter(batch, player, transaction, copy->error);
            if (status != STATUS_OK)
                return status;
        }
        struct ledger_transaction *kept = &batch->kept[batch->kept_count++];
        *kept = *transaction;
        if (!ledger_is_entry(kept)) { /* the comparison tells whether it is the source's chain */
            ledger_chain_decline(&player->account, kept);
            player->declined = true;
        }
    }
    return STATUS_OK;
}

static enum status write_waiting(struct copy *copy)
{
    struct ledger_batch *batch = copy->batch;
    bool unknown = false;
    if (copy->waiting_count == 0)
        return STATUS_OK;
    batch->player_count = batch->fact_count = batch->kept_count = 0;
    for (size_t i = 0; i < copy->waiting_count; i++) {
        const char *player_id = copy->waiting[i].player_id;
        if (player_of(batch, player_id) == NULL) {
            struct ledger_batch_player *player = &batch->players[batch->player_count++];
            memset(player, 0, sizeof *player);
            memcpy(player->player_id, player_id, sizeof copy->waiting[i].player_id);
        }
        if (copy->waiting[i].provider_id[0] != '\0')
            ledger_ask(&batch->facts[batch->fact_count++], copy->waiting[i].provider_id,
                       copy->waiting[i].transaction_id);
    }
    enum status status = copy->to->ledger->begin(copy->to, batch, copy->error);
    if (status != STATUS_OK)
        return status;
    struct error of_ending = {0};
    status = put_waiting(copy);
    if (status != STATUS_OK)
        batch->kept_count =
            0; /* so it ends without a commit; the first failure is the one to tell */
    copy->waiting_count = 0;
    enum status ended = copy->to->ledger->commit(copy->to, batch, &unknown,
                                                 status == STATUS_OK ? copy->error : &of_ending);
    return status == STATUS_OK ? ended : status;
}

static bool copy_transaction(void *context, const struct ledger_transaction *transaction)
{
    struct copy *copy = context;
    copy->waiting[copy->waiting_count++] = *transaction;
    copy->counts.entries += ledger_is_entry(transaction);
    report(copy, "copying transactions", ++copy->counts.transactions);
    return copy->waiting_count < LEDGER_BATCH_MAX || may_go_on(copy, write_waiting(copy));
}

static enum status copy_ledger(struct copy *copy, struct platform_store *from)
{
    copy->batch = memory_alloc_zeroed(1, sizeof *copy->batch);
    copy->waiting = memory_alloc_zeroed(LEDGER_BATCH_MAX, sizeof *copy->waiting);
    enum status status = platform_ledger_transactions(from, copy_transaction, copy, copy->error);
    if (status == STATUS_OK)
        status = copy->status;
    if (status == STATUS_OK)
        status = write_waiting(copy);
    memory_free(copy->waiting);
    memory_free(copy->batch);
    return status;
}

/* ---- usage ----------------------------------------------------------------------------------- */

static enum status write_usage(struct copy *copy)
{
    size_t count = copy->usage_count;
    copy->usage_count = 0;
    return platform_usage_add(copy->to, copy->usage, count, copy->error);
}

static bool copy_usage_record(void *context, const struct usage_record *record)
{
    struct copy *copy = context;
    copy->usage[copy->usage_count++] = *record;
    return copy->usage_count < PLATFORM_USAGE_MAX || may_go_on(copy, write_usage(copy));
}

static enum status walk_usage(struct platform_store *store, usage_function *see, void *context,
                              struct error *error)
{
    return platform_usage_list(store, NULL, INT64_MIN, INT64_MAX, see, context, error);
}

static enum status copy_usage(struct copy *copy, struct platform_store *from)
{
    copy->usage = memory_alloc_zeroed(PLATFORM_USAGE_MAX, sizeof *copy->usage);
    report(copy, "copying usage", 0);
    enum status status = walk_usage(from, copy_usage_record, copy, copy->error);
    if (status == STATUS_OK)
        status = copy->status;
    if (status == STATUS_OK)
        status = write_usage(copy);
    memory_free(copy->usage);
    return status;
}

/* ---- fingerprints ---------------------------------------------------------------------------- */

struct fingerprint {
    EVP_MD_CTX *digest;
    const struct copy *copy;
    const struct record_table *table; /* NULL: of what is no record */
    char what[32];                    /* "comparing players" */
    uint64_t count;
};

static void mix(struct fingerprint *print, const void *bytes, size_t size)
{
    uint64_t length = size;
    CHECK(EVP_DigestUpdate(print->digest, &length, sizeof length) == 1);
    CHECK(EVP_DigestUpdate(print->digest, bytes, size) == 1);
}

static void mix_string(struct fingerprint *print, const char *string)
{
    mix(print, string, strlen(string));
}

static void mix_number(struct fingerprint *print, int64_t number)
{
    mix(print, &number, sizeof number);
}

/* All that a record holds but its revision, which is the store's. */
static bool mix_record(void *context, const void *record)
{
    struct fingerprint *print = context;
    for (size_t i = 0; i < print->table->column_count; i++) {
        const struct column *column = &print->table->columns[i];
        struct column_value value;
        if (column->type == &column_revision)
            continue;
        column_get(column, record, &value);
        mix_number(print, value.null);
        mix_number(print, value.integer);
        mix(print, value.bytes.at, value.bytes.size);
        column_value_free(&value);
    }
    report(print->copy, print->what, ++print->count);
    return true;
}

static bool mix_transaction(void *context, const struct ledger_transaction *transaction)
{
    struct fingerprint *print = context;
    mix_string(print, transaction->customer_id);
    mix_string(print, transaction->player_id);
    mix_string(print, transaction->transaction_id);
    mix_string(print, transaction->reference);
    mix_string(print, transaction->game_id);
    mix_string(print, transaction->round_id);
    mix_string(print, transaction->provider_id);
    mix_string(print, transaction->launch_id);
    mix_string(print, transaction->currency);
    mix_number(print, transaction->currency_exponent);
    mix_number(print, transaction->operation);
    mix_number(print, transaction->outcome);
    mix_number(print, transaction->amount_minor);
    mix_number(print, transaction->created_ms);
    mix_number(print, (int64_t)transaction->sequence);
    mix_number(print, transaction->movement_minor);
    mix_number(print, transaction->balance_minor);
    mix(print, transaction->hash, sizeof transaction->hash);
    report(print->copy, print->what, ++print->count);
    return true;
}

static bool mix_decline(void *context, const struct ledger_transaction *decline,
                        const uint8_t *before)
{
    struct fingerprint *print = context;
    (void)before;
    mix_string(print, decline->player_id);
    mix_string(print, decline->transaction_id);
    mix_number(print, (int64_t)decline->decline);
    mix(print, decline->hash, sizeof decline->hash);
    return true;
}

static enum status walk_ledger(struct platform_store *store, struct fingerprint *print,
                               struct error *error)
{
    enum status status = platform_ledger_transactions(store, mix_transaction, print, error);
    return status == STATUS_OK ? platform_ledger_declines(store, mix_decline, print, error)
                               : status;
}

static bool mix_usage(void *context, const struct usage_record *record)
{
    struct fingerprint *print = context;
    mix_string(print, record->customer_id);
    mix_number(print, record->day);
    mix_number(print, record->group);
    mix(print, record->requests, sizeof record->requests);
    return true;
}

/* The table of a part: the kinds of records in their order; NULL for what is no record. */
static const struct record_table *table_of(int part)
{
    return part < RECORD_KIND_COUNT ? record_tables[part] : NULL;
}

static bool is_copied(int part)
{
    return part != RECORD_CREDENTIAL;
}

static enum status take_fingerprint(const struct copy *copy, struct platform_store *store, int part,
                                    uint8_t out[DIGEST_SIZE])
{
    struct fingerprint print = {.digest = EVP_MD_CTX_new(), .copy = copy, .table = table_of(part)};
    unsigned size = 0;
    (void)snprintf(print.what, sizeof print.what, "comparing %s",
                   part == PART_LEDGER  ? "transactions"
                   : part == PART_USAGE ? "usage"
                                        : print.table->plural);
    CHECK(print.digest != NULL && EVP_DigestInit_ex(print.digest, EVP_sha256(), NULL) == 1);
    enum status status = part == PART_LEDGER  ? walk_ledger(store, &print, copy->error)
                         : part == PART_USAGE ? walk_usage(store, mix_usage, &print, copy->error)
                                              : platform_list(store, print.table, NULL, mix_record,
                                                              &print, copy->error);
    CHECK(EVP_DigestFinal_ex(print.digest, out, &size) == 1 && size == DIGEST_SIZE);
    EVP_MD_CTX_free(print.digest);
    return status;
}

static void report_audit(void *context, uint64_t done, uint64_t total)
{
    report(context,
           done == 0 && total > 0 ? "checking the copy's store itself"
           : done < total         ? "auditing entries"
                                  : "audited entries; looking for rows without their counterpart",
           done);
}

static enum status was_written_to(struct error *error, const char *what)
{
    return error_set(error, STATUS_MALFORMED,
                     "%s of the copy are not those of the source: was it written to "
                     "meanwhile? Stop every instance, throw the copy away, and copy again",
                     what);
}

/* The source comes last, so that what was written into it meanwhile is seen: also during the
 * audit. */
static enum status compare(struct copy *copy, struct platform_store *from)
{
    struct audit_result audited = {0};
    uint8_t targets[PART_COUNT][DIGEST_SIZE] = {0};
    enum status status = STATUS_OK;
    for (int part = 0; part < PART_COUNT && status == STATUS_OK; part++)
        if (is_copied(part))
            status = take_fingerprint(copy, copy->to, part, targets[part]);
    if (status == STATUS_OK)
        status = wallet_audit(copy->to,
                              &(struct audit_options){.progress = report_audit, .context = copy},
                              &audited, copy->error);
    if (status == STATUS_OK && audited.entries != copy->counts.entries)
        status = error_set(copy->error, STATUS_MALFORMED,
                           "the copy has %" PRIu64 " entries and the source %" PRIu64,
                           audited.entries, copy->counts.entries);
    for (int part = 0; part < PART_COUNT && status == STATUS_OK; part++) {
        uint8_t source[DIGEST_SIZE] = {0};
        if (!is_copied(part))
            continue;
        status = take_fingerprint(copy, from, part, source);
        if (status == STATUS_OK && memcmp(source, targets[part], sizeof source) != 0)
            status = was_written_to(copy->error, part == PART_LEDGER  ? "the ledger"
                                                 : part == PART_USAGE ? "usage"
                                                                      : table_of(part)->plural);
    }
    return status;
}

/* ---- the source stands still ----------------------------------------------------------------- */

/* Shows writes without reading everything again. */
struct source_state {
    uint64_t revision;
    uint64_t games_revision;
    uint64_t players;
    uint64_t launches;
    uint64_t entries;
};

static bool count_row(void *context, const void *record)
{
    (void)record;
    (*(uint64_t *)context)++;
    return true;
}

static enum status read_state(struct platform_store *store, struct source_state *state,
                              struct error *error)
{
    struct source_state read = {0};
    enum status status = platform_revision(store, &read.revision, error);
    if (status == STATUS_OK)
        status = platform_games_revision(store, &read.games_revision, error);
    if (status == STATUS_OK)
        status = platform_list(store, &player_table, NULL, count_row, &read.players, error);
    if (status == STATUS_OK)
        status = platform_list(store, &launch_table, NULL, count_row, &read.launches, error);
    if (status == STATUS_OK)
        status = platform_ledger_count(store, &read.entries, error);
    if (status == STATUS_OK)
        *state = read;
    return status;
}

/* Reading all of the source took a while too; the parts that were read first may be old by now. */
static enum status check_untouched(struct platform_store *from, const struct source_state *before,
                                   struct error *error)
{
    struct source_state after;
    enum status status = read_state(from, &after, error);
    if (status != STATUS_OK)
        return status;
    if (after.revision != before->revision)
        return was_written_to(error, "customers, keys, addresses or operators");
    if (after.games_revision != before->games_revision)
        return was_written_to(error, "providers or games");
    if (after.players != before->players)
        return was_written_to(error, player_table.plural);
    if (after.launches != before->launches)
        return was_written_to(error, launch_table.plural);
    if (after.entries != before->entries)
        return was_written_to(error, "entries");
    return STATUS_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status check_empty(struct platform_store *store, struct error *error)
{
    struct source_state state;
    enum status status = read_state(store, &state, error);
    if (status == STATUS_OK &&
        (state.revision > 0 || state.games_revision > 0 || state.players > 0))
        status = error_set(error, STATUS_EXISTS,
                           "the target is not empty; a copy needs a store of its own (one that "
                           "broke off is to be thrown away)");
    return status;
}

static enum status copy_all(struct copy *copy, struct platform_store *from)
{
    copy->games = memory_alloc_zeroed(GAMES_MAX, sizeof *copy->games);
    copy->set_enabled = memory_alloc_zeroed(GAMES_MAX, sizeof *copy->set_enabled);
    copy->players = memory_alloc_zeroed(ROWS_AT_ONCE, sizeof *copy->players);
    copy->launches = memory_alloc_zeroed(ROWS_AT_ONCE, sizeof *copy->launches);
    enum status status =
        copy_kinds(copy, from, before_ledger, sizeof before_ledger / sizeof before_ledger[0]);
    if (status == STATUS_OK)
        status = copy_ledger(copy, from);
    if (status == STATUS_OK)
        status = copy_usage(copy, from);
    if (status == STATUS_OK)
        status = copy_kinds(copy, from, after_ledger, sizeof after_ledger / sizeof after_ledger[0]);
    memory_free(copy->games);
    memory_free(copy->set_enabled);
    memory_free(copy->players);
    memory_free(copy->launches);
    return status;
}

enum status platform_copy(struct platform_store *from, struct platform_store *to,
                          platform_copy_progress *progress, void *context,
                          struct platform_counts *counts, struct error *error)
{
    struct copy copy = {.to = to, .progress = progress, .context = context, .error = error};
    struct source_state before = {0};
    enum status status = check_empty(to, error);
    if (status == STATUS_OK)
        platform_store_begin_copy(to);
    if (status == STATUS_OK)
        status = read_state(from, &before, error);
    if (status == STATUS_OK)
        status = copy_all(&copy, from);
    if (status == STATUS_OK)
        status = compare(&copy, from);
    if (status == STATUS_OK)
        status = check_untouched(from, &before, error);
    if (status == STATUS_OK)
        *counts = copy.counts;
    return status;
}
