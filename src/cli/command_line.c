/*
 * One parser for every command. It walks the words once, from left to right: words become the
 * group, the command and then its arguments; options are looked up in the command's table, or,
 * before the command is known, in the common one. The first mistake is kept rather than reported at
 * once, because `--help` further right is an answer to it.
 */
#include "cli/command_line.h"

#include <stdarg.h>

/* ---- mistakes -------------------------------------------------------------------------------- */

/* Keeps the first mistake. The text is shown without control characters. */
static void PRINTF_LIKE(2, 3) problem(struct command_line *line, const char *format, ...)
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

/* Returns the group in which a command's name is looked up. */
static const struct command_group *group_to_search(const struct command_line *line)
{
    return line->group != NULL ? line->group : command_find_group(line->groups, "");
}

/* `prefix`: the characters before the offered name, "--" of an option. */
static void problem_unknown(struct command_line *line, const char *what, const char *word,
                            const char *prefix, const struct nearest *nearest)
{
    if (nearest->name == NULL)
        problem(line, "there is no %s '%s'", what, word);
    else
        problem(line, "there is no %s '%s'; did you mean '%s%s'?", what, word, prefix,
                nearest->name);
}

static void problem_unknown_word(struct command_line *line, const char *word)
{
    const struct command_group *in = group_to_search(line);
    struct nearest nearest = {.written = word};
    for (const struct command_group *group = line->groups; group->name != NULL; group++)
        if (line->group == NULL && group->name[0] != '\0')
            (void)nearest_offer(&nearest, group->name);
    for (const struct command *command = in->commands; command->name != NULL; command++)
        (void)nearest_offer(&nearest, command->name);
    problem_unknown(line, "command", word, "", &nearest);
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
    const struct command_option *const tables[] = {line->known, command_common_options};
    for (size_t i = 0; i < 2; i++)
        for (const struct command_option *option = tables[i];
             option != NULL && option->name != NULL; option++)
            (void)nearest_offer(&nearest, option->name);
    /* A provider's id of a player, say, is base64url. */
    bool may_be_argument = word[1] != '-' && word[2] != '\0';
    if (nearest.name == NULL && may_be_argument)
        problem(line, "there is no option '%s'; an argument that begins with '-' stands after '--'",
                name);
    else
        problem_unknown(line, "option", name, "--", &nearest);
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
        option = command_find_option(line->known, name);
        if (option == NULL)
            option = command_find_option(command_common_options, name);
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
    const struct command_group *group = group_to_search(line);
    line->command = command_find(group, word);
    if (line->command != NULL) {
        line->group = group;
        line->known = command_options(line->group, line->command, line->made);
        return;
    }
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

void command_line_read(struct command_line *line, int argc, char **argv)
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

void command_line_read_topic(struct command_line *line)
{
    size_t words = line->argument_count;
    line->help = false;
    line->argument_count = 0;
    for (size_t i = 0; i < words; i++)
        take_word(line, line->arguments[i]);
    if (line->argument_count > 0)
        problem(line, "there is no help on '%s'", line->arguments[0]);
}

void command_line_check_arguments(struct command_line *line)
{
    const struct command *command = line->command;
    size_t least, most;
    command_count_arguments(command->arguments, &least, &most);
    if (line->argument_count < least)
        problem(line, "too few arguments: %s%s%s %s", line->group->name,
                line->group->name[0] == '\0' ? "" : " ", command->name, command->arguments);
    else if (line->argument_count > most)
        problem(line, "'%s' is one argument too many", line->arguments[most]);
}
