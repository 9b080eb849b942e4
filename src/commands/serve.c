/* croupier serve: the service, with the configured stores. */
#include <unistd.h>

#include "app/app.h"
#include "cli/command.h"
#include "commands/commands.h"
#include "commands/help_texts.h"

static int run_serve(const struct command_line *line)
{
    const struct config *config = NULL;
    if (!command_config(line, &config))
        return EXIT_REFUSED;
    struct log *log = log_create(STDERR_FILENO, config->log_level, config->log_format);
    const struct app_options options = {
        .config = config,
        .config_path = command_config_path(line),
        .log = log,
    };
    struct error error;
    enum status status = app_run(&options, &error);
    log_destroy(&log); /* first: its lines come before the refusal */
    int code = status == STATUS_OK ? EXIT_DONE : command_refuse(line, "%s", error.text);
    config_release(&config);
    return code;
}

const struct command serve_commands[] = {
    {"serve", "", &help_serve, .run = run_serve},
    {0},
};
