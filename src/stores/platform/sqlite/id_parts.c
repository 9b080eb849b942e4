/* The parts of the index of ids: see id_parts.h. */
#include "stores/platform/sqlite/id_parts.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

static struct id_part *append(struct id_index *index)
{
    if (index->count == index->room) {
        index->room = index->room == 0 ? 32 : 2 * index->room;
        index->parts = memory_resize(index->parts, index->room * sizeof *index->parts);
    }
    struct id_part *part = &index->parts[index->count++];
    *part = (struct id_part){0};
    return part;
}

struct id_part *id_part_append(struct id_index *index, int64_t first)
{
    struct id_part *part = append(index);
    part->first = first;
    part->last = first - 1;
    part->table = id_table_create();
    return part;
}

void id_part_append_run(struct id_index *index, struct id_run **run)
{
    struct id_part *part = append(index);
    part->first = (*run)->header.first;
    part->last = (*run)->header.last;
    memcpy(part->proof, (*run)->header.proof, sizeof part->proof);
    part->run = *run;
    *run = NULL;
}

void id_part_end(struct id_part *part)
{
    id_run_close(&part->run);
    id_table_destroy(&part->table);
}

void id_parts_remove(struct id_index *index, size_t from, size_t count)
{
    size_t after = index->count - from - count;
    if (after > 0)
        memmove(&index->parts[from], &index->parts[from + count], after * sizeof *index->parts);
    index->count -= count;
}

struct id_part *id_newest(struct id_index *index)
{
    CHECK(index->count > 0 && index->parts[index->count - 1].table != NULL);
    return &index->parts[index->count - 1];
}

size_t id_tables(const struct id_index *index)
{
    size_t tables = 0;
    for (size_t i = 0; i < index->count; i++)
        tables += index->parts[i].table != NULL;
    return tables;
}

/* Only if it is still this file: another process may have made it again. */
static void delete_file(const struct id_index *index, const struct id_run *run)
{
    struct id_directory directory;
    struct stat facts;
    char name[ID_NAME_SIZE];
    id_run_name(run->header.first, run->header.last, name);
    if (index->reads_only ||
        id_directory_open(&directory, index->database, false, NULL) != STATUS_OK)
        return;
    if (fstatat(directory.descriptor, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
        facts.st_dev == run->device && facts.st_ino == run->inode)
        (void)unlinkat(directory.descriptor, name, 0);
    id_directory_close(&directory);
}

void id_run_reject(struct id_index *index, const struct id_run *run)
{
    delete_file(index, run);
    atomic_fetch_add_explicit(&index->made_again, 1, memory_order_relaxed);
    atomic_store_explicit(&index->outdated, true, memory_order_relaxed);
}
