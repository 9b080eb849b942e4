/* croupier wallet statement | transaction | verify | export. All of them read, beside a running
 * server; what can be long is streamed. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/memory.h"
#include "cli/progress.h"
#include "commands/commands.h"
#include "commands/platform.h"
#include "operator/wallet_audit.h"
#include "records/currency.h"
#include "stores/platform_ledger.h"

#define DAY_MS (24 * 60 * 60 * 1000LL)

/* ---- what they share ------------------------------------------------------------------------- */

static void show_progress(void *context, uint64_t done, uint64_t total)
{
    progress_show(context, done, total, "entries");
}

static void show_audit(void *context, uint64_t done, uint64_t total)
{
    if (done < total)
        progress_show(context, done, total, "entries");
    else
        progress_turn_to(context, "looking for rows without their counterpart");
}

/* Everything was written, or it counts as a failure: half an export must not look like a whole
 * one. */
static int finish(const struct command_line *line)
{
    errno = 0;
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return EXIT_DONE;
    return command_refuse(line, "could not write it all (%s)",
                          errno != 0 ? strerror(errno) : "output error");
}

/* `out` holds at least the brace of its object. */
static void append_name(struct buffer *out, const char *name)
{
    if (out->data[out->size - 1] != '{')
        buffer_append_char(out, ',');
    buffer_append_format(out, "\"%s\":", name);
}

static void append_string(struct buffer *out, const char *name, const char *value)
{
    append_name(out, name);
    if (value[0] == '\0')
        buffer_append_string(out, "null");
    else
        buffer_append_json_string(out, text_of(value));
}

static void append_number(struct buffer *out, const char *name, int64_t value)
{
    append_name(out, name);
    buffer_append_format(out, "%" PRId64, value);
}

static void append_hash(struct buffer *out, const char *name, const uint8_t *hash)
{
    append_name(out, name);
    buffer_append_char(out, '"');
    for (size_t i = 0; i < LEDGER_HASH_SIZE; i++)
        buffer_append_format(out, "%02x", hash[i]);
    buffer_append_char(out, '"');
}

static void append_transaction(struct buffer *out, const struct ledger_transaction *transaction)
{
    char created_at[CLOCK_TEXT_SIZE];
    clock_format_rfc3339(transaction->created_ms, created_at);
    append_string(out, "customer", transaction->customer_id);
    append_string(out, "player_id", transaction->player_id);
    append_string(out, "transaction_id", transaction->transaction_id);
    append_string(out, "operation", ledger_operation_name(transaction->operation));
    append_string(out, "outcome", ledger_outcome_name(transaction->outcome));
    append_number(out, "amount_minor", transaction->amount_minor);
    append_string(out, "currency", transaction->currency);
    append_number(out, "currency_exponent", transaction->currency_exponent);
    append_string(out, "reference_transaction_id", transaction->reference);
    append_string(out, "game_id", transaction->game_id);
    append_string(out, "round_id", transaction->round_id);
    append_string(out, "created_at", created_at);
    if (!ledger_is_entry(transaction))
        return;
    append_number(out, "sequence", (int64_t)transaction->sequence);
    append_number(out, "movement_minor", transaction->movement_minor);
    append_number(out, "balance_minor", transaction->balance_minor);
    append_hash(out, "hash", transaction->hash);
}

/* ---- statement ------------------------------------------------------------------------------- */

struct statement {
    bool json;
    uint64_t from, to;
    uint64_t shown;
    int64_t opening_minor, closing_minor;
    const struct ledger_account *account;
    struct buffer line;
};

static void begin_statement(struct statement *statement)
{
    const struct player_record *player = &statement->account->player;
    struct buffer *out = &statement->line;
    char amount[CURRENCY_AMOUNT_SIZE];
    buffer_clear(out);
    if (statement->json) {
        buffer_append_char(out, '{');
        append_string(out, "player_id", player->id);
        append_string(out, "customer", player->customer_id);
        append_string(out, "player_reference", player->reference);
        append_string(out, "currency", player->currency);
        append_number(out, "currency_exponent", player->currency_exponent);
        append_number(out, "opening_balance_minor", statement->opening_minor);
        buffer_append_string(out, ",\"entries\":[");
    } else {
        currency_format(statement->opening_minor, player->currency_exponent, amount);
        buffer_append_format(
            out,
            "%s (%s of %s), %s\n\n%8s  %-24s  %-8s  %16s  %16s  %s\n%8s  %-24s  %-8s  %16s  %16s\n",
            player->id, player->reference, player->customer_id, player->currency, "SEQUENCE",
            "TIME", "WHAT", "MOVEMENT", "BALANCE", "TRANSACTION", "", "", "opening", "", amount);
    }
    (void)fwrite(out->data, 1, out->size, stdout);
}

