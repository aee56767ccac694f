/* Devices: null, zero, full, random, urandom, console, tty. */
#include "core/base/errno.h"
#include "core/base/string.h"
#include "core/kern/random.h"
#include "core/kern/vfs.h"

#define CHUNK 256

static i64 null_read(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    (void)f;
    (void)buf;
    (void)pos;
    (void)flags;
    return 0;
}

static i64 null_write(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    (void)f;
    (void)pos;
    (void)flags;
    return (i64)io_total(buf);
}

static i64 zero_read(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    struct io io = io_begin(buf);
    (void)f;
    (void)pos;
    (void)flags;
    return io_put_zero(&io, io_total(buf));
}

static i64 full_write(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    (void)f;
    (void)buf;
    (void)pos;
    (void)flags;
    return -ENOSPC;
}

static i64 random_read(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    struct io io = io_begin(buf);
    size_t left = io_total(buf);
    u8 chunk[CHUNK];
    i64 done = 0;
    (void)f;
    (void)pos;
    (void)flags;
    while (left > 0) {
        size_t part = MIN(left, sizeof(chunk));
        random_bytes(chunk, part);
        i64 n = io_put(&io, chunk, part);
        if (n <= 0) {
            return done > 0 ? done : n;
        }
        done += n;
        left -= (size_t)n;
    }
    return done;
}

static void dev_file_stat(struct file *f, struct file_stat *st)
{
    *st = (struct file_stat){ .inode = 20 + f->priv2, .mode = S_IFCHR | 0666, .rdev = 1 << 8 | f->priv2 };
}

static const struct file_ops null_ops = {
    .name = "null", .read = null_read, .write = null_write, .stat = dev_file_stat };
static const struct file_ops zero_ops = {
    .name = "zero", .read = zero_read, .write = null_write, .stat = dev_file_stat };
static const struct file_ops full_ops = {
    .name = "full", .read = zero_read, .write = full_write, .stat = dev_file_stat };
static const struct file_ops random_ops = {
    .name = "random", .read = random_read, .write = null_write, .stat = dev_file_stat };

/* Minor numbers are Linux's. */
static const struct {
    const char *path;
    const struct file_ops *ops; /* NULL: the console */
    u32 minor;
} devices[] = {
    { "/dev/null", &null_ops, 3 },      { "/dev/zero", &zero_ops, 5 },
    { "/dev/full", &full_ops, 7 },      { "/dev/random", &random_ops, 8 },
    { "/dev/urandom", &random_ops, 9 }, { "/dev/console", NULL, 1 },
    { "/dev/stdout", NULL, 1 },         { "/dev/stderr", NULL, 1 },
};

i64 dev_open(const char *path, u32 flags, struct file **out)
{
    for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
        if (strcmp(path, devices[i].path) != 0) {
            continue;
        }
        *out = devices[i].ops ? file_create(devices[i].ops, NULL, flags) : console_file(flags);
        if (!*out) {
            return -ENOMEM;
        }
        (*out)->priv2 = devices[i].minor;
        return 0;
    }
    return flags & O_CREAT ? -EROFS : -ENOENT;
}

i64 dev_stat(const char *path, struct file_stat *st)
{
    for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
        if (strcmp(path, devices[i].path) == 0) {
            *st = (struct file_stat){ .inode = 20 + devices[i].minor, .mode = S_IFCHR | 0666,
                                      .rdev = 1 << 8 | devices[i].minor };
            return 0;
        }
    }
    return -ENOENT;
}

void dev_list(const char *dir, dir_emit emit, void *arg)
{
    char name[PATH_BYTES];
    bool deeper;
    for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
        if (path_child(dir, devices[i].path, name, &deeper)) {
            emit(name, 20 + devices[i].minor, deeper, arg);
        }
    }
}
