/* The initrd: one ELF file (then the file /app) or a newc cpio archive. Read-only, in the loader's memory. */
#ifndef WEIR_CORE_KERN_INITRD_H
#define WEIR_CORE_KERN_INITRD_H

#include "core/base/types.h"

struct initrd_file {
    const char *path; /* absolute, "/kv" */
    const void *data;
    u64 size;
    u32 mode; /* of the archive: type and permissions */
    u32 inode;
};

/* Takes over the image; logs one line if it is neither. -EINVAL, -ENOMEM; -ENOENT: empty. */
int initrd_init(const void *data, u64 size);
const struct initrd_file *initrd_find(const char *path);
/* The i-th file, NULL past the end. */
const struct initrd_file *initrd_at(u32 index);

/* One entry of a newc archive at *offset (moved on). 1: filled, 0: end, -1: damaged (*why says what). Pure. */
struct cpio_entry {
    const char *name; /* inside the archive, NUL-terminated */
    const void *data;
    u64 size;
    u32 mode;
};
int cpio_next(const void *archive, u64 size, u64 *offset, struct cpio_entry *out, const char **why);

#endif
