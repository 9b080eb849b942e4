/* POSTs by libcurl; see outgoing.h. */
#include "launch/outgoing.h"

#include <openssl/err.h>
#include <openssl/x509.h>

#include "base/memory.h"

struct outgoing {
    CURLM *multi;
    char *ca_file; /* NULL: the system's certificates */
    LIST_HEAD(, outgoing_post) posts;
};

/* An option that libcurl may lack, or refuse, is a bug or a missing piece of it: never go on
 * without. */
#define SET(easy, option, value) \
    CHECK(curl_easy_setopt((easy), CURLOPT_##option, (value)) == CURLE_OK)

/* ---- the end of a transfer ------------------------------------------------------------------- */

static void finish(struct outgoing *outgoing, struct outgoing_post *post, CURLcode code)
{
    post->code = code;
    CHECK(curl_multi_remove_handle(outgoing->multi, post->easy) == CURLM_OK);
    curl_easy_cleanup(post->easy);
    curl_slist_free_all(post->list);
    LIST_REMOVE(post, link);
    struct buffer answer = post->answer;
    post->done(post); /* may free the post */
    buffer_free(&answer);
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
        if (post->too_large)
            (void)snprintf(post->reason, sizeof post->reason, "the answer is too long");
        else if (post->reason[0] == '\0' && code != CURLE_OK)
            (void)snprintf(post->reason, sizeof post->reason, "%s", curl_easy_strerror(code));
        finish(outgoing, post, code);
    }
}

void outgoing_turn(struct outgoing *outgoing, int wait_ms)
{
    int running;
    CHECK(curl_multi_poll(outgoing->multi, NULL, 0, wait_ms, NULL) == CURLM_OK);
    CHECK(curl_multi_perform(outgoing->multi, &running) == CURLM_OK);
    collect(outgoing);
}

void outgoing_wake(struct outgoing *outgoing)
{
    CHECK(curl_multi_wakeup(outgoing->multi) == CURLM_OK);
}

/* ---- a transfer ------------------------------------------------------------------------------ */

static size_t read_body(char *at, size_t size, size_t count, void *context)
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

/* Options of every request. */
static void set_options(const struct outgoing *outgoing, CURL *easy)
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
     * it, again for each connection, which blocks the thread. */
    if (outgoing->ca_file != NULL || curl_version_info(CURLVERSION_NOW)->cainfo != NULL)
        SET(easy, CAPATH, NULL);
}

static void set_question(CURL *easy, struct outgoing_post *post)
{
    for (size_t i = 0; i < OUTGOING_FIELDS_MAX; i++)
        if (post->fields[i] != NULL && post->fields[i][0] != '\0')
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
    SET(easy, READFUNCTION, read_body);
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
    set_options(outgoing, post->easy);
    set_question(post->easy, post);
    LIST_INSERT_HEAD(&outgoing->posts, post, link);
    CHECK(curl_multi_add_handle(outgoing->multi, post->easy) == CURLM_OK);
}

static void take_answer(struct outgoing_post *post)
{
    if (post->code == CURLE_OK)
        buffer_append_text(post->context, buffer_text(&post->answer));
    post->context = NULL; /* it is done */
}

bool outgoing_wait(struct outgoing *outgoing, struct outgoing_post *post, struct buffer *answer)
{
    post->done = take_answer;
    post->context = answer;
    outgoing_start(outgoing, post);
    while (post->context != NULL)
        outgoing_turn(outgoing, (int)post->timeout_ms);
    return post->code == CURLE_OK;
}

/* ---- certificates ---------------------------------------------------------------------------- */

enum status outgoing_check_ca_file(const char *path, struct error *error)
{
    X509_STORE *store = X509_STORE_new();
    CHECK(store != NULL);
    bool read = X509_STORE_load_file(store, path) == 1;
    X509_STORE_free(store);
    ERR_clear_error();
    return read ? STATUS_OK
                : error_invalid(error, "%s: cannot be read as certificates (PEM)", path);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct outgoing *outgoing_create(const char *ca_file, unsigned kept_connections)
{
    struct outgoing *outgoing = memory_alloc_zeroed(1, sizeof *outgoing);
    outgoing->ca_file = ca_file[0] == '\0' ? NULL : memory_copy_string(ca_file);
    outgoing->multi = curl_multi_init();
    CHECK(outgoing->multi != NULL);
    CHECK(curl_multi_setopt(outgoing->multi, CURLMOPT_MAXCONNECTS, (long)kept_connections) ==
          CURLM_OK);
    return outgoing;
}

void outgoing_destroy(struct outgoing **at)
{
    struct outgoing *outgoing = memory_take(at);
    if (outgoing == NULL)
        return;
    while (!LIST_EMPTY(&outgoing->posts))
        finish(outgoing, LIST_FIRST(&outgoing->posts), OUTGOING_CANCELLED);
    CHECK(curl_multi_cleanup(outgoing->multi) == CURLM_OK);
    memory_free(outgoing->ca_file);
    memory_free(outgoing);
}
