#pragma once

#include "config/config.h"
#include "metrics/metrics.h"

/*
 * The resources of the process, and the room of its embedded stores. The names of the metrics of
 * the process are those that all exporters of Prometheus use. Asked at a scrape, on the main
 * thread: some files of /proc and one system call for each store.
 */

struct process_disk {
    bool known;          /* of a store that is a file here, and can be reached */
    uint64_t free_bytes; /* for this user */
    uint64_t size_bytes; /* of the file system */
};

struct process_facts {
    uint64_t cpu_ns; /* user and system */
    uint64_t resident_bytes, virtual_bytes;
    uint64_t descriptors, descriptors_max;
    int64_t started_ms, now_ms; /* wall clock */
    struct process_disk odds, platform;
    uint64_t log_bytes;    /* of the log of an embedded platform store */
    int64_t backup_age_ms; /* of an embedded platform store; -1: no backup is known */
};

/* Unknown values are 0. `started_ms`: when the program began, by the wall clock. */
void process_facts(const struct config *config, int64_t started_ms, struct process_facts *facts);
extern const struct metric process_metrics[];
