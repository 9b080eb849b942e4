/*
 * TLS by OpenSSL, without sockets. A custom BIO lends OpenSSL the ciphertext that has arrived and
 * gathers the ciphertext that OpenSSL sends, so an idle session keeps no buffer and nothing is
 * copied twice.
 *
 * OpenSSL has one error queue per thread. It is cleared before each call whose result is checked,
 * so that one connection never sees another's errors.
 */
#include "http/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <uv.h>

#include "base/memory.h"
#include "http/tls_session.h"

struct http_tls {
    uv_mutex_t lock;  /* guards `context`, which its owner replaces while threads use it */
    SSL_CTX *context; /* counts its sessions */
    BIO_METHOD *method;
};

struct tls_session {
    SSL *ssl;
    struct text in;     /* lent */
    struct buffer *out; /* the thread's */
};

/* ---- the BIO --------------------------------------------------------------------------------- */

static int bio_read(BIO *bio, char *at, size_t room, size_t *size)
{
    struct tls_session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    *size = room < session->in.size ? room : session->in.size;
    if (*size == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(at, session->in.at, *size);
    text_skip(&session->in, *size);
    return 1;
}

static int bio_write(BIO *bio, const char *at, size_t size, size_t *written)
{
    struct tls_session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    buffer_append(session->out, at, size);
    *written = size;
    return 1;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static BIO_METHOD *make_method(void)
{
    /* No index of its own: no code looks for it by one, there are only 127, and each SIGHUP makes a
     * method. */
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "croupier");
    CHECK(method != NULL && BIO_meth_set_read_ex(method, bio_read) == 1 &&
          BIO_meth_set_write_ex(method, bio_write) == 1 &&
          BIO_meth_set_ctrl(method, bio_control) == 1);
    return method;
}

/* ---- certificate and key --------------------------------------------------------------------- */

static int select_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_size,
                           const unsigned char *offered, unsigned offered_size, void *argument)
{
    static const unsigned char ours[] = "\x08http/1.1\x08http/1.0";
    unsigned char *found = NULL;
    (void)ssl;
    (void)argument;
    /* RFC 7301 section 3.2: when there is nothing in common, no_application_protocol. */
    if (SSL_select_next_proto(&found, chosen_size, ours, sizeof ours - 1, offered, offered_size) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

static enum status tls_error(struct error *error, const char *what, const char *path)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(code);
    unsigned long first = ERR_peek_error();
    if (ERR_GET_LIB(first) == ERR_LIB_SYS)
        reason = strerror(ERR_GET_REASON(first));
    else if (ERR_GET_LIB(first) == ERR_LIB_PEM && ERR_GET_REASON(first) == PEM_R_NO_START_LINE)
        reason = "it holds nothing in PEM form (-----BEGIN …)";
    else if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == ERR_R_PEM_LIB)
        reason = "it is no PEM, damaged, or encrypted: croupier asks for no password";
    ERR_clear_error();
    return error_invalid(error, "%s %s: %s", what, path, reason != NULL ? reason : "unknown error");
}

static enum status load(SSL_CTX *context, const char *certificate_path, const char *key_path,
                        struct error *error)
{
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(context, certificate_path) != 1)
        return tls_error(error, "cannot use the TLS certificate", certificate_path);
    ERR_clear_error();
    if (SSL_CTX_use_PrivateKey_file(context, key_path, SSL_FILETYPE_PEM) != 1)
        return tls_error(error, "cannot use the TLS key", key_path);
    ERR_clear_error();
    if (SSL_CTX_check_private_key(context) != 1)
        return tls_error(error, "the TLS key does not belong to the certificate:", key_path);
    return STATUS_OK;
}

static SSL_CTX *make_context(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    CHECK(context != NULL);
    CHECK(SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1);
    /* TLS 1.2 offers only suites with forward secrecy and authenticated encryption (RFC 9325
     * section 4.2); TLS 1.3 has no others. */
    CHECK(SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1);
    (void)SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                           SSL_OP_CIPHER_SERVER_PREFERENCE |
                                           SSL_OP_PRIORITIZE_CHACHA | SSL_OP_IGNORE_UNEXPECTED_EOF);
    (void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    /* Sessions resume by tickets; the server keeps no session cache. */
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    CHECK(SSL_CTX_set_session_id_context(context, (const unsigned char *)"croupier", 8) == 1);
    SSL_CTX_set_alpn_select_cb(context, select_protocol, NULL);
    /* A service has no user to ask, so an encrypted key is refused instead of prompting on the
     * terminal. */
    SSL_CTX_set_default_passwd_cb_userdata(context, (void *)(uintptr_t) "");
    return context;
}

