#pragma once

#include "base/status.h"

/*
 * A server's certificate and private key, ready for use. TLS 1.2 (ECDHE with AES-GCM or
 * ChaCha20-Poly1305 alone) and 1.3, ALPN "http/1.1" (kept open for h2), no compression, no
 * renegotiation, session tickets. All threads share it; its owner destroys it after the servers
 * that use it. Errors name the file and OpenSSL's reason; never the key.
 */
struct http_tls;

MUST_CHECK enum status http_tls_create(struct http_tls **tls, const char *certificate_path,
                                       const char *key_path, struct error *error);
void http_tls_destroy(struct http_tls **tls); /* NULL is fine */
/* Connections from now on get the other's certificate; open ones keep theirs. Destroys the
 * other. */
void http_tls_replace(struct http_tls *tls, struct http_tls **other);
/* When the first certificate of the chain expires: wall clock, milliseconds since 1970. Call it on
 * the owner's thread. */
int64_t http_tls_expiry_ms(const struct http_tls *tls);
