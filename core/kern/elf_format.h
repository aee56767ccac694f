/* The parts of the ELF64 format that loading needs (System V gABI). */
#ifndef WEIR_CORE_KERN_ELF_FORMAT_H
#define WEIR_CORE_KERN_ELF_FORMAT_H

#include "core/base/types.h"

struct elf_header {
    u8 ident[16];
    u16 type, machine;
    u32 version;
    u64 entry, phoff, shoff;
    u32 flags;
    u16 ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};

struct elf_phdr {
    u32 type, flags;
    u64 offset, vaddr, paddr, filesz, memsz, align;
};

struct elf_shdr {
    u32 name, type;
    u64 flags, addr, offset, size;
    u32 link, info;
    u64 addralign, entsize;
};

struct elf_sym {
    u32 name;
    u8 info, other;
    u16 shndx;
    u64 value, size;
};

#define ELF_CLASS64 2
#define ELF_DATA_LITTLE 1
#define ELF_TYPE_EXEC 2
#define ELF_TYPE_DYN 3
#define ELF_MACHINE_X86_64 62

#define ELF_PT_LOAD 1u
#define ELF_PT_DYNAMIC 2u
#define ELF_PT_INTERP 3u
#define ELF_PT_PHDR 6u
#define ELF_PT_TLS 7u
#define ELF_PT_GNU_STACK 0x6474e551u

#define ELF_PF_X 1u
#define ELF_PF_W 2u
#define ELF_PF_R 4u

#define ELF_SHT_SYMTAB 2u
#define ELF_STT_FUNC 2u
#define ELF_STT_NOTYPE 0u

#endif
