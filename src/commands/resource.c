/* Commands on any resource; see resource.h. */
#include "commands/resource.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "commands/platform.h"

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

/* All values of an option, joined by commas. */
static const char *join(const struct command_line *line, const char *option, struct buffer *joined)
{
    for (size_t i = 0; i < command_option_count(line, option); i++)
        buffer_append_format(joined, "%s%s", i == 0 ? "" : ",", command_option_at(line, option, i));
    return buffer_string(joined);
}

static void add_setting(struct line_settings *settings, const char *name, const char *text)
{
    CHECK(settings->count < SETTINGS_MAX);
    settings->list[settings->count++] = (struct setting){name, text};
}

bool line_settings_read(const struct command_line *line, bool add, struct line_settings *settings)
{
    const struct field *field = commands_of(line)->resource->fields;
    if (add)
        add_setting(settings, commands_of(line)->argument, command_argument(line, 0));
    for (; field->type != NULL; field++) {
        const struct field_option *option = &field->option;
        CHECK(settings->count < SETTINGS_MAX);
        bool has = (add ? option->add_help : option->set_help) != NULL && field->name != NULL;
        const char *given = has ? command_option(line, option->name) : NULL;
        bool no = !add && option->no_name != NULL && command_option(line, option->no_name) != NULL;
        if (given != NULL && no) {
            (void)command_usage(line, "--%s and --%s contradict each other", option->name,
                                option->no_name);
            return false;
        }
        if (given != NULL)
            add_setting(settings, field->name,
                        option->value == NULL ? "yes"
                        : option->repeatable
                            ? join(line, option->name, &settings->joined[settings->count])
                            : given);
        else if (no)
            add_setting(settings, field->name, NULL);
    }
    return true;
}

void line_settings_free(struct line_settings *settings)
{
    for (size_t i = 0; i < SETTINGS_MAX; i++)
        buffer_free(&settings->joined[i]);
}

/* ---- printing -------------------------------------------------------------------------------- */

void resource_print(const struct command_line *line, const struct resource *resource,
                    const void *record)
{
    struct buffer text = {0};
    struct document document;
    if (command_json(line)) {
        resource_write(resource, record, document_begin(&document, JSON_INDENTED));
        document_print(&document);
        return;
    }
    resource_show(resource, record, &text);
    (void)fputs(buffer_string(&text), stdout);
    buffer_free(&text);
}

void resource_tell_state(const struct resource *resource, const void *record, const char *state)
{
    const struct field *id = &resource->fields[0];
    struct buffer name = {0};
    (void)id->type->write(id, record, &(struct field_output){.text = &name});
    (void)printf("%s is %s.\n", buffer_string(&name), state);
    buffer_free(&name);
}

/* ---- list, show ------------------------------------------------------------------------------ */

bool resource_listing_see(void *context, const void *record)
{
    const struct resource_listing *listing = context;
    struct buffer cell = {0};
    const struct field_output brief = {.text = &cell, .brief = true};
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
    *listing = (struct resource_listing){.resource = resource};
    if (command_json(line))
        listing->json = document_array(&listing->document, JSON_INDENTED);
    else
        listing->table = begin_table(resource);
}

int resource_listing_end(struct resource_listing *listing, const struct command_line *line,
                         enum status status, const struct error *error)
{
    if (status == STATUS_OK && listing->json != NULL)
        document_print(&listing->document);
    else if (status == STATUS_OK)
        table_print(&listing->table, stdout);
    document_free(&listing->document);
    table_destroy(&listing->table);
    return status == STATUS_OK ? EXIT_DONE : command_fail(line, status, error);
}

int resource_run_list_of(const struct command_line *line, const struct resource *resource)
{
    struct platform_store *store = NULL;
    struct error error = {0};
    struct resource_listing listing;
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    resource_listing_begin(&listing, line, resource);
    enum status status = resource_list(resource, store, command_argument(line, 0),
                                       resource_listing_see, &listing, &error);
    platform_store_close(&store);
    return resource_listing_end(&listing, line, status, &error);
}

