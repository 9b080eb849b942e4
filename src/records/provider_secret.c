/* Sealing for one provider: the context is its id; see provider_secret.h. */
#include "records/provider_secret.h"

#include <string.h>

static void append_context(struct buffer *out, const struct provider_record *record)
{
    buffer_append_format(out, "provider:%s", record->id);
}

void provider_secret_seal(const struct secrets *secrets, struct provider_record *record,
                          struct text secret)
{
    struct buffer context = {0};
    struct buffer sealed = {0};
    CHECK(secret.size > 0);
    append_context(&context, record);
    secrets_seal(secrets, buffer_text(&context), secret, &sealed);
    CHECK(sealed.size <= sizeof record->secret);
    memcpy(record->secret, sealed.data, sealed.size);
    record->secret_size = sealed.size;
    buffer_free(&sealed);
    buffer_free(&context);
}

enum status provider_secret_unseal(const struct secrets *secrets,
                                   const struct provider_record *record, struct buffer *out)
{
    struct buffer context = {0};
    append_context(&context, record);
    enum status status =
        secrets_unseal(secrets, buffer_text(&context),
                       (struct text){(const char *)record->secret, record->secret_size}, out);
    buffer_free(&context);
    return status;
}
