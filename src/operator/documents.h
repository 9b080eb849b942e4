#ifndef CROUPIER_OPERATOR_DOCUMENTS_H
#define CROUPIER_OPERATOR_DOCUMENTS_H

#include "base/json_writer.h"
#include "records/usage.h"
#include "stores/platform_ledger.h"

/* What commands and the console print alike of the ledger and of usage. */

/* The members of a transaction, into an object that is open. */
void wallet_write_transaction(struct json_writer *json,
                              const struct ledger_transaction *transaction);

/* The requests of a customer, a day and a group of routes; what was moved in a day and currency. */
void usage_write_requests(struct json_writer *json, const struct usage_record *record);
void usage_write_movement(struct json_writer *json, const struct ledger_sum *line);

#endif
