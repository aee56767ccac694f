/* Taking pages away: unmap, discard, and making room for a mapping at a fixed address.
 *
 * DESIGN. A page may be freed, and its address given to a new mapping, only when no CPU's TLB knows
 * the old translation, and the flush that makes sure of it waits for other CPUs, so it cannot
 * happen under the address-space lock. Unmapping is therefore three steps: (1) under the lock, put
 * one mapping marked VM_DYING in the place of all that was in the range, holes included, so that
 * nobody else gets an address of it; (2) in chunks, under the lock take pages out of the page
 * tables, then without it flush and free them; (3) under the lock, remove the dying mapping. A
 * fault between (1) and (3) retries. When no page was mapped, nothing needs flushing and all of it
 * happens in one go.
 *
 * mm_unmap_lazy stops after taking the pages out: range and pages wait in limbo until many have
 * come together, somebody wants an address of theirs, or memory is short; then one flush serves
 * all. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/mm/page.h"
#include "core/mm/residency.h"
#include "core/mm/vm.h"

/* Pages taken out of the page tables, chained through the page array, and the range that their
 * addresses span. */
struct batch {
    u32 chain;
    u32 count;
    u64 lo, hi;
};

#define EMPTY_BATCH ((struct batch){.chain = NO_PAGE, .lo = UINT64_MAX})

/* Unmapped, not flushed; under vm_lock. */
struct limbo {
    struct batch pages;
    u32 count;
    struct mapping *ranges[MM_LIMBO_RANGES];
};
static struct limbo limbo;

void vm_limbo_init(void)
{
    limbo.pages = EMPTY_BATCH;
    limbo.count = 0;
}

/* Takes pages out from addr on until the batch has `limit` or end is reached. Returns where to go
 * on (end when done). Caller holds vm_lock. */
static u64 collect(struct batch *b, u64 addr, u64 end, u32 limit)
{
    for (addr = residency_next(addr, end); addr < end && b->count < limit; addr += PAGE_SIZE) {
        if (IS_ALIGNED(addr, RESIDENCY_REGION)) {
            addr = residency_next(addr, end);
            if (addr >= end) {
                break;
            }
        }
        paddr_t pa = arch_pt_unmap(addr);
        if (pa == 0) {
            continue;
        }
        struct page *page = page_of(pa);
        vm_page_gone(page);
        residency_drop(addr);
        page->next = b->chain;
        b->chain = page_index(pa);
        b->lo = MIN(b->lo, addr);
        b->hi = MAX(b->hi, addr + PAGE_SIZE);
        b->count++;
    }
    return addr;
}

static void flush(const struct batch *b)
{
    if (b->count > 0) {
        arch_tlb_flush(b->lo, (b->hi - b->lo) >> PAGE_SHIFT);
    }
}

static void free_pages(const struct batch *b)
{
    for (u32 index = b->chain; index != NO_PAGE;) {
        u32 next = page_array[index].next;
        page_free(page_phys(index), 0, MEM_ANON);
        index = next;
    }
}

/* Takes out and frees what is left of [start, end), in chunks. Called with vm_lock held and returns
 * so; the lock is dropped in between. */
static irqflags_t drop_pages(u64 start, u64 end, irqflags_t flags)
{
    for (;;) {
        struct batch b = EMPTY_BATCH;
        start = collect(&b, start, end, MM_CHUNK_PAGES);
        if (b.count == 0) { /* collect went through to the end */
            return flags;
        }
        spin_unlock_irq(&vm_lock, flags);
        flush(&b);
        free_pages(&b);
        flags = spin_lock_irq(&vm_lock);
    }
}

/* Waits until nothing in the range is dying, cuts mappings at its edges and puts one dying mapping
 * in the place of all in it. *dying: NULL if there was none. Returns with vm_lock held; false
 * without memory, nothing changed. */
