/* The loader's view of the kernel: address space above the kernel's, pages charged to the network. */
#include "arch/arch.h"
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/mm/mm.h"
#include "net/stack/image.h"

/* net/stack/blob.S */
extern const u8 stack_image_start[], stack_image_end[];

static u64 reserve(size_t bytes)
{
    return vspace_reserve(bytes);
}

/* The blob's pages lie in the kernel image, which need not be in the direct map's alias: ask the page tables. */
static int map_shared(u64 va, const void *from, size_t pages, bool exec)
{
    for (size_t i = 0; i < pages; i++) {
        paddr_t pa = arch_pt_lookup((u64)(uintptr_t)from + i * PAGE_SIZE);
        if (pa == 0) {
            return -EFAULT;
        }
        int error = arch_pt_map(va + i * PAGE_SIZE, pa, 1, ARCH_PROT_READ | (exec ? ARCH_PROT_EXEC : 0));
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

/* Written through the direct map, so that the instance's own mapping has its final protection from the start. */
static void *map_private(u64 va, bool write)
{
    paddr_t pa = page_alloc_zeroed(0, MEM_NET);
    if (pa == 0 || arch_pt_map(va, pa, 1, ARCH_PROT_READ | (write ? ARCH_PROT_WRITE : 0)) != 0) {
        return NULL;
    }
    return phys_to_virt(pa);
}

static void seal(u64 va, bool write)
{
    (void)va;
    (void)write;
}

int image_load_kernel(u64 *base, stack_entry_fn *entry)
{
    static const struct image_space space = { reserve, map_shared, map_private, seal };
    struct image image;
    int error = image_parse(stack_image_start, (size_t)(stack_image_end - stack_image_start), &image);
    if (error != 0) {
        log_error("net: the lwIP image is refused: %s", image.error);
        return error;
    }
    return image_load(&image, &space, base, entry);
}
