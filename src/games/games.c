/*
 * The current games table, which a refresher keeps fresh; see games.h. Any change reads everything
 * again, because it is little.
 */
#include "games/games.h"

#include "base/memory.h"
#include "stores/platform_games.h"

struct games {
    struct log *log;
    char *secrets_key_file;
    struct refresher *refresher;
    struct secrets *secrets; /* the refresher thread's; NULL: not read yet */
};

/* ---- reading --------------------------------------------------------------------------------- */

static enum status read_all(void *context, struct platform_store *store, bool all,
                            uint64_t *revision, void **table, struct error *error)
{
    struct games *games = context;
    enum status status = STATUS_OK;
    (void)all;
    if (games->secrets == NULL)
        status = secrets_open_key(&games->secrets, games->secrets_key_file, error);
    if (status != STATUS_OK)
        return status;
    struct games_table *made = games_table_create(games->secrets, games->log);
    const struct record_visitor visit = {.see[RECORD_PROVIDER] = games_table_add_provider,
                                         .see[RECORD_GAME] = games_table_add_game,
                                         .see[RECORD_GAME_POLICY] = games_table_add_policy,
                                         .context = made};
    status = platform_games_read(store, &visit, revision, error);
    if (status == STATUS_OK)
        *table = made;
    else
        games_table_destroy(&made);
    return status;
}

static void destroy_table(void *table)
{
    struct games_table *gone = table;
    games_table_destroy(&gone);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct games *games_create(const struct platform_store_options *store, const char *secrets_key_file,
                           uint32_t refresh_ms)
{
    struct games *games = memory_alloc_zeroed(1, sizeof *games);
    games->log = store->log;
    games->secrets_key_file = memory_copy_string(secrets_key_file);
    const struct refresher_options refresher = {
        .name = "games",
        .failing = "games cannot be refreshed",
        .again = "games refreshed again",
        .store = *store,
        .refresh_ms = refresh_ms,
        .revision = platform_games_revision,
        .read = read_all,
        .destroy = destroy_table,
        .context = games,
    };
    games->refresher = refresher_create(&refresher);
    return games;
}

void games_destroy(struct games **at)
{
    struct games *games = memory_take(at);
    if (games == NULL)
        return;
    refresher_destroy(&games->refresher);
    secrets_destroy(&games->secrets);
    memory_free(games->secrets_key_file);
    memory_free(games);
}

struct refresher *games_refresher(struct games *games)
{
    return games->refresher;
}

const struct metric games_metrics[] = {
    {.name = "croupier_games_age_seconds", .never = "+Inf"},
    {0},
};
