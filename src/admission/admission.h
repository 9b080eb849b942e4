#pragma once

#include "http/http.h"
#include "records/key.h"
#include "stores/platform.h"

/*
 * Admission: decides from memory whether a request may come in (docs/interface.md, "Keys").
 *
 *   struct policy        the rights of one customer or one legacy address. Immutable, counted.
 *   struct policy_table  all of them, an immutable snapshot, shared between snapshots where nothing
 *                        changed (so that one change among 100,000 customers costs next to
 *                        nothing).
 *   struct policies      the current table, and the thread that keeps it fresh from the platform
 *                        store: it reads the changes since its revision several times a second.
 *   struct admission     one serving thread's view: its table, picked up by generation number.
 */

struct rate_budget;  /* counts one client's current window; see limits/rate_limit.h */
struct policy_entry; /* a key in the table; see admission/policy_table.h */

struct policy {
    bool is_customer; /* else a legacy address */
    bool admits;      /* enabled and usable */
    bool casino;
    bool sandbox;
    sport_set sports;
    char customer_id[CUSTOMER_ID_SIZE]; /* "" for a legacy address */
    struct rate_limit rate;
    struct rate_budget *budget; /* one for each customer or address, shared by all snapshots */
    size_t cidr_count;
    const struct cidr *cidrs;
};

/* ---- the shared side ------------------------------------------------------------------------- */

struct policies;
struct refresher;

/*
 * Starts two threads, each with its own store handle. One keeps the table fresh, and retries if the
 * store fails. The other writes the times at which keys were used, about once a minute and at the
 * end; it is a separate thread so that writing never delays a refresh. All pointers are borrowed
 * and must outlive the threads; they log where the store does. `refresh_ms` is the time between two
 * reads of the store's revision: well inside a second (200).
 */
struct policies *policies_create(const struct platform_store_options *store, uint32_t refresh_ms);
/* Call it after all admissions are destroyed. Waits for a store call that is under way and for the
 * last write of uses: a few store timeouts at most. */
void policies_destroy(struct policies **policies);

struct policies_facts {
    int64_t age_ms;  /* since the table was last confirmed; negative: never */
    uint64_t errors; /* failed reads of the store */
    /* of the table: */
    uint64_t revision;
    uint64_t customers, keys, addresses; /* keys: live or expired; not revoked */
};
void policies_facts(struct policies *policies, struct policies_facts *facts);
extern const struct metric policies_metrics[];

/* The refresher that serves the current struct policy_table to serving threads. */
struct refresher *policies_refresher(struct policies *policies);

/* ---- one serving thread ---------------------------------------------------------------------- */

struct admission;

/* Borrows the trusted proxies; the owning thread can replace them later (SIGHUP). */
struct admission *admission_create(struct policies *policies, struct cidr_list trusted_proxies);
void admission_set_trusted_proxies(struct admission *admission, struct cidr_list trusted_proxies);
void admission_destroy(struct admission **admission);

/* The memory of a connection: its last key and address with their verdict, so that a request on a
 * kept connection costs a comparison. Starts as zeros; the HTTP layer wipes it. */
struct admission_memory {
    uint64_t epoch;    /* admission_epoch when the verdict was given; 0: none */
    uint16_t key_size; /* of the remembered key */
    uint8_t denial;    /* enum admission_denial */
    char key[48];      /* a longer key is never valid, so never remembered */
    struct address address;
    const struct policy *policy;
    struct policy_entry *entry; /* of the key; NULL without one */
    int64_t expires_ms;         /* of the key; 0: never */
    sport_set sports;           /* the sports that both policy and key allow */
    bool casino;
    key_areas areas;              /* of the key, whatever its customer may use; 0 without one */
    char prefix[KEY_PREFIX_SIZE]; /* of a well-formed key, known or not; else "" */
};

/* The reason for a refusal, for the operator's log, in the order of admission/errors.txt. The
 * client sees only 403 ip_not_allowed or 503. */
