/* Which steps of the schema were applied, and whether this program can use that; see schema.h. */
#include "stores/platform/schema.h"

#include "base/clock.h"

const char schema_read[] = "SELECT number, checksum FROM schema_migration ORDER BY number";

bool schema_on_row(void *context, const struct sql_row *row)
{
    struct schema *schema = context;
    const uint32_t first = schema->migrations[0].number;
    const uint32_t before = schema->version;
    schema->version = (uint32_t)sql_integer(row, 0);
    if (schema->version < first) { /* of no release, unless the first one follows */
        schema->differs = true;
        return true;
    }
    size_t at = schema->version - first;
    bool wrong = at < schema->count &&
                 !text_equals(sql_text(row, 1), text_of(schema->migrations[at].checksum));
    schema->differs = wrong || (at > 0 && (schema->differs || schema->version != before + 1));
    return true;
}

const struct migration *schema_next(const struct migration *migrations, size_t count,
                                    uint32_t version)
{
    for (size_t i = 0; i < count; i++)
        if (migrations[i].number > version)
            return &migrations[i];
    return NULL;
}

enum status schema_check(const struct platform_store *store, const struct schema *schema,
                         bool current, uint32_t *version, struct error *error)
{
    const uint32_t newest = schema->migrations[schema->count - 1].number;
    if (schema->differs)
        return error_set(
            error, STATUS_INVALID,
            "%s: its schema %u is of no release: a version of croupier between releases "
            "made it, and no release upgrades it; use that version, or restore a "
            "release's backup",
            store->location, schema->version);
    if (schema->version > newest)
        return error_invalid(
            error,
            "%s: its schema %u is newer than this program's %u; use the croupier that "
            "upgraded it, or a newer one",
            store->location, schema->version, newest);
    if (current && schema->version < newest)
        return error_invalid(
            error, "%s: its schema %u is older than this program's %u; run: croupier migrate",
            store->location, schema->version, newest);
    *version = schema->version;
    return STATUS_OK;
}

enum status schema_record(struct platform_store *store, const struct migration *migration,
                          struct error *error)
{
    struct sql_parameters parameters =
        SQL_PARAMETERS(SQL_INTEGER(migration->number), SQL_STRING(migration->name),
                       SQL_STRING(migration->checksum), SQL_INTEGER(clock_wall_ms()));
    struct sql_query query = {
        .sql = "INSERT INTO schema_migration (number, name, checksum, applied_ms)"
               " VALUES ($1, $2, $3, $4)",
        .parameters = &parameters};
    return store->engine->sql->run(store, &query, 1, false, error);
}
