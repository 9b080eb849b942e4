/*
 * The table of settings, and how a value of each kind is read. Everything that can be said about a
 * setting stands in its row, and for people in help/settings.txt; docs/configuration.md names every
 * row, and a test holds it to that.
 *
 * The readers refuse with a text that names the unit, the range and an example, never a secret.
 */
#include "config/settings.h"

#include "base/memory.h"
#include "config/setting_texts.h"

static enum status read_number(const struct setting *setting, char *value, void *field,
                               struct error *error)
{
    uint64_t number;
    if (text_to_u64(text_of(value), setting->most, &number) != STATUS_OK || number < setting->least)
        return error_invalid(error, "must be a whole number from %u to %u, and is '%.64s' (%s)",
                             (unsigned)setting->least, (unsigned)setting->most, value,
                             setting->about.what);
    *(uint32_t *)field = (uint32_t)number;
    return STATUS_OK;
}

static enum status read_rate(const struct setting *setting, char *value, void *field,
                             struct error *error)
{
    return rate_limit_read(text_of(value), field)
               ? STATUS_OK
               : error_invalid(
                     error, "must be REQUESTS/SECONDS, as in 300/60, or off, and is '%.64s' (%s)",
                     value, setting->about.what);
}

/* "25%", or a number. */
static enum status read_share(const struct setting *setting, char *value, void *field,
                              struct error *error)
{
    struct text percent = text_of(value);
    uint64_t number;
    if (percent.size == 0 || percent.at[percent.size - 1] != '%')
        return read_number(setting, value, field, error);
    percent.size--;
    if (text_to_u64(percent, 100, &number) != STATUS_OK || number == 0)
        return error_invalid(error, "must be from 1%% to 100%%, and is '%.64s' (%s)", value,
                             setting->about.what);
    *(uint32_t *)field = CONFIG_PERCENT | (uint32_t)number;
    return STATUS_OK;
}

uint32_t config_share(uint32_t share, uint32_t whole)
{
    uint64_t percent = share & ~CONFIG_PERCENT;
    uint32_t part = (uint32_t)(whole * percent / 100);
    if ((share & CONFIG_PERCENT) == 0)
        return share;
    return part > 0 ? part : 1;
}

static enum status read_threads(const struct setting *setting, char *value, void *field,
                                struct error *error)
{
    uint32_t threads = 0;
    enum status status = read_number(setting, value, &threads, error);
    if (status != STATUS_OK)
        return status;
    *(uint32_t *)field = threads > 0 ? threads : config_processors("");
    return STATUS_OK;
}

static enum status read_listen(const struct setting *setting, char *value, void *field,
                               struct error *error)
{
    (void)setting;
    const char *form = "must be ADDRESS:PORT, as in 127.0.0.1:8080, 0.0.0.0:8080 or [::]:8080";
    struct listen_address listen = {0};
    struct text text = text_of(value);
    if (text.size == 0 || text.size >= sizeof listen.text)
        return error_invalid(error, "%s", form);
    const char *colon = strrchr(value, ':');
    uint64_t port;
    /* "::1" has a last colon too; with a port, an IPv6 address stands in brackets. */
    bool bracketed = value[0] == '[';
    if (colon == NULL || (bracketed && colon[-1] != ']'))
        return error_invalid(error, "'%s' has no port; it %s", value, form);
    struct text host = {value, (size_t)(colon - value)};
    if (!bracketed && memchr(host.at, ':', host.size) != NULL)
        return error_invalid(error, "'%s': an IPv6 address stands in brackets; it %s", value, form);
    if (bracketed)
        host = (struct text){host.at + 1, host.size - 2};
    if (strlen(colon + 1) > 5 || text_to_u64(text_of(colon + 1), 65535, &port) != STATUS_OK)
        return error_invalid(
            error, "'%s': the port must be a number from 0 to 65535 (0: any free one)", value);
    struct address address;
    if (address_parse(host, &address) != STATUS_OK ||
        bracketed != (memchr(host.at, ':', host.size) != NULL))
        return error_invalid(error, "'%s': '%.*s' is not an IP address; it %s", value,
                             TEXT_SHOWN(host), form);
    memcpy(listen.text, value, text.size + 1);
    address_format(&address, listen.host);
    listen.port = (uint16_t)port;
    *(struct listen_address *)field = listen;
    return STATUS_OK;
}

