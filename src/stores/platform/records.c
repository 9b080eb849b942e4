/*
 * Records of any kind in any engine: platform_records.h, by the statements of their tables
 * (statements.c).
 *
 * Every change is one transaction that takes the next revision first. With it the transaction locks
 * the counter's row until the commit, so revisions become visible in their order, for all writers.
 * The contents of a row never make reading fail, unless the table says so: a row that is not sound
 * admits no client, while the rows beside it stay usable.
 */
#include "stores/platform/records.h"

#include "base/memory.h"
#include "stores/platform/texts.h"
#include "stores/platform/trail.h"
#include "stores/platform_changes.h"
#include "stores/platform_games.h"
#include "stores/platform_records.h"

static enum status no_revision(struct platform_store *store, struct error *error)
{
    return platform_damaged(store, "it has no revision", error);
}

/* ---- rows to records ------------------------------------------------------------------------- */

/* A record from a row of its table's columns. False: it is not fit to be seen. */
static bool read_row(const struct record_table *table, const struct sql_row *row, void *record)
{
    bool sound = true;
    memset(record, 0, table->size);
    for (size_t i = 0; i < table->column_count; i++) {
        const struct column *column = &table->columns[i];
        struct column_value value = row->value(row, (int)i, column->type->kind);
        sound &= column->type->set(column, record, &value);
    }
    return record_settle(table, record, sound);
}

bool record_on_row(void *context, const struct sql_row *row)
{
    struct record_look_up *look_up = context;
    look_up->found = true;
    look_up->sound = read_row(look_up->table, row, look_up->record);
    return false; /* there is one at most */
}

enum status record_looked_up(struct platform_store *store, const struct record_look_up *look_up,
                             struct error *error)
{
    const char *what = look_up->table->what;
    char damage[64];
    if (!look_up->found)
        return error_not_found(error, "%s: there is no such %s", store->location, what);
    if (look_up->sound)
        return STATUS_OK;
    (void)snprintf(damage, sizeof damage, "a %s is malformed", what);
    return platform_damaged(store, damage, error);
}

/* Finds one record by the parameters of `form`. */
enum status record_find(struct platform_store *store, const struct record_table *table,
                        enum statement_form form, struct sql_parameters *parameters, void *record,
                        struct error *error)
{
    void *read = memory_alloc(table->size);
    struct record_look_up look_up = {.table = table, .record = read};
    struct sql_query query = {.sql = statement_of(store, table, form),
                              .parameters = parameters,
                              .row = record_on_row,
                              .context = &look_up};
    enum status status = store->engine->sql->read(store, &query, 1, error);
    if (status == STATUS_OK)
        status = record_looked_up(store, &look_up, error);
    if (status == STATUS_OK)
        memcpy(record, read, table->size);
    memory_free(read);
    return status;
}

enum status platform_get(struct platform_store *store, const struct record_table *table,
                         const void *id, void *record, struct error *error)
{
    struct sql_parameters parameters = {0};
    if (table->columns[0].type->kind == COLUMN_BYTES)
        SQL_ADD(&parameters, SQL_BYTES(id, table->columns[0].room));
    else
        SQL_ADD(&parameters, SQL_STRING(id));
    return record_find(store, table, STATEMENT_GET, &parameters, record, error);
}

/* ---- walking through them -------------------------------------------------------------------- */

/* The walk of all kinds of rows to the visitor. */
struct walk {
    const struct record_visitor *visitor;
    const struct record_table *damaged; /* the table of a row that is not sound */
    bool done;                          /* the visitor has seen enough */
};
struct walk_kind {
    struct walk *walk;
    const struct record_table *table;
    void *record;
};

static bool on_row(void *context, const struct sql_row *row)
{
    struct walk_kind *kind = context;
    struct walk *walk = kind->walk;
    if (walk->done)
        return false;
    record_function *see = walk->visitor->see[kind->table->kind];
    bool fit = read_row(kind->table, row, kind->record);
    if (!fit)
        walk->damaged = kind->table;
    walk->done = !fit || !see(walk->visitor->context, kind->record);
    return !walk->done;
}

/* Every kind that the visitor wants, in their order, from one snapshot; with the revision that the
 * snapshot has of `counted`, when that is not NULL. */
