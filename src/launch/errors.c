/* The rows of errors.h as objects. */
#include "launch/errors.h"

HTTP_ERROR_TABLE(launch, LAUNCH_ERRORS);
