/* Arena of one shard: blocks by size class from slabs of the page heap.
 *
 * Context: the owner's lock (the shard's) must be held; the page heap's lock is taken inside, once
 * per slab or per block above KV_SLAB_MAX. Blocks are 16-byte aligned and not zeroed.
 * The caller names the size again when it frees, as it knows it from the item. */
#ifndef KV_ARENA_H
#define KV_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "apps/kv/pages.h"

#define ARENA_CLASSES 72

struct arena {
    struct span *room[ARENA_CLASSES]; /* slabs with a free block */
    size_t used;                      /* bytes in blocks handed out, rounded up to their class */
    size_t reserved;                  /* bytes of pages held */
};

void arena_init(struct arena *a);

/* Bytes that a block of `size` really takes (size >= 1). */
size_t arena_round(size_t size);

/* size >= 1. NULL: the system has no memory. */
void *arena_alloc(struct arena *a, size_t size);
void arena_free(struct arena *a, void *p, size_t size);

#endif
