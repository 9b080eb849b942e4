/*
 * A request is judged on the loop's thread as far as no store is needed, copied into a job, and
 * answered when the job comes back by the mailbox, if its client is still there.
 */
#include "console/console.h"

#include <openssl/crypto.h>

#include "admission/admission.h"
#include "base/clock.h"
#include "base/mailbox.h"
#include "base/memory.h"
#include "base/work_pool.h"
#include "console/error_rows.h"
#include "console/history.h"
#include "console/lockout.h"
#include "console/pages.h"
#include "console/routes.h"
#include "http/deferral.h"
#include "operator/tokens.h"
#include "operator/verification.h"

#define THREADS 2
/* Together fewer than the listener's connections: one of the others can always make room. */
#define QUEUE_MAX 32
#define WAITS_MAX 16
#define WAITS_PER_SESSION 4
#define LOOK_MS 1000 /* between two looks at what waits */
#define API "/admin/"
#define COOKIE "croupier_session"

struct console {
    struct console_options options;
    struct mailbox *mailbox;
    struct work_pool *pool;
    struct lockout sign_ins; /* that failed, */
    struct lockout tokens;   /* and tokens that were not good: neither keeps the other out */
    struct console_facts facts;
    struct console_services services;
    const struct config *config; /* in force */
    struct buffer hosts;         /* its names, separated by commas */
    bool secure;                 /* it has HTTPS */
    bool refused;                /* it has no HTTPS, and needs it */
    bool has_operator;           /* one was seen */
    uv_timer_t *look;            /* frees itself */
    LIST_HEAD(, job) waits;      /* GETs that wait for another answer, also while a thread looks */
    struct platform_store *stores[THREADS]; /* of each thread; NULL: not opened yet */
};

struct job {
    struct work work;
    struct mail mail;
    struct http_deferral deferral;
    struct console *console;
    struct buffer texts; /* query, body and If-Match, of which the call has slices */
    bool page;           /* one is asked for: no call */
    bool has_operator;
    uint64_t until_ms;              /* it waits, by the loop's clock; 0: it is not in `waits` */
    LIST_ENTRY(job) link;           /* in `waits` */
    bool with_thread;               /* it is in the pool, or comes back from there */
    const struct http_error *error; /* NULL: the call's answer */
    struct error reason;            /* "": as the error says */
    struct console_call call;
};

/* ---- on a thread of the console's ------------------------------------------------------------ */

static const struct http_error *error_of(const struct console_call *call, enum status status)
{
    if (call->refusal != NULL)
        return call->refusal;
    switch (status) {
    case STATUS_INVALID:
        return &error_invalid;
    case STATUS_NOT_FOUND:
        return &error_unknown_record;
    case STATUS_EXISTS:
    case STATUS_CONFLICT:
    case STATUS_FULL:
    case STATUS_MALFORMED:
        return &error_conflict;
    case STATUS_UNAVAILABLE:
    case STATUS_TIMEOUT:
    case STATUS_READ_ONLY:
        return &error_store_unavailable;
    default:
        return &error_bug;
    }
}

/* "name: is …": where nothing has said which field it is. */
static void find_field(struct console_call *call, const char *text)
{
    size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
    if (call->field[0] == '\0' && size > 0 && size < sizeof call->field && text[size] == ':')
        (void)snprintf(call->field, sizeof call->field, "%.*s", (int)size, text);
}

/* Names the change as the audit trail shows it: "PATCH customers". */
static void sign_changes(struct console_call *call)
{
    char command[TRAIL_COMMAND_SIZE];
    struct text path = text_of(call->route->path);
    path = (struct text){path.at + strlen("/admin/v1/"), path.size - strlen("/admin/v1/")};
    struct text words = text_cut(&path, '/');
    (void)snprintf(command, sizeof command, "%s %.*s", http_method_name(call->route->method),
                   (int)words.size, words.at);
    operator_act(call->store, &call->signed_in, command);
}

