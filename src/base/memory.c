/* Allocation that does not fail; see memory.h. */
#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *memory_required(void *memory, size_t size)
{
    if (memory == NULL) {
        (void)fprintf(stderr, "croupier: out of memory: could not allocate %zu bytes\n", size);
        abort();
    }
    return memory;
}

void *memory_alloc(size_t size)
{
    return memory_required(malloc(size > 0 ? size : 1), size);
}

void *memory_alloc_zeroed(size_t count, size_t size)
{
    return memory_required(calloc(count > 0 ? count : 1, size > 0 ? size : 1), count * size);
}

void *memory_resize(void *memory, size_t size)
{
    return memory_required(realloc(memory, size > 0 ? size : 1), size);
}

char *memory_copy_string(const char *string)
{
    return memory_copy(string, strlen(string) + 1);
}

char *memory_format(const char *format, ...)
{
    char *made = NULL;
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(&made, format, arguments);
    va_end(arguments);
    return memory_required(size < 0 ? NULL : made, 0);
}

void *memory_copy(const void *bytes, size_t size)
{
    void *copy = memory_alloc(size);
    if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

void memory_free(void *memory)
{
    free(memory);
}

void *memory_take(void *place)
{
    void *taken;
    memcpy(&taken, place, sizeof taken);
    memset(place, 0, sizeof taken);
    return taken;
}
