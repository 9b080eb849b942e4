/* One HTTP server on the main thread's loop; see operator_listener.h. */
#include "app/operator_listener.h"

#include "base/memory.h"
#include "http/tls.h"
#include "records/customer.h"

/* A scraper or two, a person with curl: few and quick. */
#define CONNECTIONS 64
#define HEADER_SECONDS 10
#define BODY_SECONDS 10
#define WRITE_SECONDS 10
#define IDLE_SECONDS 120 /* longer than a scrape interval of a minute */

struct operator_listener {
    struct operator_listener_options options;
    struct http_server *server;
    struct console *console; /* NULL: not yet */
    /* The metrics are written once for all requests that one turn of the loop brings, or clients
     * that pipeline thousands of requests would keep the loop from everybody else. */
    struct buffer metrics;
    uv_prepare_t turn;
};

static void end_turn(uv_prepare_t *turn)
{
    struct operator_listener *listener = turn->data;
    buffer_free(&listener->metrics);
    CHECK(uv_prepare_stop(turn) == 0);
}

static void reply_metrics(struct operator_listener *listener, struct http_request *request)
{
    if (listener->metrics.size == 0) {
        listener->options.write_metrics(listener->options.context, &listener->metrics);
        CHECK(uv_prepare_start(&listener->turn, end_turn) == 0);
    }
    http_reply_text(request, 200, "text/plain; version=0.0.4; charset=utf-8",
                    buffer_text(&listener->metrics));
}

static void reply_word(const struct operator_listener *listener, struct http_request *request,
                       const char *(*find_trouble)(void *context))
{
    const char *trouble = find_trouble(listener->options.context);
    http_reply_text(request, trouble == NULL ? 200 : 503, "text/plain; charset=utf-8",
                    text_of(trouble == NULL ? "ok" : trouble));
}

static void handle(void *context, struct http_request *request)
{
    static const char *const paths[] = {"/metrics", "/live", "/ready"};
    struct operator_listener *listener = context;
    const struct operator_listener_options *options = &listener->options;
    bool reads = request->method == METHOD_GET || request->method == METHOD_HEAD;
    size_t path = text_find(request->path, paths, sizeof paths / sizeof paths[0]);
    if (path == sizeof paths / sizeof paths[0]) {
        bool done =
            options->page != NULL && options->page(options->page_context, options->loop, request);
        if (!done && (listener->console == NULL || !console_handle(listener->console, request)))
            http_reply_error(request, &error_not_found);
    } else if (!reads) {
        http_request_add_field(request, TEXT("Allow"), TEXT("GET, HEAD"));
        http_reply_error(request, &error_method_not_allowed);
    } else if (path == 0) {
        reply_metrics(listener, request);
    } else {
        reply_word(listener, request, path == 1 ? options->why_stuck : options->why_unready);
    }
}

static bool is_private(const char *host)
{
    /* Loopback and private networks (RFC 1918, RFC 4193). */
    const struct text list =
        TEXT("127.0.0.0/8 ::1/128 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7");
    struct address address;
    struct cidr blocks[6];
    size_t count;
    CHECK(address_parse(text_of(host), &address) == STATUS_OK);
    CHECK(cidr_list_read(list, blocks, sizeof blocks / sizeof blocks[0], &count));
    return cidrs_contain(blocks, count, &address);
}

struct operator_listener *operator_listener_create(const struct operator_listener_options *options)
{
    struct operator_listener *listener = memory_alloc_zeroed(1, sizeof *listener);
    listener->options = *options;
    CHECK(uv_prepare_init(options->loop, &listener->turn) == 0);
    listener->turn.data = listener;
    if (!is_private(options->listen.host))
        log_event(
            options->log, LOG_WARNING,
            "the operator listener is not on a private address: anybody who can reach it sees "
            "the metrics",
            LOG_STRING("listen", options->listen.text));
    listener->server = http_server_create(
        &(struct http_server_options){
            .loop = options->loop,
            .tls = options->tls,
            .connection_limit = CONNECTIONS,
            .named_field = text_of(options->user_header),
            .makes_room = true, /* held connections keep neither scrapes nor operators out */
            .deadlines = {HEADER_SECONDS, BODY_SECONDS, WRITE_SECONDS, IDLE_SECONDS},
            .handle = handle,
            .context = listener,
            .log = options->log,
        },
        options->descriptor);
    return listener;
}

void operator_listener_set_console(struct operator_listener *listener, struct console *console)
{
    listener->console = console;
}

void operator_listener_hand_over(struct operator_listener *listener)
{
    http_server_hand_over(listener->server);
}

static void on_drained(void *context)
{
    struct operator_listener *listener = context;
    uv_stop(listener->options.loop);
}

void operator_listener_destroy(struct operator_listener **at)
{
    struct operator_listener *listener = memory_take(at);
    if (listener == NULL)
        return;
    http_server_drain(listener->server, 0, on_drained);
    http_server_abort(listener->server);
    buffer_free(&listener->metrics);
    uv_close((uv_handle_t *)&listener->turn, NULL);
    (void)uv_run(listener->options.loop, UV_RUN_DEFAULT);
    http_server_destroy(&listener->server);
    memory_free(listener);
}
