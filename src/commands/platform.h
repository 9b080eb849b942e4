#ifndef CROUPIER_COMMANDS_PLATFORM_H
#define CROUPIER_COMMANDS_PLATFORM_H

#include "cli/command.h"
#include "stores/platform.h"

/*
 * Opening the platform store for commands, and reporting its refusals.
 */

/* Opens the store that the configuration names, until the command has returned. NULL: the refusal
 * is printed. Changes are signed with the command and the user who logged in, also behind sudo and
 * su (platform_store_act_as). */
MUST_CHECK struct platform_store *command_platform(const struct command_line *line);
/* The same; a database that is not there is made. */
MUST_CHECK struct platform_store *command_make_platform(const struct command_line *line);

/* Ends the process, with a line on stderr, once the log of the SQLite `file` has grown too far
 * while it reads, or, where `file` is NULL, when its output is not taken for 120 timeouts. */
void command_bound_reading(const struct command_line *line, const char *file, uint32_t timeout_ms);

/* How to call the program in a hint that works as printed: "croupier", or "croupier -c FILE". It
 * lives until the command has returned. */
const char *command_program(const struct command_line *line);

#endif
