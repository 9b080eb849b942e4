/* Running a command, and what commands ask of their line; see command.h. */
#include "cli/command.h"

#include <stdarg.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/version.h"
#include "cli/command_line.h"

#define MESSAGE_MAX 8192

/* ---- running --------------------------------------------------------------------------------- */

/* "croupier", "croupier customer", "croupier customer add". */
static void print_name(const struct command_line *line, FILE *out)
{
    (void)fputs("croupier", out);
    if (line->group != NULL && line->group->name[0] != '\0')
        (void)fprintf(out, " %s", line->group->name);
    if (line->command != NULL)
        (void)fprintf(out, " %s", line->command->name);
}

/* Flush standard output first, so that a terminal shows both in their order. The text may quote
 * input from outside. */
static void PRINTF_LIKE(4, 0) say(const struct command_line *line, const char *prefix,
                                  const char *end, const char *format, va_list arguments)
{
    char text[MESSAGE_MAX];
    struct buffer shown = {0};
    command_end_progress(line);
    (void)vsnprintf(text, sizeof text, format, arguments);
    buffer_append_shown(&shown, text_of(text));
    (void)fflush(stdout);
    if (prefix == NULL)
        print_name(line, stderr);
    else
        (void)fputs(prefix, stderr);
    (void)fprintf(stderr, ": %s%s", buffer_string(&shown), end);
    buffer_free(&shown);
}

/* The topic of `croupier help …` becomes what the line names. */
static void run_help(struct command_line *line)
{
    const char *topic = line->argument_count > 0 ? line->arguments[0] : NULL;
    if (topic != NULL && line->argument_count == 1 && strcmp(topic, "settings") == 0 &&
        line->problem[0] == '\0') {
        struct buffer *text = command_buffer(line);
        command_write_settings(command_document(line, JSON_ROWS), text);
        (void)command_print(text);
        return;
    }
    command_line_read_topic(line);
    if (line->problem[0] != '\0')
        command_usage(line, "%s", line->problem);
    command_print_help(line, stdout);
}

/* A store that is not found may be a configuration that is not found. */
static void note_empty(const struct command_line *line, const char *path)
{
    if (path[0] != '\0')
        command_note(line, "%s sets nothing, so every setting has its default", path);
    else
        command_note(line,
                     "there is no %s, so every setting has its default; -c FILE names a "
                     "configuration",
                     CONFIG_DEFAULT_PATH);
}

static void run_line(struct command_line *line)
{
    bool help = command_option(line, "help") != NULL;
    if (line->problem[0] == '\0' && line->command != NULL && !help)
        command_line_check_arguments(line);
    if (line->help) {
        run_help(line);
    } else if (help) {
        command_print_help(line, stdout);
    } else if (line->problem[0] != '\0') {
        command_usage(line, "%s", line->problem);
    } else if (command_option(line, "version") != NULL) {
        printf("%s (commit %s)\n", CROUPIER_VERSION_TEXT, croupier_commit);
    } else if (line->command != NULL) {
        line->command->run(line);
    } else if (line->group != NULL) {
        command_usage(line, "which command?");
    } else {
        command_print_help(line, stderr);
        command_quit(line, EXIT_USAGE);
    }
}

/* Runs the line until it is done or command_quit ends it. */
static void run_to_its_end(struct command_line *line)
{
    if (setjmp(line->outcome->end) == 0)
        run_line(line);
}

/* Prints the document of a command that is done, and releases what the line owns. */
static void finish(const struct command_line *line)
{
    struct command_outcome *outcome = line->outcome;
    command_end_progress(line);
    if (outcome->code == EXIT_DONE && outcome->json.out != NULL)
        command_print_document(line);
    buffer_wipe(&outcome->document);
    while (outcome->kept_count-- > 0)
        outcome->kept[outcome->kept_count].release(outcome->kept[outcome->kept_count].resource);
    config_release(&outcome->config);
}

