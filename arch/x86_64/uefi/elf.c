/* The kernel's ELF file: checked before anything is taken from it. */
#include "arch/x86_64/uefi/loader.h"

#define ELF_MAGIC 0x464c457fu
#define ELF_CLASS_64 2
#define ELF_LITTLE_ENDIAN 1
#define ELF_MACHINE_X86_64 62
#define ELF_TYPE_EXEC 2
#define ELF_PT_LOAD 1
#define ELF_MAX_SEGMENTS 64

struct elf_header {
    uint32_t magic;
    uint8_t class;
    uint8_t data;
    uint8_t ident_rest[10];
    uint16_t type;
    uint16_t machine;
    uint32_t version;
    uint64_t entry;
    uint64_t phoff;
    uint64_t shoff;
    uint32_t flags;
    uint16_t ehsize;
    uint16_t phentsize;
    uint16_t phnum;
    uint16_t shentsize;
    uint16_t shnum;
    uint16_t shstrndx;
};

struct elf_segment {
    uint32_t type;
    uint32_t flags;
    uint64_t offset;
    uint64_t vaddr;
    uint64_t paddr;
    uint64_t filesz;
    uint64_t memsz;
    uint64_t align;
};

/* Copies program header i; the file may lie at any alignment. */
static struct elf_segment segment_at(struct blob file, const struct elf_header *header, uint32_t i)
{
    struct elf_segment segment;

    memcpy(&segment, file.data + header->phoff + (uint64_t)i * sizeof(segment), sizeof(segment));
    return segment;
}

static const char *check_header(struct blob file, struct elf_header *header)
{
    if (file.size < sizeof(*header))
        return "shorter than an ELF header";
    memcpy(header, file.data, sizeof(*header));
    if (header->magic != ELF_MAGIC)
        return "not an ELF file";
    if (header->class != ELF_CLASS_64 || header->data != ELF_LITTLE_ENDIAN || header->machine != ELF_MACHINE_X86_64)
        return "not for x86-64";
    if (header->type != ELF_TYPE_EXEC)
        return "not an executable";
    if (header->phentsize != sizeof(struct elf_segment) || header->phnum == 0 || header->phnum > ELF_MAX_SEGMENTS)
        return "bad program header table";
    if (header->phoff > file.size || file.size - header->phoff < header->phnum * sizeof(struct elf_segment))
        return "program headers lie outside the file";
    return NULL;
}

static const char *check_segment(struct blob file, const struct elf_segment *s)
{
    if (s->filesz > s->memsz)
        return "segment larger in the file than in memory";
    if (s->offset > file.size || file.size - s->offset < s->filesz)
        return "segment lies outside the file";
    if (s->memsz > LOADER_MAX_KERNEL || s->paddr >= LOADER_LIMIT_4G)
        return "segment too large or above 4 GiB";
    return NULL;
}

const char *elf_plan_kernel(struct blob file, struct elf_plan *plan)
{
    struct elf_header header;
    const char *wrong = check_header(file, &header);
    bool entry_found = false;

    if (wrong)
        return wrong;
    plan->phys_start = UINT64_MAX;
    plan->phys_end = 0;
    for (uint32_t i = 0; i < header.phnum; i++) {
        struct elf_segment s = segment_at(file, &header, i);

        if (s.type != ELF_PT_LOAD || s.memsz == 0)
            continue;
        wrong = check_segment(file, &s);
        if (wrong)
            return wrong;
        if (s.paddr < plan->phys_start)
            plan->phys_start = s.paddr;
        if (s.paddr + s.memsz > plan->phys_end)
            plan->phys_end = s.paddr + s.memsz;
        if (header.entry >= s.vaddr && header.entry - s.vaddr < s.memsz) {
            plan->entry_phys = header.entry - s.vaddr + s.paddr;
            entry_found = true;
        }
    }
    if (plan->phys_end == 0)
        return "nothing to load";
    if (!entry_found)
        return "entry point outside the segments";
    if (plan->phys_start % LOADER_LARGE_PAGE != 0)
        return "not aligned to 2 MiB";
    if (plan->phys_end - plan->phys_start > LOADER_MAX_KERNEL)
        return "larger than 64 MiB in memory";
    return NULL;
}

void elf_copy_segments(struct blob file, const struct elf_plan *plan, uint8_t *base)
{
    struct elf_header header;

    memcpy(&header, file.data, sizeof(header));
    memset(base, 0, plan->phys_end - plan->phys_start);
    for (uint32_t i = 0; i < header.phnum; i++) {
        struct elf_segment s = segment_at(file, &header, i);

        if (s.type == ELF_PT_LOAD)
            memcpy(base + (s.paddr - plan->phys_start), file.data + s.offset, s.filesz);
    }
}
