/*
 * Admission of requests; see admission.h. One thread's view of the policies, and pure decisions on
 * top of it.
 *
 * The time of a refusal must not reveal whether a key is known. A well-formed key always costs one
 * digest, two look-ups and one scan of the customer's CIDR blocks; for an unknown key the scan runs
 * over a policy that admits no address. A malformed key is refused earlier, which reveals only what
 * any client can compute.
 */
#include "admission/admission.h"

#include <openssl/crypto.h>

#include "admission/error_rows.h"

#include "admission/client_address.h"
#include "admission/key.h"
#include "admission/policy_table.h"
#include "base/memory.h"
#include "stores/refresher.h"

struct admission {
    struct refresher *policies;
    struct table_hold hold;           /* on the table */
    const struct policy_table *table; /* of the last verdict */
    struct cidr_list trusted_proxies;
    uint64_t proxy_changes; /* how many times the proxies were set */
};

struct admission *admission_create(struct policies *policies, struct cidr_list trusted_proxies)
{
    struct admission *admission = memory_alloc_zeroed(1, sizeof *admission);
    admission->policies = policies_refresher(policies);
    admission_set_trusted_proxies(admission, trusted_proxies);
    return admission;
}

void admission_set_trusted_proxies(struct admission *admission, struct cidr_list trusted_proxies)
{
    admission->trusted_proxies = trusted_proxies;
    admission->proxy_changes++;
}

void admission_destroy(struct admission **at)
{
    struct admission *admission = memory_take(at);
    if (admission == NULL)
        return;
    refresher_release(admission->policies, &admission->hold);
    memory_free(admission);
}

/* ---- the supplied key ------------------------------------------------------------------------ */

bool admission_bearer(struct text authorization, struct text *token)
{
    size_t end = 0;
    while (end < authorization.size && authorization.at[end] != ' ' &&
           authorization.at[end] != '\t')
        end++;
    if (!text_equals_ignore_case((struct text){authorization.at, end}, TEXT("bearer")))
        return false;
    *token = text_trim((struct text){authorization.at + end, authorization.size - end});
    return true;
}

/* Finds the supplied key. It stays empty if the request has none; then the address decides. Returns
 * false if the key is unusable: empty, not of a key's length, or more than one. */
static bool supplied_key(const struct http_request *request, struct text *key)
{
    unsigned authorizations = request->field_count[HTTP_FIELD_AUTHORIZATION];
    unsigned api_keys = request->field_count[HTTP_FIELD_X_API_KEY];
    if (authorizations > 1 || api_keys > 1)
        return false;
    bool bearer = authorizations == 1 &&
                  admission_bearer(http_request_field(request, HTTP_FIELD_AUTHORIZATION), key);
    if (!bearer && api_keys == 0)
        return true;
    if (!bearer)
        *key = text_trim(http_request_field(request, HTTP_FIELD_X_API_KEY));
    return key->size == KEY_LENGTH;
}

bool admission_client(const struct admission *admission, const struct http_request *request,
                      struct address *client)
{
    return admission_client_behind(request, admission->trusted_proxies, client);
}

bool admission_client_behind(const struct http_request *request, struct cidr_list proxies,
                             struct address *client)
{
    struct text lines[HTTP_FIELDS_MAX];
    size_t count = 0;
    struct text line;
    for (uint32_t at = 0; http_request_next_field(request, HTTP_FIELD_X_FORWARDED_FOR, &at, &line);)
        lines[count++] = line;
    return client_address(&request->peer, proxies, lines, count, client);
}

/* ---- the connection's memory ----------------------------------------------------------------- */

/* Picks up the newest table. Both numbers only grow, so their sum does too. */
uint64_t admission_epoch(struct admission *admission, uint64_t now_mono_ms)
{
    admission->table = refresher_confirmed(admission->policies, &admission->hold, now_mono_ms);
    return admission->table == NULL ? 0 : admission->hold.generation + admission->proxy_changes;
}

static bool is_right(const struct admission_memory *memory, uint64_t epoch, int64_t now_wall_ms)
{
    return memory->epoch == epoch && (memory->expires_ms == 0 || now_wall_ms < memory->expires_ms);
}

static bool is_remembered(const struct admission_memory *memory, uint64_t epoch, struct text key,
                          const struct address *client, int64_t now_wall_ms)
{
    return is_right(memory, epoch, now_wall_ms) && memory->key_size == key.size &&
           (key.size == 0 || CRYPTO_memcmp(memory->key, key.at, key.size) == 0) &&
           address_equals(&memory->address, client);
}

