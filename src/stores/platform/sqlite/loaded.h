#ifndef CROUPIER_STORES_PLATFORM_SQLITE_LOADED_H
#define CROUPIER_STORES_PLATFORM_SQLITE_LOADED_H

#include "stores/platform/sqlite/cache.h"
#include "stores/platform_ledger.h"

/* What the begin of a batch loaded, as it is stored: its commit compares it with what it changes.
 * By the batch's own order. */

struct loaded_clearing {
    int64_t customer_number;
    int64_t balance_minor;
    bool found;
};

struct sqlite_loaded {
    struct cached_account accounts[LEDGER_BATCH_MAX]; /* of the players */
    struct loaded_clearing clearings[LEDGER_BATCH_MAX];
};

#endif