static enum status admit(struct console_call *call, struct error *error)
{
    const struct text secret = text_of(call->secret);
    enum status status =
        call->by == BY_TOKEN ? tokens_admit(call->store, secret, &call->client, call->now_ms,
                                            &call->signed_in, error)
        : call->by == BY_PROXY
            ? credential_admit_named(call->store, call->secret, &call->client, call->now_ms,
                                     &call->signed_in, error)
            : credential_find_session(call->store, secret, call->now_ms, &call->signed_in, error);
    if (status == STATUS_NOT_FOUND)
        call->refusal = call->by == BY_TOKEN ? &error_token_not_good : &error_not_signed_in;
    else if (status == STATUS_CONFLICT)
        call->refusal = &error_token_not_from_here;
    if (status != STATUS_OK)
        return status;
    if (call->signed_in.who.role < call->route->role) {
        call->refusal = &error_role_too_low;
        return STATUS_CONFLICT;
    }
    sign_changes(call);
    return STATUS_OK;
}

static bool see_last_change(void *context, const void *record)
{
    struct console_call *call = context;
    const struct trail_record *change = record;
    memcpy(call->changed_by, change->who, sizeof call->changed_by);
    call->changed_ms = change->at_ms;
    return false;
}

/* Where the trail cannot be read, the refusal is without it. */
static void find_last_change(struct console_call *call)
{
    const struct trail_search search = {.object = call->id,
                                        .who = "",
                                        .limit = 1,
                                        .operators = call->signed_in.who.role == ROLE_OWNER};
    struct error error;
    if (platform_trail_search(call->store, &search, see_last_change, call, &error) != STATUS_OK)
        call->changed_by[0] = '\0';
}

static enum status run_handler(struct console_call *call, struct error *error)
{
    call->query = (struct console_query){.text = call->query.text, .error = error};
    call->json = (struct json_writer){.out = &call->answer};
    enum status status = call->route->handle(call, error);
    json_end_all(&call->json);
    return status;
}

/* A change under If-Match: is what a GET of the path would show still what the caller saw? */
static enum status check_tag(struct console_call *call, struct error *error)
{
    const struct console_route *changed = call->route;
    struct text values[HTTP_PATH_VALUES];
    struct buffer methods = {0};
    call->route = console_route_find(text_of(changed->path), METHOD_GET, values, &methods);
    enum status status = call->route == NULL ? STATUS_OK : run_handler(call, error);
    if (status == STATUS_OK && call->tag[0] != '\0' &&
        !text_equals(call->if_match, text_of(call->tag)))
        status = console_changed(call, error);
    call->route = changed;
    call->tag[0] = '\0';
    buffer_clear(&call->answer);
    buffer_free(&methods);
    return status;
}

static enum status handle_call(struct job *job, struct error *error)
{
    struct console_call *call = &job->call;
    enum status status = operators_exist(call->store, &job->has_operator, error);
    if (status != STATUS_OK || !job->has_operator || job->page)
        return status;
    if (!call->route->open)
        status = admit(call, error);
    if (status == STATUS_OK && call->route->resource != NULL)
        call->record = memory_alloc_zeroed(1, call->route->resource->size);
    if (status == STATUS_OK && call->if_match.at != NULL && call->route->method != METHOD_GET)
        status = check_tag(call, error);
    if (status == STATUS_OK)
        status = run_handler(call, error);
    memory_free(call->record);
    call->record = NULL;
    if (call->refusal == &error_changed_meanwhile)
        find_last_change(call);
    return status;
}

static void run_job(struct work *work)
{
    struct job *job = CONTAINER_OF(work, struct job, work);
    struct console_call *call = &job->call;
    struct platform_store **store = &job->console->stores[work->thread];
    struct error error = {0};
    call->now_ms = clock_wall_ms();
    enum status status = platform_store_open(store, &job->console->options.platform, &error);
    call->store = *store;
    if (status == STATUS_OK)
        status = handle_call(job, &error);
    if (status == STATUS_OK && !job->has_operator)
        job->error = &error_not_found;
    else if (status != STATUS_OK) {
        job->error = error_of(call, status);
        if (call->refusal == NULL || call->refusal == &error_role_too_low ||
            (call->refusal == &error_not_signed_in && call->by == BY_PROXY)) {
            job->reason = error;
            if (status < STATUS_MALFORMED) /* from there on a store's name begins the text */
                find_field(call, error.text);
        }
    }
    mailbox_post(job->console->mailbox, &job->mail);
}

/* ---- replying -------------------------------------------------------------------------------- */

