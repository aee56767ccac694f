/* virtio-net: finding the device, features, queues, vectors. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/mm/mm.h"
#include "net/virtio/net_dev.h"

/* Device configuration (virtio 1.2, 5.1.4). */
enum { CONFIG_MAC = 0, CONFIG_MAX_PAIRS = 8, CONFIG_MTU = 10, CONFIG_RSS_MAX_KEY = 17, CONFIG_RSS_MAX_TABLE = 18 };

#define WANTED_FEATURES                                                                                                    \
    (BIT(NET_F_CSUM) | BIT(NET_F_GUEST_CSUM) | BIT(NET_F_MTU) | BIT(NET_F_MAC) | BIT(NET_F_MRG_RXBUF) |                    \
     BIT(NET_F_CTRL_VQ) | BIT(NET_F_MQ) | BIT(NET_F_RSS) | BIT(VIRTIO_F_EVENT_IDX) | BIT(VIRTIO_F_VERSION_1))

static struct lock_class transmit_lock_class = { .name = "virtio_transmit", .rank = RANK_NET_DEVICE, .irq = true };

struct finder {
    struct arch_pci_dev dev;
    bool found;
};

static bool look_at(const struct arch_pci_dev *dev, void *arg)
{
    struct finder *f = arg;
    if (dev->vendor == VIRTIO_VENDOR && (dev->device == VIRTIO_DEVICE_NET || dev->device == VIRTIO_DEVICE_NET_TRANSITIONAL)) {
        f->dev = *dev;
        f->found = true;
    }
    return !f->found;
}

void *virtio_ring_memory(u16 size)
{
    size_t pages = ALIGN_UP(vring_bytes(size), PAGE_SIZE) / PAGE_SIZE;
    u32 order = 0;
    while ((1u << order) < pages) {
        order++;
    }
    paddr_t pa = page_alloc_zeroed(order, MEM_NET);
    return pa != 0 ? phys_to_virt(pa) : NULL;
}

/* Rings are powers of two; the device offers one, and we use at most NET_VIRTIO_RING of it. */
static u16 ring_size(struct virtio_net *v, u16 index)
{
    u16 size = virtio_pci_queue_size(&v->pci, index);
    return (size & (size - 1)) != 0 ? 0 : MIN(size, NET_VIRTIO_RING);
}

static int start_ring(struct virtio_net *v, struct vring *r, u16 index, u16 vector, volatile u16 **doorbell)
{
    u16 size = ring_size(v, index);
    void *memory = size != 0 ? virtio_ring_memory(size) : NULL;
    if (memory == NULL) {
        return size == 0 ? -EINVAL : -ENOMEM;
    }
    vring_init(r, memory, size, (v->features & BIT(VIRTIO_F_EVENT_IDX)) != 0);
    return virtio_pci_queue_start(&v->pci, index, r, vector, doorbell);
}

static int start_transmit(struct virtio_net *v, struct transmit_queue *q, u16 index)
{
    spin_init(&q->lock, &transmit_lock_class);
    q->index = index;
    int error = start_ring(v, &q->ring, index, VIRTIO_NO_VECTOR, &q->doorbell);
    if (error != 0) {
        return error;
    }
    for (u16 i = 0; i < q->ring.size; i += 2) { /* two buffers of half a page each */
        paddr_t pa = page_alloc(0, MEM_NET);
        if (pa == 0) {
            return -ENOMEM;
        }
        for (u16 k = 0; k < 2 && i + k < q->ring.size; k++) {
            u16 slot = (u16)(i + k);
            q->buffers[slot] = (u8 *)phys_to_virt(pa) + k * NET_PACKET_SIZE;
            q->ring.desc[slot].addr = virt_to_phys(q->buffers[slot]);
            q->free[q->num_free++] = slot;
        }
    }
    return 0;
}

static void on_interrupt(void *arg)
{
    instance_interrupt(arg);
}

static int start_pair(struct virtio_net *v, u16 pair)
{
    struct queue_pair *p = &v->pairs[pair];
    p->rx.index = (u16)(2 * pair);
    int error = start_ring(v, &p->rx.ring, p->rx.index, pair, &p->rx.doorbell);
    return error != 0 ? error : start_transmit(v, &p->tx, (u16)(2 * pair + 1));
}

/* How many pairs the device, its vectors and the caller allow. */
static u16 choose_pairs(struct virtio_net *v, u32 wanted)
{
    bool multi = (v->features & (BIT(NET_F_MQ) | BIT(NET_F_RSS))) != 0 && (v->features & BIT(NET_F_CTRL_VQ)) != 0;
    v->max_pairs = multi ? virtio_pci_config16(&v->pci, CONFIG_MAX_PAIRS) : 1;
    v->max_pairs = MAX(v->max_pairs, (u16)1);
    u32 pairs = MIN(MIN(wanted, (u32)v->max_pairs), (u32)MAX_CPUS);
    if (pairs > v->pci.num_vectors) {
        log_warn("net: %u queues, not %u: the device has %u MSI-X vectors", v->pci.num_vectors, pairs, v->pci.num_vectors);
        pairs = v->pci.num_vectors;
    }
    return (u16)pairs;
}

