/* Calls on paths, and on what paths lead to. */
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/kern/syscall.h"
#include "core/kern/time.h"
#include "core/kern/vfs.h"
#include "core/mm/mm.h"

#define AT_FDCWD (-100)
#define AT_REMOVEDIR 0x200u
#define AT_EMPTY_PATH 0x1000u

static i64 load_path(char *path, u64 addr)
{
    i64 n = arch_copy_string_from_app(path, addr, PATH_BYTES);
    return n < 0 ? n : n == 0 ? -ENOENT : 0;
}

/* Relative paths are relative to "/", whatever the directory descriptor: only its validity is checked. */
static i64 load_path_at(struct kthread *k, char *path, u64 dirfd, u64 addr)
{
    i64 error = load_path(path, addr);
    if (error || path[0] == '/' || (i32)dirfd == AT_FDCWD) {
        return error;
    }
    struct file *f = fd_get(k->proc, (u32)dirfd);
    if (!f) {
        return -EBADF;
    }
    const char *dir = file_dir_path(f);
    char joined[2 * PATH_BYTES];
    i64 result = dir ? 0 : -ENOTDIR;
    if (dir) {
        str_format(joined, sizeof(joined), "%s/%s", dir, path);
        result = path_normalise(joined, path, PATH_BYTES);
    }
    file_put(f);
    return result;
}

static i64 open_path(struct kthread *k, const char *path, u32 flags, u32 mode)
{
    struct file *f;
    i64 error = vfs_open(k->proc, path, flags, mode & ~k->proc->umask, &f);
    if (error < 0) {
        return error;
    }
    int fd = fd_install(k->proc, f, 0, flags & O_CLOEXEC);
    if (fd < 0) {
        file_put(f);
    }
    return fd;
}

i64 sys_open(struct kthread *k, const u64 *a)
{
    char path[PATH_BYTES];
    i64 error = load_path(path, a[0]);
    return error ? error : open_path(k, path, (u32)a[1], (u32)a[2]);
}

i64 sys_openat(struct kthread *k, const u64 *a)
{
    char path[PATH_BYTES];
    i64 error = load_path_at(k, path, a[0], a[1]);
    return error ? error : open_path(k, path, (u32)a[2], (u32)a[3]);
}

i64 sys_close(struct kthread *k, const u64 *a)
{
    return fd_close(k->proc, a[0]);
}

i64 sys_close_range(struct kthread *k, const u64 *a)
{
    u64 last = MIN((u32)a[1], (u32)FD_MAX - 1);
    if ((u32)a[0] > (u32)a[1]) {
        return -EINVAL;
    }
    for (u64 fd = (u32)a[0]; fd <= last; fd++) {
        if (a[2] & 4) { /* CLOSE_RANGE_CLOEXEC */
            fd_set_cloexec(k->proc, (u32)fd, true);
        } else {
            fd_close(k->proc, fd);
        }
    }
    return 0;
}

/* Linux's struct stat on x86-64. */
struct stat64 {
    u64 dev, ino, nlink;
    u32 mode, uid, gid, pad;
    u64 rdev;
    i64 size, blksize, blocks;
    struct timespec64 atime, mtime, ctime;
    i64 unused[3];
};

static i64 store_stat(u64 addr, const struct file_stat *st)
{
    struct stat64 out = {
        .dev = 1,
        .ino = st->inode,
        .nlink = st->mode & S_IFDIR ? 2 : 1,
        .mode = st->mode,
        .rdev = st->rdev,
        .size = (i64)st->size,
        .blksize = (i64)PAGE_SIZE,
        .blocks = (i64)(ALIGN_UP(st->size, PAGE_SIZE) / 512),
    };
    out.atime.sec = out.mtime.sec = out.ctime.sec = (i64)(arch_wall_base_ns() / NSEC_PER_SEC);
    return arch_copy_to_app(addr, &out, sizeof(out)) ? 0 : -EFAULT;
}

i64 sys_stat(struct kthread *k, const u64 *a)
{
    char path[PATH_BYTES];
    struct file_stat st;
    i64 error = load_path(path, a[0]);
    if (!error) {
        error = vfs_stat(k->proc, path, &st);
    }
    return error ? error : store_stat(a[1], &st);
}

