/* Validation of ELF files. Pure: no memory is mapped, nothing is logged; unit tests and the fuzzer run it on the host. */
#include "core/base/string.h"
#include "core/kern/elf.h"
#include "core/kern/elf_format.h"
#include "core/base/param.h"

#define PROT_READ_BIT 1u
#define PROT_WRITE_BIT 2u
#define PROT_EXEC_BIT 4u

static const char *check_header(const struct elf_header *h, size_t size)
{
    static const u8 magic[4] = { 0x7f, 'E', 'L', 'F' };
    if (size < sizeof(*h)) {
        return "shorter than an ELF header";
    }
    if (memcmp(h->ident, magic, sizeof(magic)) != 0) {
        return "no ELF file";
    }
    if (h->ident[4] != ELF_CLASS64 || h->ident[5] != ELF_DATA_LITTLE) {
        return "not a 64-bit little-endian ELF file";
    }
    if (h->ident[6] != 1 || h->version != 1) {
        return "unknown ELF version";
    }
    if (h->machine != ELF_MACHINE_X86_64) {
        return "not built for x86-64";
    }
    if (h->type != ELF_TYPE_EXEC && h->type != ELF_TYPE_DYN) {
        return "no executable (object file, core dump?)";
    }
    if (h->phentsize != sizeof(struct elf_phdr)) {
        return "program headers of an unknown size";
    }
    if (h->phnum == 0) {
        return "no program headers";
    }
    if (h->phoff > size || h->phnum > (size - h->phoff) / sizeof(struct elf_phdr)) {
        return "program headers lie outside the file";
    }
    return NULL;
}

/* Program headers may be unaligned in the file. */
static struct elf_phdr read_phdr(const u8 *data, const struct elf_header *h, u32 i)
{
    struct elf_phdr ph;
    memcpy(&ph, data + h->phoff + (u64)i * sizeof(ph), sizeof(ph));
    return ph;
}

static const char *check_segment(const struct elf_phdr *ph, size_t size, u64 app_max)
{
    if (ph->filesz > ph->memsz) {
        return "a segment is larger in the file than in memory";
    }
    if (ph->offset > size || ph->filesz > size - ph->offset) {
        return "a segment lies outside the file (cut short?)";
    }
    if (ph->vaddr >= app_max || ph->memsz > app_max - ph->vaddr) {
        return "a segment lies outside the address space";
    }
    if ((ph->flags & ELF_PF_W) && (ph->flags & ELF_PF_X)) {
        return "a segment is both writable and executable";
    }
    if (ph->align > 1 && (ph->align & (ph->align - 1)) != 0) {
        return "a segment's alignment is no power of two";
    }
    if (((ph->vaddr ^ ph->offset) & (PAGE_SIZE - 1)) != 0) {
        return "a segment's address and file offset disagree within the page";
    }
    return NULL;
}

static const char *add_segment(const struct elf_phdr *ph, struct elf_image *out)
{
    if (out->num_segments == ELF_MAX_SEGMENTS) {
        return "too many segments";
    }
    if (out->num_segments > 0) {
        const struct elf_segment *last = &out->segments[out->num_segments - 1];
        u64 last_end = ALIGN_UP(last->vaddr + last->mem_size, PAGE_SIZE);
        if (ALIGN_DOWN(ph->vaddr, PAGE_SIZE) < last_end) {
            return "segments overlap or are out of order";
        }
    }
    u32 prot = 0;
    prot |= ph->flags & ELF_PF_R ? PROT_READ_BIT : 0;
    prot |= ph->flags & ELF_PF_W ? PROT_WRITE_BIT : 0;
    prot |= ph->flags & ELF_PF_X ? PROT_EXEC_BIT : 0;
    out->segments[out->num_segments++] =
        (struct elf_segment){ ph->vaddr, ph->memsz, ph->offset, ph->filesz, prot };
    return NULL;
}

static const char *read_phdrs(const u8 *data, size_t size, const struct elf_header *h, u64 app_max,
                              struct elf_image *out)
{
    for (u32 i = 0; i < h->phnum; i++) {
        struct elf_phdr ph = read_phdr(data, h, i);
        const char *why = NULL;
        switch (ph.type) {
        case ELF_PT_LOAD:
            if (ph.memsz == 0) {
                break;
            }
            why = check_segment(&ph, size, app_max);
            if (!why) {
                why = add_segment(&ph, out);
            }
            break;
        case ELF_PT_INTERP:
            why = "dynamically linked (wants an interpreter): link it with -static";
            break;
        case ELF_PT_TLS:
            if (ph.filesz > ph.memsz || ph.memsz > app_max) {
                why = "the TLS segment has an impossible size";
            }
            out->tls_size = ph.memsz;
            break;
        case ELF_PT_GNU_STACK:
            if (ph.flags & ELF_PF_X) {
                why = "asks for an executable stack";
            }
            out->stack_size = ph.memsz;
            break;
        default:
            break;
        }
        if (why) {
            return why;
        }
    }
    return out->num_segments == 0 ? "nothing to load" : NULL;
}

static bool address_in(const struct elf_segment *s, u64 addr, u64 bytes, bool in_file)
{
    u64 room = in_file ? s->file_size : s->mem_size;
    return addr >= s->vaddr && bytes <= room && addr - s->vaddr <= room - bytes;
}

/* The program headers are where the segment that holds their part of the file puts them. */
static u64 phdr_address(const struct elf_header *h, const struct elf_image *image)
{
    u64 bytes = (u64)h->phnum * sizeof(struct elf_phdr);
    for (u32 i = 0; i < image->num_segments; i++) {
        const struct elf_segment *s = &image->segments[i];
        if (h->phoff >= s->offset && bytes <= s->file_size &&
            h->phoff - s->offset <= s->file_size - bytes) {
            return s->vaddr + (h->phoff - s->offset);
        }
    }
    return 0;
}

const char *elf_check(const void *data, size_t size, u64 app_min, u64 app_max,
                      struct elf_image *out)
{
    struct elf_header h = { 0 };
    memset(out, 0, sizeof(*out));
    memcpy(&h, data, MIN(size, sizeof(h)));
    const char *why = check_header(&h, size);
    if (!why) {
        why = read_phdrs(data, size, &h, app_max, out);
    }
    if (why) {
        return why;
    }
    out->relocatable = h.type == ELF_TYPE_DYN;
    out->entry = h.entry;
    out->phnum = h.phnum;
    out->phdr = phdr_address(&h, out);
    const struct elf_segment *last = &out->segments[out->num_segments - 1];
    out->low = ALIGN_DOWN(out->segments[0].vaddr, PAGE_SIZE);
    out->high = ALIGN_UP(last->vaddr + last->mem_size, PAGE_SIZE);
    if (!out->relocatable && out->low < app_min) {
        return "a segment lies below the lowest address";
    }
    for (u32 i = 0; i < out->num_segments; i++) {
        if ((out->segments[i].prot & PROT_EXEC_BIT) &&
            address_in(&out->segments[i], h.entry, 1, true)) {
            return NULL;
        }
    }
    return "the entry point lies in no executable segment";
}
