/* Socket calls: life, addresses, options. Messages: sys_sockmsg.c. */
#include "core/base/string.h"
#include "core/kern/sockcall.h"
#include "core/kern/syscall.h"
#include "core/kern/time.h"
#include "core/mm/mm.h"

#define SOCK_NONBLOCK O_NONBLOCK
#define SOCK_CLOEXEC O_CLOEXEC
#define SOCK_TYPE_MASK 0xfu
#define SOL_SOCKET 1
#define SO_RCVTIMEO 20
#define SO_SNDTIMEO 21
#define OPTION_MAX 64

/* Time-outs in the file's second word: receive in the upper, send in the lower half, in units of 1 us plus one; 0: none. */
#define TIMEO_MAX_US 0xfffffffeull

static u32 timeo_of(const struct file *f, bool sending)
{
    u64 both = READ_ONCE(f->priv2);
    return (u32)(sending ? both : both >> 32);
}

u64 socket_deadline(const struct file *f, bool sending)
{
    u32 timeo = timeo_of(f, sending);
    return timeo ? time_after((timeo - 1ull) * NSEC_PER_USEC) : NO_DEADLINE;
}

struct socket *socket_get(struct kthread *k, u64 fd, struct file **f, i64 *error)
{
    *f = fd_get(k->proc, fd);
    if (!*f) {
        *error = -EBADF;
        return NULL;
    }
    struct socket *s = file_socket(*f);
    if (!s) {
        file_put(*f);
        *error = -ENOTSOCK;
    }
    return s;
}

i64 sockaddr_load(struct net_addr *out, u64 addr, u64 len)
{
    if (len < 2 || len > 128) {
        return -EINVAL;
    }
    out->len = (u32)MIN(len, sizeof(out->bytes));
    return arch_copy_from_app(out->bytes, addr, out->len) ? 0 : -EFAULT;
}

i64 sockaddr_store(const struct net_addr *a, u64 addr, u64 len_addr)
{
    u32 room;
    if (!addr) {
        return 0;
    }
    if (!arch_copy_from_app(&room, len_addr, sizeof(room))) {
        return -EFAULT;
    }
    if ((i32)room < 0) {
        return -EINVAL;
    }
    return arch_copy_to_app(addr, a->bytes, MIN(room, a->len)) &&
                   arch_copy_to_app(len_addr, &a->len, sizeof(a->len))
               ? 0
               : -EFAULT;
}

static i64 install_socket(struct kthread *k, struct socket *s, u64 flags)
{
    struct file *f = socket_file_create(s, (u32)flags);
    if (!f) {
        socket_close(s);
        return -ENOMEM;
    }
    int fd = fd_install(k->proc, f, 0, flags & SOCK_CLOEXEC);
    if (fd < 0) {
        file_put(f);
    }
    return fd;
}

i64 sys_socket(struct kthread *k, const u64 *a)
{
    struct socket *s;
    u32 flags = (u32)a[1] & ~SOCK_TYPE_MASK;
    if (flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) {
        return -EINVAL;
    }
    if (!k->proc->net) {
        return -ENETDOWN;
    }
    int error = socket_create(k->proc->net, (int)a[0], (int)(a[1] & SOCK_TYPE_MASK), (int)a[2], &s);
    return error < 0 ? error : install_socket(k, s, flags);
}

i64 sys_bind(struct kthread *k, const u64 *a)
{
    struct net_addr addr;
    struct file *f;
    i64 result;
    struct socket *s = socket_get(k, a[0], &f, &result);
    if (!s) {
        return result;
    }
    result = sockaddr_load(&addr, a[1], (u32)a[2]);
    if (result == 0) {
        result = socket_bind(s, &addr);
    }
    file_put(f);
    return result;
}

i64 sys_listen(struct kthread *k, const u64 *a)
{
    struct file *f;
    i64 result;
    struct socket *s = socket_get(k, a[0], &f, &result);
    if (!s) {
        return result;
    }
    result = socket_listen(s, (int)a[1]);
    file_put(f);
    return result;
}

static i64 accept(struct kthread *k, struct file *f, struct socket *s, const u64 *a, u64 flags)
{
    struct net_addr peer;
    struct socket *fresh;
    u64 deadline_ns = socket_deadline(f, false);
    i64 result = socket_accept(s, file_nonblock(f) ? NET_NONBLOCK : 0, deadline_ns, &fresh, &peer);
    if (result < 0) {
        return socket_finish(f, result, 0, false);
    }
    result = sockaddr_store(&peer, a[1], a[2]);
    if (result < 0) {
        socket_close(fresh);
        return result;
    }
    return install_socket(k, fresh, flags);
}

i64 sys_accept4(struct kthread *k, const u64 *a)
{
    struct file *f;
    i64 result;
    if (a[3] & ~(u64)(SOCK_NONBLOCK | SOCK_CLOEXEC)) {
        return -EINVAL;
    }
    struct socket *s = socket_get(k, a[0], &f, &result);
    if (!s) {
        return result;
    }
    result = accept(k, f, s, a, a[3]);
    file_put(f);
    return result;
}

i64 sys_accept(struct kthread *k, const u64 *a)
{
    const u64 args[4] = { a[0], a[1], a[2], 0 };
    return sys_accept4(k, args);
}

