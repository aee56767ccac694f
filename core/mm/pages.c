/* Page allocator: binary buddies on shared lists, a cache of single pages per CPU in front.
 *
 * Links lie in the page array, so free memory itself is never touched. Algorithm: Knowlton, "A fast
 * storage allocator", 1965; per-CPU front end after Bonwick and Adams, "Magazines and Vmem", 2001.
 * */
#include "core/base/bitops.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/mm/page.h"
#include "core/mm/poison.h"

struct page *page_array;
u64 page_array_base;
u32 page_array_len;

/* Free single pages of a CPU.  Touched by that CPU alone, interrupts off. */
struct page_cache {
    u32 count;
    u32 pages[PAGE_CACHE_MAX];
} __cacheline_aligned;

static struct lock_class pages_class = {.name = "pages", .rank = RANK_PAGES, .irq = true};
static struct spinlock pages_lock = SPINLOCK_INIT(&pages_class);

/* Under pages_lock. */
static u32 free_lists[PAGE_MAX_ORDER + 1]; /* first free block of each order, NO_PAGE if none */
static u32 free_orders;                    /* bit per order with a free block */
static u64 buddy_free_pages;               /* read without the lock too */
static u64 total_pages;

static struct page_cache page_caches[MAX_CPUS];
static u64 alloc_failures;

/* ---- shared lists; caller holds pages_lock ---- */

static void list_add(u32 index, u32 order)
{
    struct page *p = &page_array[index];
    p->state = PAGE_FREE;
    p->order = order & 15;
    p->prev = NO_PAGE;
    p->next = free_lists[order];
    if (p->next != NO_PAGE) {
        page_array[p->next].prev = index;
    }
    free_lists[order] = index;
    free_orders |= 1u << order;
}

static void list_take(u32 index, u32 order)
{
    struct page *p = &page_array[index];
    if (p->prev != NO_PAGE) {
        page_array[p->prev].next = p->next;
    } else {
        free_lists[order] = p->next;
        if (p->next == NO_PAGE) {
            free_orders &= ~(1u << order);
        }
    }
    if (p->next != NO_PAGE) {
        page_array[p->next].prev = p->prev;
    }
    p->state = PAGE_USED;
}

/* Index of a block, NO_PAGE if there is none. */
static u32 buddy_alloc(u32 order)
{
    u32 larger = free_orders & ~((1u << order) - 1);
    if (larger == 0) {
        return NO_PAGE;
    }
    u32 from = bit_lowest(larger);
    u32 index = free_lists[from];
    list_take(index, from);
    while (from > order) {
        from--;
        list_add(index + (1u << from), from);
    }
    page_array[index].order = order & 15;
    WRITE_ONCE(buddy_free_pages, buddy_free_pages - (1u << order));
    return index;
}

static void buddy_free(u32 index, u32 order)
{
    WRITE_ONCE(buddy_free_pages, buddy_free_pages + (1u << order));
    while (order < PAGE_MAX_ORDER) {
        u32 buddy = index ^ (1u << order);
        if (buddy >= page_array_len || READ_ONCE(page_array[buddy].state) != PAGE_FREE ||
            page_array[buddy].order != order) {
            break;
        }
        list_take(buddy, order);
        page_array[MAX(index, buddy)].state =
            PAGE_RESERVED; /* inside a block now: no head any more */
        index = MIN(index, buddy);
        order++;
    }
    list_add(index, order);
}

void pages_init(void)
{
    memset(free_lists, 0, sizeof(free_lists));
    memset(page_caches, 0, sizeof(page_caches));
    free_orders = 0;
    buddy_free_pages = total_pages = 0;
}

void pages_add_range(paddr_t base, u64 pages)
{
    u32 index = page_index(base);
    u32 end = index + (u32)pages;
    if (index == NO_PAGE) {
        index++;
    }
    irqflags_t flags = spin_lock_irq(&pages_lock);
    total_pages += end - index;
    while (index < end) {
        u32 order = MIN(bit_lowest(index), (u32)PAGE_MAX_ORDER);
        while (index + (1u << order) > end) {
            order--;
        }
        poison_region(phys_to_virt(page_phys(index)), PAGE_SIZE << order);
        buddy_free(index, order);
        index += 1u << order;
    }
    spin_unlock_irq(&pages_lock, flags);
}

/* ---- caches of single pages; interrupts off ---- */

