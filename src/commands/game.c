/* croupier game import | list | show | enable | disable | allow | allowed. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/document.h"
#include "cli/input.h"
#include "commands/commands.h"
#include "commands/platform.h"
#include "commands/resource.h"
#include "games/document.h"
#include "operator/games.h"

const struct resource_commands game_subject = {&game_resource, NULL, NULL};

/* ---- import ---------------------------------------------------------------------------------- */

static void print_imported(const struct command_line *line, const struct games_put_result *result)
{
    const struct document_count counts[] = {{"added", result->added},
                                            {"changed", result->changed},
                                            {"unchanged", result->unchanged},
                                            {0}};
    if (command_json(line))
        document_print_counts(counts, JSON_SPACED);
    else
        (void)printf("%zu added, %zu changed, %zu as they were.\n", result->added, result->changed,
                     result->unchanged);
}

static int run_import(const struct command_line *line)
{
    struct buffer text = {0};
    struct platform_store *store = NULL;
    struct games_put_result result = {0};
    struct error error = {0};
    const char *name = NULL;
    if (command_read_document(command_argument(line, 0), GAMES_DOCUMENT_MAX, &name, &text,
                              &error) != STATUS_OK) {
        buffer_free(&text);
        return command_refuse(line, "%s", error.text);
    }
    if (!command_open_platform(line, false, &store)) {
        buffer_free(&text);
        return EXIT_REFUSED;
    }
    enum status status =
        games_import(store, name, buffer_text(&text), clock_wall_ms(), &result, &error);
    platform_store_close(&store);
    buffer_free(&text);
    if (status != STATUS_OK)
        return command_refuse(line, "%s; nothing was imported", error.text);
    print_imported(line, &result);
    return EXIT_DONE;
}

/* ---- allow ----------------------------------------------------------------------------------- */

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The arguments after the customer as a list: in order, each once. */
static void append_ids(const struct command_line *line, struct buffer *list)
{
    size_t count = command_argument_count(line) - 1;
    bool first = true;
    const char **ids = memory_alloc_zeroed(count, sizeof ids[0]);
    for (size_t i = 0; i < count; i++)
        ids[i] = command_argument(line, i + 1);
    qsort(ids, count, sizeof ids[0], compare_strings);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(ids[i], ids[i - 1]) == 0)
            continue;
        buffer_append_format(list, "%s%s", first ? "" : "\n", ids[i]);
        first = false;
    }
    memory_free(ids);
}

static void print_policy_json(const struct game_policy_record *record)
{
    struct document document;
    struct json_writer *json = document_begin(&document, JSON_INDENTED);
    json_object(json, NULL);
    json_string(json, "customer", record->customer_id);
    if (record->every_game)
        json_string(json, "games", "all");
    else
        json_lines(json, "games", record->games);
    json_end(json);
    document_print(&document);
}

/* `whole`: with the games, one a line. */
static void print_policy(const struct command_line *line, const struct game_policy_record *record,
                         bool casino, bool whole)
{
    char program[PROGRAM_TEXT_SIZE];
    size_t count = 0;
    for (struct text rest = record->games; rest.size > 0; count++)
        (void)text_cut(&rest, '\n');
    if (command_json(line))
        print_policy_json(record);
    else if (record->every_game)
        (void)printf("%s may use every game.\n", record->customer_id);
    else
        (void)printf("%s may use %zu game%s.\n", record->customer_id, count, count == 1 ? "" : "s");
    if (whole && count > 0 && !command_json(line))
        (void)printf("%.*s\n", (int)record->games.size, record->games.at);
    if (casino)
        return;
    command_program(line, program);
    command_note(line, "it may not use the casino until: %s customer set %s --casino", program,
                 record->customer_id);
}

/* Prints the refusal of what cannot be a customer's id and returns false. */
static bool take_customer(const struct command_line *line, char out[CUSTOMER_ID_SIZE])
{
    const char *customer = command_argument(line, 0);
    if (strlen(customer) >= CUSTOMER_ID_SIZE) {
        (void)command_refuse(line, "there is no customer '%.*s'", 64, customer);
        return false;
    }
    memcpy(out, customer, strlen(customer) + 1);
    return true;
}

