/* croupier usage: the requests that customers made, as the servers have counted them, and what they
 * moved, as the ledger has it. Reads beside a running server, and prints as it goes. */

#include "base/clock.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/stores.h"
#include "commands/wallet_output.h"
#include "operator/documents.h"
#include "operator/viewer.h"

struct usage_shown {
    const struct command_line *line;
    struct json_writer *json; /* NULL: for people */
    struct ledger_scope asked;
};

static bool show_requests(void *context, const struct usage_record *record)
{
    const struct usage_shown *shown = context;
    return wallet_print_row(shown->line, shown->json, usage_request_fields, record);
}

static bool show_movement(void *context, const struct ledger_sum *sum)
{
    const struct usage_shown *shown = context;
    return wallet_print_row(shown->line, shown->json, usage_movement_fields, sum);
}

static void begin_requests(const struct usage_shown *shown)
{
    char date[CLOCK_DAY_SIZE];
    struct json_writer *json = shown->json;
    if (json != NULL) {
        clock_format_day(clock_day(shown->asked.from_ms), date);
        json_string(json, "from", date);
        clock_format_day(clock_day(shown->asked.to_ms) - 1, date);
        json_string(json, "to", date);
        json_array(json, "requests");
    }
    (void)wallet_print_row(shown->line, json, usage_request_fields, NULL);
}

static void begin_movements(const struct usage_shown *shown)
{
    if (shown->json != NULL) {
        json_end(shown->json);
        json_array(shown->json, "wallet");
    } else {
        (void)putchar('\n');
    }
    (void)wallet_print_row(shown->line, shown->json, usage_movement_fields, NULL);
}

static void read_usage(struct platform_store *store, struct usage_shown *shown)
{
    begin_requests(shown);
    command_require(shown->line,
                    viewer_read_requests(store, &viewer_operator, &shown->asked, show_requests,
                                         shown, command_error(shown->line)));
    begin_movements(shown);
    command_require(shown->line,
                    viewer_read_sums(store, &viewer_operator, &shown->asked, false, show_movement,
                                     shown, command_error(shown->line)));
}

void run_usage(const struct command_line *line)
{
    struct usage_shown shown = {.line = line};
    struct error *error = command_error(line);
    const struct viewer_days given = {.customer_id = command_argument(line, 0),
                                      .from = command_option(line, "from"),
                                      .to = command_option(line, "to")};
    if (viewer_ask_days(&given, clock_wall_ms(), &shown.asked, error) != STATUS_OK)
        command_usage(line, "%s", error->text);
    struct platform_store *store = command_platform(line);
    wallet_require(line, store, &customer_table, given.customer_id);
    shown.json = command_object(line, JSON_COMPACT);
    read_usage(store, &shown);
}
