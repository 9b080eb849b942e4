/*
 * The verbs of an operator. A change is read, edited and written back under the revision that was
 * read, and done again when another writer was quicker.
 */
#include "operator/resource.h"

#include "base/memory.h"

#define CHANGE_TRIES 16

static bool has_setting(const struct setting *settings)
{
    return settings != NULL && settings->name != NULL;
}

static enum status apply(const struct resource *resource, const struct resource_edit *edit,
                         void *record, struct error *error)
{
    for (const struct setting *setting = edit->settings; has_setting(setting); setting++) {
        const struct field *field = field_find(resource->fields, setting->name);
        CHECK(field != NULL && field_setter_of(field) != NULL);
        enum status status = field_setter_of(field)(field, text_of(setting->text), record, error);
        if (status == STATUS_OK)
            continue;
        if (edit->wrong != NULL)
            *edit->wrong = setting->name;
        return status;
    }
    return STATUS_OK;
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

/* ---- removed records ------------------------------------------------------------------------- */

static bool is_removed(const struct resource *resource, const void *record)
{
    return resource->state.removed != 0 &&
           *(const bool *)((const char *)record + resource->state.removed);
}

static void mark_removed(const struct resource *resource, void *record)
{
    *(bool *)((char *)record + resource->state.removed) = true;
    *(bool *)((char *)record + resource->state.enabled) = false;
    memset((char *)record + resource->state.revision, 0, sizeof(uint64_t));
}

/* Prepares a record that replaces a removed one. It keeps the removed one's revision, so that of
 * two people who add it at once one is refused. Its creation is later than the removed one's, even
 * if the clock was set back, so that links and sessions of the removed one (an operator) are not
 * its own. */
static void prepare_replacement(const struct resource *resource, void *record, const void *removed)
{
    const struct resource_state *state = &resource->state;
    int64_t *created_ms = (void *)((char *)record + state->created_ms);
    const int64_t *before_ms = (const void *)((const char *)removed + state->created_ms);
    memcpy((char *)record + state->revision, (const char *)removed + state->revision,
           sizeof(uint64_t));
    if (*created_ms <= *before_ms)
        *created_ms = *before_ms + 1;
}

static enum status add_again(const struct resource *resource, struct platform_store *store,
                             void *record, struct error *error)
{
    void *old = memory_alloc_zeroed(1, resource->size);
    enum status status = platform_get(store, table_of(resource), record, old, error);
    if (status == STATUS_OK && is_removed(resource, old))
        prepare_replacement(resource, record, old);
    else if (status == STATUS_OK)
        status = STATUS_EXISTS;
    memory_free(old);
    return status == STATUS_OK || status == STATUS_NOT_FOUND
               ? platform_put(store, table_of(resource), record, error)
               : status;
}

/* ---- verbs ----------------------------------------------------------------------------------- */

/* The settings, and what no text says. */
static enum status apply_all(const struct resource *resource, const struct resource_edit *edit,
                             void *record, struct error *error)
{
    enum status status = apply(resource, edit, record, error);
    if (status != STATUS_OK)
        return status;
    if (edit->remove)
        mark_removed(resource, record);
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
    struct buffer id = {0};
    enum status status = resource->state.removed != 0
                             ? add_again(resource, store, record, error)
                             : platform_add(store, table_of(resource), record, error);
    if (status != STATUS_EXISTS)
        return status;
    resource_append_id(resource, record, &id);
    const char *what = table_of(resource)->what;
    (void)error_set(error, status, "there is %s %s '%s' already",
                    strchr("aeiou", what[0]) != NULL ? "an" : "a", what, buffer_string(&id));
    buffer_free(&id);
    return status;
}

enum status resource_add(const struct resource *resource, struct platform_store *store,
                         const struct resource_edit *edit, int64_t now_ms, void *record,
                         struct error *error)
{
    enum status status = resource_make(resource, edit, now_ms, record, error);
    return status == STATUS_OK ? resource_insert(resource, store, record, error) : status;
}

/* `key`: by what the store finds the record. An id that is no string is read into `record`. */
static enum status read_id(const struct resource *resource, const char *id, void *record,
                           const void **key, struct error *error)
{
    const struct field *field = &resource->fields[0];
    *key = field->type == &field_text ? id : field_value(field, record);
    return field->type == &field_text ? STATUS_OK
                                      : field->type->set(field, text_of(id), record, error);
}

enum status resource_get(const struct resource *resource, struct platform_store *store,
                         const char *id, void *record, struct error *error)
{
    const void *key;
    enum status status = read_id(resource, id, record, &key, error);
    if (status != STATUS_OK)
        return status;
    if (resource->get != NULL)
        return resource->get(store, id, record, error);
    status = platform_get(store, table_of(resource), key, record, error);
    return status == STATUS_NOT_FOUND || (status == STATUS_OK && is_removed(resource, record))
               ? resource_missing(resource, id, error)
               : status;
}

enum status resource_missing(const struct resource *resource, const char *id, struct error *error)
{
    bool named =
        table_of(resource)->kind == RECORD_CUSTOMER && !text_starts_with(text_of(id), TEXT("cus_"));
    return error_not_found(error, "there is no %s '%.*s'%s", table_of(resource)->what, 64, id,
                           named ? "; give its id, cus_…: croupier customer list" : "");
}

enum status resource_list(const struct resource *resource, struct platform_store *store,
                          const char *of, record_function *see, void *context, struct error *error)
{
    return resource->list != NULL
               ? resource->list(store, of, see, context, error)
               : platform_list(store, table_of(resource), NULL, see, context, error);
}

/* Sets them in the scratch record, all else of which is sound. */
static enum status try_settings(const struct resource *resource, const struct setting *settings,
                                void *scratch, struct error *error)
{
    if (resource->sound != NULL)
        memcpy(scratch, resource->sound, resource->size);
    enum status status =
        apply(resource, &(struct resource_edit){.settings = settings}, scratch, error);
    return status == STATUS_OK ? check(resource, scratch, error) : status;
}

enum status resource_check(const struct resource *resource, const char *id,
                           const struct setting *settings, struct error *error)
{
    const void *key;
    void *scratch = memory_alloc_zeroed(1, resource->size);
    enum status status = read_id(resource, id, scratch, &key, error);
    if (status == STATUS_OK)
        status = try_settings(resource, settings, scratch, error);
    memory_free(scratch);
    return status;
}

void resource_refusals(const struct resource *resource, const struct setting *settings,
                       void (*see)(void *context, const char *name, const char *reason),
                       void *context)
{
    void *scratch = memory_alloc_zeroed(1, resource->size);
    if (resource->begin != NULL)
        resource->begin(scratch, 0);
    for (; has_setting(settings); settings++) {
        const struct setting one[] = {*settings, {0}};
        struct error error = {0};
        if (try_settings(resource, one, scratch, &error) != STATUS_OK)
            see(context, settings->name, error.text);
    }
    memory_free(scratch);
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
    if (resource->whole == NULL || !has_setting(settings) ||
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
    if (resource->write != NULL)
        resource->write(json, record);
    else
        fields_write_object(resource->fields, record, json);
}

void resource_append_id(const struct resource *resource, const void *record, struct buffer *out)
{
    const struct field *id = &resource->fields[0];
    (void)id->type->write(id, record, &(struct field_output){.text = out});
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
