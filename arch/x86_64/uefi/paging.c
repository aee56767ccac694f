/* Identity-mapping page tables for the moment between firmware and kernel. */
#include "arch/x86_64/uefi/loader.h"

#define ENTRIES 512ull
#define PTE_PRESENT 1ull
#define PTE_WRITABLE 2ull
#define PTE_LARGE 0x80ull
#define PDPT_SPAN (ENTRIES * ENTRIES * LOADER_LARGE_PAGE) /* 512 GiB */
#define PD_SPAN (ENTRIES * LOADER_LARGE_PAGE)             /* 1 GiB */

static uint64_t divide_up(uint64_t value, uint64_t by)
{
    return (value + by - 1) / by;
}

uint64_t paging_table_bytes(uint64_t end)
{
    return (1 + divide_up(end, PDPT_SPAN) + divide_up(end, PD_SPAN)) * LOADER_PAGE_SIZE;
}

uint64_t paging_build(uint8_t *tables, uint64_t end)
{
    uint64_t pdpts = divide_up(end, PDPT_SPAN);
    uint64_t pds = divide_up(end, PD_SPAN);
    uint64_t *pml4 = (uint64_t *)(void *)tables;
    uint64_t *pdpt = pml4 + ENTRIES; /* all of them, one behind the other */
    uint64_t *pd = pdpt + pdpts * ENTRIES;

    memset(tables, 0, paging_table_bytes(end));
    for (uint64_t i = 0; i < pdpts; i++)
        pml4[i] = (uint64_t)(uintptr_t)(pdpt + i * ENTRIES) | PTE_PRESENT | PTE_WRITABLE;
    for (uint64_t i = 0; i < pds; i++)
        pdpt[i] = (uint64_t)(uintptr_t)(pd + i * ENTRIES) | PTE_PRESENT | PTE_WRITABLE;
    for (uint64_t i = 0; i < pds * ENTRIES; i++)
        pd[i] = i * LOADER_LARGE_PAGE | PTE_PRESENT | PTE_WRITABLE | PTE_LARGE;
    return (uint64_t)(uintptr_t)pml4;
}
