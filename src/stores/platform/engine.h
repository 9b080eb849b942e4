#pragma once

#include "stores/platform/sql.h"
#include "stores/platform_ledger.h"

/*
 * The interface of an engine of the platform store; only files in stores/ include this. The front
 * (platform.c) chooses the engine by the URI's scheme. A new engine is one row in its table.
 */
struct sql_texts;
struct platform_engine {
    const char *scheme; /* with its colon: "sqlite:" */
    const char *alias;  /* another way to write it; NULL: none */
    enum status (*open)(struct platform_store **store, const struct platform_store_options *options,
                        struct error *error);
    void (*close)(struct platform_store *store);
    enum status (*schema)(struct platform_store *store, uint32_t *version, uint32_t *newest,
                          struct error *error);
    /* Into a new file `to`; NULL: one beside the store, whose name is `path` then. NULL: its own
     * tools do. */
    enum status (*back_up)(struct platform_store *store, const char *to, char **path,
                           struct error *error);
    /* Applies the next step of the schema, of which `version` is, and stores the version that it is
     * then of. */
    enum status (*migrate)(struct platform_store *store, uint32_t *version, struct error *error);
    /* Compares tables, checks, triggers and indexes with those that the migrations make.
     * `compared`: false where this user may not make them for a moment. MALFORMED names the first
     * that differs. */
    enum status (*check_shape)(struct platform_store *store, bool *compared, struct error *error);
    const char *size;            /* the query for the bytes that the database takes */
    const struct sql_verbs *sql; /* for records */
    const struct ledger_verbs *ledger;
    const struct sql_texts *texts; /* texts.h */
    /* NULL: a row of a transaction has its player's columns. Else it begins with the player's
     * number, whose record this finds in the engine's memory or by another statement; NULL: it is
     * not there. */
    const struct player_record *(*player_of)(struct platform_store *store, int64_t number);
};

/* See `stop` of struct platform_store. */
static inline bool platform_store_is_stopped(const struct platform_store *store)
{
    return store->stop != NULL && atomic_load(store->stop);
}

/* STATUS_MALFORMED, with the fault and its remedy. */
enum status platform_damaged(const struct platform_store *store, const char *what,
                             struct error *error);
/* The same of a row of the ledger, by its number, with its fault. */
enum status platform_damaged_row(const struct platform_store *store, int64_t number,
                                 const char *what, struct error *error);

extern const struct platform_engine platform_sqlite_engine;
extern const struct platform_engine platform_postgres_engine;
