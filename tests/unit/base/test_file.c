/* base/file: files that are on disk. (That a full disk and one that fails leave nothing behind:
 * tests/service/test_backup.py.) */
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "test_directory.h"
#include "tests.h"

static char directory[TEST_DIRECTORY_SIZE];
static char from[TEST_DIRECTORY_SIZE + 8];
static char to[TEST_DIRECTORY_SIZE + 8];
static struct error error;

static int begin(void **state)
{
    test_directory_make(directory);
    (void)snprintf(from, sizeof from, "%s/from", directory);
    (void)snprintf(to, sizeof to, "%s/to", directory);
    return 0;
}

static int end(void **state)
{
    (void)unlink(from);
    (void)unlink(to);
    return rmdir(directory);
}

static void count(void *context, const char *what, uint64_t done, uint64_t total)
{
    assert_string_equal(what, "bytes of from copied");
    assert_true(done <= total);
    *(uint64_t *)context = done;
}

TEST_WITH(a_copy_holds_what_its_print_says, begin, end)
{
    static char content[3 * 1024 * 1024 + 7];
    uint64_t seen = 0;
    const struct progress_watch watch = {count, &seen};
    struct file_print print;
    struct file_print again;
    struct stat facts;
    uint8_t digest[DIGEST_SIZE];
    for (size_t i = 0; i < sizeof content; i++)
        content[i] = (char)(i * 31 >> 3);
    const struct text text = {content, sizeof content};
    assert_int_equal(file_make(from, 0600, text, &error), STATUS_OK);
    assert_int_equal(file_copy(from, to, 0400, &watch, &print, &error), STATUS_OK);
    digest_sha256(content, sizeof content, digest);
    assert_int_equal(print.bytes, sizeof content);
    assert_int_equal(seen, sizeof content);
    assert_memory_equal(print.sha256, digest, sizeof digest);
    assert_int_equal(file_read_print(to, NULL, &again, &error), STATUS_OK);
    assert_true(file_prints_equal(&again, &print));
    again.bytes++;
    assert_false(file_prints_equal(&again, &print));
    again = print;
    again.sha256[DIGEST_SIZE - 1] ^= 1;
    assert_false(file_prints_equal(&again, &print));
    assert_int_equal(stat(to, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0400);
    assert_int_equal(file_sync_directory(to), 0);
}

TEST_WITH(nothing_is_replaced, begin, end)
{
    struct file_print print;
    struct file_print before;
    assert_int_equal(file_make(from, 0600, TEXT("one"), &error), STATUS_OK);
    assert_int_equal(file_make(to, 0600, TEXT("other"), &error), STATUS_OK);
    assert_int_equal(file_read_print(to, NULL, &before, &error), STATUS_OK);
    assert_int_equal(file_make(to, 0600, TEXT("one"), &error), STATUS_EXISTS);
    assert_int_equal(file_copy(from, to, 0600, NULL, &print, &error), STATUS_EXISTS);
    assert_int_equal(file_read_print(to, NULL, &print, &error), STATUS_OK);
    assert_memory_equal(&print, &before, sizeof print);
}

TEST_WITH(what_is_no_file_is_not_read, begin, end)
{
    struct file_print print;
    assert_int_equal(file_read_print(from, NULL, &print, &error), STATUS_NOT_FOUND);
    assert_int_equal(file_copy(from, to, 0600, NULL, &print, &error), STATUS_NOT_FOUND);
    assert_int_equal(file_read_print(directory, NULL, &print, &error), STATUS_UNAVAILABLE);
    assert_int_not_equal(access(to, F_OK), 0);
}

TEST_WITH(a_directory_is_made_once, begin, end)
{
    assert_int_equal(file_make_directory(from, 0700, &error), STATUS_OK);
    assert_int_equal(file_make_directory(from, 0700, &error), STATUS_OK);
    assert_int_equal(rmdir(from), 0);
}
