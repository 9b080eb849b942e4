/* croupier wallet statement | transaction | verify | export. All of them read, beside a running
 * server; what can be long is streamed. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/document.h"
#include "cli/progress.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/platform.h"
#include "operator/audit_relay.h"
#include "operator/wallet_audit.h"
#include "records/currency.h"
#include "stores/platform_ledger.h"

#define DAY_MS (24 * 60 * 60 * 1000LL)
#define DAYS_MAX 36500
#define EXPORT_AT_ONCE 65536 /* bytes */

/* ---- what they share ------------------------------------------------------------------------- */

static void show_progress(void *context, uint64_t done, uint64_t total)
{
    progress_show(context, done, total, "entries");
}

static void show_audit(void *context, uint64_t done, uint64_t total)
{
    if (done == 0 && total > 0)
        progress_say(context, "checking the store itself");
    else if (done < total)
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

static void write_transaction(struct json_writer *json,
                              const struct ledger_transaction *transaction)
{
    json_string(json, "customer", transaction->customer_id);
    json_string(json, "player_id", transaction->player_id);
    json_string(json, "transaction_id", transaction->transaction_id);
    json_string(json, "operation", ledger_operation_name(transaction->operation));
    json_string(json, "outcome", ledger_outcome_name(transaction->outcome));
    json_integer(json, "amount_minor", transaction->amount_minor);
    json_string_or_null(json, "currency", transaction->currency);
    json_integer(json, "currency_exponent", transaction->currency_exponent);
    json_string_or_null(json, "reference_transaction_id", transaction->reference);
    json_string_or_null(json, "game_id", transaction->game_id);
    json_string_or_null(json, "round_id", transaction->round_id);
    json_time(json, "created_at", transaction->created_ms);
    if (!ledger_is_entry(transaction))
        return;
    json_unsigned(json, "sequence", transaction->sequence);
    json_integer(json, "movement_minor", transaction->movement_minor);
    json_integer(json, "balance_minor", transaction->balance_minor);
    json_hex(json, "hash", transaction->hash, LEDGER_HASH_SIZE);
}

/* Prints what is written so far, of a document that may be long. */
static void flush(struct buffer *text)
{
    (void)fwrite(text->data, 1, text->size, stdout);
    buffer_clear(text);
}

/* ---- statement ------------------------------------------------------------------------------- */

struct statement {
    bool is_json;
    uint64_t from, to;
    uint64_t shown;
    int64_t opening_minor, closing_minor;
    const struct ledger_account *account;
    struct document document; /* its text is printed as it grows, also where it is no JSON */
};

/* "{"opening_balance_minor": …, "entries": [", or the lines above the entries. */
static void begin_statement(struct statement *statement)
{
    const struct player_record *player = &statement->account->player;
    struct json_writer *json = document_begin(&statement->document, JSON_COMPACT);
    char amount[CURRENCY_AMOUNT_SIZE];
    if (statement->is_json) {
        json_object(json, NULL);
        json_string(json, "player_id", player->id);
        json_string(json, "customer", player->customer_id);
        json_string(json, "player_reference", player->reference);
        json_string(json, "currency", player->currency);
        json_integer(json, "currency_exponent", player->currency_exponent);
        json_integer(json, "opening_balance_minor", statement->opening_minor);
        json_array(json, "entries");
    } else {
        currency_format(statement->opening_minor, player->currency_exponent, amount);
        buffer_append_format(
            json->out,
            "%s (%s of %s), %s\n\n%8s  %-24s  %-8s  %16s  %16s  %s\n%8s  %-24s  %-8s  %16s  %16s\n",
            player->id, player->reference, player->customer_id, player->currency, "SEQUENCE",
            "TIME", "WHAT", "MOVEMENT", "BALANCE", "TRANSACTION", "", "", "opening", "", amount);
    }
    flush(json->out);
}

static void show_entry(struct statement *statement, const struct ledger_transaction *entry)
{
    struct json_writer *json = &statement->document.json;
    char created_at[CLOCK_TEXT_SIZE];
    char movement[CURRENCY_AMOUNT_SIZE];
    char balance[CURRENCY_AMOUNT_SIZE];
    if (statement->is_json) {
        json_space(json, "\n");
        json_object(json, NULL);
        write_transaction(json, entry);
        json_end(json);
    } else {
        clock_format_rfc3339(entry->created_ms, created_at);
        currency_format(entry->movement_minor, entry->currency_exponent, movement);
        currency_format(entry->balance_minor, entry->currency_exponent, balance);
        buffer_append_format(json->out, "%8" PRIu64 "  %-24s  %-8s  %16s  %16s  %s%s%s\n",
                             entry->sequence, created_at, ledger_operation_name(entry->operation),
                             movement, balance, entry->transaction_id,
                             entry->reference[0] != '\0' ? " of " : "", entry->reference);
    }
    flush(json->out);
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
    struct json_writer *json = &statement->document.json;
    char amount[CURRENCY_AMOUNT_SIZE];
    if (statement->shown == 0)
        begin_statement(statement);
    currency_format(statement->closing_minor, statement->account->player.currency_exponent, amount);
    if (!statement->is_json) {
        (void)printf("%8s  %-24s  %-8s  %16s  %16s\n", "", "", "closing", "", amount);
        return;
    }
    json_end(json);
    json_integer(json, "closing_balance_minor", statement->closing_minor);
    document_print(&statement->document);
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
        .is_json = command_json(line), .from = 1, .to = INT64_MAX, .account = &account};
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
    document_free(&statement.document);
    return status == STATUS_OK ? finish(line) : command_refuse(line, "%s", error.text);
}

