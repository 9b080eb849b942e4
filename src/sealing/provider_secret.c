/* Sealing for one provider: the context is its id; see provider_secret.h. */
#include "sealing/provider_secret.h"

#include "base/base62.h"

#define CONTEXT_SIZE (PROVIDER_ID_SIZE + 16)

static struct text context_of(const struct provider_record *record, char out[CONTEXT_SIZE])
{
    (void)snprintf(out, CONTEXT_SIZE, "provider:%s", record->id);
    return text_of(out);
}

static void seal(const struct secrets *secrets, struct provider_record *record, struct text secret,
                 int64_t now_ms)
{
    struct provider_secret *newest = &record->secrets[0];
    char context[CONTEXT_SIZE];
    struct buffer sealed = {0};
    CHECK(secret.size > 0);
    secrets_seal(secrets, context_of(record, context), secret, &sealed);
    CHECK(sealed.size <= sizeof newest->sealed);
    memset(newest->sealed, 0, sizeof newest->sealed);
    memcpy(newest->sealed, sealed.data, sealed.size);
    newest->size = sealed.size;
    newest->added_ms = now_ms;
    buffer_free(&sealed);
}

static void make_kid(struct provider_secret *secret)
{
    base62_random(secret->kid, sizeof secret->kid - 1);
    secret->kid[sizeof secret->kid - 1] = '\0';
}

void provider_secret_seal(const struct secrets *secrets, struct provider_record *record,
                          struct text secret, int64_t now_ms)
{
    seal(secrets, record, secret, now_ms);
    if (record->secrets[0].kid[0] != '\0')
        make_kid(&record->secrets[0]);
}

enum status provider_secret_add(const struct secrets *secrets, struct provider_record *record,
                                struct text secret, int64_t now_ms, struct error *error)
{
    if (record->secrets[1].size != 0)
        return error_conflict(error, "provider '%s' has two secrets already; retire '%s' first",
                              record->id, provider_secret_name(&record->secrets[1]));
    record->secrets[1] = record->secrets[0];
    seal(secrets, record, secret, now_ms);
    make_kid(&record->secrets[0]);
    return STATUS_OK;
}

enum status provider_secret_retire(struct provider_record *record, const char *name,
                                   struct error *error)
{
    struct provider_secret *secrets = record->secrets;
    size_t at = 0;
    while (at < PROVIDER_SECRETS_MAX &&
           (secrets[at].size == 0 || strcmp(provider_secret_name(&secrets[at]), name) != 0))
        at++;
    if (at == PROVIDER_SECRETS_MAX)
        return error_not_found(error, "provider '%s' has no secret '%.*s'", record->id, 64, name);
    if (secrets[1].size == 0)
        return error_conflict(error, "it is the only secret of provider '%s'; add another first",
                              record->id);
    if (at == 0)
        secrets[0] = secrets[1];
    secrets[1] = (struct provider_secret){0};
    return STATUS_OK;
}

const char *provider_secret_name(const struct provider_secret *secret)
{
    return secret->kid[0] != '\0' ? secret->kid : "first";
}

enum status provider_secret_unseal(const struct secrets *secrets,
                                   const struct provider_record *record, size_t at,
                                   struct buffer *out)
{
    const struct provider_secret *secret = &record->secrets[at];
    char context[CONTEXT_SIZE];
    return secrets_unseal(secrets, context_of(record, context),
                          (struct text){(const char *)secret->sealed, secret->size}, out);
}
