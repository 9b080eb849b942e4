/* The demo's directory and sample customers; see demo.h. */
#include "demo/demo.h"

#include <sys/file.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "operator/blocks.h"
#include "operator/customers.h"
#include "operator/keys.h"
#include "operator/tables.h"
#include "sealing/provider_secret.h"
#include "stores/configured.h"
#include "stores/platform_players.h"

/* ---- the directory --------------------------------------------------------------------------- */

static enum status take_lock(const char *directory, int *lock, struct error *error)
{
    char *path = memory_format("%s/demo.lock", directory);
    *lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    memory_free(path);
    if (*lock >= 0 && flock(*lock, LOCK_EX | LOCK_NB) == 0)
        return STATUS_OK;
    if (*lock >= 0 && errno == EWOULDBLOCK)
        return error_set(error, STATUS_EXISTS,
                         "another croupier demo is using %s; stop it, or give this one a "
                         "directory of its own: --dir",
                         directory);
    return error_unavailable(error, "cannot write into %s: %s", directory, strerror(errno));
}

enum status demo_take_directory(const char *directory, char **path, int *lock, struct error *error)
{
    enum status status = file_make_directory(directory, 0700, error);
    if (status != STATUS_OK)
        return status;
    char *resolved = realpath(directory, NULL);
    if (resolved == NULL)
        return error_unavailable(error, "cannot use the directory %s: %s", directory,
                                 strerror(errno));
    *path = memory_copy_string(resolved);
    free(resolved);
    return take_lock(*path, lock, error);
}

/* The user's part of the file begins with this line. */
#define WRITTEN                                                                                \
    "# Written by `croupier demo` at its first start, which reads it at each start; yours to " \
    "change.\n"
#define CONFIG_MAX 65536

enum status demo_write_addresses(const char *file, const char *addresses, struct error *error)
{
    struct buffer text = {0}, whole = {0}, draft = {0};
    int reason = file_read(file, CONFIG_MAX, &text);
    const char *own =
        reason == 0 && text.size <= CONFIG_MAX ? strstr(buffer_string(&text), WRITTEN) : NULL;
    enum status status = STATUS_OK;
    if (own != NULL && strstr(own, "\nlisten") != NULL)
        addresses = "";
    if (own != NULL)
        buffer_append_format(&whole, "%s%s", addresses, own);
    if (own != NULL && !text_equals(buffer_text(&whole), buffer_text(&text))) {
        buffer_append_format(&draft, "%s.%ld", file, (long)getpid());
        status = file_make(buffer_string(&draft), 0644, buffer_text(&whole), error);
        if (status == STATUS_OK && rename(draft.data, file) != 0)
            status = error_unavailable(error, "cannot write %s: %s", file, strerror(errno));
    }
    buffer_free(&text);
    buffer_free(&whole);
    buffer_free(&draft);
    return status;
}

enum status demo_write_config(const char *directory, char **file, struct error *error)
{
    struct buffer text = {0};
    buffer_append_format(&text,
                         WRITTEN
                         "# Other commands can use it: croupier customer list -c THIS_FILE\n"
                         "[server]\nmax_connections = 1000\n\n"
                         "[odds]\nstore = embedded:%s/odds\n\n"
                         "[platform]\nstore = sqlite:%s/platform.db\n\n"
                         "[log]\nlevel = warning\n",
                         directory, directory);
    *file = memory_format("%s/croupier.conf", directory);
    enum status status = file_make(*file, 0644, buffer_text(&text), error);
    buffer_free(&text);
    return status == STATUS_EXISTS ? demo_write_addresses(*file, "", error) : status;
}

enum status demo_write_private(const char *directory, const char *name, struct text text,
                               struct error *error)
{
    char *path = memory_format("%s/%s", directory, name);
    (void)unlink(path);
    enum status status = file_make(path, 0600, text, error);
    memory_free(path);
    return status;
}

/* ---- customers ------------------------------------------------------------------------------- */

