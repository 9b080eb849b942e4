/*
 * postgresql:// URIs; see uri.h.
 *
 * libpq parses them: it knows every option, and .pgpass and services besides. But its complaints
 * quote the text at fault. If a password contains an '@' or a '/' that is not written as %40 or
 * %2F, part of it lands in the host, the port or the database. So this file refuses such URIs
 * first, and repeats libpq's complaint only up to its first quotation mark.
 *
 * This file tries the hosts of a list one after the other: libpq, if asked without blocking, gives
 * the first host all the time there is.
 */
#include "stores/platform/postgres/uri.h"

#include <libpq-fe.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define GIVE_UP_NUMERATOR 9U /* the server gives up a little before we do, so that it can say so */
#define LOCKS_NUMERATOR 8U
#define DENOMINATOR 10U
#define IDLE_MS_MIN 1000U

static enum status refuse(struct error *error, const char *what)
{
    return error_set(
        error, STATUS_INVALID,
        "platform store: %s; write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with "
        "'@', ':', '/', '?' and '%%' in a password as %%40, %%3A, %%2F, %%3F and %%25",
        what);
}

/* ---- the written form ------------------------------------------------------------------------ */

static bool has(struct text text, char character)
{
    return text.size > 0 && memchr(text.at, character, text.size) != NULL;
}

/* At most one '@', and that before the first '/': then libpq cuts where the writer meant it to. */
static enum status check_shape(struct text uri, struct error *error)
{
    struct text rest = uri;
    (void)text_cut(&rest, ':');
    if (!text_starts_with(rest, TEXT("//")))
        return refuse(error, "a PostgreSQL URI begins with postgresql://");
    rest.at += 2;
    rest.size -= 2;
    struct text authority = text_cut(&rest, '/');
    struct text path = text_cut(&rest, '?');
    struct text host = authority;
    (void)text_cut(&host, '@');
    if (has(host, '@') || has(path, '@') || has(path, ':') || has(path, '/'))
        return refuse(error, "the URI has a '@', ':' or '/' too many");
    return STATUS_OK;
}

static bool is_port(struct text port)
{
    uint64_t number;
    return port.size == 0 || (text_to_u64(port, 65535, &number) == STATUS_OK && number > 0);
}

/* ---- libpq's reading of it ------------------------------------------------------------------- */

static const char *option(const PQconninfoOption *options, const char *keyword)
{
    for (; options->keyword != NULL; options++)
        if (strcmp(options->keyword, keyword) == 0)
            return options->val;
    return NULL;
}

/* The item at `index` of a list that may be NULL; a single item counts for all. NULL for "". */
static char *copy_item(const char *list, size_t index)
{
    struct text rest = text_of(list);
    struct text item = text_cut(&rest, ',');
    bool several = rest.at != NULL;
    for (size_t i = 0; several && i < index; i++)
        item = text_cut(&rest, ',');
    if (item.size == 0)
        return NULL;
    char *copy = memory_alloc(item.size + 1);
    memcpy(copy, item.at, item.size);
    copy[item.size] = '\0';
    return copy;
}

static size_t count_items(const char *list)
{
    size_t count = 1;
    for (; list != NULL && *list != '\0'; list++)
        count += *list == ',';
    return count;
}

static enum status read_hosts(struct postgres_target *target, const PQconninfoOption *options,
                              struct error *error)
{
    const char *names = option(options, "host");
    const char *addresses = option(options, "hostaddr");
    const char *ports = option(options, "port");
    size_t count = count_items(addresses != NULL ? addresses : names);
    if (count > POSTGRES_HOSTS_MAX)
        return refuse(error, "the URI names too many hosts");
    if ((names != NULL && addresses != NULL && count_items(names) != count) ||
        (count_items(ports) != 1 && count_items(ports) != count))
        return refuse(error, "the URI's lists of hosts, addresses and ports differ in length");
    for (size_t i = 0; i < count; i++) {
        struct postgres_host *host = &target->hosts[target->host_count++];
        host->name = copy_item(names, i);
        host->address = copy_item(addresses, i);
        host->port = copy_item(ports, i);
        if (!is_port(text_of(host->port)))
            return refuse(error, "the URI's port is not a number of 1 to 65535");
        if (has(text_of(host->name), '@'))
            return refuse(error, "the URI's host has a '@' in it");
    }
    return STATUS_OK;
}

static void describe(struct postgres_target *target, const PQconninfoOption *options)
{
    struct buffer location = {0};
    const char *database = option(options, "dbname");
    buffer_append_string(&location, "postgresql://");
    for (size_t i = 0; i < target->host_count; i++) {
        const struct postgres_host *host = &target->hosts[i];
        if (i > 0)
            buffer_append_char(&location, ',');
        buffer_append_string(&location, host->name != NULL      ? host->name
                                        : host->address != NULL ? host->address
                                                                : "");
        if (host->port != NULL)
            buffer_append_format(&location, ":%s", host->port);
    }
    buffer_append_format(&location, "/%s", database != NULL ? database : "");
    target->location = memory_copy_string(buffer_string(&location));
    buffer_free(&location);
}

