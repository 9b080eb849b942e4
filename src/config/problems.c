/* The problems of a configuration, as lines for people. */
#include "config/problems.h"

void problems_add(struct problems *problems, enum status status, const char *origin,
                  const struct error *error)
{
    if (problems->count++ == 0)
        problems->status = status;
    if (problems->count > PROBLEMS_SHOWN_MAX)
        return;
    if (problems->lines.size > 0)
        buffer_append_char(&problems->lines, '\n');
    buffer_append_shown(&problems->lines,
                        text_of(origin)); /* a variable's name may have anything */
    buffer_append_string(&problems->lines, ": ");
    buffer_append_shown(&problems->lines, text_of(error->text));
}