enum status http_tls_create(struct http_tls **tls, const char *certificate_path,
                            const char *key_path, struct error *error)
{
    SSL_CTX *context = make_context();
    enum status status = load(context, certificate_path, key_path, error);
    if (status != STATUS_OK) {
        SSL_CTX_free(context);
        return status;
    }
    struct http_tls *created = memory_alloc_zeroed(1, sizeof *created);
    CHECK(uv_mutex_init(&created->lock) == 0);
    created->context = context;
    created->method = make_method();
    *tls = created;
    return STATUS_OK;
}

static int64_t expiry_ms_of(const X509 *certificate)
{
    struct tm time;
    /* OpenSSL has parsed this certificate, so its time is valid. */
    CHECK(ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) == 1);
    return (int64_t)timegm(&time) * 1000;
}

int64_t http_tls_expiry_ms(const struct http_tls *tls)
{
    STACK_OF(X509) *chain = NULL;
    int64_t first_ms = expiry_ms_of(SSL_CTX_get0_certificate(tls->context));
    CHECK(SSL_CTX_get0_chain_certs(tls->context, &chain) == 1);
    for (int i = 0; i < sk_X509_num(chain); i++) {
        int64_t expiry_ms = expiry_ms_of(sk_X509_value(chain, i));
        if (expiry_ms < first_ms)
            first_ms = expiry_ms;
    }
    return first_ms;
}

void http_tls_replace(struct http_tls *tls, struct http_tls **other)
{
    SSL_CTX *before = tls->context;
    uv_mutex_lock(&tls->lock);
    tls->context = (*other)->context;
    uv_mutex_unlock(&tls->lock);
    (*other)->context = before;
    http_tls_destroy(other);
}

void http_tls_destroy(struct http_tls **tls)
{
    struct http_tls *gone = memory_take(tls);
    if (gone == NULL)
        return;
    SSL_CTX_free(gone->context);
    BIO_meth_free(gone->method);
    uv_mutex_destroy(&gone->lock);
    memory_free(gone);
}

/* ---- sessions -------------------------------------------------------------------------------- */

struct tls_session *tls_session_create(struct http_tls *tls, struct buffer *out)
{
    struct tls_session *session = memory_alloc_zeroed(1, sizeof *session);
    session->out = out;
    uv_mutex_lock(&tls->lock);
    session->ssl = SSL_new(tls->context);
    uv_mutex_unlock(&tls->lock);
    BIO *bio = BIO_new(tls->method);
    CHECK(session->ssl != NULL && bio != NULL); /* as with memory_alloc */
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    SSL_set_bio(session->ssl, bio, bio);
    SSL_set_accept_state(session->ssl);
    return session;
}

void tls_session_destroy(struct tls_session **session)
{
    struct tls_session *gone = memory_take(session);
    if (gone == NULL)
        return;
    SSL_free(gone->ssl);
    memory_free(gone);
}

void tls_session_feed(struct tls_session *session, struct text cipher)
{
    CHECK(session->in.size == 0);
    session->in = cipher;
}

enum tls_read tls_session_read(struct tls_session *session, char *plain, size_t room, size_t *size)
{
    ERR_clear_error();
    if (SSL_read_ex(session->ssl, plain, room, size) == 1)
        return TLS_DATA;
    switch (SSL_get_error(session->ssl, 0)) {
    case SSL_ERROR_WANT_READ:
        if (session->in.size == 0)
            return TLS_MORE;
        break; /* OpenSSL wants more but left some input; a retry would never end */
    case SSL_ERROR_ZERO_RETURN:
        session->in.size = 0;
        return TLS_ENDED;
    default:
        break;
    }
    ERR_clear_error();
    session->in.size = 0;
    return TLS_FAILED;
}

bool tls_session_established(const struct tls_session *session)
{
    return SSL_is_init_finished(session->ssl) == 1;
}

enum status tls_session_encrypt(struct tls_session *session, struct text plain)
{
    size_t written = 0;
    ERR_clear_error();
    if (SSL_write_ex(session->ssl, plain.at, plain.size, &written) == 1 && written == plain.size)
        return STATUS_OK;
    ERR_clear_error();
    return STATUS_UNAVAILABLE;
}

void tls_session_finish(struct tls_session *session)
{
    ERR_clear_error();
    (void)SSL_shutdown(
        session->ssl); /* it only writes close_notify and does not wait for the answer */
    ERR_clear_error();
}
