#ifndef CROUPIER_CONFIG_PROBLEMS_H
#define CROUPIER_CONFIG_PROBLEMS_H

#include "base/status.h"
#include "base/text.h"

/* How many are kept as lines; the others are counted. */
#define PROBLEMS_SHOWN_MAX 20

/* All that is wrong with a configuration, in the order in which it is found. */
struct problems {
    struct buffer lines; /* one each, as many as somebody reads at once */
    unsigned count;
    enum status status; /* of the first; OK: there is none */
};

/* `origin`: where it was written ("croupier.conf:12: [odds] timeout_ms"). */
void problems_add(struct problems *problems, enum status status, const char *origin,
                  const struct error *error);

#endif
