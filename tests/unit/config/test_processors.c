/* config_processors: quotas of control groups in a tree of files, and an affinity of the test's. */
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "test_directory.h"
#include "tests.h"

static char root[TEST_DIRECTORY_SIZE];
static int allowed; /* processors; 0: the kernel does not say */

/* In place of the C library's. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    CPU_ZERO_S(size, set);
    for (int i = 0; i < allowed; i++)
        CPU_SET_S((size_t)i, size, set);
    return allowed > 0 ? 0 : -1;
}

static int begin(void **state)
{
    test_directory_make(root);
    allowed = 256;
    return 0;
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *walk)
{
    return remove(path);
}

static int end(void **state)
{
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Makes a file below the root, with its directories. */
static void put(const char *name, const char *content)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0 && fclose(file) == 0);
}

TEST_WITH(without_a_quota_the_affinity_counts_up_to_64, begin, end)
{
    assert_int_equal(config_processors(root), 64); /* no such files at all */
    put("proc/self/cgroup", "0::/system.slice/croupier.service\n");
    put("sys/fs/cgroup/system.slice/croupier.service/cpu.max", "max 100000\n");
    assert_int_equal(config_processors(root), 64);
    allowed = 3;
    assert_int_equal(config_processors(root), 3);
    put("sys/fs/cgroup/system.slice/croupier.service/cpu.max", "800000 100000\n");
    assert_int_equal(config_processors(root), 3);
    allowed = 0; /* then those that are online */
    assert_in_range(config_processors(root), 1, 8);
}

TEST_WITH(a_quota_of_version_2_counts_and_those_of_its_parents, begin, end)
{
    put("proc/self/cgroup", "0::/a/b/c\n");
    put("sys/fs/cgroup/a/b/c/cpu.max", "50000 100000\n");
    assert_int_equal(config_processors(root), 1); /* half a processor */
    put("sys/fs/cgroup/a/b/c/cpu.max", "1200000 100000\n");
    assert_int_equal(config_processors(root), 12);
    put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    put("sys/fs/cgroup/a/cpu.max", "250001 50000\n");
    assert_int_equal(config_processors(root), 6);    /* five and a little */
    put("sys/fs/cgroup/cpu.max", "200000 100000\n"); /* a container's own group */
    assert_int_equal(config_processors(root), 2);
    put("sys/fs/cgroup/other/cpu.max", "100000 100000\n");
    put("sys/fs/cgroup/a/b/c/d/cpu.max", "100000 100000\n");
    assert_int_equal(config_processors(root), 2);
}

TEST_WITH(a_container_has_its_quota_at_the_mount_point, begin, end)
{
    put("sys/fs/cgroup/cpu.max", "150000 100000\n");
    static const char *const groups[] = {"0::/\n", "0::/docker/0123456789abcdef\n", "0::/../..\n"};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        put("proc/self/cgroup", groups[i]);
        assert_int_equal(config_processors(root), 2);
    }
}

TEST_WITH(a_quota_of_version_1_counts_and_those_of_its_parents, begin, end)
{
    put("proc/self/cgroup", "12:cpuset:/x\n4:cpuacct,cpu:/docker/1\n1:name=systemd:/y\n0::/z\n");
    put("sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu/docker/1/cpu.cfs_period_us", "100000\n");
    assert_int_equal(config_processors(root), 64);
    put("sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us", "350000\n");
    assert_int_equal(config_processors(root), 4);
    put("sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us", "25000\n");
    put("sys/fs/cgroup/cpu/docker/cpu.cfs_period_us", "10000\n");
    assert_int_equal(config_processors(root), 3);
    put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(config_processors(root), 1);
}

TEST_WITH(what_is_no_quota_changes_nothing, begin, end)
{
    static const char *const contents[] = {
        "",      "\n",           "max\n",       "100000\n",    "0 100000\n",
        "1 0\n", "100000 max\n", "-5 100000\n", "1e3 100000\n"};
    allowed = 7;
    put("proc/self/cgroup", "0::/a\n\nnonsense\n3\n:::\n5:cpu,:/a\n");
    for (size_t i = 0; i < sizeof contents / sizeof contents[0]; i++) {
        put("sys/fs/cgroup/a/cpu.max", contents[i]);
        put("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", contents[i]);
        assert_int_equal(config_processors(root), 7);
    }
}
