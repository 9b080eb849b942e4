/*
 * How many processors `threads = 0` means: as many as the affinity of the process and the quotas of
 * its control groups allow, at most 64. More threads than that make a quota's pauses longer: the
 * kernel stops all of them when they have used it up.
 *
 * A group's path is tried below the mount point with one part less each time, up to the mount point
 * itself, so all parents count. In a container without a cgroup namespace the path is the host's;
 * then the mount point alone is found, which is the container's group.
 */

#include <uv.h>

#include "base/file.h"
#include "base/memory.h"
#include "config/settings.h"

#define PROCESSORS_MAX 64
#define KERNEL_FILE_MAX 65536

/* Appends a file of the kernel's; nothing when there is none. */
static void append_file(const char *directory, const char *name, struct buffer *out)
{
    size_t before = out->size;
    char *path = memory_format("%s/%s", directory, name);
    if (file_read(path, KERNEL_FILE_MAX, out) != 0)
        out->size = before;
    memory_free(path);
}

/* Applies the quota of one group, part of a processor counting as one. Version 2 has one file,
 * "50000 100000" or "max 100000", version 1 two, of which the first is -1 without a quota. */
static void apply_group(const char *directory, uint32_t *processors)
{
    struct buffer content = {0};
    uint64_t quota;
    uint64_t period;
    append_file(directory, "cpu.max", &content);
    append_file(directory, "cpu.cfs_quota_us", &content);
    append_file(directory, "cpu.cfs_period_us", &content);
    for (size_t i = 0; i < content.size; i++)
        content.data[i] = content.data[i] == '\n' ? ' ' : content.data[i];
    struct text rest = buffer_text(&content);
    if (text_to_u64(text_cut(&rest, ' '), INT64_MAX, &quota) == STATUS_OK &&
        text_to_u64(text_cut(&rest, ' '), INT32_MAX, &period) == STATUS_OK && period > 0) {
        uint64_t whole = quota / period + (quota % period > 0 ? 1 : 0);
        *processors = whole < *processors && whole > 0 ? (uint32_t)whole : *processors;
    }
    buffer_free(&content);
}

/* One line of /proc/self/cgroup, "0::/PATH" in version 2, "3:cpu,cpuacct:/PATH" in version 1. */
static void apply_line(const char *root, struct text line, uint32_t *processors)
{
    struct buffer directory = {0};
    (void)text_cut(&line, ':');
    struct text controllers = text_cut(&line, ':');
    bool found = controllers.size == 0;
    buffer_append_format(&directory, "%s/sys/fs/cgroup%s", root, found ? "" : "/cpu");
    while (!found && controllers.at != NULL)
        found = text_equals(text_cut(&controllers, ','), TEXT("cpu"));
    size_t mount_point = directory.size;
    buffer_append_text(&directory, line);
    while (found) {
        apply_group(buffer_string(&directory), processors);
        found = directory.size > mount_point;
        while (directory.size > mount_point && directory.data[--directory.size] != '/') {
        }
    }
    buffer_free(&directory);
}

uint32_t config_processors(const char *root)
{
    struct buffer groups = {0};
    uint32_t processors = uv_available_parallelism(); /* by the affinity */
    append_file(root, "proc/self/cgroup", &groups);
    struct text rest = buffer_text(&groups);
    while (rest.size > 0)
        apply_line(root, text_cut(&rest, '\n'), &processors);
    buffer_free(&groups);
    return processors < PROCESSORS_MAX ? processors : PROCESSORS_MAX;
}
