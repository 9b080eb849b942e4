/* Reads a record, whole frames at a time: none is shown before its checksum was compared. */
#include "feed/record.h"

#include <zstd.h>
#include <zstd_errors.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/memory.h"

#define FILE_MOST ((size_t)4 << 30)    /* bytes; the recorder begins another before */
#define FRAME_MOST ((size_t)128 << 20) /* bytes of lines */

/* Shows a line. False: this is no line of a record. */
static bool show_line(struct feed_reading *reading, struct text line)
{
    struct text time = text_cut(&line, '\t'), answer = text_cut(&line, '\t');
    int64_t time_ms, lost;
    if (clock_parse_rfc3339(time, &time_ms) != STATUS_OK ||
        json_text_check(answer, NULL, NULL) != STATUS_OK ||
        json_text_kind(answer) != JSON_TEXT_OBJECT)
        return false;
    if (time_ms > reading->to_ms)
        return true;
    if (line.at != NULL && json_text_member(answer, TEXT("published")).at != NULL) {
        reading->lines++;
        if (reading->visit != NULL)
            reading->visit(reading->context, time_ms, line);
    }
    if (line.at == NULL && json_text_integer(json_text_member(answer, TEXT("gap")), &lost))
        reading->lost += (uint64_t)lost;
    return true;
}

/* Shows the lines of a frame. False: it is damaged. */
static bool show_frame(struct feed_reading *reading, struct text frame)
{
    unsigned long long size = ZSTD_getFrameContentSize(frame.at, frame.size);
    if (size > FRAME_MOST)
        return false;
    char *lines = memory_alloc(size + 1);
    bool sound = ZSTD_decompress(lines, size, frame.at, frame.size) == size;
    struct text rest = {lines, size};
    while (sound && rest.size > 0)
        sound = show_line(reading, text_cut(&rest, '\n'));
    memory_free(lines);
    return sound;
}

bool feed_record_show(struct feed_reading *reading, struct text bytes)
{
    while (bytes.size > 0) {
        size_t size = ZSTD_findFrameCompressedSize(bytes.at, bytes.size);
        if (ZSTD_getErrorCode(size) == ZSTD_error_srcSize_wrong) {
            reading->cut++;
            return true;
        }
        if (ZSTD_isError(size) || !show_frame(reading, (struct text){bytes.at, size}))
            return false;
        bytes = (struct text){bytes.at + size, bytes.size - size};
    }
    return true;
}

static enum status read_file(struct feed_reading *reading, const char *path, struct error *error)
{
    struct buffer bytes = {0};
    enum status status = STATUS_OK;
    int failed = file_read(path, FILE_MOST, &bytes);
    if (failed != 0)
        status = error_unavailable(error, "%s: %s", path, strerror(failed));
    else if (!feed_record_show(reading, buffer_text(&bytes)))
        status = error_set(error, STATUS_MALFORMED, "%s is damaged", path);
    buffer_free(&bytes);
    return status;
}

enum status feed_record_read(struct feed_reading *reading, struct error *error)
{
    struct dirent **names = NULL;
    enum status status = STATUS_OK;
    int count = scandir(reading->directory, &names, feed_record_is_file, alphasort);
    if (count <= 0)
        status = error_not_found(error, "%s: %s", reading->directory,
                                 count < 0 ? strerror(errno) : "there is no record in it");
    for (int i = 0; i < count; i++) {
        bool before =
            i + 1 < count && feed_record_begun_ms(names[i + 1]->d_name) <= reading->from_ms;
        bool after = feed_record_begun_ms(names[i]->d_name) > reading->to_ms;
        char *path = memory_format("%s/%s", reading->directory, names[i]->d_name);
        if (status == STATUS_OK && !before && !after)
            status = read_file(reading, path, error);
        memory_free(path);
        free(names[i]);
    }
    free(names);
    return status;
}
