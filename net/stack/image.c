#include "net/stack/image.h"

#include "core/base/errno.h"
#include "core/base/param.h"
#include "core/base/string.h"

/* ---- ELF, as far as it is used (System V ABI, AMD64 supplement) ---- */

struct elf_header {
    u8 ident[16];
    u16 type, machine;
    u32 version;
    u64 entry, phoff, shoff;
    u32 flags;
    u16 ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};

struct elf_segment {
    u32 type, flags;
    u64 offset, vaddr, paddr, filesz, memsz, align;
};

struct elf_dynamic {
    i64 tag;
    u64 value;
};

struct elf_rela {
    u64 offset, info;
    i64 addend;
};

enum {
    ELF_DYN = 3, ELF_X86_64 = 62,
    SEGMENT_LOAD = 1, SEGMENT_DYNAMIC = 2,
    FLAG_EXEC = 1, FLAG_WRITE = 2,
    TAG_NULL = 0, TAG_RELA = 7, TAG_RELASZ = 8, TAG_RELAENT = 9, TAG_TEXTREL = 22,
    RELOC_RELATIVE = 8,
};
/* Nothing near this size is sensible: keeps sums of offsets and lengths far from overflow. */
#define MAX_IMAGE_BYTES (16ull << 20)

static int refuse(struct image *im, const char *why)
{
    im->error = why;
    return -EINVAL;
}

static bool in_file(const struct image *im, u64 offset, u64 bytes)
{
    return offset <= im->size && bytes <= im->size - offset;
}

/* The segment that holds all of [vaddr, vaddr + bytes) in memory; NULL if none does. */
static struct image_segment *segment_at(struct image *im, u64 vaddr, u64 bytes)
{
    for (u32 i = 0; i < im->num_segments; i++) {
        struct image_segment *s = &im->segments[i];
        if (vaddr >= s->vaddr && vaddr - s->vaddr <= s->mem_size && bytes <= s->mem_size - (vaddr - s->vaddr)) {
            return s;
        }
    }
    return NULL;
}

static int add_segment(struct image *im, const struct elf_segment *p)
{
    if (im->num_segments == IMAGE_MAX_SEGMENTS) {
        return refuse(im, "too many segments");
    }
    if (!in_file(im, p->offset, p->filesz) || p->filesz > p->memsz || p->memsz > MAX_IMAGE_BYTES ||
        p->vaddr > MAX_IMAGE_BYTES) {
        return refuse(im, "segment outside the file");
    }
    if (!IS_ALIGNED(p->offset, PAGE_SIZE) || !IS_ALIGNED(p->vaddr, PAGE_SIZE)) {
        return refuse(im, "segment not page-aligned");
    }
    if ((p->flags & FLAG_EXEC) != 0 && (p->flags & FLAG_WRITE) != 0) {
        return refuse(im, "segment both writable and executable");
    }
    if (p->vaddr < im->span) {
        return refuse(im, "segments overlap or are not in order");
    }
    im->segments[im->num_segments++] = (struct image_segment){
        .offset = p->offset,
        .vaddr = p->vaddr,
        .file_size = p->filesz,
        .mem_size = p->memsz,
        .exec = (p->flags & FLAG_EXEC) != 0,
        .write = (p->flags & FLAG_WRITE) != 0,
        .private = (p->flags & FLAG_WRITE) != 0 || p->filesz != p->memsz,
    };
    im->span = ALIGN_UP(p->vaddr + p->memsz, PAGE_SIZE);
    return 0;
}

static int parse_dynamic(struct image *im, const struct elf_segment *p)
{
    u64 rela = 0, bytes = 0, entry_bytes = sizeof(struct elf_rela);
    if (!in_file(im, p->offset, p->filesz)) {
        return refuse(im, "dynamic section outside the file");
    }
    for (u64 i = 0; i < p->filesz / sizeof(struct elf_dynamic); i++) {
        struct elf_dynamic d;
        memcpy(&d, im->file + p->offset + i * sizeof(d), sizeof(d));
        if (d.tag == TAG_NULL) {
            break;
        }
        switch (d.tag) {
        case TAG_RELA:
            rela = d.value;
            break;
        case TAG_RELASZ:
            bytes = d.value;
            break;
        case TAG_RELAENT:
            entry_bytes = d.value;
            break;
        case TAG_TEXTREL:
            return refuse(im, "relocations in code");
        }
    }
    if (bytes == 0) {
        return 0;
    }
    struct image_segment *s = segment_at(im, rela, bytes);
    if (s == NULL || entry_bytes != sizeof(struct elf_rela) || rela - s->vaddr + bytes > s->file_size) {
        return refuse(im, "relocation table outside the image");
    }
    im->rela_offset = s->offset + (rela - s->vaddr);
    im->num_rela = bytes / sizeof(struct elf_rela);
    return 0;
}

static struct elf_rela rela_at(const struct image *im, u64 index)
{
    struct elf_rela r;
    memcpy(&r, im->file + im->rela_offset + index * sizeof(r), sizeof(r));
    return r;
}

