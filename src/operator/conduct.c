/* The table of conduct; see conduct.h. */
#include "operator/conduct.h"

#include "stores/platform_usage.h"

#define OF_VERDICT(text) FIELD_OF(conduct_verdict, texts[text])

static const struct field fields[] = {
    {"check", NULL, "CHECK", &field_text, OF_VERDICT(CONDUCT_CHECK)},
    {"result", NULL, "RESULT", &field_text, OF_VERDICT(CONDUCT_RESULT)},
    {"meaning", NULL, "MEANING", &field_text, OF_VERDICT(CONDUCT_MEANING)},
    {"requests", NULL, "REQUESTS", &field_list, OF_VERDICT(CONDUCT_REQUESTS)},
    {0},
};

const struct resource conduct_resource = {
    .fields = fields, .size = sizeof(struct conduct_verdict), .list = platform_conduct_judge};
