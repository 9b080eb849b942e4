/* Commands on any resource; see resource.h. */
#include "commands/resource.h"

#include "base/clock.h"
#include "base/memory.h"
#include "commands/stores.h"
#include "operator/tables.h"
#include "stores/platform_usage.h"

#define SETTINGS_MAX 16

/* The settings of a line. */
struct line_settings {
    struct setting list[SETTINGS_MAX + 1];
    size_t count;
};

static const struct resource_commands *commands_of(const struct command_line *line)
{
    return command_subject(line);
}

/* ---- options --------------------------------------------------------------------------------- */

/* The rows of the fields' options that `add` or `set` takes. */
static size_t make_options(const void *subject, bool add, struct command_option *out, size_t room)
{
    const struct resource_commands *commands = subject;
    size_t count = 0;
    for (const struct field *field = commands->resource->fields; field->type != NULL; field++) {
        const struct field_option *option = &field->option;
        const char *help = add ? option->add_help : option->set_help;
        CHECK(count + 2 <= room);
        if (help != NULL)
            out[count++] =
                (struct command_option){option->name, option->value, help, option->repeatable};
        if (!add && option->no_name != NULL)
            out[count++] = (struct command_option){option->no_name, NULL, option->no_help, false};
    }
    return count;
}

size_t resource_add_options(const void *subject, struct command_option *out, size_t room)
{
    return make_options(subject, true, out, room);
}

size_t resource_set_options(const void *subject, struct command_option *out, size_t room)
{
    return make_options(subject, false, out, room);
}

/* Joins all values of an option by commas. */
static const char *join(const struct command_line *line, const char *option)
{
    struct buffer *joined = command_buffer(line);
    for (size_t i = 0; i < command_option_count(line, option); i++)
        buffer_append_format(joined, "%s%s", i == 0 ? "" : ",", command_option_at(line, option, i));
    return buffer_string(joined);
}

static void add_setting(struct line_settings *settings, const char *name, const char *text)
{
    CHECK(settings->count < SETTINGS_MAX);
    settings->list[settings->count++] = (struct setting){name, text};
}

/* Reads the options, and the argument of `add`, NULL of `set`. */
static void read_settings(const struct command_line *line, const struct resource_commands *commands,
                          const char *argument, struct line_settings *settings)
{
    const struct field *field = commands->resource->fields;
    const bool add = argument != NULL;
    if (add)
        add_setting(settings, commands->argument, argument);
    for (; field->type != NULL; field++) {
        const struct field_option *option = &field->option;
        CHECK(settings->count < SETTINGS_MAX);
        bool has = (add ? option->add_help : option->set_help) != NULL && field->name != NULL;
        const char *given = has ? command_option(line, option->name) : NULL;
        bool no = !add && option->no_name != NULL && command_option(line, option->no_name) != NULL;
        if (given != NULL && no)
            command_usage(line, "--%s and --%s contradict each other", option->name,
                          option->no_name);
        if (given != NULL)
            add_setting(settings, field->name,
                        option->value == NULL ? "yes"
                        : option->repeatable  ? join(line, option->name)
                                              : given);
        else if (no)
            add_setting(settings, field->name, NULL);
    }
}

/* ---- printing -------------------------------------------------------------------------------- */

void resource_print(const struct command_line *line, const struct resource *resource,
                    const void *record)
{
    struct json_writer *json = command_document(line, JSON_INDENTED);
    struct buffer *text = command_buffer(line);
    if (json != NULL) {
        resource_write(resource, record, json);
        return;
    }
    resource_show(resource, record, text);
    (void)fputs(buffer_string(text), stdout);
}

void resource_print_state(const struct resource *resource, const void *record, const char *state)
{
    struct buffer name = {0};
    resource_append_id(resource, record, &name);
    (void)printf("%s is %s.\n", buffer_string(&name), state);
    buffer_free(&name);
}

