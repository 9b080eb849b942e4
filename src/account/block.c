/* PUT /account/block: a customer's own block of a player, in every currency. */
#include <string.h>

#include "account/call.h"
#include "operator/blocks.h"

#define MAY(name_, read_, rule_)                                                                  \
    {                                                                                             \
        TEXT_INIT(#name_), 0, ACCOUNT_CASE, STRICT_JSON_FIELD(account_asked, name_), NULL, read_, \
            rule_, true                                                                           \
    }

static const struct strict_json_field fields[] = {
    {TEXT_INIT("reference"), ACCOUNT_CASE, ACCOUNT_CASE,
     STRICT_JSON_FIELD(account_asked, reference), is_outside_name, NULL,
     "must be 1 to 64 letters, digits, '.', '_', ':' or '-'", false},
    {TEXT_INIT("blocked"), ACCOUNT_CASE, ACCOUNT_CASE, STRICT_JSON_FIELD(account_asked, blocked),
     NULL, account_read_flag, "must be true or false", false},
    MAY(until, NULL, "must be a time in the future, as 2027-01-31T18:00:00Z"),
    MAY(reason, NULL, "must be 1 to 200 bytes of text"),
    MAY(early, account_read_flag, "must be true or false"),
};
static const struct strict_json_form form = {fields, sizeof fields / sizeof fields[0],
                                             account_case};

static enum status by_customer(const void *context, void *record, struct error *error)
{
    (void)context;
    (void)error; /* it cannot fail */
    ((struct block_view *)record)->by_customer = true;
    return STATUS_OK;
}

static void write_block(struct json_writer *json, const struct block_view *block)
{
    json_object(json, NULL);
    json_string(json, "reference", block->record.reference);
    json_bool(json, "blocked", block->blocked);
    json_time(json, "blocked_at", block->record.blocked_ms);
    json_time(json, "until", block->record.until_ms);
    json_string(json, "reason", block->record.reason);
    json_bool(json, "blocked_by_operator", block->standing[0] != '\0');
    json_end(json);
}

static enum status put_block(struct account_call *call, struct error *error)
{
    const struct account_asked *asked = &call->asked;
    struct json_writer json = {.out = &call->answer};
    struct block_view block = {.blocked = false};
    struct block_record named = {.id = ""};
    struct setting settings[5] = {{"blocked", asked->blocked ? "yes" : "no"}};
    size_t count = 1;
    int64_t until_ms;
    enum status status = account_ahead(call, "until", asked->until, &until_ms, error);
    if (status != STATUS_OK)
        return status;
    if (until_ms != 0)
        settings[count++] = (struct setting){"until", asked->until};
    if (asked->reason[0] != '\0')
        settings[count++] = (struct setting){"reason", asked->reason};
    if (asked->early)
        settings[count] = (struct setting){"early", "yes"};
    memcpy(named.customer_id, call->caller.customer_id, sizeof named.customer_id);
    memcpy(named.reference, asked->reference, sizeof named.reference);
    block_name(&named, true);
    const struct resource_edit edit = {.settings = settings, .edit = by_customer};
    status = resource_change(&block_resource, call->store, named.id, &edit, &block, error);
    if (status == STATUS_CONFLICT)
        return account_refuse(call,
                              block.standing[0] != '\0' && block.before.blocked_ms == 0
                                  ? &error_blocked_by_operator
                                  : &error_block_conflict,
                              error);
    if (status == STATUS_OK)
        write_block(&json, &block);
    return status;
}

const struct account_act account_block = {
    .name = "block", .area = KEY_MANAGE, .handle = put_block, .form = &form};
