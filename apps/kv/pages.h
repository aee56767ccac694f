/* Page heap: runs of pages ("spans") cut from chunks of KV_CHUNK_SIZE, shared by all shards.
 *
 * Context: any thread; takes one internal lock, never another. Shards come here once per slab, so
 * the lock is off the path of a request. Memory is zeroed only as far as the system does it.
 * Errors: NULL when the system has no memory. */
#ifndef KV_PAGES_H
#define KV_PAGES_H

#include <stddef.h>
#include <stdint.h>

struct span {
    struct span *next, *prev; /* free list of the page heap, or slab list of an arena */
    void *free;               /* arena: blocks given back */
    uint16_t first;           /* first page within the chunk */
    uint16_t npages;
    uint16_t cls;     /* arena: size class */
    uint16_t is_free; /* in the page heap's free lists */
    uint16_t nused;   /* arena: blocks in use */
    uint16_t nbump;   /* arena: blocks never handed out start here */
    uint16_t nblocks;
    uint16_t listed; /* arena: in the list of slabs with room */
};

/* Largest span, pages; the rest of a chunk is its own bookkeeping. */
size_t pages_max(void);

/* npages: 1..pages_max(). */
struct span *pages_alloc(size_t npages);
void pages_free(struct span *s);

/* Address of a span's first byte; the span that an address lies in. */
void *span_base(const struct span *s);
struct span *span_of(const void *p);

/* Direct mappings, for what exceeds a span. size in bytes, rounded up to pages inside. */
void *pages_map(size_t size);
void pages_unmap(void *p, size_t size);

/* Bytes obtained from the system by all of the above. */
size_t pages_mapped(void);

#endif
