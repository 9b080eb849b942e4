/* croupier game import | list | show | set | enable | disable | allow | allowed. */
#include "base/clock.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/resource.h"
#include "commands/stores.h"
#include "games/document.h"
#include "operator/games.h"

const struct resource_commands game_subject = {&game_resource, NULL, NULL};

/* ---- import ---------------------------------------------------------------------------------- */

static void print_imported(const struct command_line *line, const struct games_put_result *result)
{
    const struct command_count counts[] = {{"added", result->added, NULL},
                                           {"changed", result->changed, NULL},
                                           {"unchanged", result->unchanged, NULL},
                                           {0}};
    if (!command_write_counts(line, counts, JSON_SPACED))
        (void)printf("%zu added, %zu changed, %zu as they were.\n", result->added, result->changed,
                     result->unchanged);
}

static void run_import(const struct command_line *line)
{
    struct games_put_result result = {0};
    struct error *error = command_error(line);
    const char *name = NULL;
    struct buffer *text = command_read(line, command_argument(line, 0), GAMES_DOCUMENT_MAX, &name);
    struct platform_store *store = command_platform(line);
    if (games_import(store, name, buffer_text(text), clock_wall_ms(), &result, error) != STATUS_OK)
        command_refuse(line, "%s; nothing was imported", error->text);
    print_imported(line, &result);
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
    const char **ids = memory_alloc_zeroed(count, sizeof ids[0]);
    for (size_t i = 0; i < count; i++)
        ids[i] = command_argument(line, i + 1);
    qsort(ids, count, sizeof ids[0], compare_strings);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(ids[i], ids[i - 1]) != 0)
            buffer_append_format(list, "%s%s", i == 0 ? "" : "\n", ids[i]);
    memory_free(ids);
}

/* `whole`: with the games, one a line. */
static void print_policy(const struct command_line *line, const struct game_policy_record *record,
                         bool casino, bool whole)
{
    struct json_writer *json = command_object(line, JSON_INDENTED);
    size_t count = 0;
    for (struct text rest = record->games; rest.size > 0; count++)
        (void)text_cut(&rest, '\n');
    if (json != NULL) {
        json_string(json, "customer", record->customer_id);
        if (record->every_game)
            json_string(json, "games", "all");
        else
            json_lines(json, "games", record->games);
        return;
    }
    if (record->every_game)
        (void)printf("%s may use every game.\n", record->customer_id);
    else
        (void)printf("%s may use %zu game%s.\n", record->customer_id, count, count == 1 ? "" : "s");
    if (whole && count > 0)
        (void)printf("%.*s\n", (int)record->games.size, record->games.at);
    if (!casino)
        command_note(line, "it may not use the casino until: %s customer set %s --casino",
                     command_program(line), record->customer_id);
}

/* Refuses what cannot be a customer's id. */
static void take_customer(const struct command_line *line, char out[CUSTOMER_ID_SIZE])
{
    const char *customer = command_argument(line, 0);
    if (strlen(customer) >= CUSTOMER_ID_SIZE)
        command_refuse(line, "there is no customer '%.*s'", 64, customer);
    memcpy(out, customer, strlen(customer) + 1);
}

static void run_allow(const struct command_line *line)
{
    struct game_policy_record record = {0};
    struct buffer *list = command_buffer(line);
    bool casino = false;
    take_customer(line, record.customer_id);
    for (size_t i = 1; i < command_argument_count(line); i++) {
        const char *id = command_argument(line, i);
        if (!game_id_is_sound(text_of(id)))
            command_usage(line, "'%.*s' is not a game id: 1 to 64 of a-z, 0-9 and '-'", 64, id);
        record.every_game |= strcmp(id, "all") == 0;
    }
    if (record.every_game && command_argument_count(line) > 2)
        command_usage(line, "give 'all', or the games, but not both");
    if (!record.every_game)
        append_ids(line, list);
    record.games = buffer_text(list);
    struct platform_store *store = command_platform(line);
    command_require_verb(line, games_allow(store, &record, &casino, command_error(line)));
    print_policy(line, &record, casino, false);
}

static void run_allowed(const struct command_line *line)
{
    struct game_policy_record record = {0};
    struct buffer *games = command_buffer(line);
    bool casino = false;
    take_customer(line, record.customer_id);
    struct platform_store *store = command_platform(line);
    command_require_verb(line, games_allowed(store, &record, games, &casino, command_error(line)));
    print_policy(line, &record, casino, true);
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct command game_commands[] = {
    {"import", "FILE|-", &help_game_import, .run = run_import},
    {"list", "", &help_game_list, .run = resource_run_list},
    {"show", "ID", &help_game_show, .run = resource_run_show},
    {"set", "ID", &help_game_set, resource_set_options, resource_run_set},
    {"enable", "ID", &help_game_enable, .run = resource_run_enable},
    {"disable", "ID", &help_game_disable, .run = resource_run_disable},
    {"allow", "CUSTOMER all|GAME…", &help_game_allow, .run = run_allow},
    {"allowed", "CUSTOMER", &help_game_allowed, .run = run_allowed},
    {0},
};
