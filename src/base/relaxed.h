#pragma once

#include <stdatomic.h>

/*
 * Atomic access that orders no other access: to counters, and to numbers that mean something by
 * themselves.
 */

#define relaxed_load(at) atomic_load_explicit((at), memory_order_relaxed)
#define relaxed_store(at, value) atomic_store_explicit((at), (value), memory_order_relaxed)
/* They return what was there before. */
#define relaxed_add(at, amount) atomic_fetch_add_explicit((at), (amount), memory_order_relaxed)
#define relaxed_subtract(at, amount) atomic_fetch_sub_explicit((at), (amount), memory_order_relaxed)
