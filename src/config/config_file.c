/*
 * The INI file: sections, keys, comments. A setting that is silently cut, joined or overwritten is
 * worse than a program that does not start, so whatever is doubtful is refused with its line: an
 * unknown section or key, a key twice, a value of several lines where only one fits, NUL and other
 * control characters, lines that are longer than anybody writes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "config/settings.h"

#define FILE_SIZE_MAX ((size_t)1024 * 1024)
#define LINE_SIZE_MAX 4094

struct entry {
    size_t setting;
    unsigned line;
    struct buffer value;
};

struct reading {
    unsigned line;
    struct text section;   /* at == NULL: before the first */
    struct entry *entries; /* one a setting at most, in the order they came */
    size_t entry_count;
    struct entry *last; /* of this section; NULL: none yet */
};

/* ---- one line -------------------------------------------------------------------------------- */

/* Cuts off what begins with a ';' that stands after a space. */
static struct text without_comment(struct text text)
{
    for (size_t i = 1; i < text.size; i++)
        if (text.at[i] == ';' && (text.at[i - 1] == ' ' || text.at[i - 1] == '\t'))
            text.size = i;
    return text_trim(text);
}

static enum status refuse_line(struct error *error)
{
    return error_set(error, STATUS_INVALID,
                     "this is neither [section] nor key = value nor a comment");
}

static enum status read_section(struct reading *reading, struct text text, struct error *error)
{
    const char *end = memchr(text.at, ']', text.size);
    if (end == NULL)
        return refuse_line(error);
    reading->section = (struct text){text.at + 1, (size_t)(end - text.at) - 1};
    reading->last = NULL;
    if (setting_section_exists(reading->section))
        return STATUS_OK;
    return error_set(error, STATUS_INVALID,
                     "there is no section [%.*s]; sections are server, operator, odds, platform, "
                     "casino, log",
                     (int)(reading->section.size < 64 ? reading->section.size : 64),
                     reading->section.at);
}

static enum status refuse_key(const struct reading *reading, struct text key, struct error *error)
{
    int size = (int)(key.size < 64 ? key.size : 64);
    if (reading->section.at == NULL)
        return error_set(error, STATUS_INVALID, "'%.*s' stands before the first [section]", size,
                         key.at);
    struct buffer names = {0};
    for (size_t i = 0; i < setting_count; i++)
        if (text_equals(reading->section, text_of(settings[i].about.section)))
            buffer_append_format(&names, "%s%s", names.size > 0 ? ", " : "", settings[i].about.key);
    (void)error_set(error, STATUS_INVALID, "there is no setting '%.*s' in [%.*s]; there are %s",
                    size, key.at, (int)reading->section.size, reading->section.at,
                    buffer_string(&names));
    buffer_free(&names);
    return STATUS_INVALID;
}

static enum status read_key(struct reading *reading, struct text text, struct error *error)
{
    struct text before = without_comment(text);
    size_t size = 0;
    while (size < before.size && before.at[size] != '=' && before.at[size] != ':')
        size++;
    if (size == before.size)
        return refuse_line(error);
    struct text key = text_trim((struct text){text.at, size});
    struct text value = text_trim((struct text){text.at + size + 1, text.size - size - 1});
    size_t setting = setting_find(reading->section, key);
    if (setting == setting_count)
        return refuse_key(reading, key, error);
    for (size_t i = 0; i < reading->entry_count; i++)
        if (reading->entries[i].setting == setting)
            return error_set(error, STATUS_INVALID, "[%s] %s is set twice, first in line %u",
                             settings[setting].about.section, settings[setting].about.key,
                             reading->entries[i].line);
    reading->last = &reading->entries[reading->entry_count++];
    *reading->last = (struct entry){.setting = setting, .line = reading->line};
    buffer_append_text(&reading->last->value, without_comment(value));
    return STATUS_OK;
}

/* One more line of the value before. */
static enum status go_on(struct reading *reading, struct text text, struct error *error)
{
    const struct setting *setting = &settings[reading->last->setting];
    if ((setting->rules & SETTING_LIST) == 0)
        return error_set(error, STATUS_INVALID,
                         "this line begins with a space and goes on with [%s] %s, which is no list",
                         setting->about.section, setting->about.key);
    buffer_append_char(&reading->last->value, ' ');
    buffer_append_text(&reading->last->value, without_comment(text));
    return STATUS_OK;
}

static enum status read_line(struct reading *reading, struct text line, struct error *error)
{
    for (size_t i = 0; i < line.size; i++)
        if (((unsigned char)line.at[i] < ' ' && line.at[i] != '\t') || line.at[i] == 0x7F)
            return error_set(error, STATUS_INVALID, "there is a control character in this line");
    if (line.size > LINE_SIZE_MAX)
        return error_set(error, STATUS_INVALID,
                         "this line is longer than %d bytes; lists may go on in the next line, and "
                         "every setting can also be an environment variable",
                         LINE_SIZE_MAX);
    struct text text = text_trim(line);
    if (text.size == 0 || text.at[0] == '#' || text.at[0] == ';')
        return STATUS_OK;
    if (text.at[0] == '[')
        return read_section(reading, text, error);
    /* Keys may be indented all the same; what a list goes on with has no '='. */
    if (text.at > line.at && reading->last != NULL && memchr(text.at, '=', text.size) == NULL)
        return go_on(reading, text, error);
    return read_key(reading, text, error);
}

/* ---- the file -------------------------------------------------------------------------------- */

static enum status read_lines(struct reading *reading, struct text rest, struct error *error)
{
    enum status status = STATUS_OK;
    if (text_starts_with(rest, TEXT("\xEF\xBB\xBF"))) /* what some editors begin UTF-8 with */
        rest = (struct text){rest.at + 3, rest.size - 3};
    while (rest.at != NULL && status == STATUS_OK) {
        struct text line = text_cut(&rest, '\n');
        if (line.size > 0 && line.at[line.size - 1] == '\r')
            line.size--;
        reading->line++;
        status = read_line(reading, line, error);
    }
    return status;
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
    if (status == STATUS_OK) {
        status = read_lines(&reading, buffer_text(&bytes), error);
        if (status != STATUS_OK)
            error_prefix(error, "%s:%u", path, reading.line);
        else
            status = hand_over(&reading, path, take, context, error);
    }
    for (size_t i = 0; i < reading.entry_count; i++)
        buffer_free(&reading.entries[i].value);
    memory_free(reading.entries);
    buffer_free(&bytes);
    return status;
}
