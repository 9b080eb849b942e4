#pragma once

#include "account/account.h"
#include "admission/denials.h"
#include "config/config.h"
#include "wallet/ledger.h"

/* The parts of the service that the console shows; all borrowed. */
struct console_sources {
    struct odds_store *odds;
    struct sports *sports;
    struct ledger *ledger;
    const struct metrics *metrics;
    struct denials *denials;
    struct account *account;
};
