/* Files of the initrd. Read-only after initrd_init(). */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/kern/file.h"
#include "core/kern/initrd.h"
#include "core/mm/mm.h"

#define FIRST_INODE 100u
#define MODE_TYPE 0170000u

static struct initrd_file *files;
static u32 num_files;

static int add_file(const char *name, const void *data, u64 size, u32 mode)
{
    char path[PATH_BYTES];
    if (path_normalise(name, path, sizeof(path)) < 0) {
        log_error("weir: initrd: a file name is longer than %d bytes", PATH_BYTES - 1);
        return -ENAMETOOLONG;
    }
    char *kept = kmalloc(strlen(path) + 1);
    if (!kept) {
        return -ENOMEM;
    }
    str_copy(kept, path, strlen(path) + 1);
    files[num_files] = (struct initrd_file){ kept, data, size, mode, FIRST_INODE + num_files };
    num_files++;
    return 0;
}

static int count_entries(const void *data, u64 size, u32 *count)
{
    struct cpio_entry entry;
    const char *why = NULL;
    u64 offset = 0;
    int result;
    *count = 0;
    while ((result = cpio_next(data, size, &offset, &entry, &why)) > 0) {
        (*count)++;
    }
    if (result < 0) {
        log_error("weir: initrd: damaged cpio archive: %s (near byte %lu)", why, offset);
        return -EINVAL;
    }
    return 0;
}

static int load_archive(const void *data, u64 size)
{
    u32 count;
    int error = count_entries(data, size, &count);
    if (error < 0) {
        return error;
    }
    files = kzalloc(sizeof(*files) * MAX(count, 1u));
    if (!files) {
        return -ENOMEM;
    }
    struct cpio_entry entry;
    const char *why = NULL;
    u64 offset = 0;
    while (cpio_next(data, size, &offset, &entry, &why) > 0) {
        u32 type = entry.mode & MODE_TYPE;
        if (type != S_IFREG && type != S_IFDIR) {
            log_warn("weir: initrd: %s is no file or directory: left out", entry.name);
            continue;
        }
        error = add_file(entry.name, entry.data, entry.size, entry.mode);
        if (error < 0) {
            return error;
        }
    }
    return 0;
}

int initrd_init(const void *data, u64 size)
{
    const char *bytes = data;
    if (size == 0) {
        return -ENOENT;
    }
    if (size >= 4 && memcmp(bytes, "\x7f" "ELF", 4) == 0) {
        files = kzalloc(sizeof(*files));
        return files ? add_file("/app", data, size, S_IFREG | 0755) : -ENOMEM;
    }
    if (size >= 5 && memcmp(bytes, "07070", 5) == 0) {
        return load_archive(data, size);
    }
    log_error("weir: initrd: neither an ELF file nor a newc cpio archive");
    return -EINVAL;
}

const struct initrd_file *initrd_find(const char *path)
{
    for (u32 i = 0; i < num_files; i++) {
        if (strcmp(files[i].path, path) == 0) {
            return &files[i];
        }
    }
    return NULL;
}

const struct initrd_file *initrd_at(u32 index)
{
    return index < num_files ? &files[index] : NULL;
}
