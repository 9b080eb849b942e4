/* The line of progress: for who waits at a terminal, and for no one else. */
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "cli/command_line.h"
#include "test_clock.h"
#include "tests.h"

/* Puts `descriptor` in the place of stderr; returns what was there. */
static int replace_stderr(int descriptor)
{
    assert_int_equal(fflush(stderr), 0);
    int kept = dup(STDERR_FILENO);
    assert_true(kept >= 0 && dup2(descriptor, STDERR_FILENO) == STDERR_FILENO);
    return kept;
}

/* Something that takes a little more than two seconds; what it said is read from `reader`. */
static void work(int writer, int reader, uint64_t total, char *said, size_t room)
{
    struct progress progress = {0};
    size_t size = 0;
    int kept = replace_stderr(writer);
    test_clock_stop();
    for (uint64_t done = 1; done <= 7; done++) {
        progress_show(&progress, "sheep", done, total);
        test_clock_advance_ms(350);
    }
    progress_show(&progress, "counting wolves", 9, 9);
    progress_end(&progress);
    int terminal = replace_stderr(kept);
    struct pollfd readable = {.fd = reader, .events = POLLIN};
    while (poll(&readable, 1, 100) == 1 && (readable.revents & POLLIN) != 0) {
        ssize_t got = read(reader, said + size, room - 1 - size);
        assert_true(got > 0);
        size += (size_t)got;
    }
    said[size] = '\0';
    assert_int_equal(close(kept), 0);
    assert_int_equal(close(terminal), 0);
}

TEST(on_a_terminal_one_line_is_written_anew_each_second)
{
    char said[256];
    int leader = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(leader >= 0 && grantpt(leader) == 0 && unlockpt(leader) == 0);
    int follower = open(ptsname(leader), O_RDWR | O_NOCTTY);
    assert_true(follower >= 0);
    work(follower, leader, 9, said, sizeof said);
    assert_string_equal(said,
                        "\r4 of 9 sheep\033[K\r7 of 9 sheep\033[K\rcounting wolves\033[K\r\n");
    work(follower, leader, 0, said, sizeof said);
    assert_string_equal(said, "\rsheep: 4\033[K\rsheep: 7\033[K\rcounting wolves\033[K\r\n");
    assert_int_equal(close(follower), 0);
    assert_int_equal(close(leader), 0);
}

TEST(elsewhere_nothing_is_said)
{
    char said[256];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    work(ends[1], ends[0], 9, said, sizeof said);
    assert_string_equal(said, "");
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
}
