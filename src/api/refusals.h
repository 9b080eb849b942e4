#pragma once

#include "admission/admission.h"

/*
 * The customers whose requests were refused with 403 or 429 in the last hour, with the reasons, so
 * that an operator can answer their questions.
 *
 * The table has a row for each customer, reason and key prefix. Only known customers have rows, so
 * strangers cannot fill it. A full table (REFUSALS_MAX rows) reuses the row with the oldest last
 * refusal. It always takes about 700 KB, and a restart empties it.
 *
 * Only a refused request costs anything: a short lock and a look-up. Threads: any.
 */
#define REFUSALS_MAX 4096

struct refusals;
struct refusals *refusals_create(void);
void refusals_destroy(struct refusals **refusals);

/* Notes a refusal of a known customer, when `error` is of those. `key` is the prefix of its key, or
 * "". */
void refusals_note(struct refusals *refusals, const char *customer_id,
                   const struct http_error *error, const char *key, const struct address *address,
                   int64_t now_ms);

struct refused {
    char customer_id[CUSTOMER_ID_SIZE];
    const struct http_error *error;
    char key[KEY_PREFIX_SIZE]; /* "": no key was supplied */
    struct address address;    /* of the last refused request */
    int64_t last_ms;
    uint64_t count; /* in the last hour, to within five minutes */
};

/* Lists refusals, of all customers where `customer_id` is NULL, the latest first, at most `most`.
 * Returns how many it listed. */
size_t refusals_list(struct refusals *refusals, const char *customer_id, int64_t now_ms,
                     struct refused *list, size_t most);
