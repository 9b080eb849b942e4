/* croupier player show | block | unblock. */
#include <stdio.h>

#include "base/clock.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/resource.h"
#include "commands/stores.h"
#include "operator/players.h"

/* ---- show ------------------------------------------------------------------------------------ */

static const struct command_option show_options[] = {
    {"launch", "ID", "the player of this launch (jti, launch_id)", false},
    {"provider", "ID", "the player whom this provider knows as SUB", false},
    {0},
};

static void print_launches(const struct player_view *player)
{
    static const char *const titles[] = {"LAUNCH", "TIME",           "PROVIDER",
                                         "GAME",   "PROVIDER'S SUB", NULL};
    char created_at[CLOCK_TEXT_SIZE];
    struct table *table = table_create(titles);
    for (size_t i = 0; i < player->launch_count; i++) {
        const struct launch_record *launch = &player->launches[i];
        clock_format_rfc3339(launch->created_ms, created_at);
        table_cell(table, launch->id);
        table_cell(table, created_at);
        table_cell(table, launch->provider_id);
        table_cell(table, launch->game_id);
        table_cell(table, launch->subject);
    }
    (void)putchar('\n');
    table_print(&table, stdout);
}

/* False: it is not one of the ways to ask. */
static bool read_question(const struct command_line *line, struct player_question *question)
{
    size_t count = command_argument_count(line);
    const char *first = command_argument(line, 0);
    *question = (struct player_question){.launch_id = command_option(line, "launch"),
                                         .provider_id = command_option(line, "provider")};
    if (question->launch_id != NULL)
        return question->provider_id == NULL && count == 0;
    if (question->provider_id != NULL)
        question->subject = first;
    else if (count == 2)
        question->customer_id = first;
    else
        question->id = first;
    question->reference = command_argument(line, 1);
    return count == 1 || (count == 2 && question->provider_id == NULL);
}

static void run_show(const struct command_line *line)
{
    struct player_question question;
    struct player_view player = {0};
    if (!read_question(line, &question))
        command_usage(line, "give PLAYER, or CUSTOMER and REFERENCE, or --launch ID, or --provider "
                            "ID and SUB");
    if (question.id != NULL && !text_starts_with(text_of(question.id), TEXT("ply_")))
        command_usage(line,
                      "'%s' is not a player's id (ply_…); a customer's own reference stands after "
                      "its customer: player show CUSTOMER %s",
                      question.id, question.id);
    struct platform_store *store = command_platform(line);
    command_require_verb(line, players_find(store, &question, &player, command_error(line)));
    resource_print(line, &player_resource, &player);
    if (!command_json(line) && player.launch_count > 0)
        print_launches(&player);
}

/* ---- block, unblock -------------------------------------------------------------------------- */

static void set_blocked(const struct command_line *line, bool blocked)
{
    struct platform_store *store = command_platform(line);
    struct player_view player = {0};
    command_require_verb(line, players_block(store, command_argument(line, 0), blocked,
                                             clock_wall_ms(), &player, command_error(line)));
    if (command_json(line))
        resource_print(line, &player_resource, &player);
    else
        resource_print_state(&player_resource, &player, blocked ? "blocked" : "not blocked");
}

static void run_block(const struct command_line *line)
{
    set_blocked(line, true);
}

static void run_unblock(const struct command_line *line)
{
    set_blocked(line, false);
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct command player_commands[] = {
    {"show", "[PLAYER|CUSTOMER|SUB] [REFERENCE]", &help_player_show, .options = show_options,
     .run = run_show},
    {"block", "PLAYER", &help_player_block, .run = run_block},
    {"unblock", "PLAYER", &help_player_unblock, .run = run_unblock},
    {0},
};
