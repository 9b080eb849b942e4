/*
 * Loading: defaults, then the file, then the environment, then the caller's overrides, each value
 * read by its row of the table as it comes. So a broken line in the file is refused even when the
 * environment would win over it: it would bite on the day the variable goes away.
 *
 * A snapshot owns the texts of all values; the strings in `struct config` point into them.
 */
#include "config/config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "config/settings.h"

#define VARIABLE_START "CROUPIER_"

struct snapshot {
    struct config config; /* first: what everybody else sees */
    atomic_uint references;
    char **values;  /* one a setting */
    char **origins; /* where each was written; NULL: the default */
};

static struct snapshot *snapshot_of(const struct config *config)
{
    return (struct snapshot *)(uintptr_t)config;
}

static void snapshot_free(struct snapshot *snapshot)
{
    for (size_t i = 0; i < setting_count; i++) {
        memory_free(snapshot->values[i]);
        memory_free(snapshot->origins[i]);
    }
    memory_free(snapshot->values);
    memory_free(snapshot->origins);
    memory_free(snapshot->config.path);
    settings_free_lists(&snapshot->config);
    memory_free(snapshot);
}

/* ---- one value ------------------------------------------------------------------------------- */

static char *copy_text(struct text text)
{
    char *copy = memory_alloc(text.size + 1);
    if (text.size > 0)
        memcpy(copy, text.at, text.size);
    copy[text.size] = '\0';
    return copy;
}

/* Reads the value into its field and keeps it; the one that stood there before is forgotten. */
static enum status set_value(struct snapshot *snapshot, size_t setting, struct text text,
                             const char *origin, struct error *error)
{
    char *value = copy_text(text_trim(text));
    void *field = (char *)&snapshot->config + settings[setting].offset;
    enum status status = settings[setting].read(&settings[setting], value, field, error);
    if (status != STATUS_OK) {
        memory_free(value);
        return status;
    }
    memory_free(snapshot->values[setting]);
    memory_free(snapshot->origins[setting]);
    snapshot->values[setting] = value;
    snapshot->origins[setting] = origin == NULL ? NULL : memory_copy_string(origin);
    return STATUS_OK;
}

static enum status take_value(void *context, size_t setting, struct text value, const char *origin,
                              struct error *error)
{
    enum status status = set_value(context, setting, value, origin, error);
    if (status != STATUS_OK)
        error_prefix(error, "%s", origin);
    return status;
}

/* ---- the environment ------------------------------------------------------------------------- */

/* Does "SERVER_LISTNE" begin with the name of a section? Then a setting was meant. Other variables
 * of that name belong to other programs (CROUPIER_BIN). */
static bool names_a_section(struct text after_start)
{
    for (size_t i = 0; i < setting_count; i++) {
        struct text section = text_of(settings[i].about.section);
        if (after_start.size > section.size && after_start.at[section.size] == '_' &&
            text_equals_ignore_case((struct text){after_start.at, section.size}, section))
            return true;
    }
    return false;
}

static size_t find_variable(struct text name)
{
    struct buffer variable = {0};
    size_t i = 0;
    for (; i < setting_count; i++) {
        buffer_clear(&variable);
        config_append_variable(&settings[i].about, &variable);
        if (text_equals(name, buffer_text(&variable)))
            break;
    }
    buffer_free(&variable);
    return i;
}

