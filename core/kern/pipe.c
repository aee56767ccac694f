/* Pipes: a ring of bytes between two files.
 *
 * Writes of at most PIPE_BUF bytes are atomic. The bytes move under the pipe's mutex, since application memory may fault
 * while they are copied; the ends tell each other by file_notify(). */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/kern/file.h"
#include "core/mm/mm.h"

#define PIPE_ATOMIC 4096u

struct pipe {
    struct mutex mutex; /* all below */
    char *data;
    u32 head, tail;     /* bytes taken and put since the start; tail - head are inside */
    struct spinlock ends_lock;    /* below */
    u32 ends;                     /* files that still refer to it */
    struct file *reader, *writer; /* NULL once closed */
};

static struct lock_class ends_class = { .name = "pipe_ends", .rank = RANK_FILE };

static u32 used(const struct pipe *p)
{
    return READ_ONCE(p->tail) - READ_ONCE(p->head);
}

/* The other end, if it is still there, hears of the events. */
static void notify_end(struct pipe *p, struct file **end, u32 events)
{
    spin_lock(&p->ends_lock);
    if (*end) {
        file_notify(*end, events, NULL);
    }
    spin_unlock(&p->ends_lock);
}

static u32 read_end_poll(struct file *f)
{
    struct pipe *p = f->priv;
    u32 events = used(p) > 0 ? POLLIN | POLLRDNORM : 0;
    return events | (READ_ONCE(p->writer) ? 0 : POLLHUP);
}

static u32 write_end_poll(struct file *f)
{
    struct pipe *p = f->priv;
    u32 events = PIPE_BYTES - used(p) >= PIPE_ATOMIC ? POLLOUT | POLLWRNORM : 0;
    return events | (READ_ONCE(p->reader) ? 0 : POLLERR);
}

static i64 take_bytes(struct pipe *p, struct io *io, size_t want)
{
    i64 done = 0;
    while (want > 0 && used(p) > 0) {
        u32 at = p->head % PIPE_BYTES;
        u32 part = MIN(used(p), PIPE_BYTES - at);
        i64 n = io_put(io, p->data + at, MIN((size_t)part, want));
        if (n <= 0) {
            return done > 0 ? done : n;
        }
        WRITE_ONCE(p->head, p->head + (u32)n);
        done += n;
        want -= (size_t)n;
    }
    return done;
}

static i64 pipe_read(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    struct pipe *p = f->priv;
    struct io io = io_begin(buf);
    size_t total = io_total(buf);
    (void)pos;
    (void)flags;
    if (total == 0) {
        return 0;
    }
    for (;;) {
        mutex_lock(&p->mutex);
        bool hangup = !READ_ONCE(p->writer); /* before the look at the bytes: its last bytes come first */
        i64 n = take_bytes(p, &io, total);
        mutex_unlock(&p->mutex);
        if (n != 0) {
            if (n > 0) {
                notify_end(p, &p->writer, POLLOUT | POLLWRNORM);
            }
            return n;
        }
        if (hangup) {
            return 0;
        }
        if (file_nonblock(f)) {
            return -EAGAIN;
        }
        int error = file_wait(f, POLLIN, NO_DEADLINE, WAIT_PIPE);
        if (error < 0) {
            return error;
        }
    }
}

static i64 put_bytes(struct pipe *p, struct io *io, size_t want)
{
    i64 done = 0;
    while (want > 0 && used(p) < PIPE_BYTES) {
        u32 at = p->tail % PIPE_BYTES;
        u32 part = MIN(PIPE_BYTES - used(p), PIPE_BYTES - at);
        i64 n = io_take(io, p->data + at, MIN((size_t)part, want));
        if (n <= 0) {
            return done > 0 ? done : n;
        }
        WRITE_ONCE(p->tail, p->tail + (u32)n);
        done += n;
        want -= (size_t)n;
    }
    return done;
}

