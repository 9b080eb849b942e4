#pragma once

#include "cli/command.h"
#include "stores/odds.h"
#include "stores/platform.h"

/*
 * The stores of commands. The line owns them, so they are closed when the command has ended.
 */

/* Opens the platform store that the configuration names; a refusal ends the command. Changes are
 * signed with the command and the user who logged in, also behind sudo and su
 * (platform_store_act_as). */
struct platform_store *command_platform(const struct command_line *line);
/* Opens it for a command that reads a little at a time, and returns what fails. The caller closes
 * it, and may open it again when another file has taken its place. */
MUST_CHECK enum status command_open_platform(const struct command_line *line,
                                             struct platform_store **store, struct error *error);
/* The same as command_platform; a database that is not there is made. */
struct platform_store *command_make_platform(const struct command_line *line);

/* Gives a store that was opened to the line; NULL is fine. */
void command_keep_platform(const struct command_line *line, struct platform_store *store);
void command_keep_odds(const struct command_line *line, struct odds_store *store);

/* Ends the process, with a line on stderr, once the log of the SQLite `file` has grown too far
 * while it reads, or, where `file` is NULL, when its output is not taken for 120 timeouts. */
void command_bound_reading(const struct command_line *line, const char *file, uint32_t timeout_ms);

/* How to call the program in a hint that works as printed: "croupier", or "croupier -c FILE". It
 * lives until the command has returned. */
const char *command_program(const struct command_line *line);