void resource_print_outcome(const struct command_line *line, const void *record, bool added)
{
    resource_print_state(commands_of(line)->resource, record, added ? "added" : "changed");
}

/* ---- list, show ------------------------------------------------------------------------------ */

bool resource_listing_see(void *context, const void *record)
{
    struct resource_listing *listing = context;
    struct buffer cell = {0};
    const struct field_output brief = {.text = &cell, .brief = true};
    listing->count++;
    if (listing->json != NULL) {
        resource_write(listing->resource, record, listing->json);
        return true;
    }
    for (const struct field *field = listing->resource->fields; field->type != NULL; field++) {
        if (field->title == NULL)
            continue;
        buffer_clear(&cell);
        (void)field->type->write(field, record, &brief);
        table_cell(listing->table, buffer_string(&cell));
    }
    buffer_free(&cell);
    return true;
}

static struct table *begin_table(const struct resource *resource)
{
    const char *titles[TABLE_COLUMNS_MAX + 1] = {NULL};
    size_t count = 0;
    for (const struct field *field = resource->fields; field->type != NULL; field++)
        if (field->title != NULL) {
            CHECK(count < TABLE_COLUMNS_MAX);
            titles[count++] = field->title;
        }
    return table_create(titles);
}

void resource_listing_begin(struct resource_listing *listing, const struct command_line *line,
                            const struct resource *resource)
{
    *listing = (struct resource_listing){.resource = resource,
                                         .json = command_document(line, JSON_INDENTED)};
    if (listing->json != NULL)
        json_array(listing->json, NULL);
    else
        listing->table = begin_table(resource);
}

void resource_listing_end(struct resource_listing *listing, const struct command_line *line,
                          enum status status)
{
    if (status == STATUS_OK && listing->table != NULL)
        table_print(&listing->table, stdout);
    table_destroy(&listing->table);
    command_require_verb(line, status);
}

void resource_run_list_of(const struct command_line *line, const struct resource *resource,
                          const char *none)
{
    struct platform_store *store = command_platform(line);
    struct error *error = command_error(line);
    struct resource_listing listing;
    resource_listing_begin(&listing, line, resource);
    enum status status = resource_list(resource, store, command_argument(line, 0),
                                       resource_listing_see, &listing, error);
    if (status == STATUS_OK && listing.count == 0 && listing.json == NULL && none != NULL)
        status = error_not_found(error, "%s", none);
    resource_listing_end(&listing, line, status);
}

void resource_run_list(const struct command_line *line)
{
    resource_run_list_of(line, commands_of(line)->resource, NULL);
}

void resource_run_conduct(const struct command_line *line)
{
    if (command_option(line, "reset") != NULL)
        command_require_verb(line, platform_conduct_reset(command_platform(line),
                                                          command_argument(line, 0),
                                                          command_error(line)));
    resource_run_list_of(line, &conduct_resource, NULL);
}

/* Zeroed; its memory lives until the command has returned. */
static void *make_record(const struct command_line *line, const struct resource *resource)
{
    void *record = memory_alloc_zeroed(1, resource->size);
    command_keep(line, memory_free, record);
    return record;
}

void resource_run_show(const struct command_line *line)
{
    const struct resource *resource = commands_of(line)->resource;
    struct platform_store *store = command_platform(line);
    void *record = make_record(line, resource);
    command_require_verb(line, resource_get(resource, store, command_argument(line, 0), record,
                                            command_error(line)));
    resource_print(line, resource, record);
}

/* ---- add, set, enable, disable --------------------------------------------------------------- */

/* The edit of a record that a command makes, and its message. */
struct doing {
    struct resource_edit edit;
    bool add;
    const char *state; /* "enabled", for people; NULL: as the group prints it */
};

static void finish(const struct command_line *line, const struct doing *doing, const void *record)
{
    const struct resource_commands *commands = commands_of(line);
    if (doing->state != NULL && !command_json(line))
        resource_print_state(commands->resource, record, doing->state);
    else if (commands->print != NULL && !command_json(line))
        commands->print(line, record, doing->add);
    else
        resource_print(line, commands->resource, record);
}

