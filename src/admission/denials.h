#pragma once

#include "admission/admission.h"

/*
 * The customers that were denied in the last hour, with the reasons, so that an operator can answer
 * their questions.
 *
 * The table has a row for each customer, reason and key prefix. Only known customers have rows, so
 * strangers cannot fill it. A full table (DENIALS_MAX rows) reuses the row with the oldest last
 * denial. It always takes about 700 KB, and a restart empties it.
 *
 * Only a denied request costs anything: a short lock and a look-up. Threads: any.
 */
#define DENIALS_MAX 4096

struct denials;
struct denials *denials_create(void);
void denials_destroy(struct denials **denials);

/* Notes a denial of a known customer. `key` is the prefix of its key, or "". */
void denials_note(struct denials *denials, const char *customer_id, enum admission_denial reason,
                  const char *key, const struct address *address, int64_t now_ms);

struct denied {
    enum admission_denial reason;
    char key[KEY_PREFIX_SIZE]; /* "": no key was supplied */
    struct address address;    /* of the last denied request */
    int64_t last_ms;
    uint64_t count; /* in the last hour, to within five minutes */
};

/* Lists a customer's denials, the latest first, at most `most`. Returns how many it listed. */
size_t denials_list(struct denials *denials, const char *customer_id, int64_t now_ms,
                    struct denied *list, size_t most);
