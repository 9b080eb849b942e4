#pragma once

#include "base/text.h"

/*
 * Records of the platform store and their columns, described once.
 *
 * A record is a plain struct with its rules, in a file of its own (customer.h, key.h, …), and one
 * constant table that says in which column each of its fields stands. The store builds its
 * statements from the table, and every engine binds and reads by it; so does what compares records.
 * A new column is a field, a line in the table, and a migration for each engine
 * (docs/decisions/records.md).
 *
 * Rows are input: a person may have edited them, or a later version written them. Reading one never
 * goes beyond a field. A value that does not fit leaves its field zero and makes the record
 * unsound; the table's `settle` decides about such a record.
 *
 * Everything here is pure, but for new ids. Threads: any.
 */

/* The type of a column in a database. */
enum column_kind { COLUMN_INTEGER, COLUMN_FLAG, COLUMN_TEXT, COLUMN_BYTES };

struct column_value {
    enum column_kind kind;
    bool null;
    int64_t integer;    /* COLUMN_INTEGER; COLUMN_FLAG, where all but 0 and 1 is unsound */
    struct text bytes;  /* COLUMN_TEXT, COLUMN_BYTES: borrowed from the record, the row or `made` */
    struct buffer made; /* the text of a field that is none; column_value_free gives it back */
};

struct column;

/* The functions that turn a field of one C type into a value, and back. `set` is false, and leaves
 * the field as it is, when the value does not fit. */
struct column_type {
    enum column_kind kind;
    void (*get)(const struct column *column, const void *record, struct column_value *value);
    bool (*set)(const struct column *column, void *record, const struct column_value *value);
    const struct enum_names *names; /* of an enum: COLUMN_NAMES */
    size_t size;                    /* of a number's field, */
    int64_t least, most;
    int64_t none; /* and what a NULL is there */
};

/* A type for an enum whose values are stored by these names. NULL as a name is stored as NULL. */
#define COLUMN_NAMES(names_)                                                                   \
    {                                                                                          \
        .kind = COLUMN_TEXT, .get = column_get_name, .set = column_set_name, .names = (names_) \
    }
void column_get_name(const struct column *column, const void *record, struct column_value *value);
bool column_set_name(const struct column *column, void *record, const struct column_value *value);

enum column_rule {
    COLUMN_NULLABLE = 1,   /* NULL is "", 0 (never) or -1 (not known), by type */
    COLUMN_FIXED = 2,      /* an update leaves it as it was when the record was added */
    COLUMN_JOINED = 4,     /* of another table, by the record's `join`; only read */
    COLUMN_SECRET = 16,    /* its value is never shown, not even in the audit trail */
    COLUMN_UNAUDITED = 32, /* the program's own note, no change by a person */
};

struct column {
    const char *name;
    const struct column_type *type;
    size_t at;   /* where the field begins in the struct, */
    size_t room; /* and its size */
    unsigned rules;
    size_t count_at; /* of an array: where the number of its elements is in the struct */
};

/* A line of a table, where the column has another name than the field, and where it has the
 * same. */
#define COLUMN_OF(name, record, field, type, rules)                                            \
    {                                                                                          \
        name, &(type), offsetof(struct record, field), sizeof(((struct record *)NULL)->field), \
            rules, 0                                                                           \
    }
#define COLUMN(record, field, type, rules) COLUMN_OF(#field, record, field, type, rules)

extern const struct column_type column_text;     /* char[]: UTF-8 without control characters */
extern const struct column_type column_lines;    /* char[]: the same, one item a line */
extern const struct column_type column_flag;     /* bool */
extern const struct column_type column_integer;  /* int64_t */
extern const struct column_type column_small;    /* uint8_t */
extern const struct column_type column_known;    /* int32_t, -1 where it is not known */
extern const struct column_type column_bytes;    /* uint8_t[]: exactly as many */
extern const struct column_type column_revision; /* uint64_t: the last change's number */
extern const struct column_type column_borrowed; /* struct text: any text, of the row's */

