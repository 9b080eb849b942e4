#ifndef CROUPIER_CLI_COMMAND_LINE_H
#define CROUPIER_CLI_COMMAND_LINE_H

#include "cli/command.h"

/*
 * What the parser (command.c) and the help texts (command_help.c) share. Private to this folder.
 */

struct given_option {
    const struct command_option *option; /* a row of the command's table or of the common one */
    const char *value;                   /* "" for a flag */
};

struct command_line {
    const struct command_group *groups; /* the whole table */
    const struct command_group *group;  /* NULL until it is known */
    const struct command *command;      /* NULL until it is known */
    bool help;                          /* `croupier help …`: the arguments are the topic */
    const char **arguments;
    size_t argument_count;
    struct given_option *options;
    size_t option_count;
    char problem[ERROR_TEXT_SIZE]; /* the first thing that is wrong with the line, or "" */
};

extern const struct command_option command_common_options[]; /* -c FILE, --json, --help … */

/* A group of this name, or NULL. Several rows of the table may have one name: their commands count
 * as one group, and this is the first of them. */
const struct command_group *command_find_group(const struct command_group *groups,
                                               const char *name);
/* The command of this name in the group of that name ("" for none), or NULL. With its group row. */
const struct command *command_find(const struct command_group *groups, const char *group,
                                   const char *name, const struct command_group **found);

/* Does the help for what the line names (a command, a group, or everything). */
void command_print_help(const struct command_line *line, FILE *out);

/* `croupier help settings`: every setting with its default; an array with --json. */
void command_print_settings(bool json, FILE *out);

/*
 * The nearest of some names to what was written, for "did you mean". Offer the names one by one;
 * the nearest one is in `name`, NULL while none is near enough.
 */
struct nearest {
    const char *written;
    const char *name;
    unsigned distance;
};
void nearest_offer(struct nearest *nearest, const char *name);

#endif
