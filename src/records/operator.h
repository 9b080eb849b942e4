#pragma once

#include "base/address.h"
#include "records/record.h"

/*
 * The users of the operator's console and their means to sign in.
 *
 * A credential is a link that signs in once, or the session that this makes: an id that may be
 * shown, and a secret of which only a digest is stored. Its id says which it is. Some time
 * after they are over credentials are deleted, as nothing else is; the audit trail has what was
 * done. No copy of a store has them: its users sign in there.
 */

#define OPERATOR_NAME_SIZE 33
#define CREDENTIAL_ID_SIZE 24 /* "lnk_" or "ses_" and 16 base62 characters */
#define CREDENTIAL_DIGEST_SIZE 32

/* Each may what those before it may. */
enum operator_role { ROLE_READER, ROLE_OPERATOR, ROLE_OWNER };
#define ROLE_COUNT 3

struct operator_record {
    char name[OPERATOR_NAME_SIZE]; /* 1 to 32 of [A-Za-z0-9._-] */
    enum operator_role role;
    bool enabled; /* false of a row that is not sound */
    bool removed;
    bool usable; /* false: the stored row is not sound (set on reading) */
    int64_t created_ms;
    uint64_t revision;
};

struct credential_record {
    char id[CREDENTIAL_ID_SIZE];
    char operator_name[OPERATOR_NAME_SIZE];
    uint8_t digest[CREDENTIAL_DIGEST_SIZE]; /* SHA-256 of the whole secret */
    char address[ADDRESS_TEXT_SIZE];        /* a session's, where it was signed in from; else "" */
    int64_t created_ms;
    int64_t expires_ms;
    int64_t ended_ms; /* 0: not used up or signed out. A malformed row reads as ended */
    uint64_t revision;
};

extern const struct record_table operator_table;
extern const struct record_table credential_table;

extern const struct enum_names operator_roles; /* "reader" */