/* `call`: has details of the refusal; may be NULL. `reason`: "": the message of the error. */
static void reply_error(struct http_request *request, const struct http_error *error,
                        const struct console_call *call, const char *reason)
{
    struct buffer body = {0};
    struct json_writer json = {.out = &body};
    json_object(&json, NULL);
    json_object(&json, "error");
    json_string(&json, "code", error->code);
    json_string(&json, "message", reason[0] != '\0' ? reason : error->message);
    json_string_or_null(&json, "field", call != NULL ? call->field : NULL);
    if (call != NULL && call->refusals.size > 0) {
        json_begin_raw(&json, "fields");
        buffer_append_string(&body, "[");
        buffer_append_text(&body, buffer_text(&call->refusals));
        buffer_append_string(&body, "]");
    }
    if (call != NULL && call->changed_by[0] != '\0') {
        json_string(&json, "changed_by", call->changed_by);
        json_time(&json, "changed_at", call->changed_ms);
    }
    json_end_all(&json);
    if (error == &error_token_not_good)
        http_request_add_field(request, TEXT("WWW-Authenticate"),
                               TEXT("Bearer error=\"invalid_token\""));
    http_reply_error_document(request, error, buffer_text(&body));
    buffer_free(&body);
}

static void set_cookie(const struct console *console, struct http_request *request,
                       const char *value, unsigned seconds)
{
    char cookie[192];
    int size = snprintf(cookie, sizeof cookie,
                        COOKIE "=%s; HttpOnly; SameSite=Strict; Path=/; Max-Age=%u%s", value,
                        seconds, console->secure ? "; Secure" : "");
    http_request_add_field(request, TEXT("Set-Cookie"), (struct text){cookie, (size_t)size});
    explicit_bzero(cookie, sizeof cookie);
}

/* Also without Content-Length (RFC 9110 section 8.6). */
static void reply_without_body(struct http_request *request, uint16_t status, const char *words)
{
    char head[128];
    int size = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nCache-Control: no-store\r\n", words);
    struct http_message *message =
        http_message_create(status, (struct text){head, (size_t)size}, TEXT(""));
    http_reply_message(request, message);
    http_message_release(&message);
}

static void reply_call(struct job *job, struct http_request *request)
{
    struct console_call *call = &job->call;
    if (call->new_session[0] != '\0')
        set_cookie(job->console, request, call->new_session, CREDENTIAL_SESSION_MS / 1000);
    else if (call->ends_session)
        set_cookie(job->console, request, "", 0);
    if (call->tag[0] != '\0')
        http_request_add_field(request, TEXT("ETag"), text_of(call->tag));
    if (call->status == 204)
        reply_without_body(request, 204, "204 No Content");
    else
        http_reply_json(request, call->status, buffer_text(&call->answer));
}

static void reply_page(struct http_request *request)
{
    if (!console_pages_reply(request))
        reply_error(request, &error_not_found, NULL, "");
}

