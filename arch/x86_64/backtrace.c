/* Back traces by frame pointers.  Memory is read through the page tables and the direct map, so
 * nothing can fault, whatever the frame pointers hold and whatever other CPUs unmap meanwhile. */
#include "arch/x86_64/internal.h"

/* Interrupt stack to thread stack to application stack: the places where frames may lead to lower
 * addresses. */
#define MAX_STACK_CHANGES 3

static bool read_word(u64 va, u64 *value)
{
    if (!IS_ALIGNED(va, sizeof(u64))) {
        return false;
    }
    paddr_t pa = arch_pt_lookup(va);
    if (!pa || arch_pt_lookup(DIRECT_MAP_BASE + pa) != pa) {
        return false;
    }
    *value = READ_ONCE(*(const u64 *)phys_to_virt(pa));
    return true;
}

static bool canonical(u64 va)
{
    return va < BIT(47) || va >= ~0ull << 47;
}

size_t arch_backtrace(u64 fp, u64 *pcs, size_t max)
{
    size_t n = 0;
    u32 changes = 0;
    while (n < max) {
        u64 next, pc;
        if (!canonical(fp) || fp < APP_MIN || !read_word(fp, &next) ||
            !read_word(fp + sizeof(u64), &pc) || pc == 0) {
            break;
        }
        pcs[n++] = pc;
        if (next <= fp && ++changes > MAX_STACK_CHANGES) {
            break;
        }
        fp = next;
    }
    return n;
}
