/* croupier usage: the requests that customers made, as the servers have counted them, and what they
 * moved, as the ledger has it. Reads beside a running server, and prints as it goes. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/platform.h"
#include "commands/wallet_output.h"
#include "operator/documents.h"
#include "records/currency.h"

struct usage_shown {
    bool is_json;
    const char *customer_id; /* NULL: all */
    int64_t from_day, to_day;
    struct document document;
};

static bool print_some(struct usage_shown *shown)
{
    wallet_flush(&shown->document.text);
    return ferror(stdout) == 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool show_requests(void *context, const struct usage_record *record)
{
    struct usage_shown *shown = context;
    struct json_writer *json = &shown->document.json;
    char date[CLOCK_DAY_SIZE];
    if (shown->is_json) {
        json_space(json, "\n");
        usage_write_requests(json, record);
    } else {
        clock_format_day(record->day, date);
        buffer_append_format(
            json->out,
            "%-20s  %-10s  %-8s  %12" PRIu64 "  %12" PRIu64 "  %12" PRIu64 "  %12" PRIu64 "\n",
            record->customer_id[0] != '\0' ? record->customer_id : "(further ones)", date,
            usage_group_name(record->group), record->requests[0], record->requests[1],
            record->requests[2], record->requests[3]);
    }
    return print_some(shown);
}

/* ---- money ----------------------------------------------------------------------------------- */

static bool show_movement(void *context, const struct ledger_sum *line)
{
    struct usage_shown *shown = context;
    struct json_writer *json = &shown->document.json;
    const int64_t amounts_minor[] = {line->debits_minor, line->credits_minor,
                                     ledger_sum_rollbacks_minor(line),
                                     ledger_sum_movement_minor(line)};
    char date[CLOCK_DAY_SIZE];
    char amounts[4][CURRENCY_AMOUNT_SIZE];
    if (shown->is_json) {
        json_space(json, "\n");
        usage_write_movement(json, line);
    } else {
        clock_format_day(line->day, date);
        for (size_t i = 0; i < 4; i++)
            currency_format(amounts_minor[i], line->currency_exponent, amounts[i]);
        buffer_append_format(json->out,
                             "%-20s  %-10s  %-8s  %12" PRIu64 "  %16s  %16s  %16s  %16s\n",
                             line->customer_id, date, line->currency, ledger_sum_entries(line),
                             amounts[0], amounts[1], amounts[2], amounts[3]);
    }
    return print_some(shown);
}

/* ---- both ------------------------------------------------------------------------------------ */

static void begin_requests(struct usage_shown *shown)
{
    char date[CLOCK_DAY_SIZE];
    struct json_writer *json = document_begin(&shown->document, JSON_COMPACT);
    if (!shown->is_json) {
        buffer_append_format(json->out, "%-20s  %-10s  %-8s  %12s  %12s  %12s  %12s\n", "CUSTOMER",
                             "DAY", "REQUESTS", "2XX", "3XX", "4XX", "5XX");
        return;
    }
    json_object(json, NULL);
    clock_format_day(shown->from_day, date);
    json_string(json, "from", date);
    clock_format_day(shown->to_day, date);
    json_string(json, "to", date);
    json_array(json, "requests");
}

static void begin_movements(struct usage_shown *shown)
{
    struct json_writer *json = &shown->document.json;
    if (shown->is_json) {
        json_end(json);
        json_array(json, "wallet");
        return;
    }
    buffer_append_format(json->out, "\n%-20s  %-10s  %-8s  %12s  %16s  %16s  %16s  %16s\n",
                         "CUSTOMER", "DAY", "WALLET", "OPERATIONS", "DEBITS", "CREDITS",
                         "ROLLED BACK", "MOVEMENT");
}

static enum status read_usage(struct platform_store *store, struct usage_shown *shown,
                              struct error *error)
{
    const struct ledger_scope scope = {
        .customer_id = shown->customer_id,
        .from_ms = shown->from_day * CLOCK_DAY_MS,
        .to_ms = (shown->to_day + 1) * CLOCK_DAY_MS,
    };
    enum status status = STATUS_OK;
    if (shown->customer_id != NULL) {
        struct customer_record record = {.id = ""};
        status = platform_get(store, &customer_table, shown->customer_id, &record, error);
        if (status != STATUS_OK)
            return status;
        customer_table.release(&record);
    }
    begin_requests(shown);
    status = platform_usage_list(store, shown->customer_id, shown->from_day, shown->to_day,
                                 show_requests, shown, error);
    if (status != STATUS_OK)
        return status;
    begin_movements(shown);
    return platform_ledger_sums(store, &scope, (struct ledger_grouping){.by_day = true},
                                show_movement, shown, error);
}

static bool read_day(const struct command_line *line, const char *option, int64_t *day)
{
    const char *given = command_option(line, option);
    return given == NULL || clock_parse_day(text_of(given), day) == STATUS_OK;
}

int run_usage(const struct command_line *line)
{
    struct usage_shown shown = {.is_json = command_json(line),
                                .customer_id = command_argument(line, 0)};
    struct platform_store *store = NULL;
    struct error error = {0};
    shown.to_day = clock_day(clock_wall_ms());
    bool sound = read_day(line, "to", &shown.to_day);
    shown.from_day = shown.to_day;
    sound = sound && read_day(line, "from", &shown.from_day);
    if (!sound || shown.from_day > shown.to_day)
        return command_usage(line, "--from and --to are dates, as 2026-11-21, and the first is not "
                                   "after the second");
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status = read_usage(store, &shown, &error);
    platform_store_close(&store);
    if (status == STATUS_OK && shown.is_json)
        document_print(&shown.document);
    else if (status == STATUS_OK)
        wallet_flush(&shown.document.text);
    document_free(&shown.document);
    return status == STATUS_OK ? wallet_finish(line) : command_refuse(line, "%s", error.text);
}

const struct command_option usage_options[] = {
    {"from", "DATE", "the first day (UTC); else the last", false},
    {"to", "DATE", "the last day (UTC); else today", false},
    {0},
};