static enum status walk_records(struct platform_store *store, enum statement_form form,
                                struct sql_parameters *parameters,
                                const struct record_visitor *visitor,
                                const struct record_table *counted, uint64_t *revision,
                                struct error *error)
{
    struct walk walk = {.visitor = visitor};
    struct walk_kind kinds[RECORD_KIND_COUNT];
    struct sql_query queries[RECORD_KIND_COUNT + 1];
    int64_t number = -1;
    size_t count = 0;
    size_t kind_count = 0;
    if (counted != NULL)
        queries[count++] =
            (struct sql_query){.sql = statement_of(store, counted, STATEMENT_REVISION),
                               .row = sql_take_integer,
                               .context = &number};
    for (int i = 0; i < RECORD_KIND_COUNT; i++) {
        const struct record_table *table = record_tables[i];
        if (visitor->see[table->kind] == NULL)
            continue;
        kinds[kind_count] = (struct walk_kind){&walk, table, memory_alloc(table->size)};
        queries[count++] = (struct sql_query){.sql = statement_of(store, table, form),
                                              .parameters = parameters,
                                              .row = on_row,
                                              .context = &kinds[kind_count++],
                                              .stream = true};
    }
    enum status status = store->engine->sql->read(store, queries, count, error);
    for (size_t i = 0; i < kind_count; i++)
        memory_free(kinds[i].record);
    if (status == STATUS_OK && walk.damaged != NULL)
        return record_looked_up(
            store, &(struct record_look_up){.table = walk.damaged, .found = true}, error);
    if (status == STATUS_OK && counted != NULL && number < 0)
        return no_revision(store, error);
    if (status == STATUS_OK && counted != NULL)
        *revision = (uint64_t)number;
    return status;
}

enum status record_search(struct platform_store *store, const struct record_table *table,
                          struct sql_parameters *parameters, record_function *see, void *context,
                          struct error *error)
{
    struct record_visitor visitor = {.context = context};
    visitor.see[table->kind] = see;
    return walk_records(store, STATEMENT_SEARCH, parameters, &visitor, NULL, NULL, error);
}

enum status record_page(struct platform_store *store, const struct record_table *table,
                        uint64_t after, size_t limit, uint64_t *revision, record_function *see,
                        void *context, struct error *error)
{
    struct record_visitor visitor = {.context = context};
    struct sql_parameters parameters = SQL_PARAMETERS(SQL_INTEGER(after), SQL_INTEGER(limit));
    visitor.see[table->kind] = see;
    return walk_records(store, STATEMENT_AFTER, &parameters, &visitor, table, revision, error);
}

struct found {
    const struct record_table *table;
    char *records;
    size_t count;
};

static bool collect(void *context, const void *record)
{
    struct found *found = context;
    memcpy(found->records + found->count++ * found->table->size, record, found->table->size);
    return true;
}

enum status record_find_several(struct platform_store *store, const struct record_table *table,
                                struct sql_parameters *parameters, void *records, size_t *count,
                                struct error *error)
{
    struct found found = {table, records, 0};
    enum status status = record_search(store, table, parameters, collect, &found, error);
    if (status == STATUS_OK)
        *count = found.count;
    return status;
}

enum status record_revision(struct platform_store *store, const struct record_table *table,
                            uint64_t *revision, struct error *error)
{
    return walk_records(store, STATEMENT_LIST, NULL, &(struct record_visitor){0}, table, revision,
                        error);
}

enum status platform_list(struct platform_store *store, const struct record_table *table,
                          const char *customer_id, record_function *see, void *context,
                          struct error *error)
{
    struct record_visitor visitor = {.context = context};
    struct sql_parameters customer = {0};
    visitor.see[table->kind] = see;
    if (customer_id == NULL)
        return walk_records(store, STATEMENT_LIST, NULL, &visitor, NULL, NULL, error);
    SQL_ADD(&customer, SQL_STRING(customer_id));
    return walk_records(store, STATEMENT_OF_CUSTOMER, &customer, &visitor, NULL, NULL, error);
}

enum status platform_changes_since(struct platform_store *store, uint64_t since,
                                   const struct record_visitor *visitor, uint64_t *revision,
                                   struct error *error)
{
    struct sql_parameters parameters = {0};
    if (since > INT64_MAX)
        return error_invalid(error, "revision out of range");
    SQL_ADD(&parameters, SQL_INTEGER(since));
    return walk_records(store, STATEMENT_CHANGED, &parameters, visitor, &customer_table, revision,
                        error);
}

enum status platform_revision(struct platform_store *store, uint64_t *revision, struct error *error)
{
    return record_revision(store, &customer_table, revision, error);
}

enum status platform_games_read(struct platform_store *store, const struct record_visitor *visitor,
                                uint64_t *revision, struct error *error)
{
    return walk_records(store, STATEMENT_LIST, NULL, visitor, &game_table, revision, error);
}

enum status platform_games_revision(struct platform_store *store, uint64_t *revision,
                                    struct error *error)
{
    return record_revision(store, &game_table, revision, error);
}

/* ---- changes --------------------------------------------------------------------------------- */

