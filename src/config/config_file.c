/*
 * The INI file: sections, keys, comments. A setting that is silently cut, joined or overwritten is
 * worse than a program that does not start, so every doubtful line is refused: an unknown section
 * or key, a key twice, a value of several lines where only one fits, NUL and other control
 * characters, lines that are longer than any setting. Reading continues after a refused line, so
 * that all problems are reported at once. Lines that depend on a refused one (the keys of an
 * unknown section, the continuation of a refused value) are not reported.
 */
#include "base/file.h"
#include "base/memory.h"
#include "config/settings.h"

#define FILE_SIZE_MAX ((size_t)1024 * 1024)
#define LINE_SIZE_MAX 4094

struct reading {
    const char *path;
    config_taker *take;
    void *context;
    struct problems *problems;
    unsigned line;
    struct text section;     /* at == NULL: before the first */
    bool in_unknown_section; /* its keys are passed over, */
    bool after_refused;      /* and so are continuations of a refused line */
    unsigned *lines;         /* where each setting was first set; 0: it was not */
    size_t setting;          /* the setting whose value is read; setting_count: none */
    struct buffer value;
};

/* The value that was being read is whole. */
static void hand_over(struct reading *reading)
{
    if (reading->setting == setting_count)
        return;
    const struct setting_description *about = &settings[reading->setting].about;
    char *origin = memory_format("%s:%u: [%s] %s", reading->path, reading->lines[reading->setting],
                                 about->section, about->key);
    reading->take(reading->context, reading->setting, buffer_text(&reading->value), origin);
    memory_free(origin);
    buffer_clear(&reading->value);
    reading->setting = setting_count;
}

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
    return error_invalid(error, "this is neither [section] nor key = value nor a comment");
}

static enum status read_section(struct reading *reading, struct text text, struct error *error)
{
    const char *end = memchr(text.at, ']', text.size);
    reading->in_unknown_section = true;
    if (end == NULL)
        return refuse_line(error);
    reading->section = (struct text){text.at + 1, (size_t)(end - text.at) - 1};
    reading->in_unknown_section = !setting_section_exists(reading->section);
    if (!reading->in_unknown_section)
        return STATUS_OK;
    struct buffer names = {0};
    for (size_t i = 0; i < setting_count; i++)
        if (i == 0 || strcmp(settings[i].about.section, settings[i - 1].about.section) != 0)
            buffer_append_format(&names, "%s%s", i > 0 ? ", " : "", settings[i].about.section);
    (void)error_invalid(error, "there is no section [%.*s]; sections are %s",
                        TEXT_SHOWN(reading->section), buffer_string(&names));
    buffer_free(&names);
    return STATUS_INVALID;
}

static enum status refuse_key(struct reading *reading, struct text key, struct error *error)
{
    reading->in_unknown_section = reading->section.at == NULL;
    if (reading->in_unknown_section)
        return error_invalid(error, "'%.*s' stands before the first [section]", TEXT_SHOWN(key));
    struct buffer names = {0};
    for (size_t i = 0; i < setting_count; i++)
        if (text_equals(reading->section, text_of(settings[i].about.section)))
            buffer_append_format(&names, "%s%s", names.size > 0 ? ", " : "", settings[i].about.key);
    (void)error_invalid(error, "there is no setting '%.*s' in [%.*s]; there are %s",
                        TEXT_SHOWN(key), (int)reading->section.size, reading->section.at,
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
    if (reading->in_unknown_section)
        return STATUS_OK;
    size_t setting = setting_find(reading->section, key);
    if (setting == setting_count)
        return refuse_key(reading, key, error);
    if (reading->lines[setting] > 0)
        return error_invalid(error, "[%s] %s is set twice, first in line %u",
                             settings[setting].about.section, settings[setting].about.key,
                             reading->lines[setting]);
    reading->lines[setting] = reading->line;
    reading->setting = setting;
    buffer_append_text(&reading->value, without_comment(value));
    return STATUS_OK;
}

/* One more line of the value before. */
static enum status continue_value(struct reading *reading, struct text text, struct error *error)
{
    const struct setting *setting = &settings[reading->setting];
    if ((setting->rules & IS_LIST) == 0)
        return error_invalid(
            error, "this line begins with a space and goes on with [%s] %s, which is no list",
            setting->about.section, setting->about.key);
    buffer_append_char(&reading->value, ' ');
    buffer_append_text(&reading->value, without_comment(text));
    return STATUS_OK;
}

static enum status read_line(struct reading *reading, struct text line, struct error *error)
{
    for (size_t i = 0; i < line.size; i++)
        if (((unsigned char)line.at[i] < ' ' && line.at[i] != '\t') || line.at[i] == 0x7F)
            return error_invalid(error, "there is a control character in this line");
    if (line.size > LINE_SIZE_MAX)
        return error_invalid(
            error,
            "this line is longer than %d bytes; lists may go on in the next line, and "
            "every setting can also be an environment variable",
            LINE_SIZE_MAX);
    struct text text = text_trim(line);
    if (text.size == 0 || text.at[0] == '#' || text.at[0] == ';')
        return STATUS_OK;
    /* Keys may be indented too; a continuation of a list has no '='. */
    bool goes_on = text.at > line.at && memchr(text.at, '=', text.size) == NULL;
    if (goes_on && text.at[0] != '[' && reading->setting < setting_count)
        return continue_value(reading, text, error);
    if (goes_on && text.at[0] != '[' && (reading->after_refused || reading->in_unknown_section))
        return STATUS_OK;
    hand_over(reading);
    reading->after_refused = false;
    return text.at[0] == '[' ? read_section(reading, text, error) : read_key(reading, text, error);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void read_lines(struct reading *reading, struct text rest)
{
    if (text_starts_with(rest, TEXT("\xEF\xBB\xBF"))) /* the byte order mark of some editors */
        rest = (struct text){rest.at + 3, rest.size - 3};
    while (rest.at != NULL) {
        struct text line = text_cut(&rest, '\n');
        struct error error = {0};
        if (line.size > 0 && line.at[line.size - 1] == '\r')
            line.size--;
        reading->line++;
        enum status status = read_line(reading, line, &error);
        if (status == STATUS_OK)
            continue;
        char *origin = memory_format("%s:%u", reading->path, reading->line);
        problems_add(reading->problems, status, origin, &error);
        memory_free(origin);
        reading->after_refused = true;
    }
    hand_over(reading);
}

static enum status read_whole(const char *path, struct buffer *out, struct error *error)
{
    int reason = file_read(path, FILE_SIZE_MAX, out);
    if (reason != 0)
        return error_set(error, reason == ENOENT ? STATUS_NOT_FOUND : STATUS_UNAVAILABLE,
                         "cannot be opened: %s", strerror(reason));
    return out->size <= FILE_SIZE_MAX
               ? STATUS_OK
               : error_invalid(error, "is larger than 1 MiB: not a configuration");
}

void config_file_read(const char *path, config_taker *take, void *context,
                      struct problems *problems)
{
    struct buffer bytes = {0};
    struct error error = {0};
    struct reading reading = {.path = path,
                              .take = take,
                              .context = context,
                              .problems = problems,
                              .setting = setting_count};
    enum status status = read_whole(path, &bytes, &error);
    reading.lines = memory_alloc_zeroed(setting_count, sizeof reading.lines[0]);
    if (status == STATUS_OK)
        read_lines(&reading, buffer_text(&bytes));
    else
        problems_add(problems, status, path, &error);
    memory_free(reading.lines);
    buffer_free(&reading.value);
    buffer_free(&bytes);
}
