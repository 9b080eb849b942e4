#pragma once

#include "base/text.h"
#include "http/tls.h"

/*
 * One connection's TLS: it decrypts input and encrypts output, without sockets. It appends outgoing
 * ciphertext to the buffer given at creation, which the thread's sessions share. Private to http/.
 * Threads: the connection's.
 */
struct tls_session;

struct tls_session *tls_session_create(struct http_tls *tls, struct buffer *out);
void tls_session_destroy(struct tls_session **session);

/* Lends the session ciphertext that has arrived. The bytes must stay valid until tls_session_read
 * returns TLS_MORE. */
void tls_session_feed(struct tls_session *session, struct text cipher);

enum tls_read {
    TLS_DATA,   /* `size` bytes of plain text */
    TLS_MORE,   /* all input is used up; more ciphertext is needed */
    TLS_ENDED,  /* the client has sent close_notify */
    TLS_FAILED, /* close the connection; an alert may be in the buffer */
};
enum tls_read tls_session_read(struct tls_session *session, char *plain, size_t room, size_t *size);

bool tls_session_established(const struct tls_session *session);

MUST_CHECK enum status tls_session_encrypt(struct tls_session *session, struct text plain);

/* close_notify */
void tls_session_finish(struct tls_session *session);
