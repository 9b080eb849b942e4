#pragma once

#include "records/record.h"
#include "stores/platform.h"

/*
 * SQL that every engine of the platform store runs, so that the statements of records are written
 * once (stores/platform/records.c, players.c, games.c); only files in stores/ include this.
 *
 * The SQL is what SQLite and PostgreSQL both understand. Parameters are $1, $2, …; a comparison
 * that would not tell PostgreSQL a parameter's type says CAST($2 AS bigint). A text is prepared
 * once a connection, under its address: it is a constant, or one that the store keeps
 * (statement_of).
 */

#define SQL_PARAMETERS_MAX (RECORD_COLUMNS_MAX + 1)

/* $1 is at 0. Bytes are borrowed until the query has run. */
struct sql_parameters {
    int count;
    struct column_value at[SQL_PARAMETERS_MAX];
};

/* Parameters with these values: SQL_PARAMETERS(SQL_STRING(id), SQL_INTEGER(now_ms)). */
#define SQL_PARAMETERS(...) \
    ((struct sql_parameters){.count = SQL_COUNT(__VA_ARGS__), .at = {__VA_ARGS__}})
#define SQL_COUNT(...) \
    (int)(sizeof((const struct column_value[]){__VA_ARGS__}) / sizeof(struct column_value))
/* Adds values in order: SQL_ADD(&parameters, SQL_STRING(id), SQL_INTEGER(now_ms)). */
#define SQL_ADD(parameters_, ...) \
    sql_add((parameters_), (const struct column_value[]){__VA_ARGS__}, SQL_COUNT(__VA_ARGS__))
#define SQL_TEXT(text_) ((struct column_value){.kind = COLUMN_TEXT, .bytes = (text_)})
#define SQL_STRING(string_) SQL_TEXT(text_of(string_))
#define SQL_INTEGER(value_) \
    ((struct column_value){.kind = COLUMN_INTEGER, .integer = (int64_t)(value_)})
#define SQL_FLAG(flag_) ((struct column_value){.kind = COLUMN_FLAG, .integer = (flag_)})
#define SQL_BYTES(at_, size_) \
    ((struct column_value){.kind = COLUMN_BYTES, .bytes = {(const char *)(at_), (size_)}})
/* NULL unless it is given; and a text that is NULL where it is "". */
static inline struct column_value sql_given(bool given, struct column_value value)
{
    value.null |= !given;
    return value;
}
static inline struct column_value sql_optional(const char *string)
{
    return sql_given(string[0] != '\0', SQL_STRING(string));
}
void sql_add(struct sql_parameters *parameters, const struct column_value *values, int count);
void sql_parameters_free(struct sql_parameters *parameters); /* the texts made for them */

/* Valid, with the bytes of its values, while the reader that it is given to runs. */
struct sql_row {
    struct column_value (*value)(const struct sql_row *row, int column, enum column_kind kind);
    const void *result; /* the engine's */
    int at;
};

/* The value of a column; 0, false and {NULL, 0} where it is NULL. */
static inline int64_t sql_integer(const struct sql_row *row, int column)
{
    return row->value(row, column, COLUMN_INTEGER).integer;
}
static inline bool sql_flag(const struct sql_row *row, int column)
{
    return row->value(row, column, COLUMN_FLAG).integer != 0;
}
static inline struct text sql_text(const struct sql_row *row, int column)
{
    return row->value(row, column, COLUMN_TEXT).bytes;
}

/* False: no more rows, please. Must not use the store. */
typedef bool sql_row_reader(void *context, const struct sql_row *row);

/* Reads the first column of one row into an int64_t, its context; -1 where it is NULL. */
sql_row_reader sql_take_integer;
/* The same by a query without parameters; as it was where there is no row. */
MUST_CHECK enum status sql_read_integer(struct platform_store *store, const char *sql,
                                        int64_t *integer, struct error *error);

struct sql_query {
    const char *sql;
    struct sql_parameters *parameters; /* NULL: none */
    sql_row_reader *row;               /* NULL: rows are only counted */
    void *context;
    bool stream; /* rows are handed on as they arrive, in constant memory, however long it takes */
    /* Afterwards: */
    uint64_t affected; /* rows written */
    uint64_t rows;     /* rows read; not of a stream */
    bool failed;       /* it is the one that made the run fail */
    void *result;      /* the engine's own */
};

