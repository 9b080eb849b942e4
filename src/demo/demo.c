/* The demo's directory and sample customers; see demo.h. */
#include "demo/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "base/clock.h"
#include "base/memory.h"
#include "operator/addresses.h"
#include "operator/customers.h"
#include "operator/keys.h"
#include "operator/operators.h"
#include "stores/configured.h"

/* ---- the directory --------------------------------------------------------------------------- */

static char *join(const char *directory, const char *name)
{
    struct buffer path = {0};
    buffer_append_format(&path, "%s/%s", directory, name);
    char *copy = memory_copy_string(buffer_string(&path));
    buffer_free(&path);
    return copy;
}

static enum status cannot(struct error *error, const char *what, const char *path)
{
    return error_set(error, STATUS_UNAVAILABLE, "cannot %s %s: %s", what, path, strerror(errno));
}

static enum status take_lock(const char *directory, int *lock, struct error *error)
{
    char *file = join(directory, "demo.lock");
    enum status status = STATUS_OK;
    int descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0)
        status = cannot(error, "write into", file);
    else if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        *lock = descriptor;
    else if (errno == EWOULDBLOCK)
        status = error_set(error, STATUS_EXISTS,
                           "another croupier demo is using %s; stop it, or give this one a "
                           "directory of its own: --dir",
                           directory);
    else
        status = cannot(error, "lock", file);
    if (status != STATUS_OK && descriptor >= 0)
        (void)close(descriptor);
    memory_free(file);
    return status;
}

enum status demo_take_directory(const char *directory, char **path, int *lock, struct error *error)
{
    if (mkdir(directory, 0700) != 0 && errno != EEXIST)
        return cannot(error, "make the directory", directory);
    char *resolved = realpath(directory, NULL);
    if (resolved == NULL)
        return cannot(error, "use the directory", directory);
    enum status status = take_lock(resolved, lock, error);
    if (status == STATUS_OK)
        *path = memory_copy_string(resolved);
    free(resolved);
    return status;
}

static enum status write_config(FILE *out, const char *directory, const char *path,
                                struct error *error)
{
    (void)fprintf(out,
                  "# Written by `croupier demo` at its first start, which reads it at each start; "
                  "yours to change.\n"
                  "# Other commands can use it: croupier customer list -c THIS_FILE\n"
                  "[server]\nmax_connections = 1000\n\n"
                  "[odds]\nstore = embedded:%s/odds\n\n"
                  "[platform]\nstore = sqlite:%s/platform.db\n\n"
                  "[log]\nlevel = warning\n",
                  directory, directory);
    bool failed = ferror(out) != 0;
    if (fclose(out) == 0 && !failed)
        return STATUS_OK;
    enum status status = cannot(error, "write", path);
    (void)unlink(path);
    return status;
}

enum status demo_write_config(const char *directory, char **file, struct error *error)
{
    char *path = join(directory, "croupier.conf");
    FILE *out = fopen(path, "wxe");
    enum status status = out != NULL       ? write_config(out, directory, path, error)
                         : errno == EEXIST ? STATUS_OK
                                           : cannot(error, "write", path);
    if (status == STATUS_OK)
        *file = path;
    else
        memory_free(path);
    return status;
}

enum status demo_write_private(const char *directory, const char *name, struct text text,
                               struct error *error)
{
    char *path = join(directory, name);
    enum status status = STATUS_OK;
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (descriptor < 0 || fchmod(descriptor, 0600) != 0 ||
        write(descriptor, text.at, text.size) != (ssize_t)text.size)
        status = cannot(error, "write", path);
    if (descriptor >= 0)
        (void)close(descriptor);
    memory_free(path);
    return status;
}

/* ---- customers ------------------------------------------------------------------------------- */

struct name_search {
    const char *name;
    char id[CUSTOMER_ID_SIZE]; /* "" while not found */
};

static bool match_name(void *context, const void *visited)
{
    const struct customer_record *record = visited;
    struct name_search *search = context;
    if (strcmp(record->name, search->name) != 0)
        return true;
    memcpy(search->id, record->id, sizeof search->id);
    return false;
}

/* Finds the customer by name, or adds it. One that is there stays as an operator may have
 * changed it. */
