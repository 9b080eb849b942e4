#pragma once

#include "base/json_writer.h"
#include "records/record.h"

/*
 * The audit trail: each change of a record with its author, its time, the values before and after.
 * A row is written in the transaction of the change (stores/platform/trail.h), and none is ever
 * changed or deleted: the store has triggers against it.
 *
 * Before and after are JSON objects of the columns that changed, by their names in the store and
 * with what the store holds. A column that is COLUMN_SECRET is named, and its value is not shown;
 * one that is COLUMN_UNAUDITED is left out. The first column is the object, and left out as well.
 */

#define TRAIL_WHO_SIZE 129
#define TRAIL_COMMAND_SIZE 65
#define TRAIL_KIND_SIZE 33
#define TRAIL_OBJECT_SIZE 129

struct trail_record {
    uint64_t number; /* 1, 2, 3 … in the order of commits, without a gap */
    int64_t at_ms;
    char who[TRAIL_WHO_SIZE];         /* a user of the system, or an operator */
    char command[TRAIL_COMMAND_SIZE]; /* of the program: "customer set" */
    char kind[TRAIL_KIND_SIZE];       /* as struct record_table has it: "customer" */
    char object[TRAIL_OBJECT_SIZE];   /* its id, or its address */
    struct text before;               /* ""; it was added. Borrowed */
    struct text after;                /* borrowed */
};

extern const struct record_table trail_table;

/* ---- a record's columns ---------------------------------------------------------------------- */

/* Zeroed at first; may be set again. */
struct trail_image {
    const struct record_table *table; /* NULL: there is no record */
    char object[TRAIL_OBJECT_SIZE];   /* the first column, as trail_record.object has it */
    struct buffer values;             /* JSON of the columns, one behind the other */
    size_t ends[RECORD_COLUMNS_MAX];  /* of each in `values` */
};
void trail_image_clear(struct trail_image *image);
void trail_image_free(struct trail_image *image);

/* Takes all columns of a row of the table, in their order. */
void trail_image_begin(struct trail_image *image, const struct record_table *table);
void trail_image_add(struct trail_image *image, size_t column, const struct column_value *value);
/* Takes the columns of a record. */
void trail_image_of(struct trail_image *image, const struct record_table *table,
                    const void *record);

/* Does the one hold otherwise than the other in a column that is audited? */
bool trail_images_differ(const struct trail_image *before, const struct trail_image *after);

/* Appends both objects: the columns that differ; of a record that was added all of `after`, and
 * nothing to `out_before`. */
void trail_images_write(const struct trail_image *before, const struct trail_image *after,
                        struct buffer *out_before, struct buffer *out_after);
