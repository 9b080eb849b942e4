/* Tokens of machines; see tokens.h. */
#include "operator/tokens.h"

#include "operator/option_texts.h"

#define KIND "cro_"
#define USE_KEPT_MS 60000 /* a later use is noted again */

/* ---- the fields ------------------------------------------------------------------------------ */

#define OF_RECORD(member) FIELD_OF(token_record, member)

static const struct field fields[] = {
    {"name", NULL, "NAME", &field_text, OF_RECORD(name)},
    {"id", NULL, "ID", &field_text, OF_RECORD(id)},
    {"role", NULL, "ROLE", &field_word, OF_RECORD(role), .names = &operator_roles,
     .option = OPTION_TOKEN_ROLE},
    {NULL, NULL, "STATE", &field_live, OF_RECORD(expires_ms),
     .beside = offsetof(struct token_record, revoked_ms)},
    {"cidrs", NULL, "CIDRS", &field_cidrs, OF_CIDRS(token_record), .words = "-",
     .option = OPTION_TOKEN_CIDR},
    {"created_at", NULL, "CREATED (UTC)", &field_time, OF_RECORD(created_ms)},
    {"expires_at", NULL, "EXPIRES", &field_time, OF_RECORD(expires_ms), .set = field_set_expiry,
     .beside = offsetof(struct token_record, created_ms), .option = OPTION_TOKEN_EXPIRES},
    {"last_used_at", NULL, "LAST USED", &field_time, OF_RECORD(last_used_ms)},
    {"revoked_at", NULL, "REVOKED", &field_time, OF_RECORD(revoked_ms)},
    {0},
};

static void begin(void *record, int64_t now_ms)
{
    struct token_record *token = record;
    token->created_ms = now_ms;
    record_id_generate(KIND, token->id, sizeof token->id);
}

static const struct token_record sound = {.id = KIND "0", .name = "name"};

const struct resource token_resource = {
    RESOURCE(RECORD_TOKEN, token_record, fields),
    .sound = &sound,
    .begin = begin,
};

/* ---- issuing --------------------------------------------------------------------------------- */

enum status tokens_issue(struct platform_store *store, struct token_record *record,
                         char token[CREDENTIAL_SIZE], struct error *error)
{
    char made[CREDENTIAL_SIZE];
    credential_make_secret(record->id, made, record->digest);
    enum status status = platform_add(store, &token_table, record, error);
    if (status == STATUS_EXISTS)
        status = error_set(error, status,
                           "name: there is a token '%s' already; revoke it, or take another name",
                           record->name);
    if (status == STATUS_OK)
        memcpy(token, made, sizeof made);
    explicit_bzero(made, sizeof made);
    return status;
}

/* ---- revoking -------------------------------------------------------------------------------- */

struct name_search {
    const char *name;
    struct token_record found; /* id "": none was */
};

static bool search_name(void *context, const void *visited)
{
    struct name_search *search = context;
    const struct token_record *token = visited;
    if (token->revoked_ms != 0 || strcmp(token->name, search->name) != 0)
        return true;
    search->found = *token;
    return false;
}

static enum status find(struct platform_store *store, const char *wanted,
                        struct token_record *record, struct error *error)
{
    char id[CREDENTIAL_ID_SIZE];
    struct name_search search = {.name = wanted};
    bool whole = credential_read_id(text_of(wanted), KIND, id);
    enum status status = platform_get(store, &token_table, whole ? id : wanted, record, error);
    if (status != STATUS_NOT_FOUND)
        return status;
    if (whole) /* the refusal does not repeat the word */
        return error_not_found(error, "there is no such token");
    status = platform_list(store, &token_table, NULL, search_name, &search, error);
    if (status != STATUS_OK)
        return status;
    if (search.found.id[0] == '\0')
        return resource_missing(&token_resource, wanted, error);
    *record = search.found;
    return STATUS_OK;
}

enum status tokens_revoke(struct platform_store *store, const char *wanted, int64_t now_ms,
                          struct token_record *record, struct error *error)
{
    struct token_record found = {.revision = 0};
    enum status status = find(store, wanted, &found, error);
    if (status == STATUS_OK && found.revoked_ms == 0) {
        found.revoked_ms = now_ms;
        status = platform_update(store, &token_table, &found, error);
    }
    if (status == STATUS_OK)
        *record = found;
    return status;
}

/* ---- admitting ------------------------------------------------------------------------------- */

static enum status refuse(struct error *error)
{
    return error_not_found(error, "that is no token that is good");
}

/* A machine acts under the name of its token, and its session is the token. */
static void sign_in(const struct token_record *token, struct signed_in *signed_in)
{
    *signed_in = (struct signed_in){
        .by = BY_TOKEN,
        .who = {.role = token->role, .enabled = true, .usable = true},
        .session = {.created_ms = token->created_ms, .expires_ms = token->expires_ms},
    };
    memcpy(signed_in->who.name, token->name, sizeof signed_in->who.name);
    memcpy(signed_in->session.id, token->id, sizeof signed_in->session.id);
}

enum status tokens_admit(struct platform_store *store, struct text token,
                         const struct address *from, int64_t now_ms, struct signed_in *signed_in,
                         struct error *error)
{
    struct token_record record;
    char id[CREDENTIAL_ID_SIZE];
    if (!credential_read_id(token, KIND, id))
        return refuse(error);
    enum status status = platform_get(store, &token_table, id, &record, error);
    if (status != STATUS_OK)
        return status == STATUS_NOT_FOUND ? refuse(error) : status;
    if (!credential_fits(token, record.digest) || !token_is_live(&record, now_ms))
        return refuse(error);
    sign_in(&record, signed_in);
    if (record.cidr_count > 0 && !cidrs_contain(record.cidrs, record.cidr_count, from))
        return error_conflict(error, "the token may not be used from this address");
    if (now_ms - record.last_used_ms >= USE_KEPT_MS)
        status = platform_token_used(store, record.id, now_ms, error);
    if (status == STATUS_READ_ONLY) /* the machine may still look at what is wrong */
        status = STATUS_OK;
    return status;
}
