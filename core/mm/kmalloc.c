/* kmalloc: slab caches by size class, whole pages beyond the largest. */
#include "core/base/bitops.h"
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/mm/slab.h"

/* Powers of two and the middles between them: at most a third of an object is waste. */
static const u16 class_sizes[] = {16,  32,  48,  64,   96,   128,  192,  256,
                                  384, 512, 768, 1024, 1536, 2048, 3072, 4096};
static const char *const class_names[] = {
    "kmalloc-16",   "kmalloc-32",   "kmalloc-48",   "kmalloc-64",   "kmalloc-96",  "kmalloc-128",
    "kmalloc-192",  "kmalloc-256",  "kmalloc-384",  "kmalloc-512",  "kmalloc-768", "kmalloc-1024",
    "kmalloc-1536", "kmalloc-2048", "kmalloc-3072", "kmalloc-4096",
};

#define GRANULE_SHIFT 4 /* sizes are looked up in steps of 16 bytes */

static struct slab_cache *class_caches[ARRAY_SIZE(class_sizes)];
static struct slab_cache
    *cache_for[(SLAB_MAX_SIZE >> GRANULE_SHIFT) + 1]; /* by size rounded up to the step */

int kmalloc_init(void)
{
    u32 class = 0;
    for (u32 i = 0; i < ARRAY_SIZE(class_sizes); i++) {
        size_t size = class_sizes[i];
        class_caches[i] = slab_create(class_names[i], size,
                                      (size & (size - 1)) == 0 ? size : SLAB_MIN_ALIGN, MEM_KERNEL);
        if (class_caches[i] == NULL) {
            return -ENOMEM;
        }
    }
    for (u32 step = 0; step < ARRAY_SIZE(cache_for); step++) {
        while (class_sizes[class] < step << GRANULE_SHIFT) {
            class ++;
        }
        cache_for[step] = class_caches[class];
    }
    return 0;
}

static void *alloc_pages(size_t bytes)
{
    if (bytes > PAGE_SIZE << PAGE_MAX_ORDER) {
        return NULL;
    }
    u32 order = order_for((bytes + PAGE_SIZE - 1) >> PAGE_SHIFT);
    paddr_t pa = page_alloc(order, MEM_KERNEL);
    if (pa == 0) {
        return NULL;
    }
    WRITE_ONCE(page_of(pa)->state, PAGE_BIG); /* the order is recorded there too */
    return phys_to_virt(pa);
}

void *kmalloc(size_t bytes)
{
    if (likely(bytes <= SLAB_MAX_SIZE)) {
        return slab_alloc(cache_for[(bytes + BIT(GRANULE_SHIFT) - 1) >> GRANULE_SHIFT]);
    }
    return alloc_pages(bytes);
}

void *kzalloc(size_t bytes)
{
    void *p = kmalloc(bytes);
    if (likely(p != NULL)) {
        memset(p, 0, bytes);
    }
    return p;
}

void kfree(void *p)
{
    if (p == NULL) {
        return;
    }
    paddr_t pa = virt_to_phys(p);
    if (unlikely(!page_known(pa))) {
        panic("kfree: %p is not in RAM", p);
    }
    struct page *page = page_of(pa);
    if (likely(page->state == PAGE_SLAB)) {
        slab_free(&slab_caches[page->cache], p);
    } else if (page->state == PAGE_BIG && IS_ALIGNED(pa, PAGE_SIZE)) {
        WRITE_ONCE(page->state, PAGE_USED);
        page_free(pa, page->order, MEM_KERNEL);
    } else {
        panic("kfree: %p was not allocated by kmalloc (page state %u)", p, page->state);
    }
}