static void show_entry(struct statement *statement, const struct ledger_transaction *entry)
{
    struct buffer *out = &statement->line;
    char created_at[CLOCK_TEXT_SIZE];
    char movement[CURRENCY_AMOUNT_SIZE];
    char balance[CURRENCY_AMOUNT_SIZE];
    buffer_clear(out);
    if (statement->json) {
        buffer_append_string(out, statement->shown == 0 ? "\n{" : ",\n{");
        append_transaction(out, entry);
        buffer_append_char(out, '}');
    } else {
        clock_format_rfc3339(entry->created_ms, created_at);
        currency_format(entry->movement_minor, entry->currency_exponent, movement);
        currency_format(entry->balance_minor, entry->currency_exponent, balance);
        buffer_append_format(out, "%8" PRIu64 "  %-24s  %-8s  %16s  %16s  %s%s%s\n",
                             entry->sequence, created_at, ledger_operation_name(entry->operation),
                             movement, balance, entry->transaction_id,
                             entry->reference[0] != '\0' ? " of " : "", entry->reference);
    }
    (void)fwrite(out->data, 1, out->size, stdout);
}

static bool state_entry(void *context, const struct ledger_transaction *entry,
                        const struct ledger_account *account)
{
    struct statement *statement = context;
    (void)account;
    if (entry->sequence > statement->to)
        return false;
    if (entry->sequence < statement->from) {
        statement->opening_minor = statement->closing_minor = entry->balance_minor;
        return true;
    }
    if (statement->shown == 0)
        begin_statement(statement);
    show_entry(statement, entry);
    statement->shown++;
    statement->closing_minor = entry->balance_minor;
    return ferror(stdout) == 0;
}

static void end_statement(struct statement *statement)
{
    char amount[CURRENCY_AMOUNT_SIZE];
    if (statement->shown == 0)
        begin_statement(statement);
    currency_format(statement->closing_minor, statement->account->player.currency_exponent, amount);
    if (statement->json)
        (void)printf("],\"closing_balance_minor\":%" PRId64 "}\n", statement->closing_minor);
    else
        (void)printf("%8s  %-24s  %-8s  %16s  %16s\n", "", "", "closing", "", amount);
}

static bool read_sequence(const struct command_line *line, const char *option, uint64_t *sequence)
{
    const char *given = command_option(line, option);
    return given == NULL ||
           (text_to_u64(text_of(given), INT64_MAX, sequence) == STATUS_OK && *sequence > 0);
}

static int run_statement(const struct command_line *line)
{
    struct platform_store *store = NULL;
    struct ledger_account account;
    struct error error = {0};
    const char *player_id = command_argument(line, 0);
    struct statement statement = {
        .json = command_json(line), .from = 1, .to = INT64_MAX, .account = &account};
    if (!read_sequence(line, "from", &statement.from) || !read_sequence(line, "to", &statement.to))
        return command_usage(line, "--from and --to are sequence numbers, from 1");
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status = platform_ledger_balance(store, player_id, &account, &error);
    if (status == STATUS_OK)
        status = store->ledger->entries(store, player_id, state_entry, &statement, &error);
    platform_store_close(&store);
    if (status == STATUS_OK)
        end_statement(&statement);
    buffer_free(&statement.line);
    return status == STATUS_OK ? finish(line) : command_refuse(line, "%s", error.text);
}

/* ---- transaction ----------------------------------------------------------------------------- */

static void show_fact_json(const struct ledger_fact *fact)
{
    struct buffer out = {0};
    buffer_append_char(&out, '{');
    if (fact->id.known) {
        append_transaction(&out, &fact->id.transaction);
    } else {
        append_string(&out, "customer", fact->customer_id);
        append_string(&out, "transaction_id", fact->transaction_id);
    }
    append_name(&out, "rolled_back");
    buffer_append_string(&out, fact->id.rolled_back ? "true" : "false");
    append_number(&out, "standing_credits", fact->id.standing_credits);
    buffer_append_string(&out, "}\n");
    (void)fwrite(out.data, 1, out.size, stdout);
    buffer_free(&out);
}

