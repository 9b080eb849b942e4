/*
 * Takes a request to its reply: the caller, its rights, the route, the handler. Nothing here reads
 * a store. The log line of a request is built at the end, from the notes of each step in `struct
 * judged`.
 */
#include "api/service.h"

#include "account/error_rows.h"
#include "admission/error_rows.h"
#include "admission/policy_table.h"
#include "api/provider_admission.h"
#include "api/sandbox.h"
#include "base/clock.h"
#include "games/errors.h"
#include "limits/rate_limit.h"

/* COUNTED_OPENED must come before COUNTED_CLOSED: see metrics_write. */
enum {
    COUNTED_NOT_ADMITTED,
    COUNTED_PROVIDER_NOT_ADMITTED,
    COUNTED_RATE_LIMITED,
    COUNTED_POLICY_UNAVAILABLE,
    COUNTED_NOT_MODIFIED,
    COUNTED_OPENED,
    COUNTED_CLOSED,
    COUNTED_REFUSED,
    COUNTED_TLS_FAILURES,
    COUNTED_BYTES_SENT,
    COUNTED_WAITED_CHANGE, /* polls that waited, by their answer */
    COUNTED_WAITED_TIME,
    COUNTED_WAITED_ERROR,
    COUNTED_LIMITED, /* by enum client_limit */
    /* The rows that have more than one cell: */
    COUNTED_DENIED = COUNTED_LIMITED + CLIENT_LIMITS, /* by enum admission_denial */
    COUNTED_REASONS = COUNTED_DENIED + DENIAL_COUNT,  /* by reason_number */
};

#define LOGGED_PATH_MAX 128
#define LOGGED_ALWAYS 7 /* fields of a request's line, and those that not all have */
#define LOGGED_AT_TIMES 6

/* Notes on a request; lives at request->user. */
struct judged {
    struct route_match match;
    struct address client; /* as admission found it, else the peer */
    struct caller caller;
    enum admission_denial denial;
};

/* Kept between the requests of a connection; lives at request->connection_user. */
struct remembered {
    struct admission_memory admission;
    struct {                       /* where the last request went, if it was admitted */
        const struct route *route; /* NULL: unknown */
        struct {
            uint16_t at, size; /* in the path */
        } values[HTTP_PATH_VALUES];
    } matched;
    struct { /* the fields that log lines share, and their sources */
        struct address client;
        char customer_id[CUSTOMER_ID_SIZE];
        char key[KEY_PREFIX_SIZE];
        const char *method;
        size_t route;
        struct log_kept text;
    } logged;
    struct usage_row *usage;    /* of the last customer */
    struct rate_budget *budget; /* of that customer, held, with the connection in its `counts` */
    bool waiting;               /* the current request is one of its waiting polls */
    bool noted;                 /* it had a fact before */
    struct conduct_fact *fact;  /* of the current request of a sandbox caller; else NULL */
};

/* ---- limits of one client -------------------------------------------------------------------- */

static bool take(struct service *service, enum client_limit which, atomic_uint *count)
{
    bool taken = client_limits_take(service->shared->limits, which, count);
    if (!taken)
        metrics_add(service->counters, COUNTED_LIMITED + (size_t)which, 1);
    return taken;
}

static void end_wait(struct remembered *remembered)
{
    if (remembered->waiting)
        (void)atomic_fetch_sub(&remembered->budget->counts.waiting, 1);
    remembered->waiting = false;
}

static void forget_customer(struct remembered *remembered)
{
    end_wait(remembered);
    if (remembered->budget == NULL)
        return;
    (void)atomic_fetch_sub(&remembered->budget->counts.connections, 1);
    rate_budget_release(&remembered->budget);
}

/* Counts the connection for this customer from now on, a proxy's too: a proxy cannot use it for
 * another one before this customer has read the answer. False: the customer is at its limit, and
 * the request was replied to. */
