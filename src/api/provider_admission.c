/* Every call goes through all checks, even after one has failed, so that refusals take equally
 * long; see provider_admission.h. */
#include "api/provider_admission.h"

#include "launch/document.h"

/* No provider has this secret, because it is public. */
#define NO_SECRET "a secret in place of that of a provider that is not there"

static bool is_current(struct text timestamp, int64_t now_wall_ms)
{
    uint64_t seconds = 0;
    int64_t now_seconds = now_wall_ms / 1000;
    if (text_to_u64(timestamp, INT64_MAX / 2, &seconds) != STATUS_OK)
        return false;
    int64_t apart = now_seconds - (int64_t)seconds;
    return apart < PROVIDER_CLOCK_SECONDS && apart > -PROVIDER_CLOCK_SECONDS;
}

static const struct games_provider *find(const struct games_table *table, struct text id)
{
    char terminated[PROVIDER_ID_SIZE] = "";
    if (id.size == 0 || id.size >= sizeof terminated)
        return NULL;
    memcpy(terminated, id.at, id.size);
    return games_table_provider(table, terminated);
}

/* The first secret has no kid; `provider secret list` calls it "first". */
static bool is_called(const struct games_secret *secret, struct text kid)
{
    return kid.at != NULL && (text_equals(kid, text_of(secret->kid)) ||
                              (secret->kid[0] == '\0' && text_equals(kid, TEXT("first"))));
}

/* DENIAL_NONE: it is signed. Always computes PROVIDER_SECRETS_MAX HMACs, however many secrets the
 * provider has. */
static enum admission_denial check_signature(const struct games_provider *provider,
                                             const struct http_request *request,
                                             struct text timestamp)
{
    struct text signature = http_request_only_field(request, HTTP_FIELD_X_CROUPIER_SIGNATURE);
    struct text kid = http_request_only_field(request, HTTP_FIELD_X_CROUPIER_KEY_ID);
    bool named = request->field_count[HTTP_FIELD_X_CROUPIER_KEY_ID] > 0;
    enum admission_denial denial = DENIAL_UNKNOWN_KEY_ID;
    for (size_t i = 0; i < PROVIDER_SECRETS_MAX; i++) {
        const struct games_secret *secret =
            provider != NULL && i < provider->secret_count ? &provider->secrets[i] : NULL;
        bool same = launch_signature_is_good(
            timestamp, request->body,
            secret != NULL ? buffer_text(&secret->bytes) : TEXT(NO_SECRET), signature);
        if (secret == NULL || (named && !is_called(secret, kid)))
            continue;
        denial = same || denial == DENIAL_NONE ? DENIAL_NONE : DENIAL_SIGNATURE;
    }
    return denial;
}

enum admission_denial provider_admit(const struct games_table *table,
                                     const struct http_request *request, int64_t now_wall_ms,
                                     const struct games_provider **provider)
{
    struct text timestamp = http_request_only_field(request, HTTP_FIELD_X_CROUPIER_TIMESTAMP);
    const struct games_provider *found =
        find(table, http_request_only_field(request, HTTP_FIELD_X_CROUPIER_PROVIDER));
    bool current = is_current(timestamp, now_wall_ms);
    enum admission_denial denial = check_signature(found, request, timestamp);
    *provider = found;
    if (found == NULL)
        return DENIAL_UNKNOWN_PROVIDER;
    if (!found->record.enabled)
        return DENIAL_PROVIDER_DISABLED;
    if (found->secret_count == 0)
        return DENIAL_PROVIDER_SECRET_UNREADABLE;
    return denial == DENIAL_NONE && !current ? DENIAL_TIMESTAMP : denial;
}

bool provider_may_call_from(const struct games_provider *provider, const struct address *client)
{
    const struct provider_record *record = &provider->record;
    return record->cidr_count == 0 || cidrs_contain(record->cidrs, record->cidr_count, client);
}
