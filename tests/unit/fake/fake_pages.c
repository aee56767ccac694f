/* RAM, page tables and TLBs of the fake port. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/spinlock.h"
#include "core/base/string.h"
#include "core/mm/mm.h"
#include "tests/unit/fake/fake_arch.h"

#define WEAK        __attribute__((weak))
#define BLOCK_ALIGN (4ull << 20) /* largest block of the page allocator */
#define TLB_ENTRIES 64
#define TLB_CPUS    8

u64 fake_ram_base;
u64 fake_pt_map_budget = UINT64_MAX;
u64 fake_tlb_flushes;

static u64 ram_bytes;
static struct boot_info boot;

/* The page tables: a hash table of pages. */
struct pte {
    u64 va; /* 0: empty, 1: deleted */
    paddr_t pa;
    u32 prot;
};

static pthread_mutex_t pt_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pte *ptes;
static u64 pt_size, pt_used, pt_live; /* slots, slots not empty, pages */

struct tlb_entry {
    u64 va;
    paddr_t pa;
    u32 prot;
};
static struct tlb_entry tlbs[TLB_CPUS][TLB_ENTRIES]; /* under pt_mutex */

WEAK const struct boot_info *arch_boot_info(void)
{
    return &boot;
}

struct boot_info *fake_ram_init(u64 bytes)
{
    char *p =
        mmap(NULL, bytes + BLOCK_ALIGN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT(p != MAP_FAILED);
    char *aligned = (char *)ALIGN_UP((uintptr_t)p, BLOCK_ALIGN);
    munmap(p, (size_t)(aligned - p));
    munmap(aligned + bytes, (size_t)(p + BLOCK_ALIGN - aligned));
    ram_bytes = bytes;
    fake_ram_base = virt_to_phys(aligned);
    memset(&boot, 0, sizeof(boot));
    boot.magic = BOOT_INFO_MAGIC;
    boot.version = BOOT_INFO_VERSION;
    boot.num_ranges = 1;
    boot.ranges[0] =
        (struct boot_range){.base = fake_ram_base, .size = bytes, .type = BOOT_MEM_USABLE};
    free(ptes);
    pt_size = 1 << 16;
    ptes = calloc(pt_size, sizeof(*ptes));
    pt_used = pt_live = 0;
    memset(tlbs, 0, sizeof(tlbs));
    fake_pt_map_budget = UINT64_MAX;
    fake_tlb_flushes = 0;
    return &boot;
}

void fake_ram_free(void)
{
#if defined(__SANITIZE_ADDRESS__)
    extern void __asan_unpoison_memory_region(const volatile void *addr, size_t size);
    __asan_unpoison_memory_region(phys_to_virt(fake_ram_base), ram_bytes);
#endif
    munmap(phys_to_virt(fake_ram_base), ram_bytes);
    free(ptes);
    ptes = NULL;
}

/* ---- page tables; caller holds pt_mutex ---- */

static struct pte *find(u64 va)
{
    for (u64 i = mix64(va) & (pt_size - 1);; i = (i + 1) & (pt_size - 1)) {
        if (ptes[i].va == va) {
            return &ptes[i];
        }
        if (ptes[i].va == 0) {
            return NULL;
        }
    }
}

static void put(u64 va, paddr_t pa, u32 prot)
{
    u64 i = mix64(va) & (pt_size - 1);
    while (ptes[i].va > 1) {
        i = (i + 1) & (pt_size - 1);
    }
    pt_used += ptes[i].va == 0;
    pt_live++;
    ptes[i] = (struct pte){va, pa, prot};
}

static void grow(void)
{
    struct pte *old = ptes;
    u64 n = pt_size;
    pt_size = pt_live * 4 > pt_size ? pt_size * 2 : pt_size;
    ptes = calloc(pt_size, sizeof(*ptes));
    pt_used = pt_live = 0;
    for (u64 i = 0; i < n; i++) {
        if (old[i].va > 1) {
            put(old[i].va, old[i].pa, old[i].prot);
        }
    }
    free(old);
}

WEAK void arch_set_page_source(paddr_t (*alloc)(void), void (*release)(paddr_t page))
{
    (void)alloc;
    (void)release;
}

WEAK int arch_pt_map(u64 va, paddr_t pa, size_t pages, u32 prot)
{
    if ((prot & ARCH_PROT_WRITE) != 0 && (prot & ARCH_PROT_EXEC) != 0) {
        return -EINVAL;
    }
    pthread_mutex_lock(&pt_mutex);
    if (fake_pt_map_budget == 0) {
        pthread_mutex_unlock(&pt_mutex);
        return -ENOMEM;
    }
    fake_pt_map_budget -= fake_pt_map_budget != UINT64_MAX;
    for (size_t i = 0; i < pages; i++) {
        ASSERT(find(va + i * PAGE_SIZE) == NULL);
        if (pt_used * 2 > pt_size) {
            grow();
        }
        put(va + i * PAGE_SIZE, pa + i * PAGE_SIZE, prot);
    }
    pthread_mutex_unlock(&pt_mutex);
    return 0;
}

WEAK paddr_t arch_pt_unmap(u64 va)
{
    paddr_t pa = 0;
    pthread_mutex_lock(&pt_mutex);
    struct pte *e = find(va);
    if (e != NULL) {
        pa = e->pa;
        e->va = 1;
        pt_live--;
    }
    pthread_mutex_unlock(&pt_mutex);
    return pa;
}

WEAK bool arch_pt_protect(u64 va, u32 prot)
{
    pthread_mutex_lock(&pt_mutex);
    struct pte *e = find(va);
    if (e != NULL) {
        e->prot = prot;
    }
    pthread_mutex_unlock(&pt_mutex);
    return e != NULL;
}

WEAK paddr_t arch_pt_lookup(u64 va)
{
    pthread_mutex_lock(&pt_mutex);
    struct pte *e = find(ALIGN_DOWN(va, PAGE_SIZE));
    paddr_t pa = e != NULL ? e->pa + (va & (PAGE_SIZE - 1)) : 0;
    pthread_mutex_unlock(&pt_mutex);
    return pa;
}

u64 fake_pt_pages(void)
{
    return pt_live;
}

bool fake_pt_query(u64 va, paddr_t *pa, u32 *prot)
{
    pthread_mutex_lock(&pt_mutex);
    struct pte *e = find(va);
    if (e != NULL) {
        *pa = e->pa;
        *prot = e->prot;
    }
    pthread_mutex_unlock(&pt_mutex);
    return e != NULL;
}

/* ---- TLBs ---- */

WEAK void arch_tlb_flush(u64 va, size_t pages)
{
    spin_assert_none_held("TLB flush");
    ASSERT(arch_irqs_on());
    pthread_mutex_lock(&pt_mutex);
    fake_tlb_flushes++;
    for (u32 cpu = 0; cpu < TLB_CPUS; cpu++) {
        for (u32 i = 0; i < TLB_ENTRIES; i++) {
            struct tlb_entry *e = &tlbs[cpu][i];
            if (e->va >= va && e->va < va + pages * PAGE_SIZE) {
                e->va = 0;
            }
        }
    }
    pthread_mutex_unlock(&pt_mutex);
}

u32 fake_tlb_stale(void)
{
    u32 stale = 0;
    pthread_mutex_lock(&pt_mutex);
    for (u32 cpu = 0; cpu < TLB_CPUS; cpu++) {
        for (u32 i = 0; i < TLB_ENTRIES; i++) {
            const struct tlb_entry *t = &tlbs[cpu][i];
            const struct pte *e = t->va != 0 ? find(t->va) : NULL;
            stale += t->va != 0 && (e == NULL || e->pa != t->pa || (t->prot & ~e->prot) != 0);
        }
    }
    pthread_mutex_unlock(&pt_mutex);
    return stale;
}

static bool allows(u32 prot, bool write)
{
    return write ? (prot & ARCH_PROT_WRITE) != 0 : prot != 0;
}

u8 *fake_access(u64 va, bool write)
{
    u64 page = ALIGN_DOWN(va, PAGE_SIZE);
    struct tlb_entry *t = &tlbs[fake_cpu % TLB_CPUS][(page >> PAGE_SHIFT) % TLB_ENTRIES];
    for (u32 tries = 0; tries < 1000000; tries++) {
        pthread_mutex_lock(&pt_mutex);
        if (t->va != page || !allows(t->prot, write)) {
            struct pte *e = find(page);
            *t = e != NULL && e->prot != 0 ? (struct tlb_entry){page, e->pa, e->prot}
                                           : (struct tlb_entry){0};
        }
        bool hit = t->va == page && allows(t->prot, write);
        paddr_t pa = t->pa;
        pthread_mutex_unlock(&pt_mutex);
        if (hit) {
            return (u8 *)phys_to_virt(pa) + (va - page);
        }
        irqflags_t flags = arch_irq_save();
        bool again = mm_handle_fault(va, write, false);
        arch_irq_restore(flags);
        if (!again) {
            return NULL;
        }
    }
    return NULL;
}

/* ---- copies ---- */

static bool copy_app(u64 app, void *kernel, size_t n, bool write)
{
    u8 *k = kernel;
    while (n > 0) {
        size_t part = MIN(n, (size_t)(PAGE_SIZE - (app & (PAGE_SIZE - 1))));
        u8 *p = app >= APP_MIN && app < APP_MAX ? fake_access(app, write) : NULL;
        if (p == NULL) {
            return false;
        }
        if (write) {
            memcpy(p, k, part);
        } else {
            memcpy(k, p, part);
        }
        k += part;
        app += part;
        n -= part;
    }
    return true;
}

WEAK bool arch_copy_from_app(void *dst, u64 src, size_t bytes)
{
    return copy_app(src, dst, bytes, false);
}

WEAK bool arch_copy_to_app(u64 dst, const void *src, size_t bytes)
{
    return copy_app(dst, (void *)(uintptr_t)src, bytes, true);
}

WEAK bool arch_zero_app(u64 dst, size_t bytes)
{
    static const u8 zeros[PAGE_SIZE];
    while (bytes > 0) {
        size_t part = MIN(bytes, sizeof(zeros));
        if (!arch_copy_to_app(dst, zeros, part)) {
            return false;
        }
        dst += part;
        bytes -= part;
    }
    return true;
}
