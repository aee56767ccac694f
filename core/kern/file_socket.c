/* Sockets as files. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/kern/file.h"
#include "core/kern/syscall.h"

/* What net/ calls under the instance's lock: passes the event on to poll and epoll. */
static void socket_event(void *arg, u32 events, struct wake_batch *batch)
{
    file_notify(arg, events, batch);
}

static u32 socket_flags(const struct file *f)
{
    return file_nonblock(f) ? NET_NONBLOCK : 0;
}

/* An interrupted call that moved nothing is made again after a handler with SA_RESTART. */
static i64 restartable(i64 result)
{
    return result == -EINTR ? -ERESTART : result;
}

static i64 socket_file_read(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    (void)pos;
    (void)flags;
    return restartable(socket_recv(f->priv, buf, socket_flags(f), NULL, NO_DEADLINE));
}

static i64 socket_file_write(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    (void)pos;
    (void)flags;
    return restartable(socket_send(f->priv, buf, socket_flags(f), NULL, NO_DEADLINE));
}

static u32 socket_file_poll(struct file *f)
{
    return socket_poll(f->priv);
}

#define FIONREAD 0x541bu

static i64 socket_file_ioctl(struct file *f, u64 request, u64 arg)
{
    if (request != FIONREAD) {
        return -ENOTTY;
    }
    i64 n = socket_bytes_readable(f->priv);
    u32 value = (u32)n;
    if (n < 0) {
        return n;
    }
    return arch_copy_to_app(arg, &value, sizeof(value)) ? 0 : -EFAULT;
}

static void socket_file_stat(struct file *f, struct file_stat *st)
{
    *st = (struct file_stat){ .inode = (u64)(uintptr_t)f->priv >> 4, .mode = S_IFSOCK | 0777 };
}

static void socket_file_release(struct file *f)
{
    socket_set_observer(f->priv, NULL, NULL);
    socket_close(f->priv);
}

static const struct file_ops socket_ops = {
    .name = "socket",
    .read = socket_file_read,
    .write = socket_file_write,
    .poll = socket_file_poll,
    .ioctl = socket_file_ioctl,
    .stat = socket_file_stat,
    .release = socket_file_release,
};

struct file *socket_file_create(struct socket *s, u32 flags)
{
    struct file *f = file_create(&socket_ops, s, O_RDWR | (flags & O_NONBLOCK));
    if (f) {
        socket_set_observer(s, socket_event, f);
    }
    return f;
}

struct socket *file_socket(struct file *f)
{
    return f->ops == &socket_ops ? f->priv : NULL;
}
