/* Links and sessions; see credentials.h. */
#include "operator/credentials.h"

#include <openssl/crypto.h>

#include "base/base62.h"
#include "base/digest.h"

#define ID_LENGTH (CREDENTIAL_LENGTH - 43)
_Static_assert(DIGEST_SIZE == CREDENTIAL_DIGEST_SIZE, "a credential is stored as its SHA-256");

/* ---- making ---------------------------------------------------------------------------------- */

void credential_make_secret(const char *id, char secret[CREDENTIAL_SIZE],
                            uint8_t digest[CREDENTIAL_DIGEST_SIZE])
{
    CHECK(strlen(id) == ID_LENGTH);
    memcpy(secret, id, ID_LENGTH);
    base62_random(secret + ID_LENGTH, CREDENTIAL_LENGTH - ID_LENGTH);
    secret[CREDENTIAL_LENGTH] = '\0';
    digest_sha256(secret, CREDENTIAL_LENGTH, digest);
}

bool credential_read_id(struct text secret, const char *kind, char id[CREDENTIAL_ID_SIZE])
{
    if (secret.size != CREDENTIAL_LENGTH)
        return false;
    memset(id, 0, CREDENTIAL_ID_SIZE);
    memcpy(id, secret.at, ID_LENGTH);
    return record_id_is_sound(id, CREDENTIAL_ID_SIZE, kind);
}

bool credential_fits(struct text secret, const uint8_t digest[CREDENTIAL_DIGEST_SIZE])
{
    uint8_t own[CREDENTIAL_DIGEST_SIZE];
    digest_sha256(secret.at, secret.size, own);
    return CRYPTO_memcmp(own, digest, sizeof own) == 0;
}

static void generate(struct credential *credential, const char *kind, const char *name,
                     int64_t now_ms, int64_t lives_ms)
{
    struct credential_record *record = &credential->record;
    *record = (struct credential_record){.created_ms = now_ms, .expires_ms = now_ms + lives_ms};
    record_id_generate(kind, record->id, sizeof record->id);
    CHECK(strlen(name) < sizeof record->operator_name);
    memcpy(record->operator_name, name, strlen(name) + 1);
    credential_make_secret(record->id, credential->secret, record->digest);
}

enum status credential_make_link(struct platform_store *store, const char *name, int64_t now_ms,
                                 struct credential *link, struct error *error)
{
    struct operator_record who = {.role = ROLE_READER};
    struct credential made = {.secret = ""};
    enum status status = resource_get(&operator_resource, store, name, &who, error);
    if (status != STATUS_OK)
        return status;
    if (!who.enabled)
        return error_conflict(error, "operator '%s' is disabled", who.name);
    status = platform_credentials_delete(store, now_ms - CREDENTIAL_KEPT_MS, error);
    if (status != STATUS_OK)
        return status;
    generate(&made, "lnk_", who.name, now_ms, CREDENTIAL_LINK_MS);
    status = platform_add(store, &credential_table, &made.record, error);
    if (status == STATUS_OK)
        *link = made;
    explicit_bzero(made.secret, sizeof made.secret);
    return status;
}

/* ---- finding --------------------------------------------------------------------------------- */

static enum status refuse_credential(struct error *error)
{
    return error_not_found(error, "that is no link or session that is good");
}

/* The record of a secret, if it is one of this kind and good now; with its operator. */
static enum status find(struct platform_store *store, struct text secret, const char *kind,
                        int64_t now_ms, struct signed_in *found, struct error *error)
{
    struct signed_in read = {.who = {.role = ROLE_READER}};
    char id[CREDENTIAL_ID_SIZE];
    if (!credential_read_id(secret, kind, id))
        return refuse_credential(error);
    enum status status = platform_get(store, &credential_table, id, &read.session, error);
    if (status == STATUS_OK)
        status = platform_get(store, &operator_table, read.session.operator_name, &read.who, error);
    if (status != STATUS_OK)
        return status == STATUS_NOT_FOUND ? refuse_credential(error) : status;
    bool good = credential_fits(secret, read.session.digest) && read.session.ended_ms == 0 &&
                read.session.expires_ms > now_ms && read.who.enabled && !read.who.removed &&
                read.session.created_ms >= read.who.created_ms;
    if (!good)
        return refuse_credential(error);
    *found = read;
    return STATUS_OK;
}

enum status credential_find_session(struct platform_store *store, struct text session,
                                    int64_t now_ms, struct signed_in *signed_in,
                                    struct error *error)
{
    return find(store, session, "ses_", now_ms, signed_in, error);
}

/* ---- signing in and out ---------------------------------------------------------------------- */

void operator_act(struct platform_store *store, const struct signed_in *as, const char *command)
{
    static const char *const means[] = {"console", "token", "proxy"};
    char who[TRAIL_WHO_SIZE];
    (void)snprintf(who, sizeof who, "%s %s", means[as->by], as->who.name);
    platform_store_act_as(store, who, command);
}

