/* Faults that a sandbox caller asks for; see fault.h. */
#include "api/fault.h"

#include "admission/error_rows.h"
#include "base/clock.h"
#include "base/memory.h"
#include "games/errors.h"
#include "http/deferral.h"

#define DELAY_MAX_MS 60000U

static const struct fault {
    const char *asked;
    const struct http_error *error; /* what is replied at once; NULL: the request is handled */
    enum http_instead instead;      /* of the reply, whose it may be */
} faults[] = {
    {"close-before", &error_asked_for_error, HTTP_INSTEAD_NOTHING},
    {"close-after", NULL, HTTP_INSTEAD_NOTHING},
    {"503", &error_asked_for_unavailable, HTTP_INSTEAD_NONE},
    {"500;applied=yes", NULL, HTTP_INSTEAD_500},
    {"500;applied=no", &error_asked_for_error, HTTP_INSTEAD_NONE},
};

/* ---- delays ---------------------------------------------------------------------------------- */

struct delayed {
    struct http_deferral deferral; /* first */
    uv_timer_t timer;
    void (*go_on)(void *context, struct http_request *request);
    void *context;
};

static void on_timer_closed(uv_handle_t *timer)
{
    memory_free(timer->data);
}

static void on_gone(struct http_deferral *deferral)
{
    struct delayed *delayed = (struct delayed *)deferral;
    uv_close((uv_handle_t *)&delayed->timer, on_timer_closed);
}

static void on_time(uv_timer_t *timer)
{
    struct delayed *delayed = timer->data;
    struct http_request *request = http_deferral_take(&delayed->deferral);
    uv_close((uv_handle_t *)timer, on_timer_closed);
    delayed->go_on(delayed->context, request);
}

/* ---- the field ------------------------------------------------------------------------------- */

static bool refuse(struct http_request *request, const char *message)
{
    games_reply_fault(request, STRICT_JSON_INVALID, message);
    return false;
}

static bool pass_on_sports(struct http_request *request, struct text asked)
{
    if (!text_equals(asked, TEXT("429")))
        return refuse(request, "The header X-Croupier-Fault must be 429 on sports routes.");
    http_request_add_field(request, TEXT("Retry-After"), TEXT("1"));
    http_reply_error(request, &error_asked_for_limit);
    return false;
}

bool fault_pass(struct http_request *request, const struct route *route, uv_loop_t *loop,
                void (*go_on)(void *context, struct http_request *request), void *context)
{
    uint64_t delay_ms;
    struct text asked = http_request_only_field(request, HTTP_FIELD_X_CROUPIER_FAULT);
    if (route->usage == USAGE_SPORTS)
        return pass_on_sports(request, asked);
    if (route->method != METHOD_POST || route->account != NULL)
        return true;
    struct text value = asked;
    if (text_equals(text_cut(&value, '='), TEXT("delay")) &&
        text_to_u64(value, DELAY_MAX_MS, &delay_ms) == STATUS_OK) {
        struct delayed *delayed = memory_alloc_zeroed(1, sizeof *delayed);
        delayed->deferral.gone = on_gone;
        delayed->go_on = go_on;
        delayed->context = context;
        clock_make_timer(loop, &delayed->timer, delayed);
        clock_start_timer(&delayed->timer, on_time, delay_ms, 0);
        http_defer(&delayed->deferral, request);
        return false;
    }
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        if (!text_equals(asked, text_of(faults[i].asked)))
            continue;
        request->instead = faults[i].instead;
        if (faults[i].error != NULL)
            http_reply_error(request, faults[i].error);
        return faults[i].error == NULL;
    }
    return refuse(request, "The header X-Croupier-Fault must be delay=MS (at most 60000), "
                           "close-before, close-after, 503, 500;applied=yes or 500;applied=no.");
}