/* Finds the customer by name, or adds it. An existing customer keeps an operator's changes. */
static enum status ensure_customer(struct platform_store *store, const struct setting *settings,
                                   int64_t now_ms, char id[CUSTOMER_ID_SIZE], struct error *error)
{
    bool alone;
    enum status status = customers_find_name(store, settings[0].text, id, &alone, error);
    if (status == STATUS_OK && id[0] == '\0') {
        struct customer_view customer;
        const struct resource_edit edit = {.settings = settings};
        status = resource_add(&customer_resource, store, &edit, now_ms, &customer, error);
        if (status == STATUS_OK)
            memcpy(id, customer.record.id, CUSTOMER_ID_SIZE);
    }
    return status;
}

/* ---- keys ------------------------------------------------------------------------------------ */

#define OLD_KEYS_MAX 16 /* there is one, unless an operator gave other keys our label */

struct old_keys {
    char ids[OLD_KEYS_MAX][KEY_ID_SIZE];
    size_t count;
};

static bool match_demo_key(void *context, const void *visited)
{
    const struct key_record *record = visited;
    struct old_keys *old = context;
    if (record->revoked_ms == 0 && strcmp(record->label, DEMO_KEY_LABEL) == 0)
        memcpy(old->ids[old->count++], record->id, sizeof record->id);
    return old->count < OLD_KEYS_MAX;
}

/* Keeps a key that works; otherwise issues a new one. */
static enum status ensure_key(struct platform_store *store, const char *customer_id, int64_t now_ms,
                              char key[KEY_SIZE], struct error *error)
{
    struct key_record record;
    struct old_keys old = {.count = 0};
    if (key[0] != '\0' && keys_find(store, key, now_ms, &record, error) == STATUS_OK &&
        strcmp(record.customer_id, customer_id) == 0 && key_is_live(&record, now_ms))
        return STATUS_OK;
    enum status status = platform_list(store, &key_table, customer_id, match_demo_key, &old, error);
    for (size_t i = 0; status == STATUS_OK && i < old.count; i++)
        status = platform_key_revoke(store, old.ids[i], now_ms, error);
    if (status == STATUS_OK)
        status =
            resource_make(&key_resource, EDIT({"customer", customer_id}, {"label", DEMO_KEY_LABEL}),
                          now_ms, &record, error);
    return status == STATUS_OK ? keys_issue(store, &record, key, error) : status;
}

#define DEMO_KEYS_MAX (4 * KEY_SIZE)

/* Reads the keys of the last start, one a line; "" for a malformed one. */
static void read_keys(const char *directory, struct demo_keys *keys)
{
    char *path = memory_format("%s/" DEMO_KEYS_FILE, directory);
    char *const each[] = {keys->all_sports, keys->limited, keys->disabled};
    struct buffer text = {0};
    buffer_reserve(&text, DEMO_KEYS_MAX + 1); /* growing would leave a copy behind */
    if (file_read(path, DEMO_KEYS_MAX, &text) != 0)
        buffer_clear(&text);
    struct text rest = buffer_text(&text);
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) {
        struct text key = text_cut(&rest, '\n');
        if (key_is_well_formed(key))
            memcpy(each[i], key.at, KEY_SIZE - 1);
    }
    buffer_wipe(&text);
    memory_free(path);
}

