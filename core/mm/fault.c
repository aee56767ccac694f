/* Demand-zero pages. */
#include "core/base/log.h"
#include "core/mm/page.h"
#include "core/mm/residency.h"
#include "core/mm/vm.h"

enum fault_result {
    FAULT_DONE,    /* the page is there (it may have been before) */
    FAULT_RETRY,   /* the mapping is being taken apart: ask again */
    FAULT_INVALID, /* no mapping, or not with these rights */
    FAULT_NO_MEMORY,
};

/* Maps `page` (zeroed) at va; *used: it was needed.  Caller holds vm_lock. */
static enum fault_result map_page(u64 va, u32 need, paddr_t page, bool *used)
{
    const struct mapping *m = vmtree_at_or_above(&vm_tree, va);
    if (m == NULL || m->start > va) {
        return FAULT_INVALID;
    }
    if ((m->flags & VM_DYING) != 0) {
        return FAULT_RETRY;
    }
    u32 rights = m->prot != 0 ? m->prot | MM_READ : 0; /* x86 cannot forbid reading alone */
    if ((rights & need) != need || rights == 0) {
        return FAULT_INVALID;
    }
    if (arch_pt_lookup(va) != 0) {
        /* Another CPU was faster, or this CPU's TLB knew fewer rights than the mapping has now. */
        return FAULT_DONE;
    }
    if (page == 0 || !residency_prepare(va) ||
        arch_pt_map(va, page, 1, vm_arch_prot(m->prot)) != 0) {
        return FAULT_NO_MEMORY;
    }
    residency_add(va);
    vm_page_came(m, page_of(page));
    *used = true;
    return FAULT_DONE;
}

/* The page is zeroed before the lock is taken: that is most of the work, and nearly every fault
 * needs it. */
static enum fault_result fault(u64 va, u32 need)
{
    paddr_t page = page_alloc_zeroed(0, MEM_ANON);
    bool used = false;
    irqflags_t flags = spin_lock_irq(&vm_lock);
    enum fault_result result = map_page(va, need, page, &used);
    spin_unlock_irq(&vm_lock, flags);
    if (!used && page != 0) {
        page_free(page, 0, MEM_ANON);
    }
    if (result == FAULT_NO_MEMORY && vm_count(&vm_fault_refused) == 0) {
        log_error(
            "mm: no memory for a page that was promised at %lx (further ones are only counted)",
            va);
    }
    return result;
}

bool mm_handle_fault(u64 addr, bool write, bool exec)
{
    u64 va = ALIGN_DOWN(addr, PAGE_SIZE);
    if (addr < APP_MIN || addr >= APP_MAX) {
        return false;
    }
    enum fault_result result = fault(va, exec ? MM_EXEC : write ? MM_WRITE : MM_READ);
    if (result == FAULT_RETRY) {
        arch_tlb_poll(); /* whoever takes the mapping apart may be waiting for this CPU's flush */
        arch_cpu_relax();
    }
    return result == FAULT_DONE || result == FAULT_RETRY;
}

bool vm_populate(u64 va)
{
    enum fault_result result;
    do {
        result = fault(va, 0);
    } while (result == FAULT_RETRY);
    return result == FAULT_DONE;
}