static bool mark_dying(u64 start, u64 end, struct mapping **dying, irqflags_t *flags)
{
    *flags = vm_lock_settled(start, end);
    *dying = NULL;
    if (!vm_split(start) || !vm_split(end)) {
        return false;
    }
    struct mapping *first = vmtree_at_or_above(&vm_tree, start), *m;
    if (first == NULL || first->start >= end) {
        return true;
    }
    while ((m = vmtree_next(first)) != NULL && m->start < end) {
        vm_delete(m);
    }
    vm_make_dying(first, start, end);
    *dying = first;
    return true;
}

int vm_clear(u64 start, u64 end, struct mapping *replacement)
{
    struct mapping *dying;
    irqflags_t flags;
    bool ok = mark_dying(start, end, &dying, &flags);
    if (dying != NULL) {
        flags = drop_pages(start, end, flags);
        vm_delete(dying);
    }
    if (ok && replacement != NULL) {
        vm_link(replacement);
        vm_merge(replacement);
    }
    spin_unlock_irq(&vm_lock, flags);
    return ok ? 0 : -ENOMEM;
}

bool vm_drain_limbo(void)
{
    irqflags_t flags = spin_lock_irq(&vm_lock);
    struct limbo taken = limbo;
    vm_limbo_init();
    spin_unlock_irq(&vm_lock, flags);
    if (taken.count == 0 && taken.pages.count == 0) {
        return false;
    }
    flush(&taken.pages);
    flags = spin_lock_irq(&vm_lock);
    for (u32 i = 0; i < taken.count; i++) {
        vm_delete(taken.ranges[i]);
    }
    spin_unlock_irq(&vm_lock, flags);
    free_pages(&taken.pages);
    return true;
}

int mm_unmap(u64 addr, size_t len)
{
    u64 end;
    if (!vm_range(addr, len, &end)) {
        return -EINVAL;
    }
    return vm_clear(addr, end, NULL);
}

int mm_unmap_lazy(u64 addr, size_t len)
{
    u64 end;
    struct mapping *dying;
    irqflags_t flags;
    if (!vm_range(addr, len, &end)) {
        return -EINVAL;
    }
    bool ok = mark_dying(addr, end, &dying, &flags);
    /* Is there room in limbo, even if every page of the range is there? */
    bool room = limbo.count < MM_LIMBO_RANGES &&
                limbo.pages.count + ((end - addr) >> PAGE_SHIFT) <= MM_LIMBO_PAGES;
    bool waits = false;
    if (dying != NULL) {
        u32 before = limbo.pages.count;
        if (room) {
            collect(&limbo.pages, addr, end, MM_LIMBO_PAGES + 1);
            waits = limbo.pages.count != before;
        } else {
            flags = drop_pages(addr, end, flags);
        }
        if (waits) {
            limbo.ranges[limbo.count++] = dying;
        } else {
            vm_delete(dying);
        }
    }
    bool drain = limbo.count == MM_LIMBO_RANGES || limbo.pages.count > MM_LIMBO_PAGES / 2;
    spin_unlock_irq(&vm_lock, flags);
    if (drain) {
        vm_drain_limbo();
    }
    return ok ? 0 : -ENOMEM;
}

int mm_discard(u64 addr, size_t len)
{
    u64 end;
    if (!vm_range(addr, len, &end)) {
        return -EINVAL;
    }
    irqflags_t flags = vm_lock_settled(addr, end);
    bool covered = vm_covered(addr, end);
    flags = drop_pages(addr, end, flags);
    spin_unlock_irq(&vm_lock, flags);
    return covered ? 0 : -ENOMEM;
}

void mm_unmap_owner(void *owner)
{
    for (u64 addr = 0;;) {
        irqflags_t flags = spin_lock_irq(&vm_lock);
        const struct mapping *m = vmtree_at_or_above(&vm_tree, addr);
        while (m != NULL && (m->owner != owner || (m->flags & VM_DYING) != 0)) {
            m = vmtree_next(m);
        }
        u64 start = m != NULL ? m->start : 0, end = m != NULL ? m->end : 0;
        spin_unlock_irq(&vm_lock, flags);
        if (end == 0) {
            break;
        }
        mm_unmap_lazy(start, end - start); /* whole mappings: nothing to split, so it cannot fail */
        addr = end;
    }
    vm_drain_limbo();
}
