/* Start-up: from the loader's memory map to a working allocator. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/mm/memrange.h"
#include "core/mm/page.h"

#define FIRST_MIB       (1ull << 20)
#define MAX_BLOCK_BYTES (PAGE_SIZE << PAGE_MAX_ORDER)

/* Static: too large for a stack, used once. */
static struct memrange_set usable;

static paddr_t page_table_alloc(void)
{
    return page_alloc_zeroed(0, MEM_KERNEL);
}

static void page_table_release(paddr_t page)
{
    page_free(page, 0, MEM_KERNEL);
}

/* RAM that nobody uses yet. The first MiB stays out: firmware tables, the start code of the other
 * CPUs. */
static int find_usable(const struct boot_info *boot)
{
    if (boot->num_ranges > BOOT_MAX_RANGES) {
        log_error("mm: boot information names %u memory ranges, at most %u are possible",
                  boot->num_ranges, BOOT_MAX_RANGES);
        return -EINVAL;
    }
    bool ok = true;
    for (u32 i = 0; i < boot->num_ranges; i++) {
        const struct boot_range *r = &boot->ranges[i];
        if (r->type == BOOT_MEM_USABLE && r->base + r->size > r->base) {
            ok &= memrange_add(&usable, r->base, r->base + r->size);
        }
    }
    /* Firmware is known to list overlapping ranges: what any of them keeps back is not ours. */
    for (u32 i = 0; i < boot->num_ranges; i++) {
        const struct boot_range *r = &boot->ranges[i];
        if (r->type != BOOT_MEM_USABLE && r->base + r->size > r->base) {
            ok &= memrange_remove(&usable, ALIGN_DOWN(r->base, PAGE_SIZE),
                                  ALIGN_UP(r->base + r->size, PAGE_SIZE));
        }
    }
    ok &= memrange_remove(&usable, 0, FIRST_MIB);
    ok &= memrange_remove(&usable, ALIGN_DOWN(boot->kernel_phys, PAGE_SIZE),
                          ALIGN_UP(boot->kernel_phys + boot->kernel_size, PAGE_SIZE));
    ok &= memrange_remove(&usable, ALIGN_DOWN(boot->initrd_phys, PAGE_SIZE),
                          ALIGN_UP(boot->initrd_phys + boot->initrd_size, PAGE_SIZE));
    memrange_trim_to_pages(&usable);
    ASSERT(ok); /* MEMRANGE_MAX covers the worst map that fits boot_info */
    return 0;
}

/* Puts the page array into the lowest range that is large enough. */
static int place_page_array(void)
{
    u64 lo = ALIGN_DOWN(usable.r[0].start, MAX_BLOCK_BYTES);
    u64 hi = usable.r[usable.count - 1].end;
    u64 len = (hi - lo) >> PAGE_SHIFT;
    u64 bytes = ALIGN_UP(len * sizeof(struct page), PAGE_SIZE);
    for (u32 i = 0; i < usable.count; i++) {
        u64 start = usable.r[i].start;
        if (usable.r[i].end - start >= bytes) {
            page_array = phys_to_virt(start);
            page_array_base = lo >> PAGE_SHIFT;
            page_array_len = (u32)len;
            memset(page_array, 0, bytes);
            memrange_remove(&usable, start, start + bytes);
            return 0;
        }
    }
    log_error("mm: no range of %lu contiguous bytes for the page array", bytes);
    return -ENOMEM;
}

int mm_init(const struct boot_info *boot)
{
    usable.count = 0;
    int err = find_usable(boot);
    if (err != 0) {
        return err;
    }
    u64 bytes = memrange_bytes(&usable);
    if (bytes < MEM_MIN_BYTES) {
        log_error("mm: %lu KiB of RAM are usable, at least %llu KiB are needed: give the guest "
                  "more memory",
                  bytes >> 10, MEM_MIN_BYTES >> 10);
        return -ENOMEM;
    }
    err = place_page_array();
    if (err != 0) {
        return err;
    }
    limits_init();
    pages_init();
    for (u32 i = 0; i < usable.count; i++) {
        pages_add_range(usable.r[i].start, (usable.r[i].end - usable.r[i].start) >> PAGE_SHIFT);
    }
    slab_init();
    err = kmalloc_init();
    if (err == 0) {
        arch_set_page_source(page_table_alloc, page_table_release);
        vspace_init();
        kstack_init();
        err = vm_init();
    }
    if (err == 0) {
        log_info("mm: %lu MiB of RAM usable in %u ranges", bytes >> 20, usable.count);
    }
    return err;
}
