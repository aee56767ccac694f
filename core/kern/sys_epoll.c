/* epoll calls, and the set as a file. */
#include "core/kern/epoll.h"
#include "core/kern/signal.h"
#include "core/kern/syscall.h"
#include "core/kern/time.h"

static u32 epoll_file_poll(struct file *f)
{
    return epoll_is_ready(f->priv) ? POLLIN | POLLRDNORM : 0;
}

static void epoll_file_release(struct file *f)
{
    epoll_destroy(f->priv);
}

static const struct file_ops epoll_ops = {
    .name = "epoll",
    .poll = epoll_file_poll,
    .release = epoll_file_release,
};

struct epoll *file_epoll(const struct file *f)
{
    return f->ops == &epoll_ops ? f->priv : NULL;
}

i64 sys_epoll_create1(struct kthread *k, const u64 *a)
{
    if (a[0] & ~(u64)O_CLOEXEC) {
        return -EINVAL;
    }
    struct epoll *ep = epoll_create();
    struct file *f = ep ? file_create(&epoll_ops, ep, O_RDWR) : NULL;
    if (!f) {
        if (ep) {
            epoll_destroy(ep);
        }
        return -ENOMEM;
    }
    int fd = fd_install(k->proc, f, 0, a[0] & O_CLOEXEC);
    if (fd < 0) {
        file_put(f);
    }
    return fd;
}

i64 sys_epoll_create(struct kthread *k, const u64 *a)
{
    const u64 args[1] = { 0 };
    return (i32)a[0] <= 0 ? -EINVAL : sys_epoll_create1(k, args);
}

static i64 control(struct epoll *ep, u32 op, u32 fd, struct file *f, const struct epoll_event64 *event)
{
    enum { EPOLL_CTL_ADD = 1, EPOLL_CTL_DEL = 2, EPOLL_CTL_MOD = 3 };
    if (!f->ops->poll) {
        return -EPERM; /* always ready: Linux refuses regular files too */
    }
    if (file_epoll(f)) {
        return -EINVAL; /* sets inside sets: epoll.c */
    }
    switch (op) {
    case EPOLL_CTL_ADD:
        return epoll_add(ep, fd, f, event);
    case EPOLL_CTL_DEL:
        return epoll_remove(ep, fd, f);
    case EPOLL_CTL_MOD:
        return event->events & EPOLLEXCLUSIVE ? -EINVAL : epoll_modify(ep, fd, f, event);
    default:
        return -EINVAL;
    }
}

i64 sys_epoll_ctl(struct kthread *k, const u64 *a)
{
    enum { DEL = 2 };
    struct epoll_event64 event = { 0, 0 };
    if (a[1] != DEL && !arch_copy_from_app(&event, a[3], sizeof(event))) {
        return -EFAULT;
    }
    struct file *set = fd_get(k->proc, a[0]);
    struct file *f = fd_get(k->proc, a[2]);
    i64 result = -EBADF;
    if (set && f) {
        struct epoll *ep = file_epoll(set);
        result = ep ? control(ep, (u32)a[1], (u32)a[2], f, &event) : -EINVAL;
    }
    if (set) {
        file_put(set);
    }
    if (f) {
        file_put(f);
    }
    return result;
}

static i64 wait_for_events(struct epoll *ep, u64 addr, u32 max, u64 deadline_ns)
{
    struct waiter w;
    for (;;) {
        i64 n = epoll_is_ready(ep) ? epoll_collect(ep, addr, max) : 0;
        if (n != 0) {
            epoll_wake_next(ep);
            return n;
        }
        if (deadline_ns == 0) {
            return 0;
        }
        enum park_result r = PARK_WOKEN;
        waitq_enter(&ep->waiters, &w);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (!epoll_is_ready(ep)) {
            r = waitq_park(&w, deadline_ns, WAIT_POLL, (u64)(uintptr_t)ep);
        }
        waitq_leave(&ep->waiters, &w);
        if (r == PARK_TIMEOUT) {
            deadline_ns = 0; /* one last look */
        } else if (r == PARK_INTERRUPTED && signal_wait_ends()) {
            epoll_wake_next(ep); /* a wakeup meant for us must not be lost */
            return -EINTR;
        }
    }
}

static i64 do_wait(struct kthread *k, const u64 *a)
{
    i32 ms = (i32)a[3];
    u64 deadline_ns = ms < 0 ? NO_DEADLINE : ms == 0 ? 0 : time_after((u64)ms * NSEC_PER_MSEC);
    if ((i32)a[2] <= 0) {
        return -EINVAL;
    }
    struct file *f = fd_get(k->proc, a[0]);
    if (!f) {
        return -EBADF;
    }
    struct epoll *ep = file_epoll(f);
    i64 result = ep ? wait_for_events(ep, a[1], MIN((u32)a[2], (u32)EPOLL_BATCH), deadline_ns) : -EINVAL;
    file_put(f);
    return result;
}

i64 sys_epoll_wait(struct kthread *k, const u64 *a)
{
    return do_wait(k, a);
}

i64 sys_epoll_pwait(struct kthread *k, const u64 *a)
{
    u64 mask;
    if (!a[4]) {
        return do_wait(k, a);
    }
    if (a[5] != sizeof(mask)) {
        return -EINVAL;
    }
    if (!arch_copy_from_app(&mask, a[4], sizeof(mask))) {
        return -EFAULT;
    }
    signal_set_temporary_mask(k, mask);
    i64 result = do_wait(k, a);
    if (result != -EINTR) {
        signal_end_temporary_mask(k);
    }
    return result;
}
