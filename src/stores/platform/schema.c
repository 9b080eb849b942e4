/* Which steps of the schema were applied, and whether this program can use that; see schema.h. */
#include "stores/platform/schema.h"

#include "base/clock.h"

void schema_note(struct schema *schema, int64_t number, struct text checksum)
{
    uint32_t last = ++schema->version;
    schema->differs = schema->differs || number != last ||
                      (last <= schema->count &&
                       !text_equals(checksum, text_of(schema->migrations[last - 1].checksum)));
}

enum status schema_check(const struct platform_store *store, const struct schema *schema,
                         bool current, struct error *error)
{
    if (schema->version > schema->count)
        return error_set(
            error, STATUS_INVALID,
            "%s: its schema %u is newer than this program's %zu; use the croupier that "
            "upgraded it, or a newer one",
            store->location, schema->version, schema->count);
    if (schema->differs)
        return error_set(error, STATUS_INVALID,
                         "%s: its schema was made by a different build of croupier; use that one",
                         store->location);
    if (current && schema->version < schema->count)
        return error_set(
            error, STATUS_INVALID,
            "%s: its schema %u is older than this program's %zu; run: croupier migrate",
            store->location, schema->version, schema->count);
    return STATUS_OK;
}

enum status schema_record(struct platform_store *store, const struct migration *migration,
                          struct error *error)
{
    struct sql_parameters parameters = {0};
    struct sql_query query = {
        .sql = "INSERT INTO schema_migration (number, name, checksum, applied_ms)"
               " VALUES ($1, $2, $3, $4)",
        .parameters = &parameters};
    sql_add_integer(&parameters, migration->number);
    sql_add_text(&parameters, text_of(migration->name));
    sql_add_text(&parameters, text_of(migration->checksum));
    sql_add_integer(&parameters, clock_wall_ms());
    return store->engine->sql->run(store, &query, 1, false, error);
}
