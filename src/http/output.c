/*
 * Sends bytes to the kernel.
 *
 * A reply is sent at once, its three parts in one call. A small reply is first copied into one
 * piece, which costs the kernel less than three. libuv queues only the bytes that the kernel does
 * not take, and the message is held until they are sent. Over TLS a reply is encrypted in pieces,
 * each after the kernel has taken the one before, so that a slow reader of a large body costs the
 * memory of a piece and not of the body. Other ciphertext (handshake, tickets, alerts) is small,
 * and is copied when it has to wait.
 */

#include "base/clock.h"
#include "base/memory.h"
#include "http/internal.h"

#define SMALL_MAX 4096U /* largest reply that is copied; above it the copy costs what it saves */
#define TLS_PIECE (4U * HTTP_RECORD_SIZE)

static uv_stream_t *stream_of(struct http_connection *connection)
{
    return (uv_stream_t *)&connection->tcp;
}

static void advance(struct text rest[3], size_t size)
{
    for (int i = 0; i < 3; i++) {
        size_t step = size < rest[i].size ? size : rest[i].size;
        text_skip(&rest[i], step);
        size -= step;
    }
}

static unsigned gather(const struct text rest[3], uv_buf_t buffers[3])
{
    unsigned count = 0;
    for (int i = 0; i < 3; i++)
        if (rest[i].size > 0) {
            /* libuv only reads, but its type has no const. Sizes stay below 4 GiB, because bodies
             * are bounded. */
            buffers[count].base = (char *)(uintptr_t)rest[i].at;
            buffers[count++].len = rest[i].size;
        }
    return count;
}

/* ---- plain ----------------------------------------------------------------------------------- */

static void on_written(uv_write_t *write, int status)
{
    struct http_connection *connection = write->data;
    CHECK(connection->magic == CONNECTION_MAGIC);
    if (connection->state == CONNECTION_CLOSED)
        return; /* on_closed ends the exchange */
    CHECK(connection->state == CONNECTION_WRITING);
    if (status == 0)
        advance(connection->exchange->rest, SIZE_MAX);
    connection->sent(connection, status == 0 ? OUTPUT_SENT : OUTPUT_BROKEN);
}

static void wait_to_write(struct http_connection *connection)
{
    const struct http_server_options *options = &connection->server->options;
    connection->deadline_ms =
        clock_loop_ms(options->loop) + options->deadlines.write_seconds * UINT64_C(1000);
    connection->unsent = SIZE_MAX;
}

static int try_to_send(struct http_connection *connection, const struct http_exchange *exchange)
{
    uv_buf_t buffers[3];
    char together[SMALL_MAX];
    if (exchange->bytes > sizeof together)
        return uv_try_write(stream_of(connection), buffers, gather(exchange->rest, buffers));
    size_t size = 0;
    for (int i = 0; i < 3; i++) {
        if (exchange->rest[i].size > 0)
            memcpy(together + size, exchange->rest[i].at, exchange->rest[i].size);
        size += exchange->rest[i].size;
    }
    buffers[0] = (uv_buf_t){together, size};
    return uv_try_write(stream_of(connection), buffers, 1);
}

static enum http_output send_plain(struct http_connection *connection, struct http_message *message)
{
    struct http_exchange *exchange = connection->exchange;
    int written = try_to_send(connection, exchange);
    if (written == (ssize_t)exchange->bytes)
        return OUTPUT_SENT;
    if (written < 0 && written != UV_EAGAIN)
        return OUTPUT_BROKEN;
    if (written > 0)
        advance(exchange->rest, (size_t)written);
    /* The caller may release the message as soon as this returns, so hold it now. A reply that was
     * sent at once does not touch the counter. */
    exchange->held = http_message_hold(message);
    exchange->write.data = connection;
    uv_buf_t buffers[3];
    unsigned count = gather(exchange->rest, buffers);
    wait_to_write(connection);
    return uv_write(&exchange->write, stream_of(connection), buffers, count, on_written) == 0
               ? OUTPUT_WAITING
               : OUTPUT_BROKEN;
}

/* ---- copies: bytes without an owner that keeps them ------------------------------------------ */

struct copied_write {
    uv_write_t write;
    struct http_connection *connection;
    char bytes[];
};

static enum http_output pump_tls(struct http_connection *connection);

static void on_copy_written(uv_write_t *write, int status)
{
    struct copied_write *copied = write->data;
    struct http_connection *connection = copied->connection;
    CHECK(connection->magic == CONNECTION_MAGIC && connection->copies_in_flight > 0);
    memory_free(copied);
    connection->copies_in_flight--;
    if (connection->state == CONNECTION_CLOSED)
        return;
    if (status != 0)
        connection->sent(connection, OUTPUT_BROKEN);
    else if (connection->state == CONNECTION_WRITING && connection->tls != NULL)
        connection->sent(connection, pump_tls(connection));
}

