/* The firmware's memory map as boot_info's ranges. */
#include "arch/x86_64/uefi/loader.h"

/* EFI_MEMORY_TYPE (UEFI 2.10, section 7.2). */
enum {
    EFI_RESERVED = 0,
    EFI_LOADER_CODE = 1,
    EFI_LOADER_DATA = 2,
    EFI_BOOT_CODE = 3,
    EFI_BOOT_DATA = 4,
    EFI_RUNTIME_CODE = 5,
    EFI_RUNTIME_DATA = 6,
    EFI_CONVENTIONAL = 7,
    EFI_UNUSABLE = 8,
    EFI_ACPI_RECLAIM = 9,
    EFI_ACPI_NVS = 10,
};

/* What the kernel may do with memory of a type; 0: not memory, or none of its business.  The loader's own memory is
 * free once the kernel has copied boot_info and left our page tables and stack, which it does first of all. */
static uint32_t boot_type(uint32_t efi_type)
{
    switch (efi_type) {
    case EFI_LOADER_CODE:
    case EFI_LOADER_DATA:
    case EFI_BOOT_CODE:
    case EFI_BOOT_DATA:
    case EFI_CONVENTIONAL:
        return BOOT_MEM_USABLE;
    case EFI_ACPI_RECLAIM:
    case EFI_ACPI_NVS:
        return BOOT_MEM_ACPI;
    case EFI_RESERVED:
    case EFI_RUNTIME_CODE:
    case EFI_RUNTIME_DATA:
    case EFI_UNUSABLE:
        return BOOT_MEM_RESERVED;
    default:
        return 0;
    }
}

/* Puts a range in its place by address, joined with the ones it touches.  False if there is no room. */
static bool insert(struct boot_info *info, uint64_t base, uint64_t size, uint32_t type)
{
    struct boot_range *r = info->ranges;
    uint32_t at = info->num_ranges;

    while (at > 0 && r[at - 1].base > base)
        at--;
    if (at > 0 && r[at - 1].type == type && r[at - 1].base + r[at - 1].size == base) {
        r[at - 1].size += size;
        if (at < info->num_ranges && r[at].type == type && base + size == r[at].base) {
            r[at - 1].size += r[at].size;
            info->num_ranges--;
            for (uint32_t i = at; i < info->num_ranges; i++)
                r[i] = r[i + 1];
        }
        return true;
    }
    if (at < info->num_ranges && r[at].type == type && base + size == r[at].base) {
        r[at].base = base;
        r[at].size += size;
        return true;
    }
    if (info->num_ranges == BOOT_MAX_RANGES)
        return false;
    for (uint32_t i = info->num_ranges; i > at; i--)
        r[i] = r[i - 1];
    r[at] = (struct boot_range){.base = base, .size = size, .type = type};
    info->num_ranges++;
    return true;
}

uint32_t memmap_to_ranges(const uint8_t *map, uint64_t bytes, uint64_t stride, struct boot_info *info)
{
    uint32_t lost = 0;

    info->num_ranges = 0;
    /* Usable memory last: should the ranges run out, memory is lost rather than taken from its owner. */
    for (uint32_t usable = 0; usable < 2; usable++) {
        for (uint64_t at = 0; at + stride <= bytes; at += stride) {
            /* EFI_MEMORY_DESCRIPTOR: type 0, base 8, (virtual 16), pages 24. */
            struct mem_descriptor d;
            uint32_t type;

            memcpy(&d.type, map + at, sizeof(d.type));
            memcpy(&d.base, map + at + 8, sizeof(d.base));
            memcpy(&d.pages, map + at + 24, sizeof(d.pages));
            type = boot_type(d.type);
            if (type == 0 || d.pages == 0 || (type == BOOT_MEM_USABLE) != (usable == 1))
                continue;
            if (!insert(info, d.base, d.pages * LOADER_PAGE_SIZE, type))
                lost++;
        }
    }
    return lost;
}
