/* One lwIP instance in the kernel: its lock, its packets, its deferred work, its timer.
 *
 * Everything about the connections of an instance, including the sockets' receive queues, is protected by its lock.  Any CPU may
 * take it; the instance's own CPU does so for each receive pass. */
#ifndef WEIR_NET_INSTANCE_H
#define WEIR_NET_INSTANCE_H

#include "core/base/spinlock.h"
#include "net/inqueue.h"
#include "net/netdev.h"
#include "net/stack/stack.h"
#include "sched/sched.h"

struct net;

struct instance_counters {
    u64 passes, passes_full;      /* receive passes; those that used up their budget */
    u64 rx_packets, rx_bytes, rx_dropped_memory, rx_dropped_limit;
    u64 tx_packets, tx_bytes, tx_dropped;
    u64 interrupts, steered_out, steered_in, broadcast_copies, fragments_dropped;
    u64 wakes;                    /* threads woken from the receive path */
    u64 remote_calls;             /* socket calls from another CPU than the instance's */
    u64 timer_runs, loopback_deferred;
    u64 packet_failures;
    u64 contended;                /* the lock was taken when it was wanted */
};

struct instance {
    struct spinlock lock;
    const struct stack_ops *ops;
    struct net *net;
    struct netdev *dev;      /* NULL: loopback only */
    u32 index;               /* in its net */
    u32 cpu;
    u32 queue;               /* device queue that it sends to */
    bool owns_queue;         /* and that it receives from */

    /* Under lock. */
    struct wake_batch *batch; /* of whoever holds the lock */
    struct packet *free_packets;
    u32 num_free;
    u32 held;                 /* packets that lwIP and the sockets hold */
    u32 tx_pending;           /* frames that wait for the doorbell */
    bool in_pass;             /* a receive pass runs: leave() does not look at the loopback */
    u64 timer_at;             /* what `timer` is armed for; UINT64_MAX: not armed */
    struct instance_counters counters;

    struct timer timer;
    struct softwork work;
    struct stack_env env;
    struct inqueue input __cacheline_aligned; /* from instances on other CPUs: steering, ARP */
};

/* The packets that one receive pass hands to other instances: they are notified once each at its end. */
struct receive_batch {
    struct instance *in;
    u64 touched; /* instances of the same net */
};

extern struct lock_class instance_lock_class;

/* Loads an image and starts lwIP.  Thread context.  -ENOMEM, -EINVAL. */
int instance_init(struct instance *in, struct net *net, struct netdev *dev, u32 index, u32 cpu);

/* The lock is held by somebody else: spins until it is free.  Interrupts off. */
void instance_wait(struct instance *in);

/* Brackets of everything that is done to an instance.  What is woken in between is in the batch and runs after leave().
 *
 * Whoever finds the lock free takes it: no queue.  A ticket lock hands over to the next in line even if the host has taken
 * that CPU away: with 4 CPUs on a busy two-core host each hand-over took a host time slice, and 10 connections got 40
 * requests a second. */
static inline irqflags_t instance_enter(struct instance *in, struct wake_batch *batch)
{
    wake_batch_begin(batch);
    irqflags_t flags = arch_irq_save();
    if (unlikely(!spin_try_raw(&in->lock))) {
        instance_wait(in);
    }
    in->batch = batch;
    return flags;
}
/* Loopback, timer, doorbell; then unlocks and sends the wakeup IPIs. */
void instance_leave(struct instance *in, struct wake_batch *batch, irqflags_t flags);

/* Hands a frame to lwIP; the packet is taken.  Under the lock. */
void instance_input(struct instance *in, struct packet *p);
/* Puts a packet into the input queue of another instance; the caller notifies later.  Takes the packet. */
bool instance_steer(struct instance *to, struct packet *p);
/* Makes sure that the instance looks at its input queue.  Preemption off. */
void instance_notify(struct instance *in);
/* Has the instance's CPU run a receive pass: deferred work here, an interrupt there.  Preemption off. */
void instance_call(struct instance *in);

/* sockets.c side: what lwIP tells (struct stack_env). */
void socket_fill_env(struct stack_env *env);

#endif
