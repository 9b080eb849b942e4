#ifndef CROUPIER_COMMANDS_PLATFORM_H
#define CROUPIER_COMMANDS_PLATFORM_H

#include <yyjson.h>

#include "base/clock.h"
#include "cli/command.h"
#include "operator/policy_text.h"
#include "stores/platform.h"

/*
 * What the commands on the platform store share: opening it, and printing. Only commands_*.c
 * include this.
 */

/* Opens the store that the configuration names; prints the refusal and returns false. With `create`
 * the database is made when it is not there. */
MUST_CHECK bool command_open_platform(const struct command_line *line, bool create,
                                      struct platform_store **store);

/* What came of a verb that was not STATUS_OK: prints the error and returns EXIT_USAGE when a word
 * of the line is not what it must be (STATUS_INVALID), EXIT_REFUSED when the stores said no. */
int command_fail(const struct command_line *line, enum status status, const struct error *error);

/* Prints a document on stdout and frees it. */
void command_print_json(yyjson_mut_doc **doc);
/* The same with `value`, made of the document, as all of it. */
void command_print_value(yyjson_mut_doc *doc, yyjson_mut_val *value);

/*
 * `list` of anything: a JSON array with --json, else a table. Begin it, add what there is to the
 * one that is not NULL, end it; what was not STATUS_OK is told and nothing is printed.
 */
struct listing {
    yyjson_mut_doc *doc; /* with --json; else */
    struct table *table;
};
void listing_begin(struct listing *listing, const struct command_line *line,
                   const char *const *headers);
/* With --json: adds what `value` made of the document. */
void listing_add(struct listing *listing, yyjson_mut_val *value);
MUST_CHECK int listing_end(struct listing *listing, const struct command_line *line,
                           enum status status, const struct error *error);

/* How to call the program in a hint that works as printed: "croupier", or "croupier -c FILE". */
#define PROGRAM_TEXT_SIZE 256
void command_program(const struct command_line *line, char out[PROGRAM_TEXT_SIZE]);

/* SETTING_ON for --NAME, SETTING_OFF for --no-NAME; false (and printed) when both are given. */
MUST_CHECK bool command_switch(const struct command_line *line, const char *on, const char *off,
                               enum setting_switch *setting);

/* Cells for people: dates to the minute, in UTC; "-" for never. */
void table_time(struct table *table, int64_t time_ms);
void table_sports(struct table *table, sport_set sports);
void table_rate(struct table *table, const struct rate_limit *rate);

#endif
