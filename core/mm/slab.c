/* Slab caches: objects of one size, with a magazine of free objects per CPU.
 *
 * A slab is a block of 2^order pages of one cache, cut into objects from its start, so objects of a
 * power of two are aligned to their size. Everything about a slab lies in the page array
 * (core/mm/page.h); its free objects are a list of object numbers kept in the objects themselves.
 * Fast path: interrupts off, pop or push a pointer. After Bonwick, "The slab allocator", 1994, and
 * Bonwick and Adams, "Magazines and Vmem", 2001. */
#include "core/mm/slab.h"

#include "core/base/log.h"
#include "core/base/string.h"
#include "core/mm/poison.h"

static struct lock_class slab_class = {.name = "slab", .rank = RANK_SLAB, .irq = true};

/* Stands in for the magazine of a CPU that has not used a cache yet: no pop or push succeeds. */
static struct magazine no_magazine;

struct slab_cache slab_caches[SLAB_MAX_CACHES];
static u32 num_caches;
static struct spinlock caches_lock = SPINLOCK_INIT(&slab_class); /* num_caches, magazine_page */
static u8 *magazine_page; /* memory from which magazines are cut; they are never given back */
static u32 magazine_room;

/* ---- debug: free objects carry a mark and a pattern ---- */

#if defined(WEIR_DEBUG)
#define FREE_MARK   0xf4eeb10cf4eeb10cull
#define FREE_BYTE   0x6b
#define MARK_OFFSET 8 /* the first word of a free object links it */

static u64 *object_mark(void *p)
{
    return (u64 *)(void *)((u8 *)p + MARK_OFFSET);
}

static void mark_free(const struct slab_cache *c, void *p)
{
    if (*object_mark(p) == (FREE_MARK ^ (u64)(uintptr_t)p)) {
        panic("slab %s: object %p freed twice", c->name, p);
    }
    *object_mark(p) = FREE_MARK ^ (u64)(uintptr_t)p;
    memset((u8 *)p + MARK_OFFSET + 8, FREE_BYTE, c->size - MARK_OFFSET - 8);
    poison_region((u8 *)p + MARK_OFFSET + 8, c->size - MARK_OFFSET - 8);
}

static void unmark_free(const struct slab_cache *c, void *p)
{
    unpoison_region(p, c->size);
    if (*object_mark(p) != (FREE_MARK ^ (u64)(uintptr_t)p)) {
        panic("slab %s: free object %p was written to", c->name, p);
    }
    for (u32 i = MARK_OFFSET + 8; i < c->size; i++) {
        if (((u8 *)p)[i] != FREE_BYTE) {
            panic("slab %s: free object %p was written to at byte %u", c->name, p, i);
        }
    }
    *object_mark(p) = 0;
}
#else
#define mark_free(c, p)   ((void)0)
#define unmark_free(c, p) ((void)0)
#endif

/* ---- slabs; caller holds c->lock ---- */

static u8 *slab_base(u32 index)
{
    return phys_to_virt(page_phys(index));
}

static void partial_add(struct slab_cache *c, u32 index)
{
    struct page *s = &page_array[index];
    s->prev = NO_PAGE;
    s->next = c->partial;
    if (s->next != NO_PAGE) {
        page_array[s->next].prev = index;
    }
    c->partial = index;
}

static void partial_remove(struct slab_cache *c, u32 index)
{
    struct page *s = &page_array[index];
    if (s->prev != NO_PAGE) {
        page_array[s->prev].next = s->next;
    } else {
        c->partial = s->next;
    }
    if (s->next != NO_PAGE) {
        page_array[s->next].prev = s->prev;
    }
}

static bool slab_grow(struct slab_cache *c)
{
    paddr_t pa = page_alloc(c->order, c->kind);
    if (pa == 0) {
        return false;
    }
    u32 index = page_index(pa);
    u8 *base = slab_base(index);
    for (u32 i = 0; i < (1u << c->order); i++) {
        WRITE_ONCE(page_array[index + i].state, PAGE_SLAB);
        page_array[index + i].order = c->order & 15;
        page_array[index + i].cache = c->number;
    }
    for (u32 i = 0; i < c->per_slab; i++) {
        u8 *object = base + i * c->size;
        *(u16 *)(void *)object = (u16)(i + 2 <= c->per_slab ? i + 2 : 0);
#if defined(WEIR_DEBUG)
        *object_mark(object) = 0;
        mark_free(c, object);
#endif
    }
    page_array[index].free_head = 1;
    page_array[index].in_use = 0;
    partial_add(c, index);
    c->slabs++;
    c->empty++;
    return true;
}

