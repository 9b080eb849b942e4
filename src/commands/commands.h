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
void run_backup(const struct command_line *line);
void run_check(const struct command_line *line);
void run_demo(const struct command_line *line);
void run_health(const struct command_line *line);
void run_migrate(const struct command_line *line);
void run_restore(const struct command_line *line);
void run_usage(const struct command_line *line);

/* For wallet.c (books.c). */
void run_export(const struct command_line *line);
void run_report(const struct command_line *line);
void run_rounds(const struct command_line *line);

/* For wallet.c and audit.c (tail.c). */
void run_verify_file(const struct command_line *line);
void run_wallet_tail(const struct command_line *line);
void run_audit_tail(const struct command_line *line);

struct resource_commands;
extern const struct resource_commands customer_subject, key_subject, address_subject,
    provider_subject, game_subject, audit_subject, operator_subject; /* beside their commands */
