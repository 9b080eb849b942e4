/* Faults that a sandbox caller asks for; see fault.h. */
#include "api/fault.h"

#include "admission/error_rows.h"
#include "base/memory.h"
#include "games/errors.h"
#include "http/deferral.h"

#define DELAY_MAX_MS 60000U

static const struct fault {
    const char *asked;
    bool sports;                    /* on sports routes; else on the others */
    const struct http_error *error; /* the reply, at once; NULL: the request is handled */
    enum http_instead instead;      /* of the reply, whose it may be */
} faults[] = {
    {"429", true, &error_asked_for_limit, HTTP_INSTEAD_NONE},
    {"close-before", false, &error_asked_for_error, HTTP_INSTEAD_NOTHING},
    {"close-after", false, NULL, HTTP_INSTEAD_NOTHING},
    {"503", false, &error_asked_for_unavailable, HTTP_INSTEAD_NONE},
    {"500;applied=yes", false, NULL, HTTP_INSTEAD_500},
    {"500;applied=no", false, &error_asked_for_error, HTTP_INSTEAD_NONE},
};

/* ---- delays ---------------------------------------------------------------------------------- */

struct delayed {
    struct http_deferral deferral;    /* first */
    struct http_deferral_queue queue; /* it is alone on it */
    void (*go_on)(void *context, struct http_request *request);
    void *context;
};

/* The delay is over, or the client has closed. */
static void end_delay(struct http_deferral *deferral)
{
    struct delayed *delayed = (struct delayed *)deferral;
    struct http_request *request = http_deferral_take(deferral);
    http_deferral_remove(deferral);
    http_deferral_queue_close(&delayed->queue, memory_free,
                              delayed); /* not before the loop's next turn */
    if (request != NULL)
        delayed->go_on(delayed->context, request);
}

/* ---- the field ------------------------------------------------------------------------------- */

bool fault_pass(struct http_request *request, const struct route *route, uv_loop_t *loop,
                void (*go_on)(void *context, struct http_request *request), void *context)
{
    uint64_t delay_ms;
    const bool sports = route->usage == USAGE_SPORTS;
    const struct text asked = http_request_only_field(request, HTTP_FIELD_X_CROUPIER_FAULT);
    struct text value = asked;
    if (!sports && (route->method != METHOD_POST || route->account != NULL))
        return true;
    if (!sports && text_equals(text_cut(&value, '='), TEXT("delay")) &&
        text_to_u64(value, DELAY_MAX_MS, &delay_ms) == STATUS_OK) {
        struct delayed *delayed = memory_alloc_zeroed(1, sizeof *delayed);
        delayed->deferral.gone = end_delay;
        delayed->go_on = go_on;
        delayed->context = context;
        http_deferral_queue_init(&delayed->queue, loop, delay_ms, end_delay);
        http_defer(&delayed->deferral, request);
        http_deferral_append(&delayed->queue, &delayed->deferral);
        return false;
    }
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        if (faults[i].sports != sports || !text_equals(asked, text_of(faults[i].asked)))
            continue;
        request->instead = faults[i].instead;
        if (sports)
            http_request_add_field(request, TEXT("Retry-After"), TEXT("1"));
        if (faults[i].error != NULL)
            http_reply_error(request, faults[i].error);
        return faults[i].error == NULL;
    }
    games_reply_fault(request, STRICT_JSON_INVALID,
                      "The header X-Croupier-Fault must be 429 on sports routes, else delay=MS "
                      "(at most 60000), close-before, close-after, 503, 500;applied=yes or "
                      "500;applied=no.");
    return false;
}