/* Every relocation must be one that we can apply; what is relocated becomes private. */
static int check_relocations(struct image *im)
{
    for (u64 i = 0; i < im->num_rela; i++) {
        struct elf_rela r = rela_at(im, i);
        if ((u32)r.info != RELOC_RELATIVE) {
            return refuse(im, "relocation other than a relative one");
        }
        struct image_segment *s = segment_at(im, r.offset, sizeof(u64));
        if (s == NULL || s->exec) {
            return refuse(im, "relocation outside the data");
        }
        if (!IS_ALIGNED(r.offset, sizeof(u64))) {
            return refuse(im, "relocation not aligned");
        }
        if (r.addend < 0 || (u64)r.addend > im->span) {
            return refuse(im, "relocation to outside the image");
        }
        s->private = true;
    }
    return 0;
}

static int check_sizes(struct image *im)
{
    u64 private_pages = 0;
    for (u32 i = 0; i < im->num_segments; i++) {
        if (im->segments[i].private) {
            private_pages += ALIGN_UP(im->segments[i].mem_size, PAGE_SIZE) / PAGE_SIZE;
        }
    }
    if (private_pages > IMAGE_MAX_PRIVATE_PAGES) {
        return refuse(im, "too much data");
    }
    struct image_segment *s = segment_at(im, im->entry, 1);
    if (s == NULL || !s->exec) {
        return refuse(im, "entry point outside the code");
    }
    return 0;
}

static struct elf_segment program_header(const struct image *im, const struct elf_header *h, u32 index)
{
    struct elf_segment p;
    memcpy(&p, im->file + h->phoff + (u64)index * sizeof(p), sizeof(p));
    return p;
}

int image_parse(const void *file, size_t size, struct image *out)
{
    static const u8 magic[7] = { 0x7f, 'E', 'L', 'F', 2, 1, 1 }; /* 64 bits, little endian, version 1 */
    struct elf_header h;
    *out = (struct image){ .file = file, .size = size };
    if (size < sizeof(h) || size > MAX_IMAGE_BYTES || !IS_ALIGNED((uintptr_t)file, PAGE_SIZE)) {
        return refuse(out, "bad size or alignment");
    }
    memcpy(&h, file, sizeof(h));
    if (memcmp(h.ident, magic, sizeof(magic)) != 0 || h.type != ELF_DYN || h.machine != ELF_X86_64 ||
        h.phentsize != sizeof(struct elf_segment) || h.phnum == 0 ||
        !in_file(out, h.phoff, (u64)h.phnum * sizeof(struct elf_segment))) {
        return refuse(out, "not a position-independent x86-64 ELF image");
    }
    out->entry = h.entry;
    int error = 0;
    for (u32 i = 0; i < h.phnum && error == 0; i++) {
        struct elf_segment p = program_header(out, &h, i);
        if (p.type == SEGMENT_LOAD && p.memsz != 0) {
            error = add_segment(out, &p);
        }
    }
    for (u32 i = 0; i < h.phnum && error == 0; i++) {
        struct elf_segment p = program_header(out, &h, i);
        if (p.type == SEGMENT_DYNAMIC) {
            error = parse_dynamic(out, &p);
        }
    }
    if (error == 0) {
        error = check_relocations(out);
    }
    return error != 0 ? error : check_sizes(out);
}

/* ---- making an instance ---- */

/* Where the loader can write a private page of the instance. */
struct alias {
    u64 vaddr;
    u8 *page;
    bool write;
};

struct loading {
    const struct image *im;
    const struct image_space *space;
    u64 base;
    u32 num_aliases;
    struct alias aliases[IMAGE_MAX_PRIVATE_PAGES];
};

static int load_private(struct loading *l, const struct image_segment *s)
{
    for (u64 at = 0; at < s->mem_size; at += PAGE_SIZE) {
        u8 *page = l->space->map_private(l->base + s->vaddr + at, s->write);
        if (page == NULL) {
            return -ENOMEM;
        }
        if (at < s->file_size) {
            memcpy(page, l->im->file + s->offset + at, MIN(s->file_size - at, PAGE_SIZE));
        }
        l->aliases[l->num_aliases++] = (struct alias){ s->vaddr + at, page, s->write };
    }
    return 0;
}

static void relocate(struct loading *l)
{
    for (u64 i = 0; i < l->im->num_rela; i++) {
        struct elf_rela r = rela_at(l->im, i);
        u64 value = l->base + (u64)r.addend;
        for (u32 a = 0; a < l->num_aliases; a++) {
            if (r.offset - l->aliases[a].vaddr < PAGE_SIZE) {
                memcpy(l->aliases[a].page + (r.offset - l->aliases[a].vaddr), &value, sizeof(value));
                break;
            }
        }
    }
}

int image_load(const struct image *image, const struct image_space *space, u64 *base, stack_entry_fn *entry)
{
    struct loading l = { .im = image, .space = space, .base = space->reserve(image->span) };
    if (l.base == 0) {
        return -ENOMEM;
    }
    for (u32 i = 0; i < image->num_segments; i++) {
        const struct image_segment *s = &image->segments[i];
        int error = s->private ? load_private(&l, s)
                               : space->map_shared(l.base + s->vaddr, image->file + s->offset,
                                                   ALIGN_UP(s->mem_size, PAGE_SIZE) / PAGE_SIZE, s->exec);
        if (error != 0) {
            return error;
        }
    }
    relocate(&l);
    for (u32 a = 0; a < l.num_aliases; a++) {
        space->seal(l.base + l.aliases[a].vaddr, l.aliases[a].write);
    }
    *base = l.base;
    *entry = (stack_entry_fn)(uintptr_t)(l.base + image->entry);
    return 0;
}
