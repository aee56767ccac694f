/* Outgoing connections: which instance, which port. */
#include "core/base/errno.h"
#include "net/random.h"
#include "net/socket_impl.h"

static bool is_loopback(const struct net *net, u32 ip)
{
    return ip >> 24 == 127 || (ip != 0 && ip == READ_ONCE(net->ip));
}

/* The instance of this CPU, if it has one: its packets are then received here. */
static struct instance *local_instance(struct net *net)
{
    preempt_disable();
    u32 cpu = this_cpu()->cpu;
    preempt_enable();
    u32 offset = cpu >= net->first_cpu && cpu < net->first_cpu + net->num_cpus ? cpu - net->first_cpu : (u32)net_random();
    return &net->instances[offset % net->num_instances];
}

/* Tries one local port.  Multi-instance nets: only ports whose flow comes back to this instance. */
static int try_port(struct socket *s, struct instance *in, u16 port)
{
    struct stack_flow *flow = &s->flow;
    struct wake_batch batch;
    flow->local_port = port;
    irqflags_t flags = instance_enter(in, &batch);
    if (flow->local_ip == 0) {
        flow->local_ip = in->ops->route_source(flow->remote_ip);
    }
    int error = flow->local_ip == 0 ? -ENETUNREACH : 0;
    if (error == 0) {
        s->in = in;
        s->role = ROLE_CONNECTING;
        s->error = 0;
        s->rx_end = s->tx_end = false;
        error = in->ops->tcp_connect(s, flow, &s->tcp);
        if (error != 0) {
            s->tcp = NULL;
            s->role = ROLE_NONE;
        } else {
            stream_apply_options(s);
        }
    }
    instance_leave(in, &batch, flags);
    return error;
}

static bool returns_to(const struct instance *in, const struct stack_flow *flow, u16 port)
{
    const struct net *net = in->net;
    return net->num_instances == 1 || is_loopback(net, flow->remote_ip) ||
           net_flow_instance(net, flow->remote_ip, flow->local_ip, flow->remote_port, port) == in->index;
}

static u32 common_divisor(u32 a, u32 b)
{
    while (b != 0) {
        u32 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Visits every ephemeral port once, from a random start in random strides (RFC 6056).  Not one after another: the ports
 * whose flows return to one instance come in runs, and the first of each run would be taken most of the time. */
static int connect_from_any_port(struct socket *s, struct instance *in)
{
    const u32 range = NET_EPHEMERAL_LAST - NET_EPHEMERAL_FIRST + 1;
    u64 random = net_random();
    u32 at = (u32)random % range, stride = 1 + (u32)(random >> 32) % (range - 1);
    struct port_table *t = socket_ports(s);
    while (common_divisor(stride, range) != 1) {
        stride = stride % (range - 1) + 1;
    }
    for (u32 i = 0; i < range; i++, at = (at + stride) % range) {
        u16 port = (u16)(NET_EPHEMERAL_FIRST + at);
        if (!returns_to(in, &s->flow, port) || socket_port_listening(t, port)) {
            continue;
        }
        int error = try_port(s, in, port);
        if (error != -EADDRINUSE) {
            return error;
        }
    }
    return -EADDRNOTAVAIL;
}

/* Which of this net's addresses the connection leaves from. */
static u32 source_address(struct socket *s, struct instance *in)
{
    if (s->bound_ip != 0) {
        return s->bound_ip;
    }
    struct wake_batch batch;
    irqflags_t flags = instance_enter(in, &batch);
    u32 ip = in->ops->route_source(s->flow.remote_ip);
    instance_leave(in, &batch, flags);
    return ip;
}

static int start_connecting(struct socket *s, u32 ip, u16 port)
{
    struct port_table *t = socket_ports(s);
    spin_lock(&t->lock);
    int error = s->role == ROLE_CONNECTED ? -EISCONN : s->role == ROLE_CONNECTING ? -EALREADY : 0;
    if (s->role == ROLE_LISTENER) {
        error = -EISCONN;
    }
    if (error == 0) {
        /* A socket never changes its instance: other threads may be waiting under that one's lock. */
        struct instance *in = s->in != NULL ? s->in : local_instance(s->net);
        s->flow = (struct stack_flow){ .remote_ip = ip, .remote_port = port };
        s->flow.local_ip = source_address(s, in);
        if (s->flow.local_ip == 0) {
            error = -ENETUNREACH;
        } else if (s->bound_port != 0) {
            /* A chosen port decides the instance. */
            if (s->net->num_instances > 1 && !is_loopback(s->net, ip)) {
                in = &s->net->instances[net_flow_instance(s->net, ip, s->flow.local_ip, port, s->bound_port)];
            }
            error = s->in != NULL && s->in != in ? -EADDRNOTAVAIL : try_port(s, in, s->bound_port);
        } else {
            error = connect_from_any_port(s, in);
        }
    }
    spin_unlock(&t->lock);
    return error;
}

static int wait_connected(struct socket *s, u64 deadline_ns)
{
    struct socket_waiter w = { .thread = current_thread() };
    list_init(&w.node);
    int error = 0;
    for (;;) {
        struct wake_batch batch;
        irqflags_t flags = socket_enter(s, &batch);
        list_remove(&w.node);
        enum socket_role role = s->role;
        int result = role == ROLE_CONNECTING ? 0 : socket_take_error(s);
        if (role == ROLE_CONNECTING && error == 0) {
            list_push_back(&s->tx_waiters, &w.node);
        }
        instance_leave(s->in, &batch, flags);
        if (role != ROLE_CONNECTING) {
            return role == ROLE_CONNECTED ? 0 : result != 0 ? result : -ECONNREFUSED;
        }
        if (error != 0) {
            return error == -EAGAIN ? -EINPROGRESS : error; /* SO_SNDTIMEO: Linux says in progress */
        }
        error = socket_park(deadline_ns, s);
    }
}

int socket_connect(struct socket *s, const struct net_addr *addr, u32 flags, u64 deadline_ns)
{
    u32 ip;
    u16 port;
    int error = socket_addr_parse(addr, &ip, &port);
    if (error != 0) {
        return error;
    }
    if (ip == 0) {
        ip = 127u << 24 | 1; /* as on Linux: this host */
    }
    if (s->type == SOCK_DGRAM) {
        return dgram_connect(s, ip, port);
    }
    if (port == 0) {
        return -ECONNREFUSED;
    }
    error = start_connecting(s, ip, port);
    if (error == -EALREADY && (flags & NET_NONBLOCK) == 0) {
        return wait_connected(s, deadline_ns); /* a second call waits for the first */
    }
    if (error != 0) {
        return error;
    }
    thread_head(current_thread())->receive_cpu = (i32)s->in->cpu;
    return (flags & NET_NONBLOCK) != 0 ? -EINPROGRESS : wait_connected(s, deadline_ns);
}