static void show_fact(const struct ledger_fact *fact)
{
    const struct ledger_transaction *transaction = &fact->id.transaction;
    char amount[CURRENCY_AMOUNT_SIZE];
    char created_at[CLOCK_TEXT_SIZE];
    if (fact->id.known) {
        currency_format(transaction->amount_minor, transaction->currency_exponent, amount);
        clock_format_rfc3339(transaction->created_ms, created_at);
        (void)printf("%s %s %s by %s: %s, %s\n", ledger_operation_name(transaction->operation),
                     amount, transaction->currency, transaction->player_id,
                     ledger_outcome_name(transaction->outcome), created_at);
        if (transaction->reference[0] != '\0')
            (void)printf("refers to %s\n", transaction->reference);
        if (transaction->game_id[0] != '\0' || transaction->round_id[0] != '\0')
            (void)printf("game %s, round %s\n",
                         transaction->game_id[0] != '\0' ? transaction->game_id : "-",
                         transaction->round_id[0] != '\0' ? transaction->round_id : "-");
        if (ledger_is_entry(transaction)) {
            currency_format(transaction->balance_minor, transaction->currency_exponent, amount);
            (void)printf("sequence %" PRIu64 ", balance %s afterwards\n", transaction->sequence,
                         amount);
        }
    }
    if (fact->id.rolled_back)
        (void)puts(fact->id.known ? "rolled back" : "never came, and was rolled back");
    if (fact->id.standing_credits > 0)
        (void)puts("settled by a standing credit");
}

static int run_transaction(const struct command_line *line)
{
    struct platform_store *store = NULL;
    struct ledger_fact fact = {0};
    struct error error = {0};
    const char *customer = command_argument(line, 0);
    const char *id = command_argument(line, 1);
    if (strlen(customer) >= sizeof fact.customer_id || strlen(id) >= sizeof fact.transaction_id)
        return command_refuse(line, "there is no such transaction");
    memcpy(fact.customer_id, customer, strlen(customer) + 1);
    memcpy(fact.transaction_id, id, strlen(id) + 1);
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status = store->ledger->id(store, &fact, &error);
    platform_store_close(&store);
    if (status != STATUS_OK)
        return command_refuse(line, "%s", error.text);
    if (!fact.id.known && !fact.id.rolled_back)
        return command_refuse(line, "there is no such transaction");
    if (command_json(line))
        show_fact_json(&fact);
    else
        show_fact(&fact);
    return finish(line);
}

/* ---- verify ---------------------------------------------------------------------------------- */

static int run_verify(const struct command_line *line)
{
    struct platform_store *store = NULL;
    struct progress progress = {0};
    struct audit_result result = {0};
    struct error error = {0};
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status = wallet_audit(store, show_audit, &progress, &result, &error);
    platform_store_close(&store);
    progress_end(&progress);
    if (status != STATUS_OK)
        return command_refuse(line, "%s", error.text);
    if (command_json(line))
        (void)printf("{\"sound\":true,\"entries\":%" PRIu64 ",\"players\":%" PRIu64 "}\n",
                     result.entries, result.players);
    else
        (void)printf("The ledger is sound: %" PRIu64 " entries of %" PRIu64
                     " players. The store itself was checked by %s.\n",
                     result.entries, result.players, result.how);
    return finish(line);
}

/* ---- export ---------------------------------------------------------------------------------- */

struct export_total {
    char customer_id[CUSTOMER_ID_SIZE];
    char currency[CURRENCY_SIZE];
    uint64_t entries;
    int64_t movement_minor; /* at most what clearing accounts may hold */
};

struct export
{
    uint64_t total, written;
    struct export_total *totals;
    size_t total_count;
    EVP_MD_CTX *digest; /* of the hashes of all that was written, in order */
    struct progress progress;
    struct buffer line;
};

static struct export_total *total_of(struct export *export, const struct ledger_transaction *entry)
{
    for (size_t i = export->total_count; i-- > 0;)
        if (strcmp(export->totals[i].customer_id, entry->customer_id) == 0 &&
            strcmp(export->totals[i].currency, entry->currency) == 0)
            return &export->totals[i];
    export->totals =
        memory_resize(export->totals, (export->total_count + 1) * sizeof export->totals[0]);
    struct export_total *total = &export->totals[export->total_count++];
    *total = (struct export_total){0};
    memcpy(total->customer_id, entry->customer_id, sizeof total->customer_id);
    memcpy(total->currency, entry->currency, sizeof total->currency);
    return total;
}

static bool export_entry(void *context, const struct ledger_transaction *entry)
{
    struct export *export = context;
    struct buffer *out = &export->line;
    buffer_clear(out);
    buffer_append_char(out, '{');
    append_transaction(out, entry);
    buffer_append_string(out, "}\n");
    (void)fwrite(out->data, 1, out->size, stdout);
    CHECK(EVP_DigestUpdate(export->digest, entry->hash, sizeof entry->hash) == 1);
    struct export_total *total = total_of(export, entry);
    total->entries++;
    total->movement_minor += entry->movement_minor;
    if (++export->written % 10000 == 0)
        show_progress(&export->progress, export->written, export->total);
    return ferror(stdout) == 0;
}

static bool export_any(void *context, const struct ledger_transaction *entry,
                       const struct ledger_account *account)
{
    (void)account;
    return export_entry(context, entry);
}

