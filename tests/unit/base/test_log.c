/* base/log: one line a record, as text or JSON. */
#include <unistd.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/json_text.h"
#include "base/log.h"
#include "tests.h"

static int file;

static int open_file(void **state)
{
    char name[] = "/tmp/croupier-test-log-XXXXXX";
    file = mkstemp(name);
    return file >= 0 ? unlink(name) : -1;
}

static int close_file(void **state)
{
    return close(file);
}

static const char *written(void)
{
    static char lines[1024 * 1024];
    ssize_t got = pread(file, lines, sizeof lines - 1, 0);
    assert_true(got >= 0);
    lines[got] = '\0';
    return lines;
}

#define STAMP_SIZE 24 /* "2026-11-21T04:53:17.042Z" */

TEST_WITH(of_the_journal_a_line_begins_with_its_priority, open_file, close_file)
{
    struct stat found;
    char stream[64];
    assert_int_equal(fstat(file, &found), 0);
    (void)snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)found.st_dev,
                   (uintmax_t)found.st_ino);
    assert_int_equal(setenv("JOURNAL_STREAM", stream, 1), 0);
    struct log *log = log_create(file, LOG_DEBUG, LOG_FORMAT_JSON);
    struct log_batch *batch = log_batch_create(log);
    log_event(log, LOG_ERROR, "a");
    log_event(log, LOG_WARNING, "b");
    log_event(log, LOG_DEBUG, "c");
    assert_true(log_flush(log));
    log_batch_emit(batch, LOG_INFO, "d", (const struct log_field[]){{0}});
    log_batch_destroy(&batch);
    log_destroy(&log);
    char priorities[64] = "";
    const char *line = written();
    for (; *line != '\0'; line = strchr(line, '\n') + 1)
        (void)snprintf(priorities + strlen(priorities), sizeof priorities - strlen(priorities),
                       "%.4s", line);
    assert_string_equal(priorities, "<3>{<4>{<7>{<6>{");

    /* Standard error may have been redirected since. */
    assert_int_equal(setenv("JOURNAL_STREAM", "1:1", 1), 0);
    size_t before = strlen(written());
    log = log_create(file, LOG_DEBUG, LOG_FORMAT_JSON);
    log_event(log, LOG_ERROR, "e");
    log_destroy(&log);
    assert_int_equal(written()[before], '{');
    assert_int_equal(unsetenv("JOURNAL_STREAM"), 0);
}

TEST_WITH(a_text_line_is_stamp_level_message_fields, open_file, close_file)
{
    struct log *log = log_create(file, LOG_INFO, LOG_FORMAT_TEXT);
    log_event(log, LOG_WARNING, "odds store opened again", LOG_STRING("path", "/var/lib"),
              LOG_INTEGER("attempts", 3), LOG_INTEGER("least", INT64_MIN));
    log_event(log, LOG_ERROR, "no fields");
    log_destroy(&log);
    assert_null(log);
    const char *line = written();
    assert_int_equal(line[10], 'T');
    assert_int_equal(line[STAMP_SIZE - 1], 'Z');
    assert_true(strncmp(line + STAMP_SIZE,
                        " warning odds store opened again path=/var/lib attempts=3 "
                        "least=-9223372036854775808\n",
                        strlen(" warning odds store opened again path=/var/lib attempts=3 "
                               "least=-9223372036854775808\n")) == 0);
    assert_non_null(strstr(line, "Z error no fields\n"));
}

TEST_WITH(values_that_could_be_misread_are_quoted, open_file, close_file)
{
    struct log *log = log_create(file, LOG_INFO, LOG_FORMAT_TEXT);
    log_event(log, LOG_INFO, "m", LOG_STRING("a", ""), LOG_STRING("b", NULL),
              LOG_STRING("c", "two words"), LOG_STRING("d", "x=y"),
              LOG_STRING("e", "1\nforged line \033[2J\xC2\x9B"),
              LOG_TEXT("f", ((struct text){"cut short", 3})), LOG_STRING("g", "\"q\""));
    log_destroy(&log);
    assert_string_equal(written() + STAMP_SIZE,
                        " info m a=\"\" b=\"\" c=\"two words\" d=\"x=y\" "
                        "e=\"1\\nforged line \\u001b[2J\\u009b\" f=cut g=\"\\\"q\\\"\"\n");
}