static i64 stat_fd(struct kthread *k, u64 fd, u64 addr)
{
    struct file_stat st = { 0 };
    struct file *f = fd_get(k->proc, fd);
    if (!f) {
        return -EBADF;
    }
    if (f->ops->stat) {
        f->ops->stat(f, &st);
    }
    file_put(f);
    return store_stat(addr, &st);
}

i64 sys_fstat(struct kthread *k, const u64 *a)
{
    return stat_fd(k, a[0], a[1]);
}

i64 sys_newfstatat(struct kthread *k, const u64 *a)
{
    char path[PATH_BYTES];
    struct file_stat st;
    i64 error = load_path_at(k, path, a[0], a[1]);
    if (error == -ENOENT && (a[3] & AT_EMPTY_PATH)) {
        return stat_fd(k, (u32)a[0], a[2]);
    }
    if (!error) {
        error = vfs_stat(k->proc, path, &st);
    }
    return error ? error : store_stat(a[2], &st);
}

static i64 check_access(struct kthread *k, const char *path, u64 mode)
{
    enum { WANT_EXECUTE = 1, WANT_WRITE = 2 };
    struct file_stat st;
    i64 error = vfs_stat(k->proc, path, &st);
    if (error) {
        return error;
    }
    if ((mode & WANT_WRITE) && !(st.mode & 0222)) {
        return -EROFS;
    }
    return (mode & WANT_EXECUTE) && !(st.mode & 0111) ? -EACCES : 0;
}

i64 sys_access(struct kthread *k, const u64 *a)
{
    char path[PATH_BYTES];
    i64 error = load_path(path, a[0]);
    return error ? error : check_access(k, path, a[1]);
}

i64 sys_faccessat(struct kthread *k, const u64 *a)
{
    char path[PATH_BYTES];
    i64 error = load_path_at(k, path, a[0], a[1]);
    return error ? error : check_access(k, path, a[2]);
}

/* The only symbolic link: /proc/self/exe. */
static i64 read_link(struct kthread *k, const char *path, u64 addr, u64 bytes)
{
    char full[PATH_BYTES];
    struct file_stat st;
    i64 error = path_normalise(path, full, sizeof(full));
    if (error) {
        return error;
    }
    if ((i64)bytes <= 0) {
        return -EINVAL;
    }
    if (strcmp(full, "/proc/self/exe") != 0) {
        error = vfs_stat(k->proc, full, &st);
        return error ? error : -EINVAL;
    }
    u64 n = MIN(strlen(k->proc->path), bytes);
    return arch_copy_to_app(addr, k->proc->path, n) ? (i64)n : -EFAULT;
}

i64 sys_readlink(struct kthread *k, const u64 *a)
{
    char path[PATH_BYTES];
    i64 error = load_path(path, a[0]);
    return error ? error : read_link(k, path, a[1], a[2]);
}

i64 sys_readlinkat(struct kthread *k, const u64 *a)
{
    char path[PATH_BYTES];
    i64 error = load_path_at(k, path, a[0], a[1]);
    return error ? error : read_link(k, path, a[2], a[3]);
}

i64 sys_unlink(struct kthread *k, const u64 *a)
{
    char path[PATH_BYTES];
    i64 error = load_path(path, a[0]);
    (void)k;
    return error ? error : vfs_unlink(path, false);
}

i64 sys_rmdir(struct kthread *k, const u64 *a)
{
    char path[PATH_BYTES];
    i64 error = load_path(path, a[0]);
    (void)k;
    return error ? error : vfs_unlink(path, true);
}

i64 sys_unlinkat(struct kthread *k, const u64 *a)
{
    char path[PATH_BYTES];
    i64 error = load_path_at(k, path, a[0], a[1]);
    return error ? error : vfs_unlink(path, a[2] & AT_REMOVEDIR);
}

i64 sys_rename(struct kthread *k, const u64 *a)
{
    char from[PATH_BYTES], to[PATH_BYTES];
    i64 error = load_path(from, a[0]);
    (void)k;
    if (!error) {
        error = load_path(to, a[1]);
    }
    return error ? error : vfs_rename(from, to);
}

