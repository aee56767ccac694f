/* Symbols of application files, for back traces and profiles: a linear search of .symtab, nothing is trusted. */
#include "core/base/string.h"
#include "core/kern/elf.h"
#include "core/kern/elf_format.h"

/* A section that lies wholly inside the file. */
static bool section_in_file(const struct elf_shdr *s, size_t size)
{
    return s->offset <= size && s->size <= size - s->offset;
}

static bool read_section(const u8 *data, size_t size, const struct elf_header *h, u32 i,
                         struct elf_shdr *out)
{
    if (h->shentsize != sizeof(*out) || i >= h->shnum || h->shoff > size ||
        h->shnum > (size - h->shoff) / sizeof(*out)) {
        return false;
    }
    memcpy(out, data + h->shoff + (u64)i * sizeof(*out), sizeof(*out));
    return section_in_file(out, size);
}

static bool find_tables(const u8 *data, size_t size, struct elf_shdr *symtab,
                        struct elf_shdr *strtab)
{
    struct elf_header h;
    if (size < sizeof(h)) {
        return false;
    }
    memcpy(&h, data, sizeof(h));
    for (u32 i = 0; i < h.shnum; i++) {
        if (!read_section(data, size, &h, i, symtab) || symtab->type != ELF_SHT_SYMTAB) {
            continue;
        }
        return symtab->entsize == sizeof(struct elf_sym) &&
               read_section(data, size, &h, symtab->link, strtab) && strtab->size > 0;
    }
    return false;
}

const char *elf_symbol(const void *file, size_t size, u64 addr, u64 *offset)
{
    const u8 *data = file;
    struct elf_shdr symtab, strtab;
    if (!data || !find_tables(data, size, &symtab, &strtab)) {
        return NULL;
    }
    const char *names = (const char *)data + strtab.offset;
    const char *best = NULL;
    u64 best_value = 0;
    for (u64 i = 0; i < symtab.size / sizeof(struct elf_sym); i++) {
        struct elf_sym sym;
        memcpy(&sym, data + symtab.offset + i * sizeof(sym), sizeof(sym));
        u32 type = sym.info & 15;
        if ((type != ELF_STT_FUNC && type != ELF_STT_NOTYPE) || sym.shndx == 0 ||
            sym.value > addr || sym.name == 0 || sym.name >= strtab.size ||
            (best && sym.value < best_value)) {
            continue;
        }
        if (type == ELF_STT_FUNC && sym.size > 0 && addr - sym.value >= sym.size) {
            continue;
        }
        u64 room = strtab.size - sym.name;
        if (strnlen(names + sym.name, room) == room || names[sym.name] == '\0') {
            continue;
        }
        best = names + sym.name;
        best_value = sym.value;
    }
    if (best) {
        *offset = addr - best_value;
    }
    return best;
}
