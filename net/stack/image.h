/* Loader of the lwIP image: maps one ELF image many times.
 *
 * lwIP keeps its state in globals, so every instance needs a copy of its own of these; but only of these.  The image is
 * position-independent and its only relocations are relative ones, which lie outside code and constants: so all
 * instances share the physical pages of code and constants, and each has private pages for what is written or relocated.
 *
 * Context: start-up, thread context.  Errors are negative errno values; a malformed image gives -EINVAL and a reason. */
#ifndef WEIR_NET_STACK_IMAGE_H
#define WEIR_NET_STACK_IMAGE_H

#include "core/base/types.h"
#include "net/stack/stack.h"

#define IMAGE_MAX_SEGMENTS 8
#define IMAGE_MAX_PRIVATE_PAGES 64

struct image_segment {
    u64 offset;    /* in the file */
    u64 vaddr;     /* relative to the load address, page-aligned like offset */
    u64 file_size;
    u64 mem_size;
    bool exec, write;
    bool private;  /* written or relocated: a copy per instance */
};

/* A validated image. */
struct image {
    const u8 *file;
    size_t size;
    u64 span;      /* bytes of address space, whole pages */
    u64 entry;     /* relative */
    u64 rela_offset, num_rela;
    u32 num_segments;
    struct image_segment segments[IMAGE_MAX_SEGMENTS];
    const char *error; /* why it was refused */
};

/* What the loader needs of the machine.  Host tests have their own. */
struct image_space {
    u64 (*reserve)(size_t bytes); /* address space, page-aligned; 0 if there is none */
    /* Maps pages of the file itself, read-only. */
    int (*map_shared)(u64 va, const void *from, size_t pages, bool exec);
    /* Maps one new zeroed page at va, writable or not; returns where the loader can write it now; NULL without memory. */
    void *(*map_private)(u64 va, bool write);
    /* All is written: private pages get their final protection. */
    void (*seal)(u64 va, bool write);
};

/* file: page-aligned (its pages are mapped). */
int image_parse(const void *file, size_t size, struct image *out);
/* Makes an instance; *ops_entry is its entry point. */
int image_load(const struct image *image, const struct image_space *space, u64 *base, stack_entry_fn *entry);

/* The kernel's image and address space: net/stack/image_kernel.c. */
int image_load_kernel(u64 *base, stack_entry_fn *entry);

#endif
