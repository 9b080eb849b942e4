/*
 * A plain table. Cells are kept as texts until all are known, because a column is as wide as its
 * widest cell. Width is counted in characters (code points): names are UTF-8. On a narrower
 * terminal the widest columns are cut until the line fits; other outputs get everything.
 */
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/command.h"

#define GAP 2         /* spaces between columns */
#define WIDTH_LEAST 8 /* a column is not cut below that: the terminal wraps the line then */

struct table {
    struct buffer cells; /* every cell, headers first, each ended by NUL */
    size_t columns;
    size_t count; /* of cells */
};

static void append_shown(struct buffer *out, const char *string)
{
    buffer_append_shown(out, text_of(string));
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

void table_row(struct table *table, const char *const *cells)
{
    for (size_t i = 0; i < table->columns; i++)
        table_cell(table, cells[i]);
}

/* The columns of the terminal that `out` is; SIZE_MAX: it is none, or does not say. */
static size_t terminal_width(FILE *out)
{
    struct winsize size = {0};
    int descriptor = fileno(out);
    if (descriptor < 0 || !isatty(descriptor) || ioctl(descriptor, TIOCGWINSZ, &size) != 0 ||
        size.ws_col == 0)
        return SIZE_MAX;
    return size.ws_col;
}

/* Cuts the widest column, the last of several, by one until all fit. The first is cut last: it is
 * what a row is called, and what a next command takes. */
static void fit_widths(size_t *widths, size_t columns, size_t room)
{
    size_t total = GAP * (columns - 1);
    for (size_t i = 0; i < columns; i++)
        total += widths[i];
    while (total > room) {
        size_t widest = 0;
        for (size_t i = 1; i < columns; i++)
            if (widths[i] > WIDTH_LEAST && (widest == 0 || widths[i] >= widths[widest]))
                widest = i;
        if (widths[widest] <= WIDTH_LEAST)
            return;
        widths[widest]--;
        total--;
    }
}

/* Returns how many characters were printed. */
static size_t print_cell(const char *cell, size_t room, FILE *out)
{
    size_t width = shown_width(cell);
    if (width <= room) {
        (void)fputs(cell, out);
        return width;
    }
    const char *end = cell;
    for (size_t shown = 0; shown < room; end++) /* to the start of the character behind */
        shown += ((unsigned char)end[1] & 0xC0) != 0x80 ? 1 : 0;
    while (((unsigned char)*--end & 0xC0) == 0x80) /* and back by one: the dots have its place */
        ;
    (void)fprintf(out, "%.*s…", (int)(end - cell), cell);
    return room;
}

void table_print(struct table **table_at, FILE *out)
{
    table_print_within(table_at, terminal_width(out), out);
}

void table_print_within(struct table **table_at, size_t room, FILE *out)
{
    struct table *table = *table_at;
    CHECK(table->count % table->columns == 0);
    size_t *widths = memory_alloc_zeroed(table->columns, sizeof widths[0]);
    const char *cell = table->cells.data;
    for (size_t i = 0; i < table->count; i++, cell += strlen(cell) + 1)
        if (shown_width(cell) > widths[i % table->columns])
            widths[i % table->columns] = shown_width(cell);
    fit_widths(widths, table->columns, room);
    cell = table->cells.data;
    for (size_t i = 0; i < table->count; i++, cell += strlen(cell) + 1) {
        bool last = (i + 1) % table->columns == 0;
        size_t width = widths[i % table->columns];
        size_t printed = print_cell(cell, width, out);
        /* Nothing follows the last cell, so that copying a line copies no spaces. */
        (void)fprintf(out, "%*s%s", last ? 0 : (int)(width - printed + GAP), "", last ? "\n" : "");
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
