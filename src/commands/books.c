/* croupier wallet export | report: the ledger's entries, and their sums. Both read beside a running
 * server, in bounded memory, and print as they go. */
#include <string.h>

#include <openssl/evp.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/progress.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/platform.h"
#include "commands/wallet_output.h"
#include "operator/documents.h"
#include "records/records.h"
#include "stores/platform_ledger.h"

#define PRINT_AT_ONCE 65536 /* bytes */
#define PROGRESS_STEP 10000

/* ---- options of both ------------------------------------------------------------------------ */

/* A document of which most is printed before it is whole. */
struct printed {
    struct document document;
    struct progress progress;
    uint64_t entries;          /* that there are; 0: not known */
    struct ledger_sum *totals; /* in the order of the lines */
    size_t total_count;
    bool overflowed; /* a total did */
};

static bool print_some(struct printed *printed)
{
    if (printed->document.text.size >= PRINT_AT_ONCE)
        wallet_flush(&printed->document.text);
    return ferror(stdout) == 0;
}

/* Adds the line to the total of its currency and, where that counts, of its customer. */
static bool add_to_total(struct printed *printed, const struct ledger_sum *line, bool by_customer)
{
    struct ledger_sum *total = NULL;
    for (size_t i = printed->total_count; i-- > 0 && total == NULL;)
        if (strcmp(printed->totals[i].currency, line->currency) == 0 &&
            (!by_customer || strcmp(printed->totals[i].customer_id, line->customer_id) == 0))
            total = &printed->totals[i];
    if (total == NULL) {
        printed->totals =
            memory_resize(printed->totals, (printed->total_count + 1) * sizeof printed->totals[0]);
        total = &printed->totals[printed->total_count++];
        *total = (struct ledger_sum){.currency_exponent = line->currency_exponent};
        memcpy(total->currency, line->currency, sizeof total->currency);
        if (by_customer)
            memcpy(total->customer_id, line->customer_id, sizeof total->customer_id);
    }
    printed->overflowed = !ledger_sum_add(total, line);
    return !printed->overflowed;
}

/* Is there a record of this id, where one was given? Else says so. */
static bool is_there(const struct command_line *line, struct platform_store *store,
                     const struct record_table *table, const char *id)
{
    struct error error = {0};
    if (id == NULL)
        return true;
    void *record = memory_alloc_zeroed(1, table->size);
    enum status status = platform_get(store, table, id, record, &error);
    memory_free(record);
    if (status != STATUS_OK)
        (void)command_refuse(line, "%s", error.text);
    return status == STATUS_OK;
}

/* The part of the ledger to read. */
struct asked {
    struct ledger_scope scope;
    bool of_all_times; /* entries are then in the order of players */
    struct ledger_grouping grouping;
    ledger_transaction_visitor *entry; /* NULL: only sums are read */
    ledger_sum_visitor *sum;
    struct printed *printed; /* and the context of both */
};

/* The owner and the day. False: refused with a message, and `exit_code` is set. */
static bool read_options(const struct command_line *line, struct asked *asked, int64_t *day,
                         int *exit_code)
{
    const char *given = command_option(line, "day");
    if (given != NULL && clock_parse_day(text_of(given), day) != STATUS_OK) {
        *exit_code = command_usage(line, "--day is a date, as 2026-11-21");
        return false;
    }
    asked->scope.customer_id = command_option(line, "customer");
    asked->scope.provider_id = command_option(line, "provider");
    asked->scope.from_ms = asked->of_all_times ? 0 : *day * CLOCK_DAY_MS;
    asked->scope.to_ms = asked->of_all_times ? INT64_MAX : asked->scope.from_ms + CLOCK_DAY_MS;
    return true;
}

/* All from one snapshot. */
static enum status read_ledger(struct platform_store *store, const struct asked *asked,
                               struct error *error)
{
    const struct ledger_whose whose = {.customer_id = asked->scope.customer_id,
                                       .provider_id = asked->scope.provider_id};
    enum status status = store->ledger->snapshot_begin(store, error);
    if (status != STATUS_OK)
        return status;
    if (asked->of_all_times && asked->scope.customer_id == NULL)
        status = platform_ledger_count(store, &asked->printed->entries, error);
    if (status == STATUS_OK && asked->entry != NULL)
        status = asked->of_all_times
                     ? platform_ledger_entries(store, whose, asked->entry, asked->printed, error)
                     : platform_ledger_entered(store, &asked->scope, asked->entry, asked->printed,
                                               error);
    if (status == STATUS_OK && ferror(stdout) == 0)
        status = platform_ledger_sums(store, &asked->scope, asked->grouping, asked->sum,
                                      asked->printed, error);
    store->ledger->snapshot_end(store);
    return status;
}

