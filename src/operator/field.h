#pragma once

#include "records/records.h"

/*
 * A field of a resource (operator/resource.h): its names in documents and on screens, how its value
 * is written, shown and read, and the option of the command line that sets it. Commands, the
 * console, help texts and completions all use this one row.
 */

struct field;
typedef enum status field_setter(const struct field *field, struct text text, void *record,
                                 struct error *error);

/* A value goes into a document, or into a text for people, who have little room in a table. */
struct field_output {
    struct json_writer *json; /* NULL: */
    struct buffer *text;
    bool brief;
};

/*
 * The functions that write and read values of one type; `record` is the struct that the field is
 * in. `write` returns false where people need not read it. `set` reads what a person wrote. A text
 * whose `at` is NULL takes away what is there. STATUS_INVALID names what is wrong, and the record
 * is as it was. NULL: it cannot be written, or set.
 */
struct field_type {
    bool (*write)(const struct field *field, const void *record, const struct field_output *out);
    field_setter *set;
};

/* The option that sets a field. Its help differs, because `add` has defaults and `set` has not. */
struct field_option {
    const char *name;     /* "cidr"; NULL: there is none */
    const char *value;    /* "CIDR"; NULL: a flag, which means yes */
    const char *add_help; /* NULL: not an option of `add` */
    const char *set_help; /* NULL: not an option of `set` */
    const char *no_name;  /* "no-cidrs", of `set`: takes away what is there; NULL: there is none */
    const char *no_help;
    bool repeatable; /* the values are joined by commas */
};

struct field {
    const char *name;  /* in documents and settings; NULL: it is in neither */
    const char *label; /* before its value, where one record is shown; NULL: it is not shown */
    const char *title; /* of its column, where records are listed; NULL: it has none */
    const struct field_type *type; /* NULL ends a table */
    size_t at, room;               /* where the value is in the struct, and its size */
    size_t least;                  /* bytes of a text */
    const char *words;             /* shown for the empty text; by type */
    size_t beside;                 /* where another value is that the type looks at; by type */
    struct field_option option;
    bool owners;       /* in the console, only owners may set it */
    field_setter *set; /* in place of the type's; NULL: as the type does */
    int width; /* of its column, where rows are printed as they come; negative: to the left */
    /* The value, where it is in no member; of field_count and field_amount. */
    int64_t (*compute)(const void *record);
    const struct enum_names *names; /* of field_word */
};

/* at and room, of a struct's member. */
#define FIELD_OF(type, member) \
    .at = offsetof(struct type, member), .room = sizeof(((struct type *)NULL)->member)

/* The same, of field_enabled and of the types of address blocks. */
#define OF_ENABLED(type) FIELD_OF(type, enabled), .beside = offsetof(struct type, usable)
#define OF_CIDRS(type) FIELD_OF(type, cidrs), .beside = offsetof(struct type, cidr_count)

extern const struct field_type field_text;         /* char[]; in documents "" is "" */
extern const struct field_type field_text_or_null; /* char[]; in documents "" is null */
extern const struct field_type field_text_if_any;  /* char[]; in documents it is no member if "" */
extern const struct field_type field_list;         /* char[]: items separated by LF */
extern const struct field_type field_yes_no;       /* bool */
extern const struct field_type field_if_true;      /* bool; in documents no member if it is false */
extern const struct field_type field_count;        /* size_t */
extern const struct field_type field_amount;       /* int64_t: minor units, `beside` its exponent */
extern const struct field_type field_exponent;     /* uint8_t; people see it in the amounts */
extern const struct field_type field_day;          /* int64_t: days since 1970-01-01 */
extern const struct field_type field_hex;          /* uint8_t[] */
extern const struct field_type field_word;         /* an enum; in documents "" is null */
extern const struct field_type field_time;         /* int64_t: milliseconds; 0 is `words`, else - */
extern const struct field_type field_sports;       /* sport_set: all, none, or names */
extern const struct field_type field_rate;         /* struct rate_limit: 600/60, or off */
extern const struct field_type field_enabled;      /* bool; `beside`: whether it is usable */
/* bool: only said where it is false, with `words`. */
extern const struct field_type field_usable;
/* int64_t: when it expires, or 0; `beside`: when it was revoked, or 0. Is it live? */
extern const struct field_type field_live;
/* An array of struct cidr; `beside`: where its count is, a size_t. Setting it takes the place of
 * what was there. `words` are for an empty list. */
extern const struct field_type field_cidrs;
/* The same array, to which setting appends blocks, or from which it takes them. Neither a block
 * that is there already nor one that is not there is an error. */
extern const struct field_type field_cidrs_added, field_cidrs_removed;
extern const struct field_type field_secret; /* set by an editor: its text is not applied */

/* Types use this: it finds the value in the record. */
static inline const void *field_value(const struct field *field, const void *record)
{
    return (const char *)record + field->at;
}
static inline void *field_value_to_set(const struct field *field, void *record)
{
    return (char *)record + field->at;
}

/* Sets an int64_t to a time that is after `beside`, the time when the record is made. */
field_setter field_set_expiry;

/* Puts a text into a char[], when it is UTF-8 without control characters that fits with its NUL. */
field_setter field_set_text;

/* Sets a char[GAME_LIST_SIZE], which a field_list is of, to codes of countries between commas:
 * where a game, or the games of a provider, must not be offered. */
field_setter field_set_countries;

/* Set a bool, by yes or no; by on or off as well. */
field_setter field_set_yes_no, field_set_on_off;

/* The fields that have a name, as members of an object that is open, and as an object. */
void fields_write(const struct field *fields, const void *record, struct json_writer *json);
void fields_write_object(const struct field *fields, const void *record, struct json_writer *json);

/* A line of the values of a record, or of the titles (NULL), each as wide as its column. */
void fields_append_row(const struct field *fields, const void *record, struct buffer *out);

/* The field of a table that has this name, or NULL. */
const struct field *field_find(const struct field *fields, const char *name);
/* The option that sets it; NULL: none does. */
field_setter *field_setter_of(const struct field *field);
