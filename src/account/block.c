/* PUT /account/block: a customer's own block of a player, in every currency. */

#include "account/call.h"
#include "operator/blocks.h"

static const struct strict_json_field fields[] = {
    ACCOUNT_MEMBER(reference, true, is_outside_name, NULL, ACCOUNT_OUTSIDE_NAME),
    ACCOUNT_MEMBER(blocked, true, NULL, strict_json_flag, "must be true or false"),
    ACCOUNT_MEMBER(until, false, NULL, NULL, ACCOUNT_AHEAD),
    ACCOUNT_MEMBER(reason, false, NULL, NULL, "must be 1 to 200 bytes of text"),
    ACCOUNT_MEMBER(early, false, NULL, strict_json_flag, "must be true or false"),
};
static const struct strict_json_form form = {fields, sizeof fields / sizeof fields[0], NULL};

static enum status by_customer(const void *context, void *record, struct error *error)
{
    (void)context;
    (void)error; /* it cannot fail */
    ((struct block_view *)record)->by_customer = true;
    return STATUS_OK;
}

static void write_block(struct json_writer *json, const struct block_view *block)
{
    json_string(json, "reference", block->record.reference);
    json_bool(json, "blocked", block->blocked);
    json_time(json, "blocked_at", block->record.blocked_ms);
    json_time(json, "until", block->record.until_ms);
    json_string(json, "reason", block->record.reason);
    json_bool(json, "blocked_by_operator", block->standing[0] != '\0');
}

static enum status put_block(struct account_call *call, struct error *error)
{
    const struct account_asked *asked = &call->asked;
    struct block_view block = {.blocked = false};
    char id[BLOCK_ID_SIZE];
    struct setting settings[5] = {{"blocked", asked->blocked ? "yes" : "no"}};
    size_t count = 1;
    int64_t until_ms;
    enum status status = account_ahead(call, "until", asked->until, &until_ms, error);
    if (status != STATUS_OK)
        return status;
    if (until_ms != 0 || asked->blocked)
        settings[count++] = (struct setting){"until", until_ms == 0 ? NULL : asked->until};
    if (asked->reason[0] != '\0')
        settings[count++] = (struct setting){"reason", asked->reason};
    if (asked->early)
        settings[count] = (struct setting){"early", "yes"};
    block_name(id, call->caller.customer_id, asked->reference, true);
    const struct resource_edit edit = {.settings = settings, .edit = by_customer};
    status = resource_change(&block_resource, call->store, id, &edit, &block, error);
    if (status == STATUS_CONFLICT)
        return account_refuse(call,
                              block_is_in_force(&block.before, block.now_ms)
                                  ? &error_block_conflict
                                  : &error_blocked_by_operator,
                              error);
    if (status == STATUS_OK)
        write_block(&call->json, &block);
    return status;
}

const struct account_act account_block = {
    .name = "block", .area = KEY_MANAGE, .handle = put_block, .form = &form};
