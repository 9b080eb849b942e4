/* app/operator_listener: GET /metrics over a real socket, and nothing else. */
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/operator_listener.h"
#include "tests.h"

static uv_loop_t loop;
static uint16_t port;
static struct operator_listener *listener;

struct client {
    uint16_t port;
    const char *request;
    char answer[65536];
    uv_async_t finished;
};

static void write_metrics(void *context, struct buffer *out)
{
    assert_ptr_equal(context, &loop);
    buffer_append_string(out, "\ncroupier_policy_keys 42\n");
}

static const char *stuck, *unready; /* what the process says of itself */

static const char *why_stuck(void *context)
{
    assert_ptr_equal(context, &loop);
    return stuck;
}

static const char *why_unready(void *context)
{
    assert_ptr_equal(context, &loop);
    return unready;
}

static int begin(void **state)
{
    struct error error = {0};
    int descriptor;
    port = 0;
    if (uv_loop_init(&loop) != 0 ||
        http_listen("127.0.0.1", 0, false, &descriptor, &port, &error) != STATUS_OK)
        return -1;
    const struct operator_listener_options options = {
        .loop = &loop,
        .listen = {.text = "127.0.0.1:0", .host = "127.0.0.1", .port = 0},
        .descriptor = descriptor,
        .write_metrics = write_metrics,
        .why_stuck = why_stuck,
        .why_unready = why_unready,
        .user_header = "",
        .context = &loop,
    };
    listener = operator_listener_create(&options);
    return 0;
}

static int end(void **state)
{
    operator_listener_destroy(&listener);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}

static void *talk(void *argument)
{
    struct client *client = argument;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(client->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    size_t size = 0;
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0 &&
        write(descriptor, client->request, strlen(client->request)) > 0)
        for (ssize_t got = 1; got > 0; size += got > 0 ? (size_t)got : 0)
            got = read(descriptor, client->answer + size, sizeof client->answer - 1 - size);
    client->answer[size] = '\0';
    (void)close(descriptor);
    (void)uv_async_send(&client->finished);
    return NULL;
}

static void on_finished(uv_async_t *finished)
{
    uv_close((uv_handle_t *)finished, NULL);
    uv_stop(&loop);
}

static const char *ask(const char *request)
{
    static struct client client;
    client = (struct client){.port = port, .request = request};
    assert_int_equal(uv_async_init(&loop, &client.finished, on_finished), 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, talk, &client), 0);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return client.answer;
}

#define REST " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

TEST_WITH(metrics_are_served_with_what_was_collected, begin, end)
{
    const char *answer = ask("GET /metrics" REST);
    assert_non_null(strstr(answer, "HTTP/1.1 200 "));
    assert_non_null(strstr(answer, "text/plain; version=0.0.4"));
    assert_non_null(strstr(answer, "\ncroupier_policy_keys 42\n"));
}

TEST_WITH(head_is_get_without_the_body, begin, end)
{
    const char *answer = ask("HEAD /metrics" REST);
    assert_non_null(strstr(answer, "HTTP/1.1 200 "));
    assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
}

TEST_WITH(an_orchestrator_gets_one_word, begin, end)
{
    static const struct {
        const char *request, *status, *word;
    } cases[] = {
        {"GET /live" REST, "HTTP/1.1 200 ", "\r\n\r\nok"},
        {"GET /ready" REST, "HTTP/1.1 503 ", "\r\n\r\nloading"},
        {"HEAD /ready" REST, "HTTP/1.1 503 ", "\r\n\r\n"},
        {"POST /live" REST, "HTTP/1.1 405 ", NULL},
        {"GET /live/" REST, "HTTP/1.1 404 ", NULL},
    };
    unready = "loading";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *answer = ask(cases[i].request);
        assert_non_null(strstr(answer, cases[i].status));
        if (cases[i].word != NULL)
            assert_string_equal(strstr(answer, "\r\n\r\n"), cases[i].word);
    }
    unready = NULL;
    stuck = "stuck";
    assert_non_null(strstr(ask("GET /live" REST), "HTTP/1.1 503 "));
    assert_non_null(strstr(ask("GET /ready" REST), "HTTP/1.1 200 "));
    stuck = NULL;
}

TEST_WITH(nothing_else_is_here, begin, end)
{
    assert_non_null(strstr(ask("GET /" REST), "HTTP/1.1 404 "));
    assert_non_null(strstr(ask("GET /metrics/" REST), "HTTP/1.1 404 "));
    assert_non_null(strstr(ask("GET /api/v1/health" REST), "HTTP/1.1 404 "));
    const char *answer = ask("DELETE /metrics" REST);
    assert_non_null(strstr(answer, "HTTP/1.1 405 "));
    assert_non_null(strstr(answer, "GET, HEAD\r\n"));
}