static void slab_release(struct slab_cache *c, u32 index)
{
    partial_remove(c, index);
    c->slabs--;
    c->empty--;
    for (u32 i = 0; i < (1u << c->order); i++) {
        WRITE_ONCE(page_array[index + i].state, PAGE_RESERVED);
    }
    WRITE_ONCE(page_array[index].state, PAGE_USED);
    page_free(page_phys(index), c->order, c->kind);
}

static void *slab_take(struct slab_cache *c)
{
    if (c->partial == NO_PAGE && !slab_grow(c)) {
        return NULL;
    }
    u32 index = c->partial;
    struct page *s = &page_array[index];
    u8 *object = slab_base(index) + (size_t)(s->free_head - 1u) * c->size;
    s->free_head = *(u16 *)(void *)object;
    c->empty -= s->in_use == 0;
    s->in_use++;
    c->objects_out++;
    if (s->free_head == 0) {
        partial_remove(c, index);
    }
    return object;
}

static void slab_give(struct slab_cache *c, void *p)
{
    u32 index = page_index(virt_to_phys(p)) & ~((1u << c->order) - 1);
    struct page *s = &page_array[index];
    u32 number = (u32)((u8 *)p - slab_base(index)) / c->size;
    bool was_full = s->free_head == 0;
    *(u16 *)p = s->free_head;
    s->free_head = (u16)(number + 1);
    s->in_use--;
    c->objects_out--;
    if (was_full) {
        partial_add(c, index);
    }
    if (s->in_use == 0 && ++c->empty > SLAB_MAX_EMPTY) {
        slab_release(c, index);
    }
}

/* ---- magazines; interrupts off ---- */

/* This CPU's magazine, made on first use.  NULL if there is no memory for one. */
static struct magazine *own_magazine(struct slab_cache *c)
{
    u32 cpu = this_cpu()->cpu;
    if (c->magazines[cpu] != &no_magazine) {
        return c->magazines[cpu];
    }
    struct magazine *m = NULL;
    spin_acquire_raw(&caches_lock);
    if (magazine_room == 0) {
        paddr_t pa = page_alloc(0, MEM_KERNEL);
        if (pa != 0) {
            magazine_page = phys_to_virt(pa);
            magazine_room = PAGE_SIZE / sizeof(struct magazine);
        }
    }
    if (magazine_room > 0) {
        m = (struct magazine *)(void *)magazine_page;
        magazine_page += sizeof(*m);
        magazine_room--;
        m->count = 0;
        m->capacity = c->magazine_capacity;
    }
    spin_release_raw(&caches_lock);
    if (m != NULL) {
        WRITE_ONCE(c->magazines[cpu], m);
    }
    return m;
}

static __noinline void *alloc_slow(struct slab_cache *c)
{
    struct magazine *m = own_magazine(c);
    spin_acquire_raw(&c->lock);
    void *p = slab_take(c);
    if (p != NULL && m != NULL) {
        while (m->count < m->capacity / 2) {
            /* Refill from slabs at hand; only the first object is worth new pages. */
            void *more = c->partial != NO_PAGE ? slab_take(c) : NULL;
            if (more == NULL) {
                break;
            }
            m->objects[m->count++] = more;
        }
    }
    spin_release_raw(&c->lock);
    if (p == NULL) {
        __atomic_fetch_add(&c->failures, 1, __ATOMIC_RELAXED);
    }
    return p;
}

/* Gives the older half of the magazine back, then the object goes in. */
static __noinline void free_slow(struct slab_cache *c, void *p)
{
    struct magazine *m = own_magazine(c);
    spin_acquire_raw(&c->lock);
    if (m == NULL) {
        slab_give(c, p);
    } else {
        u32 drop = m->count == m->capacity ? (m->count + 1) / 2 : 0;
        for (u32 i = 0; i < drop; i++) {
            slab_give(c, m->objects[i]);
        }
        m->count -= drop;
        memmove(m->objects, m->objects + drop, m->count * sizeof(m->objects[0]));
        m->objects[m->count++] = p;
    }
    spin_release_raw(&c->lock);
}