static void assert_member(struct text object, const char *name, const char *expected)
{
    struct text value = json_text_member(object, text_of(name));
    if (!text_equals(value, text_of(expected)))
        fail_msg("%s is %.*s", name, (int)value.size, value.at);
}

TEST_WITH(a_json_line_is_one_object, open_file, close_file)
{
    struct log *log = log_create(file, LOG_INFO, LOG_FORMAT_JSON);
    log_event(log, LOG_INFO, "a \"message\"", LOG_STRING("path", "/v\n\xFF"), LOG_INTEGER("n", -5));
    log_destroy(&log);
    const char *line = written();
    assert_int_equal(line[strlen(line) - 1], '\n');
    struct text document = {line, strlen(line) - 1};
    assert_int_equal(json_text_check(document, NULL, NULL), STATUS_OK);
    assert_member(document, "level", "\"info\"");
    assert_member(document, "message", "\"a \\\"message\\\"\"");
    assert_member(document, "path", "\"/v\\n\xEF\xBF\xBD\"");
    assert_member(document, "n", "-5");
    assert_int_equal(json_text_inside(json_text_member(document, TEXT("time"))).size, STAMP_SIZE);
}

TEST_WITH(what_is_below_the_level_is_not_written, open_file, close_file)
{
    struct log *log = log_create(file, LOG_WARNING, LOG_FORMAT_TEXT);
    log_event(log, LOG_INFO, "quiet");
    assert_false(log_enabled(log, LOG_INFO));
    assert_true(log_enabled(log, LOG_ERROR));
    log_configure(log, LOG_DEBUG, LOG_FORMAT_TEXT);
    log_event(log, LOG_DEBUG, "loud");
    log_configure(log, LOG_DEBUG, LOG_FORMAT_JSON);
    log_event(log, LOG_DEBUG, "json");
    log_destroy(&log);
    assert_null(strstr(written(), "quiet"));
    assert_non_null(strstr(written(), " debug loud\n{"));
}

TEST_WITH(no_log_discards, open_file, close_file)
{
    assert_false(log_enabled(NULL, LOG_ERROR));
    log_event(NULL, LOG_ERROR, "nowhere");
    struct log_batch *batch = log_batch_create(NULL);
    log_batch_emit(batch, LOG_ERROR, "nowhere", &(struct log_field){0});
    log_batch_destroy(&batch);
    assert_null(batch);
    assert_string_equal(written(), "");
}

TEST_WITH(a_batch_is_written_when_it_is_full_or_flushed, open_file, close_file)
{
    struct log *log = log_create(file, LOG_INFO, LOG_FORMAT_TEXT);
    struct log_batch *batch = log_batch_create(log);
    const struct log_field none = {0};
    log_batch_emit(batch, LOG_INFO, "first", &none);
    log_batch_emit(batch, LOG_DEBUG, "below", &none);
    assert_string_equal(written(), "");
    log_batch_flush(batch);
    assert_true(log_flush(log));
    assert_string_equal(written() + STAMP_SIZE, " info first\n");
    for (int i = 0; i < 2000; i++)
        log_batch_emit(batch, LOG_INFO, "many", &none);
    assert_true(log_flush(log));
    assert_true(strlen(written()) > 32768);
    log_batch_emit(batch, LOG_INFO, "last", &none);
    log_batch_destroy(&batch);
    log_destroy(&log);
    const char *lines = written();
    assert_string_equal(lines + strlen(lines) - strlen(" info last\n"), " info last\n");
}

static void *log_many(void *log)
{
    for (int i = 0; i < 500; i++)
        log_event(log, LOG_INFO, "a line of some length that would show if it were torn");
    return NULL;
}

TEST_WITH(lines_of_several_threads_do_not_mix, open_file, close_file)
{
    struct log *log = log_create(file, LOG_INFO, LOG_FORMAT_TEXT);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_many, log), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    log_destroy(&log);
    struct text rest = text_of(written());
    size_t lines = 0;
    for (struct text line = text_cut(&rest, '\n'); line.size > 0; line = text_cut(&rest, '\n')) {
        line.at += STAMP_SIZE;
        line.size -= STAMP_SIZE;
        assert_true(
            text_equals(line, TEXT(" info a line of some length that would show if it were torn")));
        lines++;
    }
    assert_int_equal(lines, 2000);
}

/* ---- what no one reads ----------------------------------------------------------------------- */

