/* See usage.h. */
#include "records/usage.h"

static const char *const names[USAGE_GROUP_COUNT] = {
    [USAGE_SPORTS] = "sports", [USAGE_GAMES] = "games",     [USAGE_LAUNCH] = "launch",
    [USAGE_WALLET] = "wallet", [USAGE_ACCOUNT] = "account", [USAGE_OTHER] = "other",
};

const struct enum_names usage_groups = ENUM_NAMES(names);

int usage_compare(const void *record, const void *other)
{
    const struct usage_record *a = record;
    const struct usage_record *b = other;
    int order = strcmp(a->customer_id, b->customer_id);
    if (order == 0)
        order = (a->day > b->day) - (a->day < b->day);
    return order != 0 ? order : (int)a->group - (int)b->group;
}
