#ifndef CROUPIER_ADMISSION_DENIALS_H
#define CROUPIER_ADMISSION_DENIALS_H

#include "admission/admission.h"

/*
 * Which customers were denied in the last hour, and why: for an operator who is asked by one.
 *
 * A row for each customer, reason and key that it was tried with. Only whose key or policy is known
 * has one, so strangers cannot fill the table; of more rows than DENIALS_MAX the one that was
 * denied last longest ago goes. About 700 KB, whatever happens; nothing is kept over a restart.
 *
 * Only a request that is denied pays: a short lock and a look-up. Threads: any.
 */
#define DENIALS_MAX 4096

struct denials;
struct denials *denials_create(void);
void denials_destroy(struct denials **denials);

/* The customer is known. `key`: its first characters, or "". */
void denials_note(struct denials *denials, const char *customer_id, enum admission_denial reason,
                  const char *key, const struct address *address, int64_t now_ms);

struct denied {
    enum admission_denial reason;
    char key[KEY_PREFIX_SIZE]; /* "": there was none */
    struct address address;    /* that it came from last */
    int64_t last_ms;
    uint64_t count; /* in the last hour, to within five minutes */
};

/* Those of a customer, the last denied first, `most` at most; how many there are is returned. */
size_t denials_list(struct denials *denials, const char *customer_id, int64_t now_ms,
                    struct denied *list, size_t most);

#endif
