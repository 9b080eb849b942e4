#ifndef CROUPIER_OPERATOR_DOCUMENTS_H
#define CROUPIER_OPERATOR_DOCUMENTS_H

#include "base/json_writer.h"
#include "records/usage.h"
#include "stores/platform_ledger.h"

/* Documents of the ledger and of usage, for commands and the console. */

/* The members of a transaction, into an object that is open. */
void wallet_write_transaction(struct json_writer *json,
                              const struct ledger_transaction *transaction);

/* The requests of a customer, a day and a group of routes; the movements of a day and currency. */
void usage_write_requests(struct json_writer *json, const struct usage_record *record);
void usage_write_movement(struct json_writer *json, const struct ledger_sum *line);

#endif
