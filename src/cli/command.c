/*
 * One parser for every command. It walks the words once, from left to right: words become the
 * group, the command and then its arguments; options are looked up in the command's table, or,
 * before the command is known, in the common one. The first mistake is kept rather than reported at
 * once, because `--help` further right is an answer to it.
 */
#include "cli/command.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "base/memory.h"
#include "base/version.h"
#include "cli/command_line.h"

const struct command_option command_common_options[] = {
    {"config", "FILE", "the configuration file; -c FILE for short", false},
    {"json", NULL, "one JSON document on standard output, for scripts", false},
    {"help", NULL, "what this does, with examples", false},
    {"version", NULL, "the version of the program", false},
    {0},
};

/* ---- the table ------------------------------------------------------------------------------- */

const struct command_group *command_find_group(const struct command_group *groups, const char *name)
{
    for (const struct command_group *group = groups; group->name != NULL; group++)
        if (strcmp(group->name, name) == 0)
            return group;
    return NULL;
}

const struct command *command_find(const struct command_group *groups, const char *group_name,
                                   const char *name, const struct command_group **found)
{
    for (const struct command_group *group = groups; group->name != NULL; group++) {
        if (strcmp(group->name, group_name) != 0)
            continue;
        for (const struct command *command = group->commands; command->name != NULL; command++) {
            if (strcmp(command->name, name) != 0)
                continue;
            *found = group;
            return command;
        }
    }
    return NULL;
}

static const struct command_option *find_option(const struct command_option *options,
                                                struct text name)
{
    if (options == NULL)
        return NULL;
    for (const struct command_option *option = options; option->name != NULL; option++)
        if (text_equals(name, text_of(option->name)))
            return option;
    return NULL;
}

/* ---- mistakes -------------------------------------------------------------------------------- */

/* Keeps the first mistake. What was written is shown without control characters. */
static void problem(struct command_line *line, const char *format, ...) PRINTF_LIKE(2, 3);
static void problem(struct command_line *line, const char *format, ...)
{
    if (line->problem[0] != '\0')
        return;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line->problem, sizeof line->problem, format, arguments);
    va_end(arguments);
    for (char *at = line->problem; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7F)
            *at = '?';
}

static void problem_unknown_word(struct command_line *line, const char *word)
{
    const char *group_name = line->group == NULL ? "" : line->group->name;
    struct nearest nearest = {.written = word};
    for (const struct command_group *group = line->groups; group->name != NULL; group++) {
        if (line->group == NULL && group->name[0] != '\0')
            nearest_offer(&nearest, group->name);
        if (strcmp(group->name, group_name) != 0)
            continue;
        for (const struct command *command = group->commands; command->name != NULL; command++)
            nearest_offer(&nearest, command->name);
    }
    problem(line, "there is no command '%s'%s%s%s", word,
            nearest.name == NULL ? "" : "; did you mean '",
            nearest.name == NULL ? "" : nearest.name, nearest.name == NULL ? "" : "'?");
}

static void problem_unknown_option(struct command_line *line, const char *word)
{
    char name[ERROR_TEXT_SIZE];
    (void)snprintf(name, sizeof name, "%s", word);
    name[strcspn(name, "=")] = '\0';
    if (line->command == NULL && !line->help) {
        problem(line, "there is no option '%s' before the command", name);
        return;
    }
    struct nearest nearest = {.written = name + strspn(name, "-")};
    const struct command_option *own = line->command == NULL ? NULL : line->command->options;
    for (; own != NULL && own->name != NULL; own++)
        nearest_offer(&nearest, own->name);
    for (const struct command_option *common = command_common_options; common->name != NULL;
         common++)
        nearest_offer(&nearest, common->name);
    problem(line, "there is no option '%s'%s%s%s", name,
            nearest.name == NULL ? "" : "; did you mean '--",
            nearest.name == NULL ? "" : nearest.name, nearest.name == NULL ? "" : "'?");
}

/* ---- taking the line apart ------------------------------------------------------------------- */

static void keep_option(struct command_line *line, const struct command_option *option,
                        const char *value)
{
    if (!option->repeatable && option->value != NULL)
        for (size_t i = 0; i < line->option_count; i++)
            if (line->options[i].option == option)
                problem(line, "--%s is given twice", option->name);
    line->options[line->option_count++] = (struct given_option){option, value};
}

/* An option that takes a value, with `attached` after its '=', or NULL. Steps over the next word
 * when that is the value. */
static void take_value(struct command_line *line, const struct command_option *option,
                       const char *attached, int *index, int argc, char **argv)
{
    if (attached == NULL) {
        const char *next = *index + 1 < argc ? argv[*index + 1] : NULL;
        /* "--label --json" is a forgotten value more often than a value that looks like an
         * option. */
        if (next == NULL || strncmp(next, "--", 2) == 0 || strcmp(next, "-c") == 0) {
            problem(line, "--%s needs a value: --%s %s", option->name, option->name, option->value);
            return;
        }
        attached = next;
        (*index)++;
    }
    keep_option(line, option, attached);
}

