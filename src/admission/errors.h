#pragma once

#include "admission/error_rows.h"
#include "http/http.h"
