/* Calls that make or change descriptors. */
#include "core/base/string.h"
#include "core/kern/file.h"
#include "core/kern/syscall.h"
#include "core/kern/time.h"

i64 sys_dup(struct kthread *k, const u64 *a)
{
    struct file *f = fd_get(k->proc, a[0]);
    if (!f) {
        return -EBADF;
    }
    int fd = fd_install(k->proc, f, 0, false);
    if (fd < 0) {
        file_put(f);
    }
    return fd;
}

static i64 dup_to(struct kthread *k, u64 from, u64 to, bool cloexec)
{
    struct file *f = fd_get(k->proc, from);
    if (!f) {
        return -EBADF;
    }
    i64 fd = to < FD_MAX ? fd_install_at(k->proc, f, (u32)to, cloexec) : -EBADF;
    if (fd < 0) {
        file_put(f);
    }
    return fd;
}

i64 sys_dup2(struct kthread *k, const u64 *a)
{
    if ((u32)a[0] != (u32)a[1]) {
        return dup_to(k, (u32)a[0], (u32)a[1], false);
    }
    struct file *f = fd_get(k->proc, (u32)a[0]);
    if (!f) {
        return -EBADF;
    }
    file_put(f);
    return (i64)a[1];
}

i64 sys_dup3(struct kthread *k, const u64 *a)
{
    if ((u32)a[0] == (u32)a[1] || (a[2] & ~(u64)O_CLOEXEC)) {
        return -EINVAL;
    }
    return dup_to(k, (u32)a[0], (u32)a[1], a[2] & O_CLOEXEC);
}

i64 sys_fcntl(struct kthread *k, const u64 *a)
{
    enum {
        F_DUPFD = 0,
        F_GETFD = 1,
        F_SETFD = 2,
        F_GETFL = 3,
        F_SETFL = 4,
        F_DUPFD_CLOEXEC = 1030,
    };
    struct file *f = fd_get(k->proc, a[0]);
    i64 result = 0;
    if (!f) {
        return -EBADF;
    }
    switch ((u32)a[1]) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
        result = a[2] >= FD_MAX ? -EINVAL
                                : fd_install(k->proc, f, (u32)a[2], a[1] == F_DUPFD_CLOEXEC);
        if (result >= 0) {
            return result; /* the reference is the new descriptor's */
        }
        break;
    case F_GETFD:
        result = fd_get_cloexec(k->proc, (u32)a[0]);
        break;
    case F_SETFD:
        fd_set_cloexec(k->proc, (u32)a[0], a[2] & 1);
        break;
    case F_GETFL:
        result = READ_ONCE(f->flags);
        break;
    case F_SETFL: {
        u32 settable = O_NONBLOCK | O_APPEND;
        WRITE_ONCE(f->flags, (f->flags & ~settable) | ((u32)a[2] & settable));
        break;
    }
    default:
        result = -EINVAL; /* locks, leases, owners */
    }
    file_put(f);
    return result;
}

i64 sys_pipe2(struct kthread *k, const u64 *a)
{
    struct file *ends[2];
    i32 fds[2];
    if (a[1] & ~(u64)(O_CLOEXEC | O_NONBLOCK)) {
        return -EINVAL;
    }
    i64 error = pipe_create((u32)a[1], ends);
    if (error < 0) {
        return error;
    }
    bool cloexec = a[1] & O_CLOEXEC;
    fds[0] = fd_install(k->proc, ends[0], 0, cloexec);
    if (fds[0] < 0) {
        file_put(ends[0]);
        file_put(ends[1]);
        return fds[0];
    }
    fds[1] = fd_install(k->proc, ends[1], 0, cloexec);
    if (fds[1] < 0) {
        fd_close(k->proc, (u32)fds[0]);
        file_put(ends[1]);
        return fds[1];
    }
    if (!arch_copy_to_app(a[0], fds, sizeof(fds))) {
        fd_close(k->proc, (u32)fds[0]);
        fd_close(k->proc, (u32)fds[1]);
        return -EFAULT;
    }
    return 0;
}

i64 sys_pipe(struct kthread *k, const u64 *a)
{
    const u64 args[2] = { a[0], 0 };
    return sys_pipe2(k, args);
}

/* A descriptor for a file just made; NULL: there was no memory. */
static i64 install_new(struct kthread *k, struct file *f, bool cloexec)
{
    if (!f) {
        return -ENOMEM;
    }
    int fd = fd_install(k->proc, f, 0, cloexec);
    if (fd < 0) {
        file_put(f);
    }
    return fd;
}

i64 sys_eventfd2(struct kthread *k, const u64 *a)
{
    enum { EFD_SEMAPHORE = 1 };
    if (a[1] & ~(u64)(O_CLOEXEC | O_NONBLOCK | EFD_SEMAPHORE)) {
        return -EINVAL;
    }
    return install_new(k, eventfd_create((u32)a[0], a[1] & EFD_SEMAPHORE, (u32)a[1]),
                       a[1] & O_CLOEXEC);
}

i64 sys_eventfd(struct kthread *k, const u64 *a)
{
    const u64 args[2] = { a[0], 0 };
    return sys_eventfd2(k, args);
}

i64 sys_timerfd_create(struct kthread *k, const u64 *a)
{
    if (a[0] != CLOCK_REALTIME && a[0] != CLOCK_MONOTONIC && a[0] != CLOCK_BOOTTIME) {
        return -EINVAL;
    }
    if (a[1] & ~(u64)(O_CLOEXEC | O_NONBLOCK)) {
        return -EINVAL;
    }
    return install_new(k, timerfd_create((u32)a[0], (u32)a[1]), a[1] & O_CLOEXEC);
}

/* struct itimerspec: interval, then value. */
struct itimerspec64 {
    struct timespec64 interval, value;
};

static i64 store_setting(u64 addr, const u64 setting[2])
{
    i64 error = time_store(addr + offsetof(struct itimerspec64, value), setting[0]);
    return error ? error : time_store(addr, setting[1]);
}

i64 sys_timerfd_settime(struct kthread *k, const u64 *a)
{
    struct itimerspec64 spec;
    u64 value_ns, interval_ns, old[2];
    if (!arch_copy_from_app(&spec, a[2], sizeof(spec))) {
        return -EFAULT;
    }
    i64 error = time_to_ns(&spec.value, &value_ns);
    if (!error) {
        error = time_to_ns(&spec.interval, &interval_ns);
    }
    if (error) {
        return error;
    }
    struct file *f = fd_get(k->proc, a[0]);
    if (!f) {
        return -EBADF;
    }
    i64 result = timerfd_set(f, a[1], value_ns, interval_ns, old);
    file_put(f);
    return result == 0 && a[3] ? store_setting(a[3], old) : result;
}

i64 sys_timerfd_gettime(struct kthread *k, const u64 *a)
{
    u64 setting[2];
    struct file *f = fd_get(k->proc, a[0]);
    if (!f) {
        return -EBADF;
    }
    i64 result = timerfd_get(f, setting);
    file_put(f);
    return result == 0 ? store_setting(a[1], setting) : result;
}
