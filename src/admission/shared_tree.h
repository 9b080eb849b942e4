#ifndef CROUPIER_ADMISSION_SHARED_TREE_H
#define CROUPIER_ADMISSION_SHARED_TREE_H

#include <stddef.h>
#include <stdint.h>

/*
 * A sparse array of 4096 counted objects, as a tree of two levels whose versions share every branch
 * that did not change: to write one element of a version that has other holders, only the nodes
 * between the root and the element are copied. That makes a new version of a table of 100,000
 * policies cost a few microseconds.
 *
 * Threads: one thread (the editor's) makes, shares, writes and releases; the counts are its own and
 * plain. Any thread that was handed a version may read it with shared_tree_get.
 */
struct counted {
    size_t references; /* as wide as a pointer, so that what follows it is aligned */
};

#define SHARED_TREE_BITS 6 /* a node has 64 branches */
#define SHARED_TREE_LEVELS 2
#define SHARED_TREE_SIZE (1U << SHARED_TREE_BITS * SHARED_TREE_LEVELS)

/* All elements are NULL while `root` is. */
struct shared_tree {
    struct counted *root;
    void (*destroy_leaf)(struct counted *leaf);
};

struct counted *shared_tree_get(const struct shared_tree *tree, uint32_t index);

/* Another holder of the same version. */
struct shared_tree shared_tree_share(const struct shared_tree *tree);
void shared_tree_release(struct shared_tree *tree);

/* The place of one element, on a path that belongs to this version alone: may be written. The leaf
 * that stands there may still be shared: see its count. */
struct counted **shared_tree_own(struct shared_tree *tree, uint32_t index);

#endif
