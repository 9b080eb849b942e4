#ifndef CROUPIER_OPERATOR_ADDRESSES_H
#define CROUPIER_OPERATOR_ADDRESSES_H

#include "operator/policy_text.h"

/*
 * What an operator can do to legacy addresses: exact client addresses that are admitted to sports
 * without a key. Blocks as the store does. A removed address is not there for an operator, and
 * adding it again starts afresh.
 */

struct address_settings {
    const char *sports; /* NULL: leave (new: all) */
    const char *rate;   /* NULL: leave (new: off) */
    enum setting_switch enabled;
};

/* STATUS_EXISTS when there is one already. */
MUST_CHECK enum status addresses_add(struct platform_store *store, const char *address,
                                     const struct address_settings *settings, int64_t now_ms,
                                     struct legacy_record *record, struct error *error);
MUST_CHECK enum status addresses_change(struct platform_store *store, const char *address,
                                        const struct address_settings *settings,
                                        struct legacy_record *record, struct error *error);
MUST_CHECK enum status addresses_remove(struct platform_store *store, const char *address,
                                        struct legacy_record *record, struct error *error);

/* {"address", "enabled", "sports", "rate", "created_at"}; and "usable": false where the stored row
 * makes no sense. */
yyjson_mut_val *address_json(yyjson_mut_doc *doc, const struct legacy_record *record);

#endif
