#pragma once

#include "console/call.h"
#include "operator/resource.h"

/* For handlers of what a resource does otherwise than console_add and console_show. */

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
