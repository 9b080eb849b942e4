/*
 * May LMDB be let near this file? Walked with pread and bounds on everything, never through LMDB or
 * its map.
 *
 * LMDB trusts its file: a garbage page makes it follow wild pointers, and its writer damage memory
 * and live pages. A reader is under a guard (guard.h), but nothing mends a writer's memory. So what
 * LMDB computes with is looked at first. Its format is small and has not changed since 2013 (its
 * version number is checked), so the file is read here as what it is: input.
 *
 * Checked: both meta pages; of the snapshot's two trees every page's number, kind, bounds and
 * packing, and their depth; that no page is used twice or both used and free; that the whole of it
 * is inside the file. Not checked: keys, their order and the values, which the index and the
 * checksums prove when they are read (records.c).
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds/lmdb/lmdb.h"

enum {
    PAGE_HEADER = 16, /* number 8, padding 2, flags 2, lower 2 and upper 2 (or pages 4) */
    NODE_HEADER = 8,  /* low 2, high 2, flags 2, key size 2 */
    PAGE_BRANCH = 1,
    PAGE_LEAF = 2,
    PAGE_OVERFLOW = 4,
    PAGE_META = 8,
    NODE_BIG = 1, /* the data is the number of an overflow page */
    DEPTH_MAX = 32,
    KEY_MAX = 511,
};
#define META_MAGIC 0xBEEFC0DEU
#define META_VERSION 1U
#define TREE_INTEGER_KEYS 8U
#define NO_PAGE UINT64_MAX
#define MAP_MAX ((uint64_t)1 << 40)

/* As in the file (64-bit, the machine's own byte order, as LMDB has it). */
struct tree {
    uint32_t padding; /* of the first tree: the page size */
    uint16_t flags;
    uint16_t depth;
    uint64_t branch_pages;
    uint64_t leaf_pages;
    uint64_t overflow_pages;
    uint64_t entries;
    uint64_t root;
};

struct meta {
    uint32_t magic;
    uint32_t version;
    uint64_t address;
    uint64_t map_size;
    struct tree trees[2]; /* the free pages, the data */
    uint64_t last_page;
    uint64_t transaction;
};

struct walk {
    int descriptor;
    struct error *error;
    size_t page_size;
    uint64_t last_page;
    unsigned char *used;   /* a bit a page */
    unsigned char *levels; /* a page a level */
    bool free_tree;        /* which tree is being walked */
    unsigned depth;        /* of that tree */
    struct buffer free_list;
};

/* ---- reading --------------------------------------------------------------------------------- */

