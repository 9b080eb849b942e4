/* What the commands on the platform store share; see platform.h. */
#include "commands/platform.h"

bool command_open_platform(const struct command_line *line, bool create,
                           struct platform_store **store)
{
    const struct config *config = NULL;
    struct error error = {0};
    if (!command_config(line, &config))
        return false;
    const struct platform_store_options options = {
        .uri = config->platform_store, .timeout_ms = config->platform_timeout_ms, .create = create};
    enum status status = platform_store_open(store, &options, &error);
    config_release(&config);
    if (status == STATUS_OK)
        return true;
    (void)command_refuse(line, "%s", error.text);
    return false;
}

int command_fail(const struct command_line *line, enum status status, const struct error *error)
{
    return status == STATUS_INVALID ? command_usage(line, "%s", error->text)
                                    : command_refuse(line, "%s", error->text);
}

void command_program(const struct command_line *line, char out[PROGRAM_TEXT_SIZE])
{
    const char *path = command_option(line, "config");
    (void)snprintf(out, PROGRAM_TEXT_SIZE, "croupier%s%s", path == NULL ? "" : " -c ",
                   path == NULL ? "" : path);
}