static void remember(struct admission_memory *memory, uint64_t epoch, struct text key,
                     const struct address *client)
{
    CHECK(key.size <= sizeof memory->key);
    memory->epoch = epoch;
    memory->key_size = (uint16_t)key.size;
    if (key.size > 0)
        memcpy(memory->key, key.at, key.size);
    memory->address = *client;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

bool admission_is_proxy(const struct admission *admission, const struct address *address)
{
    return cidrs_contain(admission->trusted_proxies.blocks, admission->trusted_proxies.count,
                         address);
}

/* The verdict on a key for this client. `key` is NULL if the table does not have it. */
static enum admission_denial judge_key(const struct policy *policy, const struct policy_key *key,
                                       const struct address *client, int64_t now_wall_ms)
{
    bool inside = cidrs_contain(policy->cidrs, policy->cidr_count, client);
    if (key == NULL || !policy->is_customer)
        return DENIAL_UNKNOWN_KEY;
    inside &= key->cidr_count == 0 || cidrs_contain(key->cidrs, key->cidr_count, client);
    return key->revoked                                             ? DENIAL_REVOKED_KEY
           : key->expires_ms != 0 && now_wall_ms >= key->expires_ms ? DENIAL_EXPIRED_KEY
           : !policy->admits                                        ? DENIAL_CUSTOMER_DISABLED
           : !inside                                                ? DENIAL_ADDRESS_NOT_LISTED
                                                                    : DENIAL_NONE;
}

static void ask_for_key(const struct policy_table *table, struct text key,
                        const struct address *client, int64_t now_wall_ms,
                        struct admission_memory *answer)
{
    uint8_t digest[KEY_DIGEST_SIZE];
    key_digest(key, digest);
    key_prefix(key, answer->prefix);
    answer->policy = policy_table_find_key(table, digest, &answer->entry);
    const struct policy_key *found = answer->entry == NULL ? NULL : policy_entry_key(answer->entry);
    answer->denial = (uint8_t)judge_key(answer->policy, found, client, now_wall_ms);
    answer->expires_ms = found == NULL ? 0 : found->expires_ms;
    answer->areas = found == NULL ? 0 : found->areas;
    if ((answer->areas & KEY_SPORTS) != 0)
        answer->sports = answer->policy->sports;
    answer->casino = answer->policy->casino && (answer->areas & KEY_CASINO) != 0;
    explicit_bzero(digest, sizeof digest);
}

/* Looks up a key in the table (or the address, if the key is empty) and returns the verdict as the
 * connection's memory. A malformed key never reaches the table. */
static struct admission_memory ask_table(const struct admission *admission, struct text key,
                                         const struct address *client, int64_t now_wall_ms)
{
    const struct policy_table *table = admission->table;
    struct admission_memory answer = {.denial = DENIAL_UNUSABLE_KEY};
    if (key.size > 0 && !key_is_well_formed(key))
        return answer;
    if (key.size > 0) {
        ask_for_key(table, key, client, now_wall_ms, &answer);
    } else {
        answer.policy = policy_table_find_address(table, client);
        answer.sports = answer.policy->sports;
        answer.casino = answer.policy->casino;
        bool admitted = answer.policy->admits && !answer.policy->is_customer;
        answer.denial = admitted ? DENIAL_NONE : DENIAL_NO_POLICY;
    }
    return answer;
}

const struct http_error *admission_error_of(enum admission_denial denial)
{
    CHECK(denial != DENIAL_NONE);
    return admission_errors[denial - 1];
}

enum admission_denial admission_judge(struct admission *admission, struct admission_memory *memory,
                                      const struct http_request *request, uint64_t now_mono_ms,
                                      int64_t now_wall_ms, const struct policy **policy,
                                      struct address *client)
{
    struct address address;
    struct text key = {NULL, 0};
    *policy = NULL;
    uint64_t epoch = admission_epoch(admission, now_mono_ms);
    if (epoch == 0)
        return DENIAL_UNAVAILABLE;
    if (!admission_client(admission, request, &address))
        return DENIAL_UNKNOWN_ADDRESS;
    *client = address;
    if (!supplied_key(request, &key))
        return DENIAL_UNUSABLE_KEY;
    if (!is_remembered(memory, epoch, key, &address, now_wall_ms)) {
        *memory = ask_table(admission, key, &address, now_wall_ms);
        remember(memory, epoch, key, &address);
    }
    *policy = memory->policy;
    if (memory->denial == DENIAL_NONE && memory->entry != NULL)
        policy_entry_note_use(memory->entry, now_wall_ms);
    return (enum admission_denial)memory->denial;
}

const struct policy *admission_recall(struct admission *admission,
                                      const struct admission_memory *memory, uint64_t now_mono_ms,
                                      int64_t now_wall_ms)
{
    uint64_t epoch = admission_epoch(admission, now_mono_ms);
    if (epoch == 0 || !is_right(memory, epoch, now_wall_ms) || memory->denial != DENIAL_NONE)
        return NULL;
    if (memory->entry != NULL)
        policy_entry_note_use(memory->entry, now_wall_ms);
    return memory->policy;
}