/* ---- croupier's own options ------------------------------------------------------------------ */

static void add(struct postgres_target *target, const char *keyword, const char *value)
{
    CHECK(target->keyword_count < POSTGRES_KEYWORDS_MAX);
    target->keywords[target->keyword_count] = memory_copy_string(keyword);
    target->values[target->keyword_count] = memory_copy_string(value);
    target->keyword_count++;
}

static void add_number(struct postgres_target *target, const char *keyword, uint32_t value)
{
    struct buffer text = {0};
    buffer_append_u64(&text, value);
    add(target, keyword, buffer_string(&text));
    buffer_free(&text);
}

static uint32_t part(uint32_t timeout_ms, uint32_t numerator)
{
    uint32_t ms = (uint32_t)((uint64_t)timeout_ms * numerator / DENOMINATOR);
    return ms > 0 ? ms : 1;
}

/* Settings of the session, after the URI's own. As start-up parameters they hold from the first
 * statement on, and a pooler that would mix up sessions refuses them. The last three are for
 * look-ups by key: a plan is made once a statement, and uses the index also of a table that was
 * nearly empty then. */
static void add_session(struct postgres_target *target, const char *given, uint32_t timeout_ms)
{
    struct buffer text = {0};
    if (given != NULL)
        buffer_append_format(&text, "%s ", given);
    buffer_append_format(&text,
                         "-c statement_timeout=%u -c lock_timeout=%u"
                         " -c idle_in_transaction_session_timeout=%u"
                         " -c default_transaction_isolation=read\\ committed"
                         " -c client_min_messages=warning"
                         " -c enable_seqscan=off -c jit=off"
                         " -c plan_cache_mode=force_generic_plan",
                         part(timeout_ms, GIVE_UP_NUMERATOR), part(timeout_ms, LOCKS_NUMERATOR),
                         timeout_ms > IDLE_MS_MIN ? timeout_ms : IDLE_MS_MIN);
    add(target, "options", buffer_string(&text));
    buffer_free(&text);
}

/* The URI's options come first, except where croupier could not work with them. */
static void add_options(struct postgres_target *target, const PQconninfoOption *options,
                        uint32_t timeout_ms)
{
    static const char *const ours[] = {"host",    "hostaddr",        "port",
                                       "options", "client_encoding", "target_session_attrs"};
    static const struct {
        const char *keyword;
        const char *value;
    } defaults[] = {
        {"application_name", "croupier"}, {"gssencmode", "disable"},    {"keepalives", "1"},
        {"keepalives_idle", "5"},         {"keepalives_interval", "2"}, {"keepalives_count", "3"}};
    for (const PQconninfoOption *given = options; given->keyword != NULL; given++) {
        bool skip = given->val == NULL;
        for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
            skip = skip || strcmp(given->keyword, ours[i]) == 0;
        if (!skip)
            add(target, given->keyword, given->val);
    }
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        if (option(options, defaults[i].keyword) == NULL)
            add(target, defaults[i].keyword, defaults[i].value);
    if (option(options, "tcp_user_timeout") == NULL)
        add_number(target, "tcp_user_timeout", timeout_ms);
    add(target, "client_encoding", "UTF8");
    add_session(target, option(options, "options"), timeout_ms);
}

enum status postgres_target_create(struct postgres_target **target, const char *uri,
                                   uint32_t timeout_ms, struct error *error)
{
    enum status status = check_shape(text_of(uri), error);
    if (status != STATUS_OK)
        return status;
    char *complaint = NULL;
    PQconninfoOption *options = PQconninfoParse(uri, &complaint);
    if (options == NULL) {
        struct text rest = text_of(complaint);
        struct text safe = text_cut(&rest, '"');
        while (safe.size > 0 && strchr(": \n", safe.at[safe.size - 1]) != NULL)
            safe.size--;
        struct buffer text = {0};
        buffer_append_format(&text, "the URI cannot be read (%.*s)", (int)safe.size, safe.at);
        status = refuse(error, buffer_string(&text));
        buffer_free(&text);
        PQfreemem(complaint);
        return status;
    }
    struct postgres_target *made = memory_alloc_zeroed(1, sizeof *made);
    status = read_hosts(made, options, error);
    if (status == STATUS_OK) {
        describe(made, options);
        add_options(made, options, timeout_ms);
        *target = made;
    } else {
        postgres_target_destroy(&made);
    }
    PQconninfoFree(options);
    return status;
}

void postgres_target_destroy(struct postgres_target **at)
{
    struct postgres_target *target = *at;
    *at = NULL;
    if (target == NULL)
        return;
    for (size_t i = 0; i < target->host_count; i++) {
        memory_free(target->hosts[i].name);
        memory_free(target->hosts[i].address);
        memory_free(target->hosts[i].port);
    }
    for (size_t i = 0; i < target->keyword_count; i++) {
        memory_free(target->keywords[i]);
        memory_free(target->values[i]);
    }
    memory_free(target->location);
    memory_free(target);
}
