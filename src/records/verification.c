/* See verification.h. */
#include "records/verification.h"

#include <stddef.h>

const char *verification_scope_name(enum verification_scope scope)
{
    static const char *const names[VERIFICATION_SCOPE_COUNT] = {
        [VERIFICATION_WHOLE] = "whole",
        [VERIFICATION_RECENT] = "recent",
    };
    return names[scope];
}

void verification_set_reason(struct verification_record *record, const char *reason)
{
    size_t size = 0;
    /* It may quote a damaged row, whose bytes no store has to take as text. */
    for (; reason[size] != '\0' && size + 1 < sizeof record->reason; size++)
        record->reason[size] = reason[size] >= ' ' && reason[size] <= '~' ? reason[size] : '?';
    record->reason[size] = '\0';
}
