/* What a network device gives the receive path: virtio-net (net/virtio), one end of the wire (net/wire.c).
 *
 * A device has num_queues queue pairs.  Receive queue i belongs to instance i of its net and interrupts that instance's CPU, where
 * the interrupt raises the instance's deferred work (instance_interrupt). */
#ifndef WEIR_NET_NETDEV_H
#define WEIR_NET_NETDEV_H

#include "core/base/types.h"
#include "net/stack/stack.h"
#include "net/toeplitz.h"

struct instance;
struct netdev;
struct receive_batch;

struct netdev_ops {
    /* Hands at most budget received packets to net_receive(); under the lock of instance `queue`.  Returns how many. */
    u32 (*poll)(struct netdev *dev, u32 queue, u32 budget, struct receive_batch *batch);
    /* Same context: lets the queue interrupt again.  true: packets came meanwhile and no interrupt will tell. */
    bool (*rest)(struct netdev *dev, u32 queue);
    /* Sends a frame (copied); under the lock of `in`, and q's transmit lock if the queue is shared.  false: no room. */
    bool (*transmit)(struct netdev *dev, u32 queue, struct instance *in, const struct stack_buf *frame);
    /* The frames since the last kick may go. */
    void (*kick)(struct netdev *dev, u32 queue);
    /* Stops the device for good: no interrupt, no access to memory afterwards. */
    void (*stop)(struct netdev *dev);
    /* Emits the device's counters. */
    void (*counters)(struct netdev *dev, void (*emit)(const char *name, const char *labels, u64 value, void *arg), void *arg);
};

struct netdev {
    const struct netdev_ops *ops;
    const char *name;
    u8 mac[6];
    u16 mtu;
    u32 num_queues;
    u32 offloads; /* enum stack_offload */
    /* The device steers by our key and table (num_queues > 1): packets arrive at the right instance. */
    bool steers;
    struct instance *instances; /* of its net; set before the first interrupt */
};

/* ---- for devices ---- */

/* Interrupt context, on the queue's CPU. */
void instance_interrupt(struct instance *in);
/* A received frame: to the instance that its flow belongs to.  Takes the packet.  Under the lock of the batch's instance. */
void net_receive(struct receive_batch *batch, struct packet *p);
/* Packet buffers of an instance, under its lock.  NULL: none left (counted). */
struct packet *instance_packet_alloc(struct instance *in);
void instance_packet_free(struct instance *in, struct packet *p);

#endif
