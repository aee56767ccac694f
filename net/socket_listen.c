/* Listening and accepting: a listener on every instance, one queue of established connections for all. */
#include "core/base/errno.h"
#include "core/mm/mm.h"
#include "net/socket_impl.h"

static u64 overflows_closed; /* of listeners that are gone */

/* ---- from the receive path: under the instance's lock ---- */

/* Connections still in their handshake count: each will want a place. */
bool listener_may_accept(struct socket *s, u32 pending)
{
    struct listener *l = s->listener;
    if (READ_ONCE(l->queued) + pending < l->backlog) {
        return true;
    }
    __atomic_fetch_add(&l->overflows, 1, __ATOMIC_RELAXED);
    return false;
}

void *listener_established(struct instance *in, struct socket *s, struct stack_tcp *t, const struct stack_flow *flow)
{
    struct listener *l = s->listener;
    struct socket *conn = socket_new(s->net, s->family, SOCK_STREAM);
    if (conn == NULL) {
        return NULL;
    }
    conn->in = in;
    conn->tcp = t;
    conn->flow = *flow;
    conn->role = ROLE_CONNECTED;
    irqflags_t flags = spin_lock_irq(&l->lock);
    /* FIFO over all instances: none can be starved by another. */
    list_push_back(&l->queue, &conn->node);
    WRITE_ONCE(l->queued, l->queued + 1);
    socket_wake_one(&l->waiters, in->batch);
    spin_unlock_irq(&l->lock, flags);
    socket_tell(s, POLLIN | POLLRDNORM, in->batch);
    return conn;
}

u32 listener_poll(struct socket *s)
{
    u32 events = READ_ONCE(s->listener->queued) != 0 ? POLLIN | POLLRDNORM : 0;
    return events | (READ_ONCE(s->listener->shut) ? POLLIN | POLLRDNORM | POLLHUP : 0);
}

/* ---- calls ---- */

