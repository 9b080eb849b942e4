/*
 * The life of a connection: its state, its input and its end.
 *
 * Requests are answered in order because a connection has one exchange at a time. While the
 * exchange is with the handler or its reply is being written, the connection keeps reading, so that
 * it notices when the client closes. Input that arrives during that time is kept for later; above
 * HTTP_PIPELINE_MAX bytes the connection stops reading.
 *
 * A handler may reply from inside `handle`, which process calls: then the loop in process takes the
 * next request. If the reply comes later, on_sent calls resume, which calls process. So the stack
 * never grows with the number of pipelined requests.
 *
 * Only on_closed frees memory, after libuv has closed the handle. Until then a closed connection is
 * in state CLOSED and ignores every event.
 */
#include <sys/ioctl.h>

#include "base/clock.h"
#include "http/characters.h"
#include "http/internal.h"

#define DRAIN_NEW_MS 1000U /* time for a new connection to send its request */

static uint64_t now_ms(const struct http_connection *connection)
{
    return clock_loop_ms(connection->server->options.loop);
}

static void set_deadline(struct http_connection *connection, uint32_t seconds)
{
    connection->deadline_ms = now_ms(connection) + seconds * UINT64_C(1000);
}

static void act_on_end(struct http_connection *connection);
static void start_reading(struct http_connection *connection);

/* ---- the end --------------------------------------------------------------------------------- */

static void exchange_end(struct http_connection *connection, bool complete)
{
    struct http_server *server = connection->server;
    struct http_exchange *exchange = connection->exchange;
    connection->exchange = NULL;
    if (!complete) /* unsent bytes do not count */
        exchange->bytes -= exchange->rest[0].size + exchange->rest[1].size + exchange->rest[2].size;
    /* Reported before the exchange is reused, because the outcome points to the request. */
    if (exchange->replied && server->options.finished != NULL) {
        struct http_outcome outcome = {
            .request = &exchange->request,
            .status = exchange->status,
            .bytes = exchange->bytes,
            .duration_ns = clock_monotonic_ns() - exchange->request.started_ns,
            .waited_ns = exchange->waited_ns,
            .complete = complete,
            .refused = exchange->refused,
        };
        server->options.finished(server->options.context, &outcome);
    }
    if (exchange->held != NULL)
        http_message_release(&exchange->held);
    http_exchange_give_back(server, exchange);
}

static void on_closed(uv_handle_t *handle)
{
    struct http_connection *connection = handle->data;
    /* libuv has cancelled all writes by now, so nothing points into the exchange any more. */
    CHECK(connection->magic == CONNECTION_MAGIC && connection->copies_in_flight == 0);
    if (connection->exchange != NULL)
        exchange_end(connection, false);
    tls_session_destroy(&connection->tls);
    buffer_free(&connection->ahead);
    http_memo_forget(&connection->memo);
    connection->closed(connection);
}

void http_connection_close(struct http_connection *connection)
{
    enum connection_state before = connection->state;
    if (before == CONNECTION_CLOSED)
        return;
    /* Set first, so that the callbacks below find the connection closed. */
    connection->state = CONNECTION_CLOSED;
    connection->deadline_ms = 0;
    uv_close((uv_handle_t *)&connection->tcp, on_closed);
    if (before == CONNECTION_HANDLING) {
        struct http_request *request = &connection->exchange->request;
        if (request->abandoned != NULL)
            request->abandoned(request);
    } else if (before == CONNECTION_PARKED) {
        struct http_parked *parked = http_parked_take(connection);
        parked->gone(parked);
    }
}

/* Shuts our side, then reads and discards input for a while. Closing a socket with unread data
 * makes the kernel send RST, and the client might lose the answer. */