static enum status read_listen_or_off(const struct setting *setting, char *value, void *field,
                                      struct error *error)
{
    if (value[0] != '\0')
        return read_listen(setting, value, field, error);
    *(struct listen_address *)field = (struct listen_address){0};
    return STATUS_OK;
}

/* Items are separated by commas, spaces or line ends. */
static struct text next_item(struct text *rest)
{
    static const char separators[] = ", \t\n";
    while (rest->size > 0 && strchr(separators, rest->at[0]) != NULL)
        *rest = (struct text){rest->at + 1, rest->size - 1};
    size_t size = rest->size > 0 ? strcspn(rest->at, separators) : 0;
    struct text item = {rest->at, size};
    *rest = (struct text){rest->at + size, rest->size - size};
    return item;
}

static enum status read_proxies(const struct setting *setting, char *value, void *field,
                                struct error *error)
{
    (void)setting;
    struct cidr_list *list = field;
    struct text rest = text_of(value);
    struct buffer blocks = {0};
    size_t count = 0;
    for (struct text item = next_item(&rest); item.size > 0; item = next_item(&rest)) {
        struct cidr block;
        enum status status = cidr_parse(item, &block, error);
        if (status == STATUS_OK && cidr_is_everyone(&block))
            status = error_invalid(error,
                                   "'%.*s' would trust every client; list the addresses of the "
                                   "proxies",
                                   TEXT_SHOWN(item));
        if (status != STATUS_OK) {
            error_prefix(error, "item %zu", count + 1);
            buffer_free(&blocks);
            return status;
        }
        buffer_append(&blocks, &block, sizeof block);
        count++;
    }
    memory_free(list->blocks);
    *list = (struct cidr_list){(struct cidr *)(void *)blocks.data, count};
    return STATUS_OK;
}

static enum status read_text(const struct setting *setting, char *value, void *field,
                             struct error *error)
{
    (void)setting;
    if (value[0] == '"' || value[0] == '\'')
        return error_invalid(error, "must be written without quotes");
    *(char **)field = value;
    return STATUS_OK;
}

static enum status read_prefix(const struct setting *setting, char *value, void *field,
                               struct error *error)
{
    struct text text = text_of(value);
    bool clean = text.size <= 64;
    for (size_t i = 0; i < text.size; i++)
        clean = clean && text.at[i] > ' ' && text.at[i] < 0x7F;
    if (!clean)
        return error_invalid(error, "must be at most 64 printable ASCII characters without spaces");
    return read_text(setting, value, field, error);
}

static bool begins(const char *value, const char *start)
{
    return strncmp(value, start, strlen(start)) == 0;
}

static enum status read_odds_store(const struct setting *setting, char *value, void *field,
                                   struct error *error)
{
    static const char *const schemes[] = {
        SCHEME_EMBEDDED, "redis://",          "rediss://",
        "unix:",         "redis+sentinel://", "rediss+sentinel://"};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (begins(value, schemes[i]) && value[strlen(schemes[i])] != '\0')
            return read_text(setting, value, field, error);
    return error_set(
        error, STATUS_INVALID,
        "must be embedded:DIR, as in embedded:/var/lib/croupier/odds, or a Redis or Valkey "
        "server by redis://, rediss://, unix:, redis+sentinel:// or rediss+sentinel://");
}