static bool count_connection(struct service *service, struct http_request *request,
                             const struct policy *policy)
{
    struct remembered *remembered = request->connection_user;
    forget_customer(remembered);
    if (!take(service, CONNECTIONS_PER_CUSTOMER, &policy->budget->counts.connections)) {
        http_request_end_connection(request);
        http_reply_error(request, &error_connections_of_customer);
        return false;
    }
    remembered->budget = rate_budget_hold(policy->budget);
    return true;
}

static uint32_t on_opened(void *context, const struct address *peer)
{
    struct service *service = context;
    uint32_t over = client_limits_add(service->shared->limits, peer);
    if (over == 0 || admission_is_proxy(service->admission, peer))
        return 0;
    metrics_add(service->counters, COUNTED_LIMITED + CONNECTIONS_PER_ADDRESS, 1);
    return over;
}

static void on_closed(void *context, const struct address *peer, void *user)
{
    struct service *service = context;
    client_limits_remove(service->shared->limits, peer);
    if (user == NULL)
        return;
    conduct_note_end(service->shared->usage, &((struct remembered *)user)->fact, NULL);
    forget_customer(user);
}

/* ---- judgement ------------------------------------------------------------------------------- */

/* Notes the customer, admitted or not, and its rights. */
static void note_caller(struct judged *judged, const struct policy *policy,
                        const struct admission_memory *memory)
{
    struct account_caller *of = &judged->caller.of;
    memcpy(of->customer_id, policy->customer_id, sizeof of->customer_id);
    memcpy(of->key_prefix, memory->prefix, sizeof of->key_prefix);
    if ((memory->areas & ROUTE_ACCOUNT_AREAS) != 0)
        memcpy(of->key_digest, policy_entry_digest(memory->entry), sizeof of->key_digest);
    judged->caller.sports = memory->sports;
    judged->caller.casino = memory->casino;
    judged->caller.sandbox = policy->sandbox;
    judged->caller.areas = memory->areas;
}

static void note_conduct(const struct http_request *request, const struct judged *judged)
{
    struct remembered *remembered = request->connection_user;
    if (!judged->caller.sandbox)
        return;
    remembered->fact = conduct_note(request, &judged->caller,
                                    judged->denial == DENIAL_NONE ? judged->match.route : NULL,
                                    &judged->client, !remembered->noted);
    remembered->noted = true;
}

/* `counter` counts all denials of the listener. */
static void count_denial(struct service *service, size_t counter, enum admission_denial denial)
{
    metrics_add(service->counters, counter, 1);
    metrics_add(service->counters, COUNTED_DENIED + (size_t)denial, 1);
}

/* Returns the caller's policy. NULL: replied. */
static const struct policy *judge(struct service *service, struct http_request *request,
                                  struct judged *judged, int64_t now_wall_ms)
{
    const struct policy *policy = NULL;
    /* Now, and not when the request began: a client may send the rest of it slowly. */
    uint64_t now_mono_ms = clock_loop_ms(mailbox_loop(service->mailbox));
    struct remembered *remembered = request->connection_user;
    judged->denial = admission_judge(service->admission, &remembered->admission, request,
                                     now_mono_ms, now_wall_ms, &policy, &judged->client);
    if (judged->denial == DENIAL_UNAVAILABLE) {
        metrics_add(service->counters, COUNTED_POLICY_UNAVAILABLE, 1);
        http_reply_error(request, &error_policies_unconfirmed);
        return NULL;
    }
    /* An address without a key has no identity in the casino. */
    if (judged->denial == DENIAL_NONE && !policy->is_customer && route_is_casino(request->path))
        judged->denial = DENIAL_NO_KEY;
    if (policy != NULL)
        note_caller(judged, policy, &remembered->admission);
    if (judged->denial != DENIAL_NONE) {
        count_denial(service, COUNTED_NOT_ADMITTED, judged->denial);
        http_reply_error(request, admission_error_of(judged->denial));
        return NULL;
    }
    return remembered->budget == policy->budget || count_connection(service, request, policy)
               ? policy
               : NULL;
}

