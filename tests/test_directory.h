/*
 * A directory of a test's own, below TMPDIR (tools/in_memory puts that into memory) or /tmp.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEST_DIRECTORY_SIZE 64

/* Ends the test program when there is none: nothing could be tested. */
static inline void test_directory_make(char directory[TEST_DIRECTORY_SIZE])
{
    static const char name[] = "/croupier-test-XXXXXX";
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || strlen(parent) + sizeof name > TEST_DIRECTORY_SIZE)
        parent = "/tmp";
    (void)snprintf(directory, TEST_DIRECTORY_SIZE, "%s%s", parent, name);
    if (mkdtemp(directory) == NULL) {
        perror(directory);
        abort();
    }
}

/* With all that is in it; false: it is still there. */
static inline bool test_directory_remove(const char *directory)
{
    char command[TEST_DIRECTORY_SIZE + 16];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command) == 0; /* NOLINT(cert-env33-c) */
}
