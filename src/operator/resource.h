#pragma once

#include "operator/field.h"
#include "stores/platform_records.h"

/*
 * A resource is a kind of record that operators work with (customers, keys, addresses, providers,
 * games): a table of fields, the store's verbs, and the verbs of an operator over them, for
 * commands and the console alike. Texts in, records out; block as the store does. Refusals are for
 * the person who gave the texts: STATUS_INVALID when a text is malformed, another status when the
 * store refuses.
 *
 * A record is the struct that the fields are in: the stored record, or one that begins with it and
 * has what is shown beside it.
 */

/* One thing to set: a field by its name, and a text as for its type; NULL takes away what is there.
 * Several make a list, which a row without a name ends. */
struct setting {
    const char *name;
    const char *text;
};

struct resource {
    enum record_kind kind;      /* of what the store has; a record begins with it */
    const struct field *fields; /* the first is the id */
    size_t size;                /* of a record */
    bool makes_id;              /* `begin` makes the id, which callers may not set */

    /* Gives a new record, which is zeroed, its defaults. */
    void (*begin)(void *record, int64_t now_ms);
    /* As a document; NULL: the fields that have a name. */
    void (*write)(struct json_writer *json, const void *record);
    /* Where in a record its state is, of a kind whose records are removed, and may be added again.
     * A removed record is not there for an operator. Zeros: records are not removed. */
    struct resource_state {
        size_t removed, enabled, created_ms, revision;
    } state;
    /* A record that is acceptable as a whole, as the kind's table judges it: settings are tried on
     * it. NULL: a record is acceptable when each setting is. */
    const void *sound;
    /* A record that is not usable is changed only when all of these (NULL-terminated) are set: the
     * program does not guess its other fields. `mend` is the command that sets them. NULL: the
     * store judges. */
    const char *const *whole;
    const char *mend;

    /* Verbs in place of the store's general ones (stores/platform_records.h); NULL: the general
     * one. Those that write may change the record into what is stored then. `put` is STATUS_EXISTS
     * when the record was changed since it was read. `list` gets `of`, the owner of the records, or
     * NULL. */
    enum status (*get)(struct platform_store *store, const char *id, void *record,
                       struct error *error);
    enum status (*put)(struct platform_store *store, void *record, struct error *error);
    enum status (*list)(struct platform_store *store, const char *of, record_function *see,
                        void *context, struct error *error);
};

/* The members of every resource. */
#define RESOURCE(kind_, record_, fields_) \
    .kind = (kind_), .fields = (fields_), .size = sizeof(struct record_)

/* ---- verbs ----------------------------------------------------------------------------------- */

#define RESOURCE_STATE_OF(type)                                                \
    {                                                                          \
        offsetof(struct type, removed), offsetof(struct type, enabled),        \
            offsetof(struct type, created_ms), offsetof(struct type, revision) \
    }

/* A change of a record: these settings, and then `edit`, unless NULL, for what no text says. */
typedef enum status resource_editor(const void *context, void *record, struct error *error);
struct resource_edit {
    const struct setting *settings; /* NULL: none */
    resource_editor *edit;
    const void *context;
    /* Of a change: refuses a record, as it is before the settings, that is not what was expected.
     * NULL: whatever it is. */
    enum status (*expect)(const void *context, const void *record, struct error *error);
    bool remove;        /* the record, also when another operator changed it */
    const char **wrong; /* NULL, or becomes the name of the setting that was refused */
};
/* Settings alone, for a call: EDIT({"rate", "off"}, {"casino", "yes"}). */
#define EDIT(...) \
    (&(const struct resource_edit){.settings = (const struct setting[]){__VA_ARGS__, {0}}})

/* Fills a record: as new, and then edited. Needs no store. */
MUST_CHECK enum status resource_make(const struct resource *resource,
                                     const struct resource_edit *edit, int64_t now_ms, void *record,
                                     struct error *error);

/* Adds a record that was made. */
MUST_CHECK enum status resource_insert(const struct resource *resource,
                                       struct platform_store *store, void *record,
                                       struct error *error);

/* Makes and inserts. */
MUST_CHECK enum status resource_add(const struct resource *resource, struct platform_store *store,
                                    const struct resource_edit *edit, int64_t now_ms, void *record,
                                    struct error *error);

MUST_CHECK enum status resource_get(const struct resource *resource, struct platform_store *store,
                                    const char *id, void *record, struct error *error);

/* All, in the store's order, as record_function says; `of`: the owner of the records, or
 * NULL. */
MUST_CHECK enum status resource_list(const struct resource *resource, struct platform_store *store,
                                     const char *of, record_function *see, void *context,
                                     struct error *error);

/* Are these settings what they must be, and the id? Needs no store. */
MUST_CHECK enum status resource_check(const struct resource *resource, const char *id,
                                      const struct setting *settings, struct error *error);

/* Every setting that is refused by itself, with the reason. Needs no store. */
void resource_refusals(const struct resource *resource, const struct setting *settings,
                       void (*see)(void *context, const char *name, const char *reason),
                       void *context);

/* Changes the given fields and leaves the others, also when another writer changes those at the
 * same time. */
MUST_CHECK enum status resource_change(const struct resource *resource,
                                       struct platform_store *store, const char *id,
                                       const struct resource_edit *edit, void *record,
                                       struct error *error);

/* ---- showing --------------------------------------------------------------------------------- */

void resource_write(const struct resource *resource, const void *record, struct json_writer *json);

/* Its id, as people write it. */
void resource_append_id(const struct resource *resource, const void *record, struct buffer *out);

/* A line a field: its label and its value. */
void resource_show(const struct resource *resource, const void *record, struct buffer *out);

/* ---- for resources --------------------------------------------------------------------------- */

/* STATUS_NOT_FOUND: "there is no customer 'cus_…'". */
enum status resource_missing(const struct resource *resource, const char *id, struct error *error);
