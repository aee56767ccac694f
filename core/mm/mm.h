/* Physical pages, kernel heap, and the one address space.
 *
 * Contexts: page_*, kmalloc/kfree, slab_*: any context (locks RANK_SLAB, RANK_PAGES, interrupts off
 * while held). mm_*: thread context, may fault in pages but never blocks. Sizes are bytes unless
 * named pages. */
#ifndef WEIR_CORE_MM_MM_H
#define WEIR_CORE_MM_MM_H

#include "arch/arch.h"
#include "core/base/types.h"

/* ---- start-up ---- */

/* Takes over the RAM of the boot ranges. -ENOMEM (logged with the number of bytes needed) below the
 * minimum. */
int mm_init(const struct boot_info *boot);

/* ---- pages: buddy allocator, per-CPU caches of single pages ---- */

enum mem_kind {
    MEM_KERNEL,
    MEM_ANON,
    MEM_NET,
    MEM_FILE,
    NUM_MEM_KINDS
}; /* what a page is charged to */

/* 2^order pages, physically contiguous, order 0..10; physical address, 0 if there is none
 * (counted). */
paddr_t page_alloc(u32 order, enum mem_kind kind);
paddr_t page_alloc_zeroed(u32 order, enum mem_kind kind);
void page_free(paddr_t pa, u32 order, enum mem_kind kind);

struct mem_stats {
    u64 total_pages, free_pages;
    u64 kind_pages[NUM_MEM_KINDS];
    u64 alloc_failures;
    u64 limit_pages; /* grant.memory: beyond it ANON, NET and FILE are refused; ~0: none */
    u64 low_pages, high_pages; /* low: reclaim leaves this much alone; high: ~0 for none */
    u64 events_high; /* times that usage rose above high */
    u64 events_max;  /* allocations refused at the limit */
    u64 events_oom;  /* allocations refused, there or for want of RAM */
    u64 mappings; /* address space: mappings that exist */
    u64 promised_pages; /* mapped writable with the promise of memory, not touched yet */
    u64 map_refused; /* mm_map, mm_remap, mm_protect: memory, MM_MAX_MAPPINGS, address space */
    u64 fault_refused; /* demand-zero faults without a page to give */
    u64 wx_refused;    /* requests for writable and executable memory */
};
void mem_stats(struct mem_stats *out);

/* ---- kernel heap ---- */

/* NULL if there is no memory. Alignment: 16 bytes, or the size itself for powers of two up to a
 * page. */
void *kmalloc(size_t bytes);
void *kzalloc(size_t bytes);
void kfree(void *p); /* NULL is fine */

struct slab_cache;
/* Objects of one size with per-CPU free lists. name: for /metrics. kind: what its pages are charged
 * to. */
struct slab_cache *slab_create(const char *name, size_t bytes, size_t align, enum mem_kind kind);
void *slab_alloc(struct slab_cache *c);
void slab_free(struct slab_cache *c, void *p);
/* Calls fn for every cache: name, object size, objects in use, pages. */
void slab_for_each(void (*fn)(const char *name, size_t bytes, u64 in_use, u64 pages, void *arg),
                   void *arg);

/* Page-mapped kernel memory with an unmapped guard page on both sides (stacks). Returns the low
 * end, 0 on -ENOMEM. */
u64 kstack_alloc(size_t bytes);
void kstack_free(u64 base,
                 size_t bytes); /* thread context, no lock held (flushes TLBs lazily, in batches) */
/* Reserves kernel virtual space without mapping it (lwIP images); page-aligned, 0 if exhausted. */
u64 vspace_reserve(size_t bytes);

/* ---- address space of the applications ---- */

enum mm_prot { MM_READ = 1, MM_WRITE = 2, MM_EXEC = 4 }; /* = PROT_* of Linux */
enum mm_flags {
    MM_FIXED = 1,
    MM_FIXED_NOREPLACE = 2,
    MM_POPULATE = 4,
    MM_STACK = 8,
    MM_NORESERVE = 16
};

/* Maps len bytes (rounded up to pages) of demand-zero anonymous memory. hint: preferred address, or
 * the address with MM_FIXED (replaces what is there). Returns the address or -ENOMEM, -EINVAL (W^X:
 * WRITE with EXEC), -EEXIST. owner: an opaque tag (process) so that everything of a process can be
 * unmapped at its end. */
i64 mm_map(u64 hint, size_t len, u32 prot, u32 flags, void *owner);
int mm_unmap(u64 addr, size_t len);
/* Same, but other CPUs (and this one) may still reach the old pages until a flush that many such
 * calls share; neither the pages nor the addresses are used again before it. For memory that nobody
 * will touch again, such as the stack of the thread that is ending. */
int mm_unmap_lazy(u64 addr, size_t len);
int mm_protect(u64 addr, size_t len, u32 prot);
/* Grows or shrinks in place, moves if it must and may.  Returns the new address. */
i64 mm_remap(u64 addr, size_t old_len, size_t new_len, bool may_move);
/* MADV_DONTNEED: frees the pages, they read as zero again. */
int mm_discard(u64 addr, size_t len);
/* Is every byte of the range mapped with at least this protection? */
bool mm_check(u64 addr, size_t len, u32 prot);
void mm_unmap_owner(void *owner);
/* The mapping that holds addr: false if none. */
bool mm_query(u64 addr, u64 *start, u64 *end, u32 *prot, void **owner);
/* Lists mappings for /proc/self/maps: fn until false. */
void mm_for_each(bool (*fn)(u64 start, u64 end, u32 prot, void *owner, void *arg), void *arg);

/* Demand-zero faults: called by core/kern's upcall_page_fault. True: retry. Fault stack, interrupts
 * off. */
bool mm_handle_fault(u64 addr, bool write, bool exec);

/* Grant (REQUIREMENTS: granted memory). Bytes; 0 = no limit. -EINVAL if below what the kernel
 * itself needs (logged). */
int mm_set_limits(u64 low, u64 high, u64 max);
/* More memory is in use than the grant's high level: caches should give back, allocating threads
 * should slow down. Any context, one load. */
bool mm_over_high(void);
/* Gives back what the kernel keeps in advance or has not freed yet; pages freed. Nothing while usage is within the low level.
 * Thread context, no lock held. */
u64 mm_reclaim(void);

#endif
