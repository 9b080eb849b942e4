/*
 * Any bytes, cut anywhere, through the real connection code over a socket pair.
 *
 * The first byte of an input seeds how the rest is cut into pieces and which requests are deferred.
 * Whatever is sent: nothing crashes, a request that reaches the handler keeps the bounds of http.h
 * and its texts are readable, every request is answered or abandoned once, and what comes back is a
 * sequence of answers. And what the intake makes of the first request is the same, bytes and
 * verdict, wherever it is cut in two, and byte by byte.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/http.h"
#include "http/intake.h"
#include "http/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct harness {
    uv_loop_t loop;
    struct http_server *server;
    struct http_request *waiting;
    uint32_t seed;
    unsigned handled, answered, abandoned;
    uint32_t checksum; /* so that the texts really are read */
};

static uint32_t next(struct harness *harness)
{
    harness->seed = harness->seed * 1664525U + 1013904223U;
    return harness->seed >> 16;
}

static void touch(struct harness *harness, struct text text)
{
    for (size_t i = 0; i < text.size; i++)
        harness->checksum += (unsigned char)text.at[i];
}

static void check_request(struct harness *harness, const struct http_request *request)
{
    uint32_t counted = 0;
    CHECK(request->path.size > 0 && request->path.size + request->query.size <= HTTP_TARGET_MAX);
    CHECK(request->path.at[0] == '/' || request->method == METHOD_OPTIONS ||
          request->method == METHOD_CONNECT);
    CHECK(request->body.size <= HTTP_BODY_MAX && request->line_count <= HTTP_FIELDS_MAX);
    CHECK(request->field_count[HTTP_FIELD_HOST] <= 1);
    CHECK(strlen(request->id) == HTTP_ID_SIZE);
    touch(harness, request->path);
    touch(harness, request->query);
    touch(harness, request->body);
    for (uint32_t i = 0; i < request->line_count; i++) {
        CHECK(request->lines[i].field < HTTP_FIELD_OTHER);
        touch(harness, request->lines[i].value);
    }
    for (int i = 0; i < HTTP_FIELD_COUNT; i++) {
        counted += request->field_count[i];
        touch(harness, http_request_field(request, (enum http_field)i));
    }
    CHECK(counted == request->line_count);
    (void)http_accepted_codings(request);
    (void)http_matches_etag(request, TEXT("\"a\""));
}

static void on_abandoned(struct http_request *request)
{
    struct harness *harness = *(struct harness **)request->user;
    CHECK(harness->waiting == request);
    harness->waiting = NULL;
    harness->abandoned++;
}

static void on_request(void *context, struct http_request *request)
{
    struct harness *harness = context;
    harness->handled++;
    check_request(harness, request);
    *(struct harness **)request->user = harness;
    CHECK(harness->waiting == NULL);
    if (next(harness) % 3 == 0) {
        harness->waiting = request;
        request->abandoned = on_abandoned;
    } else {
        http_reply_json(request, 200, TEXT("{}"));
    }
}

static void on_finished(void *context, const struct http_outcome *outcome)
{
    struct harness *harness = context;
    harness->answered += outcome->refused ? 0 : 1;
    touch(harness, outcome->request->path);
}

static struct harness *make_harness(void)
{
    struct harness *harness = calloc(1, sizeof *harness);
    CHECK(harness != NULL && uv_loop_init(&harness->loop) == 0);
    (void)signal(SIGPIPE, SIG_IGN);
    struct http_server_options options = {
        .loop = &harness->loop,
        .request_user_size = sizeof(void *),
        .connection_user_size = 8,
        .connection_limit = 4,
        .deadlines.header_seconds = 60,
        .deadlines.body_seconds = 60,
        .deadlines.write_seconds = 60,
        .deadlines.idle_seconds = 60,
        .handle = on_request,
        .finished = on_finished,
        .context = harness,
    };
    harness->server = http_server_create(&options, -1);
    return harness;
}

static void turn(struct harness *harness)
{
    (void)uv_run(&harness->loop, UV_RUN_NOWAIT);
    if (harness->waiting != NULL && next(harness) % 2 == 0) {
        struct http_request *request = harness->waiting;
        harness->waiting = NULL;
        check_request(harness, request); /* its texts have stayed where they were */
        http_reply_error(request, &error_not_found);
    }
}

