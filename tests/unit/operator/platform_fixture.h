#pragma once

/* A platform store of each test's own, for the tests of what operators do to it. */
#include <unistd.h>

#include "operator/resource.h"
#include "test_directory.h"
#include "tests.h"

#define NOW_MS 1763700000000 /* 2025-11-21T04:40:00Z */

struct fixture {
    char directory[TEST_DIRECTORY_SIZE];
    struct platform_store *store;
    struct error error;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    char uri[128];
    uint32_t before;
    uint32_t after;
    test_directory_make(fixture->directory);
    (void)snprintf(uri, sizeof uri, "sqlite:%s/p.db", fixture->directory);
    struct platform_store_options options = {.uri = uri, .timeout_ms = 5000, .create = true};
    if (platform_store_open(&fixture->store, &options, &fixture->error) != STATUS_OK ||
        platform_store_migrate(fixture->store, &before, &after, &fixture->error) != STATUS_OK)
        fail_msg("%s", fixture->error.text);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    char path[128];
    platform_store_close(&fixture->store);
    (void)snprintf(path, sizeof path, "%s/p.db", fixture->directory);
    (void)unlink(path);
    assert_int_equal(rmdir(fixture->directory), 0);
    free(fixture);
    return 0;
}

#define OK(call) ASSERT_OK(call, fixture->error)

#define REFUSED(call, expected, words)                                        \
    do {                                                                      \
        assert_int_equal((call), (expected));                                 \
        if (strstr(fixture->error.text, (words)) == NULL)                     \
            fail_msg("'%s' does not say '%s'", fixture->error.text, (words)); \
    } while (0)

/* A record as a document, without spaces. Freed by the caller. */
static inline struct buffer document_of(const struct resource *resource, const void *record)
{
    struct buffer text = {0};
    struct json_writer json = {.out = &text};
    resource_write(resource, record, &json);
    (void)buffer_string(&text);
    return text;
}