enum status record_take_revision(struct sql_flight *flight, const struct record_table *table,
                                 struct error *error)
{
    const struct sql_query *query = sql_flight_of(flight, table, STATEMENT_TAKE_REVISION, NULL);
    enum status status = sql_flight_run(flight, false, error);
    return status == STATUS_OK && query->affected != 1 ? no_revision(flight->store, error) : status;
}

/* Takes the next number, or locks the trail where the table has no counter. */
static struct sql_query *add_counting(struct sql_flight *flight, const struct record_table *table)
{
    return table->counter == NULL ? sql_flight_add(flight, trail_lock)
                                  : sql_flight_of(flight, table, STATEMENT_TAKE_REVISION, NULL);
}

/* Adds a query for the row with the key of a change, whose parameters stay the change's. */
static void add_reading(struct sql_flight *flight, struct record_change *change,
                        struct sql_parameters *key, struct trail_reading *reading)
{
    struct sql_query *query = sql_flight_of(flight, change->table, STATEMENT_GET, NULL);
    query->parameters = key;
    trail_read(reading, query);
}

static enum status missing_or_newer(const struct platform_store *store, const char *what,
                                    bool exists, struct error *error)
{
    if (exists)
        return error_set(error, STATUS_EXISTS,
                         "%s: another writer changed this %s first; try again", store->location,
                         what);
    return error_not_found(error, "%s: there is no such %s", store->location, what);
}

/* A write that may change nothing. The images before and after tell why, and give the trail its
 * row. */
static enum status change_row(struct sql_flight *flight, struct record_change *change,
                              struct trail_image images[2], struct error *error)
{
    struct platform_store *store = flight->store;
    struct sql_parameters key = {.count = 1, .at = {change->parameters.at[0]}}; /* borrowed */
    struct trail_reading readings[2] = {{change->table, &images[0]}, {change->table, &images[1]}};
    const struct sql_query *counting = add_counting(flight, change->table);
    add_reading(flight, change, &key, &readings[0]);
    struct sql_query *write = sql_flight_add(flight, change->sql);
    write->parameters = &change->parameters;
    add_reading(flight, change, &key, &readings[1]);
    enum status status = sql_flight_run(flight, false, error);
    /* Without a revision for its stamp the row was refused. */
    if ((status == STATUS_OK || status == STATUS_INVALID) && counting->affected != 1)
        return no_revision(store, error);
    if (status != STATUS_OK)
        return status;
    bool exists = images[1].table != NULL;
    if (write->affected > 0)
        return trail_write(flight, &images[0], &images[1], !change->more, error);
    return change->idempotent && exists
               ? STATUS_OK
               : missing_or_newer(store, change->table->what, exists, error);
}

/* It succeeds or fails as a whole, so all queries go out at once. */
static enum status add_row(struct sql_flight *flight, struct record_change *change,
                           struct trail_image images[2], struct error *error)
{
    const struct sql_query *counting = add_counting(flight, change->table);
    sql_flight_add(flight, change->sql)->parameters = &change->parameters;
    trail_image_of(&images[1], change->table, change->added);
    enum status status = trail_write(flight, &images[0], &images[1], !change->more, error);
    if ((status == STATUS_OK || status == STATUS_INVALID) && counting->affected != 1)
        status = no_revision(flight->store, error);
    return status;
}

static enum status write_row(struct sql_flight *flight, void *context, struct error *error)
{
    struct record_change *change = context;
    struct trail_image images[2] = {0};
    enum status status =
        change->may != NULL ? change->may(flight, change->context, error) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    status = change->added != NULL ? add_row(flight, change, images, error)
                                   : change_row(flight, change, images, error);
    trail_image_free(&images[0]);
    trail_image_free(&images[1]);
    return status;
}

enum status record_change(struct platform_store *store, struct record_change *change,
                          struct error *error)
{
    enum status status = sql_transact(store, write_row, change, error);
    sql_parameters_free(&change->parameters);
    return status;
}

enum status records_check(const struct record_table *table, const void *records, size_t count,
                          struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = table->check((const char *)records + i * table->size, error);
    return status;
}

enum status record_write(struct platform_store *store, const struct record_table *table,
                         enum statement_form form, const void *record, sql_flights *may,
                         void *context, struct error *error)
{
    enum status status = table->check(record, error);
    if (status != STATUS_OK)
        return status;
    struct record_change change = {.table = table,
                                   .sql = statement_of(store, table, form),
                                   .added = form == STATEMENT_ADD ? record : NULL,
                                   .may = may,
                                   .context = context};
    statement_bind(table, form, record, &change.parameters);
    return record_change(store, &change, error);
}

enum status platform_add(struct platform_store *store, const struct record_table *table,
                         const void *record, struct error *error)
{
    return record_write(store, table, STATEMENT_ADD, record, NULL, NULL, error);
}

