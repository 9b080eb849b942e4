#pragma once

#include "base/json_writer.h"
#include "base/progress.h"
#include "config/config.h"

/*
 * The command line as a table: groups, commands, their options and help. One parser serves every
 * command; every level has --help with examples. (main.c holds the table of groups, nothing else.)
 *
 *   croupier [GROUP] COMMAND [OPTIONS] [ARGUMENTS]
 *
 * Every command takes `-c FILE`, `--json` and `--help`; `croupier help [GROUP [COMMAND]]` is the
 * same help, `croupier help settings` the table of settings. Options may stand before or after
 * arguments, as `--name value` or `--name=value`; `--` ends them. Exit: 0 done, 1 refused or
 * failed, with one clear line on stderr ("croupier customer add: …"), 2 usage. A value that is
 * malformed independently of the stores is usage; a refusal by the stores, the system or a file's
 * content is 1. An unsound configuration is usage too, with a line for each problem.
 */

enum { EXIT_DONE = 0, EXIT_REFUSED = 1, EXIT_USAGE = 2 };

struct command_option {
    const char *name;  /* "cidr", without dashes; NULL ends a list */
    const char *value; /* name of the value in help ("CIDR"); NULL: a flag */
    const char *help;  /* one line */
    bool repeatable;
};

/* Writes the options that a group's subject gives a command; returns how many, at most `room`. */
#define COMMAND_OPTIONS_MAX 16
typedef size_t command_option_maker(const void *subject, struct command_option *out, size_t room);

struct command_line; /* the given options and arguments, checked against the table */

typedef void command_runner(const struct command_line *line);

/* Made of the texts in help/ (tools/embed_help.py). */
struct command_help {
    const char *summary;  /* one line, for the list */
    const char *details;  /* paragraphs for --help: purpose, units, defaults; NULL: none */
    const char *examples; /* for --help: lines that work as printed; NULL: none */
    const struct command_option *options; /* NULL: none */
};

struct command {
    const char *name;      /* "add"; NULL ends a list */
    const char *arguments; /* "SPORT FILE|-"; "SPORT [EVENT]": one or two; "CUSTOMER GAME…": any;
                            * "bash|zsh", lower case: one of these words */
    const struct command_help *help;
    command_option_maker *make_options; /* in place of those of `help`; NULL: none */
    command_runner *run;
};

struct command_group {
    const char *name; /* "customer"; "" for commands without a group; NULL ends the table */
    const char *summary;
    const struct command *commands;
    const void *subject; /* the resource that they share */
};

/* Runs `croupier completion SHELL`: prints the completion of every command for a shell. */
command_runner command_run_completion;

int command_main(const struct command_group *groups, int argc, char **argv);

/* ---- for the commands ------------------------------------------------------------------------ */
char *const *command_words(const struct command_line *line); /* all, from the program's to NULL */
const char *command_argument(const struct command_line *line,
                             size_t index); /* NULL beyond the end */
size_t command_argument_count(const struct command_line *line);
const void *command_subject(const struct command_line *line); /* of the group */
/* The last value given, or NULL. Flags give "". */
const char *command_option(const struct command_line *line, const char *name);
/* The same, and `otherwise` where it is not given. */
const char *command_option_or(const struct command_line *line, const char *name,
                              const char *otherwise);
size_t command_option_count(const struct command_line *line, const char *name);
const char *command_option_at(const struct command_line *line, const char *name, size_t index);
bool command_json(const struct command_line *line);
/* "customer add"; cut off where it does not fit. */
void command_name(const struct command_line *line, char *out, size_t room);

/* The file of -c, or NULL: for commands that call config_load with their own overrides. */
const char *command_config_path(const struct command_line *line);

/*
 * The line owns what its command opens, until the command has ended. Then everything is released,
 * the newest first. A refusal ends the command where it stands (command_quit and its callers), so a
 * command holds nothing that the line does not own while it calls what may refuse.
 */
#define COMMAND_KEPT_MAX 16
typedef void command_release(void *resource);
void command_keep(const struct command_line *line, command_release *release, void *resource);
/* The configuration that -c names (or the default), the same in every call. If it is unsound, all
 * that is wrong with it is printed, and the command ends with EXIT_USAGE. */
