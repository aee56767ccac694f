/* Sockets: their life, readiness, and what lwIP tells. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/mm/mm.h"
#include "net/socket_impl.h"

struct lock_class socket_queue_lock_class = { .name = "socket_queue", .rank = RANK_NET_DEVICE, .irq = true };

static struct slab_cache *socket_cache;
static struct {
    u64 open, created, refused_limit, refused_memory;
} stats;

void sockets_init(void)
{
    if (socket_cache == NULL) {
        socket_cache = slab_create("socket", sizeof(struct socket), 64, MEM_NET);
    }
}

void sockets_for_each_counter(void (*emit)(const char *name, const char *labels, u64 value, void *arg), void *arg)
{
    emit("net_sockets", "", READ_ONCE(stats.open), arg);
    emit("net_sockets_created_total", "", READ_ONCE(stats.created), arg);
    emit("net_sockets_refused_total", "reason=\"limit\"", READ_ONCE(stats.refused_limit), arg);
    emit("net_sockets_refused_total", "reason=\"memory\"", READ_ONCE(stats.refused_memory), arg);
}

static void count(u64 *counter, i64 change)
{
    __atomic_fetch_add(counter, (u64)change, __ATOMIC_RELAXED);
}

/* ---- life ---- */

struct socket *socket_new(struct net *net, int family, int type)
{
    if (__atomic_add_fetch(&stats.open, 1, __ATOMIC_RELAXED) > NET_MAX_SOCKETS) {
        count(&stats.open, -1);
        count(&stats.refused_limit, 1);
        return NULL;
    }
    struct socket *s = socket_cache != NULL ? slab_alloc(socket_cache) : NULL;
    if (s == NULL) {
        count(&stats.open, -1);
        count(&stats.refused_memory, 1);
        return NULL;
    }
    count(&stats.created, 1);
    memset(s, 0, sizeof(*s));
    s->net = net;
    s->family = (u8)family;
    s->type = (u8)type;
    spin_init(&s->rx_lock, &socket_queue_lock_class);
    s->options.send_limit = NET_TCP_SEND_BUFFER;
    s->options.recv_limit = type == SOCK_DGRAM ? NET_UDP_RECV_BUFFER : NET_TCP_WINDOW;
    list_init(&s->port_node);
    list_init(&s->rx_waiters);
    list_init(&s->tx_waiters);
    list_init(&s->node);
    return s;
}

void socket_free(struct socket *s)
{
    count(&stats.open, -1);
    slab_free(socket_cache, s);
}

int socket_create(struct net *net, int family, int type, int protocol, struct socket **out)
{
    if (family != AF_INET && family != AF_INET6) {
        return -EAFNOSUPPORT;
    }
    if (type != SOCK_STREAM && type != SOCK_DGRAM) {
        return -ESOCKTNOSUPPORT;
    }
    if (protocol != 0 && protocol != (type == SOCK_STREAM ? PROTO_TCP : PROTO_UDP)) {
        return -EPROTONOSUPPORT;
    }
    if (net == NULL) {
        return -ENETDOWN;
    }
    struct socket *s = socket_new(net, family, type);
    if (s == NULL) {
        return READ_ONCE(stats.open) >= NET_MAX_SOCKETS ? -ENFILE : -ENOMEM;
    }
    *out = s;
    return 0;
}

void socket_close(struct socket *s)
{
    socket_unbind(s);
    if (s->listener != NULL) {
        listener_close(s);
    } else if (s->dgram != NULL) {
        dgram_close(s);
    } else if (s->in != NULL) {
        stream_close(s);
    }
    socket_free(s);
}

/* ---- waiting and waking ---- */

void socket_wake_all(struct list *waiters, struct wake_batch *batch)
{
    struct list *node;
    while ((node = list_pop_front(waiters)) != NULL) {
        thread_unpark_batch(list_entry(node, struct socket_waiter, node)->thread, batch);
    }
}

void socket_wake_one(struct list *waiters, struct wake_batch *batch)
{
    struct list *node = list_pop_front(waiters);
    if (node != NULL) {
        thread_unpark_batch(list_entry(node, struct socket_waiter, node)->thread, batch);
    }
}

