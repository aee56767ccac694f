/* Datagram sockets: on every instance of their net, with one queue. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/mm/mm.h"
#include "net/iov.h"
#include "net/socket_impl.h"

struct datagram {
    struct list node;
    u32 ip;
    u16 port;
    u32 len;
    u8 data[];
};

/* ---- opening and closing ---- */

static void close_on_instances(struct socket *s, struct datagram_queue *q)
{
    struct net *net = s->net;
    for (u32 i = 0; i < net->num_instances; i++) {
        struct instance *in = &net->instances[i];
        struct wake_batch batch;
        irqflags_t flags = instance_enter(in, &batch);
        if (q->udp[i] != NULL) {
            in->ops->udp_close(q->udp[i]);
            q->udp[i] = NULL;
        }
        instance_leave(in, &batch, flags);
    }
}

int dgram_open(struct socket *s)
{
    struct net *net = s->net;
    struct datagram_queue *q = kzalloc(sizeof(*q));
    if (q == NULL) {
        return -ENOMEM;
    }
    spin_init(&q->lock, &socket_queue_lock_class);
    list_init(&q->queue);
    list_init(&q->waiters);
    q->local_port = s->bound_port;
    s->dgram = q;
    s->role = ROLE_DATAGRAM;
    int error = 0;
    for (u32 i = 0; i < net->num_instances && error == 0; i++) {
        struct instance *in = &net->instances[i];
        struct wake_batch batch;
        irqflags_t flags = instance_enter(in, &batch);
        error = in->ops->udp_open(s, s->bound_ip, s->bound_port, &q->udp[i]);
        instance_leave(in, &batch, flags);
    }
    if (error != 0) {
        close_on_instances(s, q);
        s->dgram = NULL;
        s->role = ROLE_NONE;
        kfree(q);
    }
    return error;
}

void dgram_close(struct socket *s)
{
    struct datagram_queue *q = s->dgram;
    struct list *node;
    close_on_instances(s, q);
    while ((node = list_pop_front(&q->queue)) != NULL) {
        kfree(list_entry(node, struct datagram, node));
    }
    kfree(q);
}

/* Binds to a free port if the application has not bound it. */
static int need_port(struct socket *s)
{
    struct port_table *t = socket_ports(s);
    int error = 0;
    if (READ_ONCE(s->dgram) != NULL) {
        return 0;
    }
    spin_lock(&t->lock);
    if (s->dgram == NULL) {
        error = socket_bind_locked(s, 0, 0);
        if (error == 0) {
            error = dgram_open(s);
        }
    }
    spin_unlock(&t->lock);
    return error;
}

int dgram_connect(struct socket *s, u32 ip, u16 port)
{
    int error = need_port(s);
    if (error != 0) {
        return error;
    }
    irqflags_t flags = spin_lock_irq(&s->dgram->lock);
    s->dgram->peer_ip = ip;
    s->dgram->peer_port = port;
    spin_unlock_irq(&s->dgram->lock, flags);
    return 0;
}

/* ---- receiving ---- */

/* Receive path, under the instance's lock. */
void dgram_received(struct instance *in, struct socket *s, const struct stack_buf *chain, u32 ip, u16 port)
{
    struct datagram_queue *q = s->dgram;
    if (q->peer_ip != 0 && (q->peer_ip != ip || q->peer_port != port)) {
        return; /* connected elsewhere: not for this socket */
    }
    struct datagram *d = q->bytes + chain->total <= s->options.recv_limit ? kmalloc(sizeof(*d) + chain->total) : NULL;
    if (d == NULL) {
        q->dropped++;
        in->counters.rx_dropped_memory++;
        return;
    }
    d->ip = ip;
    d->port = port;
    d->len = 0;
    for (; chain != NULL; chain = chain->next) {
        memcpy(d->data + d->len, chain->data, chain->len);
        d->len += chain->len;
    }
    irqflags_t flags = spin_lock_irq(&q->lock);
    list_push_back(&q->queue, &d->node);
    q->bytes += d->len;
    socket_wake_one(&q->waiters, in->batch);
    spin_unlock_irq(&q->lock, flags);
    socket_tell(s, POLLIN | POLLRDNORM, in->batch);
}

u32 dgram_poll(struct socket *s)
{
    return POLLOUT | POLLWRNORM | (list_empty(&s->dgram->queue) ? 0 : POLLIN | POLLRDNORM);
}

