#pragma once

#include "base/clock.h"
#include "operator/resource.h"
#include "records/operator.h"

/* ---- operators ------------------------------------------------------------------------------- */

/*
 * Operators sign in to the console; their role says what they may do there. Settings: name (of a
 * new one), role, enabled. One that is removed may not sign in any more, and its sessions are over.
 * Its name may be added again, which gives it neither its sessions nor its links back.
 */
extern const struct resource operator_resource; /* struct operator_record */

/* Is there one who is not removed, or a live token? Until then there is no console. */
MUST_CHECK enum status operators_exist(struct platform_store *store, bool *exist,
                                       struct error *error);

/* ---- links and sessions ---------------------------------------------------------------------- */

/*
 * How an operator signs in: a link, which is good for CREDENTIAL_LINK_MS and once, makes a session,
 * which is good for CREDENTIAL_SESSION_MS. Both are secrets of 256 random bits behind the id of
 * their record:
 *
 *     lnk_ or ses_   16 x base62, the rest of the id   43 x base62 from the system's random source
 *
 * A whole secret leaves this module once, when it is made; the store has its SHA-256 alone, and it
 * is compared in constant time. A credential opens nothing when its operator is disabled, removed,
 * or newer than it is. Each refusal is STATUS_NOT_FOUND, for any reason.
 *
 * A token of a machine (operator/tokens.h) is a secret of the same form.
 */
#define CREDENTIAL_LENGTH 63
#define CREDENTIAL_SIZE (CREDENTIAL_LENGTH + 1)
#define CREDENTIAL_LINK_MS (15 * 60 * 1000)
#define CREDENTIAL_SESSION_MS (12 * 60 * 60 * 1000)
#define CREDENTIAL_KEPT_MS (30 * CLOCK_DAY_MS) /* after that time */

struct credential {
    char secret[CREDENTIAL_SIZE]; /* the caller's to wipe (explicit_bzero) */
    struct credential_record record;
};

/* How somebody signed in, which the audit trail has before the name: "console anna". */
enum signed_in_by { BY_SESSION, BY_TOKEN, BY_PROXY };

/* The operator and the session, as the store has them now; or a token, as if it were both. */
struct signed_in {
    enum signed_in_by by;
    struct operator_record who;
    struct credential_record session;
};

/* A new link for an operator. Deletes links and sessions that have been over for
 * CREDENTIAL_KEPT_MS, so that as many are kept as were made in that time. NOT_FOUND: there is no
 * such one; CONFLICT: it is disabled. */
MUST_CHECK enum status credential_make_link(struct platform_store *store, const char *name,
                                            int64_t now_ms, struct credential *link,
                                            struct error *error);

/* Uses a link up, and makes a session of it for who asks from this address. From then on the store
 * acts as that operator. */
MUST_CHECK enum status credential_sign_in(struct platform_store *store, struct text link,
                                          const char *address, int64_t now_ms,
                                          struct credential *session, struct signed_in *signed_in,
                                          struct error *error);

MUST_CHECK enum status credential_find_session(struct platform_store *store, struct text session,
                                               int64_t now_ms, struct signed_in *signed_in,
                                               struct error *error);

/* An operator whom a sign-in proxy names, but no owner. The first request of a day (UTC) begins a
 * session until the day's end, so the audit trail has a row of it; its secret is thrown away.
 * NOT_FOUND: the operator may not sign in so, or the session was ended; the error says why. */
MUST_CHECK enum status credential_admit_named(struct platform_store *store, const char *name,
                                              const struct address *from, int64_t now_ms,
                                              struct signed_in *signed_in, struct error *error);

/* Ends a session (or a link that was not used). OK also when it was over before. NOT_FOUND. */
MUST_CHECK enum status credential_end(struct platform_store *store, const char *id, int64_t now_ms,
                                      struct error *error);

/* The store acts as who has signed in: "console NAME", "token NAME" or "proxy NAME" in the audit
 * trail. */
void operator_act(struct platform_store *store, const struct signed_in *as, const char *command);

/* The sessions that are neither over nor ended, as begun: only listed. */
extern const struct resource session_resource;

/* ---- the secret behind an id ----------------------------------------------------------------- */

/* Makes one, which is the caller's to wipe, and its digest. */
void credential_make_secret(const char *id, char secret[CREDENTIAL_SIZE],
                            uint8_t digest[CREDENTIAL_DIGEST_SIZE]);
/* The id of a secret. False: the text has not the form of a secret of that kind. */
bool credential_read_id(struct text secret, const char *kind, char id[CREDENTIAL_ID_SIZE]);
/* Is the digest that of the secret? Takes as long for every answer. */
bool credential_fits(struct text secret, const uint8_t digest[CREDENTIAL_DIGEST_SIZE]);
