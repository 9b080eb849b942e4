#pragma once

#include "operator/resource.h"

/*
 * Reads a JSON object as settings of a resource (operator/resource.h), by its table of fields. A
 * client may send back the document that it got. Strings and numbers are texts; true and false
 * are yes and no; a list is its items joined by commas; a rate may be an object; null clears a
 * field that may be empty, and leaves any other as it is.
 */
#define CONSOLE_SETTINGS_MAX 16

struct console_settings {
    struct setting list[CONSOLE_SETTINGS_MAX + 1]; /* ended by a row without a name */
    size_t count;
    struct buffer texts[CONSOLE_SETTINGS_MAX];
};

/* STATUS_INVALID: it is no JSON object, a member is no field that may be set (by `add`, or by a
 * change), there twice, or no value of a field. `field` becomes the field's name, or "". Free the
 * settings in either case. */
MUST_CHECK enum status console_settings_read(const struct resource *resource, bool add,
                                             struct text body, struct console_settings *settings,
                                             char field[64], struct error *error);
void console_settings_free(struct console_settings *settings);
