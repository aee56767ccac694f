/* virtio-net: receiving and sending packets.
 *
 * Receive descriptor i always carries slot i's buffer; a buffer that goes up to lwIP is replaced at once, or kept, and its packet
 * dropped, if there is no memory: the ring is always full.  Send descriptor i has a buffer of its own into which the
 * frame is copied: no completion has to find its owner, and none interrupts. */
#include "core/base/string.h"
#include "core/mm/mm.h"
#include "net/virtio/net_dev.h"

#define HDR_BYTES ((u32)sizeof(struct virtio_net_hdr))

static struct virtio_net *device_of(struct netdev *dev)
{
    return container_of(dev, struct virtio_net, dev);
}

/* ---- receiving ---- */

static void offer(struct receive_queue *q, u16 slot, struct packet *p)
{
    q->slots[slot] = p;
    q->ring.desc[slot] = (struct vring_desc){ virt_to_phys(p->data), PACKET_ROOM, VRING_DESC_WRITE, 0 };
    vring_add(&q->ring, slot);
}

static void publish(struct vring *r, volatile u16 *doorbell, u16 index)
{
    if (vring_publish(r)) {
        *doorbell = index;
    }
}

void virtio_net_fill_receive(struct virtio_net *v, struct instance *in, struct receive_queue *q)
{
    (void)v;
    for (u16 slot = 0; slot < q->ring.size; slot++) {
        struct packet *p = instance_packet_alloc(in);
        if (p == NULL) {
            q->refill_failures++;
            break;
        }
        offer(q, slot, p);
    }
    publish(&q->ring, q->doorbell, q->index);
}

/* The next buffer that the device has filled, replaced by a new one; NULL if there is none.  A buffer that is not to be
 * believed, or cannot be replaced, goes straight back; *len is 0 then. */
static struct packet *next_buffer(struct receive_queue *q, struct instance *in, u32 *len)
{
    u32 id;
    for (;;) {
        if (!vring_take(&q->ring, &id, len)) {
            return NULL;
        }
        if (q->slots[id] != NULL) {
            break;
        }
        q->bad_slots++; /* a buffer that the device does not have */
    }
    struct packet *p = q->slots[id];
    struct packet *fresh = *len <= PACKET_ROOM ? instance_packet_alloc(in) : NULL;
    if (fresh == NULL) {
        if (*len > PACKET_ROOM) {
            q->bad_lengths++;
        } else {
            q->refill_failures++;
        }
        offer(q, (u16)id, p);
        *len = 0;
        return p;
    }
    offer(q, (u16)id, fresh);
    p->more = NULL;
    return p;
}

static void drop(struct instance *in, struct packet *p)
{
    while (p != NULL) {
        struct packet *more = p->more;
        instance_packet_free(in, p);
        p = more;
    }
}

/* The other buffers of a merged frame.  false: the frame is incomplete. */
static bool collect(struct receive_queue *q, struct instance *in, struct packet *first, u32 buffers)
{
    struct packet *last = first;
    bool whole = true;
    for (u32 i = 1; i < buffers; i++) {
        u32 len;
        struct packet *p = next_buffer(q, in, &len);
        if (p == NULL) {
            return false;
        }
        if (len == 0) {
            whole = false;
            continue;
        }
        p->start = 0;
        p->len = (u16)len;
        p->flags = 0;
        last->more = p;
        last = p;
        q->merged++;
    }
    return whole;
}

static void receive_one(struct receive_queue *q, struct receive_batch *batch, struct packet *p, u32 len)
{
    struct instance *in = batch->in;
    struct virtio_net_hdr hdr;
    if (len < HDR_BYTES + NET_ETH_HEADER) {
        q->bad_lengths++;
        instance_packet_free(in, p);
        return;
    }
    memcpy(&hdr, p->data, sizeof(hdr));
    p->start = HDR_BYTES;
    p->len = (u16)(len - HDR_BYTES);
    p->flags = (hdr.flags & (HDR_NEEDS_CSUM | HDR_DATA_VALID)) != 0 ? PACKET_CSUM_OK : 0;
    if (hdr.num_buffers > 1 && !collect(q, in, p, MIN(hdr.num_buffers, q->ring.size))) {
        q->bad_lengths++;
        drop(in, p);
        return;
    }
    net_receive(batch, p);
}

/* A device that wants to know of new buffers had run out of them, and may have stopped reading from where its packets come from.
 * With receive-side scaling it has several such sources, none of which is bound to the queue that was empty: QEMU stops the one
 * whose packet found no buffer, and goes on with it only at that source's own doorbell.  So all are rung; it is rare. */
static void publish_received(struct virtio_net *v, struct receive_queue *q)
{
    if (!vring_publish(&q->ring)) {
        return;
    }
    q->starved++;
    for (u32 i = 0; i < v->dev.num_queues; i++) {
        *v->pairs[i].rx.doorbell = v->pairs[i].rx.index;
    }
}

static u32 poll_queue(struct netdev *dev, u32 queue, u32 budget, struct receive_batch *batch)
{
    struct receive_queue *q = &device_of(dev)->pairs[queue].rx;
    u32 done = 0, len;
    vring_mask(&q->ring);
    while (done < budget) {
        struct packet *p = next_buffer(q, batch->in, &len);
        if (p == NULL) {
            break;
        }
        done++;
        if (len != 0) {
            receive_one(q, batch, p, len);
        }
    }
    if (done > 0) {
        publish_received(device_of(dev), q);
    }
    return done;
}

static bool rest_queue(struct netdev *dev, u32 queue)
{
    return vring_unmask(&device_of(dev)->pairs[queue].rx.ring);
}

