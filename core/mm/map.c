/* Making and changing mappings: map, protect, remap. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/mm/page.h"
#include "core/mm/residency.h"
#include "core/mm/vm.h"

/* Pages moved by mm_remap with one flush: their numbers lie on the stack meanwhile. */
#define MOVE_BATCH 64

static i64 refused(void)
{
    vm_count(&vm_map_refused);
    return -ENOMEM;
}

/* Can so much more be promised? What could not be kept is refused here, where the application gets
 * an error, rather than at the first access, where it could only be killed. */
static bool can_promise(u64 bytes)
{
    u64 pages = bytes >> PAGE_SHIFT;
    u64 tables = pages / (RESIDENCY_REGION / PAGE_SIZE);
    return vm_promised() + pages + tables + MM_PROMISE_SLACK <= mem_pages_available();
}

/* Same, after giving back what only waits for a flush. */
static bool can_promise_now(u64 bytes)
{
    bool given = can_promise(bytes) || (vm_drain_limbo() && can_promise(bytes));
    if (!given) {
        mem_note_refused();
    }
    return given;
}

static bool asks_promise(u32 prot, u32 flags)
{
    return (prot & MM_WRITE) != 0 && (flags & (MM_NORESERVE | MM_STACK)) == 0;
}

static bool range_free(u64 start, u64 end)
{
    const struct mapping *m = vmtree_at_or_above(&vm_tree, start);
    return m == NULL || m->start >= end;
}

static i64 map_anywhere(u64 hint, u64 bytes, u32 prot, u32 flags, void *owner)
{
    u64 end = 0;
    irqflags_t irq = spin_lock_irq(&vm_lock);
    u64 addr = vm_range(ALIGN_DOWN(hint, PAGE_SIZE), bytes, &end) ? ALIGN_DOWN(hint, PAGE_SIZE) : 0;
    if (addr == 0 || !range_free(addr, end)) {
        addr = vmtree_find_gap(&vm_tree, APP_MIN, APP_MAX, bytes);
    }
    bool ok = addr != 0 && vm_insert(addr, addr + bytes, prot, flags, owner) != NULL;
    spin_unlock_irq(&vm_lock, irq);
    return ok ? (i64)addr : refused();
}

static i64 map_fixed(u64 addr, u64 end, u32 prot, u32 flags, void *owner)
{
    if ((flags & MM_FIXED_NOREPLACE) != 0) {
        irqflags_t irq = vm_lock_settled(addr, end);
        bool is_free = range_free(addr, end);
        bool ok = is_free && vm_insert(addr, end, prot, flags, owner) != NULL;
        spin_unlock_irq(&vm_lock, irq);
        return ok ? (i64)addr : !is_free ? -EEXIST : refused();
    }
    struct mapping *m = READ_ONCE(vm_tree.count) < MM_MAX_MAPPINGS
                            ? vm_new_node(addr, end, prot, flags, owner)
                            : NULL;
    if (m == NULL) {
        return refused();
    }
    if (vm_clear(addr, end, m) != 0) {
        vm_free_node(m);
        return refused();
    }
    return (i64)addr;
}

i64 mm_map(u64 hint, size_t len, u32 prot, u32 flags, void *owner)
{
    u64 bytes = ALIGN_UP((u64)len, PAGE_SIZE), end = 0;
    bool fixed = (flags & (MM_FIXED | MM_FIXED_NOREPLACE)) != 0;
    if (len == 0 || vm_refuse_wx(prot) || (fixed && !IS_ALIGNED(hint, PAGE_SIZE))) {
        return -EINVAL;
    }
    if (bytes < len || bytes > APP_MAX - APP_MIN || (fixed && !vm_range(hint, len, &end))) {
        return refused();
    }
    if (asks_promise(prot, flags)) {
        if (!can_promise_now(bytes)) {
            return refused();
        }
        flags |= VM_PROMISED;
    }
    i64 addr = fixed ? map_fixed(hint, end, prot, flags, owner)
                     : map_anywhere(hint, bytes, prot, flags, owner);
    if (addr < 0 || (flags & MM_POPULATE) == 0 || prot == 0) {
        return addr;
    }
    for (u64 va = (u64)addr; va < (u64)addr + bytes; va += PAGE_SIZE) {
        if (!vm_populate(va)) {
            mm_unmap((u64)addr, bytes);
            return refused();
        }
    }
    return addr;
}

/* ---- protect ---- */

/* Brings the page tables of a range in line with its mappings, at most MM_CHUNK_PAGES pages;
 * returns where to go on. Caller holds vm_lock. */
static u64 protect_chunk(u64 addr, u64 end)
{
    const struct mapping *m = NULL;
    u32 visited = 0;
    for (addr = residency_next(addr, end); addr < end && visited < MM_CHUNK_PAGES;
         addr += PAGE_SIZE, visited++) {
        if (m == NULL || addr >= m->end) {
            m = vmtree_at_or_above(&vm_tree, addr);
        }
        if (m != NULL && m->start <= addr && (m->flags & VM_DYING) == 0) {
            arch_pt_protect(addr, vm_arch_prot(m->prot));
        }
    }
    return addr;
}

/* Sets the protection of all mappings in the range; *stricter: does any of them lose a right?
 * Caller holds vm_lock. */
static void set_prot(u64 start, u64 end, u32 prot, bool *stricter)
{
    struct mapping *m = vmtree_at_or_above(&vm_tree, start);
    while (m != NULL && m->start < end) {
        *stricter |= (m->prot & ~prot) != 0;
        m->prot = prot;
        m = vmtree_next(vm_merge(m));
    }
}

