/*
 * Loading: defaults, then the file, then the environment, then the caller's overrides, each value
 * read by its row of the table as it comes. So a broken line in the file is refused even when the
 * environment would win over it: it would bite on the day the variable goes away. Loading goes on
 * behind what is wrong, so that all of it is seen at once.
 *
 * A snapshot owns the texts of all values; the strings in `struct config` point into them.
 */
#include "config/config.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/relaxed.h"
#include "config/settings.h"

#define VARIABLE_START "CROUPIER_"

/* Variables that are no settings, and are passed over. One that ends in '*' stands for all that
 * begin so. SERVICE_* and PORT_* are what Kubernetes gives to whatever runs beside a service that
 * is called "croupier". */
static const char *const other_variables[] = {"BIN",  "PATIENCE", "TEST_*",    "BENCH_*",
                                              "PORT", "PORT_*",   "SERVICE_*", NULL};

struct snapshot {
    struct config config; /* first: the part that other modules see */
    atomic_uint references;
    char **values;                        /* one a setting */
    char **origins;                       /* where each was written; NULL: the default */
    struct buffer odds_uri, platform_uri; /* with a password from a file */
    struct buffer user_secret;
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
    buffer_wipe(&snapshot->odds_uri);
    buffer_wipe(&snapshot->platform_uri);
    buffer_wipe(&snapshot->user_secret);
    memory_free(snapshot->config.trusted_proxies.blocks);
    memory_free(snapshot->config.trusted_user_proxies.blocks);
    memory_free(snapshot);
}

/* ---- one value ------------------------------------------------------------------------------- */

/* A file's "credential:NAME" is the path where systemd puts it for this service, or for the one
 * that runs, which a command beside it may read. */
static char *copy_value(const struct setting *setting, struct text value)
{
    struct text name = value;
    struct buffer copy = {0};
    const char *directory = getenv("CREDENTIALS_DIRECTORY");
    if ((setting->rules & IS_FILE) != 0 && text_equals(text_cut(&name, ':'), TEXT("credential")) &&
        name.at != NULL) {
        buffer_append_format(&copy, "%s/",
                             directory != NULL ? directory : "/run/credentials/croupier.service");
        value = name;
    }
    buffer_append_text(&copy, value);
    (void)buffer_string(&copy); /* ends it with NUL */
    return copy.data;
}

