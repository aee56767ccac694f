/* read, write and their kin. */
#include "core/base/log.h"
#include "core/kern/file.h"
#include "core/kern/signal.h"
#include "core/kern/syscall.h"
#include "core/mm/mm.h"

static i64 run_read(struct file *f, const struct net_buf *buf, u64 *pos)
{
    if ((f->flags & O_ACCMODE) == O_WRONLY) {
        return -EBADF;
    }
    return f->ops->read ? f->ops->read(f, buf, pos, 0) : -EINVAL;
}

static i64 run_write(struct file *f, const struct net_buf *buf, u64 *pos)
{
    if ((f->flags & O_ACCMODE) == O_RDONLY) {
        return -EBADF;
    }
    if (!f->ops->write) {
        return -EINVAL;
    }
    i64 n = f->ops->write(f, buf, pos, 0);
    if (unlikely(n == -EPIPE)) {
        signal_self(SIGPIPE);
    }
    return n;
}

/* At the file's own position. Linux serialises callers by a lock that it holds over the transfer; here two threads that
 * read one regular file at once may read the same bytes, but the position never tears. */
static i64 at_position(struct file *f, const struct net_buf *buf, bool write)
{
    if (!f->ops->seekable) {
        return write ? run_write(f, buf, NULL) : run_read(f, buf, NULL);
    }
    spin_lock(&f->pos_lock);
    u64 pos = f->pos;
    spin_unlock(&f->pos_lock);
    i64 n = write ? run_write(f, buf, &pos) : run_read(f, buf, &pos);
    spin_lock(&f->pos_lock);
    f->pos = pos;
    spin_unlock(&f->pos_lock);
    return n;
}

static i64 single(struct kthread *k, u64 fd, u64 base, u64 len, bool write)
{
    struct file *f = fd_get(k->proc, fd);
    if (unlikely(!f)) {
        return -EBADF;
    }
    struct net_iov iov = { base, MIN(len, RW_MAX) };
    struct net_buf buf = { &iov, 1, false };
    i64 n = at_position(f, &buf, write);
    file_put(f);
    return n;
}

i64 sys_read(struct kthread *k, const u64 *a)
{
    return single(k, a[0], a[1], a[2], false);
}

i64 sys_write(struct kthread *k, const u64 *a)
{
    return single(k, a[0], a[1], a[2], true);
}

i64 iov_load(struct iov_list *l, u64 addr, u64 count)
{
    l->iov = l->fixed;
    if (count > IOV_MAX_PIECES) {
        return -EINVAL;
    }
    if (count > IOV_ON_STACK) {
        l->iov = kmalloc(sizeof(struct net_iov) * count);
        if (!l->iov) {
            return -ENOMEM;
        }
    }
    _Static_assert(sizeof(struct net_iov) == 16, "same layout as Linux's struct iovec");
    i64 result = arch_copy_from_app(l->iov, addr, sizeof(struct net_iov) * count) ? 0 : -EFAULT;
    u64 total = 0;
    for (u64 i = 0; result == 0 && i < count; i++) {
        if ((i64)l->iov[i].len < 0) {
            result = -EINVAL;
            break;
        }
        l->iov[i].len = MIN(l->iov[i].len, RW_MAX - total);
        total += l->iov[i].len;
    }
    if (result < 0) {
        iov_free(l);
        return result;
    }
    l->buf = (struct net_buf){ l->iov, count, false };
    return (i64)total;
}

void iov_free(struct iov_list *l)
{
    if (l->iov != l->fixed) {
        kfree(l->iov);
    }
}

static i64 vector(struct kthread *k, const u64 *a, const u64 *offset, bool write)
{
    struct file *f = fd_get(k->proc, a[0]);
    struct iov_list list;
    if (!f) {
        return -EBADF;
    }
    i64 n = iov_load(&list, a[1], a[2]);
    if (n >= 0) {
        if (!offset) {
            n = at_position(f, &list.buf, write);
        } else if (!f->ops->seekable) {
            n = -ESPIPE;
        } else {
            u64 pos = *offset;
            n = write ? run_write(f, &list.buf, &pos) : run_read(f, &list.buf, &pos);
        }
        iov_free(&list);
    }
    file_put(f);
    return n;
}

i64 sys_readv(struct kthread *k, const u64 *a)
{
    return vector(k, a, NULL, false);
}

i64 sys_writev(struct kthread *k, const u64 *a)
{
    return vector(k, a, NULL, true);
}

i64 sys_preadv(struct kthread *k, const u64 *a)
{
    return (i64)a[3] < 0 ? -EINVAL : vector(k, a, &a[3], false);
}

i64 sys_pwritev(struct kthread *k, const u64 *a)
{
    return (i64)a[3] < 0 ? -EINVAL : vector(k, a, &a[3], true);
}

