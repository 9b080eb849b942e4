#ifndef CROUPIER_ADMISSION_SHARED_TREE_H
#define CROUPIER_ADMISSION_SHARED_TREE_H

#include <stddef.h>
#include <stdint.h>

/*
 * A sparse array of counted objects, as a tree of fixed depth whose versions share every branch
 * that did not change: to write one element of a version that somebody else holds, only the nodes
 * between the root and the element are copied. That makes a new version of a table of 100,000
 * policies cost a few microseconds.
 *
 * Threads: one thread (the editor's) makes, shares, writes and releases; the counts are its own and
 * plain. Any thread that was handed a version may read it with shared_tree_get.
 *
 * `bytes` adds up what the trees and their leaves take.
 */
struct counted {
    size_t references; /* as wide as a pointer, so that what follows it is aligned */
};

#define SHARED_TREE_BITS 6 /* a node has 64 branches */

struct shared_tree_kind {
    unsigned levels; /* 64 to this power is the number of elements */
    void (*destroy_leaf)(struct counted *leaf, size_t *bytes);
};

/* All elements are NULL while `root` is. */
struct shared_tree {
    const struct shared_tree_kind *kind;
    struct counted *root;
};

struct counted *shared_tree_get(const struct shared_tree *tree, uint32_t index);

/* Another holder of the same version. */
struct shared_tree shared_tree_share(const struct shared_tree *tree);
void shared_tree_release(struct shared_tree *tree, size_t *bytes);

/* The place of one element, on a path that belongs to this version alone: may be written. The leaf
 * that stands there may still be shared: see its count. */
struct counted **shared_tree_own(struct shared_tree *tree, uint32_t index, size_t *bytes);

/* Puts a leaf (taking over one reference; may be NULL) and releases the one that stood there. */
void shared_tree_put(struct shared_tree *tree, uint32_t index, struct counted *leaf, size_t *bytes);

#endif