_Static_assert(HTTP_TARGET_MAX <= UINT16_MAX, "a place in a path fits");

static void remember_match(struct remembered *remembered, struct text path,
                           const struct route_match *match)
{
    remembered->matched.route = match->route;
    for (size_t i = 0; i < HTTP_PATH_VALUES; i++) {
        bool found = match->values[i].size > 0;
        remembered->matched.values[i].at = found ? (uint16_t)(match->values[i].at - path.at) : 0;
        remembered->matched.values[i].size = (uint16_t)match->values[i].size;
    }
}

/* A request that repeats the last one of its connection has its route, and its verdict if nothing
 * has changed that the verdict depends on. NULL: it must be judged. */
static const struct policy *judge_repeated(struct service *service,
                                           const struct http_request *request,
                                           struct judged *judged, int64_t now_wall_ms)
{
    const struct remembered *remembered = request->connection_user;
    uint64_t now_mono_ms = clock_loop_ms(mailbox_loop(service->mailbox));
    if (!request->repeated || remembered->matched.route == NULL)
        return NULL;
    const struct policy *policy =
        admission_recall(service->admission, &remembered->admission, now_mono_ms, now_wall_ms);
    if (policy == NULL || policy->budget != remembered->budget)
        return NULL;
    judged->client = remembered->admission.address;
    note_caller(judged, policy, &remembered->admission);
    judged->match.route = remembered->matched.route;
    for (size_t i = 0; i < HTTP_PATH_VALUES; i++)
        judged->match.values[i] = (struct text){request->path.at + remembered->matched.values[i].at,
                                                remembered->matched.values[i].size};
    return policy;
}

/* Finds the route, and judges the caller unless the route needs no admission: then `policy` is
 * NULL. False: replied. */
static bool find_and_judge(struct service *service, struct http_request *request,
                           struct judged *judged, int64_t now_wall_ms, const struct policy **policy)
{
    struct remembered *remembered = request->connection_user;
    *policy = judge_repeated(service, request, judged, now_wall_ms);
    if (*policy != NULL)
        return true;
    remembered->matched.route = NULL; /* until this request is admitted */
    judged->client = request->peer;
    judged->match = route_find(request->path);
    if (judged->match.route != NULL && !judged->match.route->admission)
        return true;
    *policy = judge(service, request, judged, now_wall_ms);
    if (*policy == NULL)
        return false;
    if (judged->match.route != NULL && judged->match.route->account != NULL &&
        (judged->caller.areas & ROUTE_ACCOUNT_AREAS) == 0)
        judged->match = (struct route_match){0};
    remember_match(remembered, request->path, &judged->match);
    return true;
}

static void add_number(struct http_request *request, struct text name, uint64_t value)
{
    char digits[20];
    http_request_add_field(request, name, (struct text){digits, decimal_write(digits, value)});
}

/* True: go on. False: over the budget, and replied. */
static bool within_budget(struct service *service, struct http_request *request,
                          const struct rate_verdict *rate)
{
    if (!rate->limited)
        return true;
    add_number(request, TEXT("X-RateLimit-Limit"), rate->limit);
    add_number(request, TEXT("X-RateLimit-Remaining"), rate->remaining);
    add_number(request, TEXT("X-RateLimit-Reset"), rate->reset_seconds);
    if (rate->allowed)
        return true;
    add_number(request, TEXT("Retry-After"), rate->reset_seconds);
    struct remembered *remembered = request->connection_user;
    if (remembered->fact != NULL)
        remembered->fact->pause_s = (int64_t)rate->reset_seconds;
    metrics_add(service->counters, COUNTED_RATE_LIMITED, 1);
    http_reply_error(request, &error_rate_limited);
    return false;
}

