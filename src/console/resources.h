#pragma once

#include "console/call.h"
#include "operator/resource.h"

/* Handlers of what every resource has, by the resource of the call's route. */
console_handler console_list, console_show, console_add, console_change, console_remove;

/* Handlers of one resource each: they issue and revoke keys and tokens, block players, give links
 * to operators, and end sessions. */
console_handler console_issue_key, console_revoke_key, console_list_players, console_block_player,
    console_add_operator, console_link_operator, console_end_session, console_issue_token,
    console_revoke_token;

/* ---- for handlers of what a resource does otherwise ------------------------------------------ */

#define CONSOLE_REQUIRED_MAX 2
struct console_making {
    const char *required[CONSOLE_REQUIRED_MAX]; /* the fields that the body must have; the first is
                                                 * the record's own name */
    resource_editor *edit;                      /* as in struct resource_edit; may be NULL */
    const void *context;
};

/* Makes the record of the call from the body; a refusal names the field. */
MUST_CHECK enum status console_make(struct console_call *call, const struct console_making *making,
                                    struct error *error);
/* Adds what was made, and makes the answer a 201. */
MUST_CHECK enum status console_insert(struct console_call *call, struct error *error);

/* Answers with the record of the call, and its tag. */
void console_answer(struct console_call *call);
/* One more member of that answer, which is seen this once: letters and digits. */
void console_answer_once(struct console_call *call, const char *name, struct text value);
