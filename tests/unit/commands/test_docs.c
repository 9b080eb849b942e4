/* The tables and the documents say the same: every setting, metric and error is in docs/, with what
 * can be looked up about it, and no metric that does not exist. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "admission/errors.h"
#include "base/memory.h"
#include "config/config.h"
#include "games/errors.h"
#include "http/http.h"
#include "launch/errors.h"
#include "metrics/metrics.h"
#include "sports/errors.h"
#include "wallet/errors.h"

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
    (void)state;
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
    (void)state;
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

static void every_setting_is_there_with_variable_and_default(void **state)
{
    (void)state;
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

static void every_metric_is_there_with_its_type(void **state)
{
    (void)state;
    const struct metric_description *metric;
    for (size_t i = 0; (metric = metrics_description(i)) != NULL; i++) {
        char name[128];
        (void)snprintf(name, sizeof name, "`%s`", metric->name);
        expect_row(name, metric->type, NULL);
    }
}

static void every_error_is_there_with_status_and_message(void **state)
{
    (void)state;
    static const struct http_error *const *const tables[] = {
        http_errors, admission_errors, sports_errors, games_errors, launch_errors, wallet_errors};
    size_t count = 0;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        for (const struct http_error *const *error = tables[i]; *error != NULL; error++, count++) {
            char code[128];
            char status[16];
            (void)snprintf(code, sizeof code, "`%s`", (*error)->code);
            (void)snprintf(status, sizeof status, "%d", (*error)->status);
            expect_row(code, status, (*error)->message);
        }
    }
    assert_true(count > 40);
}

static bool metric_exists(struct text name)
{
    static const char *const suffixes[] = {"", "_bucket", "_sum", "_count"};
    const struct metric_description *metric;
    for (size_t i = 0; (metric = metrics_description(i)) != NULL; i++) {
        for (size_t suffix = 0; suffix < 4; suffix++) {
            char full[128];
            (void)snprintf(full, sizeof full, "%s%s", metric->name, suffixes[suffix]);
            if (text_equals(name, text_of(full)))
                return true;
        }
    }
    return false;
}

static void no_metric_is_made_up(void **state)
{
    (void)state;
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    size_t found = 0;
    for (const char *at = strstr(docs.data, "croupier_"); at != NULL;
         at = strstr(at + 1, "croupier_")) {
        struct text name = {at, strspn(at, letters)};
        /* croupier_x as part of another word is not a metric's name. */
        if (at > docs.data && strchr("`({ ,", at[-1]) == NULL)
            continue;
        if (!metric_exists(name))
            fail_msg("docs/*.md name %.*s, which does not exist", (int)name.size, name.at);
        found++;
    }
    assert_true(found > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting_is_there_with_variable_and_default),
        cmocka_unit_test(every_metric_is_there_with_its_type),
        cmocka_unit_test(every_error_is_there_with_status_and_message),
        cmocka_unit_test(no_metric_is_made_up),
    };
    return cmocka_run_group_tests(tests, read_docs, free_docs);
}
