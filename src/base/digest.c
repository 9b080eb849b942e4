/* Each thread has a context, found by a thread-local pointer. The pthread key exists only to free
 * it when the thread ends. */
#include "base/digest.h"

#include <openssl/evp.h>

#include "base/status.h"

#define HMAC_BLOCK_SIZE 64

static pthread_once_t first_time = PTHREAD_ONCE_INIT;
static pthread_key_t context_key;
static _Thread_local EVP_MD_CTX *thread_context;

static void free_context(void *context)
{
    thread_context = NULL;
    EVP_MD_CTX_free(context);
}

static void make_key(void)
{
    CHECK(pthread_key_create(&context_key, free_context) == 0);
}

static EVP_MD_CTX *make_context(void)
{
    CHECK(pthread_once(&first_time, make_key) == 0);
    EVP_MD *algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
    thread_context = EVP_MD_CTX_new();
    CHECK(algorithm != NULL && thread_context != NULL);
    CHECK(EVP_DigestInit_ex2(thread_context, algorithm, NULL) == 1);
    EVP_MD_free(algorithm); /* the context holds a reference of its own */
    CHECK(pthread_setspecific(context_key, thread_context) == 0);
    return thread_context;
}

void digest_sha256(const void *bytes, size_t size, uint8_t out[DIGEST_SIZE])
{
    EVP_MD_CTX *context = thread_context != NULL ? thread_context : make_context();
    /* NULL keeps the context's algorithm, so that OpenSSL looks none up. */
    CHECK(EVP_DigestInit_ex2(context, NULL, NULL) == 1);
    CHECK(EVP_DigestUpdate(context, bytes, size) == 1);
    CHECK(EVP_DigestFinal_ex(context, out, NULL) == 1);
}

void digest_sha1(const void *bytes, size_t size, uint8_t out[DIGEST_SHA1_SIZE])
{
    CHECK(EVP_Digest(bytes, size, out, NULL, EVP_sha1(), NULL) == 1);
}

/* The digest of the padded key followed by the bytes. */
static void digest_padded(const uint8_t key[HMAC_BLOCK_SIZE], uint8_t pad, const void *bytes,
                          size_t size, uint8_t out[DIGEST_SIZE])
{
    EVP_MD_CTX *context = thread_context != NULL ? thread_context : make_context();
    uint8_t padded[HMAC_BLOCK_SIZE];
    for (size_t i = 0; i < sizeof padded; i++)
        padded[i] = key[i] ^ pad;
    CHECK(EVP_DigestInit_ex2(context, NULL, NULL) == 1);
    CHECK(EVP_DigestUpdate(context, padded, sizeof padded) == 1);
    CHECK(EVP_DigestUpdate(context, bytes, size) == 1);
    CHECK(EVP_DigestFinal_ex(context, out, NULL) == 1);
    explicit_bzero(padded, sizeof padded);
}

/* RFC 2104, by the thread's context: OpenSSL's one-shot HMAC() takes several times as long. */
void digest_hmac_sha256(struct text key, struct text data, uint8_t out[DIGEST_SIZE])
{
    uint8_t block[HMAC_BLOCK_SIZE] = {0};
    if (key.size > sizeof block)
        digest_sha256(key.at, key.size, block);
    else if (key.size > 0)
        memcpy(block, key.at, key.size);
    digest_padded(block, 0x36, data.at, data.size, out);
    digest_padded(block, 0x5C, out, DIGEST_SIZE, out);
    explicit_bzero(block, sizeof block);
}

/* ---- in pieces ------------------------------------------------------------------------------- */

struct digest *digest_begin(void)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    CHECK(context != NULL && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1);
    return (struct digest *)(void *)context;
}

void digest_add(struct digest *digest, const void *bytes, size_t size)
{
    CHECK(EVP_DigestUpdate((EVP_MD_CTX *)(void *)digest, bytes, size) == 1);
}

void digest_end(struct digest **digest, uint8_t out[DIGEST_SIZE])
{
    EVP_MD_CTX *context = (EVP_MD_CTX *)(void *)*digest;
    CHECK(EVP_DigestFinal_ex(context, out, NULL) == 1);
    EVP_MD_CTX_free(context);
    *digest = NULL;
}
