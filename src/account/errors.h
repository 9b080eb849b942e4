#pragma once

#include "account/error_rows.h"
#include "http/errors.h"
