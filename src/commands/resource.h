#pragma once

#include "cli/command.h"
#include "operator/resource.h"

/*
 * Commands on a resource of the platform store (operator/resource.h), the same for each: add, list,
 * show, set, enable, disable. A group's subject is a struct resource_commands; its fields make
 * the options, the tables and the documents.
 */

struct resource_commands {
    const struct resource *resource;
    const char *argument; /* the field that the argument of `add` sets */
    /* Prints the result of `add` (`added`) or `set` for people; NULL: all of the record. */
    void (*print)(const struct command_line *line, const void *record, bool added);
};
/* A `print` that says in a line which record it was. */
void resource_print_outcome(const struct command_line *line, const void *record, bool added);

/* Rows of the group's table: .run and .make_options. An argument of `list` says whose; `conduct` is
 * of a customer or provider. */
command_runner resource_run_add, resource_run_list, resource_run_show, resource_run_set,
    resource_run_enable, resource_run_disable, resource_run_remove, resource_run_conduct;
command_option_maker resource_add_options, resource_set_options;

/* add (`add`) or set, and then `edit` does to the record what no option says; NULL: nothing. */
void resource_run_settings(const struct command_line *line, bool add, resource_editor *edit,
                           const void *context);

/* ---- for other commands on a resource -------------------------------------------------------- */

/* Fills a record as the settings of the line of an `add` say, whose argument `at` is. Needs no
 * store. */
void resource_make_of_line(const struct command_line *line,
                           const struct resource_commands *commands, size_t at, void *record);

/* A list of another resource than the group's. With `none` an empty list is refused for people,
 * with that reason. */
void resource_run_list_of(const struct command_line *line, const struct resource *resource,
                          const char *none);

/* A list that a command makes by itself: begun, given each record (`context` is the listing), and
 * ended with what came of it, which prints all or refuses. It stays where it is. */
struct resource_listing {
    const struct resource *resource;
    struct json_writer *json; /* with --json; else */
    struct table *table;
    size_t count;
};
void resource_listing_begin(struct resource_listing *listing, const struct command_line *line,
                            const struct resource *resource);
record_function resource_listing_see;
void resource_listing_end(struct resource_listing *listing, const struct command_line *line,
                          enum status status);

/* "cus_7Qm2Zt0aXw9Lk3Rb is STATE." */
void resource_print_state(const struct resource *resource, const void *record, const char *state);

/* Prints a record, as a document or all of it for people. */
void resource_print(const struct command_line *line, const struct resource *resource,
                    const void *record);

/* ---- secrets that are shown once: keys, tokens ----------------------------------------------- */

/* Prints the secret of a new record, the document of which has it as the member `what`, wipes it,
 * and notes the record's id. Refuses if it could not be written, with the command that revokes it.
 */
void resource_print_issued(const struct command_line *line, const struct resource *resource,
                           const void *record, const char *what, char *secret, const char *revoke);

/* `before_ms`: when it was revoked before; 0: now. */
void resource_print_revoked(const struct command_line *line, const struct resource *resource,
                            const void *record, const char *name, int64_t before_ms);
