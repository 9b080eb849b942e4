/* base/file: files that are on disk. (That a full disk and one that fails leave nothing behind:
 * tests/service/test_backup.py.) */
#include <grp.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

/* As an access list lets a service read root's file, which its mode does not show. */
static bool read_everything(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {{0}};
    if (syscall(SYS_capget, &header, sets) != 0)
        return false;
    sets[0].effective |= 1U << CAP_DAC_READ_SEARCH;
    return syscall(SYS_capset, &header, sets) == 0;
}

TEST_WITH(a_secret_is_of_root_or_the_service_and_for_no_one_else, begin, end)
{
    enum { SERVICE = 65534, SECOND_GROUP = 4242, STRANGER = 4343 };
    static const gid_t second = SECOND_GROUP;
    static const struct {
        mode_t mode;
        uid_t user;
        gid_t group;
        bool as_service, as_root;
    } cases[] = {
        {0400, SERVICE, SERVICE, true, true},
        {0600, SERVICE, SERVICE, true, true},
        {0600, SERVICE, STRANGER, true, true},
        {0400, 0, 0, true, true},            /* a credential, where access lists do not work */
        {0440, 0, 0, true, true},            /* a credential: the access list's mask */
        {0440, 0, SERVICE, true, true},      /* a secret of Kubernetes for the pod's group */
        {0440, 0, SECOND_GROUP, true, true}, /* and for its fsGroup */
        {0640, 0, SECOND_GROUP, true, true},
        {0440, 0, STRANGER, false, true}, /* root does not know the service's groups */
        {0600, STRANGER, SERVICE, false, true},
        {0460, 0, SERVICE, false, false},
        {0660, 0, SERVICE, false, false},
        {0450, 0, SERVICE, false, false},
        {0404, SERVICE, SERVICE, false, false},
        {0444, 0, 0, false, false},
        {0666, SERVICE, SERVICE, false, false},
    };
    if (geteuid() != 0)
        skip(); /* takes root to give files away */
    assert_int_equal(file_make(from, 0600, TEXT("secret"), &error), STATUS_OK);
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof cases[0]); i++) {
        struct buffer read = {0};
        bool as_root = i % 2 == 1;
        bool expected = as_root ? cases[i / 2].as_root : cases[i / 2].as_service;
        assert_int_equal(chown(from, cases[i / 2].user, cases[i / 2].group), 0);
        assert_int_equal(chmod(from, cases[i / 2].mode), 0);
        assert_int_equal(setgroups(as_root ? 0 : 1, &second), 0);
        assert_int_equal(setegid(as_root ? 0 : SERVICE), 0);
        assert_int_equal(seteuid(as_root ? 0 : SERVICE), 0);
        bool able = as_root || read_everything();
        enum status status = file_read_secret(from, 6, &read, &error);
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(setegid(0), 0);
        assert_int_equal(setgroups(0, NULL), 0);
        assert_true(able);
        if (status != (expected ? STATUS_OK : STATUS_INVALID))
            fail_msg("case %zu: %s", i, status == STATUS_OK ? "taken" : error.text);
        /* Root's file of a group is read through the group, which 600 would shut out. */
        bool by_group = cases[i / 2].user == 0 && cases[i / 2].group != 0;
        const char *remedy = by_group ? "run: chmod 640 " : "run: chmod 600 ";
        assert_true(status == STATUS_OK ? text_equals(buffer_text(&read), TEXT("secret"))
                                        : read.size == 0 && strstr(error.text, remedy) != NULL);
        buffer_wipe(&read);
    }
}

TEST_WITH(a_secret_that_cannot_be_read_says_why, begin, end)
{
    struct buffer read = {0};
    assert_int_equal(file_read_secret(from, 6, &read, &error), STATUS_NOT_FOUND);
    assert_non_null(strstr(error.text, "No such file"));
    assert_int_equal(file_read_secret(directory, 6, &read, &error), STATUS_INVALID);
    assert_non_null(strstr(error.text, "is not a regular file"));
    assert_int_equal(read.size, 0);
}