int resource_run_list(const struct command_line *line)
{
    return resource_run_list_of(line, commands_of(line)->resource);
}

int resource_run_show(const struct command_line *line)
{
    const struct resource *resource = commands_of(line)->resource;
    void *record = memory_alloc_zeroed(1, resource->size);
    struct platform_store *store = NULL;
    struct error error = {0};
    int code = EXIT_REFUSED;
    if (command_open_platform(line, false, &store)) {
        enum status status =
            resource_get(resource, store, command_argument(line, 0), record, &error);
        if (status == STATUS_OK)
            resource_print(line, resource, record);
        code = status == STATUS_OK ? EXIT_DONE : command_fail(line, status, &error);
    }
    platform_store_close(&store);
    memory_free(record);
    return code;
}

/* ---- add, set, enable, disable --------------------------------------------------------------- */

/* The edit of a record that a command makes, and its message. */
struct doing {
    struct resource_edit edit;
    bool add;
    const char *state; /* "enabled", for people; NULL: as the group prints it */
};

/* Judges the texts before a store is opened: a malformed one is usage, whatever the store holds. */
static enum status prepare(const struct command_line *line, const struct doing *doing, void *record,
                           struct error *error)
{
    const struct resource *resource = commands_of(line)->resource;
    return doing->add
               ? resource_make(resource, &doing->edit, clock_wall_ms(), record, error)
               : resource_check(resource, command_argument(line, 0), doing->edit.settings, error);
}

static int finish(const struct command_line *line, const struct doing *doing, const void *record)
{
    const struct resource_commands *commands = commands_of(line);
    if (doing->state != NULL && !command_json(line))
        resource_tell_state(commands->resource, record, doing->state);
    else if (commands->tell != NULL && !command_json(line))
        commands->tell(line, record, doing->add);
    else
        resource_print(line, commands->resource, record);
    return EXIT_DONE;
}

static int run(const struct command_line *line, const struct doing *doing)
{
    const struct resource *resource = commands_of(line)->resource;
    void *record = memory_alloc_zeroed(1, resource->size);
    struct platform_store *store = NULL;
    struct error error = {0};
    enum status status = prepare(line, doing, record, &error);
    int code = EXIT_REFUSED;
    if (status == STATUS_OK && !command_open_platform(line, false, &store))
        goto done;
    if (status == STATUS_OK)
        status = doing->add ? resource_insert(resource, store, record, &error)
                            : resource_change(resource, store, command_argument(line, 0),
                                              &doing->edit, record, &error);
    code = status == STATUS_OK ? finish(line, doing, record) : command_fail(line, status, &error);
done:
    platform_store_close(&store);
    memory_free(record);
    return code;
}

int resource_run_settings(const struct command_line *line, bool add, resource_editor *edit,
                          const void *context)
{
    struct line_settings settings = {0};
    int code = EXIT_USAGE;
    if (line_settings_read(line, add, &settings)) {
        const struct doing doing = {
            .edit = {.settings = settings.list, .edit = edit, .context = context}, .add = add};
        code = settings.count == 0 && edit == NULL ? command_usage(line, "nothing to set")
                                                   : run(line, &doing);
    }
    line_settings_free(&settings);
    return code;
}

int resource_run_add(const struct command_line *line)
{
    return resource_run_settings(line, true, NULL, NULL);
}

int resource_run_set(const struct command_line *line)
{
    return resource_run_settings(line, false, NULL, NULL);
}

int resource_run_edit(const struct command_line *line, resource_editor *edit, const void *context,
                      const char *state)
{
    static const struct setting none[] = {{0}};
    return run(line, &(struct doing){.edit = {.settings = none, .edit = edit, .context = context},
                                     .state = state});
}

int resource_run_enable(const struct command_line *line)
{
    static const struct setting enable[] = {{"enabled", "yes"}, {0}};
    return run(line, &(struct doing){{.settings = enable}, false, "enabled"});
}

int resource_run_disable(const struct command_line *line)
{
    static const struct setting disable[] = {{"enabled", "no"}, {0}};
    return run(line, &(struct doing){{.settings = disable}, false, "disabled"});
}
