#pragma once

#include <stdbool.h>

/*
 * The nearest of some names to what was written, for "did you mean". Offer the names one by one;
 * the nearest one is in `name`, NULL while none is near enough. Threads: any, each with its own.
 */
struct nearest {
    const char *written;
    const char *name; /* as it was offered: not copied */
    unsigned distance;
};

/* Returns whether this name is nearer than all before it. */
bool nearest_offer(struct nearest *nearest, const char *name);
