/* The table of conduct; see tables.h. */
#include "operator/tables.h"

#include "base/clock.h"
#include "stores/platform_usage.h"

#define OF_VERDICT(text) FIELD_OF(conduct_verdict, texts[text])

static const struct field fields[] = {
    {"check", NULL, "CHECK", &field_text, OF_VERDICT(CONDUCT_CHECK)},
    {"result", NULL, "RESULT", &field_text, OF_VERDICT(CONDUCT_RESULT)},
    {"meaning", NULL, "MEANING", &field_text, OF_VERDICT(CONDUCT_MEANING)},
    {"requests", NULL, "REQUESTS", &field_list, OF_VERDICT(CONDUCT_REQUESTS)},
    {0},
};

static enum status list(struct platform_store *store, const char *of, record_function *see,
                        void *context, struct error *error)
{
    return platform_conduct_judge(store, of, clock_wall_ms(), see, context, error);
}

const struct resource conduct_resource = {
    .fields = fields, .size = sizeof(struct conduct_verdict), .list = list};
