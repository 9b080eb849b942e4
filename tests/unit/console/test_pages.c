/* console/pages over a real socket. The loopback's handler knows "/later" alone, so a test asks for
 * that and changes the path before it has the request answered. */
#include "../http/one_client.h"

#define ZLIB_CONST
#include <zlib.h>

#include "console/files.h"
#include "console/pages.h"

static const struct console_file *file_at(const char *path)
{
    for (size_t i = 0; i < console_file_count; i++)
        if (text_equals(console_files[i].path, text_of(path)))
            return &console_files[i];
    fail_msg("no file %s", path);
    return NULL;
}

/* Sends the head of a request for `path` (but its first line) and hands it to the pages. */
static bool ask(struct client *client, const char *method, const char *path, const char *fields)
{
    struct buffer request = {0};
    buffer_append_format(&request, "%s /later HTTP/1.1\r\n" HOST "%s\r\n", method, fields);
    client_send(client, buffer_text(&request));
    buffer_free(&request);
    WAIT_UNTIL(&loopback, loopback.waiting != NULL);
    loopback.waiting->path = text_of(path);
    bool known = console_pages_reply(loopback.waiting);
    if (!known)
        http_reply_error(loopback.waiting, &error_not_found);
    loopback.waiting = NULL;
    return known;
}

/* The bytes after the head, when all of them are there. */
static struct text body_of(struct client *client, size_t size)
{
    client_expect(client, "\r\n\r\n");
    size_t head =
        (size_t)(strstr(buffer_string(&client->received), "\r\n\r\n") + 4 - client->received.data);
    uint64_t end = test_clock_real_ms() + PATIENCE_MS;
    while (client->received.size < head + size && test_clock_real_ms() < end)
        client_read(client);
    assert_int_equal(client->received.size, head + size);
    return (struct text){client->received.data + head, size};
}

TEST_WITH(every_file_is_sent_gzipped_and_plain_as_the_same_bytes, open_loopback, close_loopback)
{
    for (size_t i = 0; i < console_file_count; i++) {
        const struct console_file *file = &console_files[i];
        struct client zipped = client_open(&loopback), plain = client_open(&loopback);
        assert_true(ask(&zipped, "GET", file->path.at, "Accept-Encoding: gzip\r\n"));
        assert_true(ask(&plain, "GET", file->path.at, ""));
        struct text small = body_of(&zipped, file->gzipped_size);
        struct text large = body_of(&plain, file->size);
        char *out = memory_alloc(file->size + 1);
        z_stream stream = {.next_in = (const Bytef *)small.at,
                           .avail_in = (uInt)small.size,
                           .next_out = (Bytef *)out,
                           .avail_out = (uInt)file->size + 1};
        assert_int_equal(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
        assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
        assert_int_equal(stream.total_out, large.size);
        assert_memory_equal(out, large.at, large.size);
        assert_int_equal(inflateEnd(&stream), Z_OK);
        assert_true(client_has(&zipped, "Content-Encoding: gzip\r\n"));
        assert_false(client_has(&plain, "Content-Encoding: gzip\r\n"));
        assert_true(client_has(&plain, file->content_type));
        assert_true(client_has(&plain, "Cache-Control: no-cache\r\n"));
        memory_free(out);
        client_close(&zipped);
        client_close(&plain);
    }
}

TEST_OF(client, the_public_interface_is_a_file_of_its_own_type)
{
    const struct console_file *file = file_at("/console/openapi.yaml");
    assert_true(ask(client, "GET", file->path.at, ""));
    struct text body = body_of(client, file->size);
    assert_true(client_has(client, "Content-Type: application/yaml\r\n"));
    assert_true(text_starts_with(body, TEXT("openapi: 3.1")));
}

TEST_OF(client, a_tag_that_is_named_is_304_and_another_forms_is_not)
{
    char plain[80], zipped[80];
    const struct console_file *file = file_at("/console/main.js");
    (void)snprintf(plain, sizeof plain, "If-None-Match: \"%s\"\r\n", file->tag);
    (void)snprintf(zipped, sizeof zipped, "If-None-Match: \"%s-gz\"\r\nAccept-Encoding: gzip\r\n",
                   file->tag);
    assert_true(ask(client, "GET", "/console/main.js", plain));
    assert_true(ask(client, "GET", "/console/main.js", zipped));
    while (client_count(client, "HTTP/1.1 304 Not Modified\r\n") < 2)
        client_read(client);
    assert_false(client_has(client, "Content-Length"));
    (void)snprintf(zipped, sizeof zipped, "If-None-Match: \"%s-gz\"\r\n", file->tag);
    assert_true(ask(client, "GET", "/console/main.js", zipped));
    client_expect(client, "HTTP/1.1 200 OK\r\n");
}

TEST_OF(client, the_page_is_at_the_root)
{
    assert_true(ask(client, "GET", "/", ""));
    struct text page = body_of(client, file_at("/")->size);
    assert_true(text_starts_with(page, TEXT("<!doctype html>")));
}

TEST_OF(client, head_has_the_fields_and_no_body)
{
    assert_true(ask(client, "HEAD", "/console/main.js", ""));
    client_expect(client, "Content-Length: ");
    (void)body_of(client, 0);
}

TEST_OF(client, nothing_else_is_a_page)
{
    static const char *const paths[] = {"/console/none.js", "/../etc/passwd.", "/console/",
                                        "/console/main.jsx", ""};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_false(ask(client, "GET", paths[i], ""));
    assert_false(ask(client, "DELETE", "/", ""));
    client_expect(client, "not_found");
}
