/* See process.h. */
#include "app/process.h"

#include <sys/resource.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/memory.h"
#include "operator/backup.h"

static uint64_t nanoseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_usec * 1000U;
}

/* statm gives pages: first the whole address space, then the part that is in memory (proc(5)). */
static void read_memory(struct process_facts *facts)
{
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    char line[128] = "";
    char *rest;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return;
    if (fgets(line, sizeof line, file) != NULL) {
        facts->virtual_bytes = strtoull(line, &rest, 10) * page_bytes;
        facts->resident_bytes = strtoull(rest, NULL, 10) * page_bytes;
    }
    (void)fclose(file);
}

static uint64_t count_descriptors(void)
{
    uint64_t count = 0;
    /* Avoids opendir, whose descriptor ThreadSanitizer takes for the one of that number that libuv
     * has closed on another thread. */
    int descriptor = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (directory == NULL) {
        file_close(&descriptor);
        return 0;
    }
    while (readdir(directory) != NULL)
        count++;
    (void)closedir(directory);
    return count - 3; /* ".", "..", and the directory's own */
}

/* SQLite's log beside the file; 0: there is none. */
static uint64_t log_bytes(const char *path)
{
    char *log = file_beside(path, "-wal");
    struct stat file;
    uint64_t bytes = stat(log, &file) == 0 ? (uint64_t)file.st_size : 0;
    memory_free(log);
    return bytes;
}

/* Measures the file system of a store; NULL: the store is a server. */
static struct process_disk disk_of(const char *path)
{
    struct statvfs at;
    if (path == NULL || statvfs(path, &at) != 0)
        return (struct process_disk){.known = false};
    return (struct process_disk){.known = true,
                                 .free_bytes = (uint64_t)at.f_bavail * at.f_frsize,
                                 .size_bytes = (uint64_t)at.f_blocks * at.f_frsize};
}

void process_facts(const struct config *config, int64_t started_ms, struct process_facts *facts)
{
    struct rusage usage;
    struct rlimit limit;
    const char *platform_file = config_platform_file(config);
    *facts = (struct process_facts){
        .descriptors = count_descriptors(),
        .started_ms = started_ms,
        .now_ms = clock_wall_ms(),
        .odds = disk_of(config_odds_directory(config)),
        .platform = disk_of(platform_file),
    };
    int64_t backup_ms = platform_file == NULL ? -1 : backup_last_ms(platform_file);
    facts->backup_age_ms = backup_ms < 0 ? -1 : facts->now_ms - backup_ms;
    facts->log_bytes = platform_file == NULL ? 0 : log_bytes(platform_file);
    read_memory(facts);
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        facts->cpu_ns = nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        facts->descriptors_max = limit.rlim_cur;
}

/* ---- metrics --------------------------------------------------------------------------------- */

/* Writes for each embedded store the number at the row's place in its struct process_disk. */
static void write_disks(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct process_facts *process = facts;
    const struct process_disk *disks[] = {&process->odds, &process->platform};
    static const char *const labels[] = {"{store=\"odds\"}", "{store=\"platform\"}"};
    for (size_t i = 0; i < 2; i++) {
        uint64_t bytes;
        memcpy(&bytes, (const char *)disks[i] + metric->offset, sizeof bytes);
        if (disks[i]->known)
            metric_number(out, metric->name, labels[i], bytes);
    }
}

/* PostgreSQL's own tools make its backups. */
static void write_backup_age(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct process_facts *process = facts;
    if (process->platform.known)
        metric_age(out, metric->name, NULL, process->backup_age_ms, "+Inf");
}

const struct metric process_metrics[] = {
    {.name = "croupier_store_disk_free_bytes",
     .offset = offsetof(struct process_disk, free_bytes),
     .write = write_disks},
    {.name = "croupier_store_disk_size_bytes",
     .offset = offsetof(struct process_disk, size_bytes),
     .write = write_disks},
    METRIC_WRITTEN("croupier_backup_age_seconds", write_backup_age),
    METRIC_FACT("croupier_platform_log_bytes", struct process_facts, log_bytes),
    METRIC_AGE("croupier_clock_timestamp_seconds", struct process_facts, now_ms, "NaN"),
    METRIC_AGE("process_start_time_seconds", struct process_facts, started_ms, "NaN"),
    METRIC_SECONDS("process_cpu_seconds_total", struct process_facts, cpu_ns),
    METRIC_FACT("process_resident_memory_bytes", struct process_facts, resident_bytes),
    METRIC_FACT("process_virtual_memory_bytes", struct process_facts, virtual_bytes),
    METRIC_FACT("process_open_fds", struct process_facts, descriptors),
    METRIC_FACT("process_max_fds", struct process_facts, descriptors_max),
    {0},
};
