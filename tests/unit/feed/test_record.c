/* feed/record: names, lines, and files that were written, cut off or damaged. */
#include <stdio.h>
#include <zstd.h>

#include "base/file.h"
#include "base/memory.h"
#include "feed/record.h"
#include "test_directory.h"
#include "tests.h"

struct seen {
    struct feed_reading reading;
    struct buffer text;
};

static void see(void *context, int64_t time_ms, struct text sent)
{
    struct seen *seen = context;
    buffer_append_format(&seen->text, "%lld %.*s\n", (long long)time_ms, (int)sent.size, sent.at);
}

static void begin(struct seen *seen)
{
    *seen = (struct seen){.reading = {.to_ms = INT64_MAX, .visit = see, .context = seen}};
}

static void assert_shows(const char *lines, bool sound, const char *shown, unsigned lost)
{
    struct seen seen;
    char frame[1024];
    size_t size = ZSTD_compress(frame, sizeof frame, lines, strlen(lines), 1);
    begin(&seen);
    assert_int_equal(feed_record_show(&seen.reading, (struct text){frame, size}), sound);
    assert_string_equal(buffer_string(&seen.text), shown);
    assert_int_equal(seen.reading.lost, lost);
    buffer_free(&seen.text);
}

TEST(names_say_when_a_file_was_begun)
{
    assert_int_equal(feed_record_begun_ms("1970-01-01T00-00-01.234Z.feed.zst"), 1234);
    static const char *const others[] = {"",
                                         "1970-01-01T00-00-01.234Z",
                                         "notes.feed.zst",
                                         "1970-01-01T00-00-01.234Z.feed.zst.keep",
                                         "1970-13-01T00-00-01.234Z.feed.zst",
                                         "x1970-01-01T00-00-01.234Z.feed.zst"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(feed_record_begun_ms(others[i]), -1);
}

TEST(lines_that_were_published_are_shown)
{
    assert_shows("", true, "", 0);
    assert_shows(
        "1970-01-01T00:00:00.001Z\t{\"line\": 1, \"published\": true}\t{\"a\":\t1} \r\n"
        "1970-01-01T00:00:00.002Z\t{\"line\": 2, \"error\": \"\\\"published\\\": true\"}\t{}\n"
        "1970-01-01T00:00:00.003Z\t{\"gap\": 12}\n"
        "1970-01-01T00:00:00.004Z\t{\"line\": 3, \"published\": true}\t{}\n",
        true, "1 {\"a\":\t1} \r\n4 {}\n", 12);
}

TEST(other_lines_are_damage)
{
    static const char *const wrong[] = {
        "\n", "x\t{\"line\": 1, \"published\": true}\t{}\n", "1970-01-01T00:00:00.001Z\n",
        "1970-01-01T00:00:00.001Z\t[]\t{}\n", "1970-01-01T00:00:00.001Z\t{\"line\": \t{}\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_shows(wrong[i], false, "", 0);
}

/* The one file of the record. */
static struct text read_only_file(const char *directory, struct buffer *bytes)
{
    struct dirent **names = NULL;
    assert_int_equal(scandir(directory, &names, feed_record_is_file, alphasort), 1);
    char *path = memory_format("%s/%s", directory, names[0]->d_name);
    assert_int_equal(file_read(path, 1 << 20, bytes), 0);
    memory_free(path);
    free(names[0]);
    free(names);
    return buffer_text(bytes);
}

TEST(what_is_recorded_is_read_and_each_cut_and_each_damaged_byte_is_noticed)
{
    char directory[TEST_DIRECTORY_SIZE];
    test_directory_make(directory);
    char *record = memory_format("%s/record", directory);
    struct feed_recorder *recorder = NULL;
    struct error error;
    struct seen seen;
    assert_int_equal(feed_recorder_start(&recorder, record, 0, &error), STATUS_OK);
    feed_recorder_add(recorder, TEXT("{\"line\": 1, \"published\": true}"), TEXT("{\"odds\": 1}"));
    feed_recorder_add(recorder, TEXT("{\"line\": 2, \"published\": true}"), TEXT("{\"odds\": 2}"));
    feed_recorder_stop(&recorder);
    begin(&seen);
    seen.reading.directory = record;
    assert_int_equal(feed_record_read(&seen.reading, &error), STATUS_OK);
    assert_non_null(strstr(buffer_string(&seen.text), "{\"odds\": 1}\n"));
    assert_non_null(strstr(buffer_string(&seen.text), "{\"odds\": 2}\n"));
    assert_int_equal(seen.reading.cut, 0);
    struct buffer bytes = {0};
    struct text file = read_only_file(record, &bytes);
    for (size_t size = 1; size < file.size; size++) {
        struct feed_reading cut = {.to_ms = INT64_MAX, .visit = see, .context = &seen};
        buffer_clear(&seen.text);
        assert_true(feed_record_show(&cut, (struct text){file.at, size}));
        assert_int_equal(cut.cut, 1);
        assert_int_equal(seen.text.size, 0);
    }
    for (size_t at = 0; at < file.size; at++) {
        struct feed_reading damaged = {.to_ms = INT64_MAX, .visit = see, .context = &seen};
        buffer_clear(&seen.text);
        bytes.data[at] ^= 0x55;
        assert_true(!feed_record_show(&damaged, file) || damaged.cut == 1);
        assert_int_equal(seen.text.size, 0);
        bytes.data[at] ^= 0x55;
    }
    buffer_free(&bytes);
    buffer_free(&seen.text);
    assert_true(test_directory_remove(directory));
    memory_free(record);
}