/* ---- transaction ----------------------------------------------------------------------------- */

static void show_fact_json(const struct ledger_fact *fact)
{
    struct document document;
    struct json_writer *json = document_object(&document, JSON_COMPACT);
    if (fact->id.known) {
        write_transaction(json, &fact->id.transaction);
    } else {
        json_string(json, "customer", fact->customer_id);
        json_string(json, "transaction_id", fact->transaction_id);
    }
    json_bool(json, "rolled_back", fact->id.rolled_back);
    json_integer(json, "standing_credits", fact->id.standing_credits);
    document_print(&document);
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

static void print_sound_json(const struct audit_options *options, const struct audit_result *result)
{
    struct document document;
    struct json_writer *json = document_object(&document, JSON_COMPACT);
    json_bool(json, "sound", true);
    json_unsigned(json, "entries", result->entries);
    json_unsigned(json, "players", result->players);
    if (options->recent) {
        json_time(json, "since", options->since_ms);
        json_unsigned(json, "entries_since", result->hashed);
    }
    document_print(&document);
}

static void print_sound(const struct audit_options *options, const struct audit_result *result)
{
    char since[CLOCK_TEXT_SIZE];
    if (!options->recent) {
        (void)printf("The ledger is sound: %" PRIu64 " entries of %" PRIu64
                     " players. The store itself was checked by %s.\n",
                     result->entries, result->players, result->how);
        return;
    }
    clock_format_rfc3339(options->since_ms, since);
    (void)printf("Sound: %" PRIu64 " entries since %s, with their hashes; sequences, movements and "
                 "balances of all %" PRIu64 " entries, and the accounts of %" PRIu64
                 " players.\nNot checked: hashes of older entries, rows without their counterpart, "
                 "and the store itself. For these: croupier wallet verify\n",
                 result->hashed, since, result->entries, result->players);
}

/* A day, or how many days before this one. */
static bool read_since(const char *given, int64_t *since_ms)
{
    int64_t now_ms = clock_wall_ms();
    uint64_t days = 0;
    if (strlen(given) == 10 && clock_parse_rfc3339(text_of(given), since_ms) == STATUS_OK)
        return *since_ms <= now_ms;
    if (text_to_u64(text_of(given), DAYS_MAX, &days) != STATUS_OK)
        return false;
    *since_ms = now_ms - now_ms % DAY_MS - (int64_t)days * DAY_MS;
    return true;
}

static int run_verify(const struct command_line *line)
{
    struct platform_store *store = NULL;
    struct platform_store *beside = NULL;
    struct progress progress = {0};
    struct audit_options options = {.progress = show_audit, .context = &progress};
    struct audit_result result = {0};
    struct error error = {0};
    const char *since = command_option(line, "since");
    options.recent = since != NULL;
    if (since != NULL && !read_since(since, &options.since_ms))
        return command_usage(line, "--since is a date that has begun, as 2026-11-21, or how many "
                                   "days before today, 0 to 36500");
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    if (!options.recent && !command_open_platform(line, false, &beside)) {
        platform_store_close(&store);
        return EXIT_REFUSED;
    }
    options.beside = beside;
    enum status status = wallet_audit(store, &options, &result, &error);
    platform_store_close(&beside);
    platform_store_close(&store);
    progress_end(&progress);
    if (status != STATUS_OK)
        return command_refuse(line, "%s", error.text);
    if (command_json(line))
        print_sound_json(&options, &result);
    else
        print_sound(&options, &result);
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
    uint64_t total, read;
    struct progress progress;
    struct relay *relay;
    /* The relay's thread's, which writes: */
    uint64_t written;
    struct export_total *totals;
    size_t total_count;
    EVP_MD_CTX *digest; /* of the hashes of all that was written, in order */
    struct buffer lines;
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

/* On the relay's thread. Lines are written some hundred at a time. */
static bool write_entry(void *context, const struct ledger_transaction *entry)
{
    struct export *export = context;
    struct json_writer json = {.out = &export->lines};
    json_object(&json, NULL);
    write_transaction(&json, entry);
    json_end(&json);
    buffer_append_char(json.out, '\n');
    if (json.out->size >= EXPORT_AT_ONCE)
        flush(json.out);
    CHECK(EVP_DigestUpdate(export->digest, entry->hash, sizeof entry->hash) == 1);
    struct export_total *total = total_of(export, entry);
    total->entries++;
    total->movement_minor += entry->movement_minor;
    export->written++;
    return ferror(stdout) == 0;
}

static bool export_entry(void *context, const struct ledger_transaction *entry)
{
    struct export *export = context;
    if (++export->read % 10000 == 0)
        show_progress(&export->progress, export->read, export->total);
    return relay_put(export->relay, entry);
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
    struct document document;
    uint8_t head[LEDGER_HASH_SIZE];
    CHECK(EVP_DigestFinal_ex(export->digest, head, NULL) == 1);
    struct json_writer *json = document_object(&document, JSON_COMPACT);
    json_string_or_null(json, "day", day);
    json_unsigned(json, "entries", export->written);
    json_hex(json, "head", head, sizeof head);
    json_array(json, "totals");
    for (size_t i = 0; i < export->total_count; i++) {
        const struct export_total *total = &export->totals[i];
        json_object(json, NULL);
        json_string(json, "customer", total->customer_id);
        json_string(json, "currency", total->currency);
        json_unsigned(json, "entries", total->entries);
        json_integer(json, "movement_minor", total->movement_minor);
        json_end(json);
    }
    json_end(json);
    document_print(&document);
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
    export.relay = relay_create(write_entry, &export);
    enum status status = STATUS_OK;
    if (day != NULL)
        status =
            store->ledger->entered(store, from_ms, from_ms + DAY_MS, export_entry, &export, &error);
    else if ((status = store->ledger->count(store, &export.total, &error)) == STATUS_OK)
        status = store->ledger->entries(store, NULL, export_any, &export, &error);
    relay_destroy(&export.relay);
    platform_store_close(&store);
    progress_end(&export.progress);
    if (export.lines.size > 0)
        flush(&export.lines);
    if (status == STATUS_OK)
        write_totals(&export, day);
    EVP_MD_CTX_free(export.digest);
    memory_free(export.totals);
    buffer_free(&export.lines);
    return status == STATUS_OK ? finish(line) : command_refuse(line, "%s", error.text);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct command_option statement_options[] = {
    {"from", "SEQUENCE", "begin with this entry", false},
    {"to", "SEQUENCE", "end with this entry", false},
    {0},
};

static const struct command_option verify_options[] = {
    {"since", "DATE|DAYS",
     "hashes of entries since then (UTC; or so many days ago), for a nightly check", false},
    {0},
};

static const struct command_option export_options[] = {
    {"day", "DATE", "only what was entered on this day (UTC)", false},
    {0},
};

const struct command wallet_commands[] = {
    {"statement", "PLAYER", &help_wallet_statement, .options = statement_options,
     .run = run_statement},
    {"transaction", "CUSTOMER ID", &help_wallet_transaction, .run = run_transaction},
    {"verify", "", &help_wallet_verify, .options = verify_options, .run = run_verify},
    {"export", "", &help_wallet_export, .options = export_options, .run = run_export},
    {0},
};
