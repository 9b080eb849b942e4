#ifndef CROUPIER_ADMISSION_ADMISSION_H
#define CROUPIER_ADMISSION_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "http/http.h"
#include "metrics/metrics.h"
#include "records/sport.h"
#include "stores/platform.h"

/*
 * Who may come in: one verdict for a request, from memory (docs/interface.md, "Keys").
 *
 *   struct policy        what one customer or one legacy address may do. Immutable, counted.
 *   struct policy_table  all of them, an immutable snapshot, shared between snapshots where nothing
 *                        changed (so that one change among 100,000 customers costs next to
 *                        nothing).
 *   struct policies      the current table, and the thread that keeps it fresh from the platform
 *                        store: it asks for what changed since its revision several times a second.
 *   struct admission     one serving thread's view: its table, picked up by generation number.
 */

struct rate_budget;  /* the count of one client's current window; see limits/rate_limit.h */
struct policy_entry; /* a key in the table; see admission/policy_table.h */

struct policy {
    bool is_customer; /* else a legacy address */
    bool admits;      /* enabled and usable */
    bool casino;
    sport_set sports;
    char customer_id[CUSTOMER_ID_SIZE]; /* "" for a legacy address */
    struct rate_limit rate;
    struct rate_budget *budget; /* one for the customer or address, the same in every snapshot */
    size_t cidr_count;
    const struct cidr *cidrs;
};

/* ---- the shared side ------------------------------------------------------------------------- */

struct policies;
struct refresher;

/*
 * Starts two threads, each with a store handle of its own, which they open and go on trying to open
 * when they cannot: one keeps the table fresh; the other writes the times at which keys were used,
 * about once a minute and at the end, and so can never hold up the first. All pointers are borrowed
 * and must outlive them.
 */
struct policies_options {
    struct platform_store_options store;
    uint32_t refresh_ms; /* between two looks at the store's revision: well inside a second (200) */
    struct log *log;
};
struct policies *policies_create(const struct policies_options *options);
/* All admissions are gone. Takes as long as a store call that is under way, and the last writing of
 * uses: a few store timeouts at most. */
void policies_destroy(struct policies **policies);

struct policy_table_facts {
    uint64_t revision;
    uint64_t customers, keys, addresses; /* keys: live or expired; not revoked */
};

struct policies_facts {
    int64_t age_ms;  /* since the table was last confirmed; negative: never */
    uint64_t errors; /* failed looks at the store */
    struct policy_table_facts table;
};
void policies_facts(struct policies *policies, struct policies_facts *facts);
extern const struct metric policies_metrics[];

/* Of its struct policy_table: how a serving thread gets at the current one. */
struct refresher *policies_refresher(struct policies *policies);

/* ---- one serving thread ---------------------------------------------------------------------- */

struct admission;

/* The trusted proxies are copied; they can be changed later (SIGHUP) on the owning thread. */
struct admission *admission_create(struct policies *policies, const struct cidr *trusted_proxies,
                                   size_t trusted_proxy_count);
void admission_set_trusted_proxies(struct admission *admission, const struct cidr *proxies,
                                   size_t count);
void admission_destroy(struct admission **admission);

/* What a connection remembers: the last key and address and what came of them, so that a keep-alive
 * client costs a comparison. Zeros at first; the HTTP layer wipes it. */
struct admission_memory {
    uint64_t generation; /* of the table the verdict came from; 0: nothing remembered */
    uint16_t key_size;   /* of the remembered key */
    uint8_t denial;      /* enum admission_denial */
    char key[48];        /* a longer supplied key is never valid, so never remembered */
    struct address address;
    const struct policy *policy;
    struct policy_entry *entry; /* of the key; NULL without one */
    int64_t expires_ms;         /* of the key; 0: never */
    sport_set sports;           /* what the policy allows, and the key with it */
    bool casino;
    char prefix[KEY_PREFIX_SIZE]; /* of a key that has the form of one, known or not; else "" */
};

/* Why not: for the operator's log. A client does not see which, only 403 ip_not_allowed or 503. */
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
    /* an address's own policy, where only customers are served: the service says so */
    DENIAL_NO_KEY,
    /* of providers' calls: see api/provider_admission.h */
    DENIAL_UNKNOWN_PROVIDER, /* or a disabled one, or one whose secret cannot be read */
    DENIAL_TIMESTAMP,        /* none, or too far from our clock */
    DENIAL_SIGNATURE,        /* none, or not of this body */
};
#define DENIAL_COUNT (DENIAL_SIGNATURE + 1)
const char *admission_denial_name(enum admission_denial denial); /* "unknown_key" */

/*
 * The verdict on a request, by its peer and the fields Authorization, X-Api-Key and
 * X-Forwarded-For.
 *
 * The supplied key is the Bearer token when there is one line of Authorization and its scheme is
 * Bearer (whatever its case; the token is what follows, without spaces and tabs around it), else
 * the value of X-Api-Key. It is unusable, which denies, when it is empty, and when either field
 * occurs more than once, whatever the other says: two answers to "who are you" are none. Only
 * without any supplied key does the address alone decide.
 *
 * `policy` is what the key or the address stands for, also when it is denied; NULL when that was
 * not looked up. It stays valid until the next call of admission_judge on this thread. `client` is
 * set to the address that was judged, also when it is denied; it stays as it is when there is none
 * (an unreadable X-Forwarded-For) or nothing was judged. `memory` may be NULL. Never blocks; the
 * work done does not depend on whether a key is known.
 */
enum admission_denial admission_judge(struct admission *admission, struct admission_memory *memory,
                                      const struct http_request *request, uint64_t now_mono_ms,
                                      int64_t now_wall_ms, const struct policy **policy,
                                      struct address *client);

/* Is this the address of a trusted proxy? */
bool admission_is_proxy(const struct admission *admission, const struct address *address);

/* The client of a request, by its peer, X-Forwarded-For and the trusted proxies. False: it cannot
 * be known. */
MUST_CHECK bool admission_client(const struct admission *admission,
                                 const struct http_request *request, struct address *client);

/* A number that moves whenever a verdict may have changed that does not depend on the time; 0: at
 * present all of them are DENIAL_UNAVAILABLE. */
uint64_t admission_epoch(struct admission *admission, uint64_t now_mono_ms);

#endif
