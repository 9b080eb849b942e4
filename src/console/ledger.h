#ifndef CROUPIER_CONSOLE_LEDGER_H
#define CROUPIER_CONSOLE_LEDGER_H

#include "console/call.h"

/* What the ledger does, and whether it is whole: how the last verifications ended, and one that is
 * run from here. */
console_handler console_ledger, console_verify;

#endif
