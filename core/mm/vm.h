/* The address space, shared between vm.c (find, split, merge), unmap.c, map.c and fault.c. Private
 * to core/mm. */
#ifndef WEIR_CORE_MM_VM_H
#define WEIR_CORE_MM_VM_H

#include "core/base/spinlock.h"
#include "core/mm/mm.h"
#include "core/mm/vmtree.h"

/* Being unmapped or moved: its pages are on their way out, its addresses stay taken until no TLB
 * knows them. Faults wait, other operations on it wait. */
#define VM_DYING 0x100u
/* Its pages were promised when it was made: mapped writable, and neither a stack (of which most is
 * never touched; 10,000 threads promise 1.3 GiB and use 100 MiB) nor MM_NORESERVE. C libraries make
 * thread stacks by protecting an inaccessible mapping less, so these are no promise either. */
#define VM_PROMISED 0x200u
/* Flags that a mapping keeps. */
#define VM_KEPT_FLAGS ((u32)MM_STACK | (u32)MM_NORESERVE | VM_PROMISED)

extern struct spinlock vm_lock;
extern struct vmtree vm_tree; /* under vm_lock */

/* Relaxed counters, see struct mem_stats. */
extern u64 vm_map_refused, vm_fault_refused, vm_wx_refused;
u64 vm_count(u64 *counter);
/* Pages that were promised and not touched yet.  Any context. */
u64 vm_promised(void);

/* Page-aligned [addr, addr + len) inside the applications' range? len is rounded up; *end receives
 * the end. */
bool vm_range(u64 addr, size_t len, u64 *end);
/* true and counted (first one logged) if prot asks for writable and executable memory. */
bool vm_refuse_wx(u32 prot);

/* The rest is called with vm_lock held. */

/* A mapping in the tree, merged with neighbours of the same kind. NULL without memory or beyond
 * MM_MAX_MAPPINGS. */
struct mapping *vm_insert(u64 start, u64 end, u32 prot, u32 flags, void *owner);
void vm_link(struct mapping *m);
void vm_delete(struct mapping *m);
void vm_resize(struct mapping *m, u64 start, u64 end);
/* Makes m a dying mapping of [start, end), which holds no other. */
void vm_make_dying(struct mapping *m, u64 start, u64 end);
/* A page of m came; a page went. */
struct page;
void vm_page_came(const struct mapping *m, struct page *page);
void vm_page_gone(const struct page *page);
/* Cuts the mapping that spans addr, if there is one, so that one begins there. false without
 * memory. */
bool vm_split(u64 addr);
/* Merges m with neighbours of the same kind; returns what m became part of. */
struct mapping *vm_merge(struct mapping *m);
/* Is all of the range mapped, nothing of it dying? */
bool vm_covered(u64 start, u64 end);
bool vm_any_dying(u64 start, u64 end);

/* Takes vm_lock once nothing in the range is dying.  Called without it, thread context. */
irqflags_t vm_lock_settled(u64 start, u64 end);

/* Unmaps [start, end) and puts `replacement` (may be NULL; start..end, not in the tree) in its
 * place in one step. No lock held. -ENOMEM: nothing was changed. */
int vm_clear(u64 start, u64 end, struct mapping *replacement);
/* Flushes and frees what lazy unmapping left behind; false if there was nothing.  No lock held. */
bool vm_drain_limbo(void);
void vm_limbo_init(void);

struct mapping *vm_new_node(u64 start, u64 end, u32 prot, u32 flags, void *owner);
void vm_free_node(struct mapping *m);

/* Gives the page of va (aligned) a frame if it has none. No lock held. false: no mapping, or no
 * memory. */
bool vm_populate(u64 va);
u32 vm_arch_prot(u32 prot);

#endif