/* Reads what there is; the first bytes of all must be those of an answer. */
static void read_answers(int descriptor, bool *begun)
{
    char bytes[65536];
    ssize_t size;
    while ((size = recv(descriptor, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        if (!*begun)
            CHECK(size >= 9 && memcmp(bytes, "HTTP/1.1 ", 9) == 0);
        *begun = true;
    }
}

static size_t piece_size(struct harness *harness, size_t left)
{
    static const size_t largest[4] = {1, 7, 300, 70000};
    size_t size = 1 + next(harness) % largest[harness->seed % 4];
    return size < left ? size : left;
}

static void run_one(struct harness *harness, const uint8_t *data, size_t size)
{
    int pair[2];
    bool begun = false;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    http_server_adopt(harness->server, pair[1]);
    for (size_t at = 0; at < size && harness->server->connection_count > 0;) {
        ssize_t sent =
            send(pair[0], data + at, piece_size(harness, size - at), MSG_DONTWAIT | MSG_NOSIGNAL);
        at += sent > 0 ? (size_t)sent : 0;
        turn(harness);
        read_answers(pair[0], &begun);
    }
    if (harness->seed % 2 == 0)
        (void)shutdown(pair[0], SHUT_WR);
    for (int i = 0; i < 8; i++) {
        turn(harness);
        read_answers(pair[0], &begun);
    }
    (void)close(pair[0]);
    while (harness->server->connection_count > 0)
        turn(harness);
    CHECK(harness->waiting == NULL);
    CHECK(harness->handled == harness->answered + harness->abandoned);
}

/* ---- the same verdict for every cut ---------------------------------------------------------- */

struct verdict {
    struct http_intake intake;
    struct http_request request;
    enum http_intake_result result;
    size_t used;
};

/* Feeds `bytes` on, until there is a verdict. */
static void feed(struct verdict *verdict, const uint8_t *bytes, size_t size)
{
    struct text input = {(const char *)bytes, size};
    while (input.size > 0 && verdict->result <= INTAKE_HEAD)
        verdict->result = http_intake_feed(&verdict->intake, &verdict->request, &input);
    if (verdict->result == INTAKE_HEAD) /* the head's end was the piece's end: not yet a verdict */
        verdict->result = INTAKE_MORE;
    verdict->used += size - input.size;
}

static void begin(struct verdict *verdict)
{
    memset(&verdict->request, 0, sizeof verdict->request);
    http_intake_start(&verdict->intake);
    verdict->result = INTAKE_MORE;
    verdict->used = 0;
}

static void check_same(const struct verdict *whole, const struct verdict *cut)
{
    CHECK(cut->result == whole->result && cut->request.method == whole->request.method);
    if (whole->result == INTAKE_REFUSED)
        CHECK(cut->intake.error == whole->intake.error);
    if (whole->result != INTAKE_COMPLETE)
        return;
    CHECK(cut->used == whole->used && cut->intake.keep_alive == whole->intake.keep_alive);
    CHECK(text_equals(cut->request.path, whole->request.path) &&
          text_equals(cut->request.query, whole->request.query) &&
          text_equals(cut->request.body, whole->request.body));
    CHECK(cut->request.line_count == whole->request.line_count);
    for (uint32_t i = 0; i < whole->request.line_count; i++)
        CHECK(cut->request.lines[i].field == whole->request.lines[i].field &&
              text_equals(cut->request.lines[i].value, whole->request.lines[i].value));
}

static void check_cuts(const uint8_t *data, size_t size)
{
    static struct verdict whole;
    static struct verdict cut;
    size_t pace = size > 1024 ? size / 64 : 1;
    begin(&whole);
    feed(&whole, data, size);
    begin(&cut);
    for (size_t i = 0; i < size; i++)
        feed(&cut, data + i, 1);
    check_same(&whole, &cut);
    for (size_t at = 1; at < size; at += pace) {
        http_intake_reset(&cut.intake);
        begin(&cut);
        feed(&cut, data, at);
        feed(&cut, data + at, size - at);
        check_same(&whole, &cut);
    }
    http_intake_reset(&cut.intake);
    http_intake_reset(&whole.intake);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct harness *harness; /* one for all inputs: making it is slow */
    if (harness == NULL)
        harness = make_harness();
    if (size == 0)
        return 0;
    harness->seed = data[0];
    run_one(harness, data + 1, size - 1);
    check_cuts(data + 1, size - 1);
    return 0;
}