static void run(const struct command_line *line, const struct doing *doing)
{
    const struct resource *resource = commands_of(line)->resource;
    const struct resource_edit *edit = &doing->edit;
    const char *id = command_argument(line, 0);
    void *record = make_record(line, resource);
    struct error *error = command_error(line);
    /* Judge the texts before a store is opened: a malformed one is usage, whatever it holds. */
    command_require_verb(line, doing->add
                                   ? resource_make(resource, edit, clock_wall_ms(), record, error)
                                   : resource_check(resource, id, edit->settings, error));
    struct platform_store *store = command_platform(line);
    command_require_verb(line, doing->add
                                   ? resource_insert(resource, store, record, error)
                                   : resource_change(resource, store, id, edit, record, error));
    finish(line, doing, record);
}

void resource_run_settings(const struct command_line *line, bool add, resource_editor *edit,
                           const void *context)
{
    struct line_settings settings = {0};
    read_settings(line, commands_of(line), add ? command_argument(line, 0) : NULL, &settings);
    if (settings.count == 0 && edit == NULL)
        command_usage(line, "nothing to set");
    run(line,
        &(struct doing){{.settings = settings.list, .edit = edit, .context = context}, add, NULL});
}

void resource_make_of_line(const struct command_line *line,
                           const struct resource_commands *commands, size_t at, void *record)
{
    struct line_settings settings = {0};
    const struct resource_edit edit = {.settings = settings.list};
    read_settings(line, commands, command_argument(line, at), &settings);
    command_require_verb(line, resource_make(commands->resource, &edit, clock_wall_ms(), record,
                                             command_error(line)));
}

void resource_run_add(const struct command_line *line)
{
    resource_run_settings(line, true, NULL, NULL);
}

void resource_run_set(const struct command_line *line)
{
    resource_run_settings(line, false, NULL, NULL);
}

void resource_run_enable(const struct command_line *line)
{
    run(line, &(struct doing){*EDIT({"enabled", "yes"}), false, "enabled"});
}

void resource_run_disable(const struct command_line *line)
{
    run(line, &(struct doing){*EDIT({"enabled", "no"}), false, "disabled"});
}

void resource_run_remove(const struct command_line *line)
{
    run(line, &(struct doing){{.remove = true}, false, "removed"});
}

/* ---- secrets that are shown once ------------------------------------------------------------- */

/* A secret that did not get out is lost: it cannot be shown again. */
void resource_print_issued(const struct command_line *line, const struct resource *resource,
                           const void *record, const char *what, char *secret, const char *revoke)
{
    const char *id = field_value(field_find(resource->fields, "id"), record);
    struct json_writer *json = command_object(line, JSON_INDENTED);
    if (json != NULL) {
        json_string(json, what, secret);
        fields_write(resource->fields, record, json);
        command_print_document(line);
    } else {
        (void)puts(secret);
    }
    explicit_bzero(secret, strlen(secret));
    errno = 0;
    if (fflush(stdout) == 0 && ferror(stdout) == 0) {
        command_note(line, "the %s is shown this once; its id is %s", what, id);
        return;
    }
    int reason = errno;
    command_refuse(
        line, "the %s was made but could not be written (%s), so it is of no use: %s %s %s", what,
        reason != 0 ? strerror(reason) : "output error", command_program(line), revoke, id);
}

void resource_print_revoked(const struct command_line *line, const struct resource *resource,
                            const void *record, const char *name, int64_t before_ms)
{
    char when[CLOCK_TEXT_SIZE];
    clock_format_rfc3339(before_ms, when);
    if (command_json(line))
        resource_print(line, resource, record);
    else if (before_ms != 0)
        (void)printf("%s was revoked before, at %s.\n", name, when);
    else
        (void)printf("%s is revoked.\n", name);
}
