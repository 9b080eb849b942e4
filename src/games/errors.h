#pragma once

#include "base/strict_json.h"
#include "games/error_rows.h"
#include "http/http.h"

/* The answer when the ledger's store fails with this status. */
const struct http_error *games_ledger_error(enum status status);

/* Refuses a request that could not be read: unknown_field or invalid_request, in these words. */
void games_reply_fault(struct http_request *request, enum strict_json fault, const char *message);