static enum status ensure_customer(struct platform_store *store, const struct setting *settings,
                                   int64_t now_ms, char id[CUSTOMER_ID_SIZE], struct error *error)
{
    struct name_search search = {.name = settings[0].text};
    enum status status = platform_list(store, &customer_table, NULL, match_name, &search, error);
    if (status != STATUS_OK)
        return status;
    if (search.id[0] == '\0') {
        struct customer_view customer;
        const struct resource_edit edit = {.settings = settings};
        status = resource_add(&customer_resource, store, &edit, now_ms, &customer, error);
        if (status != STATUS_OK)
            return status;
        memcpy(search.id, customer.record.id, sizeof search.id);
        resource_release(&customer_resource, &customer);
    }
    memcpy(id, search.id, sizeof search.id);
    return STATUS_OK;
}

/* ---- keys ------------------------------------------------------------------------------------ */

#define OLD_KEYS_MAX 16

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

static enum status renew_key(struct platform_store *store, const char *customer_id, int64_t now_ms,
                             char key[KEY_SIZE], struct error *error)
{
    struct old_keys old;
    do { /* there is one, unless an operator labelled keys like ours */
        old.count = 0;
        enum status status =
            platform_list(store, &key_table, customer_id, match_demo_key, &old, error);
        for (size_t i = 0; status == STATUS_OK && i < old.count; i++)
            status = platform_key_revoke(store, old.ids[i], now_ms, error);
        if (status != STATUS_OK)
            return status;
    } while (old.count == OLD_KEYS_MAX);
    struct key_view view;
    enum status status =
        resource_make(&key_resource, EDIT({"customer", customer_id}, {"label", DEMO_KEY_LABEL}),
                      now_ms, &view, error);
    return status == STATUS_OK ? keys_issue(store, &view.record, key, error) : status;
}

/* The next key of the file, "" when there is none. */
static void read_key(FILE *file, char key[KEY_SIZE])
{
    char line[KEY_SIZE + 1] = "";
    key[0] = '\0';
    if (file != NULL && fgets(line, sizeof line, file) != NULL &&
        key_is_well_formed((struct text){line, strcspn(line, "\n")})) {
        memcpy(key, line, KEY_LENGTH);
        key[KEY_LENGTH] = '\0';
    }
    OPENSSL_cleanse(line, sizeof line);
}

/* Reads the keys of the start before. */
static void read_keys(const char *directory, struct demo_keys *keys)
{
    char *path = join(directory, DEMO_KEYS_FILE);
    FILE *file = fopen(path, "re");
    if (file != NULL)
        (void)setvbuf(file, NULL, _IONBF, 0); /* no copy of them stays in the memory of stdio */
    read_key(file, keys->all_sports);
    read_key(file, keys->limited);
    if (file != NULL)
        (void)fclose(file);
    memory_free(path);
}

static enum status write_keys(const char *directory, const struct demo_keys *keys,
                              struct error *error)
{
    char text[2 * KEY_SIZE + 1];
    (void)snprintf(text, sizeof text, "%s\n%s\n", keys->all_sports, keys->limited);
    enum status status =
        demo_write_private(directory, DEMO_KEYS_FILE, (struct text){text, 2 * KEY_SIZE}, error);
    OPENSSL_cleanse(text, sizeof text);
    return status;
}

/* Keeps a key that works, and issues another in place of one that does not. */
static enum status ensure_key(struct platform_store *store, const char *customer_id, int64_t now_ms,
                              char key[KEY_SIZE], struct error *error)
{
    struct key_record record;
    if (key[0] != '\0' && keys_find(store, key, now_ms, &record, error) == STATUS_OK &&
        strcmp(record.customer_id, customer_id) == 0 && key_is_live(&record, now_ms))
        return STATUS_OK;
    return renew_key(store, customer_id, now_ms, key, error);
}

/* ---- the operator ---------------------------------------------------------------------------- */

