/* Which instance a received frame belongs to.
 *
 * A flow is always handled by one instance: the one that the steering table gives for its Toeplitz hash.  A device that steers by
 * the same key and table has done the work already; otherwise it is done here and the packet crosses to the other CPU.
 * ARP answers and broadcasts concern every instance. */
#include "core/base/string.h"
#include "net/net_impl.h"

enum {
    ETH_TYPE = 12, ETH_TYPE_IP = 0x0800, ETH_TYPE_ARP = 0x0806,
    ARP_OPERATION = NET_ETH_HEADER + 6, ARP_REPLY = 2, ARP_BYTES = 28,
    IP_FRAGMENT = NET_ETH_HEADER + 6, IP_PROTOCOL = NET_ETH_HEADER + 9, IP_SOURCE = NET_ETH_HEADER + 12,
    IP_DESTINATION = NET_ETH_HEADER + 16, IP_MIN_HEADER = 20,
    IP_FRAGMENT_MASK = 0x3fff, /* more-fragments bit and offset */
    PROTO_TCP = 6, PROTO_UDP = 17,
    DHCP_CLIENT_PORT = 68,
};

/* Answers of classify() that are no instance. */
#define TO_SELF UINT32_MAX
#define TO_ALL (UINT32_MAX - 1)
#define TO_NOBODY (UINT32_MAX - 2)

static u32 get16(const u8 *p)
{
    return (u32)p[0] << 8 | p[1];
}

static u32 get32(const u8 *p)
{
    return get16(p) << 16 | get16(p + 2);
}

u32 net_flow_instance(const struct net *net, u32 remote_ip, u32 local_ip, u16 remote_port, u16 local_port)
{
    return net->steering[toeplitz_hash(&net->toeplitz, remote_ip, local_ip, remote_port, local_port) % NET_RSS_TABLE];
}

static u32 classify_ip(struct instance *in, const u8 *frame, u32 len)
{
    const struct net *net = in->net;
    u32 header = (frame[NET_ETH_HEADER] & 15u) * 4;
    u32 protocol = frame[IP_PROTOCOL];
    const u8 *ports = frame + NET_ETH_HEADER + header;
    u32 src = get32(frame + IP_SOURCE), dst = get32(frame + IP_DESTINATION);
    if ((get16(frame + IP_FRAGMENT) & IP_FRAGMENT_MASK) != 0) {
        if (protocol == PROTO_TCP) {
            /* Its pieces would not reach the connection's instance together.  No TCP of today fragments. */
            in->counters.fragments_dropped++;
            return TO_NOBODY;
        }
        return net->steering[toeplitz_hash_ip(&net->toeplitz, src, dst) % NET_RSS_TABLE];
    }
    if ((protocol != PROTO_TCP && protocol != PROTO_UDP) || header < IP_MIN_HEADER || NET_ETH_HEADER + header + 4 > len) {
        return TO_SELF; /* no ports, or malformed: lwIP of this instance looks at it */
    }
    if (protocol == PROTO_UDP && get16(ports + 2) == DHCP_CLIENT_PORT) {
        return 0;
    }
    if (protocol == PROTO_UDP || in->dev->steers) {
        return TO_SELF; /* UDP sockets listen on every instance */
    }
    return net_flow_instance(net, src, dst, (u16)get16(ports), (u16)get16(ports + 2));
}

static u32 classify(struct instance *in, const struct packet *p)
{
    const u8 *frame = p->data + p->start;
    u32 len = p->len;
    if (len < NET_ETH_HEADER + IP_MIN_HEADER) {
        return TO_SELF;
    }
    u32 type = get16(frame + ETH_TYPE);
    if (type == ETH_TYPE_ARP) {
        /* Requests are answered once, by whoever gets them; what an answer teaches is for all. */
        return len >= NET_ETH_HEADER + ARP_BYTES && get16(frame + ARP_OPERATION) == ARP_REPLY ? TO_ALL : TO_SELF;
    }
    return type == ETH_TYPE_IP ? classify_ip(in, frame, len) : TO_SELF;
}

static void send_to(struct receive_batch *batch, u32 index, struct packet *p)
{
    struct instance *in = batch->in;
    if (instance_steer(&in->net->instances[index], p)) {
        batch->touched |= BIT(index);
        return;
    }
    while (p != NULL) { /* its queue is full, which counted it */
        struct packet *more = p->more;
        instance_packet_free(in, p);
        p = more;
    }
}

static void send_copies(struct receive_batch *batch, const struct packet *p)
{
    struct instance *in = batch->in;
    for (u32 i = 0; i < in->net->num_instances; i++) {
        if (i == in->index) {
            continue;
        }
        struct packet *copy = instance_packet_alloc(in);
        if (copy == NULL) {
            return;
        }
        copy->flags = p->flags;
        copy->start = p->start;
        copy->len = p->len;
        memcpy(copy->data + copy->start, p->data + p->start, p->len);
        in->counters.broadcast_copies++;
        send_to(batch, i, copy);
    }
}

/* The common case: a whole TCP segment from a device that steers. */
static bool steered_already(const struct instance *in, const struct packet *p)
{
    const u8 *frame = p->data + p->start;
    return in->dev->steers && p->len >= NET_ETH_HEADER + IP_MIN_HEADER && get16(frame + ETH_TYPE) == ETH_TYPE_IP &&
           frame[IP_PROTOCOL] == PROTO_TCP && (get16(frame + IP_FRAGMENT) & IP_FRAGMENT_MASK) == 0;
}

void net_receive(struct receive_batch *batch, struct packet *p)
{
    struct instance *in = batch->in;
    u32 target = in->net->num_instances == 1 || steered_already(in, p) ? TO_SELF : classify(in, p);
    if (target == TO_ALL) {
        send_copies(batch, p);
        target = TO_SELF;
    }
    if (target == TO_NOBODY) {
        while (p != NULL) {
            struct packet *more = p->more;
            instance_packet_free(in, p);
            p = more;
        }
    } else if (target == TO_SELF || target == in->index) {
        instance_input(in, p);
    } else {
        in->counters.steered_out++;
        send_to(batch, target, p);
    }
}
