/* The wire: two in-kernel devices, back to back, with N queues each.
 *
 * It stands in for a network card in measurements: the sender's CPU copies the frame into a buffer (the DMA of a card), hashes
 * its flow with the receiver's key and table (the card's RSS) and puts it into that queue; the receiving CPU gets a real
 * interrupt, unless it is polling.  Checksums are not computed, as with offload both ways.  A delay is kept by a time stamp
 * on each packet; losses are drawn from a seeded generator for each sending queue. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/mm/mm.h"
#include "net/net_impl.h"

#define WIRE_ENDS 2
#define PPM 1000000u

/* Where a flow went last: a hash over 12 bytes takes 110 instructions that a card would not charge to the CPU. */
struct flow_memo {
    u64 addresses;
    u32 ports;
    u32 queue;
};
#define FLOW_MEMOS 64 /* power of two */

struct wire_queue {
    struct inqueue packets;  /* on their way to this queue */
    struct timer timer;      /* the first packet becomes due */
    bool timer_set;
    u64 notify;              /* queues of the other end that this one has sent to since its last kick */
    u64 random;              /* of what this queue sends */
    u64 sent, lost, overruns, interrupts;
    struct flow_memo memos[FLOW_MEMOS]; /* of what this queue sends */
} __cacheline_aligned;

struct wire_end {
    struct netdev dev;
    u32 index;
    struct wire_end *peer;
    struct net *net;
    struct wire_queue *queues;
};

static struct wire_config wire;
static struct wire_end ends[WIRE_ENDS];

static struct wire_end *end_of(struct netdev *dev)
{
    return container_of(dev, struct wire_end, dev);
}