i64 sys_mkdir(struct kthread *k, const u64 *a)
{
    char path[PATH_BYTES];
    i64 error = load_path(path, a[0]);
    return error ? error : vfs_mkdir(path, (u32)a[1] & ~k->proc->umask);
}

i64 sys_ftruncate(struct kthread *k, const u64 *a)
{
    struct file *f = fd_get(k->proc, a[0]);
    if (!f) {
        return -EBADF;
    }
    i64 result = -EINVAL;
    if ((i64)a[1] >= 0 && (f->flags & O_ACCMODE) != O_RDONLY && f->ops->truncate) {
        result = f->ops->truncate(f, a[1]);
    }
    file_put(f);
    return result;
}

/* Nothing is buffered below. */
i64 sys_fsync(struct kthread *k, const u64 *a)
{
    struct file *f = fd_get(k->proc, a[0]);
    if (!f) {
        return -EBADF;
    }
    i64 result = f->ops->seekable ? 0 : -EINVAL;
    file_put(f);
    return result;
}

i64 sys_getcwd(struct kthread *k, const u64 *a)
{
    (void)k;
    if (a[1] < 2) {
        return a[1] == 0 ? -EINVAL : -ERANGE;
    }
    return arch_copy_to_app(a[0], "/", 2) ? 2 : -EFAULT;
}

/* The working directory is "/" and stays it. */
i64 sys_chdir(struct kthread *k, const u64 *a)
{
    char path[PATH_BYTES], full[PATH_BYTES];
    struct file_stat st;
    i64 error = load_path(path, a[0]);
    if (!error) {
        error = path_normalise(path, full, sizeof(full));
    }
    if (!error) {
        error = vfs_stat(k->proc, full, &st);
    }
    if (error || strcmp(full, "/") == 0) {
        return error;
    }
    return st.mode & S_IFDIR ? -EACCES : -ENOTDIR;
}

i64 sys_umask(struct kthread *k, const u64 *a)
{
    u32 old = k->proc->umask;
    k->proc->umask = (u32)a[0] & 0777;
    return old;
}

/* ---- getdents64 ---- */

struct dents {
    u64 addr, room, used;
    u64 skip; /* entries already given */
    u64 index;
    char last[PATH_BYTES]; /* directories that exist as part of longer paths come once for each of these */
    i64 error;
};

#define DIRENT_NAME 19 /* offset of the name in struct linux_dirent64 */
#define DT_DIR 4
#define DT_REG 8

static void emit_dirent(const char *name, u64 inode, bool is_dir, void *arg)
{
    struct dents *d = arg;
    u8 entry[DIRENT_NAME + PATH_BYTES + 8] = { 0 };
    size_t len = strlen(name);
    u16 bytes = (u16)ALIGN_UP(DIRENT_NAME + len + 1, (size_t)8);
    u64 next = d->index + 1;
    if (strcmp(name, d->last) == 0) {
        return;
    }
    str_copy(d->last, name, sizeof(d->last));
    if (d->error || d->index++ < d->skip) {
        return;
    }
    if (bytes > d->room - d->used) {
        d->error = d->used > 0 ? 1 : -EINVAL; /* 1: the buffer is full */
        return;
    }
    memcpy(entry, &inode, 8);
    memcpy(entry + 8, &next, 8);
    memcpy(entry + 16, &bytes, 2);
    entry[18] = is_dir ? DT_DIR : DT_REG;
    memcpy(entry + DIRENT_NAME, name, len);
    if (!arch_copy_to_app(d->addr + d->used, entry, bytes)) {
        d->error = -EFAULT;
        return;
    }
    d->used += bytes;
    d->skip = d->index;
}

i64 sys_getdents64(struct kthread *k, const u64 *a)
{
    struct file *f = fd_get(k->proc, a[0]);
    if (!f) {
        return -EBADF;
    }
    const char *path = file_dir_path(f);
    struct dents d = { .addr = a[1], .room = (u32)a[2], .skip = f->pos };
    if (path) {
        dir_list(path, emit_dirent, &d);
        f->pos = d.skip;
    }
    file_put(f);
    return !path ? -ENOTDIR : d.error < 0 ? d.error : (i64)d.used;
}
