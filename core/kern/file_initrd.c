/* Files of the initrd as open files. */
#include "core/base/errno.h"
#include "core/base/string.h"
#include "core/kern/initrd.h"
#include "core/kern/vfs.h"

#define PERMISSIONS 07777u
#define MODE_TYPE 0170000u

static i64 initrd_read(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    const struct initrd_file *file = f->priv;
    (void)flags;
    return io_read_memory(buf, file->data, file->size, pos);
}

static void fill_stat(const struct initrd_file *file, struct file_stat *st)
{
    /* Nothing in the archive can be written. */
    *st = (struct file_stat){ .inode = file->inode, .size = file->size,
                              .mode = (file->mode & MODE_TYPE) | (file->mode & PERMISSIONS & ~0222u) };
}

static void initrd_file_stat(struct file *f, struct file_stat *st)
{
    fill_stat(f->priv, st);
}

static const struct file_ops initrd_ops = {
    .name = "initrd",
    .seekable = true,
    .read = initrd_read,
    .stat = initrd_file_stat,
};

i64 initrd_open(const char *path, u32 flags, struct file **out)
{
    const struct initrd_file *file = initrd_find(path);
    if (!file) {
        return flags & O_CREAT ? -EROFS : -ENOENT;
    }
    if ((flags & O_CREAT) && (flags & O_EXCL)) {
        return -EEXIST;
    }
    if ((flags & O_ACCMODE) != O_RDONLY) {
        return -EROFS;
    }
    /* The entry is never written through the file. */
    *out = file_create(&initrd_ops, (void *)(uintptr_t)file, flags);
    return *out ? 0 : -ENOMEM;
}

i64 initrd_stat(const char *path, struct file_stat *st)
{
    const struct initrd_file *file = initrd_find(path);
    if (!file) {
        return -ENOENT;
    }
    fill_stat(file, st);
    return 0;
}

void initrd_list(const char *dir, dir_emit emit, void *arg)
{
    char name[PATH_BYTES];
    const struct initrd_file *file;
    bool deeper;
    for (u32 i = 0; (file = initrd_at(i)) != NULL; i++) {
        if (path_child(dir, file->path, name, &deeper)) {
            emit(name, file->inode, deeper || (file->mode & MODE_TYPE) == S_IFDIR, arg);
        }
    }
}
