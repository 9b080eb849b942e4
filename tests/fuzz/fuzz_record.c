/* A file of a record: whatever the bytes, it is damaged or shows lines of its frames. An input that
 * is no frame is also read as the lines of one. */
#include <string.h>

#include <zstd.h>

#include "base/memory.h"
#include "feed/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void visit(void *context, int64_t time_ms, struct text sent)
{
    const struct feed_reading *reading = context;
    CHECK(time_ms <= reading->to_ms && sent.at != NULL);
    CHECK(sent.size == 0 || memchr(sent.at, '\n', sent.size) == NULL);
}

static void show(const void *bytes, size_t size)
{
    struct feed_reading reading = {.to_ms = INT64_MAX / 2, .visit = visit};
    char *exact = memory_copy(bytes, size); /* so that reading on is noticed */
    reading.context = &reading;
    if (!feed_record_show(&reading, (struct text){exact, size}))
        CHECK(reading.cut == 0);
    memory_free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t room = ZSTD_compressBound(size);
    char *frame = memory_alloc(room);
    show(data, size);
    size_t packed = ZSTD_compress(frame, room, data, size, 1);
    CHECK(!ZSTD_isError(packed));
    show(frame, packed);
    if (packed > 0)
        show(frame, packed - 1);
    memory_free(frame);
    return 0;
}
