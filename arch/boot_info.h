/* Loader -> kernel contract.
 *
 * Both loaders (the PVH entry inside the kernel and the UEFI application) end in the kernel's
 * 64-bit entry `kernel_entry64(const struct boot_info *)` with: long mode, paging on with at least
 * the first 4 GiB and all RAM that boot_info refers to identity-mapped, interrupts off, any GDT with
 * a flat 64-bit code segment.  The kernel copies boot_info at once; everything it points to must lie
 * in memory that `ranges` does not give as BOOT_MEM_USABLE or is covered by `reserved`. */
#ifndef WEIR_ARCH_BOOT_INFO_H
#define WEIR_ARCH_BOOT_INFO_H

#include <stdint.h>

#define BOOT_INFO_MAGIC 0x54424957u /* "WIBT", little endian */
#define BOOT_INFO_VERSION 1u
#define BOOT_MAX_RANGES 128
#define BOOT_MAX_CMDLINE 4096 /* bytes, with the terminating NUL */

enum boot_mem_type {
    BOOT_MEM_USABLE = 1, /* RAM, free once the kernel has taken over */
    BOOT_MEM_RESERVED = 2,
    BOOT_MEM_ACPI = 3, /* ACPI tables: RAM that must be kept while tables are in use */
};

struct boot_range {
    uint64_t base; /* physical, bytes */
    uint64_t size; /* bytes */
    uint32_t type; /* enum boot_mem_type */
    uint32_t pad;
};

enum boot_source {
    BOOT_FROM_PVH = 1,
    BOOT_FROM_UEFI = 2,
};

struct boot_info {
    uint32_t magic;
    uint32_t version;
    uint32_t source; /* enum boot_source */
    uint32_t num_ranges;
    uint64_t kernel_phys;      /* where the kernel's first byte lies, bytes */
    uint64_t kernel_size;      /* bytes, .bss included */
    uint64_t rsdp;             /* physical address of the ACPI RSDP, 0 if unknown */
    uint64_t initrd_phys;      /* application or cpio archive, 0 if none */
    uint64_t initrd_size;      /* bytes */
    uint64_t entropy[8];       /* from the firmware's RNG protocol; all zero if none */
    uint64_t boot_start_tsc;   /* TSC when the loader began */
    struct boot_range ranges[BOOT_MAX_RANGES];
    char cmdline[BOOT_MAX_CMDLINE]; /* NUL-terminated */
};

#endif
