/* Intrusive doubly linked list.  No locking: the owner of the list says which lock protects it. */
#ifndef WEIR_CORE_BASE_LIST_H
#define WEIR_CORE_BASE_LIST_H

#include "core/base/types.h"

struct list {
    struct list *next, *prev;
};

#define LIST_INIT(name) { &(name), &(name) }

static inline void list_init(struct list *l)
{
    l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_insert(struct list *prev, struct list *node)
{
    node->next = prev->next;
    node->prev = prev;
    prev->next->prev = node;
    prev->next = node;
}

static inline void list_push_back(struct list *l, struct list *node)
{
    list_insert(l->prev, node);
}

static inline void list_push_front(struct list *l, struct list *node)
{
    list_insert(l, node);
}

/* Leaves the node pointing at itself, so that removing it again or testing it is harmless. */
static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

static inline struct list *list_pop_front(struct list *l)
{
    if (list_empty(l)) {
        return NULL;
    }
    struct list *node = l->next;
    list_remove(node);
    return node;
}

/* Moves all of src to the end of dst and leaves src empty. */
static inline void list_splice_back(struct list *dst, struct list *src)
{
    if (list_empty(src)) {
        return;
    }
    src->next->prev = dst->prev;
    dst->prev->next = src->next;
    src->prev->next = dst;
    dst->prev = src->prev;
    list_init(src);
}

#define list_entry(node, type, member) container_of(node, type, member)
#define list_for_each(pos, l) for (struct list *pos = (l)->next; pos != (l); pos = pos->next)
#define list_for_each_safe(pos, tmp, l) \
    for (struct list *pos = (l)->next, *tmp = pos->next; pos != (l); pos = tmp, tmp = pos->next)

#endif
