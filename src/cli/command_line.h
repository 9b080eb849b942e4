#pragma once

#include <setjmp.h>

#include "base/nearest.h"
#include "cli/command.h"

/*
 * Shared by the parser, the help texts and the runner. Only files of cli/ include this.
 */

/* ---- a line of progress (progress.c) -------------------------------------------------------- */

/*
 * Shows a person at a terminal how far long work is: a line on stderr that is rewritten about once
 * a second. If stderr is no terminal (a script, the log of a nightly job), it writes nothing. Work
 * of less than a second shows nothing. Starts as zeros.
 */
struct progress {
    uint64_t started_ms;
    uint64_t shown_ms;
    bool shown;
};

/* The function of a struct progress_watch (base/progress.h), whose context is the struct progress.
 * It shows "12000 of 50000 entries", without a total "copying players: 12000", and only `what`
 * where nothing is counted or all is done. It is cheap, so callers may call it often. */
void progress_show(void *progress, const char *what, uint64_t done, uint64_t total);

/* Leaves the line; the next thing that is done starts as zeros. */
void progress_end(struct progress *progress);

/* ---- the tables (command_table.c) ------------------------------------------------------------ */

extern const struct command_option command_common_options[]; /* -c FILE, --json, --help … */

/* The group of this name ("" for none), or NULL. */
const struct command_group *command_find_group(const struct command_group *groups,
                                               const char *name);
/* The command of this name in the group, or NULL. */
const struct command *command_find(const struct command_group *group, const char *name);
/* The option of this name, or NULL. `options` may be NULL. */
const struct command_option *command_find_option(const struct command_option *options,
                                                 struct text name);
/* A command's own options, or NULL; put into `made` where they are no table. */
const struct command_option *command_options(const struct command_group *group,
                                             const struct command *command,
                                             struct command_option made[COMMAND_OPTIONS_MAX + 1]);
/* Counts how many arguments a text such as "SPORT [EVENT]" means. */
void command_count_arguments(const char *arguments, size_t *least, size_t *most);

/* ---- the line (command_line.c) --------------------------------------------------------------- */

struct given_option {
    const struct command_option *option; /* a row of the command's table or of the common one */
    const char *value;                   /* "" for a flag */
};

/* The outcome of a command, and the resources that it owns. */
struct command_outcome {
    int code;
    jmp_buf end;                 /* where command_quit goes */
    struct error error;          /* the last one */
    const char *last_words;      /* NULL: none */
    const struct config *config; /* NULL: it was not loaded */
    struct buffer document;      /* of --json, and */
    struct json_writer json;     /* writes the document; zeros: there is none */
    struct progress progress;
    struct progress_watch watch; /* which shows it */
    struct {
        command_release *release;
        void *resource;
    } kept[COMMAND_KEPT_MAX];
    size_t kept_count;
};

struct command_line {
    char *const *words;                 /* as main got them */
    const struct command_group *groups; /* the whole table */
    const struct command_group *group;  /* NULL until it is known */
    const struct command *command;      /* NULL until it is known, as */
    const struct command_option *known; /* its options, and where some were made for it: */
    struct command_option made[COMMAND_OPTIONS_MAX + 1];
    bool help; /* `croupier help …`: the arguments are the topic */
    const char **arguments;
    size_t argument_count;
    struct given_option *options;
    size_t option_count;
    struct command_outcome *outcome;
    char problem[ERROR_TEXT_SIZE]; /* the first thing that is wrong with the line, or "" */
};

/* Takes the words apart. `arguments` and `options` have room for all of them. */
void command_line_read(struct command_line *line, int argc, char **argv);
/* `croupier help …`: the line takes the command that the arguments name. */
void command_line_read_topic(struct command_line *line);
/* Is the number of arguments what the command takes? Else it is the problem. */
void command_line_check_arguments(struct command_line *line);

/* ---- help (help.c) --------------------------------------------------------------------------- */

/* Does the help for what the line names (a command, a group, or everything). */
void command_print_help(const struct command_line *line, FILE *out);

/* `croupier help settings`: every setting with its default, as an array or, where `json` is NULL,
 * for people. */
void command_write_settings(struct json_writer *json, struct buffer *text);