int command_main(const struct command_group *groups, int argc, char **argv)
{
    size_t room = argc > 0 ? (size_t)argc : 1;
    struct command_outcome outcome = {.watch = {progress_show, &outcome.progress}};
    struct command_line line = {.words = argv, .groups = groups, .outcome = &outcome};
    line.arguments = memory_alloc_zeroed(room, sizeof line.arguments[0]);
    line.options = memory_alloc_zeroed(room, sizeof line.options[0]);
    command_line_read(&line, argc, argv);
    run_to_its_end(&line);
    if (outcome.code == EXIT_REFUSED && outcome.last_words != NULL)
        command_complain(&line, "%s", outcome.last_words);
    if (outcome.code == EXIT_REFUSED && outcome.config != NULL && config_is_empty(outcome.config))
        note_empty(&line, outcome.config->path);
    finish(&line);
    /* An answer that did not get out (a full disk behind a pipe) was not given. */
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout) != 0) && outcome.code == EXIT_DONE) {
        (void)fprintf(stderr, "croupier: cannot write the output: %s\n",
                      errno != 0 ? strerror(errno) : "a part of it was refused");
        outcome.code = EXIT_REFUSED;
    }
    memory_free(line.arguments);
    memory_free(line.options);
    return outcome.code;
}

/* ---- for the commands ------------------------------------------------------------------------ */

char *const *command_words(const struct command_line *line)
{
    return line->words;
}

const char *command_argument(const struct command_line *line, size_t index)
{
    return index < line->argument_count ? line->arguments[index] : NULL;
}

size_t command_argument_count(const struct command_line *line)
{
    return line->argument_count;
}

const void *command_subject(const struct command_line *line)
{
    return line->group->subject;
}

/* Asking for an option that is in no table is a bug in the command. */
static void check_known(const struct command_line *line, const char *name)
{
    CHECK(command_find_option(command_common_options, text_of(name)) != NULL ||
          line->command == NULL || command_find_option(line->known, text_of(name)) != NULL);
}

size_t command_option_count(const struct command_line *line, const char *name)
{
    check_known(line, name);
    size_t count = 0;
    for (size_t i = 0; i < line->option_count; i++)
        count += strcmp(line->options[i].option->name, name) == 0 ? 1 : 0;
    return count;
}

const char *command_option_at(const struct command_line *line, const char *name, size_t index)
{
    check_known(line, name);
    for (size_t i = 0; i < line->option_count; i++)
        if (strcmp(line->options[i].option->name, name) == 0 && index-- == 0)
            return line->options[i].value;
    return NULL;
}

const char *command_option(const struct command_line *line, const char *name)
{
    size_t count = command_option_count(line, name);
    return count == 0 ? NULL : command_option_at(line, name, count - 1);
}

const char *command_option_or(const struct command_line *line, const char *name,
                              const char *otherwise)
{
    const char *given = command_option(line, name);
    return given != NULL ? given : otherwise;
}

bool command_json(const struct command_line *line)
{
    return command_option(line, "json") != NULL;
}

const char *command_config_path(const struct command_line *line)
{
    return command_option(line, "config");
}

void command_name(const struct command_line *line, char *out, size_t room)
{
    const char *group = line->group->name;
    (void)snprintf(out, room, "%s%s%s", group, group[0] == '\0' ? "" : " ", line->command->name);
}

uint64_t command_number(const struct command_line *line, const char *option, uint64_t least,
                        uint64_t most, uint64_t otherwise)
{
    const char *given = command_option(line, option);
    uint64_t number;
    if (given == NULL)
        return otherwise;
    if (text_to_u64(text_of(given), most, &number) != STATUS_OK || number < least)
        command_usage(line, "--%s: '%s' is not a number from %" PRIu64 " to %" PRIu64, option,
                      given, least, most);
    return number;
}

struct error *command_error(const struct command_line *line)
{
    line->outcome->error = (struct error){.text = ""};
    return &line->outcome->error;
}

void command_require(const struct command_line *line, enum status status)
{
    if (status != STATUS_OK)
        command_refuse(line, "%s", line->outcome->error.text);
}

void command_require_verb(const struct command_line *line, enum status status)
{
    if (status == STATUS_INVALID)
        command_usage(line, "%s", line->outcome->error.text);
    command_require(line, status);
}

void command_keep(const struct command_line *line, command_release *release, void *resource)
{
    struct command_outcome *outcome = line->outcome;
    CHECK(outcome->kept_count < COMMAND_KEPT_MAX);
    outcome->kept[outcome->kept_count].release = release;
    outcome->kept[outcome->kept_count++].resource = resource;
}

