/*
 * The INI file. inih finds sections, keys and values; what it lets pass is refused here, because a
 * setting that is silently cut, joined or overwritten is worse than a program that does not start:
 * lines that are too long for its buffer (it would read them as two), NUL and control characters,
 * a key twice, an unknown section, a value of several lines where only one fits.
 *
 * inih calls the reader for every line and the handler for every key, in turn, so the reader's line
 * number is the handler's.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <ini.h>

#include "base/memory.h"
#include "config/settings.h"

#define FILE_SIZE_MAX ((size_t)1024 * 1024)
#define LINE_SIZE_MAX 4096

struct entry {
    size_t setting;
    unsigned line;
    struct buffer value;
};

struct reading {
    struct text rest; /* of the file */
    unsigned line;    /* of the last one that inih was given */
    bool goes_on; /* is that one a continuation: indented, and neither key, section nor comment? */
    struct entry *entries; /* one a setting at most, in the order they came */
    size_t entry_count;
    unsigned problem_line; /* 0: none */
    struct error problem;
};

/* Keeps the first problem; the reader then ends the file. */
static void PRINTF_LIKE(2, 3) problem(struct reading *reading, const char *format, ...)
{
    if (reading->problem_line != 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(reading->problem.text, sizeof reading->problem.text, format, arguments);
    va_end(arguments);
    reading->problem_line = reading->line;
}

static void check_section_line(struct reading *reading, struct text line)
{
    const char *end = memchr(line.at, ']', line.size);
    if (end == NULL)
        return; /* inih complains about it */
    struct text name = {line.at + 1, (size_t)(end - line.at) - 1};
    if (!setting_section_exists(name))
        problem(
            reading,
            "there is no section [%.*s]; sections are server, operator, odds, platform, casino, "
            "log",
            (int)(name.size < 64 ? name.size : 64), name.at);
}

/* Cuts a comment off the end of a continuation line, as inih does for the first line of a value. */
static struct text without_comment(struct text line)
{
    for (size_t i = 1; i < line.size; i++)
        if (line.at[i] == ';' && (line.at[i - 1] == ' ' || line.at[i - 1] == '\t'))
            line.size = i;
    return line;
}

/* inih's fgets. */
static char *give_line(char *out, int room, void *context)
{
    struct reading *reading = context;
    if (reading->problem_line != 0 || reading->rest.at == NULL || reading->rest.size == 0)
        return NULL;
    reading->line++;
    struct text line = text_cut(&reading->rest, '\n');
    if (line.size > 0 && line.at[line.size - 1] == '\r')
        line.size--;
    for (size_t i = 0; i < line.size; i++)
        if (((unsigned char)line.at[i] < ' ' && line.at[i] != '\t') || line.at[i] == 0x7F)
            problem(reading, "there is a control character in this line");
    struct text trimmed = text_trim(line);
    /* inih takes every indented line for the continuation of the value before. Keys may be indented
     * all the same; what a list goes on with has no '='. */
    bool continuation = trimmed.size > 0 && trimmed.at > line.at &&
                        strchr("[#;", trimmed.at[0]) == NULL &&
                        memchr(trimmed.at, '=', trimmed.size) == NULL;
    reading->goes_on = continuation;
    line = continuation ? without_comment(line) : trimmed;
    if (line.size + 2 > (size_t)room)
        problem(reading,
                "this line is longer than %d bytes; lists may go on in the next line, and "
                "every setting can also be an environment variable",
                room - 2);
    if (trimmed.size > 0 && trimmed.at[0] == '[')
        check_section_line(reading, trimmed);
    if (reading->problem_line != 0)
        return NULL;
    if (line.size > 0)
        memcpy(out, line.at, line.size);
    out[line.size] = '\n';
    out[line.size + 1] = '\0';
    return out;
}

static void problem_unknown_key(struct reading *reading, const char *section, const char *key)
{
    if (section[0] == '\0') {
        problem(reading, "'%s' stands before the first [section]", key);
        return;
    }
    struct buffer names = {0};
    for (size_t i = 0; i < setting_count; i++)
        if (strcmp(settings[i].about.section, section) == 0)
            buffer_append_format(&names, "%s%s", names.size > 0 ? ", " : "", settings[i].about.key);
    problem(reading, "there is no setting '%s' in [%s]; there are %s", key, section,
            buffer_string(&names));
    buffer_free(&names);
}

/* inih's handler: one key, or one more line of the key before. */
static int take_key(void *context, const char *section, const char *key, const char *value)
{
    struct reading *reading = context;
    if (reading->problem_line != 0)
        return 1;
    size_t setting = setting_find(text_of(section), text_of(key));
    if (setting == setting_count) {
        problem_unknown_key(reading, section, key);
        return 1;
    }
    struct entry *known = NULL;
    for (size_t i = 0; i < reading->entry_count; i++)
        if (reading->entries[i].setting == setting)
            known = &reading->entries[i];
    if (known == NULL) {
        known = &reading->entries[reading->entry_count++];
        *known = (struct entry){.setting = setting, .line = reading->line};
        buffer_append_string(&known->value, value);
        return 1;
    }
    if (!reading->goes_on)
        problem(reading, "[%s] %s is set twice, first in line %u", section, key, known->line);
    else if (!settings[setting].list)
        problem(reading, "this line begins with a space and goes on with [%s] %s, which is no list",
                section, key);
    buffer_append_char(&known->value, ' ');
    buffer_append_string(&known->value, value);
    return 1;
}

static enum status read_whole(const char *path, struct buffer *out, struct error *error)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return error_set(error, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_UNAVAILABLE,
                         "%s: cannot be opened: %s", path, strerror(errno));
    enum status status = STATUS_OK;
    size_t got;
    do {
        buffer_reserve(out, 4096);
        got = fread(out->data + out->size, 1, 4096, file);
        out->size += got;
    } while (got > 0 && out->size <= FILE_SIZE_MAX);
    if (ferror(file) != 0)
        status =
            error_set(error, STATUS_UNAVAILABLE, "%s: cannot be read: %s", path, strerror(errno));
    else if (out->size > FILE_SIZE_MAX)
        status =
            error_set(error, STATUS_INVALID, "%s: is larger than 1 MiB: not a configuration", path);
    (void)fclose(file);
    return status;
}

