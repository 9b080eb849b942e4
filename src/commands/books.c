/* croupier wallet export | report | rounds: the ledger's entries, their sums, and rounds. All read
 * beside a running server, in bounded memory, and print as they go. */
#include "base/clock.h"
#include "base/digest.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/stores.h"
#include "commands/wallet_output.h"
#include "operator/documents.h"
#include "operator/viewer.h"
#include "records/records.h"

#define PROGRESS_STEP 10000

/* ---- options of export and report ------------------------------------------------------------ */

/* The state of an answer that is printed as it is read. */
struct printed {
    const struct command_line *line;
    uint64_t entries;      /* in all; 0: not known */
    struct buffer *totals; /* struct ledger_sum, in the order of the lines */
};

static size_t count_totals(const struct printed *printed)
{
    return printed->totals->size / sizeof(struct ledger_sum);
}

static struct ledger_sum *total_at(const struct printed *printed, size_t at)
{
    return (struct ledger_sum *)(void *)printed->totals->data + at;
}

/* Adds the line to the total of its currency, the sandbox's apart, and, where that counts, of its
 * customer. */
static void add_to_total(struct printed *printed, const struct ledger_sum *line, bool by_customer)
{
    struct ledger_sum *total = NULL;
    for (size_t i = count_totals(printed); i-- > 0 && total == NULL;)
        if (strcmp(total_at(printed, i)->currency, line->currency) == 0 &&
            total_at(printed, i)->sandbox == line->sandbox &&
            (!by_customer || strcmp(total_at(printed, i)->customer_id, line->customer_id) == 0))
            total = total_at(printed, i);
    if (total == NULL) {
        struct ledger_sum first = {.currency_exponent = line->currency_exponent,
                                   .sandbox = line->sandbox};
        memcpy(first.currency, line->currency, sizeof first.currency);
        if (by_customer)
            memcpy(first.customer_id, line->customer_id, sizeof first.customer_id);
        buffer_append(printed->totals, &first, sizeof first);
        total = total_at(printed, count_totals(printed) - 1);
    }
    ledger_sum_add(total, line);
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

/* Reads the options, opens the store, and refuses to read what is not there. */
static struct platform_store *open_books(const struct command_line *line, struct asked *asked,
                                         int64_t *day)
{
    const char *given = command_option(line, "day");
    struct ledger_scope *scope = &asked->scope;
    if (given != NULL && clock_parse_day(text_of(given), day) != STATUS_OK)
        command_usage(line, "--day is a date, as 2026-11-21");
    scope->customer_id = command_option(line, "customer");
    scope->provider_id = command_option(line, "provider");
    scope->from_ms = asked->of_all_times ? 0 : *day * CLOCK_DAY_MS;
    scope->to_ms = asked->of_all_times ? INT64_MAX : scope->from_ms + CLOCK_DAY_MS;
    asked->printed->line = line;
    asked->printed->totals = command_buffer(line);
    struct platform_store *store = command_platform(line);
    wallet_require(line, store, &customer_table, scope->customer_id);
    wallet_require(line, store, &provider_table, scope->provider_id);
    return store;
}

/* All from one snapshot. */
static enum status read_books(struct platform_store *store, const struct asked *asked)
{
    const struct command_line *line = asked->printed->line;
    struct error *error = command_error(line);
    const struct ledger_whose whose = {.customer_id = asked->scope.customer_id,
                                       .provider_id = asked->scope.provider_id};
    if (!asked->grouping.by_round)
        (void)platform_ledger_keep_sums(store, LEDGER_SUMS_WORTH_KEEPING);
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
    command_end_progress(line);
    return status;
}

/* ---- export ---------------------------------------------------------------------------------- */

struct export
{
    struct printed printed;  /* first: it is the context of what is read */
    struct json_writer json; /* of one document, or of the current line */
    bool lines;              /* JSON a line, not one document */
    bool rounds;             /* are written */
    bool entries_ended;      /* the array of the document has */
    uint64_t written;
    struct digest *digest; /* of the hashes of all that was written, in order */
};

/* The next object: a value of the document's array, or a line of its own. */
static struct json_writer *begin_row(struct export *export)
{
    if (export->lines)
        export->json = (struct json_writer){.out = export->json.out};
    else
        json_space(&export->json, "\n");
    json_object(&export->json, NULL);
    return &export->json;
}

static bool end_row(struct export *export)
{
    json_end(&export->json);
    if (export->lines)
        buffer_append_char(export->json.out, '\n');
    return command_print(export->json.out);
}

static bool export_entry(void *context, const struct ledger_transaction *entry)
{
    struct export *export = context;
    digest_add(export->digest, entry->hash, sizeof entry->hash);
    if (++export->written % PROGRESS_STEP == 0)
        progress_tell(command_watch(export->printed.line), "entries", export->written,
                      export->printed.entries);
    wallet_write_transaction(begin_row(export), entry);
    return end_row(export);
}

static void end_entries(struct export *export)
{
    struct json_writer *json = &export->json;
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
    add_to_total(&export->printed, line, true);
    if (line->round_id[0] == '\0')
        return true;
    write_round(export, line);
    return end_row(export);
}

static void write_total(struct json_writer *json, const struct ledger_sum *total)
{
    json_object(json, NULL);
    json_string(json, "customer", total->customer_id);
    fields_write(&ledger_play_fields[LEDGER_PLAY_AT], total, json);
    json_integer(json, "movement_minor", ledger_movement_minor(&total->all));
    json_array(json, "operations");
    const int64_t movements_minor[LEDGER_OPERATION_COUNT] = {
        [LEDGER_DEBIT] = -total->all.debits_minor,
        [LEDGER_CREDIT] = total->all.credits_minor,
        [LEDGER_ROLLBACK] = ledger_rollbacks_minor(&total->all)};
    for (int i = 0; i < LEDGER_OPERATION_COUNT; i++) {
        json_object(json, NULL);
        json_string(json, "operation", ledger_operation_name((enum ledger_operation)i));
        json_unsigned(json, "entries", total->all.entries[i]);
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
    export->json.out = command_buffer(line);
    if (export->lines)
        return;
    json_object(&export->json, NULL);
    write_scope(&export->json, line);
    json_array(&export->json, "entries");
}

/* The last line, or the last members: the sums of all entries before. */
static void end_export(struct export *export, const struct command_line *line,
                       const uint8_t head[DIGEST_SIZE])
{
    struct json_writer *json = &export->json;
    if (export->lines) {
        write_scope(begin_row(export), line);
    } else {
        end_entries(export);
        if (export->rounds)
            json_end(json);
    }
    json_unsigned(json, export->lines ? "entries" : "entry_count", export->written);
    json_hex(json, "head", head, DIGEST_SIZE);
    json_array(json, "totals");
    for (size_t i = 0; i < count_totals(&export->printed); i++)
        write_total(json, total_at(&export->printed, i));
    json_end_all(json);
    buffer_append_char(json->out, '\n');
}

void run_export(const struct command_line *line)
{
    struct export export = {.rounds = command_option(line, "rounds") != NULL,
                            .lines = !command_json(line)};
    struct asked asked = {.of_all_times = command_option(line, "day") == NULL,
                          .grouping = {.by_game = export.rounds, .by_round = export.rounds},
                          .entry = export_entry,
                          .sum = export_line,
                          .printed = &export.printed};
    int64_t day = 0;
    uint8_t head[DIGEST_SIZE];
    if (command_json(line) && command_option(line, "ndjson") != NULL)
        command_usage(line, "--json is one document, --ndjson a line for each entry: not both at "
                            "once");
    struct platform_store *store = open_books(line, &asked, &day);
    export.digest = digest_begin();
    begin_export(&export, line);
    enum status status = read_books(store, &asked);
    digest_end(&export.digest, head);
    if (status == STATUS_OK)
        end_export(&export, line, head);
    if (status == STATUS_OK || export.written > 0)
        (void)command_print(export.json.out);
    command_require(line, status);
}

/* ---- report ---------------------------------------------------------------------------------- */

struct report {
    struct printed printed;             /* first: it is the context of what is read */
    struct json_writer *json;           /* NULL: for people */
    char customer_id[CUSTOMER_ID_SIZE]; /* of the last line, and what its lines have: */
    bool plays, transfers;
    struct buffer *without_play; /* ids of customers, each with an LF */
};

/* Bets that name neither game nor round are transfers: the customer's operator should know. */
static void end_customer(struct report *report)
{
    if (report->transfers && !report->plays)
        buffer_append_format(report->without_play, "%s\n", report->customer_id);
    report->plays = report->transfers = false;
}

static void begin_report(struct report *report, const struct command_line *line, int64_t day)
{
    char date[CLOCK_DAY_SIZE];
    clock_format_day(day, date);
    report->json = command_object(line, JSON_COMPACT);
    if (report->json != NULL) {
        json_string(report->json, "day", date);
        json_array(report->json, "lines");
    } else {
        (void)printf("%s (UTC)\n\n", date);
    }
    (void)wallet_print_row(line, report->json, ledger_play_fields, NULL);
}

static bool report_line(void *context, const struct ledger_sum *line)
{
    struct report *report = context;
    if (strcmp(report->customer_id, line->customer_id) != 0)
        end_customer(report);
    memcpy(report->customer_id, line->customer_id, sizeof report->customer_id);
    report->plays = report->plays || ledger_entries(&line->play) > 0;
    report->transfers = report->transfers || ledger_entries(&line->transfers) > 0;
    add_to_total(&report->printed, line, false);
    return wallet_print_row(report->printed.line, report->json, ledger_play_fields, line);
}

static void show_total(const struct report *report, const struct ledger_sum *total)
{
    struct ledger_sum shown = *total;
    if (total->sandbox)
        memcpy(shown.customer_id, "sandbox", sizeof "sandbox");
    (void)wallet_print_row(report->printed.line, NULL, ledger_play_fields, &shown);
}

static void end_report(struct report *report)
{
    struct json_writer *json = report->json;
    if (json != NULL) {
        json_end(json);
        json_array(json, "totals");
    }
    for (size_t i = 0; i < count_totals(&report->printed); i++) {
        const struct ledger_sum *total = total_at(&report->printed, i);
        if (json != NULL)
            fields_write_object(&ledger_play_fields[LEDGER_PLAY_AT], total, json);
        else
            show_total(report, total);
    }
    end_customer(report);
    struct text ids = buffer_text(report->without_play);
    if (json != NULL) {
        json_end(json);
        json_lines(json, "without_play", ids.size > 0 ? (struct text){ids.at, ids.size - 1} : ids);
        return;
    }
    while (ids.size > 0) {
        struct text id = text_cut(&ids, '\n');
        if (id.size > 0)
            (void)printf(
                "%.*s moved money by transfers alone: does it name game and round in its bets?\n",
                (int)id.size, id.at);
    }
}

void run_report(const struct command_line *line)
{
    struct report report = {.without_play = command_buffer(line)};
    struct asked asked = {
        .grouping = {.by_game = true}, .sum = report_line, .printed = &report.printed};
    int64_t day = clock_day(clock_wall_ms());
    struct platform_store *store = open_books(line, &asked, &day);
    begin_report(&report, line, day);
    command_require(line, read_books(store, &asked));
    end_report(&report);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

struct rounds_shown {
    const struct command_line *line;
    struct json_writer *json; /* NULL: for people */
    uint64_t count;
};

static bool show_round(void *context, const struct ledger_round *round)
{
    struct rounds_shown *shown = context;
    shown->count++;
    return wallet_print_row(shown->line, shown->json, ledger_round_fields, round);
}

void run_rounds(const struct command_line *line)
{
    struct rounds_shown shown = {.line = line};
    struct error *error = command_error(line);
    const struct viewer_days given = {.customer_id = command_option(line, "customer"),
                                      .provider_id = command_option(line, "provider"),
                                      .from = command_option(line, "from"),
                                      .to = command_option(line, "to"),
                                      .before = VIEWER_ROUND_DAYS};
    const char *older_than = command_option(line, "older-than");
    const int64_t now_ms = clock_wall_ms();
    struct ledger_rounds_asked asked = {.open = command_option(line, "open") != NULL};
    char since[CLOCK_DAY_SIZE];
    if (viewer_ask_days(&given, now_ms, &asked.scope, error) != STATUS_OK ||
        viewer_ask_older(older_than, now_ms, &asked.scope, error) != STATUS_OK)
        command_usage(line, "%s", error->text);
    struct platform_store *store = command_platform(line);
    wallet_require(line, store, &customer_table, given.customer_id);
    wallet_require(line, store, &provider_table, given.provider_id);
    clock_format_day(clock_day(asked.scope.from_ms), since);
    shown.json = command_document(line, JSON_COMPACT);
    if (shown.json != NULL)
        json_array(shown.json, NULL);
    (void)wallet_print_row(line, shown.json, ledger_round_fields, NULL);
    command_require(line,
                    viewer_read_rounds(store, &viewer_operator, &asked, show_round, &shown, error));
    if (shown.json == NULL)
        (void)printf("%s%" PRIu64 " round%s since %s (UTC)\n", shown.count > 0 ? "\n" : "",
                     shown.count, shown.count == 1 ? "" : "s", since);
}
