/* The tables and the documents say the same: every setting and error is in docs/, with what can be
 * looked up about it. (Metrics: the service's own test.) */
#include <dirent.h>

#include "api/reasons.h"
#include "base/file.h"
#include "base/memory.h"
#include "config/config.h"
#include "tests.h"

static struct buffer docs; /* all of docs/, one file after the other */

static void append_file(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t got;
    do {
        buffer_reserve(&docs, 65536);
        got = fread(docs.data + docs.size, 1, 65536, file);
        docs.size += got;
    } while (got > 0);
    (void)fclose(file);
}

static int read_docs(void **state)
{
    DIR *folder = opendir(SOURCE_ROOT "/docs");
    if (folder == NULL)
        return -1;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        size_t size = strlen(entry->d_name);
        char path[1024];
        (void)snprintf(path, sizeof path, SOURCE_ROOT "/docs/%s", entry->d_name);
        if (size > 3 && strcmp(entry->d_name + size - 3, ".md") == 0)
            append_file(path);
    }
    (void)buffer_string(&docs);
    return closedir(folder);
}

static int free_docs(void **state)
{
    buffer_free(&docs);
    return 0;
}

static bool holds(struct text line, const char *part)
{
    return part == NULL || memmem(line.at, line.size, part, strlen(part)) != NULL;
}

/* Is there a line that holds all three parts? NULL: need not. */
static void expect_row(const char *first, const char *second, const char *third)
{
    struct text rest = buffer_text(&docs);
    while (rest.at != NULL) {
        struct text line = text_cut(&rest, '\n');
        if (holds(line, first) && holds(line, second) && holds(line, third))
            return;
    }
    fail_msg("docs/*.md: no line has %s%s%s%s%s", first, second == NULL ? "" : " and ",
             second == NULL ? "" : second, third == NULL ? "" : " and ",
             third == NULL ? "" : third);
}

TEST(every_setting_is_there_with_variable_and_default)
{
    const struct setting_description *setting;
    for (size_t i = 0; (setting = config_setting(i)) != NULL; i++) {
        struct buffer key = {0};
        struct buffer variable = {0};
        struct buffer value = {0};
        buffer_append_format(&key, "`%s`", setting->key);
        buffer_append_char(&variable, '`');
        config_append_variable(setting, &variable);
        buffer_append_char(&variable, '`');
        buffer_append_format(&value, "`%s`", setting->default_text);
        expect_row(buffer_string(&variable), buffer_string(&key),
                   setting->default_text[0] == '\0' ? NULL : buffer_string(&value));
        buffer_free(&key);
        buffer_free(&variable);
        buffer_free(&value);
    }
}

TEST(every_error_is_there_with_status_and_message)
{
    for (size_t i = 0; reason_at(i) != NULL; i++) {
        const struct http_error *error = reason_at(i);
        char code[128];
        char status[16];
        (void)snprintf(code, sizeof code, "`%s`", error->code);
        (void)snprintf(status, sizeof status, "%d", error->status);
        if (error->code[0] != '\0')
            expect_row(code, status, error->message);
    }
}

static bool begins(struct text line, const char *with)
{
    return line.size >= strlen(with) && memcmp(line.at, with, strlen(with)) == 0;
}

/* Both ways: a word that the program has no more must not stay. */
TEST(docs_reasons_has_every_reason_and_no_other)
{
    size_t rows = 0;
    struct buffer page = {0};
    assert_int_equal(file_read(SOURCE_ROOT "/docs/reasons.md", 1U << 20, &page), 0);
    struct text rest = buffer_text(&page);
    while (rest.at != NULL) {
        struct text line = text_cut(&rest, '\n');
        if (!begins(line, "| `"))
            continue;
        size_t found = 0;
        for (size_t i = 0; reason_at(i) != NULL; i++) {
            const struct http_error *error = reason_at(i);
            char row[128];
            if (error->code[0] == '\0')
                (void)snprintf(row, sizeof row, "| `%s` | %d |", error->reason, error->status);
            else
                (void)snprintf(row, sizeof row, "| `%s` | %d `%s` |", error->reason, error->status,
                               error->code);
            found += begins(line, row);
        }
        if (found != 1)
            fail_msg("docs/reasons.md: %.*s", (int)line.size, line.at);
        rows++;
    }
    assert_true(rows > 0 && reason_at(rows - 1) != NULL && reason_at(rows) == NULL);
    buffer_free(&page);
}

TESTS_WITH(read_docs, free_docs);
