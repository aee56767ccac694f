/* Intrusive pairing heap, smallest key first: run queues and timer queues.
 *
 * O(1) insertion, amortised O(log n) removal, three pointers a node, no memory of its own.  Keys are compared as signed
 * distances, so they may wrap.  Equal keys come out in no particular order.  No locking.
 * Algorithm: Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap: a new form of self-adjusting heap", 1986. */
#ifndef WEIR_CORE_BASE_HEAP_H
#define WEIR_CORE_BASE_HEAP_H

#include "core/base/types.h"

struct heap_node {
    struct heap_node *child; /* first child */
    struct heap_node *next;  /* next sibling */
    struct heap_node *prev;  /* previous sibling, or the parent of a first child */
    u64 key;
};

static inline bool heap_before(const struct heap_node *a, const struct heap_node *b)
{
    return (i64)(a->key - b->key) < 0;
}

/* Makes the later of two roots the first child of the earlier one. */
static inline struct heap_node *heap_meld(struct heap_node *a, struct heap_node *b)
{
    if (!a) {
        return b;
    }
    if (!b) {
        return a;
    }
    if (heap_before(b, a)) {
        struct heap_node *t = a;
        a = b;
        b = t;
    }
    b->next = a->child;
    if (b->next) {
        b->next->prev = b;
    }
    b->prev = a;
    a->child = b;
    return a;
}

static inline void heap_insert(struct heap_node **root, struct heap_node *n)
{
    n->child = n->next = n->prev = NULL;
    *root = heap_meld(*root, n);
    (*root)->next = (*root)->prev = NULL;
}

/* Melds a list of siblings pairwise, then the pairs from the last to the first. */
static inline struct heap_node *heap_merge_siblings(struct heap_node *first)
{
    struct heap_node *pairs = NULL;
    while (first) {
        struct heap_node *a = first, *b = a->next;
        first = b ? b->next : NULL;
        a->next = NULL;
        if (b) {
            b->next = NULL;
        }
        struct heap_node *m = heap_meld(a, b);
        m->next = pairs;
        pairs = m;
    }
    struct heap_node *root = NULL;
    while (pairs) {
        struct heap_node *rest = pairs->next;
        pairs->next = NULL;
        root = heap_meld(root, pairs);
        pairs = rest;
    }
    return root;
}

static inline void heap_remove(struct heap_node **root, struct heap_node *n)
{
    struct heap_node *sub = heap_merge_siblings(n->child);
    if (n == *root) {
        *root = sub;
    } else {
        if (n->prev->child == n) {
            n->prev->child = n->next;
        } else {
            n->prev->next = n->next;
        }
        if (n->next) {
            n->next->prev = n->prev;
        }
        *root = heap_meld(*root, sub);
    }
    if (*root) {
        (*root)->next = (*root)->prev = NULL;
    }
    n->child = n->next = n->prev = NULL;
}

#endif
