/* eventfd(2): a 64-bit counter with a file around it. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/kern/file.h"
#include "core/mm/mm.h"

#define COUNT_MAX (UINT64_MAX - 1)

struct eventfd {
    struct spinlock lock;
    u64 count;
    bool semaphore; /* reads take 1 instead of everything */
};

static struct lock_class eventfd_class = { .name = "eventfd", .rank = RANK_FILE };

static u32 eventfd_poll(struct file *f)
{
    u64 count = READ_ONCE(((struct eventfd *)f->priv)->count);
    u32 events = count > 0 ? POLLIN | POLLRDNORM : 0;
    return events | (count < COUNT_MAX ? POLLOUT | POLLWRNORM : 0) | (count == UINT64_MAX ? POLLERR : 0);
}

static i64 eventfd_read(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    struct eventfd *e = f->priv;
    struct io io = io_begin(buf);
    (void)pos;
    (void)flags;
    if (io_total(buf) < sizeof(u64)) {
        return -EINVAL;
    }
    for (;;) {
        spin_lock(&e->lock);
        u64 value = e->semaphore && e->count > 0 ? 1 : e->count;
        WRITE_ONCE(e->count, e->count - value);
        spin_unlock(&e->lock);
        if (value > 0) {
            file_notify(f, POLLOUT | POLLWRNORM, NULL);
            return io_put(&io, &value, sizeof(value));
        }
        int error = file_nonblock(f) ? -EAGAIN : file_wait(f, POLLIN, NO_DEADLINE, WAIT_POLL);
        if (error < 0) {
            return error;
        }
    }
}

static i64 eventfd_write(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    struct eventfd *e = f->priv;
    struct io io = io_begin(buf);
    u64 add;
    (void)pos;
    (void)flags;
    if (io_total(buf) < sizeof(u64)) {
        return -EINVAL;
    }
    if (io_take(&io, &add, sizeof(add)) != (i64)sizeof(add)) {
        return -EFAULT;
    }
    if (add == UINT64_MAX) {
        return -EINVAL;
    }
    for (;;) {
        spin_lock(&e->lock);
        bool fits = add <= COUNT_MAX - e->count;
        if (fits) {
            WRITE_ONCE(e->count, e->count + add);
        }
        spin_unlock(&e->lock);
        if (fits) {
            if (add > 0) {
                file_notify(f, POLLIN | POLLRDNORM, NULL);
            }
            return (i64)sizeof(add);
        }
        /* POLLOUT means room for 1: a larger sum may need several rounds. */
        int error = file_nonblock(f) ? -EAGAIN : file_wait(f, POLLOUT, NO_DEADLINE, WAIT_POLL);
        if (error < 0) {
            return error;
        }
        thread_yield();
    }
}

static void eventfd_release(struct file *f)
{
    kfree(f->priv);
}

static void eventfd_stat(struct file *f, struct file_stat *st)
{
    (void)f;
    *st = (struct file_stat){ .mode = 0600 };
}

static const struct file_ops eventfd_ops = {
    .name = "eventfd",
    .read = eventfd_read,
    .write = eventfd_write,
    .poll = eventfd_poll,
    .stat = eventfd_stat,
    .release = eventfd_release,
};

struct file *eventfd_create(u64 initial, bool semaphore, u32 flags)
{
    struct eventfd *e = kzalloc(sizeof(*e));
    if (!e) {
        return NULL;
    }
    spin_init(&e->lock, &eventfd_class);
    e->count = initial;
    e->semaphore = semaphore;
    struct file *f = file_create(&eventfd_ops, e, O_RDWR | (flags & O_NONBLOCK));
    if (!f) {
        kfree(e);
    }
    return f;
}
