/* croupier usage: the requests that customers made, as the servers have counted them, and what they
 * moved, as the ledger has it. Reads beside a running server, and prints as it goes. */
#include <string.h>

#include "base/clock.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/platform.h"
#include "commands/wallet_output.h"
#include "operator/documents.h"

struct usage_shown {
    bool is_json;
    const char *customer_id; /* NULL: all */
    int64_t from_day, to_day;
    struct document document;
};

/* Either: one of `fields`. */
static bool show_row(struct usage_shown *shown, const struct field *fields, const void *record)
{
    struct json_writer *json = &shown->document.json;
    if (shown->is_json) {
        json_space(json, "\n");
        fields_write_object(fields, record, json);
    } else {
        fields_append_row(fields, record, json->out);
    }
    wallet_flush(json->out);
    return ferror(stdout) == 0;
}

static bool show_requests(void *context, const struct usage_record *record)
{
    return show_row(context, usage_request_fields, record);
}

static bool show_movement(void *context, const struct ledger_sum *sum)
{
    return show_row(context, usage_movement_fields, sum);
}

/* ---- both ------------------------------------------------------------------------------------ */

static void begin_requests(struct usage_shown *shown)
{
    char date[CLOCK_DAY_SIZE];
    struct json_writer *json = document_begin(&shown->document, JSON_COMPACT);
    if (!shown->is_json) {
        fields_append_row(usage_request_fields, NULL, json->out);
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
    buffer_append_char(json->out, '\n');
    fields_append_row(usage_movement_fields, NULL, json->out);
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