static void free_job(struct job *job)
{
    if (job->until_ms != 0)
        LIST_REMOVE(job, link);
    buffer_wipe(&job->texts); /* there may be a secret in it, */
    buffer_wipe(&job->call.answer);
    buffer_wipe(&job->call.refusals);
    config_release(&job->call.config);
    memory_free(job->call.tail);
    explicit_bzero(&job->call, sizeof job->call);
    memory_free(job);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool is_change(const struct http_request *request)
{
    return request->method != METHOD_GET && request->method != METHOD_HEAD;
}

/* Is there room for one more wait, of this session and of all? */
static bool has_room(const struct console *console, const struct job *job)
{
    unsigned all = 0;
    unsigned same = 0;
    const struct job *at;
    LIST_FOREACH (at, &console->waits, link) {
        all++;
        same += strcmp(at->call.signed_in.session.id, job->call.signed_in.session.id) == 0;
    }
    return all < WAITS_MAX && same < WAITS_PER_SESSION;
}

static void on_gone(struct http_deferral *deferral)
{
    struct job *job = CONTAINER_OF(deferral, struct job, deferral);
    if (!job->with_thread)
        free_job(job);
}

/* True: it does, and the request is deferred again. */
static bool begin_waiting(struct job *job, struct http_request *request)
{
    struct console *console = job->console;
    uint64_t now_ms = clock_loop_ms(console->options.loop);
    uint32_t wanted_s = http_preferred_wait(request, HTTP_WAIT_SECONDS_MAX);
    if (wanted_s == 0 || !http_may_wait(request) || (job->until_ms == 0 && !has_room(console, job)))
        return false;
    if (job->until_ms == 0) {
        char applied[24];
        int size = snprintf(applied, sizeof applied, "wait=%u", wanted_s);
        http_request_add_field(request, TEXT("Preference-Applied"),
                               (struct text){applied, (size_t)size});
        job->until_ms = now_ms + wanted_s * UINT64_C(1000);
        LIST_INSERT_HEAD(&console->waits, job, link);
    }
    if (now_ms >= job->until_ms)
        return false;
    http_defer(&job->deferral, request);
    return true;
}

static bool has_answer(const struct job *job, const struct http_request *request)
{
    return job->call.tag[0] != '\0' && !is_change(request) &&
           http_matches_etag(request, text_of(job->call.tag));
}

/* WAITS: the client has the answer already, or there is nothing in it, and its request waits for
 * another one. */
enum delivery { REPLIED, WAITS };

static enum delivery answer_call(struct job *job, struct http_request *request)
{
    bool known = has_answer(job, request);
    bool empty = job->call.is_empty && !is_change(request);
    if ((known || empty) && begin_waiting(job, request))
        return WAITS;
    if (known) {
        http_request_add_field(request, TEXT("ETag"), text_of(job->call.tag));
        reply_without_body(request, 304, "304 Not Modified");
    } else {
        reply_call(job, request);
    }
    return REPLIED;
}

/* Where the pool is full, the next time. */
static void ask_again(struct job *job)
{
    struct console_call *call = &job->call;
    buffer_clear(&call->answer);
    buffer_clear(&call->refusals);
    call->tag[0] = '\0';
    call->is_empty = false;
    call->status = 200;
    config_release(&call->config);
    call->config = config_hold(job->console->config);
    job->with_thread = work_pool_submit(job->console->pool, &job->work) == STATUS_OK;
}

static void on_look(uv_timer_t *timer)
{
    struct console *console = timer->data;
    struct job *job;
    history_take(console->services.history, &console->services.sources);
    LIST_FOREACH (job, &console->waits, link)
        if (!job->with_thread)
            ask_again(job);
}

/* Counts a refused link or token by its address, and logs the first few of a minute; a token that
 * ends while its request waits is not counted. Returns the seconds for which this address gets 429
 * in place of the refusal; 0: none. A good link or token from there always passes: a guess must
 * keep no good client out. */
static uint32_t note_failure(const struct job *job)
{
    struct console *console = job->console;
    const struct http_error *refusal = job->call.refusal;
    bool by_link = refusal == &error_link_not_good;
    bool elsewhere = refusal == &error_token_not_from_here; /* it is good, and gets no 429 */
    if (!by_link && !elsewhere && (refusal != &error_token_not_good || job->until_ms != 0))
        return 0;
    struct lockout *lockout = by_link ? &console->sign_ins : &console->tokens;
    uint32_t left = lockout_note_failure(lockout, &job->call.client, clock_monotonic_ms());
    console->facts.refused[elsewhere  ? CONSOLE_REFUSED_ADDRESS
                           : left > 0 ? CONSOLE_REFUSED_LOCKED_OUT
                           : by_link  ? CONSOLE_REFUSED_LINK
                                      : CONSOLE_REFUSED_TOKEN]++;
    if (left == 0) {
        char client[ADDRESS_TEXT_SIZE];
        address_format(&job->call.client, client);
        log_event(console->options.platform.log, LOG_WARNING, "a link or a token was refused",
                  LOG_STRING("client", client), LOG_STRING("reason", refusal->code),
                  LOG_STRING("operator", job->call.signed_in.who.name));
    }
    return elsewhere ? 0 : left;
}

static void reply_locked_out(struct http_request *request, uint32_t seconds)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%u", seconds);
    http_request_add_field(request, TEXT("Retry-After"), text_of(text));
    reply_error(request, &error_too_many_attempts, NULL, "");
}

