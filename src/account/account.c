/*
 * A request is read and judged on its serving thread as far as no store is needed, becomes a job of
 * the pool, and is answered when the job comes back by the thread's mailbox, if its client is still
 * there. One lock guards what the threads share.
 */
#include "account/account.h"

#include <sys/resource.h>

#include "account/call.h"
#include "base/memory.h"
#include "base/threads.h"
#include "base/work_pool.h"
#include "games/errors.h"
#include "http/deferral.h"

struct account {
    struct platform_store_options platform;
    const char *secrets_key_file;
    const struct client_limits *limits;
    struct work_pool *pool;
    struct platform_store *stores[ACCOUNT_THREADS]; /* of each thread; NULL: not opened yet */
    uv_mutex_t lock;                                /* guards: */
    LIST_HEAD(, job) jobs;                          /* under way, or waiting */
    struct secrets *secrets;                        /* NULL: not read yet */
    atomic_bool reads_rounds;
};

struct job {
    struct work work;
    struct mail mail;
    struct mailbox *mailbox;
    struct sports_waits rules;
    struct http_deferral deferral;
    struct account *account;
    LIST_ENTRY(job) link;
    bool waits;                /* or it looks again for one that does */
    struct http_parked parked; /* while it waits, */
    uv_timer_t look;           /* its end frees the job */
    uint32_t wanted_s;         /* in all */
    uint64_t asked_ms;         /* monotonic */
    enum status status;
    struct error error;
    struct account_call call;
};

enum status account_refuse(struct account_call *call, const struct http_error *refusal,
                           struct error *error)
{
    call->refusal = refusal;
    return error_conflict(error, "%s", refusal->message);
}

/* Jobs of the customer of `like` that need the same area of a key (NULL: all), or those of them
 * alone that wait. */
static unsigned count(const struct account *account, const struct job *like, bool waiting)
{
    const struct job *job;
    unsigned found = 0;
    LIST_FOREACH (job, &account->jobs, link)
        found += (like == NULL ||
                  (job->call.act->area == like->call.act->area &&
                   strcmp(job->call.caller.customer_id, like->call.caller.customer_id) == 0)) &&
                 (job->waits || !waiting);
    return found;
}

static void leave(struct job *job)
{
    uv_mutex_lock(&job->account->lock);
    LIST_REMOVE(job, link);
    uv_mutex_unlock(&job->account->lock);
}

/* ---- on a thread of the account's ------------------------------------------------------------ */

/* Makes what seals the customer's cursors, and opens the one that was given. */
static enum status prepare_cursor(struct account *account, struct account_call *call,
                                  struct error *error)
{
    char purpose[64];
    enum status status = STATUS_OK;
    uv_mutex_lock(&account->lock);
    if (account->secrets == NULL)
        status = secrets_open_key(&account->secrets, account->secrets_key_file, error);
    uv_mutex_unlock(&account->lock);
    if (status != STATUS_OK)
        return STATUS_UNAVAILABLE;
    (void)snprintf(purpose, sizeof purpose, "account cursors of %s", call->caller.customer_id);
    call->secrets = secrets_of_purpose(account->secrets, purpose);
    return call->asked.cursor[0] == '\0' || account_read_cursor(call)
               ? STATUS_OK
               : account_refuse_cursor(error);
}

static enum status handle(struct account *account, struct account_call *call, struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; call->act->parameters[i] != NULL && status == STATUS_OK; i++)
        if (call->act->parameters[i] == &account_cursor)
            status = prepare_cursor(account, call, error);
    json_object(&call->json, NULL);
    if (status == STATUS_OK)
        status = call->act->handle(call, error);
    if (status == STATUS_NOT_FOUND && call->act->missing != NULL)
        return account_refuse(call, call->act->missing, error);
    if (status != STATUS_OK)
        return status;
    if (call->secrets != NULL)
        account_write_cursor(call);
    json_end(&call->json);
    return STATUS_OK;
}

static void run_job(struct work *work)
{
    struct job *job = CONTAINER_OF(work, struct job, work);
    struct account_call *call = &job->call;
    struct platform_store **store = &job->account->stores[work->thread];
    char who[TRAIL_WHO_SIZE];
    char what[TRAIL_COMMAND_SIZE];
    /* Bets and polls come before it where they want the same processor (see also `gives_way`). The
     * value is of this thread alone (setpriority(2), NOTES). */
    (void)setpriority(PRIO_PROCESS, 0, 10);
    call->now_ms = clock_wall_ms();
    call->reads_rounds = &job->account->reads_rounds;
    (void)snprintf(who, sizeof who, "key %s", call->caller.key_prefix);
    (void)snprintf(what, sizeof what, "account %s", call->act->name);
    job->status = clock_monotonic_ms() - job->asked_ms > ACCOUNT_WAIT_MS
                      ? error_set(&job->error, STATUS_TIMEOUT, "it waited for a thread too long")
                      : platform_store_open(store, &job->account->platform, &job->error);
    if (job->status == STATUS_OK) {
        call->store = *store;
        platform_store_act_as(call->store, who, what);
        job->status = handle(job->account, call, &job->error);
    }
    if (job->status != STATUS_OK && job->status != STATUS_INVALID && call->refusal == NULL)
        log_event(job->account->platform.log, LOG_WARNING, "an account cannot be read or changed",
                  LOG_STRING("route", what), LOG_STRING("reason", job->error.text));
    secrets_destroy(&call->secrets);
    mailbox_post(job->mailbox, &job->mail);
}

