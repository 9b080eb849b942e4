/* Running a command, and what commands ask of their line; see command.h. */
#include "cli/command.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

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
static void PRINTF_LIKE(3, 0)
    say(const struct command_line *line, const char *prefix, const char *format, va_list arguments)
{
    char text[MESSAGE_MAX];
    struct buffer shown = {0};
    (void)vsnprintf(text, sizeof text, format, arguments);
    buffer_append_shown(&shown, text_of(text));
    (void)fflush(stdout);
    if (prefix == NULL)
        print_name(line, stderr);
    else
        (void)fputs(prefix, stderr);
    (void)fprintf(stderr, ": %s", buffer_string(&shown));
    buffer_free(&shown);
}

/* The topic of `croupier help …` becomes what the line names. */
static int run_help(struct command_line *line)
{
    const char *topic = line->argument_count > 0 ? line->arguments[0] : NULL;
    if (topic != NULL && line->argument_count == 1 && strcmp(topic, "settings") == 0 &&
        line->problem[0] == '\0') {
        command_print_settings(command_json(line), stdout);
        return EXIT_DONE;
    }
    command_line_read_topic(line);
    if (line->problem[0] != '\0')
        return command_usage(line, "%s", line->problem);
    command_print_help(line, stdout);
    return EXIT_DONE;
}

static int run_command(const struct command_line *line)
{
    int code = line->command->run(line);
    if (line->outcome->config_refused)
        return EXIT_USAGE;
    if (code == EXIT_REFUSED && line->outcome->config_empty)
        command_note(line,
                     "there is no %s, so every setting has its default; -c FILE names a "
                     "configuration",
                     CONFIG_DEFAULT_PATH);
    return code;
}

static int run_line(struct command_line *line)
{
    if (line->help)
        return run_help(line);
    if (command_option(line, "help") != NULL) {
        command_print_help(line, stdout);
        return EXIT_DONE;
    }
    if (line->problem[0] == '\0' && line->command != NULL)
        command_line_check_arguments(line);
    if (line->problem[0] != '\0')
        return command_usage(line, "%s", line->problem);
    if (command_option(line, "version") != NULL) {
        printf("%s (commit %s)\n", CROUPIER_VERSION_TEXT, croupier_commit);
        return EXIT_DONE;
    }
    if (line->command != NULL)
        return run_command(line);
    if (line->group != NULL)
        return command_usage(line, "which command?");
    command_print_help(line, stderr);
    return EXIT_USAGE;
}

int command_main(const struct command_group *groups, int argc, char **argv)
{
    size_t room = argc > 0 ? (size_t)argc : 1;
    struct command_outcome outcome = {0};
    struct command_line line = {.groups = groups, .outcome = &outcome};
    line.arguments = memory_alloc_zeroed(room, sizeof line.arguments[0]);
    line.options = memory_alloc_zeroed(room, sizeof line.options[0]);
    command_line_read(&line, argc, argv);
    int code = run_line(&line);
    /* An answer that did not get out (a full disk behind a pipe) was not given. */
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout) != 0) && code == EXIT_DONE) {
        (void)fprintf(stderr, "croupier: cannot write the output: %s\n", strerror(errno));
        code = EXIT_REFUSED;
    }
    memory_free(line.arguments);
    memory_free(line.options);
    return code;
}

/* ---- for the commands ------------------------------------------------------------------------ */

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

int command_refuse(const struct command_line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(line, NULL, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
    return EXIT_REFUSED;
}

bool command_config(const struct command_line *line, const struct config **config)
{
    struct buffer problems = {0};
    bool loaded = config_load_all(config, command_config_path(line), NULL, &problems) == STATUS_OK;
    struct text rest = buffer_text(&problems);
    while (!loaded && rest.at != NULL) {
        struct text problem = text_cut(&rest, '\n');
        (void)command_refuse(line, "%.*s", (int)problem.size, problem.at);
    }
    buffer_free(&problems);
    line->outcome->config_refused = !loaded;
    line->outcome->config_empty = loaded && config_is_empty(*config);
    return loaded;
}

int command_usage(const struct command_line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(line, NULL, format, arguments);
    va_end(arguments);
    (void)fputs(" (see: ", stderr);
    print_name(line, stderr);
    (void)fputs(" --help)\n", stderr);
    return EXIT_USAGE;
}

void command_note(const struct command_line *line, const char *format, ...)
{
    if (command_json(line))
        return;
    va_list arguments;
    va_start(arguments, format);
    say(line, "note", format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
}