static void deliver(struct mail *mail)
{
    struct job *job = CONTAINER_OF(mail, struct job, mail);
    struct console *console = job->console;
    struct http_request *request = http_deferral_take(&job->deferral);
    enum delivery delivery = REPLIED;
    job->with_thread = false;
    console->has_operator = console->has_operator || job->has_operator;
    uint32_t locked_out = note_failure(job);
    if (request != NULL && locked_out > 0)
        reply_locked_out(request, locked_out);
    else if (request != NULL && job->error != NULL)
        reply_error(request, job->error, &job->call, job->reason.text);
    else if (request != NULL && job->page)
        reply_page(request);
    else if (request != NULL)
        delivery = answer_call(job, request);
    if (delivery != WAITS)
        free_job(job);
}

/* ---- judging --------------------------------------------------------------------------------- */

static bool has_host(const struct console *console, struct text host)
{
    struct text rest = buffer_text(&console->hosts);
    while (rest.at != NULL) {
        struct text name = text_trim(text_cut(&rest, ','));
        if (name.size > 0 && text_equals_ignore_case(name, host))
            return true;
    }
    return false;
}

/* A browser names the origin of a request by Sec-Fetch-Site; an old one by Origin alone, which must
 * then be the Host that it asked. */
static bool is_same_origin(const struct console *console, const struct http_request *request)
{
    char origin[512];
    struct text host = http_request_only_field(request, HTTP_FIELD_HOST);
    if (request->field_count[HTTP_FIELD_SEC_FETCH_SITE] > 0)
        return text_equals(http_request_only_field(request, HTTP_FIELD_SEC_FETCH_SITE),
                           TEXT("same-origin"));
    int size = snprintf(origin, sizeof origin, "%s://%.*s", console->secure ? "https" : "http",
                        (int)(host.size < 256 ? host.size : 256), host.at);
    return text_equals_ignore_case(http_request_only_field(request, HTTP_FIELD_ORIGIN),
                                   (struct text){origin, (size_t)size});
}

static bool is_json(const struct http_request *request)
{
    struct text type = http_request_only_field(request, HTTP_FIELD_CONTENT_TYPE);
    return text_equals_ignore_case(text_trim(text_cut(&type, ';')), TEXT("application/json"));
}

/* No page of another site can send a token, so a request with one comes from nowhere else. */
static const struct http_error *judge_change(const struct console *console,
                                             const struct http_request *request,
                                             enum signed_in_by by)
{
    if (!is_change(request))
        return NULL;
    if (by != BY_TOKEN && !is_same_origin(console, request))
        return &error_not_same_origin;
    bool bare = request->body.size == 0 && request->field_count[HTTP_FIELD_CONTENT_TYPE] == 0;
    return bare || is_json(request) ? NULL : &error_not_json;
}

/* The values of our cookie: how many, and the last. */
static unsigned find_cookies(const struct http_request *request, struct text *value)
{
    struct text line;
    unsigned count = 0;
    for (uint32_t at = 0; http_request_next_field(request, HTTP_FIELD_COOKIE, &at, &line);)
        while (line.at != NULL) {
            struct text found = text_trim(text_cut(&line, ';'));
            if (!text_equals(text_cut(&found, '='), TEXT(COOKIE)))
                continue;
            *value = found;
            count++;
        }
    return count;
}

/* Does a sign-in proxy send the request? The address of its connection says so, and its secret if
 * there is one, which there must be for an address that every process of this machine has. */
static bool is_from_sign_in_proxy(const struct config *config, const struct http_request *request)
{
    const struct cidr_list *proxies = &config->trusted_user_proxies;
    struct text secret = config->trusted_user_secret;
    struct text sent = http_request_only_field(request, HTTP_FIELD_X_CROUPIER_PROXY_SECRET);
    if (!cidrs_contain(proxies->blocks, proxies->count, &request->peer))
        return false;
    return secret.size == 0
               ? !address_is_loopback(&request->peer)
               : sent.size == secret.size && CRYPTO_memcmp(sent.at, secret.at, secret.size) == 0;
}

/* A request has the cookie of a session, a token, or an operator's name from a sign-in proxy;
 * without them `secret` is empty. Another scheme than Bearer is the business of a proxy before us.
 */