enum status platform_update(struct platform_store *store, const struct record_table *table,
                            const void *record, struct error *error)
{
    return record_write(store, table, STATEMENT_UPDATE, record, NULL, NULL, error);
}

enum status platform_put(struct platform_store *store, const struct record_table *table,
                         const void *record, struct error *error)
{
    return record_write(store, table, STATEMENT_PUT, record, NULL, NULL, error);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* A key with those that it made. */
struct key_family {
    const char *maker;
    int64_t now_ms;
    bool maker_lives;
    char live[KEYS_MADE_MAX][KEY_ID_SIZE]; /* made by it */
    size_t count;
};

static bool see_relative(void *context, const struct sql_row *row)
{
    struct key_family *family = context;
    struct text id = sql_text(row, 0);
    if (text_equals(id, text_of(family->maker)))
        family->maker_lives = true;
    else if (text_copy_plain(id, family->live[family->count], KEY_ID_SIZE))
        family->count++;
    return family->count < KEYS_MADE_MAX;
}

/* Finds the live ones. Taking a revision locks out all other changes of keys. */
static enum status find_family(struct sql_flight *flight, struct key_family *family,
                               struct error *error)
{
    family->maker_lives = false;
    family->count = 0;
    enum status status = record_take_revision(flight, &key_table, error);
    if (status != STATUS_OK)
        return status;
    struct sql_query *query = sql_flight_add(flight, flight->store->engine->texts->live_keys);
    SQL_ADD(query->parameters, SQL_STRING(family->maker), SQL_INTEGER(family->now_ms));
    query->row = see_relative;
    query->context = family;
    return sql_flight_run(flight, false, error);
}

static enum status may_make(struct sql_flight *flight, void *context, struct error *error)
{
    struct key_family *family = context;
    enum status status = find_family(flight, family, error);
    if (status == STATUS_OK && !family->maker_lives)
        return error_not_found(error, "the key that makes it is over");
    if (status == STATUS_OK && family->count == KEYS_MADE_MAX)
        return error_set(error, STATUS_FULL, "the key has made %d that are live", KEYS_MADE_MAX);
    return status;
}

enum status platform_key_make(struct platform_store *store, const struct key_record *record,
                              int64_t now_ms, struct error *error)
{
    struct key_family family = {.maker = record->maker, .now_ms = now_ms};
    return record_write(store, &key_table, STATEMENT_ADD, record, may_make, &family, error);
}

/* The maker comes last. */
static enum status revoke_keys(struct sql_flight *flight, void *context, struct error *error)
{
    struct key_family *family = context;
    enum status status = find_family(flight, family, error);
    for (size_t i = 0; i <= family->count && status == STATUS_OK; i++) {
        struct record_change change = {.table = &key_table,
                                       .sql = flight->store->engine->texts->revoke_key,
                                       .idempotent = true, /* the first time is kept */
                                       .more = i < family->count};
        SQL_ADD(&change.parameters, SQL_STRING(change.more ? family->live[i] : family->maker),
                SQL_INTEGER(family->now_ms));
        status = write_row(flight, &change, error);
    }
    return status;
}

enum status platform_key_revoke(struct platform_store *store, const char *key_id, int64_t now_ms,
                                struct error *error)
{
    struct key_family family = {.maker = key_id, .now_ms = now_ms};
    CHECK(now_ms > 0);
    return sql_transact(store, revoke_keys, &family, error);
}

static int compare_uses(const void *a, const void *b)
{
    return memcmp(((const struct key_use *)a)->digest, ((const struct key_use *)b)->digest,
                  KEY_DIGEST_SIZE);
}

static enum status touch_keys(struct sql_flight *flight, void *context, struct error *error)
{
    const struct sql_records *touching = context;
    const struct key_use *uses = touching->at;
    for (size_t i = 0; i < touching->count; i++) {
        struct sql_query *query = sql_flight_add(flight, flight->store->engine->texts->touch_key);
        SQL_ADD(query->parameters, SQL_BYTES(uses[i].digest, KEY_DIGEST_SIZE),
                SQL_INTEGER(uses[i].used_ms));
    }
    return sql_flight_run(flight, true, error);
}

/* Rows are locked in the order of their digests: two instances that write the uses of the same keys
 * wait for each other and do not meet in a deadlock. */
enum status platform_key_touch(struct platform_store *store, const struct key_use *uses,
                               size_t count, struct error *error)
{
    if (count == 0)
        return STATUS_OK;
    struct key_use *sorted = memory_copy(uses, count * sizeof *uses);
    struct sql_records touching = {sorted, count};
    qsort(sorted, count, sizeof *uses, compare_uses);
    enum status status = sql_transact(store, touch_keys, &touching, error);
    memory_free(sorted);
    return status;
}
