/*
 * Sends the files of the console; see pages.h.
 *
 * They are kept gzipped. For a client without gzip, such as curl, a file is inflated each time.
 */
#include "console/pages.h"

#define ZLIB_CONST /* its input is not written to */
#include <zlib.h>

#include "base/memory.h"
#include "console/files.h"

static const struct console_file *find(struct text path)
{
    for (size_t i = 0; i < console_file_count; i++)
        if (text_equals(console_files[i].path, path))
            return &console_files[i];
    return NULL;
}

static char *inflate_file(const struct console_file *file)
{
    char *plain = memory_alloc(file->size);
    z_stream stream = {.next_in = file->gzipped,
                       .avail_in = (uInt)file->gzipped_size,
                       .next_out = (Bytef *)plain,
                       .avail_out = (uInt)file->size};
    CHECK(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK); /* 16: of gzip */
    CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.total_out == file->size);
    (void)inflateEnd(&stream);
    return plain;
}

static void append_head(struct buffer *head, const struct console_file *file, bool gzip,
                        const char *tag, bool matched)
{
    buffer_append_format(head,
                         "HTTP/1.1 %s\r\n"
                         "ETag: %s\r\n"
                         "Vary: Accept-Encoding\r\n"
                         "X-Content-Type-Options: nosniff\r\n"
                         "Cache-Control: no-cache\r\n",
                         matched ? "304 Not Modified" : "200 OK", tag);
    if (!matched)
        buffer_append_format(head, "Content-Type: %s\r\nContent-Length: %zu\r\n%s",
                             file->content_type, gzip ? file->gzipped_size : file->size,
                             gzip ? "Content-Encoding: gzip\r\n" : "");
}

static void reply(struct http_request *request, const struct console_file *file)
{
    bool gzip = http_accepted_codings(request).gzip;
    struct buffer head = {0}, tag = {0};
    char *plain = NULL;
    struct text body = TEXT("");
    buffer_append_format(&tag, "\"%s%s\"", file->tag, gzip ? "-gz" : "");
    bool matched = http_matches_etag(request, buffer_text(&tag));
    append_head(&head, file, gzip, buffer_string(&tag), matched);
    if (!matched && gzip)
        body = (struct text){(const char *)file->gzipped, file->gzipped_size};
    else if (!matched)
        body = (struct text){plain = inflate_file(file), file->size};
    struct http_message *message =
        http_message_create(matched ? 304 : 200, buffer_text(&head), body);
    http_reply_message(request, message);
    http_message_release(&message);
    memory_free(plain);
    buffer_free(&head);
    buffer_free(&tag);
}

bool console_pages_reply(struct http_request *request)
{
    bool reads = request->method == METHOD_GET || request->method == METHOD_HEAD;
    const struct console_file *file = reads ? find(request->path) : NULL;
    if (file == NULL)
        return false;
    reply(request, file);
    return true;
}
