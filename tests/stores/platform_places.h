#pragma once

/*
 * Places for the platform stores of tests: a factory for each engine makes the URI of an empty
 * store of its own, and clears it away. After the headers that cmocka.h wants before it.
 */
#include <ftw.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "../test_directory.h"
#include "tests.h"

/* Succeeds, or ends the test with the reason; where `fixture` has an `error`. */
#define OK(call) ASSERT_OK(call, fixture->error)

struct place {
    char directory[TEST_DIRECTORY_SIZE]; /* or the schema of a server's database */
    char uri[512];
};

static void sqlite_place(struct place *place)
{
    test_directory_make(place->directory);
    (void)snprintf(place->uri, sizeof place->uri, "sqlite:%s/platform.db", place->directory);
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *where)
{
    return remove(path);
}

static void sqlite_clear(struct place *place)
{
    assert_int_equal(nftw(place->directory, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* A schema in the database that TEST_POSTGRES_URI names (tests/servers.py starts one). */
static void postgres_do(const char *before, const char *schema, const char *after)
{
    char statement[128];
    PGconn *connection = PQconnectdb(getenv("TEST_POSTGRES_URI"));
    assert_int_equal(PQstatus(connection), CONNECTION_OK);
    (void)snprintf(statement, sizeof statement, "%s %s %s", before, schema, after);
    PQclear(PQexec(connection, "SET client_min_messages = warning"));
    PGresult *result = PQexec(connection, statement);
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    PQfinish(connection);
}

static void postgres_place(struct place *place)
{
    static unsigned made;
    const char *base = getenv("TEST_POSTGRES_URI");
    if (base == NULL)
        fail_msg("TEST_POSTGRES_URI names no database");
    (void)snprintf(place->directory, sizeof place->directory, "contract_%ld_%u", (long)getpid(),
                   ++made);
    (void)snprintf(place->uri, sizeof place->uri, "%s%coptions=-csearch_path%%3D%s", base,
                   strchr(base, '?') == NULL ? '?' : '&', place->directory);
    postgres_do("CREATE SCHEMA", place->directory, "");
}

static void postgres_clear(struct place *place)
{
    postgres_do("DROP SCHEMA", place->directory, "CASCADE");
}

static const struct factory {
    const char *engine;
    void (*place)(struct place *place);
    void (*clear)(struct place *place);
} factories[] = {
    {"sqlite", sqlite_place, sqlite_clear},
    {"postgresql", postgres_place, postgres_clear},
};

static inline const struct factory *factory_of(const char *engine)
{
    for (size_t i = 0; i < sizeof factories / sizeof factories[0]; i++)
        if (strcmp(factories[i].engine, engine) == 0)
            return &factories[i];
    return NULL;
}