/* The last line: what the lines before it come to. */
static void write_totals(struct export *export, const char *day)
{
    struct buffer *out = &export->line;
    uint8_t head[LEDGER_HASH_SIZE];
    CHECK(EVP_DigestFinal_ex(export->digest, head, NULL) == 1);
    buffer_clear(out);
    buffer_append_char(out, '{');
    append_string(out, "day", day);
    append_number(out, "entries", (int64_t) export->written);
    append_hash(out, "head", head);
    append_name(out, "totals");
    buffer_append_char(out, '[');
    for (size_t i = 0; i < export->total_count; i++) {
        const struct export_total *total = &export->totals[i];
        buffer_append_string(out, i == 0 ? "{" : ",{");
        append_string(out, "customer", total->customer_id);
        append_string(out, "currency", total->currency);
        append_number(out, "entries", (int64_t)total->entries);
        append_number(out, "movement_minor", total->movement_minor);
        buffer_append_char(out, '}');
    }
    buffer_append_string(out, "]}\n");
    (void)fwrite(out->data, 1, out->size, stdout);
}

static int run_export(const struct command_line *line)
{
    struct platform_store *store = NULL;
    struct error error = {0};
    struct export export = {0};
    const char *day = command_option(line, "day");
    int64_t from_ms = 0;
    if (day != NULL &&
        (strlen(day) != 10 || clock_parse_rfc3339(text_of(day), &from_ms) != STATUS_OK))
        return command_usage(line, "--day is a date, as 2026-11-21");
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    export.digest = EVP_MD_CTX_new();
    CHECK(export.digest != NULL && EVP_DigestInit_ex(export.digest, EVP_sha256(), NULL) == 1);
    enum status status = STATUS_OK;
    if (day != NULL)
        status =
            store->ledger->entered(store, from_ms, from_ms + DAY_MS, export_entry, &export, &error);
    else if ((status = store->ledger->count(store, &export.total, &error)) == STATUS_OK)
        status = store->ledger->entries(store, NULL, export_any, &export, &error);
    platform_store_close(&store);
    progress_end(&export.progress);
    if (status == STATUS_OK)
        write_totals(&export, day == NULL ? "" : day);
    EVP_MD_CTX_free(export.digest);
    memory_free(export.totals);
    buffer_free(&export.line);
    return status == STATUS_OK ? finish(line) : command_refuse(line, "%s", error.text);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct command_option statement_options[] = {
    {"from", "SEQUENCE", "begin with this entry", false},
    {"to", "SEQUENCE", "end with this entry", false},
    {0},
};

static const struct command_option export_options[] = {
    {"day", "DATE", "only what was entered on this day (UTC)", false},
    {0},
};

const struct command wallet_commands[] = {
    {
        .name = "statement",
        .arguments = "PLAYER",
        .least = 1,
        .most = 1,
        .summary = "a player's entries, with opening and closing balance",
        .details =
            "Entries by sequence, as they were made. Amounts are shown in the currency; with "
            "--json they are in its minor unit.",
        .examples = "  croupier wallet statement ply_9tHpZcX2kQvL0aBd\n"
                    "  croupier wallet statement ply_9tHpZcX2kQvL0aBd --from 100 --to 199 --json\n",
        .options = statement_options,
        .run = run_statement,
    },
    {
        .name = "transaction",
        .arguments = "CUSTOMER ID",
        .least = 2,
        .most = 2,
        .summary = "what became of a customer's transaction id",
        .details = "Applied, voided or declined; whether it was rolled back since; whether a "
                   "credit stands on it.",
        .examples = "  croupier wallet transaction cus_6Jc0vQ2mT4xZ8rYb bet-1001\n",
        .run = run_transaction,
    },
    {
        .name = "verify",
        .arguments = "",
        .summary = "prove that the ledger is whole",
        .details =
            "The store is sound in itself, sequences have no gap, balances follow and are never "
            "negative, entries and kept declines are chained, accounts equal their entries, every "
            "row has its counterparts, and no money comes from nowhere. Names the first break and "
            "exits with 1. Reads one snapshot, beside a running server.",
        .examples = "  croupier wallet verify && echo sound\n",
        .run = run_verify,
    },
    {
        .name = "export",
        .arguments = "",
        .summary = "entries as JSON, one a line, with totals at the end",
        .details =
            "By player and sequence; of a day, as they were made. The last line has the "
            "totals by customer and currency, and `head`, the SHA-256 of all entries' hashes "
            "in this order.",
        .examples = "  croupier wallet export --day 2026-11-21 >2026-11-21.ndjson\n"
                    "  croupier wallet export | gzip >ledger.ndjson.gz\n",
        .options = export_options,
        .run = run_export,
    },
    {0},
};
