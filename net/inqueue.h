/* Packets from many CPUs to one: lock-free, in order, bounded, with interrupt moderation.
 *
 * Producers push onto a stack by compare-and-swap; the consumer takes the whole stack and turns it round, so packets of one
 * producer stay in order.  `armed` is the consumer's wish to be interrupted: a producer interrupts only if it is set, and
 * clears it; the consumer sets it when it goes to rest and then looks once more (the event index of a device, in one
 * bit).  So at most one interrupt is on its way however many packets come, and none is lost. */
#ifndef WEIR_NET_INQUEUE_H
#define WEIR_NET_INQUEUE_H

#include "core/base/types.h"
#include "net/stack/stack.h"

struct inqueue {
    struct packet *incoming;  /* newest first */
    u32 count;                /* packets in both lists; relaxed */
    u32 armed;
    u64 dropped;              /* pushes refused: the queue was full */
    struct packet *ready __cacheline_aligned; /* the consumer's alone, oldest first */
};

static inline void inqueue_init(struct inqueue *q)
{
    *q = (struct inqueue){ .armed = 1 };
}

/* Any context.  false: full, the packet stays the caller's (counted). */
static inline bool inqueue_push(struct inqueue *q, struct packet *p)
{
    if (__atomic_fetch_add(&q->count, 1, __ATOMIC_RELAXED) >= NET_INQUEUE_LIMIT) {
        __atomic_fetch_sub(&q->count, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&q->dropped, 1, __ATOMIC_RELAXED);
        return false;
    }
    struct packet *head = READ_ONCE(q->incoming);
    do {
        p->next = head;
    } while (!__atomic_compare_exchange_n(&q->incoming, &head, p, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return true;
}

/* After pushes: must the consumer be interrupted?  The caller that gets true does it. */
static inline bool inqueue_must_notify(struct inqueue *q)
{
    return __atomic_load_n(&q->armed, __ATOMIC_SEQ_CST) != 0 && __atomic_exchange_n(&q->armed, 0, __ATOMIC_SEQ_CST) != 0;
}

/* Consumer: the oldest packet, still queued; NULL if there is none. */
static inline struct packet *inqueue_peek(struct inqueue *q)
{
    if (q->ready == NULL && READ_ONCE(q->incoming) != NULL) {
        struct packet *p = __atomic_exchange_n(&q->incoming, NULL, __ATOMIC_SEQ_CST);
        while (p != NULL) {
            struct packet *next = p->next;
            p->next = q->ready;
            q->ready = p;
            p = next;
        }
    }
    return q->ready;
}

static inline struct packet *inqueue_pop(struct inqueue *q)
{
    struct packet *p = inqueue_peek(q);
    if (p != NULL) {
        q->ready = p->next;
        p->next = NULL;
        __atomic_fetch_sub(&q->count, 1, __ATOMIC_RELAXED);
    }
    return p;
}

/* Consumer, before it rests.  true: packets came meanwhile and no interrupt will tell: go on. */
static inline bool inqueue_rest(struct inqueue *q)
{
    __atomic_store_n(&q->armed, 1, __ATOMIC_SEQ_CST);
    if (q->ready == NULL && __atomic_load_n(&q->incoming, __ATOMIC_SEQ_CST) == NULL) {
        return false;
    }
    return __atomic_exchange_n(&q->armed, 0, __ATOMIC_SEQ_CST) != 0;
}

#endif
