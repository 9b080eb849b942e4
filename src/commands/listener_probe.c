/* Finding the process behind an address; see listener_probe.h. */
#include "commands/listener_probe.h"

#include <curl/curl.h>

#define ANSWER_MAX ((size_t)64 * 1024)

/* The path to ask each listener for, and a text that each answer of croupier has. */
static const struct {
    const char *path, *sign;
} probes[] = {
    [LISTENER_PUBLIC] = {"/api/v1/health", "\"cache\":\""},
    [LISTENER_OPERATOR] = {"/metrics", "# TYPE croupier_"},
    [LISTENER_PROVIDER] = {"/provider/v1/wallet", "\"not_admitted\""},
};

/* Keeps the beginning of the answer, where the sign is, and ends it there. */
static size_t take(char *bytes, size_t one, size_t size, void *context)
{
    struct buffer *answer = context;
    (void)one;
    size_t room = ANSWER_MAX - answer->size;
    buffer_append(answer, bytes, size < room ? size : room);
    return size < room ? size : 0;
}

/* The certificate is not looked at: nothing secret is sent, and it is for another name. */
static bool set_options(CURL *easy, const char *url, struct buffer *answer)
{
    return curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TIMEOUT, PROBE_SECONDS) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, answer) == CURLE_OK;
}

bool listener_ask(enum listener_kind kind, const struct listen_address *address, bool tls,
                  struct buffer *answer)
{
    struct buffer url = {0};
    struct buffer own = {0};
    CURL *easy = curl_easy_init();
    config_append_url(&url, tls ? "https" : "http", address->host, address->port);
    buffer_append_string(&url, probes[kind].path);
    if (answer == NULL)
        answer = &own;
    answer->size = 0;
    if (easy != NULL && set_options(easy, buffer_string(&url), answer))
        (void)curl_easy_perform(easy); /* an answer that was cut off counts */
    bool found = answer->size > 0 && memmem(answer->data, answer->size, probes[kind].sign,
                                            strlen(probes[kind].sign)) != NULL;
    curl_easy_cleanup(easy);
    buffer_free(&url);
    buffer_free(&own);
    return found;
}