/* Sends as much as the kernel takes now, and a copy of the rest later. */
static enum http_output send_copy(struct http_connection *connection, struct text bytes)
{
    if (bytes.size == 0)
        return OUTPUT_SENT;
    uv_buf_t buffer = {(char *)(uintptr_t)bytes.at, bytes.size};
    int written = uv_try_write(stream_of(connection), &buffer, 1);
    if (written == (ssize_t)bytes.size)
        return OUTPUT_SENT;
    /* A client that causes output but never reads it must not fill the memory. */
    if ((written < 0 && written != UV_EAGAIN) ||
        uv_stream_get_write_queue_size(stream_of(connection)) > HTTP_UNSENT_MAX)
        return OUTPUT_BROKEN;
    size_t sent = written > 0 ? (size_t)written : 0;
    struct copied_write *copied = memory_alloc(sizeof *copied + bytes.size - sent);
    copied->connection = connection;
    copied->write.data = copied;
    memcpy(copied->bytes, bytes.at + sent, bytes.size - sent);
    buffer = (uv_buf_t){copied->bytes, bytes.size - sent};
    if (uv_write(&copied->write, stream_of(connection), &buffer, 1, on_copy_written) != 0) {
        memory_free(copied);
        return OUTPUT_BROKEN;
    }
    connection->copies_in_flight++;
    return OUTPUT_WAITING;
}

enum http_output http_output_cipher(struct http_connection *connection)
{
    struct buffer *cipher = &connection->server->cipher;
    enum http_output result = send_copy(connection, buffer_text(cipher));
    buffer_clear(cipher); /* the thread's connections share the buffer, so leave it empty */
    return result;
}

enum http_output http_output_interim(struct http_connection *connection, struct text bytes)
{
    if (connection->tls == NULL)
        return send_copy(connection, bytes);
    return tls_session_encrypt(connection->tls, bytes) == STATUS_OK ? http_output_cipher(connection)
                                                                    : OUTPUT_BROKEN;
}

/* ---- TLS ------------------------------------------------------------------------------------- */

/* Takes up to one record of plain text from `rest`, joining its parts when they are small. */
static struct text next_record(struct http_connection *connection, struct text rest[3])
{
    char *together = connection->server->plain_buffer + HTTP_READ_SIZE;
    size_t size = 0;
    for (int i = 0; i < 3 && size < HTTP_RECORD_SIZE; i++) {
        if (size == 0 && rest[i].size >= HTTP_RECORD_SIZE) {
            struct text record = {rest[i].at, HTTP_RECORD_SIZE};
            advance(rest, HTTP_RECORD_SIZE);
            return record;
        }
        size_t step =
            rest[i].size < HTTP_RECORD_SIZE - size ? rest[i].size : HTTP_RECORD_SIZE - size;
        if (step > 0)
            memcpy(together + size, rest[i].at, step);
        size += step;
    }
    advance(rest, size);
    return (struct text){together, size};
}

/* Encrypts and sends until the kernel takes no more or the whole reply is sent. */
static enum http_output pump_tls(struct http_connection *connection)
{
    struct http_exchange *exchange = connection->exchange;
    while (connection->copies_in_flight == 0) {
        size_t piece = 0;
        while (piece < TLS_PIECE) {
            struct text record = next_record(connection, exchange->rest);
            if (record.size == 0)
                break;
            piece += record.size;
            if (tls_session_encrypt(connection->tls, record) != STATUS_OK) {
                buffer_clear(&connection->server->cipher);
                return OUTPUT_BROKEN;
            }
        }
        if (piece == 0) /* no copy is in flight either: the kernel has all of it */
            return OUTPUT_SENT;
        if (http_output_cipher(connection) == OUTPUT_BROKEN)
            return OUTPUT_BROKEN;
    }
    wait_to_write(connection);
    return OUTPUT_WAITING;
}

/* ---- both ------------------------------------------------------------------------------------ */

enum http_output http_output_reply(struct http_connection *connection, struct http_message *message)
{
    if (connection->tls == NULL)
        return send_plain(connection, message);
    connection->exchange->held = http_message_hold(message);
    return pump_tls(connection);
}

enum http_output http_output_shutdown(struct http_connection *connection)
{
    int descriptor;
    if (connection->tls != NULL) {
        tls_session_finish(connection->tls);
        if (http_output_cipher(connection) == OUTPUT_BROKEN)
            return OUTPUT_BROKEN;
    }
    bool shut = connection->copies_in_flight == 0 &&
                uv_fileno((uv_handle_t *)&connection->tcp, &descriptor) == 0 &&
                shutdown(descriptor, SHUT_WR) == 0;
    return shut ? OUTPUT_SENT : OUTPUT_BROKEN;
}
