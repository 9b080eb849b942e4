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

#include "base/memory.h"

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
    text_skip(&rest, 2);
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

static PQconninfoOption *find(PQconninfoOption *options, const char *keyword)
{
    while (options->keyword != NULL && strcmp(options->keyword, keyword) != 0)
        options++;
    return options->keyword != NULL ? options : NULL;
}

const char *postgres_option(const struct postgres_target *target, const char *keyword)
{
    const PQconninfoOption *option = find(target->options, keyword);
    return option != NULL ? option->val : NULL;
}

/* The item at `index` of a list that may be NULL; a single item counts for all. */
static struct text item_of(const char *list, size_t index)
{
    struct text rest = text_of(list);
    struct text item = text_cut(&rest, ',');
    bool several = rest.at != NULL;
    for (size_t i = 0; several && i < index; i++)
        item = text_cut(&rest, ',');
    return item;
}

struct text postgres_host_option(const struct postgres_target *target, const char *keyword,
                                 size_t host)
{
    return item_of(postgres_option(target, keyword), host);
}

static size_t count_items(const char *list)
{
    size_t count = 1;
    for (; list != NULL && *list != '\0'; list++)
        count += *list == ',';
    return count;
}

static enum status check_hosts(struct postgres_target *target, struct error *error)
{
    const char *names = postgres_option(target, "host");
    const char *addresses = postgres_option(target, "hostaddr");
    const char *ports = postgres_option(target, "port");
    size_t count = count_items(addresses != NULL ? addresses : names);
    if (count > POSTGRES_HOSTS_MAX)
        return refuse(error, "the URI names too many hosts");
    if ((names != NULL && addresses != NULL && count_items(names) != count) ||
        (count_items(ports) != 1 && count_items(ports) != count))
        return refuse(error, "the URI's lists of hosts, addresses and ports differ in length");
    for (size_t i = 0; i < count; i++) {
        if (!is_port(item_of(ports, i)))
            return refuse(error, "the URI's port is not a number of 1 to 65535");
        if (has(item_of(names, i), '@'))
            return refuse(error, "the URI's host has a '@' in it");
    }
    target->host_count = count;
    return STATUS_OK;
}

static void describe(struct postgres_target *target)
{
    struct buffer location = {0};
    const char *database = postgres_option(target, "dbname");
    buffer_append_string(&location, "postgresql://");
    for (size_t i = 0; i < target->host_count; i++) {
        const struct text name = postgres_host_option(target, "host", i);
        const struct text port = postgres_host_option(target, "port", i);
        const struct text shown =
            name.size > 0 ? name : postgres_host_option(target, "hostaddr", i);
        (void)snprintf(target->hosts[i], POSTGRES_HOST_SIZE, "%.*s%s%.*s", (int)shown.size,
                       shown.at, port.size > 0 ? ":" : "", (int)port.size, port.at);
        buffer_append_format(&location, "%s%s", i > 0 ? "," : "", target->hosts[i]);
    }
    buffer_append_format(&location, "/%s", database != NULL ? database : "");
    target->location = memory_copy_string(buffer_string(&location));
    buffer_free(&location);
}

/* ---- croupier's own options ------------------------------------------------------------------ */

/* The text is libpq's to free. A libpq that does not know the option goes without. */
static void set(struct postgres_target *target, const char *keyword, const char *value)
{
    PQconninfoOption *option = find(target->options, keyword);
    if (option == NULL)
        return;
    free(option->val);
    option->val = strdup(value);
    CHECK(option->val != NULL);
}

static uint32_t part(uint32_t timeout_ms, uint32_t numerator)
{
    uint32_t ms = (uint32_t)((uint64_t)timeout_ms * numerator / DENOMINATOR);
    return ms > 0 ? ms : 1;
}

/* Settings of the session, after the URI's own. As start-up parameters they hold from the first
 * statement on, and most poolers refuse them. Those before the last are for look-ups by key: a plan
 * is made once a statement, and uses the index also of a table that was nearly empty then, or of
 * which PostgreSQL has no statistics (after pg_upgrade). The last is for the entries of a time,
 * which are sorted in parts. */
static void set_session(struct postgres_target *target, uint32_t timeout_ms)
{
    struct buffer text = {0};
    const char *given = postgres_option(target, "options");
    if (given != NULL)
        buffer_append_format(&text, "%s ", given);
    buffer_append_format(&text,
                         "-c statement_timeout=%u -c lock_timeout=%u"
                         " -c idle_in_transaction_session_timeout=%u"
                         " -c default_transaction_isolation=read\\ committed"
                         " -c client_min_messages=warning"
                         " -c enable_seqscan=off -c enable_bitmapscan=off"
                         " -c enable_mergejoin=off -c jit=off"
                         " -c plan_cache_mode=force_generic_plan -c work_mem=16MB",
                         part(timeout_ms, GIVE_UP_NUMERATOR), part(timeout_ms, LOCKS_NUMERATOR),
                         timeout_ms > IDLE_MS_MIN ? timeout_ms : IDLE_MS_MIN);
    set(target, "options", buffer_string(&text));
    buffer_free(&text);
}

/* The URI's options come first, except where croupier could not work with them. */
static void set_options(struct postgres_target *target, uint32_t timeout_ms)
{
    char timeout[16];
    const struct {
        const char *keyword;
        const char *value;
    } defaults[] = {
        {"application_name", "croupier"}, {"gssencmode", "disable"},    {"keepalives", "1"},
        {"keepalives_idle", "5"},         {"keepalives_interval", "2"}, {"keepalives_count", "3"},
        {"tcp_user_timeout", timeout}};
    (void)snprintf(timeout, sizeof timeout, "%u", timeout_ms);
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        if (postgres_option(target, defaults[i].keyword) == NULL)
            set(target, defaults[i].keyword, defaults[i].value);
    set(target, "client_encoding", "UTF8");
    set(target, "target_session_attrs", "any"); /* the greeting looks for itself */
    set_session(target, timeout_ms);
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
        char *text = memory_format("the URI cannot be read (%.*s)", (int)safe.size, safe.at);
        status = refuse(error, text);
        memory_free(text);
        PQfreemem(complaint);
        return status;
    }
    struct postgres_target *made = memory_alloc_zeroed(1, sizeof *made);
    made->options = options;
    status = check_hosts(made, error);
    if (status != STATUS_OK) {
        postgres_target_destroy(&made);
        return status;
    }
    describe(made);
    set_options(made, timeout_ms);
    *target = made;
    return STATUS_OK;
}

void postgres_target_destroy(struct postgres_target **at)
{
    struct postgres_target *target = memory_take(at);
    if (target == NULL)
        return;
    PQconninfoFree(target->options);
    memory_free(target->location);
    memory_free(target);
}