#define NUMBERED 60000 /* lines of 100 bytes and more: some 6 MB, more than queue and pipe hold */

static void log_numbered(struct log *log)
{
    for (int i = 0; i < NUMBERED; i++)
        log_event(log, LOG_INFO, "a line that is numbered", LOG_INTEGER("number", i),
                  LOG_STRING("filler", "......................................................"));
}

struct reading {
    int descriptor;
    struct buffer bytes;
};

static void *read_all(void *argument)
{
    struct reading *reading = argument;
    char bytes[65536];
    ssize_t size;
    while ((size = read(reading->descriptor, bytes, sizeof bytes)) > 0)
        buffer_append(&reading->bytes, bytes, (size_t)size);
    return NULL;
}

/* The number behind `name` in a line, or -1. */
static long number_in(struct text line, const char *name)
{
    char copy[256];
    assert_true(line.size < sizeof copy);
    memcpy(copy, line.at, line.size);
    copy[line.size] = '\0';
    const char *at = strstr(copy, name);
    return at == NULL ? -1 : strtol(at + strlen(name), NULL, 10);
}

TEST_WITH(lines_that_no_one_reads_are_dropped_and_counted, open_file, close_file)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct log *log = log_create(ends[1], LOG_INFO, LOG_FORMAT_TEXT);
    log_numbered(log); /* does not wait: no one reads */
    uint64_t dropped = log_dropped(log);
    assert_in_range(dropped, 1, NUMBERED - 1);
    assert_false(log_flush(log));

    struct reading reading = {.descriptor = ends[0]};
    pthread_t reader;
    assert_int_equal(pthread_create(&reader, NULL, read_all, &reading), 0);
    while (!log_flush(log)) {
    }
    log_event(log, LOG_INFO, "it goes on");
    log_destroy(&log);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(pthread_join(reader, NULL), 0);
    assert_int_equal(close(ends[0]), 0);

    struct text rest = buffer_text(&reading.bytes);
    assert_int_equal(rest.at[rest.size - 1], '\n');
    long next = 0;
    long told = 0;
    struct text line;
    for (line = text_cut(&rest, '\n'); number_in(line, " number=") == next;
         line = text_cut(&rest, '\n'))
        next++;
    for (; rest.at != NULL; line = text_cut(&rest, '\n')) {
        if (number_in(line, "dropped lines=") > 0)
            told += number_in(line, "dropped lines=");
        else
            assert_non_null(memmem(line.at, line.size, " info it goes on", 16));
    }
    assert_int_equal(told, dropped);
    assert_int_equal(next + told, NUMBERED);
    buffer_free(&reading.bytes);
}

TEST_WITH(single_lines_have_room_that_batches_leave_them, open_file, close_file)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct log *log = log_create(ends[1], LOG_INFO, LOG_FORMAT_TEXT);
    struct log_batch *batch = log_batch_create(log);
    const struct log_field none = {0};
    while (log_dropped(log) == 0)
        log_batch_emit(batch, LOG_INFO, "a request like many others", &none);
    uint64_t dropped = log_dropped(log);
    log_event(log, LOG_WARNING, "something is wrong");
    assert_int_equal(log_dropped(log), dropped);
    log_batch_destroy(&batch);
    log_destroy(&log); /* gives up: no one reads */
    assert_null(log);
    assert_int_equal(close(ends[0]),
                     0); /* ends its writer, which may need the other end until then */
}

TEST_WITH(lines_to_a_reader_that_has_gone_are_counted, open_file, close_file)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(close(ends[0]), 0);
    struct log *log = log_create(ends[1], LOG_INFO, LOG_FORMAT_TEXT);
    for (int i = 0; i < 3; i++) {
        log_event(log, LOG_INFO, "nobody is there");
        assert_true(log_flush(log));
        assert_int_equal(log_dropped(log), i + 1);
    }
    log_destroy(&log);
    assert_int_equal(close(ends[1]), 0);
}

TEST_WITH(a_pipe_that_does_not_block_loses_nothing, open_file, close_file)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, 0), 0);
    struct log *log = log_create(ends[1], LOG_INFO, LOG_FORMAT_TEXT);
    for (int i = 0; i < 2000; i++)
        log_event(log, LOG_INFO,
                  "a line of a hundred bytes or so, of which a pipe holds few hundred");
    struct reading reading = {.descriptor = ends[0]};
    pthread_t reader;
    assert_int_equal(pthread_create(&reader, NULL, read_all, &reading), 0);
    log_destroy(&log);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(pthread_join(reader, NULL), 0);
    size_t lines = 0;
    for (size_t i = 0; i < reading.bytes.size; i++)
        lines += reading.bytes.data[i] == '\n';
    assert_int_equal(lines, 2000);
    buffer_free(&reading.bytes);
    assert_int_equal(close(ends[0]), 0);
}

