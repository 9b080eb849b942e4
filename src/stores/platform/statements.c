/* The SQL of a table of columns, and the parameters that go with it; see sql.h. */
#include "base/memory.h"
#include "records/records.h"
#include "stores/platform/engine.h"

/* ---- parameters ------------------------------------------------------------------------------ */

void sql_add(struct sql_parameters *parameters, const struct column_value *values, int count)
{
    for (int i = 0; i < count; i++) {
        CHECK(parameters->count < SQL_PARAMETERS_MAX);
        parameters->at[parameters->count++] = values[i];
    }
}

void sql_parameters_free(struct sql_parameters *parameters)
{
    for (int i = 0; i < parameters->count; i++)
        column_value_free(&parameters->at[i]);
    parameters->count = 0;
}

/* Does a statement have a parameter for the column? It has none for the revision, which the counter
 * gives, for a joined column, which another table gives, and, in an update, for a fixed column. */
static bool is_given(const struct column *column, enum statement_form form)
{
    return column->type != &column_revision && (column->rules & COLUMN_JOINED) == 0 &&
           (form != STATEMENT_UPDATE || (column->rules & COLUMN_FIXED) == 0);
}

void statement_bind(const struct record_table *table, enum statement_form form, const void *record,
                    struct sql_parameters *parameters)
{
    int64_t revision = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        const struct column *column = &table->columns[i];
        struct column_value value;
        column_get(column, record, &value);
        if (column->type == &column_revision)
            revision = value.integer;
        if (is_given(column, form))
            sql_add(parameters, &value, 1);
        else
            column_value_free(&value);
    }
    if (form == STATEMENT_UPDATE || form == STATEMENT_PUT)
        SQL_ADD(parameters, SQL_INTEGER(revision));
}

/* ---- rows ------------------------------------------------------------------------------------ */

bool sql_take_integer(void *context, const struct sql_row *row)
{
    struct column_value value = row->value(row, 0, COLUMN_INTEGER);
    *(int64_t *)context = value.null ? -1 : value.integer;
    return false;
}

