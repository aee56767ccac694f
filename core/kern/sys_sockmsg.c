/* Sending and receiving on sockets. */
#include "core/kern/signal.h"
#include "core/kern/sockcall.h"
#include "core/kern/syscall.h"

#define MSG_OOB 0x1u
#define MSG_PEEK 0x2u
#define MSG_DONTWAIT 0x40u
#define MSG_WAITALL 0x100u
#define MSG_NOSIGNAL 0x4000u
#define MSG_MORE 0x8000u
#define MSG_ERRQUEUE 0x2000u

i64 socket_call_flags(const struct file *f, u64 msg_flags, u32 *out)
{
    u32 flags = file_nonblock(f) || (msg_flags & MSG_DONTWAIT) ? NET_NONBLOCK : 0;
    if (unlikely(msg_flags & (MSG_OOB | MSG_ERRQUEUE))) {
        return -EOPNOTSUPP;
    }
    flags |= msg_flags & MSG_PEEK ? NET_PEEK : 0;
    flags |= msg_flags & MSG_WAITALL ? NET_WAITALL : 0;
    flags |= msg_flags & MSG_MORE ? NET_MORE : 0;
    *out = flags;
    return 0;
}

i64 socket_finish(const struct file *f, i64 result, u64 msg_flags, bool sending)
{
    if (likely(result >= 0)) {
        return result;
    }
    switch (result) {
    case -EPIPE:
        if (sending && !(msg_flags & MSG_NOSIGNAL)) {
            signal_self(SIGPIPE);
        }
        return result;
    case -EINTR:
        /* With a time-out a restart would begin it anew: Linux gives EINTR too. */
        return socket_deadline(f, sending) == NO_DEADLINE ? -ERESTART : -EINTR;
    case -ETIMEDOUT:
        /* The time-out of the call, not of the connection. */
        return socket_deadline(f, sending) == NO_DEADLINE ? result : -EAGAIN;
    default:
        return result;
    }
}

i64 sys_sendto(struct kthread *k, const u64 *a)
{
    struct net_addr to;
    struct file *f;
    i64 result;
    u32 flags;
    struct socket *s = socket_get(k, a[0], &f, &result);
    if (unlikely(!s)) {
        return result;
    }
    struct net_iov iov = { a[1], MIN(a[2], RW_MAX) };
    struct net_buf buf = { &iov, 1, false };
    result = socket_call_flags(f, a[3], &flags);
    if (result == 0 && unlikely(a[4])) {
        result = sockaddr_load(&to, a[4], (u32)a[5]);
    }
    if (likely(result == 0)) {
        result = socket_send(s, &buf, flags, a[4] ? &to : NULL, socket_deadline(f, true));
        result = socket_finish(f, result, a[3], true);
    }
    file_put(f);
    return result;
}

i64 sys_recvfrom(struct kthread *k, const u64 *a)
{
    struct net_addr from = { .len = 0 };
    struct file *f;
    i64 result;
    u32 flags;
    struct socket *s = socket_get(k, a[0], &f, &result);
    if (unlikely(!s)) {
        return result;
    }
    struct net_iov iov = { a[1], MIN(a[2], RW_MAX) };
    struct net_buf buf = { &iov, 1, false };
    result = socket_call_flags(f, a[3], &flags);
    if (likely(result == 0)) {
        result = socket_recv(s, &buf, flags, a[4] ? &from : NULL, socket_deadline(f, false));
        result = socket_finish(f, result, a[3], false);
    }
    file_put(f);
    if (unlikely(a[4]) && result >= 0) {
        i64 error = sockaddr_store(&from, a[4], a[5]);
        result = error < 0 ? error : result;
    }
    return result;
}

/* Linux's struct msghdr. */
struct msghdr64 {
    u64 name;
    u32 name_len, pad;
    u64 iov, iov_len;
    u64 control, control_len;
    u32 flags, pad2;
};

static i64 send_message(struct file *f, struct socket *s, const struct msghdr64 *m, u64 msg_flags)
{
    struct iov_list list;
    struct net_addr to;
    u32 flags;
    i64 result = socket_call_flags(f, msg_flags, &flags);
    if (result == 0 && m->name) {
        result = sockaddr_load(&to, m->name, m->name_len);
    }
    if (result == 0) {
        result = iov_load(&list, m->iov, m->iov_len);
    }
    if (result < 0) {
        return result == -EINVAL && m->iov_len > IOV_MAX_PIECES ? -EMSGSIZE : result;
    }
    result = socket_send(s, &list.buf, flags, m->name ? &to : NULL, socket_deadline(f, true));
    iov_free(&list);
    return socket_finish(f, result, msg_flags, true);
}

i64 sys_sendmsg(struct kthread *k, const u64 *a)
{
    struct msghdr64 m;
    struct file *f;
    i64 result;
    struct socket *s = socket_get(k, a[0], &f, &result);
    if (!s) {
        return result;
    }
    /* Control messages are for things that are not here (descriptors, credentials). */
    if (!arch_copy_from_app(&m, a[1], sizeof(m))) {
        result = -EFAULT;
    } else {
        result = m.control_len ? -EOPNOTSUPP : send_message(f, s, &m, a[2]);
    }
    file_put(f);
    return result;
}

static i64 receive_message(struct file *f, struct socket *s, const struct msghdr64 *m, u64 msg_flags,
                           struct net_addr *from)
{
    struct iov_list list;
    u32 flags;
    i64 result = socket_call_flags(f, msg_flags, &flags);
    if (result == 0) {
        result = iov_load(&list, m->iov, m->iov_len);
    }
    if (result < 0) {
        return result == -EINVAL && m->iov_len > IOV_MAX_PIECES ? -EMSGSIZE : result;
    }
    result = socket_recv(s, &list.buf, flags, m->name ? from : NULL, socket_deadline(f, false));
    iov_free(&list);
    return socket_finish(f, result, msg_flags, false);
}

/* What recvmsg changes of the header: address, its length, no control messages, flags. */
static i64 store_header(u64 addr, struct msghdr64 *m, const struct net_addr *from)
{
    if (m->name && !arch_copy_to_app(m->name, from->bytes, MIN(from->len, m->name_len))) {
        return -EFAULT;
    }
    m->name_len = m->name ? from->len : 0;
    m->control_len = 0;
    m->flags = 0;
    return arch_copy_to_app(addr, m, sizeof(*m)) ? 0 : -EFAULT;
}

i64 sys_recvmsg(struct kthread *k, const u64 *a)
{
    struct net_addr from = { .len = 0 };
    struct msghdr64 m;
    struct file *f;
    i64 result;
    struct socket *s = socket_get(k, a[0], &f, &result);
    if (!s) {
        return result;
    }
    if (!arch_copy_from_app(&m, a[1], sizeof(m))) {
        result = -EFAULT;
    } else {
        result = receive_message(f, s, &m, a[2], &from);
    }
    file_put(f);
    if (result >= 0) {
        i64 error = store_header(a[1], &m, &from);
        result = error < 0 ? error : result;
    }
    return result;
}
