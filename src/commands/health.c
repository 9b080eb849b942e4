/*
 * `croupier health`: does the service answer, and do its stores? Asked from outside, by the route
 * that load balancers ask. For health checks where there is no other HTTP client: the image holds
 * nothing but this program.
 */
#include <string.h>

#include "cli/document.h"
#include "commands/commands.h"
#include "commands/listener_probe.h"

#define HEALTHY "\"status\":\"ok\""

const struct command_option health_options[] = {
    {.name = "alive", .help = "exit 0 also when it answers that a store is away"},
    {0},
};

static void print_health(const struct command_line *line, bool answers, bool well)
{
    if (command_json(line)) {
        struct document document;
        struct json_writer *json = document_object(&document, JSON_COMPACT);
        json_bool(json, "answers", answers);
        json_string_or_null(json, "status", !answers ? NULL : well ? "ok" : "degraded");
        document_print(&document);
    } else if (answers) {
        (void)printf("%s\n", well ? "ok" : "degraded");
    }
}

int run_health(const struct command_line *line)
{
    const struct config *config = NULL;
    if (!command_config(line, &config))
        return EXIT_REFUSED;
    struct buffer answer = {0};
    bool answers =
        listener_ask(LISTENER_PUBLIC, &config->listen, config->tls_certificate[0] != '\0', &answer);
    bool well = answers && memmem(answer.data, answer.size, HEALTHY, sizeof HEALTHY - 1) != NULL;
    print_health(line, answers, well);
    int code = EXIT_DONE;
    if (!answers)
        code = command_refuse(line, "no croupier answers on %s", config->listen.text);
    else if (!well && command_option(line, "alive") == NULL)
        code = command_refuse(line, "the service on %s answers that a store is away",
                              config->listen.text);
    buffer_free(&answer);
    config_release(&config);
    return code;
}
