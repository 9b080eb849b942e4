#pragma once

#include "records/key.h"
#include "records/launch.h"
#include "records/operator.h"
#include "records/provider.h"
#include "records/trail.h"

/*
 * A visitor of records has a function for each kind that is wanted, and NULL for the others. A
 * function gets the struct of its kind, which is valid during the call. It returns false to see no
 * more, which is not an error.
 */
typedef bool record_function(void *context, const void *record);

struct record_visitor {
    record_function *see[RECORD_KIND_COUNT];
    void *context;
};
