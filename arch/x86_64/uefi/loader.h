/* UEFI loader: an application of the firmware that places the kernel and enters it.
 *
 * DESIGN
 * The application (a PE file) carries three extra sections: `.weirknl` (the kernel's ELF file), `.weirapp` (the
 * application or archive) and `.weircmd` (the default command line).  A file `weir.app` or `weir.cmd` in the root of the
 * volume that the loader came from replaces its section; a command line given by whoever started the loader replaces
 * both.  Order of work: find these, place the kernel, build page tables, leave the firmware, enter the kernel.  All that
 * can fail comes before the firmware is left, so that every failure can be told on its console.
 *
 * Everything runs in one thread at the firmware's task level.  Errors: false or NULL after one line on the console.
 * Sources: UEFI 2.10 (chapters 4, 7, 9, 12, 37), Microsoft PE format, System V ABI for ELF. */
#ifndef WEIR_ARCH_UEFI_LOADER_H
#define WEIR_ARCH_UEFI_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/boot_info.h"

/* Exit code seen outside (isa-debug-exit) when the loader gives up; the kernel uses 0..127 with 101 for a panic. */
#define LOADER_EXIT_CODE 99

#define LOADER_PAGE_SIZE 4096ull
#define LOADER_LARGE_PAGE 0x200000ull /* 2 MiB: alignment of the kernel, unit of the page tables */
#define LOADER_LIMIT_4G 0x100000000ull /* the kernel must lie below */
/* A kernel larger than this in memory, or a command line or application larger than these, is a broken file. */
#define LOADER_MAX_KERNEL (64ull << 20)
#define LOADER_MAX_APP (1ull << 30)

/* A piece of memory. */
struct blob {
    const uint8_t *data; /* NULL: absent */
    uint64_t size;       /* bytes */
};

/* ---- elf.c: no firmware needed, tested on the host ---- */

struct elf_plan {
    uint64_t phys_start; /* lowest p_paddr, bytes */
    uint64_t phys_end;   /* end of the highest segment in memory */
    uint64_t entry_phys; /* physical address of the entry point if loaded at phys_start */
};
/* Checks a kernel's ELF file and tells where it wants to lie.  NULL if it is good, else what is wrong with it. */
const char *elf_plan_kernel(struct blob file, struct elf_plan *plan);
/* Copies the segments of a checked file to base (for phys_start) and clears the rest of the image. */
void elf_copy_segments(struct blob file, const struct elf_plan *plan, uint8_t *base);

/* ---- text.c: no firmware needed, tested on the host ---- */

/* Turns load options (UCS-2, `bytes` long, possibly binary rubbish of the boot manager) into a command line.  Returns
 * false if there is none in it.  Drops a leading name of a .efi file (a shell puts it there) and the `initrd=` word that
 * a firmware adds for Linux.  dst holds `max` bytes and is NUL-terminated. */
bool text_from_load_options(const uint16_t *options, uint64_t bytes, char *dst, size_t max);
/* Copies a command line from a file: up to the first NUL, line ends as blanks, no blanks at the end.  False if it is too
 * long or not text. */
bool text_from_file(struct blob file, char *dst, size_t max);

/* ---- memmap.c: no firmware needed, tested on the host ---- */

/* One descriptor of the firmware's memory map, as far as it matters here. */
struct mem_descriptor {
    uint32_t type; /* EFI_MEMORY_TYPE */
    uint32_t pad;
    uint64_t base; /* bytes */
    uint64_t pages;
};
/* Fills info->ranges from a memory map, sorted and merged.  Returns how many ranges did not fit (0 is good). */
uint32_t memmap_to_ranges(const uint8_t *map, uint64_t bytes, uint64_t stride, struct boot_info *info);

/* ---- pe.c: no firmware needed, tested on the host ---- */

/* A section of a PE image in memory, by name (at most 8 characters).  size is the section's virtual size. */
struct blob pe_section(const uint8_t *image, uint64_t image_size, const char *name);

/* ---- paging.c ---- */

/* Bytes of tables that identity-map [0, end); end in bytes. */
uint64_t paging_table_bytes(uint64_t end);
/* Fills them (2 MiB pages); returns the address of the top table.  tables: page-aligned, below 4 GiB. */
uint64_t paging_build(uint8_t *tables, uint64_t end);

/* ---- handoff.S ---- */

/* Interrupts off, page tables in, jump; the kernel's entry gets info in RDI. */
void loader_enter_kernel(uint64_t top_table, uint64_t entry, const struct boot_info *info) __attribute__((noreturn));

void *memcpy(void *dst, const void *src, size_t n);
void *memset(void *dst, int value, size_t n);

#endif
