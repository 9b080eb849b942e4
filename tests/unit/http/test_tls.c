/* HTTP through TLS: handshakes, whole answers, protocols, and what is wrong with a certificate. */
#include "loopback.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

static struct loopback loopback;
static struct http_tls *tls;
static char directory[] = "/tmp/croupier-test-tls-XXXXXX";
static char certificate_path[64], key_path[64], other_key_path[64];

static EVP_PKEY *write_key(const char *path)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    assert_int_equal(fclose(file), 0);
    return key;
}

static int make_certificate(void **state)
{
    struct error error;
    assert_non_null(mkdtemp(directory));
    (void)snprintf(certificate_path, sizeof certificate_path, "%s/cert.pem", directory);
    (void)snprintf(key_path, sizeof key_path, "%s/key.pem", directory);
    (void)snprintf(other_key_path, sizeof other_key_path, "%s/other.pem", directory);
    EVP_PKEY_free(write_key(other_key_path));
    EVP_PKEY *key = write_key(key_path);
    X509 *certificate = X509_new();
    (void)ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    (void)X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    (void)X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    (void)X509_set_pubkey(certificate, key);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    FILE *file = fopen(certificate_path, "w");
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    assert_int_equal(fclose(file), 0);
    X509_free(certificate);
    EVP_PKEY_free(key);
    if (http_tls_create(&tls, certificate_path, key_path, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    return 0;
}

static int remove_certificate(void **state)
{
    http_tls_destroy(&tls);
    (void)unlink(certificate_path);
    (void)unlink(key_path);
    (void)unlink(other_key_path);
    return rmdir(directory);
}

static int open_loopback(void **state)
{
    loopback_open(&loopback, tls, 8);
    return 0;
}

static int close_loopback(void **state)
{
    loopback_close(&loopback);
    return 0;
}

/* ---- a client -------------------------------------------------------------------------------- */

struct tls_client {
    struct client client;
    SSL_CTX *context;
    SSL *ssl;
};

static struct tls_client tls_client_open(int version, const char *protocol)
{
    struct tls_client client = {.client = client_open(&loopback)};
    client.context = SSL_CTX_new(TLS_client_method());
    (void)SSL_CTX_set_max_proto_version(client.context, version);
    client.ssl = SSL_new(client.context);
    if (protocol != NULL)
        (void)SSL_set_alpn_protos(client.ssl, (const unsigned char *)protocol,
                                  (unsigned)strlen(protocol));
    (void)SSL_set_fd(client.ssl, client.client.descriptor);
    SSL_set_connect_state(client.ssl);
    int flags = fcntl(client.client.descriptor, F_GETFL);
    assert_int_equal(fcntl(client.client.descriptor, F_SETFL, flags | O_NONBLOCK), 0);
    return client;
}

static void tls_client_close(struct tls_client *client)
{
    SSL_free(client->ssl);
    SSL_CTX_free(client->context);
    client_close(&client->client);
}

static bool wants_more(struct tls_client *client, int result)
{
    int error = SSL_get_error(client->ssl, result);
    loopback_turn(&loopback, client->client.descriptor);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

static bool shake_hands(struct tls_client *client)
{
    int result = SSL_do_handshake(client->ssl);
    while (result != 1 && wants_more(client, result))
        result = SSL_do_handshake(client->ssl);
    return result == 1;
}

static void tls_send(struct tls_client *client, struct text bytes)
{
    int result = SSL_write(client->ssl, bytes.at, (int)bytes.size);
    while (result <= 0 && wants_more(client, result))
        result = SSL_write(client->ssl, bytes.at, (int)bytes.size);
    assert_int_equal(result, (int)bytes.size);
}

/* Until `size` bytes have come or the stream has ended; true when it ended in good order. */
static bool tls_receive(struct tls_client *client, size_t size)
{
    static char bytes[16384];
    while (client->client.received.size < size) {
        int result = SSL_read(client->ssl, bytes, sizeof bytes);
        if (result > 0)
            buffer_append(&client->client.received, bytes, (size_t)result);
        else if (!wants_more(client, result))
            return SSL_get_error(client->ssl, result) == SSL_ERROR_ZERO_RETURN;
    }
    return false;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void serve(int version)
{
    struct tls_client client = tls_client_open(version, "\x02h2\x08http/1.1");
    assert_true(shake_hands(&client));
    assert_int_equal(SSL_version(client.ssl), version);
    const unsigned char *chosen;
    unsigned size;
    SSL_get0_alpn_selected(client.ssl, &chosen, &size);
    assert_true(text_equals((struct text){(const char *)chosen, size}, TEXT("http/1.1")));
    tls_send(&client, TEXT(GET("/1") GET("/count")));
    tls_send(&client, TEXT("GET /last HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"));
    assert_true(tls_receive(&client, SIZE_MAX));
    assert_true(client_has(&client.client, "<GET /1") && client_has(&client.client, "<2>") &&
                client_has(&client.client, "<GET /last"));
    tls_client_close(&client);
}

TEST_WITH(requests_are_served_through_tls_1_2_and_1_3, open_loopback, close_loopback)
{
    serve(TLS1_2_VERSION);
    serve(TLS1_3_VERSION);
}

TEST_WITH(tls_1_1_is_refused, open_loopback, close_loopback)
{
    struct tls_client client = tls_client_open(TLS1_1_VERSION, NULL);
    assert_false(shake_hands(&client));
    WAIT_UNTIL(&loopback, loopback.events[HTTP_EVENT_TLS_FAILED] == 1);
    tls_client_close(&client);
}

TEST_WITH(a_client_that_speaks_other_protocols_only_is_refused, open_loopback, close_loopback)
{
    struct tls_client client = tls_client_open(TLS1_3_VERSION, "\x02h2");
    assert_false(shake_hands(&client));
    assert_int_equal(ERR_GET_REASON(ERR_peek_last_error()),
                     SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
    ERR_clear_error();
    WAIT_UNTIL(&loopback, loopback.events[HTTP_EVENT_TLS_FAILED] == 1);
    tls_client_close(&client);
}

TEST_WITH(a_large_answer_arrives_whole, open_loopback, close_loopback)
{
    struct tls_client client = tls_client_open(TLS1_3_VERSION, NULL);
    assert_true(shake_hands(&client));
    tls_send(&client, TEXT(GET("/large") GET("/after")));
    (void)tls_receive(&client, LARGE_SIZE);
    char *body = strstr(buffer_string(&client.client.received), "\r\n\r\n") + 4;
    size_t head = (size_t)(body - client.client.received.data);
    while (!client_has(&client.client, "<GET /after"))
        (void)tls_receive(&client, client.client.received.size + 1);
    body = client.client.received.data + head;
    for (size_t i = 0; i < LARGE_SIZE; i++)
        if (body[i] != 'x')
            fail_msg("byte %zu is wrong", i);
    assert_true(text_starts_with((struct text){body + LARGE_SIZE, 8}, TEXT("HTTP/1.1")));
    assert_int_equal(loopback.outcomes, 2);
    tls_client_close(&client);
}

TEST_WITH(a_request_set_aside_is_answered_later, open_loopback, close_loopback)
{
    struct tls_client client = tls_client_open(TLS1_3_VERSION, NULL);
    assert_true(shake_hands(&client));
    tls_send(&client, TEXT(GET("/later")));
    WAIT_UNTIL(&loopback, loopback.waiting != NULL);
    reply_in_full(loopback.waiting);
    (void)tls_receive(&client, 50);
    assert_true(client_has(&client.client, "200 OK"));
    tls_client_close(&client);
}

TEST_WITH(a_reader_that_stops_is_dropped, open_loopback, close_loopback)
{
    struct tls_client client = tls_client_open(TLS1_3_VERSION, NULL);
    assert_true(shake_hands(&client));
    tls_send(&client, TEXT(GET("/large")));
    WAIT_UNTIL(&loopback, loopback.handled == 1);
    loopback_advance(&loopback, DEADLINE_MS);
    WAIT_UNTIL(&loopback, loopback.incomplete == 1);
    WAIT_UNTIL(&loopback, loopback.server->connection_count == 0);
    tls_client_close(&client);
}

TEST_WITH(a_handshake_has_a_deadline, open_loopback, close_loopback)
{
    struct client silent = client_open(&loopback);
    loopback_advance(&loopback, 900);
    client_read(&silent);
    assert_false(silent.ended);
    loopback_advance(&loopback, DEADLINE_MS - 900);
    client_expect_end(&silent);
    assert_int_equal(silent.received.size, 0);
    client_close(&silent);
}

TEST_WITH(plain_http_is_told_that_tls_is_wanted, open_loopback, close_loopback)
{
    static const struct text requests[] = {
        TEXT_INIT(GET("/")),
        TEXT_INIT("\r\n" GET("/")),
        TEXT_INIT("POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc"),
    };
    for (unsigned i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        struct client plain = client_open(&loopback);
        for (size_t at = 0; at < requests[i].size; at++)
            client_send(&plain, (struct text){requests[i].at + at, 1});
        client_expect_end(&plain);
        assert_true(client_has(&plain, "HTTP/1.1 400 Bad Request\r\n"));
        assert_true(client_has(&plain, "\"https_required\""));
        assert_int_equal(client_count(&plain, "HTTP/1.1"), 1);
        assert_int_equal(loopback.events[HTTP_EVENT_TLS_FAILED], i + 1);
        client_close(&plain);
    }
    struct client head = client_open(&loopback);
    SEND(&head, "HEAD / HTTP/1.1\r\n" HOST "\r\n" GET("/"));
    client_expect_end(&head);
    assert_true(client_has(&head, "HTTP/1.1 400 ") && !client_has(&head, "https_required"));
    client_close(&head);
    assert_int_equal(loopback.handled, 0);
    assert_int_equal(loopback.refused, 4);
}

TEST_WITH(what_is_neither_tls_nor_http_gets_no_answer_in_plain, open_loopback, close_loopback)
{
    static const struct text noise[] = {TEXT_INIT("\x16\x03\x01\x00\x05hello"),
                                        TEXT_INIT("\0\0\0\0\0"), TEXT_INIT("\x80\x2e\x01\x03\x01")};
    for (size_t i = 0; i < sizeof noise / sizeof noise[0]; i++) {
        struct client client = client_open(&loopback);
        client_send(&client, noise[i]);
        loopback_advance(&loopback,
                         DEADLINE_MS); /* what may yet become a handshake is waited for */
        client_expect_end(&client);
        assert_false(client_has(&client, "HTTP"));
        client_close(&client);
    }
}

TEST_WITH(tls_1_2_has_forward_secrecy_and_authenticated_encryption, open_loopback, close_loopback)
{
    static const char *const good[] = {"ECDHE-ECDSA-AES128-GCM-SHA256",
                                       "ECDHE-ECDSA-AES256-GCM-SHA384",
                                       "ECDHE-ECDSA-CHACHA20-POLY1305"};
    static const char *const bad[] = {"ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384",
                                      "ECDHE-ECDSA-AES128-SHA256"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct tls_client client = tls_client_open(TLS1_2_VERSION, NULL);
        assert_int_equal(SSL_set_cipher_list(client.ssl, good[i]), 1);
        assert_true(shake_hands(&client));
        tls_client_close(&client);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tls_client client = tls_client_open(TLS1_2_VERSION, NULL);
        assert_int_equal(SSL_set_cipher_list(client.ssl, bad[i]), 1);
        assert_false(shake_hands(&client));
        ERR_clear_error();
        tls_client_close(&client);
    }
}

TEST_WITH(the_certificate_may_change_while_connections_are_open, open_loopback, close_loopback)
{
    struct error error;
    struct http_tls *next = NULL;
    struct tls_client before = tls_client_open(TLS1_3_VERSION, NULL);
    assert_true(shake_hands(&before));
    assert_int_equal(http_tls_create(&next, certificate_path, key_path, &error), STATUS_OK);
    http_tls_replace(tls, &next);
    assert_null(next);
    struct tls_client after = tls_client_open(TLS1_3_VERSION, NULL);
    assert_true(shake_hands(&after));
    tls_send(&before, TEXT(GET("/")));
    tls_send(&after, TEXT(GET("/")));
    (void)tls_receive(&before, 50);
    (void)tls_receive(&after, 50);
    assert_int_equal(loopback.outcomes, 2);
    tls_client_close(&before);
    tls_client_close(&after);
}

TEST(what_is_wrong_with_the_files_is_said)
{
    struct error error;
    struct http_tls *none = NULL;
    assert_int_equal(http_tls_create(&none, "/no/such/file", key_path, &error), STATUS_INVALID);
    assert_non_null(strstr(error.text, "/no/such/file"));
    assert_non_null(strstr(error.text, "No such file"));
    assert_int_equal(http_tls_create(&none, key_path, key_path, &error), STATUS_INVALID);
    assert_int_equal(http_tls_create(&none, certificate_path, certificate_path, &error),
                     STATUS_INVALID);
    assert_non_null(strstr(error.text, "key"));
    assert_int_equal(http_tls_create(&none, certificate_path, other_key_path, &error),
                     STATUS_INVALID);
    assert_non_null(strstr(error.text, other_key_path));
    assert_null(none);
}

static void append_certificate(EVP_PKEY *key, const char *path, long seconds)
{
    X509 *certificate = X509_new();
    (void)ASN1_INTEGER_set(X509_get_serialNumber(certificate), 2);
    (void)X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    /* 2001-09-09T01:46:40Z is a round number of seconds. */
    assert_non_null(ASN1_TIME_set(X509_getm_notAfter(certificate), 1000000000 + seconds));
    (void)X509_set_pubkey(certificate, key);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    assert_int_equal(fclose(file), 0);
    X509_free(certificate);
}

/* What a client that checks the chain will refuse first. */
TEST(a_chain_expires_with_its_first_certificate)
{
    static const long seconds[] = {7200, 3600, 5000};
    static const int64_t expected_ms[] = {1000007200000, 1000003600000, 1000003600000};
    char chain_path[80], chain_key_path[80];
    (void)snprintf(chain_path, sizeof chain_path, "%s/chain.pem", directory);
    (void)snprintf(chain_key_path, sizeof chain_key_path, "%s/chain.key", directory);
    EVP_PKEY *key = write_key(chain_key_path);
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) {
        struct http_tls *chain = NULL;
        struct error error;
        append_certificate(key, chain_path, seconds[i]);
        assert_int_equal(http_tls_create(&chain, chain_path, chain_key_path, &error), STATUS_OK);
        assert_int_equal(http_tls_expiry_ms(chain), expected_ms[i]);
        http_tls_destroy(&chain);
    }
    EVP_PKEY_free(key);
    assert_int_equal(unlink(chain_path) + unlink(chain_key_path), 0);
}

TESTS_WITH(make_certificate, remove_certificate);
