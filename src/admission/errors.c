/* The rows of errors.h as objects. */
#include "admission/errors.h"

HTTP_ERROR_TABLE(admission, ADMISSION_ERRORS);
