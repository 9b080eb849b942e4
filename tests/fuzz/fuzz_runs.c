/*
 * Fuzzes what reads the runs of the index of transaction ids, which are files beside the database.
 *
 * The input is a byte that says which checksums are made to fit, and the file. Holds for every one:
 * it is either refused with a reason, or each look-up answers from what the blocks hold or finds
 * that it is damaged, and nothing else is read.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/memory.h"
#include "stores/platform/sqlite/ids/id_run_write.h"

#define FITS_HEADER 1
#define FITS_FILTER 2
#define FITS_BLOCKS 4
#define SIZE_MAX_HERE (1 << 16)
#define ROOM 8

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const uint8_t identity[ID_IDENTITY_SIZE] = "fuzz";

static void mend_blocks(char *file, size_t size, const struct id_run_header *header)
{
    for (uint64_t at = 0; at < id_run_blocks(header->count) && (at + 2) * ID_BLOCK_SIZE <= size;
         at++) {
        struct id_block block;
        memcpy(&block, file + (at + 1) * ID_BLOCK_SIZE, sizeof block);
        block.sum = id_run_block_sum(header, at, &block);
        memcpy(file + (at + 1) * ID_BLOCK_SIZE, &block, sizeof block);
    }
}

/* What a checksum protects is to be fuzzed, too. */
static void mend(char *file, size_t size, uint8_t which)
{
    struct id_run_header header;
    memcpy(&header, file, sizeof header);
    if (header.count > SIZE_MAX_HERE)
        header.count %= 1024;
    size_t blocks = id_run_blocks(header.count);
    size_t keys_at = (1 + blocks) * ID_BLOCK_SIZE;
    if (which & FITS_HEADER) {
        header.magic = ID_RUN_MAGIC;
        header.version = ID_RUN_VERSION;
        header.block_size = ID_BLOCK_SIZE;
        header.lines = id_run_lines(header.count);
        memcpy(header.identity, identity, sizeof identity);
    }
    size_t filter_at = keys_at + blocks * sizeof(uint64_t);
    size_t filter_size = id_run_lines(header.count) * ID_LINE_SIZE;
    if ((which & FITS_FILTER) && filter_at + filter_size <= size) {
        header.first_keys_sum = checksum_add(header.seed, file + keys_at, filter_at - keys_at);
        header.filter_sum = checksum_add(header.seed, file + filter_at, filter_size);
    }
    if (which & FITS_BLOCKS)
        mend_blocks(file, size, &header);
    if (which & FITS_HEADER)
        header.sum = id_run_header_sum(&header);
    memcpy(file, &header, sizeof header);
}

static void ask(struct id_run *run, uint64_t key, int64_t after)
{
    int64_t numbers[ROOM];
    size_t count = 0;
    struct id_bits bits = id_filter_bits(identity, key);
    (void)id_run_may_have(run, key, &bits);
    if (id_run_find(run, key, after, numbers, ROOM, &count) != STATUS_OK) {
        CHECK(atomic_load(&run->damaged));
        return;
    }
    CHECK(count <= ROOM);
}

static void read_all(struct id_run *run)
{
    struct id_stream stream;
    struct id_entry entry;
    uint64_t count = 0;
    enum status status;
    id_stream_of_run(&stream, run);
    while ((status = id_streams_next(&stream, 1, &entry)) == STATUS_OK) {
        if (count++ % 16 == 0)
            ask(run, entry.key, 0);
    }
    CHECK(status == STATUS_MALFORMED || count == run->header.count);
    CHECK(status != STATUS_MALFORMED || atomic_load(&run->damaged));
    id_stream_end(&stream);
}

static void check(int directory, const char *name, bool filtered)
{
    struct id_run *run = NULL;
    struct error error = {.text = ""};
    enum status status = id_run_open(&run, directory, name, identity, filtered, &error);
    CHECK((status == STATUS_OK) == (run != NULL));
    CHECK((status == STATUS_OK) == (error.text[0] == '\0'));
    if (run == NULL)
        return;
    ask(run, 0, 0);
    ask(run, UINT64_MAX, 0);
    ask(run, UINT64_MAX / 3, INT64_MAX - 1);
    for (uint64_t at = 0; at < run->blocks; at++)
        ask(run, run->first_keys[at], 0);
    read_all(run);
    id_run_close(&run);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[] = "/tmp/croupier-fuzz-runs-XXXXXX";
    if (size < 1 + sizeof(struct id_run_header) || size > SIZE_MAX_HERE)
        return 0;
    char *file = memory_copy(bytes + 1, size - 1);
    mend(file, size - 1, bytes[0]);
    int descriptor = mkstemp(path);
    CHECK(descriptor >= 0 && write(descriptor, file, size - 1) == (ssize_t)(size - 1));
    CHECK(close(descriptor) == 0);
    check(AT_FDCWD, path, true);
    check(AT_FDCWD, path, false);
    CHECK(unlink(path) == 0);
    memory_free(file);
    return 0;
}
