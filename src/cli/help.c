/*
 * Help, made from the tables: of everything, of a group, of a command. Always the same parts in the
 * same order, so that people find them: summary, usage, details, options, examples.
 */

#include "base/json_writer.h"
#include "cli/command_line.h"
#include "cli/texts.h"

static int wider(int column, size_t size)
{
    return (int)size > column ? (int)size : column;
}

/* Text of several lines, each indented; without an empty line at the end. */
static void print_indented(const char *text, FILE *out)
{
    struct text rest = text_of(text);
    while (rest.at != NULL && rest.size > 0) {
        struct text part = text_cut(&rest, '\n');
        (void)fprintf(out, part.size > 0 ? "  %.*s\n" : "%.*s\n", (int)part.size, part.at);
    }
}

static void print_commands(const struct command_group *group, int column, FILE *out)
{
    for (const struct command *command = group->commands; command->name != NULL; command++)
        (void)fprintf(out, "  %-*s  %s\n", column, command->name, command->help->summary);
}

static int column_of_commands(const struct command_group *group)
{
    int column = 0;
    for (const struct command *command = group->commands; command->name != NULL; command++)
        column = wider(column, strlen(command->name));
    return column;
}

static void print_text(struct text text, FILE *out)
{
    (void)fwrite(text.at, 1, text.size, out);
}

static void print_overview(const struct command_group *groups, FILE *out)
{
    const struct command_group *service = command_find_group(groups, "");
    struct text rest = text_of(help_overview);
    int column = column_of_commands(service);
    for (const struct command_group *group = groups; group->name != NULL; group++)
        column = wider(column, strlen(group->name));
    print_text(text_cut(&rest, '@'), out);
    print_commands(service, column, out);
    print_text(text_cut(&rest, '@'), out);
    for (const struct command_group *group = groups; group->name != NULL; group++)
        if (group->name[0] != '\0')
            (void)fprintf(out, "  %-*s  %s\n", column, group->name, group->summary);
    print_text(rest, out);
}

static void print_group(const struct command_group *group, FILE *out)
{
    (void)fprintf(out,
                  "croupier %s: %s\n\nUsage: croupier %s COMMAND [OPTIONS] [ARGUMENTS]\n\n"
                  "Commands:\n",
                  group->name, group->summary, group->name);
    print_commands(group, column_of_commands(group), out);
    (void)fputs("\nExamples:\n", out);
    for (const struct command *command = group->commands; command->name != NULL; command++)
        if (command->help->examples != NULL)
            (void)fprintf(out, "  %.*s\n", (int)strcspn(command->help->examples, "\n"),
                          command->help->examples);
    (void)fprintf(out, "\n'croupier %s COMMAND --help' says more about one.\n", group->name);
}

/* "--cidr CIDR", "-c, --config FILE". */
static void write_option(const struct command_option *option, char *out, size_t size)
{
    bool is_config = option == &command_common_options[0];
    (void)snprintf(out, size, "%s--%s%s%s", is_config ? "-c, " : "", option->name,
                   option->value == NULL ? "" : " ", option->value == NULL ? "" : option->value);
}

static void print_options(const struct command_option *options, int column, FILE *out)
{
    for (; options != NULL && options->name != NULL; options++) {
        if (strcmp(options->name, "version") == 0 && options->value == NULL)
            continue; /* of the program, not of a command */
        char left[128];
        write_option(options, left, sizeof left);
        (void)fprintf(out, "  %-*s  %s%s\n", column, left, options->help,
                      options->repeatable ? " (may be given more than once)" : "");
    }
}

static int column_of_options(const struct command_option *options, int column)
{
    for (; options != NULL && options->name != NULL; options++) {
        char left[128];
        write_option(options, left, sizeof left);
        column = wider(column, strlen(left));
    }
    return column;
}

static void print_command(const struct command_group *group, const struct command *command,
                          const struct command_option *own, FILE *out)
{
    const char *space = group->name[0] == '\0' ? "" : " ";
    bool has_arguments = command->arguments != NULL && command->arguments[0] != '\0';
    (void)fprintf(out, "croupier %s%s%s: %s\n\nUsage: croupier %s%s%s [OPTIONS]%s%s\n", group->name,
                  space, command->name, command->help->summary, group->name, space, command->name,
                  has_arguments ? " " : "", has_arguments ? command->arguments : "");
    if (command->help->details != NULL && command->help->details[0] != '\0') {
        (void)fputc('\n', out);
        print_indented(command->help->details, out);
    }
    (void)fputs("\nOptions:\n", out);
    int column = column_of_options(own, column_of_options(command_common_options, 0));
    print_options(own, column, out);
    print_options(command_common_options, column, out);
    if (command->help->examples != NULL && command->help->examples[0] != '\0') {
        (void)fputs("\nExamples:\n", out);
        print_indented(command->help->examples, out);
    }
}

void command_print_help(const struct command_line *line, FILE *out)
{
    if (line->command != NULL)
        print_command(line->group, line->command, line->known, out);
    else if (line->group != NULL && line->group->name[0] != '\0')
        print_group(line->group, out);
    else
        print_overview(line->groups, out);
}

static void write_setting(struct json_writer *json, const struct setting_description *setting)
{
    struct buffer variable = {0};
    config_append_variable(setting, &variable);
    json_object(json, NULL);
    json_string(json, "section", setting->section);
    json_string(json, "key", setting->key);
    json_text(json, "variable", buffer_text(&variable));
    json_string(json, "default", setting->default_text);
    json_string(json, "what", setting->what);
    json_bool(json, "reloadable", setting->reloadable);
    json_end(json);
    buffer_free(&variable);
}

static void append_setting_plain(struct buffer *out, const struct setting_description *setting)
{
    buffer_append_format(out, "%s =%s%s\n    %s\n    ", setting->key,
                         setting->default_text[0] == '\0' ? "" : " ", setting->default_text,
                         setting->what);
    config_append_variable(setting, out);
    buffer_append_string(out, setting->reloadable ? "; SIGHUP changes it\n\n" : "\n\n");
}

void command_write_settings(struct json_writer *json, struct buffer *text)
{
    const char *section = "";
    const struct setting_description *setting;
    if (json != NULL)
        json_array(json, NULL);
    for (size_t i = 0; (setting = config_setting(i)) != NULL; i++) {
        if (json != NULL) {
            write_setting(json, setting);
            continue;
        }
        if (strcmp(section, setting->section) != 0)
            buffer_append_format(text, "[%s]\n", setting->section);
        section = setting->section;
        append_setting_plain(text, setting);
    }
}
