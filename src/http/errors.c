/* The rows of errors.h as objects. */
#include "http/errors.h"

HTTP_ERROR_TABLE(http, HTTP_ERRORS);
