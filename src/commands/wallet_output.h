#ifndef CROUPIER_COMMANDS_WALLET_OUTPUT_H
#define CROUPIER_COMMANDS_WALLET_OUTPUT_H

#include "cli/command.h"
#include "cli/document.h"
#include "records/ledger_entry.h"
#include "stores/ledger_audit.h"

/* Output that the commands about the ledger share (wallet.c, books.c, usage.c). */

/* Prints what is written so far, of a document that may be long. */
void wallet_flush(struct buffer *text);

/* Proves the ledger of the configured store, all of it, as `wallet verify` does. False: it is not
 * sound, or cannot be proved, which has been said, also as JSON where that is asked for. */
MUST_CHECK bool wallet_prove(const struct command_line *line, struct audit_result *result);

/* The exit code. Everything was written, or it counts as a failure: half an export must not look
 * like a whole one. */
int wallet_finish(const struct command_line *line);

#endif