/* ---- replying -------------------------------------------------------------------------------- */

/* "from: must not be after to" becomes a sentence. */
static void reply_invalid(struct http_request *request, const struct job *job)
{
    char message[sizeof job->error.text + 32];
    const char *text = job->error.text;
    const char *colon = strstr(text, ": ");
    CHECK(colon != NULL);
    (void)snprintf(message, sizeof message, "The %s %.*s %s.",
                   job->call.act->form == NULL ? "parameter" : "field", (int)(colon - text), text,
                   colon + 2);
    http_reply_error_as(request, &error_invalid_request, message);
}

static void reply(struct http_request *request, struct job *job)
{
    struct account_call *call = &job->call;
    if (call->refusal == &error_account_busy)
        http_request_add_field(request, TEXT("Retry-After"), TEXT("1"));
    if (call->refusal != NULL)
        http_reply_error(request, call->refusal);
    else if (job->status == STATUS_OK)
        http_reply_json(request, call->status, buffer_text(&call->answer));
    else if (job->status == STATUS_INVALID)
        reply_invalid(request, job);
    else if (job->status == STATUS_UNAVAILABLE || job->status == STATUS_TIMEOUT ||
             job->status == STATUS_READ_ONLY || job->status == STATUS_FULL)
        http_reply_error(request, &error_account_store_unavailable);
    else
        http_reply_error(request, &error_bug);
}

