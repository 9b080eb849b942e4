/*
 * The verbs of an operator. A change is read, edited and written back under the revision that was
 * read, and done again when somebody was quicker.
 */
#include "operator/resource.h"

#include <string.h>

#include "base/memory.h"

#define CHANGE_TRIES 16

static enum status apply(const struct resource *resource, const struct setting *settings,
                         void *record, struct error *error)
{
    enum status status = STATUS_OK;
    for (; status == STATUS_OK && settings->name != NULL; settings++) {
        const struct field *field = field_find(resource->fields, settings->name);
        CHECK(field != NULL && field_setter_of(field) != NULL);
        status = field_setter_of(field)(field, text_of(settings->text), record, error);
    }
    return status;
}

void resource_release(const struct resource *resource, void *record)
{
    if (record_tables[resource->kind]->release != NULL)
        record_tables[resource->kind]->release(record);
}

/* The settings, and what no text says. */
static enum status apply_all(const struct resource *resource, const struct resource_edit *edit,
                             void *record, struct error *error)
{
    enum status status = apply(resource, edit->settings, record, error);
    if (status == STATUS_OK && edit->edit != NULL)
        edit->edit(edit->context, record);
    if (status == STATUS_OK && resource->check != NULL)
        status = resource->check(record, error);
    return status;
}

enum status resource_make(const struct resource *resource, const struct resource_edit *edit,
                          int64_t now_ms, void *record, struct error *error)
{
    void *made = memory_alloc_zeroed(1, resource->size);
    resource->begin(made, now_ms);
    enum status status = apply_all(resource, edit, made, error);
    if (status == STATUS_OK)
        memcpy(record, made, resource->size);
    else
        resource_release(resource, made);
    memory_free(made);
    return status;
}

enum status resource_add(const struct resource *resource, struct platform_store *store,
                         const struct resource_edit *edit, int64_t now_ms, void *record,
                         struct error *error)
{
    void *made = memory_alloc_zeroed(1, resource->size);
    enum status status = resource_make(resource, edit, now_ms, made, error);
    if (status == STATUS_OK) {
        status = resource->add(store, made, error);
        if (status == STATUS_OK)
            memcpy(record, made, resource->size);
        else
            resource_release(resource, made);
    }
    memory_free(made);
    return status;
}

enum status resource_get(const struct resource *resource, struct platform_store *store,
                         const char *id, void *record, struct error *error)
{
    enum status status = resource->check_id == NULL ? STATUS_OK : resource->check_id(id, error);
    if (status == STATUS_OK)
        status = resource->get(store, id, record, error);
    return status == STATUS_NOT_FOUND && resource->noun != NULL
               ? error_set(error, status, "there is no %s '%.*s'", resource->noun, 64, id)
               : status;
}

static bool see_any(void *context, const struct record_table *table, const void *record)
{
    (void)table;
    return resource_see(context, record);
}

enum status resource_list(const struct resource *resource, struct platform_store *store,
                          const char *of, struct resource_visit *visit, struct error *error)
{
    const struct record_visitor visitor = {
        .any = see_any, .kinds = 1U << resource->kind, .context = visit};
    return resource->list != NULL ? resource->list(store, of, visit, error)
                                  : platform_list(store, &visitor, error);
}

enum status resource_check(const struct resource *resource, const char *id,
                           const struct setting *settings, struct error *error)
{
    void *scratch = memory_alloc_zeroed(1, resource->size);
    enum status status = resource->check_id == NULL ? STATUS_OK : resource->check_id(id, error);
    if (resource->sound != NULL)
        memcpy(scratch, resource->sound, resource->size);
    if (status == STATUS_OK)
        status = apply(resource, settings, scratch, error);
    if (status == STATUS_OK && resource->check != NULL)
        status = resource->check(scratch, error);
    resource_release(resource, scratch);
    memory_free(scratch);
    return status;
}

enum status resource_change(const struct resource *resource, struct platform_store *store,
                            const char *id, const struct resource_edit *edit, void *record,
                            struct error *error)
{
    void *changed = memory_alloc_zeroed(1, resource->size);
    enum status status = STATUS_EXISTS; /* somebody was quicker */
    for (int i = 0; i < CHANGE_TRIES && status == STATUS_EXISTS; i++) {
        status = resource_get(resource, store, id, changed, error);
        if (status != STATUS_OK)
            break;
        if (resource->check_mending != NULL && edit->settings->name != NULL)
            status = resource->check_mending(changed, edit->settings, error);
        if (status == STATUS_OK)
            status = apply_all(resource, edit, changed, error);
        if (status == STATUS_OK)
            status = resource->put(store, changed, error);
        if (status == STATUS_OK)
            memcpy(record, changed, resource->size);
        else
            resource_release(resource, changed);
    }
    memory_free(changed);
    return status;
}

/* ---- showing --------------------------------------------------------------------------------- */

void resource_write(const struct resource *resource, const void *record, struct json_writer *json)
{
    if (resource->write != NULL) {
        resource->write(json, record);
        return;
    }
    const struct field_output out = {.json = json};
    json_object(json, NULL);
    for (const struct field *field = resource->fields; field->type != NULL; field++)
        if (field->name != NULL)
            (void)field->type->write(field, record, &out);
    json_end(json);
}

void resource_show(const struct resource *resource, const void *record, struct buffer *out)
{
    struct buffer value = {0};
    const struct field_output to_value = {.text = &value};
    size_t width = 0;
    for (const struct field *field = resource->fields; field->type != NULL; field++)
        if (field->label != NULL && strlen(field->label) > width)
            width = strlen(field->label);
    for (const struct field *field = resource->fields; field->type != NULL; field++) {
        buffer_clear(&value);
        if (field->label != NULL && field->type->write(field, record, &to_value))
            buffer_append_format(out, "%-*s  %s\n", (int)width, field->label,
                                 buffer_string(&value));
    }
    buffer_free(&value);
}

/* ---- for resources --------------------------------------------------------------------------- */

bool resource_see(void *context, const void *record)
{
    const struct resource_visit *visit = context;
    visit->see(visit->context, record);
    return true;
}

bool settings_have(const struct setting *settings, const char *const *names)
{
    for (; *names != NULL; names++) {
        const struct setting *setting = settings;
        while (setting->name != NULL && strcmp(setting->name, *names) != 0)
            setting++;
        if (setting->name == NULL)
            return false;
    }
    return true;
}
