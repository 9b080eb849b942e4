#pragma once

#include "cli/command.h"

/*
 * The commands of each group, a list that a row without a name ends; main.c has the groups.
 */

extern const struct command audit_commands[];    /* audit.c */
extern const struct command customer_commands[]; /* customer.c */
extern const struct command feed_commands[];     /* feed.c */
extern const struct command game_commands[];     /* game.c */
extern const struct command ip_commands[];       /* ip.c */
extern const struct command key_commands[];      /* key.c */
extern const struct command odds_commands[];     /* copy.c */
extern const struct command operator_commands[]; /* operator.c */
extern const struct command platform_commands[]; /* copy.c */
extern const struct command player_commands[];   /* player.c */
extern const struct command provider_commands[]; /* provider.c */
extern const struct command service_commands[];  /* service.c; without a group */
extern const struct command wallet_commands[];   /* wallet.c */

/* For service.c. */
command_runner run_backup, run_check, run_demo, run_health, run_migrate, run_restore, run_usage;

/* For wallet.c (books.c). */
command_runner run_export, run_report, run_rounds;

/* For wallet.c and audit.c (tail.c). */
command_runner run_verify_file, run_wallet_tail, run_audit_tail;

struct resource_commands;
extern const struct resource_commands customer_subject, key_subject, address_subject,
    provider_subject, game_subject, operator_subject; /* beside their commands */