void *slab_alloc(struct slab_cache *c)
{
    void *p;
    irqflags_t flags = arch_irq_save();
    struct magazine *m = c->magazines[this_cpu()->cpu];
    if (likely(m->count > 0)) {
        p = m->objects[--m->count];
    } else {
        p = alloc_slow(c);
    }
    arch_irq_restore(flags);
#if defined(WEIR_DEBUG)
    if (p != NULL) {
        unmark_free(c, p);
    }
#endif
    return p;
}

void slab_free(struct slab_cache *c, void *p)
{
#if defined(WEIR_DEBUG)
    slab_check_object(c, p);
    mark_free(c, p);
#endif
    irqflags_t flags = arch_irq_save();
    struct magazine *m = c->magazines[this_cpu()->cpu];
    if (likely(m->count < m->capacity)) {
        m->objects[m->count++] = p;
    } else {
        free_slow(c, p);
    }
    arch_irq_restore(flags);
}

/* ---- caches ---- */

void slab_check_object(const struct slab_cache *c, const void *p)
{
    paddr_t pa = virt_to_phys(p);
    if (!page_known(pa) || page_of(pa)->state != PAGE_SLAB || page_of(pa)->cache != c->number) {
        panic("slab %s: %p is not one of its objects", c->name, p);
    }
    u32 index = page_index(pa) & ~((1u << c->order) - 1);
    if ((u64)((const u8 *)p - slab_base(index)) % c->size != 0) {
        panic("slab %s: %p is not the start of an object", c->name, p);
    }
}

/* The smallest order that wastes at most an eighth and holds at least eight objects, else the
 * largest. */
static u32 choose_order(u32 size)
{
    for (u32 order = 0; order < SLAB_MAX_ORDER; order++) {
        u64 bytes = PAGE_SIZE << order;
        if (bytes / size >= 8 && bytes % size <= bytes / 8) {
            return order;
        }
    }
    return SLAB_MAX_ORDER;
}

struct slab_cache *slab_create(const char *name, size_t bytes, size_t align, enum mem_kind kind)
{
    align = MAX(align, (size_t)SLAB_MIN_ALIGN);
    if (bytes == 0 || bytes > SLAB_MAX_SIZE || (align & (align - 1)) != 0 || align > PAGE_SIZE) {
        log_error("slab %s: %zu bytes aligned to %zu are not possible (1..%d bytes)", name, bytes,
                  align, SLAB_MAX_SIZE);
        return NULL;
    }
    irqflags_t flags = spin_lock_irq(&caches_lock);
    struct slab_cache *c = num_caches < SLAB_MAX_CACHES ? &slab_caches[num_caches] : NULL;
    if (c != NULL) {
        c->number = (u16)num_caches;
        c->name = name;
        c->size = (u32)ALIGN_UP(bytes, align);
        c->kind = kind;
        c->order = choose_order(c->size);
        c->per_slab = (u32)((PAGE_SIZE << c->order) / c->size);
        c->magazine_capacity =
            MAX(2u, MIN((u32)SLAB_MAGAZINE_SIZE, (u32)SLAB_MAGAZINE_BYTES / c->size));
        spin_init(&c->lock, &c->lock_class);
        c->lock_class.name = name;
        c->lock_class.rank = RANK_SLAB;
        c->lock_class.irq = true;
        c->partial = NO_PAGE;
        c->slabs = c->empty = 0;
        c->objects_out = c->failures = 0;
        for (u32 cpu = 0; cpu < MAX_CPUS; cpu++) {
            c->magazines[cpu] = &no_magazine;
        }
        num_caches++;
    }
    spin_unlock_irq(&caches_lock, flags);
    if (c == NULL) {
        log_error("slab %s: all %d caches are in use", name, SLAB_MAX_CACHES);
    }
    return c;
}

void slab_for_each(void (*fn)(const char *name, size_t bytes, u64 in_use, u64 pages, void *arg),
                   void *arg)
{
    for (u32 i = 0; i < READ_ONCE(num_caches); i++) {
        struct slab_cache *c = &slab_caches[i];
        u64 out = 0, spare = 0;
        irqflags_t flags = spin_lock_irq(&c->lock);
        out = c->objects_out;
        u64 pages = (u64)c->slabs << c->order;
        spin_unlock_irq(&c->lock, flags);
        for (u32 cpu = 0; cpu < MAX_CPUS; cpu++) {
            spare += READ_ONCE(c->magazines[cpu])->count;
        }
        fn(c->name, c->size, out > spare ? out - spare : 0, pages, arg);
    }
}

void slab_init(void)
{
    num_caches = 0;
    magazine_room = 0;
}
