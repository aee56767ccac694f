/* Page heap.
 *
 * A chunk begins with its own bookkeeping: one descriptor per page (only the descriptor of a span's
 * first page is live) and a map page -> first page of its span, valid for every page of a used span
 * and for both border pages of a free one. Free spans hang in one list per length; a bitmap says
 * which lists hold something, so best fit is a bit scan. Neighbours merge on free. */
#include "apps/kv/pages.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "apps/kv/tunables.h"

struct chunk {
    struct span spans[KV_CHUNK_PAGES];
    uint16_t map[KV_CHUNK_PAGES];
    uint32_t free_pages;
};

#define CHUNK_META ((sizeof(struct chunk) + KV_PAGE_SIZE - 1) / KV_PAGE_SIZE)
#define SPAN_MAX   (KV_CHUNK_PAGES - CHUNK_META)
#define MAP_WORDS  ((KV_CHUNK_PAGES + 64) / 64)

static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
/* under heap_lock */
static struct span *lists[KV_CHUNK_PAGES + 1];
static uint64_t nonempty[MAP_WORDS];
static unsigned spare_chunks;
/* relaxed */
static _Atomic size_t mapped;

size_t pages_max(void)
{
    return SPAN_MAX;
}

static struct chunk *chunk_of(const void *p)
{
    return (struct chunk *)((uintptr_t)p & ~(uintptr_t)(KV_CHUNK_SIZE - 1));
}

void *span_base(const struct span *s)
{
    return (char *)chunk_of(s) + (size_t)s->first * KV_PAGE_SIZE;
}

struct span *span_of(const void *p)
{
    struct chunk *c = chunk_of(p);
    size_t page = ((uintptr_t)p & (KV_CHUNK_SIZE - 1)) / KV_PAGE_SIZE;

    return &c->spans[c->map[page]];
}

size_t pages_mapped(void)
{
    return atomic_load_explicit(&mapped, memory_order_relaxed);
}

static void *sys_map(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

static size_t round_pages(size_t size)
{
    return (size + KV_PAGE_SIZE - 1) & ~(size_t)(KV_PAGE_SIZE - 1);
}

void *pages_map(size_t size)
{
    void *p = sys_map(round_pages(size));

    if (p) {
        atomic_fetch_add_explicit(&mapped, round_pages(size), memory_order_relaxed);
    }
    return p;
}

void pages_unmap(void *p, size_t size)
{
    munmap(p, round_pages(size));
    atomic_fetch_sub_explicit(&mapped, round_pages(size), memory_order_relaxed);
}

/* A chunk-aligned mapping: usually the second try is not needed, since mappings follow each other. */
static struct chunk *chunk_map(void)
{
    char *p = sys_map(KV_CHUNK_SIZE);
    size_t head;

    if (!p) {
        return NULL;
    }
    if (((uintptr_t)p & (KV_CHUNK_SIZE - 1)) == 0) {
        return (struct chunk *)p;
    }
    munmap(p, KV_CHUNK_SIZE);
    p = sys_map(2 * (size_t)KV_CHUNK_SIZE);
    if (!p) {
        return NULL;
    }
    head = (KV_CHUNK_SIZE - ((uintptr_t)p & (KV_CHUNK_SIZE - 1))) & (KV_CHUNK_SIZE - 1);
    if (head) {
        munmap(p, head);
    }
    munmap(p + head + KV_CHUNK_SIZE, KV_CHUNK_SIZE - head);
    return (struct chunk *)(p + head);
}

static void list_add(struct span *s)
{
    size_t n = s->npages;
    struct chunk *c = chunk_of(s);

    s->is_free = 1;
    s->prev = NULL;
    s->next = lists[n];
    if (s->next) {
        s->next->prev = s;
    }
    lists[n] = s;
    nonempty[n / 64] |= 1ull << (n % 64);
    c->map[s->first] = s->first;
    c->map[s->first + n - 1] = s->first;
}

static void list_del(struct span *s)
{
    size_t n = s->npages;

    s->is_free = 0;
    if (s->next) {
        s->next->prev = s->prev;
    }
    if (s->prev) {
        s->prev->next = s->next;
    } else {
        lists[n] = s->next;
        if (!s->next) {
            nonempty[n / 64] &= ~(1ull << (n % 64));
        }
    }
}

static struct span *list_best(size_t npages)
{
    size_t w = npages / 64;
    uint64_t bits = nonempty[w] & (~0ull << (npages % 64));

    while (!bits) {
        if (++w == MAP_WORDS) {
            return NULL;
        }
        bits = nonempty[w];
    }
    return lists[w * 64 + (size_t)__builtin_ctzll(bits)];
}

static struct span *span_set(struct chunk *c, size_t first, size_t npages)
{
    struct span *s = &c->spans[first];

    s->first = (uint16_t)first;
    s->npages = (uint16_t)npages;
    return s;
}

static int heap_grow(void)
{
    struct chunk *c = chunk_map();

    if (!c) {
        return -1;
    }
    atomic_fetch_add_explicit(&mapped, KV_CHUNK_SIZE, memory_order_relaxed);
    c->free_pages = SPAN_MAX;
    spare_chunks++;
    list_add(span_set(c, CHUNK_META, SPAN_MAX));
    return 0;
}

struct span *pages_alloc(size_t npages)
{
    struct span *s;
    struct chunk *c;

    pthread_mutex_lock(&heap_lock);
    s = list_best(npages);
    if (!s && heap_grow() == 0) {
        s = list_best(npages);
    }
    if (s) {
        list_del(s);
        c = chunk_of(s);
        if (c->free_pages == SPAN_MAX) {
            spare_chunks--;
        }
        c->free_pages -= (uint32_t)npages;
        if (s->npages > npages) {
            list_add(span_set(c, s->first + npages, s->npages - npages));
            s->npages = (uint16_t)npages;
        }
        for (size_t i = 0; i < npages; i++) {
            c->map[s->first + i] = s->first;
        }
    }
    pthread_mutex_unlock(&heap_lock);
    return s;
}

void pages_free(struct span *s)
{
    struct chunk *c = chunk_of(s);
    struct chunk *dead = NULL;
    size_t first = s->first;
    size_t n = s->npages;
    struct span *side;

    pthread_mutex_lock(&heap_lock);
    c->free_pages += s->npages;
    if (first + n < KV_CHUNK_PAGES) {
        side = &c->spans[c->map[first + n]];
        if (side->is_free) {
            list_del(side);
            n += side->npages;
        }
    }
    if (first > CHUNK_META) {
        side = &c->spans[c->map[first - 1]];
        if (side->is_free) {
            list_del(side);
            first = side->first;
            n += side->npages;
        }
    }
    if (c->free_pages == SPAN_MAX && spare_chunks >= KV_CHUNK_SPARE) {
        dead = c;
    } else {
        spare_chunks += c->free_pages == SPAN_MAX;
        list_add(span_set(c, first, n));
    }
    pthread_mutex_unlock(&heap_lock);
    if (dead) {
        munmap(dead, KV_CHUNK_SIZE);
        atomic_fetch_sub_explicit(&mapped, KV_CHUNK_SIZE, memory_order_relaxed);
    }
}
