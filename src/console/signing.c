/* The session of who asks. */
#include "console/handlers.h"

#include "base/strict_json.h"

static void write_session(struct console_call *call)
{
    json_object(&call->json, NULL);
    json_string(&call->json, "name", call->signed_in.who.name);
    json_string(&call->json, "role", enum_name(&operator_roles, call->signed_in.who.role));
    json_string(&call->json, "id", call->signed_in.session.id);
    json_time(&call->json, "expires_at", call->signed_in.session.expires_ms);
}

static enum status refuse_token(struct console_call *call, struct error *error)
{
    call->refusal = &error_no_session;
    return error_conflict(error, "a token has no session");
}

enum status console_sign_in(struct console_call *call, struct error *error)
{
    char address[ADDRESS_TEXT_SIZE];
    static const struct text names[] = {TEXT_INIT("link")};
    struct text value = TEXT("");
    struct credential session;
    char link[CREDENTIAL_SIZE + 1] = "";
    if (call->by == BY_TOKEN)
        return refuse_token(call, error);
    if (strict_json_object(call->body, names, 1, &value) != STRICT_JSON_OK ||
        !strict_json_string(value, link, sizeof link))
        return error_invalid(error, "link: must be a link that signs in");
    address_format(&call->client, address);
    enum status status = credential_sign_in(call->store, text_of(link), address, call->now_ms,
                                            &session, &call->signed_in, error);
    explicit_bzero(link, sizeof link);
    if (status == STATUS_NOT_FOUND)
        call->refusal = &error_link_not_good;
    if (status != STATUS_OK)
        return status;
    memcpy(call->new_session, session.secret, sizeof call->new_session);
    explicit_bzero(&session, sizeof session);
    write_session(call);
    return STATUS_OK;
}

enum status console_who_am_i(struct console_call *call, struct error *error)
{
    (void)error; /* it cannot fail */
    write_session(call);
    return STATUS_OK;
}

enum status console_sign_out(struct console_call *call, struct error *error)
{
    if (call->by == BY_TOKEN)
        return refuse_token(call, error);
    call->status = 204;
    call->ends_session = true;
    if (call->by == BY_PROXY) /* the proxy signs in and out */
        return STATUS_OK;
    return credential_end(call->store, call->signed_in.session.id, call->now_ms, error);
}