static void handle_at_last(void *context, struct http_request *request)
{
    const struct judged *judged = request->user;
    judged->match.route->handle(context, request, &judged->caller, &judged->match);
}

static void dispatch(struct service *service, struct http_request *request,
                     const struct judged *judged)
{
    const struct route *route = judged->match.route;
    if (route == NULL) {
        http_reply_error(request, &error_not_found);
        return;
    }
    if (!route_allows(route, request->method)) {
        http_request_add_field(request, TEXT("Allow"), route_methods(route));
        http_reply_error(request, &error_method_not_allowed);
        return;
    }
    if (route_is_casino(request->path) && !judged->caller.casino) {
        http_reply_error(request, &error_casino_access_disabled);
        return;
    }
    if (route->account != NULL && (judged->caller.areas & route->account->area) == 0) {
        http_reply_error(request, &error_area_not_allowed);
        return;
    }
    if (route->method != METHOD_GET && http_body_is_encoded(request)) {
        http_request_add_field(request, TEXT("Accept-Encoding"), TEXT("identity"));
        http_reply_error(request, &error_unsupported_media_type);
        return;
    }
    if (!judged->caller.sandbox || request->field_count[HTTP_FIELD_X_CROUPIER_FAULT] == 0 ||
        fault_pass(request, route, mailbox_loop(service->mailbox), handle_at_last, service))
        handle_at_last(service, request);
}

void service_rate_decided(void *context, struct http_request *request,
                          const struct rate_verdict *rate)
{
    struct service *service = context;
    if (within_budget(service, request, rate))
        dispatch(service, request, request->user);
}

/* Counts the request against the budget of its policy, and continues once the limiter has
 * decided. */
static void take_rate(struct service *service, struct http_request *request,
                      const struct policy *policy, int64_t now_wall_ms)
{
    const struct judged *judged = request->user;
    struct rate_claim claim = {policy->rate, policy->budget};
    struct rate_verdict verdict;
    char name[ADDRESS_TEXT_SIZE] = "";
    if (!policy->is_customer && policy->rate.enabled)
        address_format(&judged->client, name);
    const struct account_act *act = judged->match.route->account;
    if (act != NULL) {
        const bool change = act->area == KEY_MANAGE;
        claim = (struct rate_claim){service->account_rate,
                                    rate_budget_of_account(policy->budget, change)};
        (void)snprintf(name, sizeof name, "%s:%s", change ? "manage" : "account",
                       policy->customer_id);
    }
    if (rate_limiter_take(service->rates, request, &claim,
                          name[0] != '\0' ? name : policy->customer_id, now_wall_ms, &verdict))
        service_rate_decided(service, request, &verdict);
}

static void handle(void *context, struct http_request *request)
{
    struct service *service = context;
    struct judged *judged = request->user;
    int64_t now_wall_ms = clock_wall_coarse_ms();
    const struct policy *policy;
    if (!find_and_judge(service, request, judged, now_wall_ms, &policy))
        return;
    note_conduct(request, judged);
    const struct route *route = judged->match.route;
    if (policy != NULL && route != NULL && route->rate_limited)
        take_rate(service, request, policy, now_wall_ms);
    else
        dispatch(service, request, judged);
}

/* ---- providers ------------------------------------------------------------------------------- */

