/*
 * libcurl's sockets and its one timer, as libuv's handles; see outgoing.h.
 *
 * libcurl tells which sockets it waits for (on_socket) and until when (on_timer); the loop tells it
 * what happened (curl_multi_socket_action); then finished transfers are collected. A watch lives as
 * long as libcurl waits for its socket, which ends before the socket is closed.
 */
#include "launch/outgoing.h"

#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/x509.h>

#include "base/clock.h"
#include "base/memory.h"

struct outgoing {
    uv_loop_t *loop;
    uv_timer_t timer;
    CURLM *multi;
    char *ca_file;
    struct outgoing_post *first;
};

struct watch {
    uv_poll_t poll;
    struct outgoing *outgoing;
    curl_socket_t socket;
    int events; /* that libcurl waits for */
    unsigned errors;
};

/* What came before an error is read in fewer turns: 16 KiB a turn, of a bounded answer. */
#define ERRORS_MAX 64

/* An option that libcurl may lack, or refuse, is a bug or a missing piece of it: never go on
 * without. */
#define SET(easy, option, value) \
    CHECK(curl_easy_setopt((easy), CURLOPT_##option, (value)) == CURLE_OK)
#define SET_MULTI(multi, option, value) \
    CHECK(curl_multi_setopt((multi), CURLMOPT_##option, (value)) == CURLM_OK)

/* ---- the end of a transfer ------------------------------------------------------------------- */

static void finish(struct outgoing_post *post, enum outgoing_result result)
{
    post->result = result;
    CHECK(curl_multi_remove_handle(post->outgoing->multi, post->easy) == CURLM_OK);
    curl_easy_cleanup(post->easy);
    curl_slist_free_all(post->list);
    *post->link = post->next;
    if (post->next != NULL)
        post->next->link = post->link;
    struct buffer answer = post->answer;
    post->done(post); /* may free the post */
    buffer_free(&answer);
}

static enum outgoing_result result_of(const struct outgoing_post *post, CURLcode code)
{
    if (post->too_large)
        return OUTGOING_TOO_LARGE;
    switch (code) {
    case CURLE_OK:
        return OUTGOING_ANSWERED;
    case CURLE_OPERATION_TIMEDOUT:
        return OUTGOING_TIMEOUT;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
        return OUTGOING_UNREACHABLE;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_INVALIDCERTSTATUS:
        return OUTGOING_UNTRUSTED;
    default:
        return OUTGOING_BROKEN;
    }
}

static void collect(struct outgoing *outgoing)
{
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(outgoing->multi, &left)) != NULL;) {
        struct outgoing_post *post;
        CURLcode code = message->data.result;
        CHECK(message->msg == CURLMSG_DONE);
        CHECK(curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&post) ==
              CURLE_OK);
        CHECK(curl_easy_getinfo(post->easy, CURLINFO_RESPONSE_CODE, &post->status) == CURLE_OK);
        if (post->reason[0] == '\0' && code != CURLE_OK)
            (void)snprintf(post->reason, sizeof post->reason, "%s", curl_easy_strerror(code));
        finish(post, result_of(post, code));
    }
}

/* ---- sockets and the timer ------------------------------------------------------------------- */

static void act(struct outgoing *outgoing, curl_socket_t socket, int what)
{
    int running;
    CHECK(curl_multi_socket_action(outgoing->multi, socket, what, &running) == CURLM_OK);
    collect(outgoing);
}

static void on_poll(uv_poll_t *poll, int status, int events);

static void start_watching(struct watch *watch)
{
    CHECK(uv_poll_start(&watch->poll, watch->events, on_poll) == 0);
}

/* Refused, or reset. An answer may have come before, and libcurl would not look for one if it was
 * told of the error: it is to read, and finds the error after it. libuv, which has ceased to watch,
 * is to go on; but not without end. */
static int what_after_error(struct watch *watch)
{
    if (++watch->errors > ERRORS_MAX)
        return CURL_CSELECT_ERR;
    start_watching(watch);
    return CURL_CSELECT_IN | CURL_CSELECT_OUT;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data; /* may be gone when libcurl returns */
    int what = status < 0 ? what_after_error(watch) : 0;
    if ((events & UV_READABLE) != 0)
        what |= CURL_CSELECT_IN;
    if ((events & UV_WRITABLE) != 0)
        what |= CURL_CSELECT_OUT;
    act(watch->outgoing, watch->socket, what);
}

static void on_watch_closed(uv_handle_t *handle)
{
    memory_free(handle->data);
}

static struct watch *make_watch(struct outgoing *outgoing, curl_socket_t socket)
{
    struct watch *watch = memory_alloc_zeroed(1, sizeof *watch);
    watch->outgoing = outgoing;
    watch->socket = socket;
    CHECK(uv_poll_init_socket(outgoing->loop, &watch->poll, socket) == 0);
    watch->poll.data = watch;
    CHECK(curl_multi_assign(outgoing->multi, socket, watch) == CURLM_OK);
    return watch;
}

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *context, void *assigned)
{
    struct watch *watch = assigned;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watch == NULL)
            return 0;
        CHECK(uv_poll_stop(&watch->poll) == 0);
        uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
        return 0;
    }
    if (watch == NULL)
        watch = make_watch(context, socket);
    watch->events = (what & CURL_POLL_IN) != 0 ? UV_READABLE : 0;
    if ((what & CURL_POLL_OUT) != 0)
        watch->events |= UV_WRITABLE;
    start_watching(watch);
    return 0;
}

