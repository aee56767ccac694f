/* Mappings: lookup, splitting, merging, listing. */
#include "core/mm/vm.h"

#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/mm/page.h"
#include "core/mm/residency.h"

static struct lock_class vm_class = {.name = "mm", .rank = RANK_MM, .irq = true};
struct spinlock vm_lock = SPINLOCK_INIT(&vm_class);
struct vmtree vm_tree;
u64 vm_map_refused, vm_fault_refused, vm_wx_refused;

static struct slab_cache *mapping_cache;
static u64 promised,
    promised_present; /* pages of VM_PROMISED mappings, and those that are mapped; under vm_lock */

int vm_init(void)
{
    mapping_cache =
        slab_create("mapping", sizeof(struct mapping), _Alignof(struct mapping), MEM_KERNEL);
    residency_init();
    promised = promised_present = 0;
    vm_limbo_init();
    vm_tree = (struct vmtree){.seed = arch_tsc()};
    return mapping_cache != NULL ? 0 : -ENOMEM;
}

u64 vm_count(u64 *counter)
{
    return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

bool vm_range(u64 addr, size_t len, u64 *end)
{
    u64 bytes = ALIGN_UP((u64)len, PAGE_SIZE);
    if (!IS_ALIGNED(addr, PAGE_SIZE) || len == 0 || bytes < len || addr < APP_MIN ||
        addr >= APP_MAX || bytes > APP_MAX - addr) {
        return false;
    }
    *end = addr + bytes;
    return true;
}

bool vm_refuse_wx(u32 prot)
{
    if ((prot & MM_WRITE) == 0 || (prot & MM_EXEC) == 0) {
        return false;
    }
    if (vm_count(&vm_wx_refused) == 0) {
        log_warn("mm: memory that is writable and executable is refused (further refusals are only "
                 "counted)");
    }
    return true;
}

u32 vm_arch_prot(u32 prot)
{
    return prot; /* the three bits have the same values */
}

_Static_assert((int)MM_READ == (int)ARCH_PROT_READ && (int)MM_WRITE == (int)ARCH_PROT_WRITE &&
                   (int)MM_EXEC == (int)ARCH_PROT_EXEC,
               "vm_arch_prot passes protections on unchanged");

struct mapping *vm_new_node(u64 start, u64 end, u32 prot, u32 flags, void *owner)
{
    struct mapping *m = slab_alloc(mapping_cache);
    if (m != NULL) {
        m->start = start;
        m->end = end;
        m->prot = prot;
        m->flags = flags & VM_KEPT_FLAGS;
        m->owner = owner;
    }
    return m;
}

void vm_free_node(struct mapping *m)
{
    slab_free(mapping_cache, m);
}

u64 vm_promised(void)
{
    u64 all = READ_ONCE(promised), present = READ_ONCE(promised_present);
    return all > present ? all - present : 0;
}

static u64 promised_by(const struct mapping *m)
{
    return (m->flags & VM_PROMISED) != 0 ? (m->end - m->start) >> PAGE_SHIFT : 0;
}

/* The page itself remembers whether it was promised: its mapping may have lost its identity when
 * the page goes. */
void vm_page_came(const struct mapping *m, struct page *page)
{
    page->promised = (m->flags & VM_PROMISED) != 0;
    WRITE_ONCE(promised_present, promised_present + page->promised);
}

void vm_page_gone(const struct page *page)
{
    WRITE_ONCE(promised_present, promised_present - page->promised);
}

void vm_make_dying(struct mapping *m, u64 start, u64 end)
{
    WRITE_ONCE(promised, promised - promised_by(m));
    m->flags = VM_DYING;
    m->owner = NULL;
    vmtree_resize(m, start, end);
}

void vm_link(struct mapping *m)
{
    vmtree_insert(&vm_tree, m);
    WRITE_ONCE(promised, promised + promised_by(m));
}

void vm_delete(struct mapping *m)
{
    WRITE_ONCE(promised, promised - promised_by(m));
    vmtree_remove(&vm_tree, m);
    vm_free_node(m);
}

void vm_resize(struct mapping *m, u64 start, u64 end)
{
    u64 before = promised_by(m);
    vmtree_resize(m, start, end);
    WRITE_ONCE(promised, promised - before + promised_by(m));
}

static bool same_kind(const struct mapping *a, const struct mapping *b)
{
    return a->owner == b->owner && a->prot == b->prot && a->flags == b->flags &&
           (a->flags & VM_DYING) == 0;
}

struct mapping *vm_merge(struct mapping *m)
{
    struct mapping *prev = vmtree_prev(m);
    if (prev != NULL && prev->end == m->start && same_kind(prev, m)) {
        u64 end = m->end;
        vm_delete(m);
        vm_resize(prev, prev->start, end);
        m = prev;
    }
    /* More than one may follow: mm_protect splits at its edges before it makes what lies between
     * alike. */
    struct mapping *next;
    while ((next = vmtree_next(m)) != NULL && m->end == next->start && same_kind(m, next)) {
        u64 end = next->end;
        vm_delete(next);
        vm_resize(m, m->start, end);
    }
    return m;
}

struct mapping *vm_insert(u64 start, u64 end, u32 prot, u32 flags, void *owner)
{
    if (vm_tree.count >= MM_MAX_MAPPINGS) {
        return NULL;
    }
    struct mapping *m = vm_new_node(start, end, prot, flags, owner);
    if (m == NULL) {
        return NULL;
    }
    vm_link(m);
    return vm_merge(m);
}

bool vm_split(u64 addr)
{
    struct mapping *m = vmtree_at_or_above(&vm_tree, addr);
    if (m == NULL || m->start >= addr) {
        return true;
    }
    struct mapping *upper = vm_tree.count < MM_MAX_MAPPINGS
                                ? vm_new_node(addr, m->end, m->prot, m->flags, m->owner)
                                : NULL;
    if (upper == NULL) {
        return false;
    }
    vm_resize(m, m->start, addr);
    vm_link(upper);
    return true;
}

bool vm_covered(u64 start, u64 end)
{
    for (struct mapping *m = vmtree_at_or_above(&vm_tree, start); start < end; m = vmtree_next(m)) {
        if (m == NULL || m->start > start || (m->flags & VM_DYING) != 0) {
            return false;
        }
        start = m->end;
    }
    return true;
}

bool vm_any_dying(u64 start, u64 end)
{
    struct mapping *m = vmtree_at_or_above(&vm_tree, start);
    for (; m != NULL && m->start < end; m = vmtree_next(m)) {
        if ((m->flags & VM_DYING) != 0) {
            return true;
        }
    }
    return false;
}

irqflags_t vm_lock_settled(u64 start, u64 end)
{
    for (;;) {
        irqflags_t flags = spin_lock_irq(&vm_lock);
        if (likely(!vm_any_dying(start, end))) {
            return flags;
        }
        spin_unlock_irq(&vm_lock, flags);
        if (!vm_drain_limbo()) {
            arch_cpu_relax(); /* another CPU is at it */
        }
    }
}

/* ---- questions ---- */

void vm_stats(struct mem_stats *out)
{
    out->mappings = READ_ONCE(vm_tree.count);
    out->promised_pages = vm_promised();
    out->map_refused = READ_ONCE(vm_map_refused);
    out->fault_refused = READ_ONCE(vm_fault_refused);
    out->wx_refused = READ_ONCE(vm_wx_refused);
}

bool mm_check(u64 addr, size_t len, u32 prot)
{
    u64 end = addr + len;
    if (end < addr || addr < APP_MIN || end > APP_MAX) {
        return false;
    }
    irqflags_t flags = spin_lock_irq(&vm_lock);
    for (struct mapping *m = vmtree_at_or_above(&vm_tree, addr); addr < end; m = vmtree_next(m)) {
        if (m == NULL || m->start > addr || (m->prot & prot) != prot ||
            (m->flags & VM_DYING) != 0) {
            break;
        }
        addr = m->end;
    }
    spin_unlock_irq(&vm_lock, flags);
    return addr >= end;
}

bool mm_query(u64 addr, u64 *start, u64 *end, u32 *prot, void **owner)
{
    irqflags_t flags = spin_lock_irq(&vm_lock);
    const struct mapping *m = vmtree_at_or_above(&vm_tree, addr);
    bool found = m != NULL && m->start <= addr && (m->flags & VM_DYING) == 0;
    if (found) {
        *start = m->start;
        *end = m->end;
        *prot = m->prot;
        *owner = m->owner;
    }
    spin_unlock_irq(&vm_lock, flags);
    return found;
}

void mm_for_each(bool (*fn)(u64 start, u64 end, u32 prot, void *owner, void *arg), void *arg)
{
    /* Without the lock around fn: the list is a walk through a moving set, each element of it true
     * when it was read. */
    for (u64 addr = 0;;) {
        irqflags_t flags = spin_lock_irq(&vm_lock);
        const struct mapping *m = vmtree_at_or_above(&vm_tree, addr);
        while (m != NULL && (m->flags & VM_DYING) != 0) {
            m = vmtree_next(m);
        }
        struct mapping copy = m != NULL ? *m : (struct mapping){.end = 0};
        spin_unlock_irq(&vm_lock, flags);
        if (copy.end == 0 || !fn(copy.start, copy.end, copy.prot, copy.owner, arg)) {
            return;
        }
        addr = copy.end;
    }
}