static enum status take_environment(struct snapshot *snapshot, struct error *error)
{
    for (char **variable = environ; *variable != NULL; variable++) {
        struct text value = text_of(*variable);
        struct text name = text_cut(&value, '=');
        if (value.at == NULL || !text_starts_with(name, TEXT(VARIABLE_START)))
            continue;
        int shown = (int)(name.size < 128 ? name.size : 128);
        struct text after_start = {name.at + strlen(VARIABLE_START),
                                   name.size - strlen(VARIABLE_START)};
        size_t setting = find_variable(name);
        if (setting == setting_count && !names_a_section(after_start))
            continue;
        if (setting == setting_count)
            return error_set(error, STATUS_INVALID,
                             "environment variable %.*s: there is no such setting; "
                             "`croupier help settings` lists them all",
                             shown, name.at);
        char origin[160];
        (void)snprintf(origin, sizeof origin, "environment variable %.*s", shown, name.at);
        enum status status = take_value(snapshot, setting, value, origin, error);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* ---- loading --------------------------------------------------------------------------------- */

static enum status take_overrides(struct snapshot *snapshot, const char *const *overrides,
                                  struct error *error)
{
    for (; overrides != NULL && overrides[0] != NULL; overrides += 2) {
        struct text key = text_of(overrides[0]);
        struct text section = text_cut(&key, '.');
        size_t setting = setting_find(section, key);
        CHECK(setting < setting_count && overrides[1] != NULL);
        enum status status =
            take_value(snapshot, setting, text_of(overrides[1]), overrides[0], error);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* Where a setting was written; NULL when it has its default. */
static const char *origin_of(const struct snapshot *snapshot, struct text section, struct text key)
{
    return snapshot->origins[setting_find(section, key)];
}

/* What one setting asks of another. */
static enum status check_together(const struct snapshot *snapshot, struct error *error)
{
    const struct config *config = &snapshot->config;
    if (config->tls_certificate[0] != '\0' && config->tls_key[0] == '\0')
        return error_set(error, STATUS_INVALID, "%s: needs tls_key as well",
                         origin_of(snapshot, TEXT("server"), TEXT("tls_certificate")));
    if (config->tls_certificate[0] == '\0' && config->tls_key[0] != '\0')
        return error_set(error, STATUS_INVALID, "%s: needs tls_certificate as well",
                         origin_of(snapshot, TEXT("server"), TEXT("tls_key")));
    if (config->listen.port != 0 && config->listen.port == config->operator_listen.port &&
        strcmp(config->listen.host, config->operator_listen.host) == 0) {
        const char *origin = origin_of(snapshot, TEXT("operator"), TEXT("listen"));
        if (origin == NULL)
            origin = origin_of(snapshot, TEXT("server"), TEXT("listen"));
        CHECK(origin != NULL); /* the defaults differ */
        return error_set(error, STATUS_INVALID,
                         "%s: the public API and the metrics cannot both have %s", origin,
                         config->listen.text);
    }
    return STATUS_OK;
}

/* secrets.key beside the SQLite file; a database server has no "beside". */
static void resolve_secrets_key_file(struct snapshot *snapshot)
{
    if (snapshot->config.secrets_key_file[0] != '\0')
        return;
    struct buffer path = {0};
    const char *store = snapshot->config.platform_store;
    if (strncmp(store, "sqlite:", strlen("sqlite:")) == 0) {
        const char *file = store + strlen("sqlite:");
        const char *slash = strrchr(file, '/');
        if (slash != NULL)
            buffer_append(&path, file, (size_t)(slash - file) + 1);
    } else {
        buffer_append_string(&path, "/var/lib/croupier/");
    }
    buffer_append_string(&path, "secrets.key");
    size_t setting = setting_find(TEXT("casino"), TEXT("secrets_key_file"));
    memory_free(snapshot->values[setting]);
    snapshot->values[setting] = copy_text(buffer_text(&path));
    snapshot->config.secrets_key_file = snapshot->values[setting];
    buffer_free(&path);
}

static enum status load(struct snapshot *snapshot, const char *path, const char *const *overrides,
                        struct error *error)
{
    for (size_t i = 0; i < setting_count; i++)
        CHECK(set_value(snapshot, i, text_of(settings[i].about.default_text), NULL, NULL) ==
              STATUS_OK);
    struct stat facts;
    bool has_default = path == NULL && stat(CONFIG_DEFAULT_PATH, &facts) == 0;
    snapshot->config.path = memory_copy_string(path != NULL  ? path
                                               : has_default ? CONFIG_DEFAULT_PATH
                                                             : "");
    enum status status = STATUS_OK;
    if (snapshot->config.path[0] != '\0' || path != NULL)
        status = config_file_read(snapshot->config.path, take_value, snapshot, error);
    if (status == STATUS_OK)
        status = take_environment(snapshot, error);
    if (status == STATUS_OK)
        status = take_overrides(snapshot, overrides, error);
    if (status == STATUS_OK)
        status = check_together(snapshot, error);
    if (status == STATUS_OK)
        resolve_secrets_key_file(snapshot);
    return status;
}

enum status config_load(const struct config **config, const char *path,
                        const char *const *overrides, struct error *error)
{
    struct snapshot *snapshot = memory_alloc_zeroed(1, sizeof *snapshot);
    atomic_init(&snapshot->references, 1);
    snapshot->values = memory_alloc_zeroed(setting_count, sizeof snapshot->values[0]);
    snapshot->origins = memory_alloc_zeroed(setting_count, sizeof snapshot->origins[0]);
    enum status status = load(snapshot, path, overrides, error);
    if (status == STATUS_OK)
        *config = &snapshot->config;
    else
        snapshot_free(snapshot);
    return status;
}

const struct config *config_hold(const struct config *config)
{
    (void)atomic_fetch_add_explicit(&snapshot_of(config)->references, 1, memory_order_relaxed);
    return config;
}

void config_release(const struct config **config)
{
    if (*config == NULL)
        return;
    struct snapshot *snapshot = snapshot_of(*config);
    if (atomic_fetch_sub_explicit(&snapshot->references, 1, memory_order_acq_rel) == 1)
        snapshot_free(snapshot);
    *config = NULL;
}

static bool needs_restart(const struct setting *setting, const char *before, const char *after)
{
    if (setting->about.reloadable)
        return (setting->rules & SETTING_STAYS_SET) != 0 &&
               (before[0] == '\0') != (after[0] == '\0');
    return strcmp(before, after) != 0;
}

void config_list_restart_needed(const struct config *before, const struct config *after,
                                struct buffer *out)
{
    size_t start = out->size;
    for (size_t i = 0; i < setting_count; i++)
        if (needs_restart(&settings[i], snapshot_of(before)->values[i],
                          snapshot_of(after)->values[i]))
            buffer_append_format(out, "%s%s.%s", out->size > start ? ", " : "",
                                 settings[i].about.section, settings[i].about.key);
}

/* ---- showing --------------------------------------------------------------------------------- */

/* "a=1&password=x" with every password's value replaced. */
static void append_redacted_query(struct text query, struct buffer *out)
{
    while (query.at != NULL) {
        struct text pair = text_cut(&query, '&');
        struct text value = pair;
        struct text name = text_cut(&value, '=');
        bool secret = value.at != NULL && memmem(name.at, name.size, "passw", 5) != NULL;
        buffer_append_text(out, secret ? name : pair);
        if (secret)
            buffer_append_string(out, "=***");
        if (query.at != NULL)
            buffer_append_char(out, '&');
    }
}

void config_redact_uri(const char *uri, struct buffer *out)
{
    const char *authority = strstr(uri, "://");
    if (authority == NULL) {
        buffer_append_string(out, uri); /* a path */
        return;
    }
    authority += strlen("://");
    buffer_append(out, uri, (size_t)(authority - uri));
    /* Up to the last '@', because a password may hold one unescaped: rather hide too much. */
    const char *at = strrchr(authority, '@');
    if (at != NULL) {
        size_t user_size = strcspn(authority, ":@");
        buffer_append(out, authority, user_size);
        buffer_append_string(out, authority[user_size] == ':' ? ":***@" : "@");
        authority = at + 1;
    }
    struct text rest = text_of(authority);
    struct text before_query = text_cut(&rest, '?');
    buffer_append_text(out, before_query);
    if (rest.at != NULL) {
        buffer_append_char(out, '?');
        append_redacted_query(rest, out);
    }
}
