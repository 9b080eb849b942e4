/*
 * The key file, and AES-256-GCM and HMAC-SHA-256 under keys derived from it; see secrets.h.
 *
 * The file is written under another name and linked into place, so that a crash leaves no half of a
 * key, and of two makers one wins and the other one's key was never used for anything.
 */
#include "sealing/secrets.h"

#include <sys/stat.h>
#include <unistd.h>

#include <openssl/rand.h>

#include "base/file.h"
#include "base/memory.h"

#define NONCE_SIZE 12
#define TAG_SIZE 16
#define SEALING "sealing"

struct secrets {
    uint8_t key[SECRETS_KEY_SIZE];
};

/* ---- the file -------------------------------------------------------------------------------- */

static enum status write_key(const char *path, struct error *error)
{
    uint8_t key[SECRETS_KEY_SIZE];
    CHECK(RAND_bytes(key, sizeof key) == 1);
    enum status status = file_make(path, 0600, (struct text){(const char *)key, sizeof key}, error);
    explicit_bzero(key, sizeof key);
    return status;
}

enum status secrets_make_key(const char *path, bool *made, struct error *error)
{
    struct stat facts;
    struct buffer draft = {0};
    *made = false;
    if (lstat(path, &facts) == 0)
        return stat(path, &facts) == 0 || errno != ENOENT
                   ? STATUS_OK
                   : error_invalid(error, "%s: is a link to a file that is not there", path);
    buffer_append_format(&draft, "%s.%ld", path, (long)getpid());
    enum status status = write_key(buffer_string(&draft), error);
    if (status == STATUS_OK) {
        *made = link(draft.data, path) == 0;
        if (!*made && errno != EEXIST)
            status = error_unavailable(error, "%s: cannot be made (%s)", path, strerror(errno));
        (void)unlink(draft.data);
        (void)file_sync_directory(path);
    }
    buffer_free(&draft);
    return status;
}

enum status secrets_open_key(struct secrets **secrets, const char *path, struct error *error)
{
    struct buffer bytes = {0};
    enum status status = file_read_secret(path, SECRETS_KEY_SIZE, &bytes, error);
    if (status == STATUS_NOT_FOUND)
        status = error_unavailable(
            error,
            "%s: there is no such file (the key of stored secrets); copy it from another instance "
            "or a backup; for a new store, run: croupier migrate",
            path);
    else if (status == STATUS_OK && bytes.size != SECRETS_KEY_SIZE)
        status = error_set(error, STATUS_MALFORMED,
                           "%s: is not a key, which is %d bytes; restore it from a backup (secrets "
                           "that were stored under another key cannot be read)",
                           path, SECRETS_KEY_SIZE);
    if (status == STATUS_OK) {
        *secrets = memory_alloc_zeroed(1, sizeof **secrets);
        memcpy((*secrets)->key, bytes.data, SECRETS_KEY_SIZE);
    }
    buffer_wipe(&bytes);
    return status;
}

void secrets_destroy(struct secrets **secrets)
{
    if (*secrets != NULL)
        explicit_bzero(*secrets, sizeof **secrets);
    memory_free(*secrets);
    *secrets = NULL;
}

/* ---- keys of purposes ------------------------------------------------------------------------ */

void secrets_derive(const struct secrets *secrets, const char *purpose,
                    uint8_t key[SECRETS_KEY_SIZE])
{
    digest_hmac_sha256((struct text){(const char *)secrets->key, SECRETS_KEY_SIZE},
                       text_of(purpose), key);
}

struct secrets *secrets_of_purpose(const struct secrets *secrets, const char *purpose)
{
    struct secrets *derived = memory_alloc_zeroed(1, sizeof *derived);
    secrets_derive(secrets, purpose, derived->key);
    return derived;
}

/* ---- sealing --------------------------------------------------------------------------------- */

static EVP_CIPHER_CTX *cipher_begin(const struct secrets *secrets, const uint8_t *nonce,
                                    struct text context, int encrypt)
{
    uint8_t key[SECRETS_KEY_SIZE];
    int size = 0;
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    CHECK(cipher != NULL);
    secrets_derive(secrets, SEALING, key);
    CHECK(EVP_CipherInit_ex(cipher, EVP_aes_256_gcm(), NULL, key, nonce, encrypt) == 1);
    explicit_bzero(key, sizeof key);
    CHECK(EVP_CipherUpdate(cipher, NULL, &size, (const unsigned char *)context.at,
                           (int)context.size) == 1);
    return cipher;
}

void secrets_seal(const struct secrets *secrets, struct text context, struct text plain,
                  struct buffer *out)
{
    uint8_t sealed[SECRETS_PLAIN_MAX + SECRETS_SEAL_OVERHEAD];
    uint8_t none[1];
    int size = 0;
    CHECK(plain.size <= SECRETS_PLAIN_MAX);
    CHECK(RAND_bytes(sealed, NONCE_SIZE) == 1);
    EVP_CIPHER_CTX *cipher = cipher_begin(secrets, sealed, context, 1);
    CHECK(EVP_CipherUpdate(cipher, sealed + NONCE_SIZE, &size, (const unsigned char *)plain.at,
                           (int)plain.size) == 1);
    CHECK((size_t)size == plain.size);
    CHECK(EVP_CipherFinal_ex(cipher, none, &size) == 1 && size == 0);
    CHECK(EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, TAG_SIZE,
                              sealed + NONCE_SIZE + plain.size) == 1);
    EVP_CIPHER_CTX_free(cipher);
    buffer_append(out, sealed, plain.size + SECRETS_SEAL_OVERHEAD);
}

enum status secrets_unseal(const struct secrets *secrets, struct text context, struct text sealed,
                           struct buffer *out)
{
    uint8_t plain[SECRETS_PLAIN_MAX];
    uint8_t none[1];
    uint8_t tag[TAG_SIZE];
    int size = 0;
    if (sealed.size < SECRETS_SEAL_OVERHEAD ||
        sealed.size > SECRETS_SEAL_OVERHEAD + SECRETS_PLAIN_MAX)
        return STATUS_MALFORMED;
    size_t plain_size = sealed.size - SECRETS_SEAL_OVERHEAD;
    const uint8_t *bytes = (const uint8_t *)sealed.at;
    memcpy(tag, bytes + NONCE_SIZE + plain_size, TAG_SIZE);
    EVP_CIPHER_CTX *cipher = cipher_begin(secrets, bytes, context, 0);
    CHECK(EVP_CipherUpdate(cipher, plain, &size, bytes + NONCE_SIZE, (int)plain_size) == 1);
    CHECK(EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_SET_TAG, TAG_SIZE, tag) == 1);
    bool genuine = EVP_CipherFinal_ex(cipher, none, &size) == 1;
    EVP_CIPHER_CTX_free(cipher);
    if (genuine)
        buffer_append(out, plain, plain_size);
    explicit_bzero(plain, sizeof plain);
    return genuine ? STATUS_OK : STATUS_MALFORMED;
}
