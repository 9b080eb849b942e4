/* croupier player show | block | unblock | blocks. */

#include "base/clock.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/resource.h"
#include "commands/stores.h"
#include "operator/players.h"

/* ---- show ------------------------------------------------------------------------------------ */

/* Their reasons, and which ids they have. */
static void print_blocks(const struct command_line *line, const struct player_view *player)
{
    struct resource_listing listing;
    resource_listing_begin(&listing, line, &block_resource);
    for (size_t i = 0; i < player->block_count; i++)
        (void)resource_listing_see(&listing, &player->blocks[i]);
    (void)putchar('\n');
    resource_listing_end(&listing, line, STATUS_OK);
}

static void print_launches(const struct player_view *player)
{
    static const char *const titles[] = {"LAUNCH", "TIME",           "PROVIDER",
                                         "GAME",   "PROVIDER'S SUB", NULL};
    char created_at[CLOCK_TEXT_SIZE];
    struct table *table = table_create(titles);
    for (size_t i = 0; i < player->launch_count; i++) {
        const struct launch_record *launch = &player->launches[i];
        clock_format_rfc3339(launch->created_ms, created_at);
        TABLE_ROW(table, launch->id, created_at, launch->provider_id, launch->game_id,
                  launch->subject);
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

static void require_player_id(const struct command_line *line, const char *verb, const char *id)
{
    if (text_starts_with(text_of(id), TEXT("lau_")))
        command_usage(line, "'%s' is a launch: player show --launch %s", id, id);
    if (!text_starts_with(text_of(id), TEXT("ply_")))
        command_usage(line,
                      "'%s' is not a player's id (ply_…); a customer's own reference stands after "
                      "its customer: player %s CUSTOMER %s",
                      id, verb, id);
}

static void run_show(const struct command_line *line)
{
    struct player_question question;
    struct player_view player = {0};
    if (!read_question(line, &question))
        command_usage(line, "give PLAYER, or CUSTOMER and REFERENCE, or --launch ID, or --provider "
                            "ID and SUB");
    if (question.id != NULL)
        require_player_id(line, "show", question.id);
    struct platform_store *store = command_platform(line);
    command_require_verb(line, players_find(store, &question, &player, command_error(line)));
    resource_print(line, &player_resource, &player);
    if (!command_json(line) && player.block_count > 0)
        print_blocks(line, &player);
    if (!command_json(line) && player.launch_count > 0)
        print_launches(&player);
}

/* ---- block, unblock -------------------------------------------------------------------------- */

static void print_player(const struct command_line *line, struct platform_store *store,
                         const char *id)
{
    struct player_view player = {0};
    command_require_verb(line,
                         resource_get(&player_resource, store, id, &player, command_error(line)));
    if (command_json(line))
        resource_print(line, &player_resource, &player);
    else
        resource_print_state(&player_resource, &player,
                             player.block_count > 0 ? "blocked" : "not blocked");
}

/* `help` has the options: each is a setting of a block. */
static void set_blocked(const struct command_line *line, bool blocked,
                        const struct command_help *help)
{
    const char *first = command_argument(line, 0);
    const char *reference = command_argument(line, 1);
    char id[BLOCK_ID_SIZE];
    struct block_view block = {0};
    struct setting settings[5] = {{"blocked", blocked ? "yes" : "no"}};
    size_t count = 1;
    for (const struct command_option *option = help->options; option->name != NULL; option++) {
        const char *given = command_option(line, option->name);
        if (given != NULL)
            settings[count++] =
                (struct setting){option->name, option->value == NULL ? "yes" : given};
        if (given == NULL || strcmp(option->name, "no-until") != 0)
            continue;
        if (command_option(line, "until") != NULL)
            command_usage(line, "--until and --no-until contradict each other");
        settings[count - 1] = (struct setting){"until", NULL};
    }
    if (reference == NULL)
        require_player_id(line, blocked ? "block" : "unblock", first);
    else
        command_require_verb(line, block_id_of(first, reference, id, command_error(line)));
    struct platform_store *store = command_platform(line);
    command_require_verb(line,
                         resource_change(&block_resource, store, reference == NULL ? first : id,
                                         &(struct resource_edit){.settings = settings}, &block,
                                         command_error(line)));
    if (!blocked && block.standing[0] != '\0' && !command_json(line))
        (void)printf(
            "The block of %s%s%s is lifted. That of %s is in force still%s.\n", first,
            reference == NULL ? "" : " ", reference == NULL ? "" : reference, block.standing,
            strchr(block.standing, '/') == NULL ? "" : ": the customer alone lifts its own");
    else if (reference == NULL)
        print_player(line, store, first);
    else if (command_json(line))
        resource_print(line, &block_resource, &block);
    else
        (void)printf("%s %s is %s in every currency.\n", first, reference,
                     block.blocked ? "blocked" : "not blocked");
}

static void run_block(const struct command_line *line)
{
    set_blocked(line, true, &help_player_block);
}

static void run_unblock(const struct command_line *line)
{
    set_blocked(line, false, &help_player_unblock);
}

static void run_blocks(const struct command_line *line)
{
    resource_run_list_of(line, &block_resource, NULL);
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct command player_commands[] = {
    {"show", "[PLAYER|CUSTOMER|SUB] [REFERENCE]", &help_player_show, .run = run_show},
    {"block", "PLAYER|CUSTOMER [REFERENCE]", &help_player_block, .run = run_block},
    {"unblock", "PLAYER|CUSTOMER [REFERENCE]", &help_player_unblock, .run = run_unblock},
    {"blocks", "[CUSTOMER]", &help_player_blocks, .run = run_blocks},
    {0},
};
