#pragma once

#include "stores/platform/engine.h"

/*
 * The schema of a platform store: one step a release, from sql/ENGINE/NNNN_name.sql, compiled into
 * the program (tools/embed_migrations.py). The table schema_migration names the applied steps, with
 * a checksum of each, so that a store of a version between releases is not taken for croupier's.
 * The first step has the number of its release's last separate step.
 */
struct migration {
    uint32_t number;
    const char *name;
    const char *checksum; /* SHA-256 of the file, 64 hexadecimal digits */
    const char *sql;
};
extern const struct migration sqlite_migrations[];
extern const size_t sqlite_migration_count;
extern const struct migration postgres_migrations[];
extern const size_t postgres_migration_count;

extern const char schema_read[]; /* the query for the steps that were applied */

/* The step after a version (0: an empty store's); NULL: there is none. */
const struct migration *schema_next(const struct migration *migrations, size_t count,
                                    uint32_t version);

/* The steps that were applied; begins as {migrations, count}. */
struct schema {
    const struct migration *migrations;
    size_t count;
    uint32_t version; /* the last one applied */
    bool differs;
};
sql_row_reader schema_on_row; /* of schema_read; its context is a struct schema */

/* The version. STATUS_INVALID, with what to do, when the program does not know that schema; and,
 * where `current` is wanted, when it is older than the program's. */
MUST_CHECK enum status schema_check(const struct platform_store *store, const struct schema *schema,
                                    bool current, uint32_t *version, struct error *error);

/* Notes a step as applied, in the transaction that applied it. */
MUST_CHECK enum status schema_record(struct platform_store *store,
                                     const struct migration *migration, struct error *error);
