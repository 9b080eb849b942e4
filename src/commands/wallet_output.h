#pragma once

#include "cli/command.h"
#include "operator/field.h"
#include "stores/ledger_audit.h"
#include "stores/platform_records.h"

/* Output of the commands about the ledger: wallet.c, books.c, usage.c and backup.c share it. */

/* Prints a row of a long answer at once: a value of the array that is open in `json`, else (NULL) a
 * line. A NULL record is the titles, for people alone. False: standard output fails. */
bool wallet_print_row(const struct command_line *line, struct json_writer *json,
                      const struct field *fields, const void *record);

/* Refuses an id, unless it is NULL, that no record has. */
void wallet_require(const struct command_line *line, struct platform_store *store,
                    const struct record_table *table, const char *id);

/* Prints "1 entry of 1 player": what was verified. */
void wallet_print_extent(const struct audit_result *result);

/* Verifies the whole ledger of the configured store, as `wallet verify` does. A ledger that is
 * not sound, or cannot be verified, is a refusal, also as JSON where that is asked for. */
void wallet_verify_whole(const struct command_line *line, struct audit_result *result);