/* xorshift64* (Vigna, 2016). */
static u64 next_random(u64 *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

/* ---- receiving ---- */

static void on_due(struct timer *t)
{
    struct wire_queue *q = container_of(t, struct wire_queue, timer);
    for (u32 e = 0; e < WIRE_ENDS; e++) {
        if (q >= ends[e].queues && q < ends[e].queues + ends[e].dev.num_queues) {
            WRITE_ONCE(q->timer_set, false);
            softwork_raise(&ends[e].net->instances[q - ends[e].queues].work);
        }
    }
}

static u32 wire_poll(struct netdev *dev, u32 queue, u32 budget, struct receive_batch *batch)
{
    struct wire_queue *q = &end_of(dev)->queues[queue];
    u64 now = wire.delay_ns != 0 ? arch_clock_ns() : 0;
    u32 done = 0;
    struct packet *p;
    while (done < budget && (p = inqueue_peek(&q->packets)) != NULL && p->due_ns <= now) {
        net_receive(batch, inqueue_pop(&q->packets));
        done++;
    }
    return done;
}

/* A packet that is not due yet: the timer takes the interrupt's place. */
static bool wire_rest(struct netdev *dev, u32 queue)
{
    struct wire_queue *q = &end_of(dev)->queues[queue];
    struct packet *p = inqueue_peek(&q->packets);
    if (p != NULL) {
        if (p->due_ns <= arch_clock_ns()) {
            return true;
        }
        if (!q->timer_set) {
            q->timer_set = true;
            timer_arm(&q->timer, p->due_ns);
        }
        return false;
    }
    return inqueue_rest(&q->packets);
}

/* ---- sending ---- */

static u32 get16(const u8 *p)
{
    return (u32)p[0] << 8 | p[1];
}

static u32 get32(const u8 *p)
{
    return get16(p) << 16 | get16(p + 2);
}

static u32 remembered_queue(struct wire_queue *sender, const struct wire_end *to, const u8 *frame, const u8 *ports)
{
    enum { IP = NET_ETH_HEADER };
    u64 addresses;
    u32 both;
    memcpy(&addresses, frame + IP + 12, sizeof(addresses));
    memcpy(&both, ports, sizeof(both));
    struct flow_memo *m = &sender->memos[(both ^ both >> 16 ^ both >> 24) % FLOW_MEMOS];
    if (m->addresses != addresses || m->ports != both) {
        m->addresses = addresses;
        m->ports = both;
        m->queue = net_flow_instance(to->net, get32(frame + IP + 12), get32(frame + IP + 16), (u16)get16(ports),
                                     (u16)get16(ports + 2));
    }
    return m->queue;
}

/* What the receiving card's RSS does: TCP and UDP over IPv4 by flow, everything else to queue 0. */
static u32 receive_queue(struct wire_queue *sender, const struct wire_end *to, const u8 *frame, u32 len)
{
    enum { TYPE = 12, IP = NET_ETH_HEADER, IP_MIN = 20 };
    if (to->dev.num_queues == 1 || len < IP + IP_MIN + 4 || get16(frame + TYPE) != 0x0800 ||
        (frame[IP + 9] != 6 && frame[IP + 9] != 17)) {
        return 0;
    }
    u32 header = (frame[IP] & 15u) * 4;
    if (IP + header + 4 > len || (get16(frame + IP + 6) & 0x3fff) != 0) {
        return 0;
    }
    return remembered_queue(sender, to, frame, frame + IP + header);
}

static void copy_frame(u8 *to, const struct stack_buf *frame)
{
    for (; frame != NULL; frame = frame->next) {
        memcpy(to, frame->data, frame->len);
        to += frame->len;
    }
}

static bool wire_transmit(struct netdev *dev, u32 queue, struct instance *in, const struct stack_buf *frame)
{
    struct wire_end *from = end_of(dev), *to = from->peer;
    struct wire_queue *sender = &from->queues[queue];
    if (frame->total > NET_MTU + NET_ETH_HEADER) {
        return false;
    }
    if (wire.loss_ppm != 0 && next_random(&sender->random) % PPM < wire.loss_ppm) {
        sender->lost++;
        return true; /* lost on the way: the sender does not know */
    }
    struct packet *p = instance_packet_alloc(in);
    if (p == NULL) {
        return false;
    }
    p->flags = PACKET_CSUM_OK;
    p->start = 0;
    p->len = frame->total;
    p->due_ns = wire.delay_ns != 0 ? arch_clock_ns() + wire.delay_ns : 0;
    copy_frame(p->data, frame);
    u32 target = receive_queue(sender, to, p->data, p->len);
    if (!inqueue_push(&to->queues[target].packets, p)) {
        sender->overruns++;
        instance_packet_free(in, p);
        return true; /* a full ring on the other side: lost there */
    }
    sender->sent++;
    sender->notify |= BIT(target);
    return true;
}

/* The doorbell: one interrupt per receiving queue, if that one wants any. */
static void wire_kick(struct netdev *dev, u32 queue)
{
    struct wire_end *to = end_of(dev)->peer;
    struct wire_queue *sender = &end_of(dev)->queues[queue];
    for (u64 bits = sender->notify; bits != 0; bits &= bits - 1) {
        u32 target = (u32)__builtin_ctzll(bits);
        if (inqueue_must_notify(&to->queues[target].packets)) {
            sender->interrupts++;
            instance_call(&to->net->instances[target]);
        }
    }
    sender->notify = 0;
}

static void wire_stop(struct netdev *dev)
{
    for (u32 i = 0; i < dev->num_queues; i++) {
        (void)timer_cancel(&end_of(dev)->queues[i].timer);
    }
}

static void wire_counters(struct netdev *dev, void (*emit)(const char *name, const char *labels, u64 value, void *arg), void *arg)
{
    struct wire_end *end = end_of(dev);
    for (u32 i = 0; i < dev->num_queues; i++) {
        struct wire_queue *q = &end->queues[i];
        char labels[48];
        str_format(labels, sizeof(labels), "net=\"%u\",queue=\"%u\"", end->index, i);
        emit("wire_sent_total", labels, READ_ONCE(q->sent), arg);
        emit("wire_lost_total", labels, READ_ONCE(q->lost), arg);
        emit("wire_overruns_total", labels, READ_ONCE(q->overruns), arg);
        emit("wire_interrupts_sent_total", labels, READ_ONCE(q->interrupts), arg);
    }
}

static const struct netdev_ops wire_ops = {
    .poll = wire_poll,
    .rest = wire_rest,
    .transmit = wire_transmit,
    .kick = wire_kick,
    .stop = wire_stop,
    .counters = wire_counters,
};

/* ---- start ---- */

/* The key that Microsoft's RSS specification verifies with: constant, so that runs repeat. */
static const u8 wire_key[TOEPLITZ_KEY_BYTES] = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
    0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static int make_end(u32 index, const struct wire_config *config)
{
    struct wire_end *end = &ends[index];
    u32 queues = MIN(config->queues, sched_domain(index).num_cpus);
    end->index = index;
    end->peer = &ends[1 - index];
    end->queues = kzalloc(sizeof(struct wire_queue) * queues);
    if (end->queues == NULL) {
        return -ENOMEM;
    }
    for (u32 i = 0; i < queues; i++) {
        inqueue_init(&end->queues[i].packets);
        timer_init(&end->queues[i].timer, on_due);
        end->queues[i].random = config->seed * 2654435761u + index * MAX_CPUS + i + 1;
    }
    end->dev = (struct netdev){
        .ops = &wire_ops,
        .name = "wire",
        .mac = { 0x02, 0, 0, 0, 0, (u8)(index + 1) },
        .mtu = NET_MTU,
        .num_queues = queues,
        .offloads = STACK_CSUM_IP,
        .steers = true,
    };
    return net_create(index, &end->dev, queues, wire_key, &end->net);
}

int net_init_wire(const struct wire_config *config)
{
    if (config->queues == 0 || config->queues > MAX_CPUS || config->loss_ppm > PPM || sched_domain(1).num_cpus == 0) {
        log_error("net: a wire needs 1..%u queues, at most %u ppm of loss, and CPUs in both domains", MAX_CPUS, PPM);
        return -EINVAL;
    }
    wire = *config;
    for (u32 i = 0; i < WIRE_ENDS; i++) {
        int error = make_end(i, config);
        if (error != 0) {
            return error;
        }
    }
    for (u32 i = 0; i < WIRE_ENDS; i++) {
        int error = net_configure(ends[i].net, &config->ends[i]);
        if (error != 0) {
            return error;
        }
    }
    log_info("net: wire of %u and %u queues, delay %llu ns, loss %u ppm", ends[0].dev.num_queues, ends[1].dev.num_queues,
             (unsigned long long)config->delay_ns, config->loss_ppm);
    return 0;
}