static void linger(struct http_connection *connection)
{
    connection->state = CONNECTION_LINGERING;
    bool whole = connection->tls == NULL && connection->input_ended; /* closing sends the FIN */
    if ((!whole && http_output_shutdown(connection) == OUTPUT_BROKEN) || connection->input_ended) {
        http_connection_close(connection);
        return;
    }
    connection->deadline_ms = now_ms(connection) + HTTP_LINGER_MS;
    connection->linger_left = HTTP_LINGER_BYTES;
    start_reading(connection);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void exchange_begin(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    connection->exchange = http_exchange_begin(connection);
    connection->state = CONNECTION_RECEIVING;
    connection->served = true;
    connection->close_after = false;
    connection->blank = 0;
    set_deadline(connection, server->options.deadlines.header_seconds);
}

/* Steps over the empty line or two that may precede a request (RFC 9112 section 2.2). If input is
 * left and `blank` is odd, a CR without LF came first. */
static void skip_blank(struct http_connection *connection, struct text *input)
{
    while (input->size > 0 && connection->blank < 4 &&
           input->at[0] == (connection->blank % 2 == 0 ? '\r' : '\n')) {
        connection->blank++;
        text_skip(input, 1);
    }
}

void http_connection_refuse(struct http_connection *connection, const struct http_error *error)
{
    CHECK(connection->state == CONNECTION_IDLE || connection->state == CONNECTION_RECEIVING);
    if (connection->exchange == NULL)
        exchange_begin(connection);
    connection->exchange->refused = true;
    connection->close_after = true; /* the start of the next request is unknown */
    connection->state = CONNECTION_HANDLING;
    http_reply_error(&connection->exchange->request, error);
}

static void hand_over(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    struct http_exchange *exchange = connection->exchange;
    if (connection->tls_missing) {
        http_connection_refuse(connection, &error_https_required);
        return;
    }
    connection->state = CONNECTION_HANDLING;
    connection->deadline_ms = 0; /* the handler has its own deadlines */
    /* After CONNECT a client may start a tunnel without waiting for our refusal. */
    connection->close_after =
        !exchange->intake.keep_alive || exchange->request.method == METHOD_CONNECT;
    server->options.handle(server->options.context, &exchange->request);
}

static void receive(struct http_connection *connection, struct text *input)
{
    struct http_intake *intake = &connection->exchange->intake;
    struct http_request *request = &connection->exchange->request;
    struct text raw = *input;
    /* The memo can only be compared with a request that lies in one piece of input. */
    bool whole = intake->bytes.size == 0;
    if (whole && http_memo_recall(connection->memo, intake, request, input)) {
        connection->more_input = input->size > 0;
        request->repeated = connection->memo_is_last;
        connection->memo_is_last = true;
        hand_over(connection);
        return;
    }
    switch (http_intake_feed(intake, request, input)) {
    case INTAKE_MORE:
        break;
    case INTAKE_HEAD:
        set_deadline(connection, connection->server->options.deadlines.body_seconds);
        if (intake->expect_continue && input->size == 0 &&
            http_output_interim(connection, TEXT("HTTP/1.1 100 Continue\r\n\r\n")) == OUTPUT_BROKEN)
            http_connection_close(connection);
        break;
    case INTAKE_COMPLETE:
        raw.size -= input->size;
        connection->memo_is_last =
            whole && http_memo_remember(&connection->memo, intake, request, raw);
        connection->more_input = input->size > 0;
        hand_over(connection);
        break;
    case INTAKE_REFUSED:
        http_connection_refuse(connection, intake->error);
        break;
    }
}

static bool wants_input(const struct http_connection *connection)
{
    return connection->state == CONNECTION_IDLE || connection->state == CONNECTION_RECEIVING;
}

/* Takes requests from the input until the input is used up or a request is with its handler. */
static void process(struct http_connection *connection, struct text *input)
{
    /* process never calls itself: after a reply from inside `handle` this loop takes the next
     * request (see on_sent). */
    CHECK(!connection->processing);
    connection->processing = true;
    while (input->size > 0 && wants_input(connection)) {
        if (connection->state == CONNECTION_IDLE) {
            skip_blank(connection, input);
            if (input->size == 0)
                break;
            if (connection->blank % 2 != 0) {
                http_connection_refuse(connection, &error_malformed_line);
                break;
            }
            exchange_begin(connection);
        }
        receive(connection, input);
    }
    connection->processing = false;
}

/* ---- input ----------------------------------------------------------------------------------- */

static void keep_for_later(struct http_connection *connection, struct text input)
{
    struct buffer *ahead = &connection->ahead;
    if (connection->ahead_start > 0) {
        ahead->size -= connection->ahead_start;
        memmove(ahead->data, ahead->data + connection->ahead_start, ahead->size);
        connection->ahead_start = 0;
    }
    buffer_append_text(ahead, input);
    connection->more_input = true;
    if (ahead->size > HTTP_PIPELINE_MAX && !connection->read_stopped) {
        connection->read_stopped = true; /* the kernel's buffer fills, and TCP stops the client */
        (void)uv_read_stop((uv_stream_t *)&connection->tcp);
        if (connection->state == CONNECTION_PARKED)
            connection->parked->ended(connection->parked);
    }
}

/* Plain text has arrived. */
static void take_input(struct http_connection *connection, struct text input)
{
    if (connection->state == CONNECTION_LINGERING) {
        if (input.size > connection->linger_left)
            http_connection_close(connection);
        else
            connection->linger_left -= (uint32_t)input.size;
        return;
    }
    if (wants_input(connection))
        process(connection, &input);
    /* The next read overwrites the thread's buffer, so the rest of the input is copied. */
    if (input.size > 0 &&
        (connection->state == CONNECTION_HANDLING || connection->state == CONNECTION_PARKED ||
         connection->state == CONNECTION_WRITING))
        keep_for_later(connection, input);
    act_on_end(connection);
}

static void input_ended(struct http_connection *connection)
{
    connection->input_ended = true;
    if (connection->state == CONNECTION_PARKED)
        connection->parked->ended(connection->parked);
    if (connection->state == CONNECTION_LINGERING || connection->state == CONNECTION_OPENING)
        http_connection_close(connection);
    act_on_end(connection);
}

/* Processes the input that was kept, after a reply that did not come from inside process. */
static void resume(struct http_connection *connection)
{
    struct buffer *ahead = &connection->ahead;
    if (ahead->size > 0 && wants_input(connection)) {
        struct text input = {ahead->data + connection->ahead_start,
                             ahead->size - connection->ahead_start};
        process(connection, &input);
        connection->ahead_start = ahead->size - input.size;
        if (input.size == 0) {
            buffer_free(ahead);
            connection->ahead_start = 0;
        }
    }
    if (connection->read_stopped && !connection->input_ended &&
        ahead->size - connection->ahead_start <= HTTP_PIPELINE_MAX)
        start_reading(connection);
    act_on_end(connection);
}

/* Acts on the end of the input or a drain, once all input so far has been processed. */
static void act_on_end(struct http_connection *connection)
{
    if (connection->state == CONNECTION_RECEIVING && connection->input_ended)
        http_connection_refuse(connection, &error_cut_off);
    else if (connection->state == CONNECTION_IDLE && connection->input_ended)
        http_connection_close(connection);
    else if (connection->state == CONNECTION_IDLE && connection->server->draining)
        http_connection_drain(connection);
}

/* Called when the kernel has taken the whole reply, or when sending has failed. */
static void on_sent(struct http_connection *connection, enum http_output result)
{
    if (result == OUTPUT_WAITING)
        return; /* output.c calls again */
    if (result == OUTPUT_BROKEN) {
        http_connection_close(connection);
        return;
    }
    CHECK(connection->state == CONNECTION_WRITING);
    exchange_end(connection, true); /* before the next one begins */
    if (connection->close_after) {
        linger(connection);
        return;
    }
    connection->state = CONNECTION_IDLE;
    set_deadline(connection, connection->server->options.deadlines.idle_seconds);
    if (!connection->processing)
        resume(connection);
}

void http_request_end_connection(struct http_request *request)
{
    request->connection->close_after = true;
}

void http_reply_message(struct http_request *request, struct http_message *message)
{
    struct http_connection *connection = request->connection;
    CHECK(connection->magic == CONNECTION_MAGIC && connection->state == CONNECTION_HANDLING &&
          &connection->exchange->request == request);
    if (request->instead == HTTP_INSTEAD_500) {
        request->instead = HTTP_INSTEAD_NONE;
        http_reply_error(request, &error_asked_for_error);
        return;
    }
    /* Requests that the client sent before this answer are answered too. */
    if (connection->server->draining && !connection->more_input)
        connection->close_after = true;
    http_exchange_reply(connection->server, connection->exchange, message, connection->close_after);
    connection->state = CONNECTION_WRITING;
    on_sent(connection, request->instead == HTTP_INSTEAD_NOTHING
                            ? OUTPUT_BROKEN
                            : http_output_reply(connection, message));
}

void http_reply_text(struct http_request *request, int status, const char *content_type,
                     struct text body)
{
    struct http_message *message = http_message_of_text(status, content_type, body);
    http_reply_message(request, message);
    http_message_release(&message);
}

void http_reply_json(struct http_request *request, int status, struct text body)
{
    http_reply_text(request, status, "application/json", body);
}

void http_reply_error(struct http_request *request, const struct http_error *error)
{
    http_reply_error_as(request, error, NULL);
}

void http_reply_error_as(struct http_request *request, const struct http_error *error,
                         const char *message)
{
    struct buffer body = {0};
    http_error_write(error, message, &body);
    http_reply_error_document(request, error, buffer_text(&body));
    buffer_free(&body);
}

void http_reply_error_document(struct http_request *request, const struct http_error *error,
                               struct text document)
{
    request->error = error;
    /* Without a pause a client whose poll fails at once would ask as fast as it can. */
    if (error->status == 503 || error->status == 504)
        http_request_add_field(request, TEXT("Retry-After"), TEXT("1"));
    http_reply_json(request, error->status, document);
}

/* ---- TLS ------------------------------------------------------------------------------------- */

static void tls_failed(struct http_connection *connection)
{
    bool opening = connection->state == CONNECTION_OPENING;
    if (opening)
        http_report_event(connection->server, HTTP_EVENT_TLS_FAILED);
    enum http_output alert = http_output_cipher(connection);
    if (opening && alert != OUTPUT_BROKEN)
        linger(connection);
    else
        http_connection_close(connection);
}

static void take_cipher(struct http_connection *connection, struct text cipher)
{
    struct http_server *server = connection->server;
    tls_session_feed(connection->tls, cipher);
    enum tls_read result = TLS_DATA;
    /* Each piece of plain text is used up before the next one overwrites it. */
    while (result == TLS_DATA && connection->state != CONNECTION_CLOSED) {
        size_t size = 0;
        result = tls_session_read(connection->tls, server->plain_buffer, HTTP_READ_SIZE, &size);
        if (connection->state == CONNECTION_OPENING && tls_session_established(connection->tls)) {
            connection->state = CONNECTION_IDLE;
            set_deadline(connection, server->options.deadlines.idle_seconds);
            if (server->draining)
                http_connection_drain(connection);
        }
        if (result == TLS_DATA)
            take_input(connection, (struct text){server->plain_buffer, size});
    }
    if (connection->state == CONNECTION_CLOSED)
        buffer_clear(&server->cipher);
    else if (result == TLS_FAILED)
        tls_failed(connection);
    else if (http_output_cipher(connection) == OUTPUT_BROKEN) /* handshake messages and tickets */
        http_connection_close(connection);
    if (result == TLS_ENDED && connection->state != CONNECTION_CLOSED)
        input_ended(connection);
}

/* A client that speaks plain HTTP would not understand a TLS alert. The server reads its whole
 * request, so that the client is ready to read the answer, and then refuses it. A TLS record never
 * begins with such a byte. */
static bool begins_plain_http(const struct http_connection *connection, char first)
{
    return !connection->tls_begun && (is_token_character(first) || first == '\r');
}

static void go_on_without_tls(struct http_connection *connection)
{
    http_report_event(connection->server, HTTP_EVENT_TLS_FAILED);
    tls_session_destroy(&connection->tls);
    connection->tls_missing = true;
    connection->state = CONNECTION_IDLE; /* the handshake's deadline stands */
}

/* ---- libuv's callbacks ----------------------------------------------------------------------- */

/* All connections of a thread read into one buffer: on_read leaves nothing in it that is needed
 * later. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct http_connection *connection = handle->data;
    (void)suggested;
    buffer->base = connection->server->read_buffer;
    buffer->len = HTTP_READ_SIZE;
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct http_connection *connection = stream->data;
    CHECK(connection->magic == CONNECTION_MAGIC);
    if (connection->state == CONNECTION_CLOSED || size == 0)
        return;
    if (size == UV_EOF) {
        input_ended(connection);
        return;
    }
    if (size < 0) {
        http_connection_close(connection);
        return;
    }
    struct text input = {buffer->base, (size_t)size};
    if (connection->tls != NULL && begins_plain_http(connection, input.at[0]))
        go_on_without_tls(connection);
    connection->tls_begun = true;
    if (connection->tls == NULL || connection->state == CONNECTION_LINGERING)
        take_input(connection, input);
    else
        take_cipher(connection, input);
}

static void start_reading(struct http_connection *connection)
{
    connection->read_stopped = false;
    if (uv_read_start((uv_stream_t *)&connection->tcp, on_alloc, on_read) != 0)
        http_connection_close(connection);
}

/* ---- for the server -------------------------------------------------------------------------- */

void http_connection_start(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    connection->sent = on_sent;
    connection->state = CONNECTION_IDLE;
    set_deadline(connection, server->options.deadlines.idle_seconds);
    if (server->options.tls != NULL) {
        connection->tls = tls_session_create(server->options.tls, &server->cipher);
        connection->state = CONNECTION_OPENING;
        set_deadline(connection, server->options.deadlines.header_seconds);
    }
    if (server->draining)
        http_connection_drain(connection);
    start_reading(connection);
}

/* The bytes in one of the kernel's queues of the socket: FIONREAD, input that the connection has
 * not read yet; TIOCOUTQ, output that the client has not acknowledged. */
static size_t kernel_queue_size(struct http_connection *connection, unsigned long which)
{
    int descriptor;
    int size = 0;
    return uv_fileno((uv_handle_t *)&connection->tcp, &descriptor) == 0 &&
                   ioctl(descriptor, which, &size) == 0 && size > 0
               ? (size_t)size
               : 0;
}

/* The bytes that the client has not acknowledged: libuv's queue and the kernel's send buffer. The
 * kernel's buffer holds megabytes and accepts more only after a good part of it has drained, so a
 * slow client's progress shows there first. */
static size_t unsent_size(struct http_connection *connection)
{
    return uv_stream_get_write_queue_size((uv_stream_t *)&connection->tcp) +
           kernel_queue_size(connection, TIOCOUTQ);
}

void http_connection_sweep(struct http_connection *connection, uint64_t now)
{
    if (connection->state == CONNECTION_WRITING) {
        size_t unsent = unsent_size(connection);
        if (unsent < connection->unsent) {
            connection->unsent = unsent;
            set_deadline(connection, connection->server->options.deadlines.write_seconds);
            return;
        }
    }
    if (connection->deadline_ms == 0 || now < connection->deadline_ms)
        return;
    /* Do not close on a request that arrived after the loop last polled. */
    if (connection->server->draining && connection->state == CONNECTION_IDLE &&
        kernel_queue_size(connection, FIONREAD) > 0)
        return;
    if (connection->state == CONNECTION_OPENING)
        http_report_event(connection->server, HTTP_EVENT_TLS_FAILED);
    if (connection->state == CONNECTION_RECEIVING)
        http_connection_refuse(connection, &error_request_timeout);
    else
        http_connection_close(connection);
}

void http_connection_drain(struct http_connection *connection)
{
    if (connection->state != CONNECTION_IDLE) /* a handshake has its own deadline */
        return;
    /* A request that has already reached this machine is answered. A new client has probably just
     * sent its first request, so it gets time too. */
    uint64_t grace_ms = connection->server->drain_idle_ms;
    if (!connection->served || kernel_queue_size(connection, FIONREAD) > 0)
        grace_ms = grace_ms > DRAIN_NEW_MS ? grace_ms : DRAIN_NEW_MS;
    if (grace_ms == 0)
        http_connection_close(connection);
    else if (connection->deadline_ms > now_ms(connection) + grace_ms)
        connection->deadline_ms = now_ms(connection) + grace_ms;
}
