/* Local addresses: the table of bound ports, ephemeral ports. */
#include "core/base/errno.h"
#include "net/random.h"
#include "net/socket_impl.h"

struct port_table *socket_ports(struct socket *s)
{
    return s->type == SOCK_STREAM ? &s->net->tcp_ports : &s->net->udp_ports;
}

static struct list *bucket_of(struct port_table *t, u16 port)
{
    return &t->buckets[port % NET_PORT_BUCKETS];
}

static bool overlap(u32 a, u32 b)
{
    return a == 0 || b == 0 || a == b;
}

/* Linux's rule: two sockets may share an address only if both asked for it (SO_REUSEADDR) and, for streams, neither
 * listens. */
static bool conflicts(struct port_table *t, const struct socket *s, u32 ip, u16 port)
{
    list_for_each(node, bucket_of(t, port))
    {
        const struct socket *other = list_entry(node, struct socket, port_node);
        if (other == s || other->bound_port != port || !overlap(other->bound_ip, ip)) {
            continue;
        }
        if (!s->options.reuse_addr || !other->options.reuse_addr || other->listener != NULL) {
            return true;
        }
    }
    return false;
}

bool socket_port_listening(struct port_table *t, u16 port)
{
    list_for_each(node, bucket_of(t, port))
    {
        const struct socket *other = list_entry(node, struct socket, port_node);
        if (other->bound_port == port && other->listener != NULL) {
            return true;
        }
    }
    return false;
}

static bool taken(struct port_table *t, u32 ip, u16 port)
{
    list_for_each(node, bucket_of(t, port))
    {
        const struct socket *other = list_entry(node, struct socket, port_node);
        if (other->bound_port == port && overlap(other->bound_ip, ip)) {
            return true;
        }
    }
    return false;
}

/* Random start (RFC 6056, algorithm 1), then one after another: finds the last free one too. */
u16 socket_free_port(struct port_table *t, u32 ip)
{
    u32 range = NET_EPHEMERAL_LAST - NET_EPHEMERAL_FIRST + 1;
    u32 start = (u32)net_random() % range;
    for (u32 i = 0; i < range; i++) {
        u16 port = (u16)(NET_EPHEMERAL_FIRST + (start + i) % range);
        if (!taken(t, ip, port)) {
            return port;
        }
    }
    return 0;
}

int socket_bind_locked(struct socket *s, u32 ip, u16 port)
{
    struct port_table *t = socket_ports(s);
    if (port == 0) {
        port = socket_free_port(t, ip);
        if (port == 0) {
            return -EADDRINUSE;
        }
    } else if (conflicts(t, s, ip, port)) {
        return -EADDRINUSE;
    }
    s->bound_ip = ip;
    s->bound_port = port;
    list_push_back(bucket_of(t, port), &s->port_node);
    return 0;
}

int socket_bind(struct socket *s, const struct net_addr *addr)
{
    u32 ip;
    u16 port;
    int error = socket_addr_parse(addr, &ip, &port);
    if (error != 0) {
        return error;
    }
    bool local = ip == 0 || ip == net_address(s->net) || ip >> 24 == 127;
    if (!local && !(s->type == SOCK_DGRAM && ip >> 28 == 14)) {
        return -EADDRNOTAVAIL;
    }
    struct port_table *t = socket_ports(s);
    spin_lock(&t->lock);
    if (s->bound_port != 0 || s->role != ROLE_NONE) {
        error = -EINVAL;
    } else {
        error = socket_bind_locked(s, ip, port);
        if (error == 0 && s->type == SOCK_DGRAM) {
            error = dgram_open(s);
        }
    }
    spin_unlock(&t->lock);
    return error;
}

void socket_unbind(struct socket *s)
{
    struct port_table *t = socket_ports(s);
    spin_lock(&t->lock);
    list_remove(&s->port_node);
    s->bound_port = 0;
    spin_unlock(&t->lock);
}

int socket_local_addr(struct socket *s, struct net_addr *out)
{
    if (s->in != NULL) {
        socket_addr_make(out, s->flow.local_ip, s->flow.local_port);
    } else {
        u32 ip = s->bound_ip;
        if (ip == 0 && s->dgram != NULL && s->dgram->peer_ip != 0) {
            ip = net_address(s->net);
        }
        socket_addr_make(out, ip, s->bound_port);
    }
    return 0;
}

int socket_peer_addr(struct socket *s, struct net_addr *out)
{
    if (s->dgram != NULL && s->dgram->peer_ip != 0) {
        socket_addr_make(out, s->dgram->peer_ip, s->dgram->peer_port);
        return 0;
    }
    if (s->in == NULL || s->role != ROLE_CONNECTED || s->tcp == NULL) {
        return -ENOTCONN;
    }
    socket_addr_make(out, s->flow.remote_ip, s->flow.remote_port);
    return 0;
}