/* ---- sending ---- */

static void reclaim(struct transmit_queue *q)
{
    u32 id, len;
    while (vring_take(&q->ring, &id, &len)) {
        if (!q->busy[id]) {
            q->bad_slots++; /* completed twice, or never sent: else two frames would share a buffer */
            continue;
        }
        q->busy[id] = false;
        q->free[q->num_free++] = (u16)id;
    }
}

static u32 get16(const u8 *p)
{
    return (u32)p[0] << 8 | p[1];
}

/* Asks the device to complete a TCP or UDP checksum: it adds the data, we give the pseudo header's sum (5.1.6.2). */
static void request_checksum(struct virtio_net_hdr *hdr, u8 *frame, u32 len)
{
    enum { IP = NET_ETH_HEADER, TYPE_IP = 0x0800, TCP = 6, UDP = 17, TCP_SUM = 16, UDP_SUM = 6, FRAGMENT = 0x3fff };
    if (len < IP + 20 || get16(frame + 12) != TYPE_IP || (get16(frame + IP + 6) & FRAGMENT) != 0) {
        return;
    }
    u32 header = (frame[IP] & 15u) * 4, protocol = frame[IP + 9];
    u32 sum_at = protocol == TCP ? TCP_SUM : UDP_SUM, transport = get16(frame + IP + 2) - header;
    if ((protocol != TCP && protocol != UDP) || IP + header + sum_at + 2 > len) {
        return;
    }
    u32 sum = protocol + transport;
    for (u32 i = 12; i < 20; i += 2) {
        sum += get16(frame + IP + i);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    u8 *at = frame + IP + header + sum_at;
    at[0] = (u8)(sum >> 8);
    at[1] = (u8)sum;
    hdr->flags = HDR_NEEDS_CSUM;
    hdr->csum_start = (u16)(IP + header);
    hdr->csum_offset = (u16)sum_at;
}

static bool send_locked(struct virtio_net *v, struct transmit_queue *q, const struct stack_buf *frame)
{
    if (q->num_free == 0) {
        reclaim(q);
    }
    if (q->num_free == 0 || frame->total > PACKET_ROOM - HDR_BYTES) {
        q->full++;
        return false;
    }
    u16 slot = q->free[--q->num_free];
    q->busy[slot] = true;
    u8 *buffer = q->buffers[slot], *to = buffer + HDR_BYTES;
    u32 len = frame->total;
    for (; frame != NULL; frame = frame->next) {
        memcpy(to, frame->data, frame->len);
        to += frame->len;
    }
    struct virtio_net_hdr hdr = { 0 };
    if ((v->features & BIT(NET_F_CSUM)) != 0) {
        request_checksum(&hdr, buffer + HDR_BYTES, len);
    }
    memcpy(buffer, &hdr, sizeof(hdr));
    q->ring.desc[slot].len = HDR_BYTES + len;
    vring_add(&q->ring, slot);
    return true;
}

static bool transmit(struct netdev *dev, u32 queue, struct instance *in, const struct stack_buf *frame)
{
    (void)in;
    struct virtio_net *v = device_of(dev);
    struct transmit_queue *q = &v->pairs[queue].tx;
    if (!v->shared) {
        return send_locked(v, q, frame);
    }
    irqflags_t flags = spin_lock_irq(&q->lock);
    bool sent = send_locked(v, q, frame);
    spin_unlock_irq(&q->lock, flags);
    return sent;
}

static void kick(struct netdev *dev, u32 queue)
{
    struct virtio_net *v = device_of(dev);
    struct transmit_queue *q = &v->pairs[queue].tx;
    irqflags_t flags = v->shared ? spin_lock_irq(&q->lock) : 0;
    if (vring_publish(&q->ring)) {
        q->doorbells++;
        *q->doorbell = q->index;
    }
    if (v->shared) {
        spin_unlock_irq(&q->lock, flags);
    }
}

/* ---- the rest ---- */

static void stop(struct netdev *dev)
{
    virtio_pci_reset(&device_of(dev)->pci);
}

static void counters(struct netdev *dev, void (*emit)(const char *name, const char *labels, u64 value, void *arg), void *arg)
{
    struct virtio_net *v = device_of(dev);
    for (u32 i = 0; i < dev->num_queues; i++) {
        const struct queue_pair *p = &v->pairs[i];
        char labels[48];
        str_format(labels, sizeof(labels), "queue=\"%u\"", i);
        emit("virtio_rx_bad_ids_total", labels, READ_ONCE(p->rx.ring.bad_ids) + READ_ONCE(p->rx.bad_slots), arg);
        emit("virtio_rx_bad_lengths_total", labels, READ_ONCE(p->rx.bad_lengths), arg);
        emit("virtio_rx_refill_failures_total", labels, READ_ONCE(p->rx.refill_failures), arg);
        emit("virtio_rx_starved_total", labels, READ_ONCE(p->rx.starved), arg);
        emit("virtio_rx_merged_buffers_total", labels, READ_ONCE(p->rx.merged), arg);
        emit("virtio_tx_bad_ids_total", labels, READ_ONCE(p->tx.ring.bad_ids) + READ_ONCE(p->tx.bad_slots), arg);
        emit("virtio_tx_full_total", labels, READ_ONCE(p->tx.full), arg);
        emit("virtio_tx_doorbells_total", labels, READ_ONCE(p->tx.doorbells), arg);
    }
}

const struct netdev_ops virtio_net_ops = {
    .poll = poll_queue,
    .rest = rest_queue,
    .transmit = transmit,
    .kick = kick,
    .stop = stop,
    .counters = counters,
};
