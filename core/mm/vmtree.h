/* The set of mappings: a search tree by address that also knows the free space between them.
 *
 * A treap (Seidel and Aragon, "Randomized search trees", 1996) whose nodes carry the largest gap
 * inside their subtree, so lookup, insertion, removal and the search for a hole are all O(log n)
 * expected. No locking, no allocation. */
#ifndef WEIR_CORE_MM_VMTREE_H
#define WEIR_CORE_MM_VMTREE_H

#include "core/base/types.h"

struct mapping {
    u64 start, end; /* bytes, page-aligned, end excluded */
    u32 prot;       /* enum mm_prot */
    u32 flags;      /* enum mm_flags that last (MM_STACK, MM_NORESERVE), VM_DYING */
    void *owner;
    /* Private to vmtree.c. */
    struct mapping *left, *right, *parent;
    u64 priority;           /* heap order: parents have the higher one */
    u64 min_start, max_end; /* of the subtree */
    u64 max_gap;            /* largest free range strictly inside the subtree */
};

struct vmtree {
    struct mapping *root;
    u64 count;
    u64 seed; /* state of the priorities' generator */
};

/* m must not overlap any mapping of the tree. */
void vmtree_insert(struct vmtree *t, struct mapping *m);
void vmtree_remove(struct vmtree *t, struct mapping *m);
/* Changes the bounds; the new ones must not overlap another mapping nor pass it. */
void vmtree_resize(struct mapping *m, u64 start, u64 end);
/* The lowest mapping that ends above addr: the one that holds addr, or else the next one. NULL if
 * there is none. */
struct mapping *vmtree_at_or_above(const struct vmtree *t, u64 addr);
struct mapping *vmtree_next(const struct mapping *m);
struct mapping *vmtree_prev(const struct mapping *m);
/* Start of the highest free range of len bytes within [lo, hi), as high as it can be; 0 if there is
 * none. Every mapping must lie in [lo, hi). */
u64 vmtree_find_gap(const struct vmtree *t, u64 lo, u64 hi, u64 len);

#endif
