#pragma once

#include "http/http.h"
#include "launch/error_rows.h"
