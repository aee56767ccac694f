#include "net/virtio/ring.h"

enum { AVAIL_NO_INTERRUPT = 1, USED_NO_NOTIFY = 1 };
#define USED_ALIGN 4u

static size_t avail_bytes(u16 size)
{
    return sizeof(struct vring_avail) + (size + 1u) * sizeof(u16); /* + used_event */
}

size_t vring_bytes(u16 size)
{
    return ALIGN_UP(size * sizeof(struct vring_desc) + avail_bytes(size), (size_t)USED_ALIGN) + sizeof(struct vring_used) +
           size * sizeof(struct vring_used_elem) + sizeof(u16);
}

void vring_init(struct vring *r, void *memory, u16 size, bool event_idx)
{
    u8 *p = memory;
    size_t used_at = ALIGN_UP(size * sizeof(struct vring_desc) + avail_bytes(size), (size_t)USED_ALIGN);
    *r = (struct vring){
        .desc = (struct vring_desc *)(void *)p,
        .avail = (struct vring_avail *)(void *)(p + size * sizeof(struct vring_desc)),
        .used = (struct vring_used *)(void *)(p + used_at),
        .size = size,
        .event_idx = event_idx,
    };
}

static u16 *used_event(struct vring *r)
{
    return &r->avail->ring[r->size];
}

static const u16 *avail_event(const struct vring *r)
{
    return (const u16 *)(const void *)&r->used->ring[r->size];
}

bool vring_publish(struct vring *r)
{
    u16 old = r->published, now = r->avail_idx;
    STORE_RELEASE(r->avail->idx, now);
    r->published = now;
    /* The device's wish must be read after it can see the new index. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (r->event_idx) {
        /* virtio 1.2, 2.7.10.1: did the index pass avail_event? */
        return (u16)(now - READ_ONCE(*avail_event(r)) - 1) < (u16)(now - old);
    }
    return now != old && (READ_ONCE(r->used->flags) & USED_NO_NOTIFY) == 0;
}

bool vring_take(struct vring *r, u32 *id, u32 *len)
{
    while (r->last_used != LOAD_ACQUIRE(r->used->idx)) {
        const struct vring_used_elem *e = &r->used->ring[r->last_used & (r->size - 1)];
        *id = READ_ONCE(e->id);
        *len = READ_ONCE(e->len);
        r->last_used++;
        if (*id < r->size) {
            return true;
        }
        r->bad_ids++;
    }
    return false;
}

void vring_mask(struct vring *r)
{
    if (!r->event_idx) {
        WRITE_ONCE(r->avail->flags, AVAIL_NO_INTERRUPT);
    }
    /* With event index nothing is needed: used_event stays behind, and the device interrupts only when passing it. */
}

bool vring_unmask(struct vring *r)
{
    if (r->event_idx) {
        WRITE_ONCE(*used_event(r), r->last_used);
    } else {
        WRITE_ONCE(r->avail->flags, 0);
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return r->last_used != READ_ONCE(r->used->idx);
}
