/* The commands, nothing else. */
#include "commands/commands.h"

static const struct command_group groups[] = {
    {"", "", demo_commands},
    {"", "", serve_commands},
    {"", "", reload_commands},
    {"", "", check_commands},
    {"", "", migrate_commands},
    {"customer", "who may call, from where, how often", customer_commands},
    {"key", "the API keys of customers", key_commands},
    {"ip", "addresses that are admitted to sports without a key", ip_commands},
    {"provider", "who hosts casino games", provider_commands},
    {"game", "casino games, and who may use which", game_commands},
    {"wallet", "players' money: statements, and the proof of the ledger", wallet_commands},
    {"platform", "move the platform store to another engine", platform_commands},
    {"odds", "move the odds store to another engine", odds_commands},
    {"feed", "publish catalogs and odds, and see what is polled", feed_commands},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    return command_main(groups, argc, argv);
}
