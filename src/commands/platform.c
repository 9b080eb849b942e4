/* What the commands on the platform store share; see commands_platform.h. */
#include "commands/platform.h"

#include <stdlib.h>

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

void command_print_json(yyjson_mut_doc **doc)
{
    size_t size = 0;
    char *text = yyjson_mut_write(*doc, YYJSON_WRITE_PRETTY, &size);
    CHECK(text != NULL); /* every text in it was checked on its way in */
    (void)fwrite(text, 1, size, stdout);
    (void)fputc('\n', stdout);
    free(text); /* yyjson allocated it */
    yyjson_mut_doc_free(*doc);
    *doc = NULL;
}

int command_fail(const struct command_line *line, enum status status, const struct error *error)
{
    return status == STATUS_INVALID ? command_usage(line, "%s", error->text)
                                    : command_refuse(line, "%s", error->text);
}

void command_print_value(yyjson_mut_doc *doc, yyjson_mut_val *value)
{
    yyjson_mut_doc_set_root(doc, value);
    command_print_json(&doc);
}

void listing_begin(struct listing *listing, const struct command_line *line,
                   const char *const *headers)
{
    *listing = (struct listing){0};
    if (!command_json(line)) {
        listing->table = table_create(headers);
        return;
    }
    listing->doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_doc_set_root(listing->doc, yyjson_mut_arr(listing->doc));
}

void listing_add(struct listing *listing, yyjson_mut_val *value)
{
    (void)yyjson_mut_arr_append(yyjson_mut_doc_get_root(listing->doc), value);
}

int listing_end(struct listing *listing, const struct command_line *line, enum status status,
                const struct error *error)
{
    if (status != STATUS_OK) {
        yyjson_mut_doc_free(listing->doc);
        table_destroy(&listing->table);
        return command_fail(line, status, error);
    }
    if (listing->doc != NULL)
        command_print_json(&listing->doc);
    else
        table_print(&listing->table, stdout);
    return EXIT_DONE;
}

void command_program(const struct command_line *line, char out[PROGRAM_TEXT_SIZE])
{
    const char *path = command_option(line, "config");
    (void)snprintf(out, PROGRAM_TEXT_SIZE, "croupier%s%s", path == NULL ? "" : " -c ",
                   path == NULL ? "" : path);
}

bool command_switch(const struct command_line *line, const char *on, const char *off,
                    enum setting_switch *setting)
{
    bool is_on = command_option(line, on) != NULL;
    bool is_off = command_option(line, off) != NULL;
    if (is_on && is_off) {
        (void)command_usage(line, "--%s and --%s contradict each other", on, off);
        return false;
    }
    *setting = is_on ? SETTING_ON : is_off ? SETTING_OFF : SETTING_LEAVE;
    return true;
}

void table_time(struct table *table, int64_t time_ms)
{
    char text[CLOCK_TEXT_SIZE];
    if (time_ms == 0) {
        table_cell(table, "-");
        return;
    }
    clock_format_rfc3339(time_ms, text);
    table_cell(table, "%.10s %.5s", text, text + 11); /* 2026-11-21 04:53 */
}

void table_sports(struct table *table, sport_set sports)
{
    struct buffer text = {0};
    sport_set_append(&text, sports);
    table_cell(table, "%s", buffer_string(&text));
    buffer_free(&text);
}

void table_rate(struct table *table, const struct rate_limit *rate)
{
    struct buffer text = {0};
    rate_append(&text, rate);
    table_cell(table, "%s", buffer_string(&text));
    buffer_free(&text);
}