/* Opens the store, looks whether what was asked for is there, and reads. */
static bool read_books(const struct command_line *line, const struct asked *asked)
{
    struct platform_store *store = NULL;
    struct error error = {0};
    bool done = false;
    if (command_open_platform(line, false, &store) &&
        is_there(line, store, &customer_table, asked->scope.customer_id) &&
        is_there(line, store, &provider_table, asked->scope.provider_id)) {
        enum status status = read_ledger(store, asked, &error);
        if (status == STATUS_OK && asked->printed->overflowed)
            status = error_set(&error, STATUS_MALFORMED,
                               "a total is beyond what can be shown; ask for less at once");
        done = status == STATUS_OK;
        progress_end(&asked->printed->progress);
        if (!done)
            (void)command_refuse(line, "%s", error.text);
    }
    platform_store_close(&store);
    return done;
}

/* The exit code, after the output or a failure. */
static int end_books(const struct command_line *line, struct printed *printed, bool done)
{
    memory_free(printed->totals);
    document_free(&printed->document);
    return done ? wallet_finish(line) : EXIT_REFUSED;
}

/* ---- export ---------------------------------------------------------------------------------- */

struct export
{
    struct printed printed; /* first: it is the context of what is read */
    bool lines;             /* JSON a line, not one document */
    bool rounds;            /* are written */
    bool entries_ended;     /* the array of the document has */
    uint64_t written;
    EVP_MD_CTX *digest; /* of the hashes of all that was written, in order */
};

/* The next object: a value of the document's array, or a line of its own. */
static struct json_writer *begin_row(struct export *export)
{
    struct document *document = &export->printed.document;
    if (export->lines)
        document->json = (struct json_writer){.out = &document->text};
    else
        json_space(&document->json, "\n");
    json_object(&document->json, NULL);
    return &document->json;
}

static bool end_row(struct export *export)
{
    struct document *document = &export->printed.document;
    json_end(&document->json);
    if (export->lines)
        buffer_append_char(&document->text, '\n');
    return print_some(&export->printed);
}

static bool export_entry(void *context, const struct ledger_transaction *entry)
{
    struct export *export = context;
    CHECK(EVP_DigestUpdate(export->digest, entry->hash, sizeof entry->hash) == 1);
    if (++export->written % PROGRESS_STEP == 0)
        progress_show(&export->printed.progress, export->written, export->printed.entries,
                      "entries");
    wallet_write_transaction(begin_row(export), entry);
    return end_row(export);
}

static void end_entries(struct export *export)
{
    struct json_writer *json = &export->printed.document.json;
    if (export->entries_ended || export->lines)
        return;
    json_end(json);
    if (export->rounds)
        json_array(json, "rounds");
    export->entries_ended = true;
}

static void write_round(struct export *export, const struct ledger_sum *line)
{
    struct json_writer *json = begin_row(export);
    if (export->lines)
        json_object(json, "round");
    fields_write(ledger_play_fields, line, json);
    if (export->lines)
        json_end(json);
}

/* A round or, without --rounds, a total. Movements without a round are in the totals alone. */
static bool export_line(void *context, const struct ledger_sum *line)
{
    struct export *export = context;
    end_entries(export);
    if (!add_to_total(&export->printed, line, true))
        return false;
    if (line->round_id[0] == '\0')
        return true;
    write_round(export, line);
    return end_row(export);
}

static void write_total(struct json_writer *json, const struct ledger_sum *total)
{
    json_object(json, NULL);
    json_string(json, "customer", total->customer_id);
    json_string(json, "currency", total->currency);
    json_integer(json, "currency_exponent", total->currency_exponent);
    json_unsigned(json, "entries", ledger_sum_entries(total));
    json_integer(json, "movement_minor", ledger_sum_movement_minor(total));
    json_array(json, "operations");
    const int64_t movements_minor[LEDGER_OPERATION_COUNT] = {[LEDGER_DEBIT] = -total->debits_minor,
                                                             [LEDGER_CREDIT] = total->credits_minor,
                                                             [LEDGER_ROLLBACK] =
                                                                 ledger_sum_rollbacks_minor(total)};
    for (int i = 0; i < LEDGER_OPERATION_COUNT; i++) {
        json_object(json, NULL);
        json_string(json, "operation", ledger_operation_name((enum ledger_operation)i));
        json_unsigned(json, "entries", total->entries[i]);
        json_integer(json, "movement_minor", movements_minor[i]);
        json_end(json);
    }
    json_end(json);
    json_end(json);
}

static void write_scope(struct json_writer *json, const struct command_line *line)
{
    json_string_or_null(json, "day", command_option(line, "day"));
    json_string_or_null(json, "customer", command_option(line, "customer"));
    json_string_or_null(json, "provider", command_option(line, "provider"));
}

static void begin_export(struct export *export, const struct command_line *line)
{
    if (export->lines)
        return;
    struct json_writer *json = document_object(&export->printed.document, JSON_COMPACT);
    write_scope(json, line);
    json_array(json, "entries");
}