static const struct http_error *read_credential(const struct console *console,
                                                const struct http_request *request,
                                                struct text *secret, enum signed_in_by *by)
{
    unsigned names = is_from_sign_in_proxy(console->config, request)
                         ? request->field_count[HTTP_FIELD_NAMED]
                         : 0;
    struct text line;
    struct text token = TEXT("");
    struct text cookie = TEXT("");
    unsigned tokens = 0;
    unsigned cookies = find_cookies(request, &cookie);
    for (uint32_t at = 0; http_request_next_field(request, HTTP_FIELD_AUTHORIZATION, &at, &line);)
        tokens += admission_bearer(line, &token);
    *by = names > 0 ? BY_PROXY : tokens > 0 ? BY_TOKEN : BY_SESSION;
    if (names + (tokens > 0) + (cookies > 0) > 1)
        return &error_two_credentials;
    *secret = names == 1     ? http_request_field(request, HTTP_FIELD_NAMED)
              : tokens == 1  ? token
              : cookies == 1 ? cookie
                             : TEXT("");
    if (secret->at == NULL || secret->size > CREDENTIAL_LENGTH || !text_is_plain(*secret))
        *secret = TEXT("");
    return NULL;
}

static void add_protection(struct http_request *request)
{
    static const struct {
        struct text name, value;
    } fields[] = {
        {TEXT_INIT("Content-Security-Policy"),
         TEXT_INIT("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                   "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors "
                   "'none'; require-trusted-types-for 'script'; trusted-types 'none'")},
        {TEXT_INIT("X-Frame-Options"), TEXT_INIT("DENY")},
        {TEXT_INIT("Referrer-Policy"), TEXT_INIT("no-referrer")},
        {TEXT_INIT("Cross-Origin-Opener-Policy"), TEXT_INIT("same-origin")},
        {TEXT_INIT("Cross-Origin-Resource-Policy"), TEXT_INIT("same-origin")},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        http_request_add_field(request, fields[i].name, fields[i].value);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static struct text copy_text(struct buffer *texts, struct text text)
{
    struct text kept = {texts->data + texts->size, text.size};
    buffer_append_text(texts, text);
    return text.at == NULL ? text : kept;
}

static void submit(struct job *job, struct http_request *request)
{
    job->work.run = run_job;
    job->mail.deliver = deliver;
    job->deferral.gone = on_gone;
    job->with_thread = work_pool_submit(job->console->pool, &job->work) == STATUS_OK;
    if (job->with_thread) {
        http_defer(&job->deferral, request);
        return;
    }
    free_job(job);
    reply_error(request, &error_console_busy, NULL, "");
}

static struct address client_of(const struct console *console, const struct http_request *request)
{
    struct address client;
    return admission_client_behind(request, console->config->trusted_proxies, &client)
               ? client
               : (struct address){{0}};
}

static struct job *make_job(struct console *console, const struct http_request *request)
{
    struct job *job = memory_alloc_zeroed(1, sizeof *job);
    /* Two fields are a list, which no record's tag is: they must not pass for none. */
    struct text if_match = request->field_count[HTTP_FIELD_IF_MATCH] > 1
                               ? TEXT("")
                               : http_request_only_field(request, HTTP_FIELD_IF_MATCH);
    job->console = console;
    job->call.services = &console->services;
    job->call.config = config_hold(console->config);
    job->call.status = 200;
    buffer_reserve(&job->texts, request->query.size + request->body.size + if_match.size + 1);
    job->call.query.text = copy_text(&job->texts, request->query);
    job->call.body = copy_text(&job->texts, request->body);
    job->call.if_match = copy_text(&job->texts, if_match);
    job->call.client = client_of(console, request);
    return job;
}

static void ask_for_page(struct console *console, struct http_request *request)
{
    if (console->has_operator) {
        reply_page(request);
        return;
    }
    struct job *job = make_job(console, request);
    job->page = true;
    submit(job, request);
}

static void call_api(struct console *console, struct http_request *request)
{
    struct buffer methods = {0};
    struct text values[HTTP_PATH_VALUES];
    const struct console_route *route =
        console_route_find(request->path, request->method, values, &methods);
    struct text secret = TEXT("");
    enum signed_in_by by = BY_SESSION;
    const struct http_error *error = read_credential(console, request, &secret, &by);
    if (error == NULL)
        error = judge_change(console, request, by);
    if (error == &error_two_credentials && by == BY_PROXY)
        set_cookie(console, request, "", 0); /* of a session from before there was a proxy */
    if (route == NULL && methods.size > 0) {
        http_request_add_field(request, TEXT("Allow"), buffer_text(&methods));
        reply_error(request, &error_method_not_allowed, NULL, "");
    } else if (route == NULL) {
        reply_error(request, &error_not_found, NULL, "");
    } else if (error != NULL) {
        reply_error(request, error, NULL, "");
    } else {
        struct job *job = make_job(console, request);
        job->call.route = route;
        job->call.by = by;
        memcpy(job->call.secret, secret.at, secret.size);
        if (console_decode(values[0], false, job->call.id) &&
            console_decode(values[1], false, job->call.part)) {
            submit(job, request);
        } else {
            free_job(job);
            reply_error(request, &error_unknown_record, NULL, "");
        }
    }
    buffer_free(&methods);
}

bool console_handle(struct console *console, struct http_request *request)
{
    bool api = text_starts_with(request->path, TEXT(API));
    if (!api && !text_equals(request->path, TEXT("/")) &&
        !text_starts_with(request->path, TEXT("/console/")))
        return false;
    if (console->refused)
        return false;
    add_protection(request);
    if (!has_host(console, http_request_only_field(request, HTTP_FIELD_HOST)))
        reply_error(request, &error_unknown_host, NULL, "");
    else if (api)
        call_api(console, request);
    else
        ask_for_page(console, request);
    return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void name_hosts(struct console *console)
{
    const struct config *config = console->config;
    const char *host = config->operator_listen.host;
    unsigned port = console->options.port;
    if (config->operator_hosts[0] != '\0') {
        buffer_append_string(&console->hosts, config->operator_hosts);
        return;
    }
    buffer_append_format(&console->hosts, strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u", host,
                         port);
    buffer_append_format(&console->hosts, ",localhost:%u,127.0.0.1:%u,[::1]:%u", port, port, port);
}

struct console *console_create(const struct console_options *options)
{
    struct console *console = memory_alloc_zeroed(1, sizeof *console);
    console->options = *options;
    console->config = config_hold(options->config);
    console->secure = console->config->operator_tls_certificate[0] != '\0';
    struct address address;
    CHECK(address_parse(text_of(console->config->operator_listen.host), &address) == STATUS_OK);
    console->refused = !console->secure && !address_is_loopback(&address);
    console->mailbox = mailbox_create(options->loop);
    console->services.sources = options->sources;
    console->services.started_ms = clock_wall_ms();
    console->services.verification = verification_create(&console->options.platform);
    console->services.history = history_create();
    console->pool = work_pool_create("console", THREADS, QUEUE_MAX);
    name_hosts(console);
    console->look = memory_alloc_zeroed(1, sizeof *console->look);
    clock_make_timer(options->loop, console->look, console);
    CHECK(uv_timer_start(console->look, on_look, LOOK_MS, LOOK_MS) == 0);
    on_look(console->look); /* the history begins now */
    if (console->refused)
        log_event(options->platform.log, LOG_WARNING,
                  "no console: the operator listener is not on loopback and has no HTTPS",
                  LOG_STRING("listen", console->config->operator_listen.text));
    return console;
}

void console_set_config(struct console *console, const struct config *config)
{
    config_release(&console->config);
    console->config = config_hold(config);
}

static void free_timer(uv_handle_t *timer)
{
    memory_free(timer);
}

void console_destroy(struct console **at)
{
    struct console *console = memory_take(at);
    if (console == NULL)
        return;
    work_pool_destroy(&console->pool);
    mailbox_destroy(&console->mailbox);
    uv_close((uv_handle_t *)console->look, free_timer);
    CHECK(LIST_EMPTY(&console->waits)); /* their requests have gone */
    history_destroy(&console->services.history);
    for (size_t i = 0; i < THREADS; i++)
        platform_store_close(&console->stores[i]);
    verification_destroy(&console->services.verification);
    config_release(&console->config);
    buffer_free(&console->hosts);
    memory_free(console);
}

/* ---- metrics --------------------------------------------------------------------------------- */

const struct console_facts *console_facts(const struct console *console)
{
    return &console->facts;
}

static const char *const refusals[CONSOLE_REFUSAL_COUNT] = {"link", "token", "address",
                                                            "locked_out"};
static const struct enum_names refusal_names = ENUM_NAMES(refusals);

const struct metric console_metrics[] = {
    METRIC_EACH("croupier_console_refused_total", struct console_facts, refused, "reason",
                &refusal_names),
    {0},
};
