#ifndef CROUPIER_COMMANDS_COMMANDS_H
#define CROUPIER_COMMANDS_COMMANDS_H

#include "cli/command.h"

/*
 * The lists of commands, each defined in the file that is named beside it and ended by a row whose
 * name is NULL. main.c puts them into groups; several lists may stand in one group.
 */

extern const struct command check_commands[];    /* check.c; in the group "" */
extern const struct command customer_commands[]; /* customer.c */
extern const struct command demo_commands[];     /* demo.c; in the group "" */
extern const struct command feed_commands[];     /* feed.c */
extern const struct command game_commands[];     /* game.c */
extern const struct command ip_commands[];       /* ip.c */
extern const struct command key_commands[];      /* key.c */
extern const struct command migrate_commands[];  /* migrate.c; in the group "" */
extern const struct command odds_commands[];     /* copy.c */
extern const struct command platform_commands[]; /* copy.c */
extern const struct command provider_commands[]; /* provider.c */
extern const struct command reload_commands[];   /* reload.c; in the group "" */
extern const struct command serve_commands[];    /* serve.c; in the group "" */
extern const struct command wallet_commands[];   /* wallet.c */

struct resource_commands;
extern const struct resource_commands customer_subject, key_subject, address_subject,
    provider_subject, game_subject; /* beside their commands */

#endif