/* Reads the value into its field and keeps it; the one that stood there before is forgotten. */
static enum status set_value(struct snapshot *snapshot, size_t setting, struct text text,
                             const char *origin, struct error *error)
{
    char *value = copy_value(&settings[setting], text_trim(text));
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

/* The configuration under construction, and its problems. */
struct loading {
    struct snapshot *snapshot;
    struct problems problems;
};

static void take_value(void *context, size_t setting, struct text value, const char *origin)
{
    struct loading *loading = context;
    struct error error = {0};
    enum status status = set_value(loading->snapshot, setting, value, origin, &error);
    if (status != STATUS_OK)
        problems_add(&loading->problems, status, origin, &error);
}

/* ---- the environment ------------------------------------------------------------------------- */

static bool is_other(struct text after_start)
{
    for (const char *const *other = other_variables; *other != NULL; other++) {
        struct text name = text_of(*other);
        bool start = name.at[name.size - 1] == '*';
        name.size -= start ? 1 : 0;
        if (start ? text_starts_with(after_start, name) : text_equals(after_start, name))
            return true;
    }
    return false;
}

/* The setting of a variable, or setting_count and the one that may have been meant. */
static size_t find_variable(const char *name, size_t *meant)
{
    struct buffer variable = {0};
    struct nearest nearest = {.written = name + strlen(VARIABLE_START)};
    *meant = setting_count;
    size_t i = 0;
    for (; i < setting_count; i++) {
        buffer_clear(&variable);
        config_append_variable(&settings[i].about, &variable);
        if (strcmp(name, buffer_string(&variable)) == 0)
            break;
        if (nearest_offer(&nearest, buffer_string(&variable) + strlen(VARIABLE_START)))
            *meant = i;
    }
    buffer_free(&variable);
    return i;
}

static void refuse_variable(struct loading *loading, const char *origin, size_t meant)
{
    struct error error;
    struct buffer name = {0};
    if (meant < setting_count)
        config_append_variable(&settings[meant].about, &name);
    (void)error_set(&error, STATUS_INVALID, "there is no such setting; %s%s%s",
                    meant < setting_count ? "did you mean "
                                          : "`croupier help settings` lists them all",
                    buffer_string(&name), meant < setting_count ? "?" : "");
    problems_add(&loading->problems, STATUS_INVALID, origin, &error);
    buffer_free(&name);
}

static void take_environment(struct loading *loading)
{
    for (char **variable = environ; *variable != NULL; variable++) {
        struct text value = text_of(*variable);
        struct text name = text_cut(&value, '=');
        struct text after_start = {name.at + strlen(VARIABLE_START),
                                   name.size - strlen(VARIABLE_START)};
        if (value.at == NULL || !text_starts_with(name, TEXT(VARIABLE_START)) ||
            is_other(after_start))
            continue;
        char shown[128];
        char origin[160];
        (void)snprintf(shown, sizeof shown, "%.*s",
                       (int)(name.size < sizeof shown ? name.size : sizeof shown - 1), name.at);
        (void)snprintf(origin, sizeof origin, "environment variable %s", shown);
        size_t meant;
        size_t setting = find_variable(shown, &meant);
        if (setting < setting_count)
            take_value(loading, setting, value, origin);
        else
            refuse_variable(loading, origin, meant);
    }
}

/* ---- loading --------------------------------------------------------------------------------- */

static void take_overrides(struct loading *loading, const char *const *overrides)
{
    for (; overrides != NULL && overrides[0] != NULL; overrides += 2) {
        struct text key = text_of(overrides[0]);
        struct text section = text_cut(&key, '.');
        size_t setting = setting_find(section, key);
        CHECK(setting < setting_count && overrides[1] != NULL);
        take_value(loading, setting, text_of(overrides[1]), overrides[0]);
    }
}

/* A listener and its settings. */
struct listener {
    const char *section, *what;
    const struct listen_address *at;
    const char *certificate, *key;
};

/* Says where a setting was written; NULL when it has its default. */
static const char *origin_of(const struct loading *loading, const char *section, const char *key)
{
    return loading->snapshot->origins[setting_find(text_of(section), text_of(key))];
}

/* A certificate goes with a key. */
static void check_tls(struct loading *loading, const struct listener *listener)
{
    struct error error;
    bool has_key = listener->key[0] != '\0';
    if ((listener->certificate[0] != '\0') == has_key)
        return;
    (void)error_set(&error, STATUS_INVALID, "needs %s as well",
                    has_key ? "tls_certificate" : "tls_key");
    problems_add(&loading->problems, STATUS_INVALID,
                 origin_of(loading, listener->section, has_key ? "tls_key" : "tls_certificate"),
                 &error);
}

static void check_apart(struct loading *loading, const struct listener *one,
                        const struct listener *other)
{
    if (one->at->port == 0 || one->at->port != other->at->port ||
        strcmp(one->at->host, other->at->host) != 0)
        return;
    struct error error;
    const char *origin = origin_of(loading, other->section, "listen");
    if (origin == NULL)
        origin = origin_of(loading, one->section, "listen");
    CHECK(origin != NULL); /* the defaults differ */
    (void)error_set(&error, STATUS_INVALID, "%s and %s cannot both have %s", one->what, other->what,
                    one->at->text);
    problems_add(&loading->problems, STATUS_INVALID, origin, &error);
}

#define PASSWORD_MAX 1024
#define USER_SECRET_LEAST 16

/* Reads the one line of a file. */
static enum status read_password(const char *path, size_t least, struct buffer *password,
                                 struct error *error)
{
    enum status status = file_read_secret(path, PASSWORD_MAX + 2, password, error);
    while (password->size > 0 && strchr("\r\n", password->data[password->size - 1]) != NULL)
        password->size--;
    bool line = password->size >= least && password->size <= PASSWORD_MAX &&
                text_is_plain(buffer_text(password));
    if (status == STATUS_OK && !line)
        status = error_invalid(error, "%s: is not one line of %zu to %d bytes", path, least,
                               PASSWORD_MAX);
    return status;
}

/* Appends the URI with the password of the file, percent-encoded, in it. */
static enum status insert_password(const char *uri, const char *path, struct buffer *out,
                                   struct error *error)
{
    const char *authority = strstr(uri, "://");
    if (authority == NULL)
        return error_invalid(error,
                             "is for a store that is a server (a socket of Redis: unix:///PATH)");
    authority += strlen("://");
    config_redact_uri(uri, out);
    bool has_password = strcmp(buffer_string(out), uri) != 0;
    buffer_clear(out);
    if (has_password)
        return error_invalid(error, "the address in `store` has a password as well");
    struct buffer password = {0};
    enum status status = read_password(path, 1, &password, error);
    const char *at = memchr(authority, '@', strcspn(authority, "/?"));
    const char *end = at != NULL ? at : authority;
    buffer_append(out, uri, (size_t)(end - uri));
    buffer_append_char(out, ':');
    for (size_t i = 0; i < password.size; i++)
        buffer_append_format(out, "%%%02X", (unsigned)(unsigned char)password.data[i]);
    buffer_append_format(out, "%s%s", at != NULL ? "" : "@", end);
    buffer_wipe(&password);
    return status;
}

static void add_password(struct loading *loading, const char *section, const char *path,
                         char **store, struct buffer *out)
{
    struct error error;
    if (path[0] == '\0')
        return;
    enum status status = insert_password(*store, path, out, &error);
    if (status != STATUS_OK)
        problems_add(&loading->problems, status, origin_of(loading, section, "password_file"),
                     &error);
    *store = (char *)(uintptr_t)buffer_string(out);
}

/* A sign-in proxy on this machine is known by its secret: an address is anybody's here. */
static void add_user_secret(struct loading *loading)
{
    struct snapshot *snapshot = loading->snapshot;
    struct config *config = &snapshot->config;
    const struct cidr_list *proxies = &config->trusted_user_proxies;
    const char *key = "trusted_user_secret_file";
    struct error error;
    enum status status = STATUS_OK;
    if (config->trusted_user_secret_file[0] != '\0')
        status = read_password(config->trusted_user_secret_file, USER_SECRET_LEAST,
                               &snapshot->user_secret, &error);
    else
        for (size_t i = 0; i < proxies->count; i++)
            if (address_is_loopback(&proxies->blocks[i].network)) {
                status = error_set(&error, STATUS_INVALID, "has loopback, which needs %s", key);
                key = "trusted_user_proxies";
                break;
            }
    config->trusted_user_secret = buffer_text(&snapshot->user_secret);
    if (status != STATUS_OK)
        problems_add(&loading->problems, status, origin_of(loading, "operator", key), &error);
}

/* Rules between settings. */
static void check_together(struct loading *loading)
{
    const struct config *config = &loading->snapshot->config;
    const struct listener listeners[] = {
        {"server", "the public API", &config->listen, config->tls_certificate, config->tls_key},
        {"operator", "the metrics", &config->operator_listen, config->operator_tls_certificate,
         config->operator_tls_key},
        {"provider", "the providers' calls", &config->provider_listen,
         config->provider_tls_certificate, config->provider_tls_key},
    };
    for (size_t i = 0; i < sizeof listeners / sizeof listeners[0]; i++) {
        check_tls(loading, &listeners[i]);
        for (size_t j = 0; j < i; j++)
            check_apart(loading, &listeners[j], &listeners[i]);
    }
}

static const char *path_behind(const char *uri, const char *scheme)
{
    size_t length = strlen(scheme);
    return strncmp(uri, scheme, length) == 0 ? uri + length : NULL;
}

const char *config_platform_file(const struct config *config)
{
    return path_behind(config->platform_store, SCHEME_SQLITE);
}

const char *config_odds_directory(const struct config *config)
{
    return path_behind(config->odds_store, SCHEME_EMBEDDED);
}

/* secrets.key beside the SQLite file; a database server has no "beside". */
static void resolve_secrets_key_file(struct snapshot *snapshot)
{
    if (snapshot->config.secrets_key_file[0] != '\0')
        return;
    struct buffer path = {0};
    const char *file = config_platform_file(&snapshot->config);
    if (file != NULL) {
        const char *slash = strrchr(file, '/');
        if (slash != NULL)
            buffer_append(&path, file, (size_t)(slash - file) + 1);
    } else {
        buffer_append_string(&path, "/var/lib/croupier/");
    }
    buffer_append_string(&path, "secrets.key");
    size_t setting = setting_find(TEXT("casino"), TEXT("secrets_key_file"));
    memory_free(snapshot->values[setting]);
    (void)buffer_string(&path); /* ends it with NUL */
    snapshot->config.secrets_key_file = snapshot->values[setting] = path.data;
}

static void load(struct loading *loading, const char *path, const char *const *overrides)
{
    struct snapshot *snapshot = loading->snapshot;
    struct config *config = &snapshot->config;
    for (size_t i = 0; i < setting_count; i++)
        CHECK(set_value(snapshot, i, text_of(settings[i].about.default_text), NULL, NULL) ==
              STATUS_OK);
    struct stat facts;
    bool has_default = path == NULL && stat(CONFIG_DEFAULT_PATH, &facts) == 0;
    config->path = memory_copy_string(path != NULL ? path : has_default ? CONFIG_DEFAULT_PATH : "");
    if (config->path[0] != '\0' || path != NULL)
        config_file_read(config->path, take_value, loading, &loading->problems);
    take_environment(loading);
    take_overrides(loading, overrides);
    /* A setting that was refused has its default still, which says nothing of another. */
    if (loading->problems.count == 0)
        check_together(loading);
    if (loading->problems.count == 0) {
        resolve_secrets_key_file(snapshot);
        add_password(loading, "odds", config->odds_password_file, &config->odds_store,
                     &snapshot->odds_uri);
        add_password(loading, "platform", config->platform_password_file, &config->platform_store,
                     &snapshot->platform_uri);
        add_user_secret(loading);
    }
}

/* `problems` is the caller's to free. */
static enum status load_whole(const struct config **config, const char *path,
                              const char *const *overrides, struct problems *problems)
{
    struct loading loading = {.snapshot = memory_alloc_zeroed(1, sizeof *loading.snapshot)};
    struct snapshot *snapshot = loading.snapshot;
    atomic_init(&snapshot->references, 1);
    snapshot->values = memory_alloc_zeroed(setting_count, sizeof snapshot->values[0]);
    snapshot->origins = memory_alloc_zeroed(setting_count, sizeof snapshot->origins[0]);
    load(&loading, path, overrides);
    *problems = loading.problems;
    if (problems->status == STATUS_OK)
        *config = &snapshot->config;
    else
        snapshot_free(snapshot);
    return problems->status;
}

enum status config_load(const struct config **config, const char *path,
                        const char *const *overrides, struct error *error)
{
    struct problems problems = {0};
    enum status status = load_whole(config, path, overrides, &problems);
    if (status != STATUS_OK) {
        struct text rest = buffer_text(&problems.lines);
        struct text first = text_cut(&rest, '\n');
        char more[64] = "";
        if (problems.count > 1)
            (void)snprintf(more, sizeof more, " (and %u more; `croupier check` lists them)",
                           problems.count - 1);
        int room = ERROR_TEXT_SIZE - 1 - (int)strlen(more);
        (void)error_set(error, status, "%.*s%s", first.size < (size_t)room ? (int)first.size : room,
                        first.at, more);
    }
    buffer_free(&problems.lines);
    return status;
}

enum status config_load_all(const struct config **config, const char *path, struct buffer *lines)
{
    struct problems problems = {0};
    enum status status = load_whole(config, path, NULL, &problems);
    buffer_append_text(lines, buffer_text(&problems.lines));
    if (problems.count > PROBLEMS_SHOWN_MAX)
        buffer_append_format(lines, "\nand %u more", problems.count - PROBLEMS_SHOWN_MAX);
    buffer_free(&problems.lines);
    return status;
}

const struct config *config_hold(const struct config *config)
{
    relaxed_add(&snapshot_of(config)->references, 1);
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

bool config_is_empty(const struct config *config)
{
    for (size_t i = 0; i < setting_count; i++)
        if (snapshot_of(config)->origins[i] != NULL)
            return false;
    return true;
}

static bool needs_restart(const struct setting *setting, const char *before, const char *after)
{
    if (setting->about.reloadable)
        return (setting->rules & STAYS_SET) != 0 && (before[0] == '\0') != (after[0] == '\0');
    return strcmp(before, after) != 0;
}

/* A store's address with the password of its file, so that another password is a change. */
static const char *value_in_force(const struct config *config, size_t setting)
{
    return strcmp(settings[setting].about.key, "store") == 0
               ? *(char *const *)(const void *)((const char *)config + settings[setting].offset)
               : snapshot_of(config)->values[setting];
}

void config_list_restart_needed(const struct config *before, const struct config *after,
                                struct buffer *out)
{
    size_t start = out->size;
    for (size_t i = 0; i < setting_count; i++)
        if (needs_restart(&settings[i], value_in_force(before, i), value_in_force(after, i)))
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

bool config_file_has_password(const struct config *config)
{
    const struct snapshot *snapshot = snapshot_of(config);
    bool found = false;
    for (size_t i = 0; i < setting_count && !found; i++) {
        struct buffer shown = {0};
        config_append_value(config, i, &shown);
        found = strcmp(buffer_string(&shown), snapshot->values[i]) != 0 &&
                text_starts_with(text_of(snapshot->origins[i]), text_of(config->path));
        buffer_free(&shown);
    }
    return found;
}

void config_append_value(const struct config *config, size_t index, struct buffer *out)
{
    config_redact_uri(snapshot_of(config)->values[index], out);
}

void config_append_address(struct buffer *out, const char *host, uint16_t port)
{
    bool brackets = strchr(host, ':') != NULL;
    buffer_append_format(out, "%s%s%s:%u", brackets ? "[" : "", host, brackets ? "]" : "",
                         (unsigned)port);
}

void config_append_url(struct buffer *out, const char *scheme, const char *host, uint16_t port)
{
    const char *reached = strcmp(host, "0.0.0.0") == 0 ? "127.0.0.1"
                          : strcmp(host, "::") == 0    ? "::1"
                                                       : host;
    buffer_append_format(out, "%s://", scheme);
    config_append_address(out, reached, port);
}
