/* Kernel stacks with guard pages.
 *
 * A stack of n pages lives in a slot of n + 1 pages of kernel space, the lowest of which is never
 * mapped. Slots of one size come from chunks whose end is followed by one more unmapped page, so
 * every stack has a guard on both sides.
 *
 * A freed stack stays mapped: first in the freeing CPU's cache, then in a shared one; both are
 * lists through the stacks' own memory, so a thread's stacks cost a pointer swap. What exceeds the
 * shared cache is unmapped in batches, one TLB flush each; its slots are kept by number for the
 * next stack that must be mapped anew. */
#include "core/base/bitops.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/mm/page.h"

#define NUM_SIZES       5 /* 1, 2, 4, 8, 16 pages */
#define SLOTS_PER_CHUNK 64

/* A free stack that is still mapped; lies at its low end. */
struct free_stack {
    struct free_stack *next;
};

struct stack_list {
    struct free_stack *first;
    u32 count;
};

/* A free slot without pages. */
struct free_slot {
    struct free_slot *next;
    u64 base; /* low end of the stack, above the guard */
};

struct stack_size {
    struct stack_list shared;
    struct free_slot *slots;
    u64 chunk_next, chunk_end; /* slots of the newest chunk that were never used */
};

static struct lock_class kstack_class = {.name = "kstack", .rank = RANK_MM, .irq = true};
static struct spinlock kstack_lock = SPINLOCK_INIT(&kstack_class);
static struct stack_size sizes[NUM_SIZES];               /* under kstack_lock */
static struct stack_list cpu_cache[MAX_CPUS][NUM_SIZES]; /* own CPU, interrupts off */

_Static_assert(KSTACK_MAX_PAGES == 1 << (NUM_SIZES - 1), "one list per power of two");

static void push(struct stack_list *l, u64 base)
{
    struct free_stack *s = (struct free_stack *)(uintptr_t)base;
#if defined(WEIR_HOST_TEST)
    s = phys_to_virt(
        arch_pt_lookup(base)); /* the host has no page tables: go to the page behind the address */
#endif
    s->next = l->first;
    l->first = (struct free_stack *)(uintptr_t)base;
    l->count++;
}

static u64 pop(struct stack_list *l)
{
    u64 base = (u64)(uintptr_t)l->first;
    struct free_stack *s = l->first;
    if (s == NULL) {
        return 0;
    }
#if defined(WEIR_HOST_TEST)
    s = phys_to_virt(arch_pt_lookup(base));
#endif
    l->first = s->next;
    l->count--;
    return base;
}

void kstack_init(void)
{
    memset(sizes, 0, sizeof(sizes));
    memset(cpu_cache, 0, sizeof(cpu_cache));
}

static u32 size_index(size_t bytes)
{
    u32 order = order_for((bytes + PAGE_SIZE - 1) >> PAGE_SHIFT);
    if (bytes == 0 || order >= NUM_SIZES) {
        panic("kstack: %zu bytes are not a stack size (1..%llu)", bytes,
              KSTACK_MAX_PAGES * PAGE_SIZE);
    }
    return order;
}

/* A slot without pages; 0 if kernel space is exhausted. Caller holds kstack_lock; *spent receives a
 * record to be freed. */
static u64 take_slot(struct stack_size *sz, u32 order, struct free_slot **spent)
{
    u64 slot_bytes = (BIT(order) + 1) * PAGE_SIZE;
    if (sz->slots != NULL) {
        *spent = sz->slots;
        sz->slots = sz->slots->next;
        return (*spent)->base;
    }
    if (sz->chunk_next == sz->chunk_end) {
        u64 chunk = vspace_reserve(SLOTS_PER_CHUNK * slot_bytes + PAGE_SIZE);
        if (chunk == 0) {
            return 0;
        }
        sz->chunk_next = chunk;
        sz->chunk_end = chunk + SLOTS_PER_CHUNK * slot_bytes;
    }
    u64 base = sz->chunk_next + PAGE_SIZE;
    sz->chunk_next += slot_bytes;
    return base;
}

/* Unmaps the pages of a stack and chains them through page_array.  No flush. */
static u32 unmap_pages(u64 base, u32 pages, u32 chain)
{
    for (u32 i = 0; i < pages; i++) {
        paddr_t pa = arch_pt_unmap(base + i * PAGE_SIZE);
        if (pa != 0) {
            page_of(pa)->next = chain;
            chain = page_index(pa);
        }
    }
    return chain;
}