enum status sql_read_integer(struct platform_store *store, const char *sql, int64_t *integer,
                             struct error *error)
{
    struct sql_query query = {.sql = sql, .row = sql_take_integer, .context = integer};
    return store->engine->sql->read(store, &query, 1, error);
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* "SELECT customer.id, … FROM customer"; a joined column has its table's name already. */
static void append_selection(struct buffer *sql, const struct record_table *table)
{
    for (size_t i = 0; i < table->column_count; i++) {
        const struct column *column = &table->columns[i];
        const bool own = (column->rules & COLUMN_JOINED) == 0;
        buffer_append_format(sql, "%s%s%s%s", i == 0 ? "SELECT " : ", ", own ? table->name : "",
                             own ? "." : "", column->name);
    }
    buffer_append_format(sql, " FROM %s", table->name);
    if (table->join != NULL)
        buffer_append_format(sql, " JOIN %s", table->join);
}

static void append_insertion(struct buffer *sql, const struct record_table *table)
{
    struct buffer values = {0};
    int parameter = 1;
    buffer_append_format(sql, "INSERT INTO %s (", table->name);
    for (size_t i = 0; i < table->column_count; i++) {
        const struct column *column = &table->columns[i];
        const char *separator = values.size > 0 ? ", " : "";
        if ((column->rules & COLUMN_JOINED) != 0)
            continue;
        buffer_append_format(sql, "%s%s", separator, column->name);
        if (is_given(column, STATEMENT_ADD))
            buffer_append_format(&values, "%s$%d", separator, parameter++);
        else
            buffer_append_format(&values, "%s(SELECT revision FROM %s)", separator, table->counter);
    }
    buffer_append_format(sql, ") VALUES (%s)", buffer_string(&values));
    buffer_free(&values);
}

/* "name = $2, …", with the parameters of statement_bind, all but the key; returns the number
 * after them. */
static int append_assignments(struct buffer *sql, const struct record_table *table,
                              enum statement_form form)
{
    int parameter = 2;
    for (size_t i = 1; i < table->column_count; i++) {
        const struct column *column = &table->columns[i];
        if (is_given(column, form))
            buffer_append_format(sql, "%s = $%d, ", column->name, parameter++);
    }
    buffer_append_format(sql, "revision = (SELECT revision FROM %s)", table->counter);
    return parameter;
}

static void append_write(struct buffer *sql, const struct record_table *table,
                         enum statement_form form)
{
    const char *key = table->columns[0].name;
    int expected;
    if (form == STATEMENT_UPDATE) {
        buffer_append_format(sql, "UPDATE %s SET ", table->name);
        expected = append_assignments(sql, table, form);
        buffer_append_format(sql, " WHERE %s = $1 AND ", key);
    } else {
        append_insertion(sql, table);
        buffer_append_format(sql, " ON CONFLICT (%s) DO UPDATE SET ", key);
        expected = append_assignments(sql, table, form);
        buffer_append_string(sql, " WHERE ");
    }
    buffer_append_format(sql, "(CAST($%d AS bigint) = 0 OR %s.revision = CAST($%d AS bigint))",
                         expected, table->name, expected);
}

static void append_reading(struct buffer *sql, const struct record_table *table,
                           enum statement_form form)
{
    append_selection(sql, table);
    if (form == STATEMENT_GET)
        buffer_append_format(sql, " WHERE %s.%s = $1", table->name, table->columns[0].name);
    else if (form == STATEMENT_OF_CUSTOMER)
        buffer_append_format(sql, " WHERE customer_id = $1 ORDER BY %s", table->order);
    else if (form == STATEMENT_SEARCH)
        buffer_append_format(sql, " WHERE %s", table->search);
    else if (form == STATEMENT_CHANGED)
        buffer_append_string(sql, " WHERE revision > $1 ORDER BY revision");
    else if (form == STATEMENT_AFTER)
        buffer_append_format(sql, " WHERE %s > $1 ORDER BY %s LIMIT $2", table->order,
                             table->order);
    else
        buffer_append_format(sql, " WHERE %s ORDER BY %s",
                             table->listed != NULL ? table->listed : "true", table->order);
}

static void append_statement(struct buffer *sql, const struct record_table *table,
                             enum statement_form form)
{
    switch (form) {
    case STATEMENT_ADD:
    case STATEMENT_ADD_ONCE:
        append_insertion(sql, table);
        if (form == STATEMENT_ADD_ONCE)
            buffer_append_string(sql, " ON CONFLICT DO NOTHING");
        break;
    case STATEMENT_UPDATE:
    case STATEMENT_PUT:
        append_write(sql, table, form);
        break;
    case STATEMENT_GET:
    case STATEMENT_LIST:
    case STATEMENT_SEARCH:
    case STATEMENT_OF_CUSTOMER:
    case STATEMENT_CHANGED:
    case STATEMENT_AFTER:
        append_reading(sql, table, form);
        break;
    case STATEMENT_REVISION:
        buffer_append_format(sql, "SELECT revision FROM %s", table->counter);
        break;
    case STATEMENT_TAKE_REVISION:
        buffer_append_format(sql, "UPDATE %s SET revision = revision + 1", table->counter);
        break;
    }
}

struct statements {
    char *texts[RECORD_KIND_COUNT][STATEMENT_FORM_COUNT]; /* NULL: not asked for yet */
};

const char *statement_of(struct platform_store *store, const struct record_table *table,
                         enum statement_form form)
{
    if (store->statements == NULL)
        store->statements = memory_alloc_zeroed(1, sizeof *store->statements);
    char **text = &store->statements->texts[table->kind][form];
    if (*text == NULL) {
        struct buffer sql = {0};
        append_statement(&sql, table, form);
        *text = memory_copy_string(buffer_string(&sql));
        buffer_free(&sql);
    }
    return *text;
}

void statements_destroy(struct statements **statements)
{
    for (size_t i = 0; *statements != NULL && i < RECORD_KIND_COUNT; i++)
        for (size_t j = 0; j < STATEMENT_FORM_COUNT; j++)
            memory_free((*statements)->texts[i][j]);
    memory_free(*statements);
    *statements = NULL;
}

/* ---- many queries ---------------------------------------------------------------------------- */

static void clear(struct sql_flight *flight)
{
    for (size_t i = 0; i < flight->count; i++)
        sql_parameters_free(&flight->parameters[i]);
    flight->count = 0;
    flight->flown = false;
}

static void run(struct sql_flight *flight, bool last)
{
    if (flight->status == STATUS_OK && flight->count > 0 && !flight->flown)
        flight->status = flight->store->engine->sql->run(flight->store, flight->queries,
                                                         flight->count, last, &flight->error);
    flight->flown = true;
}

struct sql_query *sql_flight_add(struct sql_flight *flight, const char *sql)
{
    if (flight->count == FLIGHT_MAX)
        run(flight, false);
    if (flight->flown)
        clear(flight);
    struct sql_parameters *parameters = &flight->parameters[flight->count];
    struct sql_query *query = &flight->queries[flight->count++];
    parameters->count = 0;
    *query = (struct sql_query){.sql = sql, .parameters = parameters};
    return query;
}

struct sql_query *sql_flight_of(struct sql_flight *flight, const struct record_table *table,
                                enum statement_form form, const void *record)
{
    struct sql_query *query = sql_flight_add(flight, statement_of(flight->store, table, form));
    if (record != NULL)
        statement_bind(table, form, record, query->parameters);
    return query;
}

enum status sql_flight_run(struct sql_flight *flight, bool last, struct error *error)
{
    run(flight, last);
    if (flight->status != STATUS_OK && error != NULL)
        *error = flight->error;
    return flight->status;
}

struct transaction {
    sql_flights *body;
    void *context;
    struct sql_flight *flight;
};

static enum status run_body(struct platform_store *store, void *context, struct error *error)
{
    const struct transaction *transaction = context;
    struct sql_flight *flight = transaction->flight;
    clear(flight); /* of an attempt before */
    flight->store = store;
    flight->status = STATUS_OK;
    flight->error = (struct error){.text = ""};
    return transaction->body(flight, transaction->context, error);
}

enum status sql_transact(struct platform_store *store, sql_flights *body, void *context,
                         struct error *error)
{
    struct transaction transaction = {body, context, memory_alloc(sizeof(struct sql_flight))};
    transaction.flight->count = 0;
    enum status status = store->engine->sql->transact(store, run_body, &transaction, error);
    clear(transaction.flight);
    memory_free(transaction.flight);
    return status;
}

static enum status run_one(struct platform_store *store, void *context, struct error *error)
{
    return store->engine->sql->run(store, context, 1, true, error);
}

enum status sql_execute(struct platform_store *store, const char *sql,
                        struct sql_parameters *parameters, struct error *error)
{
    struct sql_query query = {.sql = sql, .parameters = parameters};
    return store->engine->sql->transact(store, run_one, &query, error);
}

enum status platform_damaged(const struct platform_store *store, const char *what,
                             struct error *error)
{
    return error_set(error, STATUS_MALFORMED,
                     "%s: is damaged (%s); stop croupier and restore a backup", store->location,
                     what);
}

enum status platform_damaged_row(const struct platform_store *store, int64_t number,
                                 const char *what, struct error *error)
{
    char text[160];
    (void)snprintf(text, sizeof text, "transaction number %" PRId64 ": %s", number, what);
    return platform_damaged(store, text, error);
}