/* Writes under the revision that was read, so that one of two uses of a link at once is refused. */
enum status credential_sign_in(struct platform_store *store, struct text link, const char *address,
                               int64_t now_ms, struct credential *session,
                               struct signed_in *signed_in, struct error *error)
{
    struct signed_in found;
    struct credential made = {.secret = ""};
    enum status status = find(store, link, "lnk_", now_ms, &found, error);
    if (status != STATUS_OK)
        return status;
    operator_act(store, &found, "sign in");
    found.session.ended_ms = now_ms;
    status = platform_update(store, &credential_table, &found.session, error);
    if (status != STATUS_OK)
        return status == STATUS_EXISTS ? refuse_credential(error) : status;
    generate(&made, "ses_", found.who.name, now_ms, CREDENTIAL_SESSION_MS);
    (void)snprintf(made.record.address, sizeof made.record.address, "%s", address);
    status = platform_add(store, &credential_table, &made.record, error);
    if (status == STATUS_OK) {
        *signed_in = (struct signed_in){.who = found.who, .session = made.record};
        *session = made;
    }
    explicit_bzero(made.secret, sizeof made.secret);
    return status;
}

/* The day's session has an id of its own, so that it is found again. */
static enum status find_daily_session(struct platform_store *store, struct signed_in *found,
                                      const struct address *from, int64_t now_ms,
                                      struct error *error)
{
    char id[CREDENTIAL_ID_SIZE] = "ses_";
    char text[OPERATOR_NAME_SIZE + 48];
    uint8_t digest[DIGEST_SIZE];
    struct credential made;
    const int64_t day = clock_day(now_ms);
    int size = snprintf(text, sizeof text, "%s %lld %lld", found->who.name,
                        (long long)found->who.created_ms, (long long)day);
    digest_sha256(text, (size_t)size, digest);
    hex_write(id + strlen(id), digest, (ID_LENGTH - strlen(id)) / 2);
    enum status status = platform_get(store, &credential_table, id, &found->session, error);
    if (status != STATUS_NOT_FOUND)
        return status;
    operator_act(store, found, "sign in");
    generate(&made, "ses_", found->who.name, now_ms, (day + 1) * CLOCK_DAY_MS - now_ms);
    explicit_bzero(made.secret, sizeof made.secret);
    memcpy(made.record.id, id, sizeof id);
    address_format(from, made.record.address);
    found->session = made.record;
    status = platform_add(store, &credential_table, &made.record, error);
    return status == STATUS_EXISTS ? STATUS_OK : status; /* another request was first */
}

enum status credential_admit_named(struct platform_store *store, const char *name,
                                   const struct address *from, int64_t now_ms,
                                   struct signed_in *signed_in, struct error *error)
{
    struct signed_in found = {.by = BY_PROXY, .who = {.role = ROLE_READER}};
    enum status status = resource_get(&operator_resource, store, name, &found.who, error);
    if (status != STATUS_OK)
        return status;
    if (!found.who.enabled)
        return error_not_found(error, "operator '%s' is disabled", found.who.name);
    if (found.who.role == ROLE_OWNER)
        return error_not_found(error, "an owner signs in by a link");
    status = find_daily_session(store, &found, from, now_ms, error);
    if (status == STATUS_OK && found.session.ended_ms != 0)
        status = error_not_found(error, "the session of this day (UTC) was ended");
    if (status == STATUS_OK)
        *signed_in = found;
    return status;
}

enum status credential_end(struct platform_store *store, const char *id, int64_t now_ms,
                           struct error *error)
{
    struct credential_record record;
    enum status status = platform_get(store, &credential_table, id, &record, error);
    if (status == STATUS_NOT_FOUND)
        return error_set(error, status, "there is no session '%.*s'", CREDENTIAL_ID_SIZE, id);
    if (status != STATUS_OK || record.ended_ms != 0)
        return status;
    record.ended_ms = now_ms;
    record.revision = 0; /* also when another process changed it */
    return platform_update(store, &credential_table, &record, error);
}

/* ---- sessions -------------------------------------------------------------------------------- */

static const struct field fields[] = {
    {"id", "id", "ID", &field_text, FIELD_OF(credential_record, id)},
    {"operator", "operator", "OPERATOR", &field_text, FIELD_OF(credential_record, operator_name)},
    {"address", "address", "FROM", &field_text, FIELD_OF(credential_record, address)},
    {"created_at", "begun", "BEGUN (UTC)", &field_time, FIELD_OF(credential_record, created_ms)},
    {"expires_at", "ends", "ENDS", &field_time, FIELD_OF(credential_record, expires_ms)},
    {0},
};

static enum status list(struct platform_store *store, const char *of, record_function *see,
                        void *context, struct error *error)
{
    (void)of;
    return platform_sessions_list(store, clock_wall_ms(), see, context, error);
}

const struct resource session_resource = {RESOURCE(RECORD_CREDENTIAL, credential_record, fields),
                                          .list = list};
