/* croupier reload: asks a running server to read its configuration again. */
#include <limits.h>
#include <stdio.h>

#include "app/reload_socket.h"
#include "cli/document.h"
#include "commands/commands.h"
#include "commands/help_texts.h"

static void print_document(struct text restart_needed)
{
    struct document document;
    struct json_writer *json = document_object(&document, JSON_COMPACT);
    json_array(json, "restart_needed");
    while (restart_needed.size > 0)
        json_text(json, NULL, text_trim(text_cut(&restart_needed, ',')));
    document_print(&document);
}

static int run_reload(const struct command_line *line)
{
    uint64_t process;
    if (text_to_u64(text_of(command_argument(line, 0)), INT_MAX, &process) != STATUS_OK ||
        process == 0)
        return command_usage(line, "'%s' is no process id", command_argument(line, 0));
    struct buffer restart = {0};
    struct error error = {0};
    int code = EXIT_DONE;
    if (reload_ask((long)process, &restart, &error) != STATUS_OK)
        code = command_refuse(line, "%s", error.text);
    else if (command_json(line))
        print_document(buffer_text(&restart));
    else
        (void)printf("The configuration is read again.\n");
    if (code == EXIT_DONE && restart.size > 0)
        command_note(line, "some changed settings need a restart: %s", buffer_string(&restart));
    buffer_free(&restart);
    return code;
}

const struct command reload_commands[] = {
    {"reload", "PID", &help_reload, .run = run_reload},
    {0},
};
