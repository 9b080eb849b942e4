/* croupier serve: the service, with the configured stores. */
#include <unistd.h>

#include "app/app.h"
#include "cli/command.h"
#include "commands/commands.h"

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
    {"serve", "", "run the service",
     "Answers customers on [server] listen and the operator's metrics on [operator]\n"
     "listen until SIGTERM or SIGINT. Then each connection closes after its next answer, an\n"
     "idle one after [server] drain_idle_ms, what is in flight is finished (at most [server]\n"
     "drain_seconds), and it exits 0. SIGHUP re-reads the configuration and the TLS\n"
     "certificate; what needs a restart is named in the log, and a broken file changes\n"
     "nothing.\n"
     "\n"
     "The platform store is made and upgraded by croupier migrate, never by the service.\n"
     "With another schema than its own the service says so and ends. A store that is away\n"
     "does not end it: health says degraded and requests get 503 until it is back.\n"
     "Logs go to standard error. Lines that nobody reads are dropped and counted: no\n"
     "request waits for the log.",
     "croupier serve\n"
     "croupier serve -c /etc/croupier/croupier.conf\n"
     "CROUPIER_SERVER_LISTEN=0.0.0.0:8080 croupier serve",
     .run = run_serve},
    {0},
};