static void take_option(struct command_line *line, int *index, int argc, char **argv)
{
    const char *word = argv[*index];
    if (strcmp(word, "-h") == 0)
        word = "--help";
    if (strncmp(word, "-c", 2) == 0) {
        const char *attached = word[2] != '\0' ? word + 2 : NULL;
        take_value(line, &command_common_options[0], attached, index, argc, argv);
        return;
    }
    const char *equals = strchr(word, '=');
    struct text name = text_of(word + 2);
    if (equals != NULL && equals >= name.at)
        name.size = (size_t)(equals - name.at);
    const struct command_option *option = NULL;
    if (strncmp(word, "--", 2) == 0) {
        option = line->command == NULL ? NULL : find_option(line->command->options, name);
        if (option == NULL)
            option = find_option(command_common_options, name);
    }
    if (option == NULL)
        problem_unknown_option(line, word);
    else if (option->value != NULL)
        take_value(line, option, equals == NULL ? NULL : equals + 1, index, argc, argv);
    else if (equals != NULL)
        problem(line, "--%s takes no value", option->name);
    else
        keep_option(line, option, "");
}

static void take_word(struct command_line *line, const char *word)
{
    CHECK(word != NULL);
    if (line->command != NULL || line->help) {
        line->arguments[line->argument_count++] = word;
        return;
    }
    if (line->problem[0] != '\0')
        return; /* an unknown word is not followed by a known one */
    const char *group_name = line->group == NULL ? "" : line->group->name;
    line->command = command_find(line->groups, group_name, word, &line->group);
    if (line->command != NULL)
        return;
    if (line->group == NULL && strcmp(word, "help") == 0) {
        line->help = true;
        return;
    }
    if (line->group == NULL && word[0] != '\0') {
        line->group = command_find_group(line->groups, word);
        if (line->group != NULL)
            return;
    }
    problem_unknown_word(line, word);
}

static void take_apart(struct command_line *line, int argc, char **argv)
{
    bool options_ended = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (options_ended || word[0] != '-' || word[1] == '\0')
            take_word(line, word);
        else if (strcmp(word, "--") == 0)
            options_ended = true;
        else
            take_option(line, &i, argc, argv);
    }
}

/* Is the number of arguments what the command takes? */
static void check_arguments(struct command_line *line)
{
    const struct command *command = line->command;
    if (line->argument_count < command->least)
        problem(line, "too few arguments: %s%s%s %s", line->group->name,
                line->group->name[0] == '\0' ? "" : " ", command->name, command->arguments);
    else if (line->argument_count > command->most)
        problem(line, "'%s' is one argument too many", line->arguments[command->most]);
}

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

static int refuse_usage(const struct command_line *line, const char *text)
{
    print_name(line, stderr);
    (void)fprintf(stderr, ": %s (see: ", text);
    print_name(line, stderr);
    (void)fputs(" --help)\n", stderr);
    return EXIT_USAGE;
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
    size_t words = line->argument_count;
    line->help = false;
    line->argument_count = 0;
    for (size_t i = 0; i < words; i++)
        take_word(line, line->arguments[i]);
    if (line->argument_count > 0)
        problem(line, "there is no help on '%s'", line->arguments[0]);
    if (line->problem[0] != '\0')
        return refuse_usage(line, line->problem);
    command_print_help(line, stdout);
    return EXIT_DONE;
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
        check_arguments(line);
    if (line->problem[0] != '\0')
        return refuse_usage(line, line->problem);
    if (command_option(line, "version") != NULL) {
        printf("%s (commit %s)\n", CROUPIER_VERSION_TEXT, croupier_commit);
        return EXIT_DONE;
    }
    if (line->command != NULL)
        return line->command->run(line);
    if (line->group != NULL)
        return refuse_usage(line, "which command?");
    command_print_help(line, stderr);
    return EXIT_USAGE;
}

int command_main(const struct command_group *groups, int argc, char **argv)
{
    size_t room = argc > 0 ? (size_t)argc : 1;
    struct command_line line = {.groups = groups};
    line.arguments = memory_alloc_zeroed(room, sizeof line.arguments[0]);
    line.options = memory_alloc_zeroed(room, sizeof line.options[0]);
    take_apart(&line, argc, argv);
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

/* Asking for an option that is in no table is a bug in the command. */
static void check_known(const struct command_line *line, const char *name)
{
    CHECK(find_option(command_common_options, text_of(name)) != NULL || line->command == NULL ||
          find_option(line->command->options, text_of(name)) != NULL);
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

bool command_config(const struct command_line *line, const struct config **config)
{
    struct error error = {0};
    if (config_load(config, command_config_path(line), NULL, &error) == STATUS_OK)
        return true;
    (void)command_refuse(line, "%s", error.text);
    return false;
}

/* What was printed so far comes first, so that a terminal shows both in the order they happened. */
static void PRINTF_LIKE(3, 0)
    say(const struct command_line *line, const char *prefix, const char *format, va_list arguments)
{
    (void)fflush(stdout);
    if (prefix == NULL)
        print_name(line, stderr);
    else
        (void)fputs(prefix, stderr);
    (void)fputs(": ", stderr);
    (void)vfprintf(stderr, format, arguments);
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
