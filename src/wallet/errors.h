#pragma once

#include "http/http.h"
#include "wallet/error_rows.h"
