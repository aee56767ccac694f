/* ELF files: validation (elf.c, pure), loading (elf_load.c), symbols (elf_sym.c, pure). */
#ifndef WEIR_CORE_KERN_ELF_H
#define WEIR_CORE_KERN_ELF_H

#include "core/base/types.h"
#include "core/kern/tunables.h"

struct elf_segment {
    u64 vaddr, mem_size, offset, file_size; /* bytes; not yet moved by the load bias */
    u32 prot;                               /* MM_* bits */
};

struct elf_image {
    bool relocatable; /* ET_DYN without interpreter: static-pie */
    u64 entry;
    u64 phdr;         /* address of the program headers, 0: not loaded */
    u32 phnum;
    u64 low, high;    /* page-aligned bounds of the segments */
    u64 tls_size;
    u64 stack_size;   /* from PT_GNU_STACK, 0: default */
    u32 num_segments;
    struct elf_segment segments[ELF_MAX_SEGMENTS];
};

/* Checks every field that loading relies on. NULL: fine, *out filled; else what is wrong with the file. */
const char *elf_check(const void *data, size_t size, u64 app_min, u64 app_max, struct elf_image *out);

/* Name of the function that holds addr (not moved); NULL if unknown or stripped. Never reads outside the file. */
const char *elf_symbol(const void *data, size_t size, u64 addr, u64 *offset);

#endif