static int run_allow(const struct command_line *line)
{
    struct game_policy_record record = {0};
    struct platform_store *store = NULL;
    struct error error = {0};
    struct buffer list = {0};
    bool casino = false;
    if (!take_customer(line, record.customer_id))
        return EXIT_REFUSED;
    for (size_t i = 1; i < command_argument_count(line); i++) {
        const char *id = command_argument(line, i);
        if (!game_id_is_sound(text_of(id)))
            return command_usage(line, "'%.*s' is not a game id: 1 to 64 of a-z, 0-9 and '-'", 64,
                                 id);
        record.every_game |= strcmp(id, "all") == 0;
    }
    if (record.every_game && command_argument_count(line) > 2)
        return command_usage(line, "give 'all', or the games, but not both");
    if (!record.every_game)
        append_ids(line, &list);
    record.games = buffer_text(&list);
    if (!command_open_platform(line, false, &store)) {
        buffer_free(&list);
        return EXIT_REFUSED;
    }
    enum status status = games_allow(store, &record, &casino, &error);
    platform_store_close(&store);
    if (status == STATUS_OK)
        print_policy(line, &record, casino, false);
    buffer_free(&list);
    return status == STATUS_OK ? EXIT_DONE : command_fail(line, status, &error);
}

static int run_allowed(const struct command_line *line)
{
    struct game_policy_record record = {0};
    struct platform_store *store = NULL;
    struct error error = {0};
    struct buffer games = {0};
    bool casino = false;
    if (!take_customer(line, record.customer_id) || !command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status = games_allowed(store, &record, &games, &casino, &error);
    platform_store_close(&store);
    if (status == STATUS_OK)
        print_policy(line, &record, casino, true);
    buffer_free(&games);
    return status == STATUS_OK ? EXIT_DONE : command_fail(line, status, &error);
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct command game_commands[] = {
    {"import", "FILE|-", "add or change games, from JSON",
     "FILE is an array of games; '-' is standard input. A game with an id that is there "
     "already\n"
     "is replaced, others stay as they are. All or nothing: the first mistake is told with "
     "its\n"
     "line and column, and then nothing has changed.\n"
     "\n"
     "A game has these members, of which the first four are required:\n"
     "  id             1 to 64 of a-z, 0-9 and '-'; permanent\n"
     "  name           1 to 128 bytes; customers see it and search in it\n"
     "  provider       the id of a provider ('croupier provider add')\n"
     "  category       1 to 64 bytes: \"slots\"\n"
     "  features       an array of texts of 1 to 64 bytes\n"
     "  rtp_bps        0 to 10000: return to player in hundredths of a percent; or null\n"
     "  volatility     \"low\", \"medium\", \"high\" or null\n"
     "  thumbnail_url  http:// or https://, or null\n"
     "  demo           may it be played without money? (false)\n"
     "  currencies     an array of ISO 4217 codes; none: it cannot be played for money\n"
     "  languages      an array of texts: \"en\", \"pt-BR\"\n"
     "  devices        an array of texts: \"desktop\", \"mobile\"\n"
     "  enabled        true or false; left out, a game that is there stays as it is, and a "
     "new\n"
     "                 one is enabled\n"
     "What 'game list --json' prints can be imported again.",
     "croupier game import games.json\n"
     "croupier game list --json | sed 's/\"EUR\"/\"EUR\", \"SEK\"/' | croupier game "
     "import -",
     .run = run_import},
    {"list", "", "all games",
     "In the order of their ids. --json prints an array of the objects that 'game show\n"
     "--json' prints.",
     "croupier game list\n"
     "croupier game list --json | jq -r '.[] | select(.enabled | not) | .id'",
     .run = resource_run_list},
    {"show", "ID", "one game", "Everything that is stored about it.",
     "croupier game show book-of-sand\n"
     "croupier game show book-of-sand --json",
     .run = resource_run_show},
    {"enable", "ID", "show a disabled game again",
     "It is listed and can be launched within a second, if its provider is enabled.",
     "croupier game enable book-of-sand", .run = resource_run_enable},
    {"disable", "ID", "hide a game",
     "Within a second nobody sees or launches it. The wallet goes on: rounds that are\n"
     "under way can be settled and rolled back.",
     "croupier game disable book-of-sand", .run = resource_run_disable},
    {"allow", "CUSTOMER all|GAME…", "which games a customer may use",
     "Replaces the customer's list: either all games, also those that are added later, or the\n"
     "ones that are named. A customer that may use the casino ('customer add --casino') "
     "begins\n"
     "with all, and keeps its list while the casino is taken from it. A running server\n"
     "follows within a second.",
     "croupier game allow cus_7Qm2Zt0aXw9Lk3Rb book-of-sand dune-roulette\n"
     "croupier game allow cus_7Qm2Zt0aXw9Lk3Rb all",
     .run = run_allow},
    {"allowed", "CUSTOMER", "the games that a customer may use",
     "All games, or the ids that 'game allow' named, one a line; whether a game and its\n"
     "provider are enabled is not considered. --json prints what 'game allow' prints.",
     "croupier game allowed cus_7Qm2Zt0aXw9Lk3Rb", .run = run_allowed},
    {0},
};