static enum status write_keys(const char *directory, const struct demo_keys *keys,
                              struct error *error)
{
    char text[3 * KEY_SIZE + 1];
    (void)snprintf(text, sizeof text, "%s\n%s\n%s\n", keys->all_sports, keys->limited,
                   keys->disabled);
    enum status status = demo_write_private(directory, DEMO_KEYS_FILE, text_of(text), error);
    explicit_bzero(text, sizeof text);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status link_operator(struct platform_store *store, int64_t now_ms,
                                 struct demo_keys *keys, struct error *error)
{
    struct operator_record record;
    struct credential link = {.secret = ""};
    enum status status =
        resource_add(&operator_resource, store, EDIT({"name", DEMO_OPERATOR}, {"role", "owner"}),
                     now_ms, &record, error);
    if (status == STATUS_OK || status == STATUS_EXISTS)
        status = credential_make_link(store, DEMO_OPERATOR, now_ms, &link, error);
    memcpy(keys->link, link.secret, sizeof keys->link);
    explicit_bzero(&link, sizeof link);
    return status == STATUS_CONFLICT ? STATUS_OK : status; /* an operator has disabled it */
}

static enum status write_secret(struct platform_store *store, const char *directory,
                                const struct demo_casino *casino, struct error *error)
{
    struct provider_record record;
    struct buffer secret = {0};
    enum status status = platform_get(store, &provider_table, DEMO_PROVIDER, &record, error);
    buffer_reserve(&secret, SECRETS_PLAIN_MAX);
    if (status == STATUS_OK &&
        provider_secret_unseal(casino->secrets, &record, 0, &secret) == STATUS_OK)
        status = demo_write_private(directory, DEMO_SECRET_FILE, buffer_text(&secret), error);
    buffer_wipe(&secret);
    return status;
}

static enum status prepare_casino(struct platform_store *store, const char *directory,
                                  const char *secrets_key_file, int64_t now_ms,
                                  struct demo_casino *casino, struct error *error)
{
    bool made;
    enum status status = secrets_make_key(secrets_key_file, &made, error);
    if (status == STATUS_OK)
        status = secrets_open_key(&casino->secrets, secrets_key_file, error);
    if (status == STATUS_OK)
        status = demo_casino_prepare(casino, store, now_ms, error);
    return status == STATUS_OK ? write_secret(store, directory, casino, error) : status;
}

static enum status prepare_customers(struct platform_store *store, int64_t now_ms,
                                     struct demo_keys *keys, struct error *error)
{
    char rate[32];
    (void)snprintf(rate, sizeof rate, "%u/%u", DEMO_LIMITED_REQUESTS, DEMO_LIMITED_SECONDS);
    const struct setting local = {"cidrs", "127.0.0.0/8,::1/128"};
    const struct setting samples[][6] = {
        {{"name", DEMO_CUSTOMER}, local, {"rate", "6000/60"}, {"casino", "yes"}},
        {{"name", DEMO_LIMITED_CUSTOMER}, local, {"rate", rate}, {"sports", "cricket,football"}},
        {{"name", DEMO_DISABLED_CUSTOMER}, local, {"enabled", "no"}},
    };
    char *const key_of[] = {keys->all_sports, keys->limited, keys->disabled};
    struct player_record player;
    struct block_view block;
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < sizeof samples / sizeof samples[0]; i++) {
        char id[CUSTOMER_ID_SIZE];
        status = ensure_customer(store, samples[i], now_ms, id, error);
        if (status == STATUS_OK)
            status = ensure_key(store, id, now_ms, key_of[i], error);
        if (status == STATUS_OK && i == 0)
            status = platform_player_open(store, id, "blocked-player", "EUR", 2, &player, error);
    }
    if (status == STATUS_OK && player.created_ms >= now_ms) /* not of an earlier start */
        status = resource_change(&block_resource, store, player.id,
                                 EDIT({"blocked", "yes"}, {"reason", "asked for a break"}), &block,
                                 error);
    if (status == STATUS_OK)
        memcpy(keys->blocked_player, player.id, sizeof player.id);
    return status;
}

enum status demo_prepare_platform(const char *directory, const struct config *config,
                                  struct demo_keys *keys, struct demo_casino *casino,
                                  struct error *error)
{
    struct platform_store *store = NULL;
    struct platform_store_options options = platform_store_configured(config);
    struct legacy_record record;
    uint32_t before, after;
    options.create = true;
    int64_t now_ms = clock_wall_ms();
    enum status status = platform_store_open(&store, &options, error);
    if (status != STATUS_OK)
        return status;
    platform_store_act_as(store, "croupier", "demo");
    read_keys(directory, keys);
    status = platform_store_migrate(store, &before, &after, error);
    if (status == STATUS_OK)
        status = prepare_customers(store, now_ms, keys, error);
    if (status == STATUS_OK)
        status = resource_add(
            &address_resource, store,
            EDIT({"address", DEMO_LEGACY_ADDRESS}, {"sports", "tennis"}, {"rate", "60/60"}), now_ms,
            &record, error);
    if (status == STATUS_OK || status == STATUS_EXISTS)
        status = link_operator(store, now_ms, keys, error);
    if (status == STATUS_OK)
        status = write_keys(directory, keys, error);
    if (status == STATUS_OK)
        status = prepare_casino(store, directory, config->secrets_key_file, now_ms, casino, error);
    platform_store_close(&store);
    return status;
}