static enum status link_operator(struct platform_store *store, int64_t now_ms,
                                 char secret[CREDENTIAL_SIZE], struct error *error)
{
    struct operator_record record;
    struct credential link;
    enum status status =
        resource_add(&operator_resource, store, EDIT({"name", DEMO_OPERATOR}, {"role", "owner"}),
                     now_ms, &record, error);
    if (status == STATUS_OK || status == STATUS_EXISTS)
        status = credential_make_link(store, DEMO_OPERATOR, now_ms, &link, error);
    if (status == STATUS_CONFLICT) { /* an operator has disabled it, and it stays so */
        secret[0] = '\0';
        return STATUS_OK;
    }
    if (status == STATUS_OK) {
        memcpy(secret, link.secret, CREDENTIAL_SIZE);
        OPENSSL_cleanse(&link, sizeof link);
    }
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The casino; a customer of a demo from before there was one gets it with the games. */
static enum status prepare_casino(struct platform_store *store, const char *secrets_key_file,
                                  int64_t now_ms, struct demo_casino *casino, struct error *error)
{
    struct secrets *secrets = NULL;
    struct name_search search = {.name = DEMO_CUSTOMER};
    bool made;
    bool added = false;
    enum status status = secrets_make_key(secrets_key_file, &made, error);
    if (status == STATUS_OK)
        status = secrets_open_key(&secrets, secrets_key_file, error);
    if (status == STATUS_OK)
        status = demo_casino_prepare(casino, store, secrets, now_ms, &added, error);
    if (status == STATUS_OK && added)
        status = platform_list(store, &customer_table, NULL, match_name, &search, error);
    if (status == STATUS_OK && search.id[0] != '\0') {
        struct customer_view customer = {0};
        status = resource_change(&customer_resource, store, search.id, EDIT({"casino", "yes"}),
                                 &customer, error);
        resource_release(&customer_resource, &customer);
    }
    return status;
}

static enum status prepare(struct platform_store *store, int64_t now_ms, struct demo_keys *keys,
                           struct error *error)
{
    char rate[32];
    (void)snprintf(rate, sizeof rate, "%u/%u", DEMO_LIMITED_REQUESTS, DEMO_LIMITED_SECONDS);
    const struct setting local = {"cidrs", "127.0.0.0/8,::1/128"};
    const struct setting samples[][6] = {
        {{"name", DEMO_CUSTOMER}, local, {"rate", "6000/60"}, {"casino", "yes"}},
        {{"name", DEMO_LIMITED_CUSTOMER}, local, {"rate", rate}, {"sports", "cricket,football"}},
        {{"name", DEMO_DISABLED_CUSTOMER}, local, {"enabled", "no"}},
    };
    char *const key_of[] = {keys->all_sports, keys->limited}; /* none of the disabled one */
    uint32_t before, after;
    enum status status = platform_store_migrate(store, &before, &after, error);
    for (size_t i = 0; status == STATUS_OK && i < sizeof samples / sizeof samples[0]; i++) {
        char id[CUSTOMER_ID_SIZE];
        status = ensure_customer(store, samples[i], now_ms, id, error);
        if (status == STATUS_OK && i < sizeof key_of / sizeof key_of[0])
            status = ensure_key(store, id, now_ms, key_of[i], error);
    }
    if (status != STATUS_OK)
        return status;
    struct legacy_record record;
    status = resource_add(
        &address_resource, store,
        EDIT({"address", DEMO_LEGACY_ADDRESS}, {"sports", "tennis"}, {"rate", "60/60"}), now_ms,
        &record, error);
    return status == STATUS_OK || status == STATUS_EXISTS
               ? link_operator(store, now_ms, keys->link, error)
               : status;
}

enum status demo_prepare_platform(const char *directory, const struct config *config,
                                  struct demo_keys *keys, struct demo_casino *casino,
                                  struct error *error)
{
    struct platform_store *store = NULL;
    struct platform_store_options options = platform_store_configured(config);
    options.create = true;
    int64_t now_ms = clock_wall_ms();
    enum status status = platform_store_open(&store, &options, error);
    if (status != STATUS_OK)
        return status;
    platform_store_act_as(store, "croupier", "demo");
    read_keys(directory, keys);
    status = prepare(store, now_ms, keys, error);
    if (status == STATUS_OK)
        status = write_keys(directory, keys, error);
    if (status == STATUS_OK)
        status = prepare_casino(store, config->secrets_key_file, now_ms, casino, error);
    platform_store_close(&store);
    return status;
}
