/* Which part of the tree a path belongs to. */
#include "core/base/errno.h"
#include "core/base/string.h"
#include "core/kern/vfs.h"
#include "core/mm/mm.h"

static bool below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

bool path_child(const char *dir, const char *path, char *name, bool *deeper)
{
    size_t n = strlen(dir);
    n = n == 1 ? 0 : n; /* "/" */
    if (strncmp(path, dir, n) != 0 || path[n] != '/' || path[n + 1] == '\0') {
        return false;
    }
    const char *part = path + n + 1;
    size_t len = 0;
    while (part[len] && part[len] != '/') {
        len++;
    }
    if (len >= PATH_BYTES) {
        return false;
    }
    memcpy(name, part, len);
    name[len] = '\0';
    *deeper = part[len] == '/';
    return true;
}

/* ---- directories ---- */

struct dir_file {
    char path[PATH_BYTES];
};

static void count_entry(const char *name, u64 inode, bool is_dir, void *arg)
{
    (void)name;
    (void)inode;
    (void)is_dir;
    ++*(u32 *)arg;
}

void dir_list(const char *dir, dir_emit emit, void *arg)
{
    initrd_list(dir, emit, arg);
    tmp_list(dir, emit, arg);
    dev_list(dir, emit, arg);
    view_list(dir, emit, arg);
}

static bool is_directory(const char *path)
{
    struct file_stat st;
    if (strcmp(path, "/") == 0) {
        return true;
    }
    if (tmp_stat(path, &st) == 0 || initrd_stat(path, &st) == 0) {
        return (st.mode & S_IFDIR) != 0;
    }
    u32 entries = 0;
    dir_list(path, count_entry, &entries);
    return entries > 0;
}

static void dir_stat(struct file *f, struct file_stat *st)
{
    (void)f;
    *st = (struct file_stat){ .inode = 1, .mode = S_IFDIR | 0755 };
}

static void dir_release(struct file *f)
{
    kfree(f->priv);
}

static i64 dir_read(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    (void)f;
    (void)buf;
    (void)pos;
    (void)flags;
    return -EISDIR;
}

static const struct file_ops dir_ops = {
    .name = "directory",
    .seekable = true,
    .read = dir_read,
    .stat = dir_stat,
    .release = dir_release,
};

const char *file_dir_path(const struct file *f)
{
    return f->ops == &dir_ops ? ((struct dir_file *)f->priv)->path : NULL;
}

static i64 dir_open(const char *path, u32 flags, struct file **out)
{
    if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT)) {
        return -EISDIR;
    }
    struct dir_file *d = kmalloc(sizeof(*d));
    struct file *f = d ? file_create(&dir_ops, d, O_RDONLY) : NULL;
    if (!f) {
        kfree(d);
        return -ENOMEM;
    }
    str_copy(d->path, path, sizeof(d->path));
    *out = f;
    return 0;
}

/* ---- all parts ---- */

static i64 open_file(struct proc *p, const char *path, u32 flags, u32 mode, struct file **out)
{
    if (below(path, "/proc") || below(path, "/sys")) {
        return view_open(p, path, flags, out);
    }
    if (tmp_path(path)) {
        return tmp_open(path, flags, mode, out);
    }
    if (below(path, "/dev")) {
        return dev_open(path, flags, out);
    }
    return initrd_open(path, flags, out);
}

i64 vfs_open(struct proc *p, const char *path, u32 flags, u32 mode, struct file **out)
{
    char full[PATH_BYTES];
    i64 error = path_normalise(path, full, sizeof(full));
    if (error < 0) {
        return error;
    }
    if (is_directory(full)) {
        return dir_open(full, flags, out);
    }
    if (flags & O_DIRECTORY) {
        struct file_stat st;
        return vfs_stat(p, full, &st) == 0 ? -ENOTDIR : -ENOENT;
    }
    return open_file(p, full, flags, mode, out);
}

i64 vfs_stat(struct proc *p, const char *path, struct file_stat *st)
{
    char full[PATH_BYTES];
    i64 error = path_normalise(path, full, sizeof(full));
    (void)p;
    if (error < 0) {
        return error;
    }
    if (tmp_stat(full, st) == 0 || initrd_stat(full, st) == 0 || dev_stat(full, st) == 0 ||
        view_stat(full, st) == 0) {
        return 0;
    }
    if (is_directory(full)) {
        dir_stat(NULL, st);
        return 0;
    }
    return -ENOENT;
}

/* Only memory files can be changed. */
static i64 changeable(const char *path, char *full)
{
    i64 error = path_normalise(path, full, PATH_BYTES);
    if (error < 0) {
        return error;
    }
    if (tmp_path(full)) {
        return 0;
    }
    struct file_stat st;
    return vfs_stat(NULL, full, &st) == 0 || !is_directory(full) ? -EROFS : -EISDIR;
}

i64 vfs_unlink(const char *path, bool dir)
{
    char full[PATH_BYTES];
    i64 error = changeable(path, full);
    return error ? error : tmp_unlink(full, dir);
}

i64 vfs_mkdir(const char *path, u32 mode)
{
    char full[PATH_BYTES];
    i64 error = changeable(path, full);
    return error ? error : tmp_mkdir(full, mode);
}

i64 vfs_rename(const char *from, const char *to)
{
    char full_from[PATH_BYTES], full_to[PATH_BYTES];
    i64 error = changeable(from, full_from);
    if (!error) {
        error = changeable(to, full_to);
    }
    return error ? error : tmp_rename(full_from, full_to);
}