static void on_timeout(uv_timer_t *timer)
{
    act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer(CURLM *multi, long timeout_ms, void *context)
{
    struct outgoing *outgoing = context;
    (void)multi;
    if (timeout_ms < 0) {
        CHECK(uv_timer_stop(&outgoing->timer) == 0);
        return 0;
    }
    clock_refresh_loop(outgoing->loop);
    CHECK(uv_timer_start(&outgoing->timer, on_timeout, (uint64_t)timeout_ms, 0) == 0);
    return 0;
}

/* ---- a transfer ------------------------------------------------------------------------------ */

static size_t give_body(char *at, size_t size, size_t count, void *context)
{
    struct outgoing_post *post = context;
    size_t room = size * count;
    size_t left = post->body.size - post->sent;
    size_t now = left < room ? left : room;
    memcpy(at, post->body.at + post->sent, now);
    post->sent += now;
    return now;
}

static size_t take_body(char *at, size_t size, size_t count, void *context)
{
    struct outgoing_post *post = context;
    size_t more = size * count;
    if (more > post->answer_max - post->answer.size) {
        post->too_large = true;
        return 0;
    }
    buffer_append(&post->answer, at, more);
    return more;
}

static size_t take_head(char *at, size_t size, size_t count, void *context)
{
    struct outgoing_post *post = context;
    (void)at;
    post->head_size += size * count;
    post->too_large = post->too_large || post->head_size > OUTGOING_HEAD_MAX;
    return post->too_large ? 0 : size * count;
}

static void add_field(struct outgoing_post *post, const char *field)
{
    struct curl_slist *list = curl_slist_append(post->list, field);
    CHECK(list != NULL);
    post->list = list;
}

/* What is so for every one of them. */
static void set_manners(const struct outgoing *outgoing, CURL *easy)
{
    SET(easy, NOSIGNAL, 1L);
    SET(easy, QUICK_EXIT, 1L); /* wait for no thread that resolves a name for too long */
    SET(easy, PROTOCOLS_STR, "http,https");
    SET(easy, FOLLOWLOCATION, 0L);
    SET(easy, PROXY, ""); /* none, and none of the environment */
    SET(easy, DISALLOW_USERNAME_IN_URL, 1L);
    SET(easy, HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(easy, SSL_VERIFYPEER, 1L);
    SET(easy, SSL_VERIFYHOST, 2L);
    SET(easy, SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(easy, USERAGENT, "croupier/" CROUPIER_VERSION);
    if (outgoing->ca_file != NULL)
        SET(easy, CAINFO, outgoing->ca_file);
    /* With certificates from a file alone libcurl reads them once a day; with a directory beside
     * it, for each connection anew, and nothing else goes on meanwhile. */
    if (outgoing->ca_file != NULL || curl_version_info(CURLVERSION_NOW)->cainfo != NULL)
        SET(easy, CAPATH, NULL);
}

static void set_question(CURL *easy, struct outgoing_post *post)
{
    for (size_t i = 0; i < OUTGOING_FIELDS_MAX && post->fields[i] != NULL; i++)
        add_field(post, post->fields[i]);
    add_field(post, "Expect:"); /* not to wait for a 100 */
    SET(easy, URL, post->url);
    SET(easy, HTTPHEADER, post->list);
    SET(easy, TIMEOUT_MS, (long)post->timeout_ms);
    SET(easy, CONNECTTIMEOUT_MS, (long)post->timeout_ms);
    SET(easy, POST, 1L);
    SET(easy, POSTFIELDSIZE, (long)post->body.size);
    /* Through a function that cannot be rewound: so libcurl, which asks again when a kept
     * connection ended without an answer, does so only if nothing of the body was sent. */
    SET(easy, READFUNCTION, give_body);
    SET(easy, READDATA, post);
    SET(easy, WRITEFUNCTION, take_body);
    SET(easy, WRITEDATA, post);
    SET(easy, HEADERFUNCTION, take_head);
    SET(easy, HEADERDATA, post);
    SET(easy, ERRORBUFFER, post->reason);
    SET(easy, PRIVATE, post);
}

void outgoing_start(struct outgoing *outgoing, struct outgoing_post *post)
{
    CHECK(post->timeout_ms > 0);
    post->easy = curl_easy_init();
    CHECK(post->easy != NULL);
    post->outgoing = outgoing;
    post->list = NULL;
    post->sent = 0;
    post->head_size = 0;
    post->too_large = false;
    post->status = 0;
    post->reason[0] = '\0';
    post->answer = (struct buffer){0};
    set_manners(outgoing, post->easy);
    set_question(post->easy, post);
    post->link = &outgoing->first;
    post->next = outgoing->first;
    if (post->next != NULL)
        post->next->link = &post->next;
    outgoing->first = post;
    CHECK(curl_multi_add_handle(outgoing->multi, post->easy) == CURLM_OK);
}

/* ---- certificates ---------------------------------------------------------------------------- */

enum status outgoing_check_ca_file(const char *path, struct error *error)
{
    X509_STORE *store = X509_STORE_new();
    CHECK(store != NULL);
    bool read = X509_STORE_load_file(store, path) == 1;
    X509_STORE_free(store);
    ERR_clear_error();
    return read
               ? STATUS_OK
               : error_set(error, STATUS_INVALID, "%s: cannot be read as certificates (PEM)", path);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct outgoing *outgoing_create(const struct outgoing_options *options)
{
    struct outgoing *outgoing = memory_alloc_zeroed(1, sizeof *outgoing);
    outgoing->loop = options->loop;
    outgoing->ca_file = options->ca_file == NULL ? NULL : memory_copy_string(options->ca_file);
    outgoing->multi = curl_multi_init();
    CHECK(outgoing->multi != NULL);
    CHECK(uv_timer_init(options->loop, &outgoing->timer) == 0);
    outgoing->timer.data = outgoing;
    SET_MULTI(outgoing->multi, SOCKETFUNCTION, on_socket);
    SET_MULTI(outgoing->multi, SOCKETDATA, outgoing);
    SET_MULTI(outgoing->multi, TIMERFUNCTION, on_timer);
    SET_MULTI(outgoing->multi, TIMERDATA, outgoing);
    SET_MULTI(outgoing->multi, MAXCONNECTS, (long)options->kept_connections);
    return outgoing;
}

static void on_closed(uv_handle_t *handle)
{
    struct outgoing *outgoing = handle->data;
    memory_free(outgoing->ca_file);
    memory_free(outgoing);
}

void outgoing_destroy(struct outgoing **at)
{
    struct outgoing *outgoing = *at;
    *at = NULL;
    if (outgoing == NULL)
        return;
    while (outgoing->first != NULL)
        finish(outgoing->first, OUTGOING_CANCELLED);
    CHECK(curl_multi_cleanup(outgoing->multi) == CURLM_OK);
    uv_close((uv_handle_t *)&outgoing->timer, on_closed);
}