/* Some of a transaction. `last`: nothing has to be decided after it, so it may be committed with
 * it. */
typedef enum status sql_body(struct platform_store *store, void *context, struct error *error);

struct sql_verbs {
    /* Reads, all of it in one snapshot of the store. */
    MUST_CHECK enum status (*read)(struct platform_store *store, struct sql_query *queries,
                                   size_t count, struct error *error);
    /* One transaction: `body`, which calls `run` any number of times, then commit; or rollback
     * when it fails. A server may have it run again from its start, so the body sets all that it
     * returns. */
    MUST_CHECK enum status (*transact)(struct platform_store *store, sql_body *body, void *context,
                                       struct error *error);
    /* In a transaction: all queries, in one round trip to a server. */
    MUST_CHECK enum status (*run)(struct platform_store *store, struct sql_query *queries,
                                  size_t count, bool last, struct error *error);
};

/* A transaction of one statement. */
MUST_CHECK enum status sql_execute(struct platform_store *store, const char *sql,
                                   struct sql_parameters *parameters, struct error *error);

/* ---- the statements of a table --------------------------------------------------------------- */

enum statement_form {
    STATEMENT_ADD,
    STATEMENT_ADD_ONCE,    /* does nothing when it is there */
    STATEMENT_UPDATE,      /* by key, if the row's revision is the record's, or the record's is 0 */
    STATEMENT_PUT,         /* adds, or updates as above (fixed columns too) */
    STATEMENT_GET,         /* $1: key */
    STATEMENT_LIST,        /* in order, without what lists leave out */
    STATEMENT_SEARCH,      /* by the table's own condition, and its parameters */
    STATEMENT_OF_CUSTOMER, /* $1: customer_id; in order */
    STATEMENT_CHANGED,     /* $1: a revision; rows with a later one, in order of change */
    STATEMENT_AFTER,       /* $1: a value of the column that orders them; the next $2 rows */
    STATEMENT_REVISION,    /* the table's counter */
    STATEMENT_TAKE_REVISION, /* counts on, and locks the counter until the commit */
};
#define STATEMENT_FORM_COUNT 12

/* Binds the parameters of an ADD, UPDATE or PUT. */
void statement_bind(const struct record_table *table, enum statement_form form, const void *record,
                    struct sql_parameters *parameters);

/* The text, made when it is first asked for, from the table alone; the store's until it is
 * closed. */
const char *statement_of(struct platform_store *store, const struct record_table *table,
                         enum statement_form form);
void statements_destroy(struct statements **statements);

/* ---- many queries ---------------------------------------------------------------------------- */

/*
 * Queries of a transaction that go out together, each with parameters of its own. When there is no
 * room for one more, those before it are run; an error waits for sql_flight_run. After that the
 * next one that is added is the first of the next flight: until then the results can be seen.
 */
#define FLIGHT_MAX 256U
struct sql_flight {
    struct platform_store *store;
    size_t count;
    bool flown;         /* those that are there have been run */
    enum status status; /* STATUS_OK: of all that were run so far */
    struct error error;
    struct sql_query queries[FLIGHT_MAX];
    struct sql_parameters parameters[FLIGHT_MAX];
};

struct sql_query *sql_flight_add(struct sql_flight *flight, const char *sql);
/* The table's statement; of an ADD, UPDATE or PUT with the parameters of `record`, else NULL. */
struct sql_query *sql_flight_of(struct sql_flight *flight, const struct record_table *table,
                                enum statement_form form, const void *record);
/* Runs what was added. `last`: nothing has to be decided after it. */
MUST_CHECK enum status sql_flight_run(struct sql_flight *flight, bool last, struct error *error);

/* Records that one transaction writes: the context of its body. */
struct sql_records {
    const void *at;
    size_t count;
};

/* One transaction of flights (sql_verbs.transact); the flight is empty when `body` is called. */
typedef enum status sql_flights(struct sql_flight *flight, void *context, struct error *error);
MUST_CHECK enum status sql_transact(struct platform_store *store, sql_flights *body, void *context,
                                    struct error *error);