enum record_kind {
    RECORD_CUSTOMER,
    RECORD_KEY,
    RECORD_ADDRESS,
    RECORD_PLAYER,
    RECORD_BLOCK,
    RECORD_PROVIDER,
    RECORD_GAME,
    RECORD_GAME_POLICY,
    RECORD_LAUNCH,
    RECORD_TRAIL,
    RECORD_OPERATOR,
    RECORD_CREDENTIAL,
    RECORD_TOKEN,
};
#define RECORD_KIND_COUNT 13

#define RECORD_COLUMNS_MAX 20 /* of a table */

struct record_table {
    enum record_kind kind;
    const char *what;   /* for people: "customer" */
    const char *plural; /* "customers" */
    const char *name;   /* of the table */
    const char *join;   /* where joined columns come from; NULL: there are none */
    const char *listed; /* a condition: which rows a list has; NULL: all */
    const char *order;  /* of a list */
    const char *search; /* a condition with parameters, and an order: rows found otherwise than by
                           the key; NULL: they are not */
    const char
        *counter; /* the table with the number that every change takes; NULL: none takes one */
    const struct column *columns; /* the first finds a row */
    size_t column_count;
    size_t size;    /* of the struct */
    size_t usable;  /* where the bool is that says whether the stored row was sound; 0: none */
    bool checked;   /* a row that `check` refuses is not sound either */
    bool strict;    /* a row that is not sound is an error, and no record: money is at stake */
    size_t ended;   /* where the int64_t is that becomes 1, a time long ago, in a row that is not
                       sound, unless it has ended before: it opens nothing; 0: none */
    bool unaudited; /* a change of it is not in the audit trail (records/trail.h) */
    /* Is it acceptable? Else STATUS_INVALID with the field and the reason. */
    enum status (*check)(const void *record, struct error *error);
    /* Call it after all fields of a zeroed struct were set. False: as for `strict`. NULL: nothing
     * more to do. */
    bool (*settle)(void *record, bool sound);
};

/* The parts of every table: its kind, its names, and the columns of a struct. */
#define RECORD_TABLE(kind_, what_, plural_, name_, record_, columns_)                              \
    .kind = (kind_), .what = (what_), .plural = (plural_), .name = (name_), .columns = (columns_), \
    .column_count = sizeof(columns_) / sizeof(columns_)[0], .size = sizeof(struct record_)

/* Indexed by kind. */
extern const struct record_table *const record_tables[RECORD_KIND_COUNT];

/* A column's field in a record; for types. */
static inline const void *column_field(const struct column *column, const void *record)
{
    return (const char *)record + column->at;
}
static inline void *column_field_to_set(const struct column *column, void *record)
{
    return (char *)record + column->at;
}

/* Settles a record whose fields were read from a row; `sound` when all fitted. */
bool record_settle(const struct record_table *table, void *record, bool sound);

/* The value of one field. Free it after use. */
void column_get(const struct column *column, const void *record, struct column_value *value);
void column_value_free(struct column_value *value);

/* ---- rules that several records share -------------------------------------------------------- */

/* A field's text up to its NUL; all of the field where there is none. */
struct text record_field_text(const char *field, size_t room);

/* An id is its kind ("cus_") and one or more ASCII letters and digits; NUL-terminated within
 * `room`. */
bool record_id_is_sound(const char *id, size_t room, const char *kind);

/* Makes a new one: its kind and 16 random base62 characters; the rest of `room` is zero. */
void record_id_generate(const char *kind, char *id, size_t room);

/* Does a text of at least `least` bytes fit its field with its NUL, and is it UTF-8 without control
 * characters? */
bool record_text_is_sound(const char *field, size_t room, size_t least);

/* The same as a check; `what` names the field in the reason. */
MUST_CHECK enum status record_text_check(const char *what, const char *field, size_t room,
                                         size_t least, struct error *error);

/* Three capitals. */
bool currency_is_sound(struct text currency);

/* 1 to 64 of [A-Za-z0-9._:-]: a customer's name of a player or a transaction. */
bool is_outside_name(struct text name);
