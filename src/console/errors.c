/* The rows of errors.h as objects. */
#include "console/errors.h"

HTTP_ERROR_TABLE(console, CONSOLE_ERRORS);
