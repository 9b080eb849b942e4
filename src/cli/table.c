/*
 * A plain table. Cells are kept as texts until all are known, because a column is as wide as its
 * widest cell. Width is counted in characters (code points): names are UTF-8.
 */
#include <string.h>

#include "base/memory.h"
#include "cli/command.h"

struct table {
    struct buffer cells; /* every cell, headers first, each ended by NUL */
    size_t columns;
    size_t count; /* of cells */
};

/* What could move a terminal's cursor is shown as '?': ASCII controls, DEL, C1 controls (C2 80 to
 * 9F), and bytes that are no part of a UTF-8 sequence are left to the terminal. */
static void append_shown(struct buffer *out, const char *string)
{
    for (const unsigned char *at = (const unsigned char *)string; *at != '\0'; at++) {
        bool c1 = at[0] == 0xC2 && at[1] >= 0x80 && at[1] <= 0x9F;
        if (c1)
            at++;
        buffer_append_char(out, c1 || *at < ' ' || *at == 0x7F ? '?' : (char)*at);
    }
    buffer_append_char(out, '\0');
}

static size_t shown_width(const char *cell)
{
    size_t width = 0;
    for (; *cell != '\0'; cell++)
        width += ((unsigned char)*cell & 0xC0) != 0x80 ? 1 : 0;
    return width;
}

struct table *table_create(const char *const *headers)
{
    struct table *table = memory_alloc_zeroed(1, sizeof *table);
    for (; headers[table->columns] != NULL; table->columns++)
        append_shown(&table->cells, headers[table->columns]);
    CHECK(table->columns > 0);
    table->count = table->columns;
    return table;
}

void table_cell(struct table *table, const char *text)
{
    append_shown(&table->cells, text);
    table->count++;
}

void table_print(struct table **table_at, FILE *out)
{
    struct table *table = *table_at;
    CHECK(table->count % table->columns == 0);
    size_t *widths = memory_alloc_zeroed(table->columns, sizeof widths[0]);
    const char *cell = table->cells.data;
    for (size_t i = 0; i < table->count; i++, cell += strlen(cell) + 1)
        if (shown_width(cell) > widths[i % table->columns])
            widths[i % table->columns] = shown_width(cell);
    cell = table->cells.data;
    for (size_t i = 0; i < table->count; i++, cell += strlen(cell) + 1) {
        bool last = (i + 1) % table->columns == 0;
        (void)fputs(cell, out);
        /* Nothing follows the last cell, so that copying a line copies no spaces. */
        size_t pad = last ? 0 : widths[i % table->columns] - shown_width(cell) + 2;
        (void)fprintf(out, "%*s%s", (int)pad, "", last ? "\n" : "");
    }
    memory_free(widths);
    table_destroy(table_at);
}

void table_destroy(struct table **table)
{
    if (*table != NULL)
        buffer_free(&(*table)->cells);
    memory_free(*table);
    *table = NULL;
}