int mm_protect(u64 addr, size_t len, u32 prot)
{
    u64 end;
    bool stricter = false;
    if (len == 0) {
        return 0;
    }
    if (!IS_ALIGNED(addr, PAGE_SIZE) || vm_refuse_wx(prot)) {
        return -EINVAL;
    }
    if (!vm_range(addr, len, &end)) {
        return -ENOMEM;
    }
    irqflags_t flags = vm_lock_settled(addr, end);
    if (!vm_covered(addr, end) || !vm_split(addr) || !vm_split(end)) {
        spin_unlock_irq(&vm_lock, flags);
        return (int)refused();
    }
    set_prot(addr, end, prot, &stricter);
    u64 next = protect_chunk(addr, end);
    spin_unlock_irq(&vm_lock, flags);
    while (next < end) {
        flags = spin_lock_irq(&vm_lock);
        next = protect_chunk(next, end);
        spin_unlock_irq(&vm_lock, flags);
    }
    /* A TLB that knows too few rights only causes a fault, which its handler finds settled. */
    if (stricter) {
        arch_tlb_flush(addr, (end - addr) >> PAGE_SHIFT);
    }
    return 0;
}

/* ---- remap ---- */

/* Moves the pages of [from, from + bytes), which is dying, to `to`.  No lock held. */
static void move_pages(u64 from, u64 to, u64 bytes, u32 prot)
{
    struct {
        u64 offset;
        paddr_t pa;
    } moved[MOVE_BATCH];
    for (u64 offset = 0; offset < bytes;) {
        u32 n = 0;
        irqflags_t flags = spin_lock_irq(&vm_lock);
        for (offset = residency_next(from + offset, from + bytes) - from;
             offset < bytes && n < MOVE_BATCH; offset += PAGE_SIZE) {
            paddr_t pa = arch_pt_unmap(from + offset);
            if (pa != 0) {
                residency_drop(from + offset);
                moved[n].offset = offset;
                moved[n++].pa = pa;
            }
        }
        spin_unlock_irq(&vm_lock, flags);
        if (n == 0) {
            continue;
        }
        arch_tlb_flush(from + moved[0].offset,
                       ((moved[n - 1].offset - moved[0].offset) >> PAGE_SHIFT) + 1);
        flags = spin_lock_irq(&vm_lock);
        for (u32 i = 0; i < n; i++) {
            u64 va = to + moved[i].offset;
            if (!residency_prepare(va) ||
                arch_pt_map(va, moved[i].pa, 1, vm_arch_prot(prot)) != 0) {
                panic("mm: no page for page tables while moving a mapping, the kernel's reserve is "
                      "used up");
            }
            residency_add(va);
        }
        spin_unlock_irq(&vm_lock, flags);
    }
}

static i64 move_mapping(u64 addr, u64 old_end, u64 new_bytes)
{
    /* Page tables for the new place: a table for each 2 MiB, some above, counters. Checked before
     * anything moves. */
    u64 tables = (new_bytes / RESIDENCY_REGION) + 16;
    if (pages_free_shared() < tables) {
        return refused();
    }
    irqflags_t flags = vm_lock_settled(addr, old_end);
    const struct mapping *m = vmtree_at_or_above(&vm_tree, addr);
    if (m == NULL || m->start > addr || m->end < old_end) { /* changed since it was looked at */
        spin_unlock_irq(&vm_lock, flags);
        return -EFAULT;
    }
    u32 prot = m->prot;
    u64 to = vmtree_find_gap(&vm_tree, APP_MIN, APP_MAX, new_bytes);
    bool ok = to != 0 && vm_split(addr) && vm_split(old_end);
    struct mapping *old = vmtree_at_or_above(&vm_tree, addr);
    if (ok) {
        old->flags |=
            VM_DYING; /* before the insertion: it must not merge with what it makes room for */
        ok = vm_insert(to, to + new_bytes, prot, old->flags, old->owner) != NULL;
        if (!ok) {
            old->flags &= ~VM_DYING;
        }
    }
    spin_unlock_irq(&vm_lock, flags);
    if (!ok) {
        return refused();
    }
    move_pages(addr, to, old_end - addr, prot);
    flags = spin_lock_irq(&vm_lock);
    vm_delete(old);
    spin_unlock_irq(&vm_lock, flags);
    return (i64)to;
}

i64 mm_remap(u64 addr, size_t old_len, size_t new_len, bool may_move)
{
    u64 old_end, new_end;
    u64 new_bytes = ALIGN_UP((u64)new_len, PAGE_SIZE);
    if (!vm_range(addr, old_len, &old_end) || new_len == 0 || new_bytes < new_len ||
        new_bytes > APP_MAX - APP_MIN) {
        return -EINVAL;
    }
    bool fits = vm_range(addr, new_len, &new_end);
    irqflags_t flags = vm_lock_settled(addr, old_end);
    struct mapping *m = vmtree_at_or_above(&vm_tree, addr);
    if (m == NULL || m->start > addr || m->end < old_end) {
        spin_unlock_irq(&vm_lock, flags);
        return -EFAULT;
    }
    u64 grow = new_bytes > old_end - addr ? new_bytes - (old_end - addr) : 0;
    bool over = grow != 0 && (m->flags & VM_PROMISED) != 0 && !can_promise(grow);
    bool in_place = grow != 0 && !over && fits && m->end == old_end && range_free(old_end, new_end);
    if (in_place) {
        vm_resize(m, m->start, new_end);
        vm_merge(m);
    }
    spin_unlock_irq(&vm_lock, flags);
    if (over) {
        return refused();
    }
    if (in_place) {
        return (i64)addr;
    }
    if (grow == 0) {
        int err = new_end < old_end ? mm_unmap(new_end, old_end - new_end) : 0;
        return err != 0 ? err : (i64)addr;
    }
    return may_move ? move_mapping(addr, old_end, new_bytes) : refused();
}
