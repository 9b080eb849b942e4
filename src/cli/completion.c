/*
 * `croupier completion SHELL`: a script for that shell with all groups, commands and options, which
 * are rows of one text in it. The scripts are files of dist/completion/. They walk through the
 * words of a line in the shell's own language and name no command.
 */

#include "cli/command_line.h"
#include "cli/texts.h"

/* "croupier", "croupier customer": the words before the one that a row offers. */
static void append_before(struct buffer *rows, const struct command_group *group,
                          const struct command *command)
{
    buffer_append_string(rows, "croupier");
    if (group->name[0] != '\0')
        buffer_append_format(rows, " %s", group->name);
    if (command != NULL)
        buffer_append_format(rows, " %s", command->name);
}

/* The end of a row, in what all three shells take for a text in single quotes. */
static void append_summary(struct buffer *rows, const char *summary)
{
    buffer_append_char(rows, '\t');
    for (; *summary != '\0'; summary++) {
        CHECK(*summary != '\\' && *summary != '\n' && *summary != '\t');
        buffer_append_string(rows, *summary == '\'' ? "'\\''" : (const char[]){*summary, '\0'});
    }
    buffer_append_char(rows, '\n');
}

static void append_word(struct buffer *rows, const struct command_group *group,
                        const struct command *command, struct text word, const char *summary)
{
    append_before(rows, group, command);
    buffer_append_char(rows, '\t');
    buffer_append_text(rows, word);
    append_summary(rows, summary);
}

static void append_options(struct buffer *rows, const struct command_group *group,
                           const struct command *command, const struct command_option *options)
{
    for (; options != NULL && options->name != NULL; options++) {
        append_before(rows, group, command);
        buffer_append_format(rows, "\t--%s%s%s", options->name, options->value != NULL ? "=" : "",
                             options->value != NULL ? options->value : "");
        append_summary(rows, options->help);
    }
}

static void append_command(struct buffer *rows, const struct command_group *group,
                           const struct command *command)
{
    struct command_option made[COMMAND_OPTIONS_MAX + 1];
    append_word(rows, group, NULL, text_of(command->name), command->help->summary);
    /* Arguments of which one is meant, "bash|zsh|fish", are in lower case. */
    struct text choices = text_of(command->arguments);
    bool is_choice = choices.size > 0 && choices.at[0] >= 'a' && choices.at[0] <= 'z';
    while (is_choice && choices.size > 0)
        append_word(rows, group, command, text_cut(&choices, '|'), command->arguments);
    append_options(rows, group, command, command_options(group, command, made));
    append_options(rows, group, command, command_common_options);
}

static void append_rows(struct buffer *rows, const struct command_group *groups)
{
    const struct command_group *top = command_find_group(groups, "");
    for (const struct command_group *group = groups; group->name != NULL; group++) {
        if (group != top)
            append_word(rows, top, NULL, text_of(group->name), group->summary);
        for (const struct command *command = group->commands; command->name != NULL; command++)
            append_command(rows, group, command);
    }
    append_word(rows, top, NULL, TEXT("help"), "the same as --help");
    append_options(rows, top, NULL, command_common_options);
}

void command_run_completion(const struct command_line *line)
{
    static const struct {
        const char *name;
        const char *script;
    } shells[] = {
        {"bash", completion_bash},
        {"zsh", completion_zsh},
        {"fish", completion_fish},
    };
    static const char mark[] = "@rows@";
    struct text wanted = text_of(command_argument(line, 0));
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (!text_equals(wanted, text_of(shells[i].name)))
            continue;
        const char *at = strstr(shells[i].script, mark);
        CHECK(at != NULL);
        struct buffer rows = {0};
        append_rows(&rows, line->groups);
        (void)fwrite(shells[i].script, 1, (size_t)(at - shells[i].script), stdout);
        (void)fwrite(rows.data, 1, rows.size, stdout);
        (void)fputs(at + strlen(mark), stdout);
        buffer_free(&rows);
        return;
    }
    command_usage(line, "'%s' is none of bash, zsh, fish", wanted.at);
}