static void release_buffer(void *resource)
{
    struct buffer *buffer = resource;
    buffer_wipe(buffer);
    memory_free(buffer);
}

struct buffer *command_buffer(const struct command_line *line)
{
    struct buffer *buffer = memory_alloc_zeroed(1, sizeof *buffer);
    command_keep(line, release_buffer, buffer);
    return buffer;
}

struct buffer *command_read(const struct command_line *line, const char *path, size_t most,
                            const char **name)
{
    bool is_input = strcmp(path, "-") == 0;
    struct buffer *content = command_buffer(line);
    int reason = file_read(is_input ? NULL : path, most, content);
    *name = is_input ? "standard input" : path;
    if (reason != 0)
        command_refuse(line, "%s: %s", *name, strerror(reason));
    return content;
}

const struct progress_watch *command_watch(const struct command_line *line)
{
    return &line->outcome->watch;
}

void command_end_progress(const struct command_line *line)
{
    progress_end(&line->outcome->progress);
}

struct json_writer *command_document(const struct command_line *line, enum json_layout layout)
{
    struct command_outcome *outcome = line->outcome;
    if (!command_json(line))
        return NULL;
    outcome->json = (struct json_writer){.out = &outcome->document, .layout = layout};
    return &outcome->json;
}

struct json_writer *command_object(const struct command_line *line, enum json_layout layout)
{
    struct json_writer *json = command_document(line, layout);
    if (json != NULL)
        json_object(json, NULL);
    return json;
}

bool command_write_counts(const struct command_line *line, const struct command_count *counts,
                          enum json_layout layout)
{
    struct json_writer *json = command_object(line, layout);
    for (; json != NULL && counts->name != NULL; counts++)
        json_unsigned(json, counts->name, counts->count);
    return json != NULL;
}

bool command_print(struct buffer *text)
{
    if (text->size > 0)
        (void)fwrite(text->data, 1, text->size, stdout);
    buffer_clear(text);
    return ferror(stdout) == 0;
}

bool command_print_so_far(const struct command_line *line)
{
    return command_print(&line->outcome->document);
}

void command_print_document(const struct command_line *line)
{
    struct command_outcome *outcome = line->outcome;
    json_end_all(&outcome->json);
    buffer_append_char(&outcome->document, '\n');
    (void)command_print(&outcome->document);
    buffer_wipe(&outcome->document); /* there may be a key in it */
    outcome->json = (struct json_writer){0};
}

const struct config *command_config(const struct command_line *line)
{
    struct command_outcome *outcome = line->outcome;
    if (outcome->config != NULL)
        return outcome->config;
    struct buffer *problems = command_buffer(line);
    if (config_load_all(&outcome->config, command_config_path(line), problems) == STATUS_OK)
        return outcome->config;
    for (struct text rest = buffer_text(problems); rest.at != NULL;) {
        struct text problem = text_cut(&rest, '\n');
        command_complain(line, "%.*s", (int)problem.size, problem.at);
    }
    command_quit(line, EXIT_USAGE);
}

/* ---- messages, and the end ------------------------------------------------------------------- */

void command_quit(const struct command_line *line, int code)
{
    line->outcome->code = code;
    longjmp(line->outcome->end, 1);
}

void command_last_words(const struct command_line *line, const char *message)
{
    line->outcome->last_words = message;
}

void command_usage(const struct command_line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(line, NULL, " (see: ", format, arguments);
    va_end(arguments);
    print_name(line, stderr);
    (void)fputs(" --help)\n", stderr);
    command_quit(line, EXIT_USAGE);
}

void command_refuse(const struct command_line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(line, NULL, "\n", format, arguments);
    va_end(arguments);
    command_quit(line, EXIT_REFUSED);
}

void command_complain(const struct command_line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(line, NULL, "\n", format, arguments);
    va_end(arguments);
}

void command_note(const struct command_line *line, const char *format, ...)
{
    if (command_json(line))
        return;
    va_list arguments;
    va_start(arguments, format);
    say(line, "note", "\n", format, arguments);
    va_end(arguments);
}

bool command_at_terminal(void)
{
    return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

bool command_ask(const char *format, ...)
{
    char answer[16] = "";
    va_list arguments;
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    return fgets(answer, sizeof answer, stdin) != NULL && strcmp(answer, "yes\n") == 0;
}
