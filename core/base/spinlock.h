/* Spin locks with a lock order that debug builds check, and per-class statistics.
 *
 * A lock belongs to a class; classes have ranks (enum lock_rank, the whole kernel's lock order in one place, explained in
 * docs/locking.md).  A CPU may only take a lock of a higher rank than those it holds; of equal rank only where the class
 * says `nest_by_address` (run queues, in CPU order).
 *
 * spin_lock: preemption off until unlock; for locks never taken in interrupt context.
 * spin_lock_irq: interrupts off too; for locks that interrupt handlers take.  A class uses one kind only (checked). */
#ifndef WEIR_CORE_BASE_SPINLOCK_H
#define WEIR_CORE_BASE_SPINLOCK_H

#include "arch/arch.h"
#include "core/base/types.h"

/* Outermost first. */
enum lock_rank {
    RANK_PROC = 10,       /* process tables, file descriptor tables */
    RANK_FILE = 20,       /* a file object, pipe, eventfd, epoll set */
    RANK_SOCKET = 30,     /* socket-layer tables */
    RANK_NET = 40,        /* one lwIP instance with its device queue */
    RANK_NET_DEVICE = 45, /* transmit ring shared between instances, wire */
    RANK_POLL = 48,       /* wait queues of pollable objects (event sources) */
    RANK_FUTEX = 50,      /* a futex hash bucket */
    RANK_WAITQ = 55,      /* a wait queue */
    RANK_THREADS = 60,    /* thread table */
    RANK_RUNQ = 70,       /* a run queue; several in ascending CPU order */
    RANK_QUOTA = 72,      /* a CPU quota group */
    RANK_TIMER = 75,      /* a CPU's timer queue */
    RANK_MM = 80,         /* address space: mappings, page tables */
    RANK_SLAB = 84,       /* a slab cache */
    RANK_PAGES = 86,      /* page allocator */
    RANK_STATS = 90,      /* statistics, trace control */
    RANK_CONSOLE = 100,   /* console: innermost, taken by panic */
};

#define LOCK_HIST_BUCKETS 40 /* bucket i counts times in [2^i, 2^(i+1)) ns */

struct lock_class {
    const char *name;
    enum lock_rank rank;
    bool irq;             /* taken by spin_lock_irq */
    bool nest_by_address; /* several at once, in ascending address order */
    /* Statistics, kept while lock_stats_on; relaxed counters. */
    u64 acquisitions, contended, wait_ns_total, wait_ns_max, hold_ns_total, hold_ns_max;
    u64 wait_hist[LOCK_HIST_BUCKETS], hold_hist[LOCK_HIST_BUCKETS];
    struct lock_class *next; /* all classes that were ever contended or counted */
    bool listed;
};

struct spinlock {
    u32 next;    /* ticket to be drawn */
    u32 serving; /* ticket that holds the lock */
    struct lock_class *class;
    u64 taken_ns; /* when, while lock_stats_on */
};

#define SPINLOCK_INIT(cls) { 0, 0, (cls), 0 }

static inline void spin_init(struct spinlock *l, struct lock_class *cls)
{
    l->next = l->serving = 0;
    l->class = cls;
    l->taken_ns = 0;
}

/* Slow parts and checks: core/base/spinlock.c. */
void spin_wait(struct spinlock *l, u32 ticket);
void spin_check_acquire(struct spinlock *l);
void spin_check_try_acquired(struct spinlock *l);
void spin_check_release(struct spinlock *l);
void spin_stats_acquired(struct spinlock *l, u64 wait_ns);
void spin_stats_released(struct spinlock *l);
bool spin_held(const struct spinlock *l); /* by this CPU: exact in debug builds, "by anybody" in release ones */
void spin_print_held(void);               /* locks of this CPU, for panic */
/* Panics if this CPU holds any lock: before blocking.  Debug builds only. */
void spin_assert_none_held(const char *what);

extern bool lock_stats_on;
/* Switches the statistics; holds that began while they were off do not count. */
void lock_stats_set(bool on);
extern struct lock_class *lock_classes;

static inline void spin_acquire_raw(struct spinlock *l)
{
#if defined(WEIR_DEBUG)
    spin_check_acquire(l);
#endif
    u32 ticket = __atomic_fetch_add(&l->next, 1, __ATOMIC_RELAXED);
    if (unlikely(LOAD_ACQUIRE(l->serving) != ticket)) {
        spin_wait(l, ticket);
    } else if (unlikely(READ_ONCE(lock_stats_on))) {
        spin_stats_acquired(l, 0);
    }
}

/* Takes the lock only if it is free: exempt from the lock order, since it never waits.  Interrupts must be off for irq
 * classes, preemption for the others; release with spin_release_raw. */
static inline bool spin_try_raw(struct spinlock *l)
{
    u32 ticket = READ_ONCE(l->serving);
    if (!__atomic_compare_exchange_n(&l->next, &(u32){ticket}, ticket + 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
        return false;
    }
#if defined(WEIR_DEBUG)
    spin_check_try_acquired(l);
#endif
    if (unlikely(READ_ONCE(lock_stats_on))) {
        spin_stats_acquired(l, 0);
    }
    return true;
}

static inline void spin_release_raw(struct spinlock *l)
{
    if (unlikely(READ_ONCE(lock_stats_on))) {
        spin_stats_released(l);
    }
#if defined(WEIR_DEBUG)
    spin_check_release(l);
#endif
    STORE_RELEASE(l->serving, l->serving + 1);
}

/* Preemption: this_cpu_add_preempt and this_cpu_sub_preempt_and_test (true if the count fell to 0 and a reschedule is
 * wanted) come from the arch inline part: one or two GS-relative instructions. */
void preempt_enable_slow(void);

static inline void preempt_disable(void)
{
    this_cpu_add_preempt(1);
}

/* Reschedules if a wakeup asked for it meanwhile. */
static inline void preempt_enable(void)
{
    if (unlikely(this_cpu_sub_preempt_and_test())) {
        preempt_enable_slow();
    }
}

static inline void spin_lock(struct spinlock *l)
{
    preempt_disable();
    spin_acquire_raw(l);
}

static inline void spin_unlock(struct spinlock *l)
{
    spin_release_raw(l);
    preempt_enable();
}

static inline irqflags_t spin_lock_irq(struct spinlock *l)
{
    irqflags_t flags = arch_irq_save();
    spin_acquire_raw(l);
    return flags;
}

/* A reschedule asked for while interrupts were off happens here if this was the outermost section. */
static inline void spin_unlock_irq(struct spinlock *l, irqflags_t flags)
{
    spin_release_raw(l);
    arch_irq_restore(flags);
    if (unlikely(this_cpu_resched_due()) && arch_irqflags_on(flags)) {
        preempt_enable_slow();
    }
}

#endif
