/* The console as a file: standard input is empty, output goes to the log's console as it is. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/kern/file.h"

#define CHUNK 512

static i64 console_read(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    (void)f;
    (void)buf;
    (void)pos;
    (void)flags;
    return 0;
}

static i64 console_write(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    struct io io = io_begin(buf);
    char chunk[CHUNK];
    i64 done = 0;
    (void)f;
    (void)pos;
    (void)flags;
    for (;;) {
        i64 n = io_take(&io, chunk, sizeof(chunk));
        if (n <= 0) {
            return done > 0 ? done : n;
        }
        log_raw(chunk, (size_t)n);
        done += n;
    }
}

static u32 console_poll(struct file *f)
{
    (void)f;
    return POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM;
}

static i64 console_ioctl(struct file *f, u64 request, u64 arg)
{
    (void)f;
    (void)request;
    (void)arg;
    /* Not a terminal: stdio buffers whole blocks of a pipe and lines of nothing. */
    return -ENOTTY;
}

static void console_stat(struct file *f, struct file_stat *st)
{
    (void)f;
    *st = (struct file_stat){ .inode = 3, .mode = S_IFCHR | 0620, .rdev = 5 << 8 | 1 };
}

static const struct file_ops console_ops = {
    .name = "console",
    .read = console_read,
    .write = console_write,
    .poll = console_poll,
    .ioctl = console_ioctl,
    .stat = console_stat,
};

struct file *console_file(u32 flags)
{
    return file_create(&console_ops, NULL, flags);
}