enum admission_denial {
    DENIAL_NONE,         /* admitted */
    DENIAL_NO_POLICY,    /* no key, and no policy for the address, or a disabled one */
    DENIAL_UNUSABLE_KEY, /* empty, malformed, or more than one */
    DENIAL_UNKNOWN_KEY,
    DENIAL_REVOKED_KEY,
    DENIAL_EXPIRED_KEY,
    DENIAL_CUSTOMER_DISABLED,  /* or its stored policy cannot be applied */
    DENIAL_ADDRESS_NOT_LISTED, /* outside the CIDR list of the customer, or of the key */
    DENIAL_UNKNOWN_ADDRESS,    /* X-Forwarded-For of a trusted proxy cannot be read */
    DENIAL_UNAVAILABLE,        /* 503 security_config_unavailable: the table is not confirmed */
    /* set by the service: an address without a key on a path for customers only */
    DENIAL_NO_KEY,
    /* for providers' calls: see api/provider_admission.h */
    DENIAL_UNKNOWN_PROVIDER,
    DENIAL_PROVIDER_DISABLED,
    DENIAL_PROVIDER_SECRET_UNREADABLE, /* sealed under another key */
    DENIAL_TIMESTAMP,                  /* none, or too far from our clock */
    DENIAL_UNKNOWN_KEY_ID,             /* of no secret of the provider, or of a retired one */
    DENIAL_SIGNATURE,                  /* none, or not of this body */
};
#define DENIAL_COUNT (DENIAL_SIGNATURE + 1)
/* The answer, whose reason names the denial ("unknown_key"). Not for DENIAL_NONE. */
const struct http_error *admission_error_of(enum admission_denial denial);

/*
 * Decides on a request by its peer and the fields Authorization, X-Api-Key and X-Forwarded-For.
 *
 * The supplied key is the Bearer token if Authorization has the scheme Bearer in any case (the
 * token is the rest of the line, trimmed of spaces and tabs), else the value of X-Api-Key. A key is
 * unusable, and the request is denied, if it is empty or not of a key's length, or if either field
 * occurs more than once. The address alone decides only if the request supplies no key.
 *
 * `policy` is the policy of the key or address, also for a denied request; NULL if none was looked
 * up. It stays valid until the next call of admission_judge on this thread. `client` is set to the
 * client's address, also for a denied request. It is left alone if X-Forwarded-For is unreadable or
 * the table is unavailable. Never blocks. The work does not depend on whether a key is known.
 */
enum admission_denial admission_judge(struct admission *admission, struct admission_memory *memory,
                                      const struct http_request *request, uint64_t now_mono_ms,
                                      int64_t now_wall_ms, const struct policy **policy,
                                      struct address *client);

/*
 * The policy of a request that the connection's memory is about: its fields are those that
 * admission_judge judged last, and its peer is the same. NULL: it was not admitted then, or
 * something that its verdict depends on has changed since (the table, the trusted proxies, the
 * key's time), so it must be judged. The policy stays valid as that of admission_judge does.
 */
const struct policy *admission_recall(struct admission *admission,
                                      const struct admission_memory *memory, uint64_t now_mono_ms,
                                      int64_t now_wall_ms);

/* Is this the address of a trusted proxy? */
bool admission_is_proxy(const struct admission *admission, const struct address *address);

/* The client of a request, by its peer, X-Forwarded-For and the trusted proxies. False: it is
 * unknown. */
MUST_CHECK bool admission_client(const struct admission *admission,
                                 const struct http_request *request, struct address *client);
/* The same behind other proxies. */
MUST_CHECK bool admission_client_behind(const struct http_request *request,
                                        struct cidr_list proxies, struct address *client);

/* Is the scheme of an Authorization field Bearer (in any case)? Then its token. */
MUST_CHECK bool admission_bearer(struct text authorization, struct text *token);

/* A number that changes whenever a verdict may have changed, except by a key's expiry. 0: every
 * verdict is DENIAL_UNAVAILABLE at present. */
uint64_t admission_epoch(struct admission *admission, uint64_t now_mono_ms);