/* Puts what fits, all or nothing for atomic sizes: bytes, 0: no room, negative errno. */
static i64 write_some(struct pipe *p, struct io *io, size_t left, size_t total)
{
    i64 n = 0;
    mutex_lock(&p->mutex);
    if (!READ_ONCE(p->reader)) {
        n = -EPIPE;
    } else if (total > PIPE_ATOMIC || PIPE_BYTES - used(p) >= left) {
        n = put_bytes(p, io, left);
    }
    mutex_unlock(&p->mutex);
    return n;
}

static i64 pipe_write(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    struct pipe *p = f->priv;
    struct io io = io_begin(buf);
    size_t total = io_total(buf), done = 0;
    (void)pos;
    (void)flags;
    while (done < total) {
        i64 n = write_some(p, &io, total - done, total);
        if (n > 0) {
            done += (size_t)n;
            notify_end(p, &p->reader, POLLIN | POLLRDNORM);
            continue;
        }
        if (n < 0) {
            return done > 0 ? (i64)done : n;
        }
        int error = file_nonblock(f) ? -EAGAIN : file_wait(f, POLLOUT, NO_DEADLINE, WAIT_PIPE);
        if (error < 0) {
            return done > 0 ? (i64)done : error;
        }
    }
    return (i64)done;
}

static void pipe_release(struct file *f)
{
    struct pipe *p = f->priv;
    bool reader = (f->flags & O_ACCMODE) == O_RDONLY;
    spin_lock(&p->ends_lock);
    WRITE_ONCE(*(reader ? &p->reader : &p->writer), NULL);
    u32 left = --p->ends;
    spin_unlock(&p->ends_lock);
    if (left == 0) {
        kfree(p->data);
        kfree(p);
    } else if (reader) {
        notify_end(p, &p->writer, POLLERR | POLLOUT | POLLWRNORM);
    } else {
        notify_end(p, &p->reader, POLLHUP | POLLIN | POLLRDNORM);
    }
}

#define FIONREAD 0x541bu

static i64 pipe_ioctl(struct file *f, u64 request, u64 arg)
{
    u32 n = used(f->priv);
    if (request != FIONREAD) {
        return -ENOTTY;
    }
    return arch_copy_to_app(arg, &n, sizeof(n)) ? 0 : -EFAULT;
}

static void pipe_stat(struct file *f, struct file_stat *st)
{
    *st = (struct file_stat){ .inode = (u64)(uintptr_t)f->priv >> 4, .mode = S_IFIFO | 0600 };
}

static const struct file_ops read_ops = {
    .name = "pipe",
    .read = pipe_read,
    .poll = read_end_poll,
    .ioctl = pipe_ioctl,
    .stat = pipe_stat,
    .release = pipe_release,
};
static const struct file_ops write_ops = {
    .name = "pipe",
    .write = pipe_write,
    .poll = write_end_poll,
    .ioctl = pipe_ioctl,
    .stat = pipe_stat,
    .release = pipe_release,
};

i64 pipe_create(u32 flags, struct file *ends[2])
{
    struct pipe *p = kzalloc(sizeof(*p));
    char *data = kmalloc(PIPE_BYTES);
    if (p) {
        mutex_init(&p->mutex);
        spin_init(&p->ends_lock, &ends_class);
    }
    struct file *reader = p && data ? file_create(&read_ops, p, O_RDONLY | (flags & O_NONBLOCK)) : NULL;
    struct file *writer = reader ? file_create(&write_ops, p, O_WRONLY | (flags & O_NONBLOCK)) : NULL;
    if (!writer) {
        if (reader) {
            /* Its release would free what is freed here. */
            p->ends = 2;
            file_put(reader);
        }
        kfree(data);
        kfree(p);
        return -ENOMEM;
    }
    p->data = data;
    p->ends = 2;
    p->reader = reader;
    p->writer = writer;
    ends[0] = reader;
    ends[1] = writer;
    return 0;
}
