#pragma once

#include "account/account.h"
#include "api/refusals.h"
#include "config/config.h"
#include "wallet/ledger.h"

/* The parts of the service that the console shows; all borrowed. */
struct console_sources {
    struct odds_store *odds;
    struct sports *sports;
    struct ledger *ledger;
    const struct metrics *metrics;
    struct refusals *refusals;
    struct account *account;
};
