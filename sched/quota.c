/* CPU quotas: a group of threads may run quota_ns in each period_ns, on all CPUs together.
 *
 * Run time is charged when a thread stops running or its quota timer fires; what was used beyond the quota is carried as a debt
 * into the next period, so that the average is exact although the timer is coarse.  A group without quota left has its
 * threads set aside (T_THROTTLED) the moment they would be picked to run, and sent back to their CPUs by the refill timer.
 * Semantics and counters follow Linux's cpu.max and cpu.stat (cgroup v2). */
#include "core/base/errno.h"
#include "core/base/trace.h"
#include "sched/thread.h"

/* A group's CPUs look at the common pool at least this often (ns): bounds the overrun of a period to 5% of 100 ms per CPU, and
 * the carried debt takes even that back. */
#define QUOTA_CHECK_MAX_NS 5000000u
#define QUOTA_CHECK_MIN_NS 200000u

static struct lock_class quota_lock_class = { .name = "quota", .rank = RANK_QUOTA, .irq = true };

static void refill(struct timer *timer);

void quota_init(struct quota *q)
{
    *q = (struct quota){ 0 };
    spin_init(&q->lock, &quota_lock_class);
    list_init(&q->throttled);
    timer_init(&q->refill_timer, refill);
}

/* Puts the throttled threads back.  Called without the lock. */
static void release_all(struct quota *q, u64 now_ns)
{
    struct list freed = LIST_INIT(freed);
    irqflags_t flags = spin_lock_irq(&q->lock);
    if (!list_empty(&q->throttled)) {
        q->stats.throttled_ns += now_ns - q->throttled_since_ns;
    }
    list_splice_back(&freed, &q->throttled);
    spin_unlock_irq(&q->lock, flags);
    struct wake_batch batch;
    wake_batch_begin(&batch);
    struct list *node;
    while ((node = list_pop_front(&freed))) {
        struct thread *t = list_entry(node, struct thread, throttle_node);
        offcpu_ended(t, WAIT_THROTTLE, 0, now_ns - t->wait_since_ns);
        state_move(&t->state, T_THROTTLED, T_WAKING);
        wake_place(t, &batch);
    }
    wake_batch_flush(&batch);
}

static void refill(struct timer *timer)
{
    struct quota *q = container_of(timer, struct quota, refill_timer);
    u64 now = arch_clock_ns();
    spin_acquire_raw(&q->lock);
    bool limited = q->quota_ns != 0;
    bool used = q->used_in_period;
    if (limited) {
        u64 periods = 1 + (now - q->period_end_ns) / q->period_ns;
        q->period_end_ns += periods * q->period_ns;
        q->stats.periods += periods;
        i64 left = __atomic_load_n(&q->left_ns, __ATOMIC_RELAXED);
        /* Unused time is not saved up; debt is kept. */
        i64 next = MIN(left + (i64)(periods * q->quota_ns), (i64)q->quota_ns);
        __atomic_fetch_add(&q->left_ns, next - left, __ATOMIC_RELAXED);
        q->used_in_period = false;
        if (used) {
            timer_arm(timer, q->period_end_ns);
        } else {
            q->ticking = false; /* nobody ran: the next charge starts the clock again */
        }
    }
    spin_release_raw(&q->lock);
    if (!limited || __atomic_load_n(&q->left_ns, __ATOMIC_RELAXED) > 0) {
        release_all(q, now);
    }
}

/* CPUs that run without a timer would not see a new limit: each looks at its next preemption point. */
static void look_everywhere(void)
{
    preempt_disable();
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        if (LOAD_ACQUIRE(sched_of(cpu)->online)) {
            WRITE_ONCE(percpu_of(cpu)->need_resched, 1);
            sched_kick(cpu);
        }
    }
    preempt_enable();
}

int quota_set(struct quota *q, u64 quota_ns, u64 period_ns)
{
    if (quota_ns && (period_ns < QUOTA_PERIOD_MIN_NS || period_ns > QUOTA_PERIOD_MAX_NS || quota_ns < QUOTA_MIN_NS)) {
        return -EINVAL;
    }
    u64 now = arch_clock_ns();
    irqflags_t flags = spin_lock_irq(&q->lock);
    q->quota_ns = quota_ns;
    q->period_ns = period_ns;
    q->period_end_ns = now + period_ns;
    q->left_ns = (i64)quota_ns;
    q->used_in_period = q->ticking = quota_ns != 0;
    if (quota_ns) {
        timer_arm(&q->refill_timer, q->period_end_ns);
    }
    spin_unlock_irq(&q->lock, flags);
    release_all(q, now);
    look_everywhere();
    return 0;
}

void quota_stats(struct quota *q, struct quota_stats *out)
{
    irqflags_t flags = spin_lock_irq(&q->lock);
    *out = q->stats;
    out->usage_ns = __atomic_load_n(&q->usage_ns, __ATOMIC_RELAXED);
    if (!list_empty(&q->throttled)) {
        out->throttled_ns += arch_clock_ns() - q->throttled_since_ns;
    }
    spin_unlock_irq(&q->lock, flags);
}

void quota_charge(struct quota *q, u64 ran_ns, u64 now_ns)
{
    __atomic_fetch_add(&q->usage_ns, ran_ns, __ATOMIC_RELAXED);
    if (!READ_ONCE(q->quota_ns)) {
        return;
    }
    __atomic_fetch_add(&q->left_ns, -(i64)ran_ns, __ATOMIC_RELAXED);
    WRITE_ONCE(q->used_in_period, true);
    if (unlikely(!READ_ONCE(q->ticking))) {
        spin_acquire_raw(&q->lock);
        if (!q->ticking) {
            q->ticking = true;
            q->period_end_ns = now_ns + q->period_ns;
            timer_arm(&q->refill_timer, q->period_end_ns);
        }
        spin_release_raw(&q->lock);
    }
}

bool quota_throttle(struct thread *t, u64 now_ns)
{
    struct quota *q = t->quota;
    if (!READ_ONCE(q->quota_ns) || __atomic_load_n(&q->left_ns, __ATOMIC_RELAXED) > 0) {
        return false;
    }
    spin_acquire_raw(&q->lock);
    bool out = q->quota_ns && __atomic_load_n(&q->left_ns, __ATOMIC_RELAXED) <= 0;
    if (out) {
        if (list_empty(&q->throttled)) {
            q->throttled_since_ns = now_ns;
            q->stats.throttled++;
        }
        t->wait_since_ns = now_ns;
        state_move(&t->state, T_RUNNABLE, T_THROTTLED);
        list_push_back(&q->throttled, &t->throttle_node);
        trace(TRACE_CAT_SCHED, TRACE_THROTTLE, 0, t->head.id, 0, 0);
    }
    spin_release_raw(&q->lock);
    return out;
}

u64 quota_check_after(const struct quota *q, u32 cpus)
{
    i64 left = __atomic_load_n(&q->left_ns, __ATOMIC_RELAXED);
    i64 share = MAX(left, 0) / (i64)cpus;
    return (u64)MIN(MAX(share, (i64)QUOTA_CHECK_MIN_NS), (i64)QUOTA_CHECK_MAX_NS);
}

void quota_timer_fired(struct timer *timer)
{
    struct cpu_sched *c = container_of(timer, struct cpu_sched, quota_timer);
    struct quota *q = c->current->quota;
    if (q) {
        sched_request(c); /* schedule() charges, throttles or goes on, and arms the timer again */
    }
}
