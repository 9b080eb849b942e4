/* croupier reload: asks a running server to read its configuration again. */
#include <limits.h>
#include <stdio.h>

#include "app/reload_socket.h"
#include "base/json_writer.h"
#include "cli/command.h"
#include "commands/commands.h"

static void print_document(struct text restart_needed)
{
    struct buffer out = {0};
    struct json_writer json = {.out = &out};
    json_object(&json, NULL);
    json_array(&json, "restart_needed");
    while (restart_needed.size > 0)
        json_text(&json, NULL, text_trim(text_cut(&restart_needed, ',')));
    json_end(&json);
    json_end(&json);
    (void)printf("%s\n", buffer_string(&out));
    buffer_free(&out);
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
    {"reload", "PID", "have a running server read its configuration again",
     "Asks the server with process id PID, on this machine, to read its configuration\n"
     "and TLS files again, as SIGHUP does, and waits until the new settings are in\n"
     "force. When they cannot be, nothing has changed: prints the server's reason and\n"
     "exits with 1. What needs a restart is named.\n"
     "\n"
     "The server reads the file that it was started with; -c is of no use here. It obeys\n"
     "its own user and root.",
     "croupier reload 1234\n"
     "croupier reload \"$(systemctl show -P MainPID croupier)\"",
     .run = run_reload},
    {0},
};
