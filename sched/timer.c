/* Per-CPU timer queues over the CPU's one-shot timer.
 *
 * A timer is in the queue of the CPU that armed it last; timer->cpu changes only while it is not armed, under the lock of the
 * old CPU's queue.  Callbacks run without the queue's lock; `firing` names the one that runs. */
#include "sched/thread.h"

struct timer_queue {
    struct spinlock lock; /* irq class, RANK_TIMER */
    struct heap_node *root;
    struct timer *firing;
    u64 programmed_ns; /* what the hardware is set to; UINT64_MAX: nothing */
} __cacheline_aligned;

static struct timer_queue queues[MAX_CPUS];
static struct lock_class timer_lock_class = { .name = "timer", .rank = RANK_TIMER, .irq = true };

void timers_init_cpu(u32 cpu)
{
    spin_init(&queues[cpu].lock, &timer_lock_class);
    queues[cpu].programmed_ns = UINT64_MAX;
}

static struct timer *first_of(const struct timer_queue *q)
{
    return q->root ? container_of(q->root, struct timer, node) : NULL;
}

/* Sets the hardware to the first deadline; this CPU's queue, lock held.  A later deadline than programmed is left to a
 * spurious interrupt: cheaper than reprogramming on every cancel. */
static void program(struct timer_queue *q)
{
    struct timer *t = first_of(q);
    if (t && t->node.key < q->programmed_ns) {
        q->programmed_ns = t->node.key;
        arch_timer_arm(t->node.key);
    }
}

void timer_init(struct timer *t, void (*fn)(struct timer *t))
{
    *t = (struct timer){ .fn = fn };
}

/* Locks the queue that t is or was last in. */
static struct timer_queue *lock_queue_of(struct timer *t)
{
    for (;;) {
        u32 cpu = READ_ONCE(t->cpu);
        struct timer_queue *q = &queues[cpu];
        spin_acquire_raw(&q->lock);
        if (READ_ONCE(t->cpu) == cpu) {
            return q;
        }
        spin_release_raw(&q->lock);
    }
}

void timer_arm(struct timer *t, u64 deadline_ns)
{
    irqflags_t flags = arch_irq_save();
    struct timer_queue *old = lock_queue_of(t);
    if (t->armed) {
        heap_remove(&old->root, &t->node);
        t->armed = false;
    }
    u32 here = this_cpu()->cpu;
    struct timer_queue *q = &queues[here];
    if (q != old) {
        WRITE_ONCE(t->cpu, here);
        spin_release_raw(&old->lock);
        spin_acquire_raw(&q->lock);
    }
    t->node.key = deadline_ns;
    t->armed = true;
    heap_insert(&q->root, &t->node);
    program(q);
    spin_release_raw(&q->lock);
    arch_irq_restore(flags);
}

bool timer_cancel(struct timer *t)
{
    irqflags_t flags = arch_irq_save();
    struct timer_queue *q = lock_queue_of(t);
    bool was = t->armed;
    if (was) {
        heap_remove(&q->root, &t->node);
        t->armed = false;
    }
    spin_release_raw(&q->lock);
    arch_irq_restore(flags);
    return was;
}

bool timer_cancel_sync(struct timer *t)
{
    bool was = timer_cancel(t);
    while (READ_ONCE(queues[READ_ONCE(t->cpu)].firing) == t) {
        arch_cpu_relax();
    }
    return was;
}

void timers_run(u32 cpu)
{
    struct timer_queue *q = &queues[cpu];
    spin_acquire_raw(&q->lock);
    q->programmed_ns = UINT64_MAX;
    u64 now = arch_clock_ns();
    struct timer *t;
    while ((t = first_of(q)) && t->node.key <= now) {
        heap_remove(&q->root, &t->node);
        t->armed = false;
        WRITE_ONCE(q->firing, t);
        spin_release_raw(&q->lock);
        t->fn(t);
        spin_acquire_raw(&q->lock);
        WRITE_ONCE(q->firing, NULL);
        now = arch_clock_ns();
    }
    program(q);
    spin_release_raw(&q->lock);
}