static enum status read_platform_store(const struct setting *setting, char *value, void *field,
                                       struct error *error)
{
    /* libpq judges the rest when the store is opened. */
    if (begins(value, "postgresql://") || begins(value, "postgres://"))
        return read_text(setting, value, field, error);
    if (!begins(value, SCHEME_SQLITE) || value[strlen(SCHEME_SQLITE)] == '\0')
        return error_invalid(error,
                             "must be sqlite:FILE, as in sqlite:/var/lib/croupier/platform.db, or "
                             "postgresql://USER:PASSWORD@HOST:PORT/DATABASE");
    if (begins(value, SCHEME_SQLITE ":memory:"))
        return error_invalid(
            error, "must be a file: commands and the service open it from several places");
    return read_text(setting, value, field, error);
}

static enum status read_level(const struct setting *setting, char *value, void *field,
                              struct error *error)
{
    (void)setting;
    return enum_read(&log_levels, text_of(value), field)
               ? STATUS_OK
               : error_invalid(error, "must be error, warning, info or debug, and is '%.64s'",
                               value);
}

static enum status read_format(const struct setting *setting, char *value, void *field,
                               struct error *error)
{
    (void)setting;
    return enum_read(&log_formats, text_of(value), field)
               ? STATUS_OK
               : error_invalid(error, "must be text or json, and is '%.64s'", value);
}