static enum status hand_over(struct reading *reading, const char *path, config_taker *take,
                             void *context, struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < reading->entry_count && status == STATUS_OK; i++) {
        struct entry *entry = &reading->entries[i];
        const struct setting_description *about = &settings[entry->setting].about;
        struct buffer origin = {0};
        buffer_append_format(&origin, "%s:%u: [%s] %s", path, entry->line, about->section,
                             about->key);
        status = take(context, entry->setting, buffer_text(&entry->value), buffer_string(&origin),
                      error);
        buffer_free(&origin);
    }
    return status;
}

enum status config_file_read(const char *path, config_taker *take, void *context,
                             struct error *error)
{
    struct buffer bytes = {0};
    struct reading reading = {0};
    reading.entries = memory_alloc_zeroed(setting_count, sizeof reading.entries[0]);
    enum status status = read_whole(path, &bytes, error);
    if (status != STATUS_OK)
        goto out;
    reading.rest = buffer_text(&bytes);
#ifdef CROUPIER_INIH_MAX_LINE /* set at run time in Debian's inih; others have 200 built in */
    ini_max_line = LINE_SIZE_MAX;
#endif
    int bad_line = ini_parse_stream(give_line, &reading, take_key, &reading);
    if (reading.problem_line != 0 && (bad_line <= 0 || reading.problem_line <= (unsigned)bad_line))
        status = error_set(error, STATUS_INVALID, "%s:%u: %s", path, reading.problem_line,
                           reading.problem.text);
    else if (bad_line != 0)
        status = error_set(error, STATUS_INVALID,
                           "%s:%d: this is neither [section] nor key = value nor a comment", path,
                           bad_line);
    else
        status = hand_over(&reading, path, take, context, error);
out:
    for (size_t i = 0; i < reading.entry_count; i++)
        buffer_free(&reading.entries[i].value);
    memory_free(reading.entries);
    buffer_free(&bytes);
    return status;
}
