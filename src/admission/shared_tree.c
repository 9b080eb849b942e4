/*
 * Path copying; see shared_tree.h. A node may be written in place when it and all nodes above it
 * have one reference: no other thread can then reach it. That is what makes the first load, which
 * writes every element of a version that is not published yet, as cheap as filling an array.
 */
#include "admission/shared_tree.h"

#include "base/memory.h"
#include "base/status.h"

#define FANOUT (1U << SHARED_TREE_BITS)

struct node {
    struct counted counted;
    struct counted *children[FANOUT];
};

static uint32_t branch(uint32_t index, unsigned levels_below)
{
    return index >> (SHARED_TREE_BITS * levels_below) & (FANOUT - 1);
}

struct counted *shared_tree_get(const struct shared_tree *tree, uint32_t index)
{
    struct counted *item = tree->root;
    for (unsigned level = SHARED_TREE_LEVELS; level > 0 && item != NULL; level--)
        item = ((struct node *)item)->children[branch(index, level - 1)];
    return item;
}

struct shared_tree shared_tree_share(const struct shared_tree *tree)
{
    if (tree->root != NULL)
        tree->root->references++;
    return *tree;
}

/* Recursion is bounded by the levels of the tree. */
static void release(const struct shared_tree *tree, struct counted *item, unsigned levels)
{
    if (item == NULL)
        return;
    CHECK(item->references > 0);
    if (--item->references > 0)
        return;
    if (levels == 0) {
        tree->destroy_leaf(item);
        return;
    }
    for (unsigned i = 0; i < FANOUT; i++)
        release(tree, ((struct node *)item)->children[i], levels - 1);
    memory_free(item);
}

void shared_tree_release(struct shared_tree *tree)
{
    release(tree, tree->root, SHARED_TREE_LEVELS);
    tree->root = NULL;
}

/* The node itself when it is not shared, else a copy of it in exchange. */
static struct node *own(struct counted *item)
{
    if (item != NULL && item->references == 1)
        return (struct node *)item;
    struct node *node = memory_alloc_zeroed(1, sizeof *node);
    if (item != NULL) {
        *node = *(struct node *)item;
        for (unsigned i = 0; i < FANOUT; i++) {
            if (node->children[i] != NULL)
                node->children[i]->references++;
        }
        item->references--;
    }
    node->counted.references = 1;
    return node;
}

struct counted **shared_tree_own(struct shared_tree *tree, uint32_t index)
{
    CHECK(index < SHARED_TREE_SIZE);
    struct counted **place = &tree->root;
    for (unsigned level = SHARED_TREE_LEVELS; level > 0; level--) {
        struct node *node = own(*place);
        *place = &node->counted;
        place = &node->children[branch(index, level - 1)];
    }
    return place;
}
