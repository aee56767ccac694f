/* Maps the segments of a checked ELF image. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/kern/start.h"
#include "core/mm/mm.h"

/* Who holds the address that a program linked at a fixed place wants. */
static const char *occupant(u64 addr)
{
    u64 start, end;
    u32 prot;
    void *owner = NULL;
    if (mm_query(addr, &start, &end, &prot, &owner)) {
        for (u32 i = 0; i < MAX_PROCS; i++) {
            if (owner == &procs[i]) {
                return procs[i].path;
            }
        }
    }
    return "another mapping";
}

static int load_segment(struct proc *p, const struct initrd_file *file, const struct elf_segment *s)
{
    u64 start = ALIGN_DOWN(s->vaddr + p->load_bias, PAGE_SIZE);
    u64 end = ALIGN_UP(s->vaddr + p->load_bias + s->mem_size, PAGE_SIZE);
    i64 at = mm_map(start, end - start, MM_READ | MM_WRITE, MM_FIXED_NOREPLACE, p);
    if (at == -EEXIST) {
        log_error("weir: %s: address 0x%lx is taken by %s: link one of them with "
                  "-Wl,-Ttext-segment=ADDRESS",
                  file->path, start, occupant(start));
        return -EEXIST;
    }
    if (at < 0) {
        log_error("weir: %s: cannot map %lu bytes at 0x%lx: error %ld", file->path, end - start,
                  start, at);
        return (int)at;
    }
    if (!arch_copy_to_app(s->vaddr + p->load_bias, (const u8 *)file->data + s->offset,
                          s->file_size)) {
        log_error("weir: %s: no memory for its %lu bytes", file->path, s->file_size);
        return -ENOMEM;
    }
    return mm_protect(start, end - start, s->prot);
}

int elf_load(struct proc *p, const struct initrd_file *file, const struct elf_image *image)
{
    p->load_bias = 0;
    if (image->relocatable) {
        /* A free range of the right size; given back and taken again segment by segment. Only one process starts at a
         * time, so nobody comes between. */
        i64 base = mm_map(0, image->high - image->low, MM_READ, MM_NORESERVE, p);
        if (base < 0) {
            log_error("weir: %s: no room for %lu bytes", file->path, image->high - image->low);
            return (int)base;
        }
        mm_unmap((u64)base, image->high - image->low);
        p->load_bias = (u64)base - image->low;
    }
    for (u32 i = 0; i < image->num_segments; i++) {
        int error = load_segment(p, file, &image->segments[i]);
        if (error < 0) {
            return error;
        }
    }
    p->entry = image->entry + p->load_bias;
    p->phdr = image->phdr ? image->phdr + p->load_bias : 0;
    p->phnum = image->phnum;
    p->image_start = image->low + p->load_bias;
    p->image_end = image->high + p->load_bias;
    p->brk_start = p->brk_end = p->brk_mapped = p->image_end;
    return 0;
}
