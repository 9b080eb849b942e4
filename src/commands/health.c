/*
 * `croupier health`: does the service answer, and do its stores? Asked from outside, by the route
 * that load balancers ask. For health checks where there is no other HTTP client: the image holds
 * nothing but this program.
 */

#include "commands/commands.h"
#include "commands/listener_probe.h"

#define HEALTHY "\"status\":\"ok\""

static void print_health(const struct command_line *line, bool answers, bool well)
{
    struct json_writer *json = command_object(line, JSON_COMPACT);
    if (json != NULL) {
        json_bool(json, "answers", answers);
        json_string_or_null(json, "status", !answers ? NULL : well ? "ok" : "degraded");
        command_print_document(line);
    } else if (answers) {
        (void)printf("%s\n", well ? "ok" : "degraded");
    }
}

void run_health(const struct command_line *line)
{
    const struct config *config = command_config(line);
    struct buffer *answer = command_buffer(line);
    bool answers =
        listener_ask(LISTENER_PUBLIC, &config->listen, config->tls_certificate[0] != '\0', answer);
    bool well = answers && memmem(answer->data, answer->size, HEALTHY, sizeof HEALTHY - 1) != NULL;
    print_health(line, answers, well);
    if (!answers)
        command_refuse(line, "no croupier answers on %s", config->listen.text);
    if (!well && command_option(line, "alive") == NULL)
        command_refuse(line, "the service on %s answers that a store is away", config->listen.text);
}