static int open_on_instances(struct socket *s, struct listener *l)
{
    struct net *net = s->net;
    for (u32 i = 0; i < net->num_instances; i++) {
        struct instance *in = &net->instances[i];
        struct wake_batch batch;
        irqflags_t flags = instance_enter(in, &batch);
        int error = in->ops->tcp_listen(s, s->bound_ip, s->bound_port, &l->tcp[i]);
        instance_leave(in, &batch, flags);
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

static void close_on_instances(struct socket *s, struct listener *l)
{
    struct net *net = s->net;
    for (u32 i = 0; i < net->num_instances; i++) {
        struct instance *in = &net->instances[i];
        struct wake_batch batch;
        irqflags_t flags = instance_enter(in, &batch);
        if (l->tcp[i] != NULL) {
            in->ops->tcp_unlisten(l->tcp[i]);
            l->tcp[i] = NULL;
        }
        instance_leave(in, &batch, flags);
    }
}

static u32 clamp_backlog(int backlog)
{
    /* Linux takes a negative one as the maximum (it compares unsigned). */
    return backlog < 0 ? NET_MAX_BACKLOG : MAX(NET_MIN_BACKLOG, MIN((u32)backlog + 1, NET_MAX_BACKLOG));
}

/* The table's lock is a spin lock that is held while instances are locked one after another: start-up of a service. */
int socket_listen(struct socket *s, int backlog)
{
    if (s->type != SOCK_STREAM) {
        return -EOPNOTSUPP;
    }
    struct port_table *t = socket_ports(s);
    struct listener *l = kzalloc(sizeof(*l));
    if (l == NULL) {
        return -ENOMEM;
    }
    spin_init(&l->lock, &socket_queue_lock_class);
    list_init(&l->queue);
    list_init(&l->waiters);
    l->backlog = clamp_backlog(backlog);
    int error = 0;
    spin_lock(&t->lock);
    if (s->listener != NULL) {
        s->listener->backlog = l->backlog;
        spin_unlock(&t->lock);
        kfree(l);
        return 0;
    }
    if (s->role != ROLE_NONE) {
        error = -EINVAL;
    } else if (s->bound_port == 0) {
        error = socket_bind_locked(s, 0, 0);
    } else if (socket_port_listening(t, s->bound_port)) {
        error = -EADDRINUSE;
    }
    if (error == 0) {
        s->role = ROLE_LISTENER;
        s->listener = l;
        error = open_on_instances(s, l);
        if (error != 0) {
            close_on_instances(s, l);
            s->listener = NULL;
            s->role = ROLE_NONE;
        }
    }
    spin_unlock(&t->lock);
    if (error != 0) {
        kfree(l);
    }
    return error;
}

static struct socket *take(struct listener *l)
{
    struct list *node = list_pop_front(&l->queue);
    if (node == NULL) {
        return NULL;
    }
    WRITE_ONCE(l->queued, l->queued - 1);
    return list_entry(node, struct socket, node);
}

int socket_accept(struct socket *s, u32 flags, u64 deadline_ns, struct socket **out, struct net_addr *peer)
{
    struct listener *l = s->listener;
    if (l == NULL) {
        return s->type == SOCK_STREAM ? -EINVAL : -EOPNOTSUPP;
    }
    struct socket_waiter w = { .thread = current_thread() };
    list_init(&w.node);
    int error = 0;
    struct socket *conn;
    for (;;) {
        irqflags_t irq = spin_lock_irq(&l->lock);
        list_remove(&w.node);
        conn = take(l);
        if (conn == NULL && l->shut) {
            error = -EINVAL; /* as on Linux, where a listener that was shut down no longer listens */
        }
        if (conn == NULL && error == 0 && (flags & NET_NONBLOCK) == 0) {
            list_push_back(&l->waiters, &w.node);
        } else if (conn != NULL && !list_empty(&l->queue) && !list_empty(&l->waiters)) {
            /* One wakeup may have met a waiter that timed out: pass it on. */
            struct wake_batch batch;
            wake_batch_begin(&batch);
            socket_wake_one(&l->waiters, &batch);
            spin_unlock_irq(&l->lock, irq);
            wake_batch_flush(&batch);
            break;
        }
        spin_unlock_irq(&l->lock, irq);
        if (conn != NULL) {
            break;
        }
        if (error != 0 || (flags & NET_NONBLOCK) != 0) {
            return error != 0 ? error : -EAGAIN;
        }
        error = socket_park(deadline_ns, s);
    }
    thread_head(current_thread())->receive_cpu = (i32)conn->in->cpu;
    if (peer != NULL) {
        socket_addr_make(peer, conn->flow.remote_ip, conn->flow.remote_port);
    }
    *out = conn;
    return 0;
}

int listener_shutdown(struct socket *s)
{
    struct listener *l = s->listener;
    close_on_instances(s, l);
    struct wake_batch batch;
    wake_batch_begin(&batch);
    irqflags_t irq = spin_lock_irq(&l->lock);
    WRITE_ONCE(l->shut, true);
    socket_wake_all(&l->waiters, &batch);
    spin_unlock_irq(&l->lock, irq);
    wake_batch_flush(&batch);
    /* Observers are told under an instance's lock, like every other event. */
    struct instance *in = &s->net->instances[0];
    irqflags_t flags = instance_enter(in, &batch);
    socket_tell(s, POLLIN | POLLRDNORM | POLLHUP, &batch);
    instance_leave(in, &batch, flags);
    return 0;
}

/* Connections that nobody accepted are reset. */
void listener_close(struct socket *s)
{
    struct listener *l = s->listener;
    close_on_instances(s, l);
    for (;;) {
        irqflags_t irq = spin_lock_irq(&l->lock);
        struct socket *conn = take(l);
        spin_unlock_irq(&l->lock, irq);
        if (conn == NULL) {
            break;
        }
        conn->options.linger = true; /* with 0 seconds: reset */
        stream_close(conn);
        socket_free(conn);
    }
    __atomic_fetch_add(&overflows_closed, l->overflows, __ATOMIC_RELAXED);
    kfree(l);
}
