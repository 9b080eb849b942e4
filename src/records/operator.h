#pragma once

#include "records/customer.h"

/*
 * The users of the operator's console and their means to sign in, and the tokens of machines.
 *
 * A credential is a link that signs in once, or the session that this makes: an id that may be
 * shown, and a secret of which only a digest is stored. Its id says which it is. Some time
 * after they are over credentials are deleted, as nothing else is; the audit trail has what was
 * done. No copy of a store has them: its users sign in there.
 *
 * A token is what a machine calls the admin API with. It has a role of its own and belongs to no
 * operator. As with an API key, rows are kept and a copy of a store has them.
 */

#define OPERATOR_NAME_SIZE 33
#define CREDENTIAL_ID_SIZE 24 /* "lnk_", "ses_" or "cro_" and 16 base62 characters */
#define CREDENTIAL_DIGEST_SIZE 32
#define TOKEN_CIDRS_MAX 16

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

struct token_record {
    char id[CREDENTIAL_ID_SIZE];
    char name[OPERATOR_NAME_SIZE]; /* as an operator's; no other live token has it */
    enum operator_role role;
    uint8_t digest[CREDENTIAL_DIGEST_SIZE]; /* SHA-256 of the whole token */
    size_t cidr_count;                      /* 0: from anywhere; */
    struct cidr cidrs[TOKEN_CIDRS_MAX];     /* else from these */
    int64_t created_ms;
    int64_t expires_ms;   /* 0: never */
    int64_t last_used_ms; /* 0: never; about a minute behind; does not take a revision */
    int64_t revoked_ms;   /* 0: live. A malformed row reads as revoked */
    uint64_t revision;
};

/* Is the token neither revoked nor expired? */
bool token_is_live(const struct token_record *record, int64_t now_ms);

extern const struct record_table operator_table;
extern const struct record_table credential_table;
extern const struct record_table token_table;

extern const struct enum_names operator_roles; /* "reader" */
