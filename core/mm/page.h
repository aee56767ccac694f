/* The page array: what core/mm knows of each physical page.  Private to core/mm. */
#ifndef WEIR_CORE_MM_PAGE_H
#define WEIR_CORE_MM_PAGE_H

#include "core/base/param.h"
#include "core/base/spinlock.h"
#include "core/base/types.h"
#include "core/mm/mm.h"

enum page_state {
    PAGE_RESERVED, /* not RAM, or taken before start-up; zero: a cleared array means it */
    PAGE_FREE,   /* head of a free block on the shared lists */
    PAGE_CACHED, /* free, in a CPU's cache of single pages */
    PAGE_USED,   /* head of an allocated block */
    PAGE_SLAB,   /* any page of a slab */
    PAGE_BIG,    /* head of a kmalloc() larger than the slab classes */
};

/* 16 bytes a page (0.4% of RAM). Pages of a block behind its head keep whatever they had, but for
 * slabs. */
struct page {
    u32 next; /* index in the array: on the free list of the block's order, on the cache's list */
    u32 prev; /* of partly used slabs, or in a chain of pages to be freed */
    u16 free_head; /* slab: number of the first free object, plus 1 */
    union {
        u16 in_use;   /* slab: objects handed out, those in magazines included */
        u16 promised; /* page of an application: 1 if it belonged to a VM_PROMISED mapping */
    };
    u16 cache; /* slab: number of its cache */
    u8 state; /* enum page_state; PAGE_FREE changes under the lock, the owner sets others */
    u8 order : 4;
    u8 kind : 4; /* enum mem_kind of an allocated block */
};

/* Index 0 is never a page that can be allocated (the array begins at a 4 MiB boundary and its first
 * page is kept back), so that 0 ends lists. */
#define NO_PAGE 0u

extern struct page *page_array;
extern u64 page_array_base; /* physical page number of index 0 */
extern u32 page_array_len;

static inline u32 page_index(paddr_t pa)
{
    return (u32)((pa >> PAGE_SHIFT) - page_array_base);
}

static inline paddr_t page_phys(u32 index)
{
    return (page_array_base + index) << PAGE_SHIFT;
}

static inline struct page *page_of(paddr_t pa)
{
    return &page_array[page_index(pa)];
}

static inline bool page_known(paddr_t pa)
{
    return (pa >> PAGE_SHIFT) - page_array_base < page_array_len;
}

/* Start-up of the parts, in this order. Each begins from nothing, so that host tests can start
 * over. */
void limits_init(void);
void pages_init(void);
/* Gives a range of whole pages to the shared lists. */
void pages_add_range(paddr_t base, u64 pages);
void slab_init(void);
int kmalloc_init(void);
void vspace_init(void);
void kstack_init(void);
int vm_init(void);

void vm_stats(struct mem_stats *out);

/* Free pages: all of them, and those on the shared lists alone (cheap). */
u64 pages_free(void);
u64 pages_free_shared(void);
void pages_stats(struct mem_stats *out);

/* Charges pages to a kind. false: the grant's max or the kernel's reserve forbids it (counted). See
 * limits.c. */
bool mem_charge(enum mem_kind kind, u64 pages);
void mem_uncharge(enum mem_kind kind, u64 pages);
/* Pages that an application may still get before mem_charge refuses. */
u64 mem_pages_available(void);
/* A promise of memory was refused: counted as an event at max if it is the grant that has no room. */
void mem_note_refused(void);

#endif