i64 sys_connect(struct kthread *k, const u64 *a)
{
    struct net_addr addr;
    struct file *f;
    i64 result;
    struct socket *s = socket_get(k, a[0], &f, &result);
    if (!s) {
        return result;
    }
    result = sockaddr_load(&addr, a[1], (u32)a[2]);
    if (result == 0) {
        u64 deadline_ns = socket_deadline(f, true);
        result = socket_connect(s, &addr, file_nonblock(f) ? NET_NONBLOCK : 0, deadline_ns);
        if (result == -ETIMEDOUT && deadline_ns != NO_DEADLINE && arch_clock_ns() >= deadline_ns) {
            result = -EINPROGRESS; /* SO_SNDTIMEO ran out; the attempt goes on */
        }
    }
    file_put(f);
    return result;
}

static i64 get_name(struct kthread *k, const u64 *a,
                    int (*get)(struct socket *s, struct net_addr *out))
{
    struct net_addr addr;
    struct file *f;
    i64 result;
    struct socket *s = socket_get(k, a[0], &f, &result);
    if (!s) {
        return result;
    }
    result = get(s, &addr);
    file_put(f);
    if (result < 0) {
        return result;
    }
    return a[1] ? sockaddr_store(&addr, a[1], a[2]) : -EFAULT;
}

i64 sys_getsockname(struct kthread *k, const u64 *a)
{
    return get_name(k, a, socket_local_addr);
}

i64 sys_getpeername(struct kthread *k, const u64 *a)
{
    return get_name(k, a, socket_peer_addr);
}

i64 sys_shutdown(struct kthread *k, const u64 *a)
{
    struct file *f;
    i64 result;
    struct socket *s = socket_get(k, a[0], &f, &result);
    if (!s) {
        return result;
    }
    result = a[1] > 2 ? -EINVAL : socket_shutdown(s, (int)a[1]);
    file_put(f);
    return result;
}

struct timeval64 {
    i64 sec, usec;
};

static i64 set_timeo(struct file *f, bool sending, const u8 *value, u32 len)
{
    struct timeval64 tv;
    if (len < sizeof(tv)) {
        return -EINVAL;
    }
    memcpy(&tv, value, sizeof(tv));
    if (tv.usec < 0 || tv.usec >= 1000000) {
        return -EDOM;
    }
    u64 us = tv.sec < 0 ? 0 : (u64)MIN(tv.sec, (i64)TIMEO_MAX_US / 1000000) * 1000000 + (u64)tv.usec;
    u64 encoded = us == 0 ? 0 : MIN(us, TIMEO_MAX_US) + 1;
    spin_lock(&f->pos_lock);
    u64 keep = f->priv2 & (sending ? 0xffffffff00000000ull : 0xffffffffull);
    WRITE_ONCE(f->priv2, keep | (sending ? encoded : encoded << 32));
    spin_unlock(&f->pos_lock);
    return 0;
}

static bool is_timeo(int level, int name)
{
    return level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO);
}

i64 sys_setsockopt(struct kthread *k, const u64 *a)
{
    u8 value[OPTION_MAX] __aligned(8) = { 0 };
    struct file *f;
    i64 result;
    u32 len = (u32)a[4];
    if ((i32)len < 0) {
        return -EINVAL;
    }
    struct socket *s = socket_get(k, a[0], &f, &result);
    if (!s) {
        return result;
    }
    len = MIN(len, (u32)sizeof(value));
    if (!arch_copy_from_app(value, a[3], len)) {
        result = -EFAULT;
    } else if (is_timeo((int)a[1], (int)a[2])) {
        result = set_timeo(f, a[2] == SO_SNDTIMEO, value, len);
    } else {
        result = socket_set_option(s, (int)a[1], (int)a[2], value, len);
    }
    file_put(f);
    return result;
}

i64 sys_getsockopt(struct kthread *k, const u64 *a)
{
    u8 value[OPTION_MAX] __aligned(8) = { 0 };
    struct file *f;
    i64 result;
    u32 room;
    if (!arch_copy_from_app(&room, a[4], sizeof(room))) {
        return -EFAULT;
    }
    struct socket *s = socket_get(k, a[0], &f, &result);
    if (!s) {
        return result;
    }
    u32 len = MIN(room, (u32)sizeof(value));
    if ((i32)room < 0) {
        result = -EINVAL;
    } else if (is_timeo((int)a[1], (int)a[2])) {
        u64 us = timeo_of(f, a[2] == SO_SNDTIMEO);
        struct timeval64 tv = { (i64)((us ? us - 1 : 0) / 1000000), (i64)((us ? us - 1 : 0) % 1000000) };
        len = MIN(len, (u32)sizeof(tv));
        memcpy(value, &tv, sizeof(tv));
        result = 0;
    } else {
        result = socket_get_option(s, (int)a[1], (int)a[2], value, &len);
    }
    file_put(f);
    if (result < 0) {
        return result;
    }
    len = MIN(len, room);
    return arch_copy_to_app(a[3], value, len) && arch_copy_to_app(a[4], &len, sizeof(len)) ? 0
                                                                                          : -EFAULT;
}
