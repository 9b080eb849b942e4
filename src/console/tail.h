#pragma once

#include "console/call.h"

/* Tails of the ledger and of the audit trail (operator/tail.h), which may wait for the next row. */
console_handler console_ledger_tail, console_audit_tail;
