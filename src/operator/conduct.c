/* The table of conduct; see conduct.h. */
#include "operator/conduct.h"

#include "base/clock.h"
#include "operator/customers.h"
#include "operator/providers.h"
#include "stores/platform_conduct.h"

#define OF_VERDICT(text) FIELD_OF(conduct_verdict, texts[text])

static const struct field fields[] = {
    {"check", NULL, "CHECK", &field_text, OF_VERDICT(CONDUCT_CHECK)},
    {"result", NULL, "RESULT", &field_text, OF_VERDICT(CONDUCT_RESULT)},
    {"meaning", NULL, "MEANING", &field_text, OF_VERDICT(CONDUCT_MEANING)},
    {"requests", NULL, "REQUESTS", &field_list, OF_VERDICT(CONDUCT_REQUESTS)},
    {0},
};

/* Is there such a sandbox caller? */
static enum status find(struct platform_store *store, const char *id, struct error *error)
{
    struct customer_view customer;
    struct provider_record provider;
    const bool is_provider = ledger_owner_is_provider(id);
    enum status status = is_provider
                             ? resource_get(&provider_resource, store, id, &provider, error)
                             : resource_get(&customer_resource, store, id, &customer, error);
    if (status == STATUS_OK && !(is_provider ? provider.sandbox : customer.record.sandbox))
        status = error_set(error, STATUS_NOT_FOUND, "%s is no sandbox", id);
    return status;
}

static enum status list(struct platform_store *store, const char *of, record_function *see,
                        void *context, struct error *error)
{
    enum status status = find(store, of, error);
    return status == STATUS_OK
               ? platform_conduct_judge(store, of, clock_wall_ms(), see, context, error)
               : status;
}

const struct resource conduct_resource = {
    .fields = fields, .size = sizeof(struct conduct_verdict), .list = list};

enum status conduct_reset(struct platform_store *store, const char *of, struct error *error)
{
    enum status status = find(store, of, error);
    return status == STATUS_OK ? platform_conduct_reset(store, of, error) : status;
}
