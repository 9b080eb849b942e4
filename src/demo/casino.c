/* The demo's provider and its games in the platform store; see casino.h. */
#include "demo/casino.h"

#include <string.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "base/memory.h"
#include "demo/texts.h"
#include "demo/wheel.h"
#include "operator/games.h"
#include "operator/providers.h"
#include "records/provider_secret.h"

#define SECRET_SIZE 32

static enum status add_provider(struct platform_store *store, const struct secrets *secrets,
                                int64_t now_ms, struct provider_record *record, struct error *error)
{
    char secret[SECRET_SIZE];
    CHECK(RAND_bytes((unsigned char *)secret, sizeof secret) == 1);
    const struct setting settings[] = {
        {"id", DEMO_PROVIDER},
        {"name", "Dune Studio"},
        {"launch_url", "http://127.0.0.1:9090" WHEEL_PATH}, /* until the demo knows its port */
        {0},
    };
    const struct provider_sealing sealing = {secrets, {secret, sizeof secret}, now_ms};
    const struct resource_edit edit = {
        .settings = settings, .edit = provider_seal, .context = &sealing};
    enum status status = resource_add(&provider_resource, store, &edit, now_ms, record, error);
    OPENSSL_cleanse(secret, sizeof secret);
    return status;
}

/* Appends nothing unless it is STATUS_OK. */
static enum status unseal(const struct demo_casino *casino, const struct provider_record *record,
                          size_t at, struct demo_secret *secret, struct error *error)
{
    memcpy(secret->kid, record->secrets[at].kid, sizeof secret->kid);
    buffer_reserve(&secret->plain, SECRETS_PLAIN_MAX); /* so that none is left elsewhere */
    if (provider_secret_unseal(casino->secrets, record, at, &secret->plain) == STATUS_OK)
        return STATUS_OK;
    return error_set(error, STATUS_MALFORMED,
                     "the secret of provider " DEMO_PROVIDER " was stored under another key; "
                     "remove the demo's directory to start over");
}

static enum status unseal_all(const struct demo_casino *casino,
                              const struct provider_record *record, struct demo_secrets *secrets,
                              struct error *error)
{
    enum status status = STATUS_OK;
    size_t *count = &secrets->count;
    *secrets = (struct demo_secrets){0};
    while (status == STATUS_OK && *count < PROVIDER_SECRETS_MAX &&
           record->secrets[*count].size > 0) {
        status = unseal(casino, record, *count, &secrets->each[*count], error);
        ++*count;
    }
    return status;
}

enum status demo_secrets_read(const struct demo_casino *casino, struct demo_secrets *secrets,
                              struct error *error)
{
    struct platform_store *store = NULL;
    struct provider_record record;
    *secrets = (struct demo_secrets){0};
    enum status status = platform_store_open(&store, &casino->platform, error);
    if (status == STATUS_OK)
        status = platform_get(store, &provider_table, DEMO_PROVIDER, &record, error);
    platform_store_close(&store);
    return status == STATUS_OK ? unseal_all(casino, &record, secrets, error) : status;
}

void demo_secrets_wipe(struct demo_secrets *secrets)
{
    for (size_t i = 0; i < secrets->count; i++) {
        struct buffer *plain = &secrets->each[i].plain;
        OPENSSL_cleanse(plain->data, plain->capacity);
        buffer_free(plain);
    }
    secrets->count = 0;
}

enum status demo_casino_prepare(struct demo_casino *casino, struct platform_store *store,
                                struct secrets *secrets, int64_t now_ms, bool *added,
                                struct error *error)
{
    struct provider_record record;
    struct demo_secrets plain;
    struct games_put_result games;
    casino->secrets = secrets;
    enum status status = platform_get(store, &provider_table, DEMO_PROVIDER, &record, error);
    *added = status == STATUS_NOT_FOUND;
    if (*added) {
        status = add_provider(store, secrets, now_ms, &record, error);
        if (status == STATUS_OK)
            status = games_import(store, "games.json", text_of(demo_games), now_ms, &games, error);
    }
    if (status != STATUS_OK)
        return status;
    status = unseal_all(casino, &record, &plain, error);
    demo_secrets_wipe(&plain);
    return status;
}

enum status demo_casino_open(struct demo_casino *casino,
                             const struct platform_store_options *platform, const char *page_url,
                             const char *wallet_url, struct error *error)
{
    struct platform_store *store = NULL;
    struct provider_record record;
    enum status status = platform_store_open(&store, platform, error);
    if (status != STATUS_OK)
        return status;
    platform_store_act_as(store, "croupier", "demo");
    status = resource_change(&provider_resource, store, DEMO_PROVIDER,
                             EDIT({"launch_url", page_url}), &record, error);
    platform_store_close(&store);
    casino->platform = *platform;
    casino->wallet_url = memory_copy_string(wallet_url);
    return status;
}

void demo_casino_clear(struct demo_casino *casino)
{
    secrets_destroy(&casino->secrets);
    memory_free(casino->wallet_url);
    casino->wallet_url = NULL;
}