const struct config *command_config(const struct command_line *line);
/* Shows how far something long is, until command_end_progress, a message or the command's end. */
const struct progress_watch *command_watch(const struct command_line *line);
void command_end_progress(const struct command_line *line);
/* An empty buffer, which is wiped in the end: it may hold a secret. */
struct buffer *command_buffer(const struct command_line *line);
/* Reads all of a file, or of standard input ("-"), up to one byte more than `most`, so that the
 * caller can tell that it is too much; `name` is what to call it in errors. Blocks. */
struct buffer *command_read(const struct command_line *line, const char *path, size_t most,
                            const char **name);
/* The document of --json, one a line; NULL without --json. It is printed when the command is done,
 * with all ended that is open in it, or before that by command_print_document. */
struct json_writer *command_document(const struct command_line *line, enum json_layout layout);
/* The same, in which an object is begun. */
struct json_writer *command_object(const struct command_line *line, enum json_layout layout);
void command_print_document(const struct command_line *line);
/* Prints what a buffer holds, and clears it. False: standard output fails. */
bool command_print(struct buffer *text);
/* Prints what is written of it so far: it may be long. False: standard output fails. */
bool command_print_so_far(const struct command_line *line);
/* A document that is an object of numbers. A row without a name ends them. False: no --json. */
struct command_count {
    const char *name;
    uint64_t count;
    const char *shown; /* for people */
};
bool command_write_counts(const struct command_line *line, const struct command_count *counts,
                          enum json_layout layout);

/* ---- refusals: they end the command, and do not return --------------------------------------- */

/* "croupier customer add: MESSAGE" on stderr; ends the command with EXIT_REFUSED or EXIT_USAGE. */
_Noreturn void command_refuse(const struct command_line *line, const char *format, ...)
    PRINTF_LIKE(2, 3);
_Noreturn void command_usage(const struct command_line *line, const char *format, ...)
    PRINTF_LIKE(2, 3);
/* The same without a message. */
_Noreturn void command_quit(const struct command_line *line, int code);
/* A message like a refusal's, after which the command goes on. */
void command_complain(const struct command_line *line, const char *format, ...) PRINTF_LIKE(2, 3);

/* A message that follows whatever refusal ends the command from now on. */
void command_last_words(const struct command_line *line, const char *message);

/* An error for a call whose status command_require judges: it returns if that is STATUS_OK, else it
 * refuses with the error's text. command_require(line, f(…, command_error(line))); */
struct error *command_error(const struct command_line *line);
void command_require(const struct command_line *line, enum status status);
/* The same of a verb that judges words of the line: STATUS_INVALID is EXIT_USAGE. */
void command_require_verb(const struct command_line *line, enum status status);

/* An option that is a number from `least` to `most`; `otherwise` where it is not given. */
uint64_t command_number(const struct command_line *line, const char *option, uint64_t least,
                        uint64_t most, uint64_t otherwise);
/* A hint for people on stderr ("note: …"); silent with --json. */
void command_note(const struct command_line *line, const char *format, ...) PRINTF_LIKE(2, 3);
/* Is a person there to be asked? Then command_ask puts the question; true: the answer is "yes". */
bool command_at_terminal(void);
bool command_ask(const char *format, ...) PRINTF_LIKE(1, 2);

/*
 * A plain table for people: columns sized to their content, two spaces between, a header line,
 * numbers as given. Control characters are shown as '?'. Where it is printed on a terminal that is
 * too narrow, the widest columns are cut and end in "…", the first after all others.
 */
#define TABLE_COLUMNS_MAX 16
struct table;
/* `headers` ends in NULL. */
struct table *table_create(const char *const *headers);
/* TABLE_ROW(table, "cell", "cell"): one for each column. */
#define TABLE_ROW(table_, ...) table_row((table_), (const char *const[]){__VA_ARGS__})
void table_row(struct table *table, const char *const *cells);
void table_cell(struct table *table, const char *text); /* one after the other, instead of rows */
void table_print(struct table **table, FILE *out);      /* and destroys */
/* Within `room` columns, whatever `out` is. */
void table_print_within(struct table **table, size_t room, FILE *out);
void table_destroy(struct table **table); /* unprinted; a NULL table is fine */
