#pragma once

#include "console/call.h"

/* A provider's secrets, which come in or are made here and are shown once at most, and a trial
 * launch. */
console_handler console_add_provider, console_add_secret, console_retire_secret,
    console_try_provider;
