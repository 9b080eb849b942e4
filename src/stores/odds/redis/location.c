/*
 * The URI of a Redis or Valkey server. It is read strictly, because another server than the
 * intended one would mean wrong odds.
 *
 *   redis://[user:password@]host[:port][/db], with several hosts: nodes of a cluster
 *   rediss:// with TLS, [?tls_ca=FILE]
 *   unix:PATH[?db=N]
 *   unix://[user:password@]PATH[?db=N], where PATH begins with a slash
 *   redis+sentinel://[user:password@]host[:port],…/service[/db]
 *   rediss+sentinel:// with TLS, of the sentinels and of the master, [?tls_ca=FILE]
 *
 * User and password are percent-decoded. No error text holds any part of them, nor a part that
 * could be one of them misread.
 */
#include "stores/odds/redis/location.h"

#include <openssl/ssl.h>

#include "base/memory.h"

#define PORT_OF_REDIS "6379"
#define PORT_OF_SENTINEL "26379"
#define DATABASE_MAX 999999

static bool invalid(struct error *error, const char *what)
{
    (void)error_invalid(error, "the address of the Redis odds store: %s", what);
    return false;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Percent-decodes into a new string; NULL when the text is malformed or holds a NUL. */
static char *decode(struct text text)
{
    char *decoded = memory_alloc(text.size + 1);
    if (text_decode(text, false, decoded, text.size + 1))
        return decoded;
    memory_free(decoded);
    return NULL;
}

/* Letters, digits and these others. */
static bool is_clean(struct text text, const char *others)
{
    for (size_t i = 0; i < text.size; i++) {
        char c = text.at[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            (c == '\0' || strchr(others, c) == NULL))
            return false;
    }
    return text.size > 0;
}

/* host, host:port, [v6], [v6]:port */
static bool read_host(struct text text, struct text port, struct redis_host *host)
{
    bool v6 = text_starts_with(text, TEXT("["));
    struct text rest = text;
    if (v6)
        (void)text_cut(&rest, '[');
    struct text name = text_cut(&rest, v6 ? ']' : ':');
    if (v6 && (rest.at == NULL || text_cut(&rest, ':').size > 0))
        return false;
    return is_clean(name, v6 ? ":." : ".-_") &&
           redis_host_set(host, name, rest.at != NULL ? rest : port);
}

static bool read_hosts(struct redis_location *location, struct text text, struct error *error)
{
    struct text port =
        text_of(location->way == REDIS_BY_SENTINEL ? PORT_OF_SENTINEL : PORT_OF_REDIS);
    while (text.at != NULL) {
        if (location->host_count == REDIS_HOSTS_MAX)
            return invalid(error, "there are more than 16 hosts");
        if (!read_host(text_cut(&text, ','), port, &location->hosts[location->host_count++]))
            return invalid(error,
                           "a host is a name or an address, as in localhost, 10.0.0.7:6379 or "
                           "[::1]:6379; a '/', '?', '@' or ':' in a password is percent-encoded");
    }
    return true;
}

static bool read_user(struct redis_location *location, struct text text, struct error *error)
{
    if (memchr(text.at, '@', text.size) != NULL)
        return invalid(error, "an '@' in a user or password is written %40");
    struct text password = text;
    struct text user = text_cut(&password, ':');
    if (password.at == NULL || password.size == 0)
        return invalid(error, "before the '@' there has to be user:password, or :password");
    if (memchr(password.at, ':', password.size) != NULL)
        return invalid(error, "a ':' in a user or password is written %3A");
    location->password = decode(password);
    if (user.size > 0)
        location->user = decode(user);
    if (location->password == NULL || (user.size > 0 && location->user == NULL))
        return invalid(error, "a user or password has a '%' without two hexadecimal digits");
    return true;
}

static bool read_database(struct redis_location *location, struct text digits, struct error *error)
{
    uint64_t number = 0;
    if (digits.size > 0 && text_to_u64(digits, DATABASE_MAX, &number) != STATUS_OK)
        return invalid(error, "a database is a number, as in redis://localhost/0");
    location->database = (uint32_t)number;
    return true;
}

static bool read_options(struct redis_location *location, struct text options, struct error *error)
{
    while (options.at != NULL) {
        struct text value = text_cut(&options, '&');
        struct text name = text_cut(&value, '=');
        if (location->way == REDIS_BY_UNIX && text_equals(name, TEXT("db")) && value.size > 0) {
            if (!read_database(location, value, error))
                return false;
        } else if (location->tls && text_equals(name, TEXT("tls_ca")) && value.size > 0 &&
                   location->tls_ca == NULL) {
            location->tls_ca = decode(value);
            if (location->tls_ca == NULL)
                return invalid(error, "tls_ca names no file");
        } else {
            return invalid(error,
                           "after the '?' only db=N (of unix:) and tls_ca=FILE (of rediss:// "
                           "and rediss+sentinel://) are known");
        }
    }
    return true;
}

/* ---- the kinds ------------------------------------------------------------------------------- */

/* Cuts the user, which ends at the last '@', off the start of `text`. */
static bool cut_user(struct redis_location *location, struct text *text, struct error *error)
{
    const char *at = text->size == 0 ? NULL : memrchr(text->at, '@', text->size);
    if (at == NULL)
        return true;
    struct text user = {text->at, (size_t)(at - text->at)};
    *text = (struct text){at + 1, text->size - user.size - 1};
    return read_user(location, user, error);
}

static bool read_unix(struct redis_location *location, struct text rest, struct error *error)
{
    if (text_starts_with(rest, TEXT("//"))) {
        struct text path = {rest.at + 2, rest.size - 2};
        const char *slash = path.size == 0 ? NULL : memchr(path.at, '/', path.size);
        struct text user = {path.at, slash == NULL ? path.size : (size_t)(slash - path.at)};
        rest = (struct text){path.at + user.size, path.size - user.size};
        if (user.size > 0) {
            if (!cut_user(location, &user, error))
                return false;
            if (user.size > 0 || location->password == NULL)
                return invalid(error,
                               "unix:// is followed by user:password@ or nothing, and a path "
                               "that begins with a slash");
        }
    }
    /* A socket's path has room for 107 bytes. */
    if (rest.size == 0 || rest.size > 107 || memchr(rest.at, '\0', rest.size) != NULL ||
        !text_is_plain(rest))
        return invalid(error,
                       "the path of a socket has 1 to 107 bytes, as in unix:/run/redis.sock");
    location->path = memory_format("%.*s", (int)rest.size, rest.at);
    return true;
}

static bool read_net(struct redis_location *location, struct text rest, struct error *error)
{
    struct text path = rest;
    struct text authority = text_cut(&path, '/');
    if (!cut_user(location, &authority, error) || !read_hosts(location, authority, error))
        return false;
    if (location->way == REDIS_BY_SENTINEL) {
        struct text service = text_cut(&path, '/');
        if (!is_clean(service, ".-_") || service.size >= REDIS_HOST_SIZE)
            return invalid(error, "after the sentinels comes the name of the service, as in "
                                  "redis+sentinel://10.0.0.7,10.0.0.8/croupier/0");
        location->service = memory_format("%.*s", (int)service.size, service.at);
    }
    return read_database(location, path, error);
}

static void show(struct redis_location *location, const char *scheme)
{
    bool local = location->way == REDIS_BY_UNIX;
    buffer_append_format(&location->shown, "%s%s", scheme, local ? location->path : "");
    for (size_t i = 0; i < location->host_count; i++) {
        const struct redis_host *host = &location->hosts[i];
        bool v6 = strchr(host->name, ':') != NULL;
        buffer_append_format(&location->shown, "%s%s%s%s:%u", i == 0 ? "" : ",", v6 ? "[" : "",
                             host->name, v6 ? "]" : "", host->port);
    }
    if (location->service != NULL)
        buffer_append_format(&location->shown, "/%s", location->service);
    if (!local || location->database != 0)
        buffer_append_format(&location->shown, "%s%u", local ? "?db=" : "/", location->database);
}

static bool parse(struct redis_location *location, const char *uri, struct error *error)
{
    struct text options = text_of(uri);
    struct text rest = text_cut(&options, '?');
    static const struct {
        struct text scheme;
        enum redis_way way;
        bool tls;
    } schemes[] = {{TEXT_INIT("redis://"), REDIS_BY_TCP, false},
                   {TEXT_INIT("rediss://"), REDIS_BY_TCP, true},
                   {TEXT_INIT("redis+sentinel://"), REDIS_BY_SENTINEL, false},
                   {TEXT_INIT("rediss+sentinel://"), REDIS_BY_SENTINEL, true},
                   {TEXT_INIT("unix:"), REDIS_BY_UNIX, false}};
    size_t i = 0;
    while (i < 5 && !text_starts_with(rest, schemes[i].scheme))
        i++;
    if (i == 5)
        return invalid(error, "it is of no known kind");
    location->way = schemes[i].way;
    location->tls = schemes[i].tls;
    rest = (struct text){rest.at + schemes[i].scheme.size, rest.size - schemes[i].scheme.size};
    if (!(location->way == REDIS_BY_UNIX ? read_unix(location, rest, error)
                                         : read_net(location, rest, error)) ||
        !read_options(location, options, error))
        return false;
    show(location, schemes[i].scheme.at);
    return true;
}

enum status redis_location_parse(struct redis_location **location, const char *uri,
                                 struct error *error)
{
    struct redis_location *parsed = memory_alloc_zeroed(1, sizeof *parsed);
    if (parse(parsed, uri, error)) {
        *location = parsed;
        return STATUS_OK;
    }
    redis_location_destroy(&parsed);
    return STATUS_INVALID;
}

static void free_secret(char *secret)
{
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
    memory_free(secret);
}

bool redis_host_set(struct redis_host *host, struct text name, struct text port)
{
    uint64_t number = 0;
    if (name.size == 0 || name.size >= REDIS_HOST_SIZE ||
        memchr(name.at, '\0', name.size) != NULL ||
        text_to_u64(port, UINT16_MAX, &number) != STATUS_OK || number == 0)
        return false;
    memset(host, 0, sizeof *host);
    memcpy(host->name, name.at, name.size);
    host->port = (uint16_t)number;
    return true;
}

void redis_location_destroy(struct redis_location **location)
{
    struct redis_location *mine = memory_take(location);
    if (mine == NULL)
        return;
    memory_free(mine->path);
    memory_free(mine->service);
    memory_free(mine->tls_ca);
    free_secret(mine->user);
    free_secret(mine->password);
    buffer_free(&mine->shown);
    SSL_CTX_free(mine->trust);
    memory_free(mine);
}
