#ifndef CROUPIER_COMMANDS_PLATFORM_H
#define CROUPIER_COMMANDS_PLATFORM_H

#include "cli/command.h"
#include "stores/platform.h"

/*
 * Opening the platform store for commands, and reporting its refusals.
 */

/* Opens the store that the configuration names; prints the refusal and returns false. With `create`
 * the database is made when it is not there. Changes are signed with the command and the user who
 * logged in, also behind sudo and su (platform_store_act_as). */
MUST_CHECK bool command_open_platform(const struct command_line *line, bool create,
                                      struct platform_store **store);

/* Ends the process, with a line on stderr, once the log of the SQLite `file` has grown too far
 * while it reads, or, where `file` is NULL, when its output is not taken for 120 timeouts. */
void command_bound_reading(const struct command_line *line, const char *file, uint32_t timeout_ms);

/* For a verb that failed: prints the error and returns EXIT_USAGE when a word of the line is
 * malformed (STATUS_INVALID), EXIT_REFUSED when the stores refused. */
int command_fail(const struct command_line *line, enum status status, const struct error *error);

/* How to call the program in a hint that works as printed: "croupier", or "croupier -c FILE". */
#define PROGRAM_TEXT_SIZE 256
void command_program(const struct command_line *line, char out[PROGRAM_TEXT_SIZE]);

#endif
