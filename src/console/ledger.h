#pragma once

#include "console/call.h"

/* The ledger's work, the results of the last verifications, and a verification from the console. */
console_handler console_ledger, console_verify;