static enum status read_at(int descriptor, void *out, size_t size, uint64_t offset,
                           struct error *error)
{
    char *at = out;
    while (size > 0) {
        ssize_t got = pread(descriptor, at, size, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set(error, STATUS_UNAVAILABLE, "cannot be read: %s", strerror(errno));
        if (got == 0)
            return error_set(error, STATUS_MALFORMED, "is cut short");
        at += got;
        size -= (size_t)got;
        offset += (uint64_t)got;
    }
    return STATUS_OK;
}

static uint16_t get16(const unsigned char *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint32_t get32(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t get64(const unsigned char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* ---- meta pages ------------------------------------------------------------------------------ */

static enum status read_meta(int descriptor, uint64_t offset, struct meta *meta,
                             struct error *error)
{
    unsigned char bytes[PAGE_HEADER + sizeof *meta];
    enum status status = read_at(descriptor, bytes, sizeof bytes, offset, error);
    if (status != STATUS_OK)
        return status;
    memcpy(meta, bytes + PAGE_HEADER, sizeof *meta);
    if ((get16(bytes + 10) & PAGE_META) == 0 || meta->magic != META_MAGIC)
        return error_set(error, STATUS_MALFORMED, "is not an LMDB file");
    if (meta->version != META_VERSION)
        return error_set(error, STATUS_MALFORMED, "is of an LMDB format that is not known here");
    uint32_t page_size = meta->trees[0].padding;
    if (page_size < 512 || page_size > 32768 || (page_size & (page_size - 1)) != 0 ||
        meta->map_size > MAP_MAX || meta->last_page < 1 || meta->last_page > MAP_MAX / page_size ||
        meta->transaction >> (LMDB_TRANSACTION_BITS - 1) != 0)
        return error_set(error, STATUS_MALFORMED, "has a damaged start");
    for (size_t i = 0; i < 2; i++)
        if (meta->trees[i].root != NO_PAGE && meta->trees[i].root > meta->last_page)
            return error_set(error, STATUS_MALFORMED, "has a damaged start");
    return STATUS_OK;
}

static enum status read_metas(int descriptor, struct meta metas[2], struct error *error)
{
    enum status status = read_meta(descriptor, 0, &metas[0], error);
    if (status != STATUS_OK)
        return status;
    uint32_t page_size = metas[0].trees[0].padding;
    status = read_meta(descriptor, page_size, &metas[1], error);
    if (status != STATUS_OK)
        return status;
    if (metas[1].trees[0].padding != page_size)
        return error_set(error, STATUS_MALFORMED, "has a damaged start");
    return STATUS_OK;
}

enum status lmdb_verify_start(int descriptor, struct error *error)
{
    struct meta metas[2];
    enum status status = STATUS_MALFORMED;
    /* A commit at this very moment may be seen half; not three times. */
    for (int attempt = 0; attempt < 3 && status == STATUS_MALFORMED; attempt++) {
        if (attempt > 0)
            clock_pause_ns(1000000);
        status = read_metas(descriptor, metas, error);
    }
    return status;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static enum status damaged(struct walk *walk, uint64_t page, const char *what)
{
    return error_set(walk->error, STATUS_MALFORMED, "is damaged: page %llu: %s",
                     (unsigned long long)page, what);
}

/* Takes pages for one use. */
static enum status claim(struct walk *walk, uint64_t page, uint64_t count)
{
    if (page < 2 || page > walk->last_page || count > walk->last_page - page + 1)
        return damaged(walk, page, "is not in the file");
    for (uint64_t i = page; i < page + count; i++) {
        unsigned char bit = (unsigned char)(1U << (i % 8));
        if ((walk->used[i / 8] & bit) != 0)
            return damaged(walk, i, "is used twice");
        walk->used[i / 8] |= bit;
    }
    return STATUS_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A record of the tree of free pages: how many, then their numbers, largest first. */
static enum status check_free(struct walk *walk, uint64_t page, const unsigned char *bytes,
                              size_t size)
{
    if (size < 8 || size % 8 != 0 || get64(bytes) > size / 8 - 1)
        return damaged(walk, page, "has a damaged list of free pages");
    uint64_t count = get64(bytes);
    uint64_t before = NO_PAGE;
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t number = get64(bytes + 8 * i);
        if (number >= before)
            return damaged(walk, page, "has free pages out of order");
        enum status status = claim(walk, number, 1);
        if (status != STATUS_OK)
            return status;
        before = number;
    }
    return STATUS_OK;
}

static enum status check_overflow(struct walk *walk, uint64_t number, uint64_t size)
{
    unsigned char header[PAGE_HEADER];
    uint64_t count = (PAGE_HEADER + size + walk->page_size - 1) / walk->page_size;
    if (number > walk->last_page)
        return damaged(walk, number, "is not in the file");
    enum status status =
        read_at(walk->descriptor, header, sizeof header, number * walk->page_size, walk->error);
    if (status != STATUS_OK)
        return status;
    if (get64(header) != number || get16(header + 10) != PAGE_OVERFLOW ||
        get32(header + 12) < count)
        return damaged(walk, number, "is not the value it should be");
    status = claim(walk, number, get32(header + 12));
    if (status != STATUS_OK)
        return status;
    if (!walk->free_tree)
        return STATUS_OK;
    buffer_clear(&walk->free_list);
    buffer_reserve(&walk->free_list, (size_t)size);
    status = read_at(walk->descriptor, walk->free_list.data, (size_t)size,
                     number * walk->page_size + PAGE_HEADER, walk->error);
    if (status != STATUS_OK)
        return status;
    return check_free(walk, number, (unsigned char *)walk->free_list.data, (size_t)size);
}

/* ---- trees ----------------------------------------------------------------------------------- */

static enum status check_page(struct walk *walk, uint64_t number, unsigned depth);

/* One node of a page, which starts at `offset`; tells how much of the page it takes. */
static enum status check_node(struct walk *walk, uint64_t number, const unsigned char *page,
                              unsigned index, unsigned depth, size_t *taken)
{
    bool leaf = get16(page + 10) == PAGE_LEAF;
    size_t offset = get16(page + PAGE_HEADER + 2 * index);
    if (offset % 2 != 0 || offset < get16(page + 14) || offset + NODE_HEADER > walk->page_size)
        return damaged(walk, number, "has a node outside of it");
    const unsigned char *node = page + offset;
    size_t room = walk->page_size - offset - NODE_HEADER;
    uint64_t low = get16(node) | (uint64_t)get16(node + 2) << 16;
    unsigned flags = get16(node + 4);
    size_t key_size = get16(node + 6);
    const unsigned char *key = node + NODE_HEADER;
    size_t data_size = leaf ? ((flags & NODE_BIG) != 0 ? sizeof(uint64_t) : (size_t)low) : 0;
    if (key_size > room || data_size > room - key_size)
        return damaged(walk, number, "has a node that is too long");
    *taken = (NODE_HEADER + key_size + data_size + 1) & ~(size_t)1;

    bool keyless = !leaf && index == 0; /* the first key of a branch page stands for nothing */
    if (!keyless &&
        (key_size < 1 || key_size > KEY_MAX || (walk->free_tree && key_size != sizeof(uint64_t))))
        return damaged(walk, number, "has a key of an impossible size");
    if (!leaf)
        return check_page(walk, low | (uint64_t)flags << 32, depth + 1);
    if ((flags & ~(unsigned)NODE_BIG) != 0)
        return damaged(walk, number, "has a node of an unknown kind");
    if ((flags & NODE_BIG) != 0)
        return check_overflow(walk, get64(key + key_size), low);
    return walk->free_tree ? check_free(walk, number, key + key_size, data_size) : STATUS_OK;
}

static enum status check_page(struct walk *walk, uint64_t number, unsigned depth)
{
    if (depth > walk->depth)
        return damaged(walk, number, "is too deep in its tree");
    enum status status = claim(walk, number, 1);
    if (status != STATUS_OK)
        return status;
    unsigned char *page = walk->levels + (size_t)(depth - 1) * walk->page_size;
    status =
        read_at(walk->descriptor, page, walk->page_size, number * walk->page_size, walk->error);
    if (status != STATUS_OK)
        return status;
    unsigned flags = get16(page + 10);
    size_t lower = get16(page + 12);
    size_t upper = get16(page + 14);
    if (get64(page) != number)
        return damaged(walk, number, "says that it is another");
    if (flags != (depth == walk->depth ? PAGE_LEAF : PAGE_BRANCH))
        return damaged(walk, number, "is of the wrong kind");
    if (lower < PAGE_HEADER + 2 || lower % 2 != 0 || upper < lower || upper > walk->page_size)
        return damaged(walk, number, "has impossible bounds");
    size_t sum = 0;
    for (unsigned i = 0; i < (lower - PAGE_HEADER) / 2; i++) {
        size_t taken = 0;
        status = check_node(walk, number, page, i, depth, &taken);
        if (status != STATUS_OK)
            return status;
        sum += taken;
    }
    if (sum != walk->page_size - upper)
        return damaged(walk, number, "is not packed as it should be");
    return STATUS_OK;
}

static enum status check_tree(struct walk *walk, const struct tree *tree, bool free_tree)
{
    if (tree->depth > DEPTH_MAX || (tree->root == NO_PAGE) != (tree->depth == 0))
        return damaged(walk, 0, "has an impossible tree");
    if ((tree->flags & 0x7FFFU) != (free_tree ? TREE_INTEGER_KEYS : 0))
        return damaged(walk, 0, "has a tree of another kind");
    walk->free_tree = free_tree;
    walk->depth = tree->depth;
    return tree->root == NO_PAGE ? STATUS_OK : check_page(walk, tree->root, 1);
}

enum status lmdb_verify(int descriptor, uint64_t transaction, struct error *error)
{
    struct meta metas[2];
    enum status status = read_metas(descriptor, metas, error);
    if (status != STATUS_OK)
        return status;
    const struct meta *meta = &metas[transaction & 1];
    if (meta->transaction != transaction)
        return error_set(error, STATUS_NOT_FOUND, "its data and lock files do not belong together");
    struct walk walk = {.descriptor = descriptor,
                        .error = error,
                        .page_size = meta->trees[0].padding,
                        .last_page = meta->last_page};
    walk.used = memory_alloc_zeroed((size_t)(meta->last_page / 8 + 1), 1);
    walk.levels = memory_alloc_zeroed(DEPTH_MAX, walk.page_size);
    status = check_tree(&walk, &meta->trees[1], false);
    if (status == STATUS_OK)
        status = check_tree(&walk, &meta->trees[0], true);
    buffer_free(&walk.free_list);
    memory_free(walk.levels);
    memory_free(walk.used);
    return status;
}
