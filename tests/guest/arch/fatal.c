/* What a kernel must not survive: each ends in a panic that run.py recognises. */
#include "tests/guest/arch/test.h"

#include "core/base/string.h"

extern char __kernel_start[];

static volatile u64 nowhere = 0x20; /* the compiler is not to know */

static void overflow(void)
{
    __asm__ volatile("1: pushq %rax\n\tjmp 1b");
}

void fatal(const char *what)
{
    static u8 data[64];
    if (strcmp(what, "null") == 0) {
        *(volatile u64 *)(uintptr_t)nowhere = 1;
    } else if (strcmp(what, "text") == 0) {
        *(volatile u64 *)(void *)__kernel_start = 1;
    } else if (strcmp(what, "alias") == 0) {
        *(volatile u64 *)phys_to_virt(arch_boot_info()->kernel_phys) = 1;
    } else if (strcmp(what, "jump") == 0) {
        ((void (*)(void))(uintptr_t)data)();
    } else if (strcmp(what, "call0") == 0) {
        ((void (*)(void))(uintptr_t)data[0])();
    } else if (strcmp(what, "stack") == 0) {
        overflow();
    } else if (strcmp(what, "ud2") == 0) {
        __asm__ volatile("ud2");
    } else if (strcmp(what, "app") == 0) {
        *(volatile u8 *)(uintptr_t)DEMAND_BASE =
            1; /* the application's memory, but not by arch_copy */
        *(volatile u8 *)(uintptr_t)(DEMAND_BASE + 14 * PAGE_SIZE) = 1;
    }
}
