#pragma once

#include <stddef.h>

/*
 * Allocation. The memory_* calls never return NULL: when the machine has no memory left for a small
 * object there is no better answer than to stop, say so and be restarted (as Valkey and PgBouncer
 * do). Sizes that come from outside are bounded before they get here.
 *
 * Two lifetimes only: x_create and x_destroy(struct x **), or something freed in bulk with its
 * owner. Threads: any.
 */

void *memory_alloc(size_t size) __attribute__((malloc, returns_nonnull));
void *memory_alloc_zeroed(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *memory_resize(void *memory, size_t size) __attribute__((returns_nonnull));
char *memory_copy_string(const char *string) __attribute__((malloc, returns_nonnull));
char *memory_format(const char *format, ...)
    __attribute__((malloc, returns_nonnull, format(printf, 1, 2))); /* as printf writes it */
void *memory_copy(const void *bytes, size_t size) __attribute__((malloc, returns_nonnull));

/* Gives memory back; NULL is fine. */
void memory_free(void *memory);

/* Returns the pointer that is at `place`, and puts NULL there: for x_destroy(struct x **place). */
void *memory_take(void *place);

/* The `type` whose `member` is at `pointer`. */
#define CONTAINER_OF(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))