static unsigned writebacks;

int sync_file_range(int descriptor, off64_t offset, off64_t size, unsigned flags)
{
    writebacks += descriptor == file && offset == 0 && size == 0 && flags == SYNC_FILE_RANGE_WRITE;
    return 0;
}

/* At each MiB, as a kernel would otherwise write half a minute's lines back at once. */
TEST_WITH(a_file_is_written_back_as_it_grows, open_file, close_file)
{
    static char word[4000];
    memset(word, 'x', sizeof word - 1);
    struct log *log = log_create(file, LOG_INFO, LOG_FORMAT_JSON);
    for (int mebibytes = 1; mebibytes <= 3; mebibytes++) {
        for (int line = 0; line < 256; line++) /* of somewhat more than 4,096 bytes each */
            log_event(log, LOG_INFO, "a line", LOG_WORD("word", text_of(word)),
                      LOG_WORD("more", text_of(word + sizeof word - 101)));
        assert_true(log_flush(log));
        assert_int_equal(writebacks, mebibytes);
    }
    log_destroy(&log);
}

TEST_WITH(names_of_levels_and_formats_are_read, open_file, close_file)
{
    enum log_level level;
    enum log_format format;
    assert_true(enum_read(&log_levels, TEXT("error"), &level));
    assert_int_equal(level, LOG_ERROR);
    assert_true(enum_read(&log_levels, TEXT("debug"), &level));
    assert_int_equal(level, LOG_DEBUG);
    assert_false(enum_read(&log_levels, TEXT("Info"), &level));
    assert_false(enum_read(&log_levels, TEXT(""), &level));
    assert_true(enum_read(&log_formats, TEXT("json"), &format));
    assert_int_equal(format, LOG_FORMAT_JSON);
    assert_false(enum_read(&log_formats, TEXT("JSON"), &format));
}

TEST_WITH(fields_that_are_kept_are_those_that_were_formatted, open_file, close_file)
{
    struct log *log = log_create(file, LOG_INFO, LOG_FORMAT_TEXT);
    struct log_batch *batch = log_batch_create(log);
    struct log_kept kept = {0};
    const struct log_field alike[] = {LOG_WORD("client", TEXT("203.0.113.7")),
                                      LOG_WORD("customer", TEXT("")),
                                      LOG_STRING("a", "b c"),
                                      {0}};
    for (int i = 0; i < 4; i++) {
        if (i == 2) { /* the format changes with the next flush, and not inside of a line */
            log_configure(log, LOG_INFO, LOG_FORMAT_JSON);
            assert_true(log_batch_has_kept(batch, &kept));
            log_batch_flush(batch);
        }
        assert_int_equal(log_batch_has_kept(batch, &kept), i % 2 == 1);
        if (!log_batch_has_kept(batch, &kept))
            log_batch_keep(batch, &kept, alike);
        log_batch_emit(
            batch, LOG_INFO, "request",
            (const struct log_field[]){
                LOG_WORD("id", TEXT("x-1")), LOG_KEPT(&kept), LOG_INTEGER("status", i), {0}});
    }
    log_batch_destroy(&batch);
    log_destroy(&log);
    const char *line = written();
    for (int i = 0; i < 4; i++) {
        char wanted[160];
        const char *start = i < 2 ? line + STAMP_SIZE : strstr(line, "\"level\"");
        (void)snprintf(wanted, sizeof wanted,
                       i < 2 ? " info request id=x-1 client=203.0.113.7 customer=\"\" a=\"b c\" "
                               "status=%d\n"
                             : "\"level\":\"info\",\"message\":\"request\",\"id\":\"x-1\","
                               "\"client\":\"203.0.113.7\",\"customer\":\"\",\"a\":\"b c\","
                               "\"status\":%d}\n",
                       i);
        assert_non_null(start);
        assert_memory_equal(start, wanted, strlen(wanted));
        line = start + strlen(wanted);
    }
    assert_string_equal(line, "");
}
