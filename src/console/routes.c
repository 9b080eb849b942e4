/* The route table of the admin API; see routes.h. */
#include "console/routes.h"

#include "console/handlers.h"
#include "operator/customers.h"
#include "operator/games.h"
#include "operator/keys.h"
#include "operator/players.h"
#include "operator/providers.h"
#include "operator/tables.h"
#include "operator/tokens.h"

#define API "/admin/v1/"
#define READS METHOD_GET
#define ADDS METHOD_POST
#define CHANGES METHOD_PATCH
#define REMOVES METHOD_DELETE

static const struct console_route routes[] = {
    {METHOD_POST, API "session", true, ROLE_READER, console_sign_in, NULL},
    {READS, API "session", false, ROLE_READER, console_who_am_i, NULL},
    {REMOVES, API "session", false, ROLE_READER, console_sign_out, NULL},

    {READS, API "overview", false, ROLE_READER, console_overview, NULL},
    {READS, API "denials", false, ROLE_READER, console_refusals, NULL},

    {READS, API "customers", false, ROLE_READER, console_list, &customer_resource},
    {ADDS, API "customers", false, ROLE_OPERATOR, console_add, &customer_resource},
    {READS, API "customers/{id}", false, ROLE_READER, console_show, &customer_resource},
    {CHANGES, API "customers/{id}", false, ROLE_OPERATOR, console_change, &customer_resource},
    {READS, API "customers/{id}/account/{what}", false, ROLE_READER, console_account, NULL},
    {READS, API "customers/{id}/denials", false, ROLE_READER, console_refusals, NULL},
    {READS, API "customers/{id}/conduct", false, ROLE_READER, console_list, &conduct_resource},
    {REMOVES, API "customers/{id}/conduct", false, ROLE_OPERATOR, console_reset_conduct, NULL},
    {READS, API "customers/{id}/games", false, ROLE_READER, console_allowed_games, NULL},
    {METHOD_PUT, API "customers/{id}/games", false, ROLE_OPERATOR, console_allow_games, NULL},

    {READS, API "keys", false, ROLE_READER, console_list, &key_resource},
    {ADDS, API "keys", false, ROLE_OWNER, console_issue_key, &key_resource},
    {REMOVES, API "keys/{id}", false, ROLE_OPERATOR, console_revoke_key, &key_resource},

    {READS, API "addresses", false, ROLE_READER, console_list, &address_resource},
    {ADDS, API "addresses", false, ROLE_OPERATOR, console_add, &address_resource},
    {READS, API "addresses/{id}", false, ROLE_READER, console_show, &address_resource},
    {CHANGES, API "addresses/{id}", false, ROLE_OPERATOR, console_change, &address_resource},
    {REMOVES, API "addresses/{id}", false, ROLE_OPERATOR, console_remove, &address_resource},

    {READS, API "providers", false, ROLE_READER, console_list, &provider_resource},
    {ADDS, API "providers", false, ROLE_OWNER, console_add_provider, &provider_resource},
    {READS, API "providers/{id}", false, ROLE_READER, console_show, &provider_resource},
    {CHANGES, API "providers/{id}", false, ROLE_OPERATOR, console_change, &provider_resource},
    {ADDS, API "providers/{id}/secrets", false, ROLE_OWNER, console_add_secret, &provider_resource},
    {REMOVES, API "providers/{id}/secrets/{kid}", false, ROLE_OWNER, console_retire_secret,
     &provider_resource},
    {READS, API "providers/{id}/conduct", false, ROLE_READER, console_list, &conduct_resource},
    {REMOVES, API "providers/{id}/conduct", false, ROLE_OPERATOR, console_reset_conduct, NULL},
    {ADDS, API "providers/{id}/try", false, ROLE_OWNER, console_try_provider, NULL},

    {READS, API "games", false, ROLE_READER, console_list, &game_resource},
    {ADDS, API "games/import", false, ROLE_OPERATOR, console_import_games, NULL},
    {READS, API "games/{id}", false, ROLE_READER, console_show, &game_resource},
    {CHANGES, API "games/{id}", false, ROLE_OPERATOR, console_change, &game_resource},

    {READS, API "players", false, ROLE_READER, console_list_players, &player_resource},
    {READS, API "players/{id}", false, ROLE_READER, console_show, &player_resource},
    {CHANGES, API "players/{id}", false, ROLE_OPERATOR, console_block_player, &player_resource},
    {READS, API "blocks", false, ROLE_READER, console_list, &block_resource},
    {READS, API "blocks/{id}", false, ROLE_READER, console_show, &block_resource},
    {CHANGES, API "blocks/{id}", false, ROLE_OPERATOR, console_change, &block_resource},
    {READS, API "players/{id}/statement", false, ROLE_READER, console_statement, NULL},

    {READS, API "operators", false, ROLE_OWNER, console_list, &operator_resource},
    {ADDS, API "operators", false, ROLE_OWNER, console_add_operator, &operator_resource},
    {READS, API "operators/{id}", false, ROLE_OWNER, console_show, &operator_resource},
    {CHANGES, API "operators/{id}", false, ROLE_OWNER, console_change, &operator_resource},
    {REMOVES, API "operators/{id}", false, ROLE_OWNER, console_remove, &operator_resource},
    {ADDS, API "operators/{id}/link", false, ROLE_OWNER, console_link_operator, &operator_resource},
    {READS, API "sessions", false, ROLE_OWNER, console_list, &session_resource},
    {REMOVES, API "sessions/{id}", false, ROLE_OWNER, console_end_session, NULL},
    {READS, API "tokens", false, ROLE_OWNER, console_list, &token_resource},
    {ADDS, API "tokens", false, ROLE_OWNER, console_issue_token, &token_resource},
    {READS, API "tokens/{id}", false, ROLE_OWNER, console_show, &token_resource},
    {REMOVES, API "tokens/{id}", false, ROLE_OWNER, console_revoke_token, &token_resource},

    {READS, API "feed", false, ROLE_READER, console_feed, NULL},
    {READS, API "feed/{sport}", false, ROLE_READER, console_feed_sport, NULL},
    {READS, API "feed/{sport}/{event}", false, ROLE_READER, console_feed_event, NULL},

    {READS, API "ledger", false, ROLE_READER, console_ledger, NULL},
    {READS, API "ledger/tail", false, ROLE_READER, console_ledger_tail, NULL},
    {ADDS, API "ledger/verification", false, ROLE_OPERATOR, console_verify, NULL},
    {READS, API "rounds", false, ROLE_READER, console_rounds, NULL},

    {READS, API "audit", false, ROLE_READER, console_audit, NULL},
    {READS, API "audit/tail", false, ROLE_READER, console_audit_tail, NULL},
    {READS, API "usage", false, ROLE_READER, console_usage, NULL},
    {READS, API "report", false, ROLE_READER, console_report, NULL},
    {READS, API "entries", false, ROLE_READER, console_entries, NULL},
    {READS, API "settings", false, ROLE_READER, console_settings, NULL},
    {READS, API "health", false, ROLE_READER, console_health, NULL},
};

const struct console_route *console_route_find(struct text path, enum http_method method,
                                               struct text values[HTTP_PATH_VALUES],
                                               struct buffer *methods)
{
    const struct console_route *found = NULL;
    const char *pattern = NULL; /* the first that fits: a word wins over {id} */
    if (method == METHOD_HEAD)
        method = METHOD_GET;
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        const struct console_route *route = &routes[i];
        struct text these[HTTP_PATH_VALUES];
        if ((pattern != NULL && strcmp(pattern, route->path) != 0) ||
            !http_path_fits(route->path, path, these))
            continue;
        pattern = route->path;
        buffer_append_format(methods, "%s%s", methods->size > 0 ? ", " : "",
                             route->method == METHOD_GET ? "GET, HEAD"
                                                         : http_method_name(route->method));
        if (route->method == method) {
            found = route;
            memcpy(values, these, sizeof these);
        }
    }
    return found;
}
