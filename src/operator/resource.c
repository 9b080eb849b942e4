/*
 * The verbs of an operator. A change is read, edited and written back under the revision that was
 * read, and done again when another writer was quicker.
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

static const struct record_table *table_of(const struct resource *resource)
{
    return record_tables[resource->kind];
}

/* Is it acceptable as a whole, where that is judged before the store does? */
static enum status check(const struct resource *resource, const void *record, struct error *error)
{
    return resource->sound == NULL ? STATUS_OK : table_of(resource)->check(record, error);
}

/* The settings, and what no text says. */
static enum status apply_all(const struct resource *resource, const struct resource_edit *edit,
                             void *record, struct error *error)
{
    enum status status = apply(resource, edit->settings, record, error);
    if (status != STATUS_OK)
        return status;
    if (edit->edit != NULL)
        status = edit->edit(edit->context, record, error);
    return status == STATUS_OK ? check(resource, record, error) : status;
}

enum status resource_make(const struct resource *resource, const struct resource_edit *edit,
                          int64_t now_ms, void *record, struct error *error)
{
    memset(record, 0, resource->size);
    resource->begin(record, now_ms);
    return apply_all(resource, edit, record, error);
}

enum status resource_insert(const struct resource *resource, struct platform_store *store,
                            void *record, struct error *error)
{
    if (resource->add != NULL)
        return resource->add(store, record, error);
    enum status status = platform_add(store, table_of(resource), record, error);
    return status == STATUS_EXISTS ? error_set(error, status, "there is a %s '%s' already",
                                               table_of(resource)->what, (const char *)record)
                                   : status;
}

enum status resource_add(const struct resource *resource, struct platform_store *store,
                         const struct resource_edit *edit, int64_t now_ms, void *record,
                         struct error *error)
{
    enum status status = resource_make(resource, edit, now_ms, record, error);
    return status == STATUS_OK ? resource_insert(resource, store, record, error) : status;
}

enum status resource_get(const struct resource *resource, struct platform_store *store,
                         const char *id, void *record, struct error *error)
{
    enum status status = resource->check_id == NULL ? STATUS_OK : resource->check_id(id, error);
    if (status != STATUS_OK)
        return status;
    if (resource->get != NULL)
        return resource->get(store, id, record, error);
    status = platform_get(store, table_of(resource), id, record, error);
    return status == STATUS_NOT_FOUND ? resource_missing(resource, id, error) : status;
}

enum status resource_missing(const struct resource *resource, const char *id, struct error *error)
{
    return error_set(error, STATUS_NOT_FOUND, "there is no %s '%.*s'", table_of(resource)->what, 64,
                     id);
}

enum status resource_list(const struct resource *resource, struct platform_store *store,
                          const char *of, record_function *see, void *context, struct error *error)
{
    return resource->list != NULL
               ? resource->list(store, of, see, context, error)
               : platform_list(store, table_of(resource), NULL, see, context, error);
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
    if (status == STATUS_OK)
        status = check(resource, scratch, error);
    memory_free(scratch);
    return status;
}

static enum status put(const struct resource *resource, struct platform_store *store, void *record,
                       struct error *error)
{
    const struct record_table *table = table_of(resource);
    if (resource->put != NULL)
        return resource->put(store, record, error);
    enum status status = platform_update(store, table, record, error);
    if (status == STATUS_OK && table->usable != 0)
        *(bool *)((char *)record + table->usable) = true; /* whatever it was */
    return status;
}

/* Does the list have all of these names (NULL-terminated)? */
static bool settings_have(const struct setting *settings, const char *const *names)
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

static enum status check_mending(const struct resource *resource, const void *record,
                                 const struct setting *settings, struct error *error)
{
    size_t usable = table_of(resource)->usable;
    if (resource->whole == NULL || settings->name == NULL ||
        *(const bool *)((const char *)record + usable) || settings_have(settings, resource->whole))
        return STATUS_OK;
    return error_set(error, STATUS_MALFORMED,
                     "the stored record of this %s cannot be read, so it admits no one; mend it by "
                     "giving all of it: %s",
                     table_of(resource)->what, resource->mend);
}

enum status resource_change(const struct resource *resource, struct platform_store *store,
                            const char *id, const struct resource_edit *edit, void *record,
                            struct error *error)
{
    enum status status = STATUS_EXISTS; /* another writer was quicker */
    for (int i = 0; i < CHANGE_TRIES && status == STATUS_EXISTS; i++) {
        status = resource_get(resource, store, id, record, error);
        if (status != STATUS_OK)
            return status;
        status = check_mending(resource, record, edit->settings, error);
        if (status == STATUS_OK && edit->expect != NULL)
            status = edit->expect(edit->context, record, error);
        if (status == STATUS_OK)
            status = apply_all(resource, edit, record, error);
        if (status == STATUS_OK)
            status = put(resource, store, record, error);
    }
    return status;
}

/* ---- showing --------------------------------------------------------------------------------- */

void resource_write(const struct resource *resource, const void *record, struct json_writer *json)
{
    if (resource->write != NULL) {
        resource->write(json, record);
        return;
    }
    fields_write_object(resource->fields, record, json);
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