static void free_chain(u32 chain)
{
    while (chain != NO_PAGE) {
        u32 next = page_array[chain].next;
        page_free(page_phys(chain), 0, MEM_KERNEL);
        chain = next;
    }
}

/* Puts an unmapped slot back. If there is no memory for its record the addresses are lost, which 32
 * TiB can bear. */
static void give_slot(u32 order, u64 base)
{
    struct free_slot *slot = kmalloc(sizeof(*slot));
    if (slot == NULL) {
        return;
    }
    slot->base = base;
    irqflags_t flags = spin_lock_irq(&kstack_lock);
    slot->next = sizes[order].slots;
    sizes[order].slots = slot;
    spin_unlock_irq(&kstack_lock, flags);
}

/* Gives pages to a slot.  Undone on failure: what was mapped was never used, so no TLB knows it. */
static bool map_pages(u64 base, u32 pages)
{
    for (u32 i = 0; i < pages; i++) {
        paddr_t pa = page_alloc(0, MEM_KERNEL);
        irqflags_t flags = spin_lock_irq(&kstack_lock);
        bool ok = pa != 0 &&
                  arch_pt_map(base + i * PAGE_SIZE, pa, 1, ARCH_PROT_READ | ARCH_PROT_WRITE) == 0;
        u32 chain = ok ? NO_PAGE : unmap_pages(base, i, NO_PAGE);
        spin_unlock_irq(&kstack_lock, flags);
        if (!ok) {
            free_chain(chain);
            if (pa != 0) {
                page_free(pa, 0, MEM_KERNEL);
            }
            return false;
        }
    }
    return true;
}

static u64 alloc_slow(u32 order)
{
    struct free_slot *spent = NULL;
    irqflags_t flags = spin_lock_irq(&kstack_lock);
    u64 base = pop(&sizes[order].shared);
    bool fresh = base == 0;
    if (fresh) {
        base = take_slot(&sizes[order], order, &spent);
    }
    spin_unlock_irq(&kstack_lock, flags);
    kfree(spent);
    if (fresh && base != 0 && !map_pages(base, 1u << order)) {
        give_slot(order, base);
        return 0;
    }
    return base;
}

u64 kstack_alloc(size_t bytes)
{
    u32 order = size_index(bytes);
    irqflags_t flags = arch_irq_save();
    u64 base = pop(&cpu_cache[this_cpu()->cpu][order]);
    arch_irq_restore(flags);
    return base != 0 ? base : alloc_slow(order);
}

/* Unmaps a batch of shared stacks if there are too many. */
static void trim_shared(u32 order)
{
    u64 bases[KSTACK_UNMAP_BATCH];
    u32 n = 0, chain = NO_PAGE;
    irqflags_t flags = spin_lock_irq(&kstack_lock);
    if (sizes[order].shared.count > KSTACK_SHARED_CACHE) {
        for (; n < KSTACK_UNMAP_BATCH; n++) {
            bases[n] = pop(&sizes[order].shared);
            chain = unmap_pages(bases[n], 1u << order, chain);
        }
    }
    spin_unlock_irq(&kstack_lock, flags);
    if (n == 0) {
        return;
    }
    /* One flush for all: a range that spans them.  Slots of a size lie in few chunks. */
    u64 lo = bases[0], hi = bases[0];
    for (u32 i = 1; i < n; i++) {
        lo = MIN(lo, bases[i]);
        hi = MAX(hi, bases[i]);
    }
    arch_tlb_flush(lo, ((hi - lo) >> PAGE_SHIFT) + BIT(order));
    free_chain(chain);
    for (u32 i = 0; i < n; i++) {
        give_slot(order, bases[i]);
    }
}

void kstack_free(u64 base, size_t bytes)
{
    u32 order = size_index(bytes);
    bool too_many = false;
    irqflags_t flags = arch_irq_save();
    struct stack_list *own = &cpu_cache[this_cpu()->cpu][order];
    push(own, base);
    if (own->count > KSTACK_CPU_CACHE) {
        spin_acquire_raw(&kstack_lock);
        while (own->count > KSTACK_CPU_CACHE / 2) {
            push(&sizes[order].shared, pop(own));
        }
        too_many = sizes[order].shared.count > KSTACK_SHARED_CACHE;
        spin_release_raw(&kstack_lock);
    }
    arch_irq_restore(flags);
    if (too_many) {
        trim_shared(order);
    }
}