i64 dgram_readable(struct socket *s)
{
    struct datagram_queue *q = s->dgram;
    irqflags_t flags = spin_lock_irq(&q->lock);
    i64 bytes = list_empty(&q->queue) ? 0 : list_entry(q->queue.next, struct datagram, node)->len;
    spin_unlock_irq(&q->lock, flags);
    return bytes;
}

/* The oldest datagram, removed; or the caller as a waiter. */
static struct datagram *take_or_wait(struct datagram_queue *q, struct socket_waiter *w, bool wait)
{
    irqflags_t flags = spin_lock_irq(&q->lock);
    list_remove(&w->node);
    struct list *node = list_pop_front(&q->queue);
    struct datagram *d = node != NULL ? list_entry(node, struct datagram, node) : NULL;
    if (d != NULL) {
        q->bytes -= d->len;
    } else if (wait) {
        list_push_back(&q->waiters, &w->node);
    }
    spin_unlock_irq(&q->lock, flags);
    return d;
}

static void put_back(struct datagram_queue *q, struct datagram *d)
{
    irqflags_t flags = spin_lock_irq(&q->lock);
    list_push_front(&q->queue, &d->node);
    q->bytes += d->len;
    spin_unlock_irq(&q->lock, flags);
}

i64 dgram_recv(struct socket *s, const struct net_buf *buf, u32 flags, struct net_addr *from, u64 deadline_ns)
{
    int error = need_port(s); /* an unbound socket waits for ever, as on Linux; it needs its queue for that */
    if (error != 0) {
        return error;
    }
    struct datagram_queue *q = s->dgram;
    struct socket_waiter w = { .thread = current_thread() };
    list_init(&w.node);
    struct datagram *d;
    for (;;) {
        bool wait = (flags & NET_NONBLOCK) == 0 && error == 0;
        d = take_or_wait(q, &w, wait);
        if (d != NULL) {
            break;
        }
        if (!wait) {
            return error != 0 ? error : -EAGAIN;
        }
        error = socket_park(deadline_ns, s);
    }
    if (from != NULL) {
        socket_addr_make(from, d->ip, d->port);
    }
    struct iov_cursor cursor = iov_start(buf);
    size_t n = MIN(iov_total(buf), (size_t)d->len); /* the rest of a longer datagram is lost */
    i64 result = iov_move(&cursor, d->data, n, true) ? (i64)n : -EFAULT;
    if ((flags & NET_PEEK) != 0) {
        put_back(q, d);
    } else {
        kfree(d);
    }
    return result;
}

/* ---- sending ---- */

static bool is_broadcast(const struct net *net, u32 ip)
{
    return ip == UINT32_MAX || (net->mask != 0 && (ip | net->mask) == UINT32_MAX && (ip & net->mask) == (net->ip & net->mask));
}

i64 dgram_send(struct socket *s, const struct net_buf *buf, u32 flags, const struct net_addr *to)
{
    (void)flags; /* never waits: the device's queue drops what does not fit */
    u32 ip = 0;
    u16 port = 0;
    int error = to != NULL && to->len != 0 ? socket_addr_parse(to, &ip, &port) : 0;
    if (error == 0) {
        error = need_port(s);
    }
    if (error != 0) {
        return error;
    }
    struct datagram_queue *q = s->dgram;
    if (to == NULL || to->len == 0) {
        ip = q->peer_ip;
        port = q->peer_port;
        if (ip == 0) {
            return -EDESTADDRREQ;
        }
    }
    if (is_broadcast(s->net, ip) && !s->options.broadcast) {
        return -EACCES;
    }
    size_t n = iov_total(buf);
    if (n > NET_UDP_MAX) {
        return -EMSGSIZE;
    }
    u8 *data = kmalloc(MAX(n, (size_t)1));
    if (data == NULL) {
        return -ENOBUFS;
    }
    struct iov_cursor cursor = iov_start(buf);
    if (!iov_move(&cursor, data, n, false)) {
        kfree(data);
        return -EFAULT;
    }
    preempt_disable();
    u32 cpu = this_cpu()->cpu;
    preempt_enable();
    u32 index = (cpu - s->net->first_cpu) % s->net->num_instances;
    struct instance *in = &s->net->instances[index];
    struct wake_batch batch;
    irqflags_t irq = instance_enter(in, &batch);
    error = in->ops->udp_send(q->udp[index], data, (u32)n, ip, port);
    instance_leave(in, &batch, irq);
    kfree(data);
    return error == 0 ? (i64)n : error == -ENOMEM ? -ENOBUFS : error;
}
