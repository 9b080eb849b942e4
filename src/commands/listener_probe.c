/* Finding the process behind an address; see listener_probe.h. */
#include "commands/listener_probe.h"

#include <curl/curl.h>

#define ANSWER_MAX ((size_t)64 * 1024)

/* The path to ask each listener for, and texts of which each answer of croupier has one. Providers
 * are refused in another way while the table of providers is not confirmed. */
static const struct {
    const char *path, *signs[2];
} probes[] = {
    [LISTENER_PUBLIC] = {"/api/v1/health", {"\"cache\":\""}},
    [LISTENER_OPERATOR] = {"/metrics", {"# TYPE croupier_"}},
    [LISTENER_PROVIDER] = {"/provider/v1/wallet",
                           {"\"not_admitted\"", "\"security_config_unavailable\""}},
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
    CURL *easy = curl_easy_init();
    config_append_url(&url, tls ? "https" : "http", address->host, address->port);
    buffer_append_string(&url, probes[kind].path);
    answer->size = 0;
    if (easy != NULL && set_options(easy, buffer_string(&url), answer))
        (void)curl_easy_perform(easy); /* an answer that was cut off counts */
    const char *const *signs = probes[kind].signs;
    bool found = strstr(buffer_string(answer), signs[0]) != NULL ||
                 (signs[1] != NULL && strstr(buffer_string(answer), signs[1]) != NULL);
    curl_easy_cleanup(easy);
    buffer_free(&url);
    return found;
}
