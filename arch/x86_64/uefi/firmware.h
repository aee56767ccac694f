/* The loader's view of the firmware: console, files, memory.  Task level only, before ExitBootServices. */
#ifndef WEIR_ARCH_UEFI_FIRMWARE_H
#define WEIR_ARCH_UEFI_FIRMWARE_H

#include "arch/x86_64/uefi/loader.h"

#include <efi.h>

extern EFI_SYSTEM_TABLE *firmware;

/* Keeps the system table and looks at how the console works. */
void firmware_init(EFI_SYSTEM_TABLE *table);

/* One line "weir: error: what" on the firmware's console, and on the first serial port unless the firmware drives it
 * already; detail (may be NULL) and a status (0: none) are appended. */
void report_error(const char *what, const char *detail, EFI_STATUS status);
/* A line "weir: what" on the firmware's console alone. */
void report(const char *what, const char *detail);

/* Pages at an address below `limit` (0: anywhere); 0 if there are none. */
uint64_t allocate_pages(uint64_t pages, uint64_t limit);
/* Exactly these pages; false if they are taken. */
bool allocate_pages_at(uint64_t address, uint64_t pages);

/* A file in the root of the volume that the loader was started from, read into fresh pages.  present tells whether there
 * is one; false: there is one but it cannot be read (the reason is on the console). */
bool read_volume_file(EFI_LOADED_IMAGE *image, const char *name, uint64_t limit, struct blob *out, bool *present);

/* Physical address of the ACPI RSDP from the configuration table, 0 if there is none. */
uint64_t find_rsdp(void);
/* Random bytes from the RNG protocol; leaves dst alone if there is none. */
void gather_entropy(uint64_t *dst, size_t words);

/* Powers the machine off, with LOADER_EXIT_CODE where an emulator shows it. */
void power_off_failed(void) __attribute__((noreturn));

#endif
