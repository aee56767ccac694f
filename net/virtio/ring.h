/* Split virtqueues (virtio 1.2, section 2.7): layout and index arithmetic.  No device access: runs in host tests.
 *
 * The caller serialises all calls on one ring.  What the device writes (used ring, event index) is not trusted: an id is
 * checked by vring_take(), lengths by the caller. */
#ifndef WEIR_NET_VIRTIO_RING_H
#define WEIR_NET_VIRTIO_RING_H

#include "core/base/types.h"

enum vring_desc_flags { VRING_DESC_NEXT = 1, VRING_DESC_WRITE = 2 };

struct vring_desc {
    u64 addr; /* physical */
    u32 len;
    u16 flags, next;
};

struct vring_avail {
    u16 flags, idx;
    u16 ring[]; /* size entries, then used_event */
};

struct vring_used_elem {
    u32 id, len;
};

struct vring_used {
    u16 flags, idx;
    struct vring_used_elem ring[]; /* size entries, then avail_event */
};

struct vring {
    struct vring_desc *desc;
    struct vring_avail *avail;
    struct vring_used *used;
    u16 size;        /* power of two */
    u16 avail_idx;   /* next to be published */
    u16 published;   /* avail->idx as the device was last considered for a notification */
    u16 last_used;   /* next used entry to look at */
    bool event_idx;
    u64 bad_ids;     /* used entries with an id outside the ring */
};

/* Bytes of memory (physically contiguous, page-aligned, zeroed) that a ring of this size needs. */
size_t vring_bytes(u16 size);
void vring_init(struct vring *r, void *memory, u16 size, bool event_idx);

/* Puts descriptor chain `head` at the end of the available ring; not seen by the device before vring_publish(). */
static inline void vring_add(struct vring *r, u16 head)
{
    WRITE_ONCE(r->avail->ring[r->avail_idx & (r->size - 1)], head);
    r->avail_idx++;
}
/* Shows the device what was added.  true: it wants to be notified. */
bool vring_publish(struct vring *r);

/* Takes the next used entry.  false: there is none.  Entries with a bad id are skipped and counted. */
bool vring_take(struct vring *r, u32 *id, u32 *len);

/* No interrupts wanted for now (a hint). */
void vring_mask(struct vring *r);
/* Interrupt on the next used entry.  true: there are some already, and the device may not tell. */
bool vring_unmask(struct vring *r);

#endif
