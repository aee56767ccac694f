/* Kernel virtual space between DYNAMIC_MAP_BASE and DYNAMIC_MAP_END: handed out from the bottom,
 * never given back (32 TiB; stacks recycle their own slots). */
#include "core/base/log.h"
#include "core/mm/page.h"

static u64 vspace_next = DYNAMIC_MAP_BASE;

void vspace_init(void)
{
    WRITE_ONCE(vspace_next, DYNAMIC_MAP_BASE);
}

u64 vspace_reserve(size_t bytes)
{
    u64 len = ALIGN_UP((u64)bytes, PAGE_SIZE);
    u64 base = READ_ONCE(vspace_next);
    do {
        if (len == 0 || len > DYNAMIC_MAP_END - base) {
            log_error("mm: no kernel address space for %zu bytes", bytes);
            return 0;
        }
    } while (!__atomic_compare_exchange_n(&vspace_next, &base, base + len, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return base;
}