/* Notes the provider that calls. False: replied. All refusals look the same. */
static bool admit_provider(struct service *service, struct http_request *request,
                           struct judged *judged)
{
    /* Now, and not when the request began: a client may send the rest of it slowly. */
    uint64_t now_mono_ms = clock_loop_ms(mailbox_loop(service->mailbox));
    const struct games_table *table = games_pages_table(service->games, now_mono_ms);
    const struct games_provider *provider = NULL;
    if (table == NULL) {
        judged->denial = DENIAL_UNAVAILABLE;
        metrics_add(service->counters, COUNTED_POLICY_UNAVAILABLE, 1);
        http_reply_error(request, &error_games_unconfirmed);
        return false;
    }
    bool known = admission_client(service->admission, request, &judged->client);
    judged->denial = provider_admit(table, request, clock_wall_coarse_ms(), &provider);
    if (provider != NULL) {
        memcpy(judged->caller.provider_id, provider->record.id, sizeof provider->record.id);
        judged->caller.sandbox = provider->record.sandbox;
    }
    if (judged->denial == DENIAL_NONE && !known)
        judged->denial = DENIAL_UNKNOWN_ADDRESS;
    else if (judged->denial == DENIAL_NONE && !provider_may_call_from(provider, &judged->client))
        judged->denial = DENIAL_ADDRESS_NOT_LISTED;
    if (known && provider != NULL && provider_may_call_from(provider, &judged->client))
        note_conduct(request, judged);
    if (judged->denial != DENIAL_NONE) {
        count_denial(service, COUNTED_PROVIDER_NOT_ADMITTED, judged->denial);
        http_reply_error(request, judged->denial == DENIAL_UNKNOWN_ADDRESS
                                      ? &error_provider_unknown_address
                                  : judged->denial == DENIAL_ADDRESS_NOT_LISTED
                                      ? &error_provider_address_not_listed
                                      : admission_error_of(judged->denial));
        return false;
    }
    return true;
}

static void handle_provider(void *context, struct http_request *request)
{
    struct service *service = context;
    struct judged *judged = request->user;
    judged->client = request->peer;
    judged->match = route_find_of_provider(request->path);
    if (admit_provider(service, request, judged))
        dispatch(service, request, judged);
}

/* ---- polls that wait ------------------------------------------------------------------------- */

static void resume(void *context, struct http_request *request)
{
    struct service *service = context;
    struct judged *judged = request->user;
    const struct policy *policy;
    if (find_and_judge(service, request, judged, clock_wall_coarse_ms(), &policy))
        dispatch(service, request, judged);
}

static uint64_t rights_epoch(void *context)
{
    struct service *service = context;
    return admission_epoch(service->admission, clock_loop_ms(mailbox_loop(service->mailbox)));
}

/* The time when the key of a waiting poll expires. */
static uint64_t right_until_ms(void *context, const struct http_request *request)
{
    const struct service *service = context;
    const struct remembered *remembered = request->connection_user;
    if (remembered->admission.expires_ms == 0)
        return UINT64_MAX;
    int64_t left_ms = remembered->admission.expires_ms - clock_wall_coarse_ms();
    return clock_loop_ms(mailbox_loop(service->mailbox)) + (left_ms > 0 ? (uint64_t)left_ms : 0);
}

static bool begin_wait(void *context, const struct http_request *request)
{
    struct remembered *remembered = request->connection_user;
    CHECK(!remembered->waiting);
    remembered->waiting = take(context, WAITING_PER_CUSTOMER, &remembered->budget->counts.waiting);
    return remembered->waiting;
}

struct sports_waits service_waits(struct service *service)
{
    return (struct sports_waits){.context = service,
                                 .resume = resume,
                                 .epoch = rights_epoch,
                                 .until_ms = right_until_ms,
                                 .begin = begin_wait};
}

/* ---- afterwards: metrics and the access log -------------------------------------------------- */

/* Limits the path's length, and cuts it off inside anything that looks like a key, or a link or
 * token of an operator, because clients put these into paths by mistake. */
static struct text loggable_path(struct text path)
{
    size_t size = path.size < LOGGED_PATH_MAX ? path.size : LOGGED_PATH_MAX;
    static const char begins[][5] = {"crk_", "cro_", "lnk_", "ses_"};
    const bool may_have = memchr(path.at, '_', size) != NULL;
    for (size_t i = 0; i < sizeof begins / sizeof begins[0] && may_have; i++) {
        const char *key = memmem(path.at, size, begins[i], 4);
        if (key != NULL && (size_t)(key - path.at) + KEY_PREFIX_SIZE - 1 < size)
            size = (size_t)(key - path.at) + KEY_PREFIX_SIZE - 1;
    }
    return (struct text){path.at, size};
}

