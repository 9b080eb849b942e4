/* A context a thread, found by a thread-local pointer; the key is there for its destructor
 * alone. */
#include "base/digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>

#include "base/status.h"

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
    /* Without an algorithm: the one that the context has, so that none is looked up. */
    CHECK(EVP_DigestInit_ex2(context, NULL, NULL) == 1);
    CHECK(EVP_DigestUpdate(context, bytes, size) == 1);
    CHECK(EVP_DigestFinal_ex(context, out, NULL) == 1);
}

void digest_hmac_sha256(struct text key, struct text data, uint8_t out[DIGEST_SIZE])
{
    CHECK(HMAC(EVP_sha256(), key.at, (int)key.size, (const unsigned char *)data.at, data.size, out,
               NULL) != NULL);
}
