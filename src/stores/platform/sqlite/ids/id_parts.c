/* The parts of the index of ids: see id_parts.h. */
#include "stores/platform/sqlite/ids/id_parts.h"

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

void id_part_append(struct id_index *index, int64_t first)
{
    struct id_part *part = append(index);
    part->first = first;
    part->last = first - 1;
    part->table = id_table_create();
}

void id_part_set_run(struct id_part *part, struct id_run **run)
{
    const struct id_run_header *header = &(*run)->header;
    *part = (struct id_part){.first = header->first, .last = header->last, .run = *run};
    memcpy(part->row_hash, header->row_hash, sizeof part->row_hash);
    *run = NULL;
}

void id_part_append_run(struct id_index *index, struct id_run **run)
{
    id_part_set_run(append(index), run);
}

void id_part_end(struct id_part *part)
{
    id_run_close(&part->run);
    memory_free(memory_take(&part->table));
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

enum status id_parts_compare(struct id_index *index, const struct id_directory *directory,
                             struct error *error)
{
    uint64_t state = 0;
    enum status status = id_directory_state(directory, &state, error);
    if (status != STATUS_OK || state == index->state)
        return status;
    relaxed_store(&index->outdated, true);
    return error_conflict(error, "another process has changed them");
}

void id_parts_wake(struct id_index *index)
{
    if (!index->has_thread)
        return;
    uv_mutex_lock(&index->thread.lock);
    index->woken = true;
    uv_cond_signal(&index->thread.wake);
    uv_mutex_unlock(&index->thread.lock);
}

void id_parts_reject(struct id_index *index, const struct id_file *file, const char *why)
{
    log_event(index->log, LOG_WARNING, "part of the index of transaction ids is made again",
              LOG_STRING("file", file->name), LOG_STRING("reason", why));
    relaxed_add(&index->made_again, 1);
}

void id_run_reject(struct id_index *index, const struct id_run *run)
{
    struct id_directory directory;
    struct id_file file = {run->header.first, run->header.last, ""};
    id_run_name(file.first, file.last, file.name);
    id_parts_reject(index, &file, "it is damaged");
    if (id_directory_open(&directory, index->database, false, NULL) == STATUS_OK) {
        (void)unlinkat(directory.descriptor, file.name, 0);
        id_directory_close(&directory);
    }
    relaxed_store(&index->outdated, true);
}
