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
    char directory[TEST_DIRECTORY_SIZE]; /* or a server's database */
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

static void sqlite_copy(const struct place *of, struct place *place)
{
    char command[256];
    sqlite_place(place);
    (void)snprintf(command, sizeof command, "cp '%s/platform.db' '%s'", of->directory,
                   place->directory);
    assert_int_equal(system(command), 0);
}

/* A database of the server that TEST_POSTGRES_URI names (tests/servers.py starts one). */
static void postgres_do(const char *before, const char *database, const char *after)
{
    char statement[192];
    PGconn *connection = PQconnectdb(getenv("TEST_POSTGRES_URI"));
    assert_int_equal(PQstatus(connection), CONNECTION_OK);
    (void)snprintf(statement, sizeof statement, "%s %s %s", before, database, after);
    PQclear(PQexec(connection, "SET client_min_messages = warning"));
    PGresult *result = PQexec(connection, statement);
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    PQfinish(connection);
}

/* Where the server does not sync, to copy its files is the cheapest way. */
static void postgres_copy(const struct place *of, struct place *place)
{
    static unsigned made;
    char how[96];
    const char *base = getenv("TEST_POSTGRES_URI");
    const char *name = base == NULL ? NULL : strstr(base, "://");
    name = name == NULL ? NULL : strchr(name + 3, '/');
    if (name == NULL)
        fail_msg("TEST_POSTGRES_URI names no database");
    (void)snprintf(place->directory, sizeof place->directory, "contract_%ld_%u", (long)getpid(),
                   ++made);
    (void)snprintf(place->uri, sizeof place->uri, "%.*s/%s%s", (int)(name - base), base,
                   place->directory, name + strcspn(name, "?"));
    (void)snprintf(how, sizeof how, "TEMPLATE %s STRATEGY FILE_COPY",
                   of == NULL ? "template1" : of->directory);
    postgres_do("CREATE DATABASE", place->directory, how);
}

static void postgres_place(struct place *place)
{
    postgres_copy(NULL, place);
}

static void postgres_clear(struct place *place)
{
    postgres_do("DROP DATABASE", place->directory, "WITH (FORCE)");
}

static const struct factory {
    const char *engine;
    void (*place)(struct place *place);
    void (*clear)(struct place *place);
    /* A place that has what this one has. Its store must be closed. */
    void (*copy)(const struct place *of, struct place *place);
} factories[] = {
    {"sqlite", sqlite_place, sqlite_clear, sqlite_copy},
    {"postgresql", postgres_place, postgres_clear, postgres_copy},
};

static inline const struct factory *factory_of(const char *engine)
{
    for (size_t i = 0; i < sizeof factories / sizeof factories[0]; i++)
        if (strcmp(factories[i].engine, engine) == 0)
            return &factories[i];
    return NULL;
}
