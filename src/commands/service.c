/*
 * The commands without a group: serve and reload, and those of demo.c, check.c, health.c,
 * migrate.c, backup.c, usage.c and of cli/completion.c.
 * `croupier serve` is the service, with the configured stores; `croupier reload` asks a running one
 * to read its configuration again.
 */

#include "app/app.h"
#include "app/handover.h"
#include "app/reload_socket.h"
#include "commands/commands.h"
#include "commands/help_texts.h"

static void run_serve(const struct command_line *line)
{
    const struct config *config = NULL;
    const char *path = command_config_path(line);
    bool takes_over = command_option(line, HANDOVER_OPTION) != NULL;
    struct error *error = command_error(line);
    if (!takes_over) {
        config = command_config(line);
    } else if (config_load(&config, path, NULL, error) != STATUS_OK) {
        handover_report(error->text);
        command_refuse(line, "%s", error->text);
    }
    struct log *log = log_create(STDERR_FILENO, config->log_level, config->log_format);
    const struct app_options options = {
        .config = config,
        .config_path = path,
        .arguments = command_words(line),
        .log = log,
        .takes_over = takes_over,
    };
    enum status status = app_run(&options, error);
    log_destroy(&log); /* first: its lines come before the refusal */
    if (takes_over)
        config_release(&config);
    command_require(line, status);
}

/* Asks the process of the line. The answer is the line's. */
static struct buffer *ask(const struct command_line *line, enum reload_question what)
{
    uint64_t process = 0;
    const char *given = command_argument(line, 0);
    struct buffer *answer = command_buffer(line);
    if (text_to_u64(text_of(given), INT_MAX, &process) != STATUS_OK || process == 0)
        command_usage(line, "'%s' is no process id", given);
    command_require(line, reload_ask((long)process, what, answer, command_error(line)));
    return answer;
}

static void run_upgrade(const struct command_line *line)
{
    struct buffer *serving = ask(line, RELOAD_PROGRAM);
    struct json_writer *json = command_object(line, JSON_COMPACT);
    if (json != NULL)
        json_raw(json, "process", buffer_text(serving));
    else
        (void)printf("Process %s serves now; process %s finishes what it has begun.\n",
                     buffer_string(serving), command_argument(line, 0));
}

static void run_reload(const struct command_line *line)
{
    struct buffer *restart = ask(line, RELOAD_CONFIGURATION);
    struct json_writer *json = command_object(line, JSON_COMPACT);
    struct text rest = buffer_text(restart);
    if (json == NULL)
        (void)puts("The configuration is read again.");
    else
        for (json_array(json, "restart_needed"); rest.size > 0;)
            json_text(json, NULL, text_trim(text_cut(&rest, ',')));
    if (restart->size > 0)
        command_note(line, "some changed settings need a restart: %s", buffer_string(restart));
}

const struct command service_commands[] = {
    {"demo", "", &help_demo, .run = run_demo},
    {"serve", "", &help_serve, .run = run_serve},
    {"upgrade", "PID", &help_upgrade, .run = run_upgrade},
    {"reload", "PID", &help_reload, .run = run_reload},
    {"usage", "[CUSTOMER]", &help_usage, .run = run_usage},
    {"check", "", &help_check, .run = run_check},
    {"health", "", &help_health, .run = run_health},
    {"migrate", "", &help_migrate, .run = run_migrate},
    {"backup", "DIR", &help_backup, .run = run_backup},
    {"restore", "DIR", &help_restore, .run = run_restore},
    {"completion", "bash|zsh|fish", &help_completion, .run = command_run_completion},
    {0},
};