static __noinline bool cache_refill(struct page_cache *c)
{
    spin_acquire_raw(&pages_lock);
    while (c->count < PAGE_CACHE_BATCH) {
        u32 index = buddy_alloc(0);
        if (index == NO_PAGE) {
            break;
        }
        page_array[index].state = PAGE_CACHED;
        c->pages[c->count++] = index;
    }
    spin_release_raw(&pages_lock);
    return c->count > 0;
}

/* Gives the oldest pages back: the newest are the likeliest to be in this CPU's data cache. */
static __noinline void cache_drain(struct page_cache *c, u32 n)
{
    spin_acquire_raw(&pages_lock);
    for (u32 i = 0; i < n; i++) {
        buddy_free(c->pages[i], 0);
    }
    spin_release_raw(&pages_lock);
    c->count -= n;
    memmove(c->pages, c->pages + n, c->count * sizeof(c->pages[0]));
}

static u32 cache_alloc(void)
{
    u32 index = NO_PAGE;
    irqflags_t flags = arch_irq_save();
    struct page_cache *c = &page_caches[this_cpu()->cpu];
    if (likely(c->count > 0) || cache_refill(c)) {
        index = c->pages[--c->count];
    }
    arch_irq_restore(flags);
    return index;
}

static void cache_free(u32 index)
{
    irqflags_t flags = arch_irq_save();
    struct page_cache *c = &page_caches[this_cpu()->cpu];
    if (unlikely(c->count == PAGE_CACHE_MAX)) {
        cache_drain(c, PAGE_CACHE_BATCH);
    }
    WRITE_ONCE(page_array[index].state, PAGE_CACHED);
    c->pages[c->count++] = index;
    arch_irq_restore(flags);
}

/* ---- interface ---- */

paddr_t page_alloc(u32 order, enum mem_kind kind)
{
    u32 index = NO_PAGE;
    if (unlikely(order > PAGE_MAX_ORDER) || unlikely(!mem_charge(kind, 1u << order))) {
        __atomic_fetch_add(&alloc_failures, 1, __ATOMIC_RELAXED);
        return 0;
    }
    if (likely(order == 0)) {
        index = cache_alloc();
    } else {
        irqflags_t flags = spin_lock_irq(&pages_lock);
        index = buddy_alloc(order);
        spin_unlock_irq(&pages_lock, flags);
    }
    if (unlikely(index == NO_PAGE)) {
        mem_uncharge(kind, 1u << order);
        __atomic_fetch_add(&alloc_failures, 1, __ATOMIC_RELAXED);
        return 0;
    }
    struct page *p = &page_array[index];
    WRITE_ONCE(p->state, PAGE_USED);
    p->order = order & 15;
    p->kind = (u8)kind & 15;
    paddr_t pa = page_phys(index);
    unpoison_region(phys_to_virt(pa), PAGE_SIZE << order);
    return pa;
}

paddr_t page_alloc_zeroed(u32 order, enum mem_kind kind)
{
    paddr_t pa = page_alloc(order, kind);
    if (likely(pa != 0)) {
        memset(phys_to_virt(pa), 0, PAGE_SIZE << order);
    }
    return pa;
}

void page_free(paddr_t pa, u32 order, enum mem_kind kind)
{
    if (unlikely(!page_known(pa))) {
        panic("page_free: %lx is not a page of RAM", pa);
    }
    u32 index = page_index(pa);
    struct page *p = &page_array[index];
    if (unlikely(p->state != PAGE_USED || p->order != order || p->kind != kind)) {
        panic("page_free: page %lx order %u kind %d, but it has state %u order %u kind %u", pa,
              order, kind, p->state, p->order, p->kind);
    }
    poison_region(phys_to_virt(pa), PAGE_SIZE << order);
    mem_uncharge(kind, 1u << order);
    if (likely(order == 0)) {
        cache_free(index);
    } else {
        irqflags_t flags = spin_lock_irq(&pages_lock);
        buddy_free(index, order);
        spin_unlock_irq(&pages_lock, flags);
    }
}

/* The pages that lie free in the caches of CPUs, without stopping these: a snapshot, exact when
 * they are idle. */
static u64 cached_pages(void)
{
    u64 n = 0;
    for (u32 cpu = 0; cpu < MAX_CPUS; cpu++) {
        n += READ_ONCE(page_caches[cpu].count);
    }
    return n;
}

u64 pages_free_shared(void)
{
    return READ_ONCE(buddy_free_pages);
}

u64 pages_free(void)
{
    return READ_ONCE(buddy_free_pages) + cached_pages();
}

void pages_stats(struct mem_stats *out)
{
    out->total_pages = READ_ONCE(total_pages);
    out->free_pages = pages_free();
    out->alloc_failures = READ_ONCE(alloc_failures);
}