/* The log fields that stay the same on a connection while one customer sends the same kind of
 * request. `judged` is NULL if the request was refused before it was whole. */
static struct log_field fields_alike(struct log_batch *log, const struct http_outcome *outcome,
                                     const struct judged *judged, size_t route)
{
    const struct http_request *request = outcome->request;
    struct remembered *remembered = request->connection_user;
    const struct address *client = judged != NULL ? &judged->client : &request->peer;
    const char *customer_id = judged != NULL ? judged->caller.of.customer_id : "";
    const char *key = judged != NULL ? judged->caller.of.key_prefix : "";
    const char *method = outcome->refused ? "" : http_method_name(request->method);
    if (log_batch_has_kept(log, &remembered->logged.text) && remembered->logged.route == route &&
        remembered->logged.method == method && address_equals(&remembered->logged.client, client) &&
        strcmp(remembered->logged.customer_id, customer_id) == 0 &&
        strcmp(remembered->logged.key, key) == 0)
        return LOG_KEPT(&remembered->logged.text);
    char client_text[ADDRESS_TEXT_SIZE];
    address_format(client, client_text);
    log_batch_keep(log, &remembered->logged.text,
                   (const struct log_field[]){LOG_WORD("client", text_of(client_text)),
                                              LOG_WORD("customer", text_of(customer_id)),
                                              LOG_WORD("key", text_of(key)),
                                              LOG_WORD("method", text_of(method)),
                                              LOG_WORD("route", text_of(route_label(route))),
                                              {0}});
    remembered->logged.client = *client;
    (void)snprintf(remembered->logged.customer_id, sizeof remembered->logged.customer_id, "%s",
                   customer_id);
    (void)snprintf(remembered->logged.key, sizeof remembered->logged.key, "%s", key);
    remembered->logged.method = method;
    remembered->logged.route = route;
    return LOG_KEPT(&remembered->logged.text);
}

static void log_request(struct log_batch *log, const struct http_outcome *outcome,
                        const struct judged *judged, size_t route)
{
    const struct http_request *request = outcome->request;
    struct text path = outcome->refused ? TEXT("") : loggable_path(request->path);
    /* Of the characters that no word may have a path can have '=' alone: see target.c. */
    bool is_word = memchr(path.at, '=', path.size) == NULL;
    struct log_field fields[LOGGED_ALWAYS + LOGGED_AT_TIMES + 1] = {
        LOG_WORD("id", text_of(request->id)),
        fields_alike(log, outcome, judged, route),
        {is_word ? LOG_FIELD_WORD : LOG_FIELD_TEXT, TEXT("path"), path, 0},
        LOG_INTEGER("status", outcome->status),
        LOG_INTEGER("bytes", outcome->bytes),
        LOG_INTEGER("microseconds", outcome->duration_ns / 1000),
        LOG_WORD("outcome", outcome->complete ? TEXT("sent") : TEXT("abandoned")),
    };
    char trace[HTTP_TRACE_SIZE];
    size_t more = LOGGED_ALWAYS;
    if (judged != NULL && judged->caller.provider_id[0] != '\0')
        fields[more++] = LOG_WORD("provider", text_of(judged->caller.provider_id));
    if (request->error != NULL && request->error->code[0] != '\0')
        fields[more++] = LOG_WORD("error", text_of(request->error->code));
    if (request->note.what.size > 0)
        fields[more++] = (struct log_field){
            .kind = LOG_FIELD_TEXT, .name = request->note.what, .text = text_of(request->note.id)};
    if (outcome->waited_ns > 0)
        fields[more++] = LOG_INTEGER("waited_ms", outcome->waited_ns / 1000000);
    if (judged != NULL && http_request_trace(request, trace))
        fields[more++] = LOG_WORD("trace", HTTP_TRACE_ID(trace));
    if (request->error != NULL)
        fields[more] = LOG_WORD("reason", text_of(request->error->reason));
    log_batch_emit(log, LOG_INFO, "request", fields);
}

