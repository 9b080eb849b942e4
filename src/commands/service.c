/*
 * The commands without a group: serve and reload, and those of demo.c, check.c, health.c,
 * migrate.c, backup.c, usage.c and of cli/completion.c.
 * `croupier serve` is the service, with the configured stores; `croupier reload` asks a running one
 * to read its configuration again.
 */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "app/app.h"
#include "app/handover.h"
#include "app/reload_socket.h"
#include "cli/document.h"
#include "commands/commands.h"
#include "commands/help_texts.h"

static const struct command_option serve_options[] = {
    {.name = HANDOVER_OPTION, .help = "for croupier upgrade, which starts a new version so"},
    {0},
};

static int run_serve(const struct command_line *line)
{
    const struct config *config = NULL;
    bool takes_over = command_option(line, HANDOVER_OPTION) != NULL;
    struct error error = {0};
    if (!takes_over && !command_config(line, &config))
        return EXIT_REFUSED;
    if (takes_over && config_load(&config, command_config_path(line), NULL, &error) != STATUS_OK) {
        handover_report(error.text);
        return command_refuse(line, "%s", error.text);
    }
    struct log *log = log_create(STDERR_FILENO, config->log_level, config->log_format);
    const struct app_options options = {
        .config = config,
        .config_path = command_config_path(line),
        .log = log,
        .takes_over = takes_over,
    };
    enum status status = app_run(&options, &error);
    log_destroy(&log); /* first: its lines come before the refusal */
    int code = status == STATUS_OK ? EXIT_DONE : command_refuse(line, "%s", error.text);
    config_release(&config);
    return code;
}

static void print_document(struct text restart_needed)
{
    struct document document;
    struct json_writer *json = document_object(&document, JSON_COMPACT);
    json_array(json, "restart_needed");
    while (restart_needed.size > 0)
        json_text(json, NULL, text_trim(text_cut(&restart_needed, ',')));
    document_print(&document);
}

static bool read_process(const struct command_line *line, uint64_t *process)
{
    return text_to_u64(text_of(command_argument(line, 0)), INT_MAX, process) == STATUS_OK &&
           *process > 0;
}

static int run_upgrade(const struct command_line *line)
{
    uint64_t process = 0;
    struct buffer serving = {0};
    struct error error = {0};
    if (!read_process(line, &process))
        return command_usage(line, "'%s' is no process id", command_argument(line, 0));
    int code = EXIT_DONE;
    if (reload_ask((long)process, RELOAD_PROGRAM, &serving, &error) != STATUS_OK)
        code = command_refuse(line, "%s", error.text);
    else if (command_json(line))
        (void)printf("{\"process\":%s}\n", buffer_string(&serving));
    else
        (void)printf("Process %s serves now; process %llu finishes what it has begun.\n",
                     buffer_string(&serving), (unsigned long long)process);
    buffer_free(&serving);
    return code;
}

static int run_reload(const struct command_line *line)
{
    uint64_t process = 0;
    if (!read_process(line, &process))
        return command_usage(line, "'%s' is no process id", command_argument(line, 0));
    struct buffer restart = {0};
    struct error error = {0};
    int code = EXIT_DONE;
    if (reload_ask((long)process, RELOAD_CONFIGURATION, &restart, &error) != STATUS_OK)
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

const struct command service_commands[] = {
    {"demo", "", &help_demo, .options = demo_options, .run = run_demo},
    {"serve", "", &help_serve, .options = serve_options, .run = run_serve},
    {"upgrade", "PID", &help_upgrade, .run = run_upgrade},
    {"reload", "PID", &help_reload, .run = run_reload},
    {"usage", "[CUSTOMER]", &help_usage, .options = usage_options, .run = run_usage},
    {"check", "", &help_check, .run = run_check},
    {"health", "", &help_health, .options = health_options, .run = run_health},
    {"migrate", "", &help_migrate, .options = migrate_options, .run = run_migrate},
    {"backup", "DIR", &help_backup, .options = backup_options, .run = run_backup},
    {"restore", "DIR", &help_restore, .options = restore_options, .run = run_restore},
    {"completion", "bash|zsh|fish", &help_completion, .run = command_run_completion},
    {0},
};
