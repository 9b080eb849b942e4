#pragma once

#include "base/strict_json.h"
#include "wallet/decision.h"

/*
 * Decodes a wallet request into a `struct wallet_request`; strict, because a request that is
 * misunderstood moves money. Pure. Threads: any.
 *
 * In this order: the content type is application/json and the body is one JSON object without two
 * members of one name, however escaped (else INVALID); every name is one of the wallet's (else
 * UNKNOWN_FIELD); every value has its type and bounds, and the operation has exactly its fields
 * (else INVALID). An amount is digits alone: no sign, fraction, exponent or leading zero.
 */
/* The kind of author: customers and providers have different fields (docs/wallet.md,
 * docs/providers.md). */
enum wallet_client { WALLET_CUSTOMER, WALLET_PROVIDER };

/* Fills in `request` on STRICT_JSON_OK, but for its owner, which no body names. Else leaves it
 * untouched and sets `fault` to the reason. */
MUST_CHECK enum strict_json wallet_request_decode(struct text content_type, struct text body,
                                                  enum wallet_client client,
                                                  struct wallet_request *request,
                                                  struct strict_json_fault *fault);