/* Counts the request, and its refusal, for the customer who sent it. */
static void count_for_customer(struct service *service, const struct http_outcome *outcome,
                               const struct judged *judged)
{
    struct remembered *remembered = outcome->request->connection_user;
    const struct route *route = judged->match.route;
    usage_count(service->usage, &remembered->usage, judged->caller.of.customer_id,
                route == NULL ? USAGE_OTHER : route->usage, outcome->status);
    if (outcome->request->error != NULL)
        refusals_note(service->shared->refusals, judged->caller.of.customer_id,
                      outcome->request->error, judged->caller.of.key_prefix, &judged->client,
                      clock_wall_coarse_ms());
}

static void finished(void *context, const struct http_outcome *outcome)
{
    struct service *service = context;
    const struct judged *judged = outcome->refused ? NULL : outcome->request->user;
    struct remembered *remembered = outcome->request->connection_user;
    end_wait(remembered);
    conduct_note_end(service->shared->usage, &remembered->fact, outcome);
    size_t route = judged == NULL ? ROUTE_REFUSED : route_number(judged->match.route);
    metrics_request(service->metrics, route, outcome->status, outcome->duration_ns);
    metrics_add(service->counters, COUNTED_BYTES_SENT, outcome->bytes);
    if (outcome->request->error != NULL)
        metrics_add(service->counters, COUNTED_REASONS + reason_number(outcome->request->error), 1);
    if (outcome->status == 304)
        metrics_add(service->counters, COUNTED_NOT_MODIFIED, 1);
    if (outcome->waited_ns > 0)
        metrics_add(service->counters,
                    outcome->status == 200   ? COUNTED_WAITED_CHANGE
                    : outcome->status == 304 ? COUNTED_WAITED_TIME
                                             : COUNTED_WAITED_ERROR,
                    1);
    if (judged != NULL && judged->caller.of.customer_id[0] != '\0')
        count_for_customer(service, outcome, judged);
    if (log_enabled(service->log, LOG_INFO))
        log_request(service->access_log, outcome, judged, route);
}

static void count_event(void *context, enum http_event event)
{
    static const size_t counters[] = {
        [HTTP_EVENT_OPENED] = COUNTED_OPENED,
        [HTTP_EVENT_CLOSED] = COUNTED_CLOSED,
        [HTTP_EVENT_REFUSED] = COUNTED_REFUSED,
        [HTTP_EVENT_TLS_FAILED] = COUNTED_TLS_FAILURES,
    };
    struct service *service = context;
    metrics_add(service->counters, counters[event], 1);
}

struct http_server_options service_server_options(struct service *service)
{
    return (struct http_server_options){
        .request_user_size = sizeof(struct judged),
        .connection_user_size = sizeof(struct remembered),
        .handle = handle,
        .finished = finished,
        .event = count_event,
        .opened = on_opened,
        .closed = on_closed,
        .context = service,
        .log = service->log,
    };
}

struct http_server_options service_provider_server_options(struct service *service)
{
    struct http_server_options options = service_server_options(service);
    options.handle = handle_provider;
    return options;
}

static void write_connections(const struct metric *metric, const void *facts, struct buffer *out)
{
    const uint64_t *counters = facts;
    metric_number(out, metric->name, NULL, counters[COUNTED_OPENED] - counters[COUNTED_CLOSED]);
}

static void write_reasons(const struct metric *metric, const void *facts, struct buffer *out)
{
    const uint64_t *counters = facts;
    const struct http_error *error;
    for (size_t i = 0; (error = reason_at(i)) != NULL; i++) {
        char labels[64];
        (void)snprintf(labels, sizeof labels, "{reason=\"%s\"}", error->reason);
        if (counters[COUNTED_REASONS + i] > 0)
            metric_number(out, metric->name, labels, counters[COUNTED_REASONS + i]);
    }
}

