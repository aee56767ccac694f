/* The control queue: queue pairs and RSS (virtio 1.2, 5.1.6.5). */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/mm/mm.h"
#include "net/virtio/net_dev.h"

enum { CLASS_MQ = 4, MQ_PAIRS_SET = 0, MQ_RSS_CONFIG = 1, ANSWER_OK = 0, ANSWER_NONE = 0xff };
enum { HASH_IPV4 = 1, HASH_TCPV4 = 2 };
/* Layout of the page that commands are made in. */
enum { HEADER_AT = 0, DATA_AT = 64, ANSWER_AT = 2048 };
#define ANSWER_TIMEOUT_NS NSEC_PER_SEC

int virtio_net_ctrl_start(struct virtio_net *v)
{
    v->ctrl_index = (u16)(2 * v->max_pairs);
    u16 size = MIN(virtio_pci_queue_size(&v->pci, v->ctrl_index), NET_VIRTIO_RING);
    void *memory = size != 0 ? virtio_ring_memory(size) : NULL;
    paddr_t page = page_alloc_zeroed(0, MEM_NET);
    if (memory == NULL || page == 0) {
        return -ENOMEM;
    }
    v->ctrl_page = phys_to_virt(page);
    vring_init(&v->ctrl_ring, memory, size, (v->features & BIT(VIRTIO_F_EVENT_IDX)) != 0);
    return virtio_pci_queue_start(&v->pci, v->ctrl_index, &v->ctrl_ring, VIRTIO_NO_VECTOR, &v->ctrl_doorbell);
}

/* Sends the command whose data lies at DATA_AT. */
static int command(struct virtio_net *v, u8 class, u8 cmd, u32 bytes)
{
    struct vring *r = &v->ctrl_ring;
    paddr_t page = virt_to_phys(v->ctrl_page);
    v->ctrl_page[HEADER_AT] = class;
    v->ctrl_page[HEADER_AT + 1] = cmd;
    WRITE_ONCE(v->ctrl_page[ANSWER_AT], ANSWER_NONE);
    r->desc[0] = (struct vring_desc){ page + HEADER_AT, 2, VRING_DESC_NEXT, 1 };
    r->desc[1] = (struct vring_desc){ page + DATA_AT, bytes, VRING_DESC_NEXT, 2 };
    r->desc[2] = (struct vring_desc){ page + ANSWER_AT, 1, VRING_DESC_WRITE, 0 };
    vring_add(r, 0);
    if (vring_publish(r)) {
        *v->ctrl_doorbell = v->ctrl_index;
    }
    u64 deadline = arch_clock_ns() + ANSWER_TIMEOUT_NS;
    u32 id, len;
    while (!vring_take(r, &id, &len)) {
        if (arch_clock_ns() > deadline) {
            return -EIO;
        }
        arch_cpu_relax();
    }
    return READ_ONCE(v->ctrl_page[ANSWER_AT]) == ANSWER_OK ? 0 : -EIO;
}

static u8 *put16(u8 *p, u16 value)
{
    memcpy(p, &value, sizeof(value));
    return p + sizeof(value);
}

int virtio_net_set_pairs(struct virtio_net *v, u16 pairs)
{
    put16(v->ctrl_page + DATA_AT, pairs);
    return command(v, CLASS_MQ, MQ_PAIRS_SET, sizeof(pairs));
}

int virtio_net_set_rss(struct virtio_net *v, u16 pairs, const u8 *key)
{
    u32 hash_types = HASH_IPV4 | HASH_TCPV4;
    u8 *p = v->ctrl_page + DATA_AT;
    memcpy(p, &hash_types, sizeof(hash_types));
    p = put16(p + sizeof(hash_types), NET_RSS_TABLE - 1);
    p = put16(p, 0); /* what has no hash goes to queue 0 */
    for (u32 i = 0; i < NET_RSS_TABLE; i++) {
        p = put16(p, (u16)(i % pairs));
    }
    p = put16(p, pairs);
    *p++ = TOEPLITZ_KEY_BYTES;
    memcpy(p, key, TOEPLITZ_KEY_BYTES);
    p += TOEPLITZ_KEY_BYTES;
    return command(v, CLASS_MQ, MQ_RSS_CONFIG, (u32)(p - (v->ctrl_page + DATA_AT)));
}
