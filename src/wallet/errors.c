/* The rows of errors.h as objects. */
#include "wallet/errors.h"

HTTP_ERROR_TABLE(wallet, WALLET_ERRORS);
