/* Functions for handlers of a call; see call.h. */
#include "console/call.h"

#include "base/base64url.h"
#include "base/digest.h"

enum status console_begin(struct console_call *call, enum console_long_work work,
                          struct error *error)
{
    static const char *const refusals[CONSOLE_LONG_WORK_COUNT] = {
        [CONSOLE_TRIAL] = "another trial is under way",
        [CONSOLE_SUMS] = "the ledger is being read for another request; try again",
    };
    return atomic_exchange(&call->services->under_way[work], true)
               ? error_conflict(error, "%s", refusals[work])
               : STATUS_OK;
}

void console_end(struct console_call *call, enum console_long_work work)
{
    atomic_store(&call->services->under_way[work], false);
}

void console_tag(struct text document, char tag[CONSOLE_TAG_SIZE])
{
    uint8_t digest[DIGEST_SIZE];
    struct buffer base64 = {0};
    digest_sha256(document.at, document.size, digest);
    buffer_append_base64url(&base64, digest, 18);
    (void)snprintf(tag, CONSOLE_TAG_SIZE, "\"%.24s\"", buffer_string(&base64));
    buffer_free(&base64);
}

void console_tag_answer(struct console_call *call)
{
    json_end_all(&call->json);
    console_tag(buffer_text(&call->answer), call->tag);
}

enum status console_changed(struct console_call *call, struct error *error)
{
    call->refusal = &error_changed_meanwhile;
    return error_conflict(error, "changed meanwhile");
}
