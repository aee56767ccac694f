#include "apps/kv/arena.h"

#include <string.h>

#include "apps/kv/tunables.h"

#define STEP            16u /* classes up to FINE_MAX are multiples of this */
#define FINE_MAX        256u
#define FINE_CLASSES    (FINE_MAX / STEP)
#define FINE_LOG        8u /* log2 of FINE_MAX */
#define SUB_LOG         3u /* 8 classes per doubling: at most 12.5% lost to rounding */
#define ROUND_UP(x, to) (((x) + (to)-1) / (to) * (to))

static size_t class_of(size_t size)
{
    size_t m, b;

    if (size <= FINE_MAX) {
        return (size - 1) / STEP;
    }
    m = size - 1;
    b = 63u - (size_t)__builtin_clzll(m);
    return FINE_CLASSES + ((b - FINE_LOG) << SUB_LOG) + ((m >> (b - SUB_LOG)) & 7);
}

static size_t class_size(size_t cls)
{
    size_t b, sub;

    if (cls < FINE_CLASSES) {
        return (cls + 1) * STEP;
    }
    cls -= FINE_CLASSES;
    b = FINE_LOG + (cls >> SUB_LOG);
    sub = cls & 7;
    return (8 + sub + 1) << (b - SUB_LOG);
}

static size_t class_pages(size_t cls)
{
    size_t bytes = class_size(cls) * KV_SLAB_MIN_BLOCKS;

    if (bytes < KV_SLAB_MIN_SPAN) {
        bytes = KV_SLAB_MIN_SPAN;
    }
    return (bytes + KV_PAGE_SIZE - 1) / KV_PAGE_SIZE;
}

void arena_init(struct arena *a)
{
    memset(a, 0, sizeof(*a));
}

size_t arena_round(size_t size)
{
    if (size <= KV_SLAB_MAX) {
        return class_size(class_of(size));
    }
    return ROUND_UP(size, (size_t)KV_PAGE_SIZE);
}

static void room_add(struct arena *a, struct span *s)
{
    s->listed = 1;
    s->prev = NULL;
    s->next = a->room[s->cls];
    if (s->next) {
        s->next->prev = s;
    }
    a->room[s->cls] = s;
}

static void room_del(struct arena *a, struct span *s)
{
    s->listed = 0;
    if (s->next) {
        s->next->prev = s->prev;
    }
    if (s->prev) {
        s->prev->next = s->next;
    } else {
        a->room[s->cls] = s->next;
    }
}

static struct span *slab_new(struct arena *a, size_t cls)
{
    struct span *s = pages_alloc(class_pages(cls));

    if (!s) {
        return NULL;
    }
    s->cls = (uint16_t)cls;
    s->free = NULL;
    s->nused = 0;
    s->nbump = 0;
    s->nblocks = (uint16_t)((size_t)s->npages * KV_PAGE_SIZE / class_size(cls));
    a->reserved += (size_t)s->npages * KV_PAGE_SIZE;
    room_add(a, s);
    return s;
}

static void *large_alloc(struct arena *a, size_t bytes)
{
    void *p;
    struct span *s;

    if (bytes / KV_PAGE_SIZE > pages_max()) {
        p = pages_map(bytes);
    } else {
        s = pages_alloc(bytes / KV_PAGE_SIZE);
        p = s ? span_base(s) : NULL;
    }
    if (p) {
        a->used += bytes;
        a->reserved += bytes;
    }
    return p;
}

void *arena_alloc(struct arena *a, size_t size)
{
    size_t cls;
    struct span *s;
    void *p;

    if (size > KV_SLAB_MAX) {
        return large_alloc(a, arena_round(size));
    }
    cls = class_of(size);
    s = a->room[cls];
    if (!s) {
        s = slab_new(a, cls);
        if (!s) {
            return NULL;
        }
    }
    p = s->free;
    if (p) {
        memcpy(&s->free, p, sizeof(s->free));
    } else {
        p = (char *)span_base(s) + (size_t)s->nbump++ * class_size(cls);
    }
    if (++s->nused == s->nblocks) {
        room_del(a, s);
    }
    a->used += class_size(cls);
    return p;
}

void arena_free(struct arena *a, void *p, size_t size)
{
    size_t bytes = arena_round(size);
    struct span *s;

    a->used -= bytes;
    if (size > KV_SLAB_MAX) {
        a->reserved -= bytes;
        if (bytes / KV_PAGE_SIZE > pages_max()) {
            pages_unmap(p, bytes);
        } else {
            pages_free(span_of(p));
        }
        return;
    }
    s = span_of(p);
    memcpy(p, &s->free, sizeof(s->free));
    s->free = p;
    s->nused--;
    if (!s->listed) {
        room_add(a, s);
    }
    /* Keep one slab per class, so that a set/delete pair at a border does not bounce pages. */
    if (s->nused == 0 && (s->next || s->prev)) {
        room_del(a, s);
        a->reserved -= (size_t)s->npages * KV_PAGE_SIZE;
        pages_free(s);
    }
}