/* The last line, or the last members: the sums of all entries before. */
static void end_export(struct export *export, const struct command_line *line)
{
    struct document *document = &export->printed.document;
    uint8_t head[LEDGER_HASH_SIZE];
    CHECK(EVP_DigestFinal_ex(export->digest, head, NULL) == 1);
    if (export->lines) {
        document->json = (struct json_writer){.out = &document->text};
        json_object(&document->json, NULL);
        write_scope(&document->json, line);
    } else {
        end_entries(export);
        if (export->rounds)
            json_end(&document->json);
    }
    struct json_writer *json = &document->json;
    json_unsigned(json, export->lines ? "entries" : "entry_count", export->written);
    json_hex(json, "head", head, sizeof head);
    json_array(json, "totals");
    for (size_t i = 0; i < export->printed.total_count; i++)
        write_total(json, &export->printed.totals[i]);
    document_print(document);
}

int run_export(const struct command_line *line)
{
    struct export export = {.rounds = command_option(line, "rounds") != NULL,
                            .lines = !command_json(line)};
    struct asked asked = {.of_all_times = command_option(line, "day") == NULL,
                          .grouping = {.by_game = export.rounds, .by_round = export.rounds},
                          .entry = export_entry,
                          .sum = export_line,
                          .printed = &export.printed};
    int64_t day = 0;
    int exit_code = EXIT_REFUSED;
    if (command_json(line) && command_option(line, "ndjson") != NULL)
        return command_usage(line, "--json is one document, --ndjson a line for each entry: not "
                                   "both at once");
    if (!read_options(line, &asked, &day, &exit_code))
        return exit_code;
    export.digest = EVP_MD_CTX_new();
    CHECK(export.digest != NULL && EVP_DigestInit_ex(export.digest, EVP_sha256(), NULL) == 1);
    begin_export(&export, line);
    bool done = read_books(line, &asked);
    if (done)
        end_export(&export, line);
    else if (export.written > 0)
        wallet_flush(&export.printed.document.text);
    EVP_MD_CTX_free(export.digest);
    return end_books(line, &export.printed, done);
}

const struct command_option export_options[] = {
    {"day", "DATE", "only what was entered on this day (UTC)", false},
    {"customer", "CUSTOMER", "only this customer's", false},
    {"provider", "PROVIDER", "only what is of this provider's games", false},
    {"rounds", NULL, "what each round comes to as well, before the totals", false},
    {"ndjson", NULL, "a line of JSON for each entry; as without it", false},
    {0},
};

/* ---- report ---------------------------------------------------------------------------------- */

struct report {
    struct printed printed; /* first: it is the context of what is read */
    bool is_json;
};

static void begin_report(struct report *report, int64_t day)
{
    char date[CLOCK_DAY_SIZE];
    clock_format_day(day, date);
    if (report->is_json) {
        struct json_writer *json = document_object(&report->printed.document, JSON_COMPACT);
        json_string(json, "day", date);
        json_array(json, "lines");
        return;
    }
    (void)document_begin(&report->printed.document, JSON_COMPACT);
    buffer_append_format(&report->printed.document.text, "%s (UTC)\n\n", date);
    fields_append_row(ledger_play_fields, NULL, &report->printed.document.text);
}

static bool report_line(void *context, const struct ledger_sum *line)
{
    struct report *report = context;
    struct json_writer *json = &report->printed.document.json;
    if (!add_to_total(&report->printed, line, false))
        return false;
    if (report->is_json) {
        json_space(json, "\n");
        fields_write_object(ledger_play_fields, line, json);
    } else {
        fields_append_row(ledger_play_fields, line, json->out);
    }
    return print_some(&report->printed);
}

static void end_report(struct report *report)
{
    struct json_writer *json = &report->printed.document.json;
    if (report->is_json) {
        json_end(json);
        json_array(json, "totals");
    }
    for (size_t i = 0; i < report->printed.total_count; i++) {
        const struct ledger_sum *total = &report->printed.totals[i];
        if (report->is_json)
            fields_write_object(&ledger_play_fields[LEDGER_PLAY_AT], total, json);
        else
            fields_append_row(ledger_play_fields, total, json->out);
    }
    if (report->is_json)
        document_print(&report->printed.document);
    else
        wallet_flush(json->out);
}

int run_report(const struct command_line *line)
{
    struct report report = {.is_json = command_json(line)};
    struct asked asked = {
        .grouping = {.by_game = true}, .sum = report_line, .printed = &report.printed};
    int64_t day = clock_day(clock_wall_ms());
    int exit_code = EXIT_REFUSED;
    if (!read_options(line, &asked, &day, &exit_code))
        return exit_code;
    begin_report(&report, day);
    bool done = read_books(line, &asked);
    if (done)
        end_report(&report);
    return end_books(line, &report.printed, done);
}

const struct command_option report_options[] = {
    {"day", "DATE", "of this day (UTC); else of today, as far as it has come", false},
    {"customer", "CUSTOMER", "only this customer's", false},
    {"provider", "PROVIDER", "only this provider's games", false},
    {0},
};