static void free_job(struct job *job)
{
    buffer_wipe(&job->call.answer); /* there may be a key in it */
    memory_free(job);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void free_waited(uv_handle_t *look)
{
    free_job(look->data);
}

static void end_wait(struct http_parked *parked)
{
    struct job *job = CONTAINER_OF(parked, struct job, parked);
    leave(job);
    uv_close((uv_handle_t *)&job->look, free_waited);
}

/* Judges the request as if it had come now: its rights may have ended, or the server drains. */
static void look_again(uv_timer_t *look)
{
    struct job *job = look->data;
    struct http_request *request = http_unpark(&job->parked);
    char applied[24];
    int size = snprintf(applied, sizeof applied, "wait=%u", job->wanted_s);
    http_request_add_field(request, TEXT("Preference-Applied"),
                           (struct text){applied, (size_t)size});
    job->rules.resume(job->rules.context, request);
    end_wait(&job->parked); /* after the look has the place */
}

static void on_ended(struct http_parked *parked)
{
    clock_start_timer(&CONTAINER_OF(parked, struct job, parked)->look, look_again, 0, 0);
}

/* False: too many wait already, of its customer or of all. */
static bool take_place(struct job *job)
{
    struct account *account = job->account;
    uv_mutex_lock(&account->lock);
    job->waits = job->waits || (count(account, NULL, true) < ACCOUNT_WAITS_MAX &&
                                count(account, job, true) < ACCOUNT_WAITS);
    uv_mutex_unlock(&account->lock);
    return job->waits;
}

/* True: it does, and the request is no longer the caller's. */
static bool begin_waiting(struct job *job, struct http_request *request)
{
    const uint64_t now_ms = clock_monotonic_ms();
    const uint64_t since_ms = request->parked_ns > 0 ? request->parked_ns / 1000000 : now_ms;
    job->wanted_s = http_preferred_wait(request, HTTP_WAIT_SECONDS_MAX);
    if (job->status != STATUS_OK || !job->call.is_empty || request->method != METHOD_GET ||
        now_ms >= since_ms + job->wanted_s * UINT64_C(1000) || !take_place(job) ||
        (request->parked_ns == 0 && !job->rules.begin(job->rules.context, request)))
        return false;
    job->parked.gone = end_wait;
    job->parked.ended = on_ended;
    if (!http_park(&job->parked, request))
        return false;
    clock_make_timer(mailbox_loop(job->mailbox), &job->look, job);
    clock_start_timer(&job->look, look_again, ACCOUNT_LOOK_MS, 0);
    return true;
}

static void deliver(struct mail *mail)
{
    struct job *job = CONTAINER_OF(mail, struct job, mail);
    struct http_request *request = http_deferral_take(&job->deferral);
    if (request != NULL && begin_waiting(job, request))
        return;
    leave(job); /* before the reply, which may begin the connection's next request */
    if (request != NULL)
        reply(request, job);
    free_job(job);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Puts the job into the pool, if there is room for it and its customer. */
static const struct http_error *submit(struct job *job)
{
    struct account *account = job->account;
    const struct http_error *refusal = NULL;
    uv_mutex_lock(&account->lock);
    if (count(account, job, false) >= ACCOUNT_AT_ONCE)
        refusal = &error_account_busy;
    else if (work_pool_submit(account->pool, &job->work) != STATUS_OK)
        refusal = &error_account_queue_full;
    else
        LIST_INSERT_HEAD(&account->jobs, job, link); /* its thread waits for the lock */
    uv_mutex_unlock(&account->lock);
    return refusal;
}

/* Reads the query and the body of a request; `fault` says what is wrong with them. */
static enum strict_json read_question(const struct http_request *request,
                                      const struct account_act *act, struct account_asked *asked,
                                      struct strict_json_fault *fault)
{
    struct text type = http_request_only_field(request, HTTP_FIELD_CONTENT_TYPE);
    if (!account_read_query(request->query, act, asked, fault))
        return STRICT_JSON_INVALID;
    return act->form == NULL ? STRICT_JSON_OK
                             : strict_json_decode(type, request->body, act->form, asked, fault);
}

void account_route(struct account *account, struct mailbox *mailbox,
                   const struct sports_waits *waits, struct http_request *request,
                   const struct account_caller *caller, const struct account_act *act)
{
    struct account_asked asked;
    struct strict_json_fault fault;
    if (request->method == METHOD_DELETE)
        act = act->on_delete;
    enum strict_json read = read_question(request, act, &asked, &fault);
    if (read != STRICT_JSON_OK) {
        games_reply_fault(request, read, fault.message);
        return;
    }
    struct job *job = memory_alloc_zeroed(1, sizeof *job);
    job->work.run = run_job;
    job->mail.deliver = deliver;
    job->mailbox = mailbox;
    job->rules = *waits;
    job->waits = request->parked_ns > 0;
    job->account = account;
    job->asked_ms = clock_monotonic_ms();
    job->call = (struct account_call){
        .act = act, .limits = account->limits, .caller = *caller, .asked = asked, .status = 200};
    job->call.json.out = &job->call.answer;
    job->call.viewer.customer_id = job->call.caller.customer_id;
    const struct http_error *refusal = submit(job);
    if (refusal == NULL) {
        http_defer(&job->deferral, request); /* this thread delivers the mail after we return */
        return;
    }
    job->call.refusal = refusal;
    reply(request, job);
    free_job(job);
}

/* ---- for an operator ------------------------------------------------------------------------- */

enum status account_see(struct account *account, const struct account_sight *sight,
                        struct error *error)
{
    struct strict_json_fault fault;
    struct account_call call = {.act = sight->act,
                                .store = sight->store,
                                .limits = account->limits,
                                .reads_rounds = &account->reads_rounds,
                                .now_ms = sight->now_ms,
                                .json.out = sight->answer};
    if (!account_read_query(sight->query, call.act, &call.asked, &fault))
        return error_invalid(error, "%s", fault.message);
    (void)snprintf(call.caller.customer_id, sizeof call.caller.customer_id, "%s",
                   sight->customer_id);
    call.viewer.customer_id = call.caller.customer_id;
    enum status status = handle(account, &call, error);
    secrets_destroy(&call.secrets);
    return call.refusal != NULL && call.refusal == call.act->missing ? STATUS_NOT_FOUND : status;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct account *account_create(const struct platform_store_options *platform,
                               const char *secrets_key_file, const struct client_limits *limits)
{
    struct account *account = memory_alloc_zeroed(1, sizeof *account);
    account->platform = *platform;
    account->platform.gives_way = true;
    account->secrets_key_file = secrets_key_file;
    account->limits = limits;
    LIST_INIT(&account->jobs);
    CHECK(uv_mutex_init(&account->lock) == 0);
    account->pool = work_pool_create("account", ACCOUNT_THREADS, ACCOUNT_QUEUE);
    return account;
}

void account_destroy(struct account **at)
{
    struct account *account = memory_take(at);
    if (account == NULL)
        return;
    work_pool_destroy(&account->pool);
    for (size_t i = 0; i < ACCOUNT_THREADS; i++)
        platform_store_close(&account->stores[i]);
    secrets_destroy(&account->secrets);
    uv_mutex_destroy(&account->lock);
    memory_free(account);
}
