#ifndef CROUPIER_OPERATOR_CUSTOMERS_H
#define CROUPIER_OPERATOR_CUSTOMERS_H

#include "operator/policy_text.h"

/*
 * What an operator can do to customers, whatever face it is done through: texts in, records out.
 * Blocks as the store does. Refusals are for the person who gave the texts: they name what is wrong
 * and never a path.
 */

struct customer_settings {
    const char *name;               /* NULL: leave as it is */
    const char *sports;             /* "all", "none", "cricket,tennis"; NULL: leave (new: all) */
    const char *rate;               /* "600/60", "off"; NULL: leave (new: off) */
    const char *const *cidr_values; /* with replace_cidrs: the whole new list, possibly empty */
    size_t cidr_count;
    bool replace_cidrs;
    enum setting_switch casino; /* new: off */
    enum setting_switch enabled;
};

/* `name` is required. The record is the caller's to free (customer_record_free). */
MUST_CHECK enum status customers_add(struct platform_store *store,
                                     const struct customer_settings *settings, int64_t now_ms,
                                     struct customer_record *record, struct error *error);

MUST_CHECK enum status customers_get(struct platform_store *store, const char *id,
                                     struct customer_record *record, struct error *error);

/* Changes what is given and leaves the rest, also when somebody else changes the rest meanwhile.
 * A row that cannot be read (`usable` is false) is only changed by giving all of it: what it should
 * have said is not for the program to guess. */
MUST_CHECK enum status customers_change(struct platform_store *store, const char *id,
                                        const struct customer_settings *settings,
                                        struct customer_record *record, struct error *error);

/* {"id", "name", "enabled", "cidrs", "sports", "rate", "casino", "keys", "created_at"}; and
 * "usable": false where the stored row makes no sense. */
yyjson_mut_val *customer_json(yyjson_mut_doc *doc, const struct customer_record *record,
                              size_t live_keys);

/* How many live keys (neither revoked nor expired) each customer has: counted once, then asked. */
struct key_counts;
MUST_CHECK enum status key_counts_create(struct key_counts **counts, struct platform_store *store,
                                         const char *customer_id, int64_t now_ms,
                                         struct error *error); /* NULL: of all customers */
size_t key_counts_of(const struct key_counts *counts, const char *customer_id);
void key_counts_destroy(struct key_counts **counts);

#endif