static void write_denials(const struct metric *metric, const void *facts, struct buffer *out)
{
    const uint64_t *counters = facts;
    for (int denial = DENIAL_NONE + 1; denial < DENIAL_COUNT; denial++) {
        char labels[64];
        if (denial == DENIAL_UNAVAILABLE) /* counted as a store's error instead */
            continue;
        (void)snprintf(labels, sizeof labels, "{reason=\"%s\"}",
                       admission_error_of((enum admission_denial)denial)->reason);
        metric_number(out, metric->name, labels, counters[COUNTED_DENIED + denial]);
    }
}

const struct metric service_metrics[] = {
    METRIC_COUNTED("croupier_not_admitted_total", COUNTED_NOT_ADMITTED),
    METRIC_COUNTED("croupier_provider_not_admitted_total", COUNTED_PROVIDER_NOT_ADMITTED),
    METRIC_COUNTED("croupier_rate_limited_total", COUNTED_RATE_LIMITED),
    METRIC_COUNTED_AS("croupier_store_errors_total", "{store=\"platform\",kind=\"unavailable\"}",
                      COUNTED_POLICY_UNAVAILABLE),
    METRIC_COUNTED("croupier_not_modified_total", COUNTED_NOT_MODIFIED),
    METRIC_WRITTEN("croupier_connections", write_connections),
    METRIC_COUNTED("croupier_connections_opened_total", COUNTED_OPENED),
    METRIC_COUNTED("croupier_connections_closed_total", COUNTED_CLOSED),
    METRIC_COUNTED("croupier_connections_refused_total", COUNTED_REFUSED),
    METRIC_COUNTED("croupier_tls_failures_total", COUNTED_TLS_FAILURES),
#define WAITED(counter_, by_) \
    METRIC_COUNTED_AS("croupier_waiting_ended_total", "{by=\"" by_ "\"}", counter_)
    WAITED(COUNTED_WAITED_CHANGE, "change"),
    WAITED(COUNTED_WAITED_TIME, "time"),
    WAITED(COUNTED_WAITED_ERROR, "error"),
    METRIC_COUNTED("croupier_sent_bytes_total", COUNTED_BYTES_SENT),
#define LIMITED(limit_, setting_)                                                    \
    METRIC_COUNTED_AS("croupier_client_limited_total", "{setting=\"" setting_ "\"}", \
                      COUNTED_LIMITED + (limit_))
    LIMITED(CONNECTIONS_PER_ADDRESS, "connections_per_address"),
    LIMITED(CONNECTIONS_PER_CUSTOMER, "connections_per_customer"),
    LIMITED(WAITING_PER_CUSTOMER, "waiting_per_customer"),
    {.name = "croupier_denials_total", .write = write_denials, .more_cells = DENIAL_COUNT - 1},
    {.name = "croupier_refusals_total", .write = write_reasons, .more_cells = REASONS_MAX - 1},
    {0},
};

void service_totals(const struct metrics *metrics, struct service_totals *totals)
{
    /* COUNTED_CLOSED is read first, as in a scrape, so that the difference is never negative. */
    totals->closed = metrics_counted(metrics, service_metrics, COUNTED_CLOSED);
    totals->connections =
        metrics_counted(metrics, service_metrics, COUNTED_OPENED) - totals->closed;
    totals->denials = 0;
    for (size_t i = 0; i < DENIAL_COUNT; i++)
        totals->denials += metrics_counted(metrics, service_metrics, COUNTED_DENIED + i);
    for (size_t i = 0; i < REASONS_MAX; i++)
        totals->reasons[i] = metrics_counted(metrics, service_metrics, COUNTED_REASONS + i);
}
