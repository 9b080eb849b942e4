/* The problems of a configuration, as lines for people. */
#include "config/problems.h"

void problems_add(struct problems *problems, enum status status, const char *origin,
                  const struct error *error)
{
    if (problems->count++ == 0)
        problems->status = status;
    if (problems->count > PROBLEMS_SHOWN_MAX)
        return;
    size_t start = problems->lines.size;
    buffer_append_format(&problems->lines, "%s%s: %s", start > 0 ? "\n" : "", origin, error->text);
    for (size_t i = start + (start > 0 ? 1 : 0); i < problems->lines.size; i++)
        if ((unsigned char)problems->lines.data[i] < ' ' || problems->lines.data[i] == 0x7F)
            problems->lines.data[i] = '?'; /* a variable's name may have anything */
}
