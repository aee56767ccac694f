/* The virtio network device: shared by its files. */
#ifndef WEIR_NET_VIRTIO_NET_DEV_H
#define WEIR_NET_VIRTIO_NET_DEV_H

#include "core/base/spinlock.h"
#include "net/net_impl.h"
#include "net/virtio/pci.h"

/* Feature bits (virtio 1.2, 5.1.3). */
enum {
    NET_F_CSUM = 0, NET_F_GUEST_CSUM = 1, NET_F_MTU = 3, NET_F_MAC = 5, NET_F_MRG_RXBUF = 15, NET_F_STATUS = 16,
    NET_F_CTRL_VQ = 17, NET_F_MQ = 22, NET_F_RSS = 60,
};

/* Before every frame (5.1.6.1). */
struct virtio_net_hdr {
    u8 flags, gso_type;
    u16 hdr_len, gso_size, csum_start, csum_offset, num_buffers;
};
enum { HDR_NEEDS_CSUM = 1, HDR_DATA_VALID = 2 };

struct receive_queue {
    struct vring ring;
    volatile u16 *doorbell;
    u16 index;
    struct packet *slots[NET_VIRTIO_RING]; /* by descriptor: the buffer that the device has */
    u64 bad_lengths, bad_slots, refill_failures, merged;
    u64 starved; /* times that the device had run out of buffers, or nearly */
    int vector;
};

struct transmit_queue {
    struct spinlock lock;      /* RANK_NET_DEVICE; taken only if instances share the queue */
    struct vring ring;
    volatile u16 *doorbell;
    u16 index;
    u16 num_free;
    u16 free[NET_VIRTIO_RING]; /* descriptors */
    u8 *buffers[NET_VIRTIO_RING];
    bool busy[NET_VIRTIO_RING]; /* the device has it */
    u64 full, doorbells, bad_slots;
};

struct queue_pair {
    struct receive_queue rx;
    struct transmit_queue tx;
};

struct virtio_net {
    struct netdev dev;
    struct virtio_pci pci;
    u64 features;
    u16 max_pairs;
    bool shared;               /* several instances send through one queue */
    struct queue_pair *pairs;
    /* Control queue: one command at a time, at start-up. */
    struct vring ctrl_ring;
    volatile u16 *ctrl_doorbell;
    u16 ctrl_index;
    u8 *ctrl_page;
};

/* virtio/ctrl.c: both wait for the device (bounded).  -EIO: it refuses, or does not answer. */
int virtio_net_ctrl_start(struct virtio_net *v);
int virtio_net_set_pairs(struct virtio_net *v, u16 pairs);
int virtio_net_set_rss(struct virtio_net *v, u16 pairs, const u8 *key);
/* virtio/net.c: memory for a ring.  NULL: none. */
void *virtio_ring_memory(u16 size);

/* virtio/datapath.c */
extern const struct netdev_ops virtio_net_ops;
void virtio_net_fill_receive(struct virtio_net *v, struct instance *in, struct receive_queue *q);

#endif