/* A row; `least` and `most` are those of a number. help/settings.txt says its purpose. */
#define SETTING(section_, key_, default_, rules_, field_, read_, least_, most_)                \
    {                                                                                          \
        {#section_, #key_, default_, setting_##section_##_##key_, ((rules_)&RELOADABLE) != 0}, \
            offsetof(struct config, field_), read_, least_, most_, rules_                      \
    }

/* Two rows: the files of a listener that has HTTPS. */
#define HTTPS_SETTINGS(section, certificate, key)                                        \
    SETTING(section, tls_certificate, "", RELOADABLE | STAYS_SET | IS_FILE, certificate, \
            read_text, 0, 0),                                                            \
        SETTING(section, tls_key, "", RELOADABLE | STAYS_SET | IS_FILE, key, read_text, 0, 0)

const struct setting settings[] = {
    SETTING(server, listen, "127.0.0.1:8080", 0, listen, read_listen, 0, 0),
    SETTING(server, threads, "0", 0, threads, read_threads, 0, 256),
    SETTING(server, trusted_proxies, "", RELOADABLE | IS_LIST, trusted_proxies, read_proxies, 0, 0),
    HTTPS_SETTINGS(server, tls_certificate, tls_key),
    SETTING(server, drain_seconds, "10", RELOADABLE, drain_seconds, read_number, 0, 3600),
    SETTING(server, drain_idle_ms, "1000", RELOADABLE, drain_idle_ms, read_number, 0, 60000),
    SETTING(server, max_connections, "20000", 0, max_connections, read_number, 1, 1000000),
    SETTING(server, waiting_max, "100000", RELOADABLE, waiting_max, read_number, 0, 1000000),
    SETTING(server, connections_per_address, "25%", RELOADABLE, connections_per_address, read_share,
            0, 1000000),
    SETTING(server, connections_per_customer, "50%", RELOADABLE, connections_per_customer,
            read_share, 0, 1000000),
    SETTING(server, waiting_per_customer, "50%", RELOADABLE, waiting_per_customer, read_share, 0,
            1000000),
    SETTING(server, header_seconds, "10", RELOADABLE, header_seconds, read_number, 1, 3600),
    SETTING(server, body_seconds, "10", RELOADABLE, body_seconds, read_number, 1, 3600),
    SETTING(server, write_seconds, "30", RELOADABLE, write_seconds, read_number, 1, 3600),
    SETTING(server, idle_seconds, "75", RELOADABLE, idle_seconds, read_number, 1, 86400),
    SETTING(operator, listen, "127.0.0.1:9090", 0, operator_listen, read_listen, 0, 0),
    SETTING(operator, hosts, "", 0, operator_hosts, read_text, 0, 0),
    HTTPS_SETTINGS(operator, operator_tls_certificate, operator_tls_key),
    SETTING(operator, trusted_user_header, "", 0, trusted_user_header, read_prefix, 0, 0),
    SETTING(operator, trusted_user_proxies, "", RELOADABLE | IS_LIST, trusted_user_proxies,
            read_proxies, 0, 0),
    SETTING(operator, trusted_user_secret_file, "", RELOADABLE | IS_FILE, trusted_user_secret_file,
            read_text, 0, 0),
    SETTING(provider, listen, "", 0, provider_listen, read_listen_or_off, 0, 0),
    HTTPS_SETTINGS(provider, provider_tls_certificate, provider_tls_key),
    SETTING(odds, store, "embedded:/var/lib/croupier/odds", 0, odds_store, read_odds_store, 0, 0),
    SETTING(odds, timeout_ms, "250", 0, odds_timeout_ms, read_number, 1, 60000),
    SETTING(odds, ask_ms, "100", 0, odds_ask_ms, read_number, 10, 10000),
    SETTING(odds, prefix, "", 0, odds_prefix, read_prefix, 0, 0),
    SETTING(odds, password_file, "", IS_FILE, odds_password_file, read_text, 0, 0),
    SETTING(odds, stale_after_s, "0", RELOADABLE, stale_after_s, read_number, 0, 86400),
    SETTING(odds, differences_mib, "64", RELOADABLE, differences_mib, read_number, 0, 65536),
    SETTING(platform, store, "sqlite:/var/lib/croupier/platform.db", 0, platform_store,
            read_platform_store, 0, 0),
    SETTING(platform, timeout_ms, "1000", 0, platform_timeout_ms, read_number, 1, 60000),
    SETTING(platform, password_file, "", IS_FILE, platform_password_file, read_text, 0, 0),
    SETTING(casino, secrets_key_file, "", IS_FILE, secrets_key_file, read_text, 0, 0),
    SETTING(casino, batch_max, "256", 0, batch_max, read_number, 1, 256),
    SETTING(casino, session_hours, "24", 0, session_hours, read_number, 1, 8760),
    SETTING(casino, launch_timeout_ms, "3000", 0, launch_timeout_ms, read_number, 10, 60000),
    SETTING(casino, launch_ca_file, "", IS_FILE, launch_ca_file, read_text, 0, 0),
    SETTING(account, rate, "300/60", RELOADABLE, account_rate, read_rate, 0, 0),
    SETTING(log, level, "info", RELOADABLE, log_level, read_level, 0, 0),
    SETTING(log, format, "text", RELOADABLE, log_format, read_format, 0, 0),
};
const size_t setting_count = sizeof settings / sizeof settings[0];

const struct setting_description *config_setting(size_t index)
{
    return index < setting_count ? &settings[index].about : NULL;
}

size_t setting_find(struct text section, struct text key)
{
    size_t i = 0;
    while (i < setting_count && !(text_equals(section, text_of(settings[i].about.section)) &&
                                  text_equals(key, text_of(settings[i].about.key))))
        i++;
    return i;
}

bool setting_section_exists(struct text section)
{
    for (size_t i = 0; i < setting_count; i++)
        if (text_equals(section, text_of(settings[i].about.section)))
            return true;
    return false;
}

void config_append_variable(const struct setting_description *setting, struct buffer *out)
{
    size_t start = out->size;
    buffer_append_format(out, "CROUPIER_%s_%s", setting->section, setting->key);
    for (size_t i = start; i < out->size; i++)
        if (out->data[i] >= 'a' && out->data[i] <= 'z')
            out->data[i] = (char)(out->data[i] - 'a' + 'A');
}

void problems_add(struct problems *problems, enum status status, const char *origin,
                  const struct error *error)
{
    if (problems->count++ == 0)
        problems->status = status;
    if (problems->count > PROBLEMS_SHOWN_MAX)
        return;
    if (problems->lines.size > 0)
        buffer_append_char(&problems->lines, '\n');
    buffer_append_shown(&problems->lines,
                        text_of(origin)); /* a variable's name may have anything */
    buffer_append_string(&problems->lines, ": ");
    buffer_append_shown(&problems->lines, text_of(error->text));
}