/* The reader's pointer is looked at and used under rx_lock: it cannot leave meanwhile (stream_recv). */
void socket_wake_readers(struct socket *s, struct wake_batch *batch)
{
    irqflags_t flags = spin_lock_irq(&s->rx_lock);
    struct thread *reader = READ_ONCE(s->reader);
    if (reader != NULL) {
        thread_unpark_batch(reader, batch);
    }
    spin_unlock_irq(&s->rx_lock, flags);
    socket_wake_all(&s->rx_waiters, batch);
}

void socket_tell(struct socket *s, u32 events, struct wake_batch *batch)
{
    if (s->observer != NULL) {
        s->observer(s->observer_arg, events, batch);
    }
}

irqflags_t socket_enter(struct socket *s, struct wake_batch *batch)
{
    struct instance *in = s->in;
    irqflags_t flags = instance_enter(in, batch);
    if (this_cpu()->cpu != in->cpu) {
        in->counters.remote_calls++;
    }
    return flags;
}

int socket_park(u64 deadline_ns, const void *object)
{
    switch (thread_park(deadline_ns, WAIT_SOCKET, (u64)(uintptr_t)object)) {
    case PARK_INTERRUPTED:
        return -EINTR;
    case PARK_TIMEOUT:
        return -EAGAIN;
    case PARK_WOKEN:
        break;
    }
    return 0;
}

int socket_take_error(struct socket *s)
{
    int error = s->error;
    s->error = 0;
    return error;
}

/* Writable while less than two thirds of the limit are taken, as on Linux: a writer is not woken for every segment. */
u32 socket_write_threshold(const struct socket *s)
{
    return s->options.send_limit - s->options.send_limit / 3;
}

void socket_set_observer(struct socket *s, void (*fn)(void *arg, u32 events, struct wake_batch *batch), void *arg)
{
    struct wake_batch batch;
    if (s->in != NULL) {
        irqflags_t flags = instance_enter(s->in, &batch);
        s->observer_arg = arg;
        s->observer = fn;
        instance_leave(s->in, &batch, flags);
        return;
    }
    struct spinlock *lock = s->listener != NULL ? &s->listener->lock : s->dgram != NULL ? &s->dgram->lock : NULL;
    irqflags_t flags = lock != NULL ? spin_lock_irq(lock) : 0;
    s->observer_arg = arg;
    s->observer = fn;
    if (lock != NULL) {
        spin_unlock_irq(lock, flags);
    }
}

u32 socket_poll(struct socket *s)
{
    if (s->listener != NULL) {
        return listener_poll(s);
    }
    if (s->dgram != NULL) {
        return dgram_poll(s);
    }
    if (s->in == NULL) {
        return s->type == SOCK_DGRAM ? POLLOUT | POLLWRNORM : POLLOUT | POLLWRNORM | POLLHUP;
    }
    return stream_poll(s);
}

i64 socket_bytes_readable(struct socket *s)
{
    if (s->listener != NULL) {
        return -EINVAL;
    }
    return s->dgram != NULL ? dgram_readable(s) : READ_ONCE(s->rx_bytes);
}

i64 socket_send(struct socket *s, const struct net_buf *buf, u32 flags, const struct net_addr *to, u64 deadline_ns)
{
    if (s->type == SOCK_DGRAM) {
        return dgram_send(s, buf, flags, to);
    }
    return stream_send(s, buf, flags, deadline_ns);
}

i64 socket_recv(struct socket *s, const struct net_buf *buf, u32 flags, struct net_addr *from, u64 deadline_ns)
{
    if (s->type == SOCK_DGRAM) {
        return dgram_recv(s, buf, flags, from, deadline_ns);
    }
    if (from != NULL) {
        from->len = 0;
    }
    return stream_recv(s, buf, flags, deadline_ns);
}

/* ---- what lwIP tells: under the instance's lock ---- */

static bool on_may_accept(void *self, void *listener, u32 pending)
{
    (void)self;
    return listener_may_accept(listener, pending);
}

static void *on_established(void *self, void *listener, struct stack_tcp *t, const struct stack_flow *flow)
{
    return listener_established(self, listener, t, flow);
}