/* Steering: by RSS with our key if the device can, else the device's own way (and packets are sorted in software). */
static int start_steering(struct virtio_net *v, u16 pairs, const u8 *key)
{
    if (pairs == 1 && v->max_pairs == 1) {
        return 0;
    }
    int error = virtio_net_ctrl_start(v);
    if (error != 0 || pairs == 1) {
        return error;
    }
    if ((v->features & BIT(NET_F_RSS)) != 0 && virtio_pci_config8(&v->pci, CONFIG_RSS_MAX_KEY) >= TOEPLITZ_KEY_BYTES &&
        virtio_pci_config16(&v->pci, CONFIG_RSS_MAX_TABLE) >= NET_RSS_TABLE) {
        virtio_pci_driver_ok(&v->pci);
        if (virtio_net_set_rss(v, pairs, key) == 0) {
            v->dev.steers = true;
            return 0;
        }
        log_warn("net: the device refuses our RSS configuration; flows are steered in software");
    }
    virtio_pci_driver_ok(&v->pci);
    error = virtio_net_set_pairs(v, pairs);
    if (error != 0) {
        log_error("net: the device refuses %u queue pairs", pairs);
    }
    return error;
}

static void read_config(struct virtio_net *v)
{
    v->dev.mtu = NET_MTU;
    if ((v->features & BIT(NET_F_MTU)) != 0) {
        u16 mtu = virtio_pci_config16(&v->pci, CONFIG_MTU);
        v->dev.mtu = mtu >= 576 && mtu < NET_MTU ? mtu : NET_MTU; /* a larger one is not used: buffers hold 1500 */
    }
    if ((v->features & BIT(NET_F_MAC)) != 0) {
        for (u32 i = 0; i < sizeof(v->dev.mac); i++) {
            v->dev.mac[i] = virtio_pci_config8(&v->pci, CONFIG_MAC + i);
        }
    } else {
        u8 local[6] = { 0x02, 'w', 'e', 'i', 'r', 0 }; /* locally administered */
        memcpy(v->dev.mac, local, sizeof(local));
    }
    v->dev.offloads = (v->features & BIT(NET_F_CSUM)) != 0 ? STACK_CSUM_TX : 0;
}

static int start_device(struct virtio_net *v, u32 wanted, const u8 *key)
{
    v->features = virtio_pci_negotiate(&v->pci, WANTED_FEATURES);
    if (v->features == 0) {
        return -EINVAL;
    }
    read_config(v);
    u16 pairs = choose_pairs(v, wanted);
    if (pairs == 0) {
        log_error("net: the virtio device has no MSI-X vectors");
        return -EINVAL;
    }
    v->pairs = kzalloc(sizeof(struct queue_pair) * pairs);
    if (v->pairs == NULL) {
        return -ENOMEM;
    }
    v->dev.num_queues = pairs;
    virtio_pci_enable_vectors(&v->pci);
    for (u16 i = 0; i < pairs; i++) {
        int error = start_pair(v, i);
        if (error != 0) {
            log_error("net: queue pair %u of the virtio device cannot start: error %d", i, -error);
            return error;
        }
    }
    return start_steering(v, pairs, key);
}

int virtio_net_find(u32 num_queues, u32 first_cpu, u32 num_cpus, const u8 key[TOEPLITZ_KEY_BYTES], struct netdev **out)
{
    struct finder f = { .found = false };
    (void)first_cpu;
    arch_pci_scan(look_at, &f);
    if (!f.found) {
        log_warn("net: no virtio network device (QEMU: -device virtio-net-pci,netdev=...); only loopback works");
        return -ENODEV;
    }
    struct virtio_net *v = kzalloc(sizeof(*v));
    if (v == NULL) {
        return -ENOMEM;
    }
    v->dev.ops = &virtio_net_ops;
    v->dev.name = "virtio-net";
    int error = virtio_pci_open(&v->pci, &f.dev);
    if (error == 0) {
        error = start_device(v, MIN(num_queues, num_cpus), key);
        if (error != 0) {
            virtio_pci_reset(&v->pci);
        }
    }
    if (error != 0) {
        kfree(v);
        return error;
    }
    *out = &v->dev;
    return 0;
}

/* Vectors go to the CPUs of the instances.  A CPU without a free vector leaves its queue to be polled by nobody: so the
 * flows of that queue would hang; such a machine keeps to the queues that have one, which is decided here. */
static bool give_vector(struct virtio_net *v, u32 queue, struct instance *in)
{
    struct arch_msi msi;
    int vector = arch_irq_alloc_msi(in->cpu, on_interrupt, in, &msi);
    if (vector < 0) {
        return false;
    }
    v->pairs[queue].rx.vector = vector;
    virtio_pci_set_vector(&v->pci, queue, &msi);
    return true;
}

void virtio_net_ready(struct netdev *dev)
{
    struct virtio_net *v = container_of(dev, struct virtio_net, dev);
    struct net *net = dev->instances[0].net;
    v->shared = net->num_instances > dev->num_queues;
    virtio_pci_driver_ok(&v->pci);
    for (u32 i = 0; i < dev->num_queues; i++) {
        struct instance *in = &dev->instances[i];
        if (!give_vector(v, i, in)) {
            log_error("net: CPU %u has no interrupt vector left for queue %u", in->cpu, i);
            continue;
        }
        struct wake_batch batch;
        irqflags_t flags = instance_enter(in, &batch);
        virtio_net_fill_receive(v, in, &v->pairs[i].rx);
        (void)vring_unmask(&v->pairs[i].rx.ring);
        instance_leave(in, &batch, flags);
    }
}
