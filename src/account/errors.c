/* The rows of errors.h as objects. */
#include "account/errors.h"

HTTP_ERROR_TABLE(account, ACCOUNT_ERRORS);