static i64 positioned(struct kthread *k, const u64 *a, bool write)
{
    struct file *f = fd_get(k->proc, a[0]);
    if (!f) {
        return -EBADF;
    }
    struct net_iov iov = { a[1], MIN(a[2], RW_MAX) };
    struct net_buf buf = { &iov, 1, false };
    u64 pos = a[3];
    i64 n;
    if (!f->ops->seekable) {
        n = -ESPIPE;
    } else if ((i64)pos < 0) {
        n = -EINVAL;
    } else {
        n = write ? run_write(f, &buf, &pos) : run_read(f, &buf, &pos);
    }
    file_put(f);
    return n;
}

i64 sys_pread64(struct kthread *k, const u64 *a)
{
    return positioned(k, a, false);
}

i64 sys_pwrite64(struct kthread *k, const u64 *a)
{
    return positioned(k, a, true);
}

enum { SEEK_FROM_START, SEEK_FROM_HERE, SEEK_FROM_END };

static i64 seek(struct file *f, i64 offset, u64 whence)
{
    struct file_stat st = { 0 };
    if (!f->ops->seekable) {
        return -ESPIPE;
    }
    if (f->ops->stat) {
        f->ops->stat(f, &st);
    }
    spin_lock(&f->pos_lock);
    i64 base = whence == SEEK_FROM_HERE ? (i64)f->pos : whence == SEEK_FROM_END ? (i64)st.size : 0;
    i64 target;
    if (whence > SEEK_FROM_END || __builtin_add_overflow(base, offset, &target) || target < 0) {
        target = -EINVAL;
    } else {
        f->pos = (u64)target;
    }
    spin_unlock(&f->pos_lock);
    return target;
}

i64 sys_lseek(struct kthread *k, const u64 *a)
{
    struct file *f = fd_get(k->proc, a[0]);
    if (!f) {
        return -EBADF;
    }
    i64 result = seek(f, (i64)a[1], a[2]);
    file_put(f);
    return result;
}

#define FIONBIO 0x5421u
#define FIOCLEX 0x5451u
#define FIONCLEX 0x5450u

i64 sys_ioctl(struct kthread *k, const u64 *a)
{
    struct file *f = fd_get(k->proc, a[0]);
    u32 on;
    i64 result = 0;
    if (!f) {
        return -EBADF;
    }
    switch ((u32)a[1]) {
    case FIONBIO:
        if (!arch_copy_from_app(&on, a[2], sizeof(on))) {
            result = -EFAULT;
        } else if (on) {
            __atomic_fetch_or(&f->flags, O_NONBLOCK, __ATOMIC_RELAXED);
        } else {
            __atomic_fetch_and(&f->flags, ~O_NONBLOCK, __ATOMIC_RELAXED);
        }
        break;
    case FIOCLEX:
    case FIONCLEX:
        fd_set_cloexec(k->proc, (u32)a[0], (u32)a[1] == FIOCLEX);
        break;
    default:
        result = f->ops->ioctl ? f->ops->ioctl(f, (u32)a[1], a[2]) : -ENOTTY;
    }
    file_put(f);
    return result;
}

#define SENDFILE_CHUNK 4096

static i64 send_chunks(struct file *out, struct file *in, u64 *pos, u64 count, char *chunk)
{
    u64 done = 0;
    while (done < count) {
        struct net_iov iov = { (u64)(uintptr_t)chunk, MIN(count - done, (u64)SENDFILE_CHUNK) };
        struct net_buf buf = { &iov, 1, true };
        u64 start = *pos;
        i64 got = run_read(in, &buf, pos);
        if (got <= 0) {
            return done > 0 ? (i64)done : got;
        }
        iov.len = (size_t)got;
        i64 sent = at_position(out, &buf, true);
        if (sent < got) {
            *pos = start + (u64)MAX(sent, 0);
            done += (u64)MAX(sent, 0);
            return done > 0 ? (i64)done : sent;
        }
        done += (u64)sent;
    }
    return (i64)done;
}

/* sendfile(out, in, *offset, count): the input must be seekable. */
i64 sys_sendfile(struct kthread *k, const u64 *a)
{
    struct file *out = fd_get(k->proc, a[0]);
    struct file *in = fd_get(k->proc, a[1]);
    char *chunk = kmalloc(SENDFILE_CHUNK);
    u64 pos = 0;
    i64 result = 0;
    if (!out || !in) {
        result = -EBADF;
    } else if (!chunk) {
        result = -ENOMEM;
    } else if (!in->ops->seekable) {
        result = -EINVAL;
    } else if (a[2] && !arch_copy_from_app(&pos, a[2], sizeof(pos))) {
        result = -EFAULT;
    } else {
        pos = a[2] ? pos : in->pos;
        result = send_chunks(out, in, &pos, MIN(a[3], RW_MAX), chunk);
        if (!a[2]) {
            in->pos = pos;
        } else if (!arch_copy_to_app(a[2], &pos, sizeof(pos))) {
            result = -EFAULT;
        }
    }
    kfree(chunk);
    if (out) {
        file_put(out);
    }
    if (in) {
        file_put(in);
    }
    return result;
}
