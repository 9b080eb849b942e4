#pragma once

#include "console/error_rows.h"
#include "http/errors.h"