static void on_connected(void *self, void *arg)
{
    struct instance *in = self;
    struct socket *s = arg;
    s->role = ROLE_CONNECTED;
    socket_wake_all(&s->tx_waiters, in->batch);
    socket_tell(s, POLLOUT | POLLWRNORM, in->batch);
}

/* Appends to the receive queue, under its lock.  A small piece that finds the last buffer unread and with room moves in
 * there: a peer that sends byte by byte cannot make us keep a buffer for each. */
static void queue_received(struct instance *in, struct socket *s, struct stack_buf *chain)
{
    struct stack_buf *last = s->rx_last;
    WRITE_ONCE(s->rx_bytes, s->rx_bytes + chain->total);
    if (last != NULL && chain->next == NULL && chain->len <= NET_COALESCE_BYTES && in->ops->buf_room(last) >= chain->len) {
        memcpy(last->data + last->len, chain->data, chain->len);
        last->len = (u16)(last->len + chain->len);
        in->ops->buf_free(chain);
        return;
    }
    if (last != NULL) {
        last->next = chain;
    } else {
        s->rx_first = chain;
    }
    while (chain->next != NULL) {
        chain = chain->next;
    }
    s->rx_last = chain;
}

static void on_received(void *self, void *arg, struct stack_buf *chain)
{
    struct instance *in = self;
    struct socket *s = arg;
    u32 events = POLLIN | POLLRDNORM;
    if (chain != NULL && s->rx_end) {
        in->ops->tcp_taken(s->tcp, chain->total); /* reading was shut down: discarded as Linux does */
        in->ops->buf_free(chain);
        return;
    }
    irqflags_t flags = spin_lock_irq(&s->rx_lock);
    if (chain != NULL) {
        queue_received(in, s, chain);
    } else {
        WRITE_ONCE(s->rx_end, true);
        events |= s->tx_end ? POLLRDHUP | POLLHUP : POLLRDHUP;
    }
    /* The reader publishes itself and then looks at the queue; here it is the other way round. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    struct thread *reader = READ_ONCE(s->reader);
    if (reader != NULL) {
        thread_unpark_batch(reader, in->batch);
    }
    spin_unlock_irq(&s->rx_lock, flags);
    socket_wake_all(&s->rx_waiters, in->batch);
    socket_tell(s, events, in->batch);
}

static void on_sent(void *self, void *arg, u32 bytes)
{
    struct instance *in = self;
    struct socket *s = arg;
    u32 threshold = socket_write_threshold(s);
    bool was_full = s->tx_bytes >= threshold;
    s->tx_bytes -= MIN(bytes, s->tx_bytes);
    if (was_full && s->tx_bytes < threshold) {
        socket_wake_all(&s->tx_waiters, in->batch);
        socket_tell(s, POLLOUT | POLLWRNORM, in->batch);
    }
}

static void on_failed(void *self, void *arg, int error)
{
    struct instance *in = self;
    struct socket *s = arg;
    if (s->role == ROLE_CONNECTING && error == -ECONNRESET) {
        error = -ECONNREFUSED;
    }
    s->tcp = NULL;
    WRITE_ONCE(s->error, error);
    WRITE_ONCE(s->rx_end, true);
    WRITE_ONCE(s->tx_end, true);
    if (s->role == ROLE_CONNECTING) {
        s->role = ROLE_NONE;
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    socket_wake_readers(s, in->batch);
    socket_wake_all(&s->tx_waiters, in->batch);
    socket_tell(s, POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM | POLLRDHUP | POLLHUP | (error != 0 ? POLLERR : 0), in->batch);
}

static void on_datagram(void *self, void *arg, const struct stack_buf *chain, u32 ip, u16 port)
{
    dgram_received(self, arg, chain, ip, port);
}

void socket_fill_env(struct stack_env *env)
{
    env->tcp_may_accept = on_may_accept;
    env->tcp_established = on_established;
    env->tcp_connected = on_connected;
    env->tcp_received = on_received;
    env->tcp_sent = on_sent;
    env->tcp_failed = on_failed;
    env->udp_received = on_datagram;
}
