#pragma once

#include "operator/field.h"
#include "records/usage.h"
#include "stores/platform_sums.h"

/* The fields of what the ledger and the counts of usage have, for commands and the console. */

/* Fields of struct ledger_transaction: those of all, and those of an entry as well. */
extern const struct field ledger_transaction_fields[], ledger_entry_fields[];

/* The members of a transaction, into an object that is open. */
void wallet_write_transaction(struct json_writer *json,
                              const struct ledger_transaction *transaction);
/* A ledger_transaction_visitor: writes an entry as an object. */
bool wallet_list_entry(void *json, const struct ledger_transaction *entry);
/* The members of all that is known of an id. */
void wallet_write_fact(struct json_writer *json, const struct ledger_fact *fact);

/* Fields of struct usage_record: the requests of a customer, a day and a group of routes. */
extern const struct field usage_request_fields[];
/* Visitors, which write a row of this or of the next as an object. */
bool usage_list_requests(void *json, const struct usage_record *record);
bool usage_list_movement(void *json, const struct ledger_sum *sum);

/* Fields of struct ledger_sum: the movements of a customer, a day and a currency, */
extern const struct field usage_movement_fields[];
/* and what was played at a game or in a round. The fields from LEDGER_PLAY_AT on are the sums
 * alone. */
#define LEDGER_PLAY_AT 5
extern const struct field ledger_play_fields[];

/* Fields of struct ledger_round. */
extern const struct field ledger_round_fields[];
