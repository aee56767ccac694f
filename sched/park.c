/* Parking: with a grant of k CPUs the kernel runs threads on ceil(k) CPUs and leaves the rest idle, instead of spreading one
 * CPU's worth of time over all of them.  A parked CPU has capacity 0: no policy places anything there, its queued threads are
 * sent away, and it keeps only its own kernel thread and its interrupts. */
#include "core/base/bitops.h"
#include "core/base/errno.h"
#include "sched/thread.h"

static struct mutex change = MUTEX_INIT(change); /* one change at a time */

/* Sends away everything that waits on c and may run elsewhere. */
static void evacuate(struct cpu_sched *c)
{
    for (;;) {
        irqflags_t flags = spin_lock_irq(&c->lock);
        struct thread *t = NULL;
        list_for_each(pos, &c->runq.order)
        {
            struct thread *candidate = container_of(list_entry(pos, struct runq_entity, order), struct thread, entity);
            if (park_may_leave(c, candidate)) {
                t = candidate;
                break;
            }
        }
        if (t) {
            runq_remove(&c->runq, &t->entity);
            state_move(&t->state, T_RUNNABLE, T_WAKING);
            board_publish(c);
        }
        spin_release_raw(&c->lock);
        if (t) {
            STAT_INC(sched_here(), migrations[MIGRATE_PARK]);
            wake_send(t, policy_place_wake(t, sched_here()->cpu, 0), RUNQ_MIGRATE, NULL);
        }
        arch_irq_restore(flags);
        if (!t) {
            return;
        }
    }
}

bool park_may_leave(const struct cpu_sched *c, const struct thread *t)
{
    return !t->pinned_kernel && (READ_ONCE(t->affinity) & domain_of(c->cpu)->active);
}

static void park_cpu(struct cpu_sched *c, bool park)
{
    irqflags_t flags = spin_lock_irq(&c->lock);
    bool was = c->parked;
    c->parked = park;
    WRITE_ONCE(board[c->cpu].capacity, park ? 0 : c->delivered);
    spin_unlock_irq(&c->lock, flags);
    if (park == was) {
        return;
    }
    board_idle(c, false); /* it comes back by itself when it next goes idle with a capacity */
    if (park) {
        evacuate(c);
    }
    percpu_of(c->cpu)->need_resched = 1;
    preempt_disable();
    sched_kick(c->cpu);
    preempt_enable();
}

static u32 active_count[MAX_DOMAINS]; /* 0: all; under `change` */

u32 sched_active(u32 domain)
{
    u32 count = READ_ONCE(active_count[domain]);
    return count ? count : domains[domain].num_cpus;
}

/* Parks and unparks by active_count and by what is held.  Never everything: held CPUs run on if they are all there is. */
static void follow(struct domain *d, u32 count)
{
    cpumask_t granted = (count == 64 ? ~0ull : BIT(count) - 1) << d->first_cpu, free = 0;
    for (cpumask_t m = granted; m; m &= m - 1) {
        u32 cpu = (u32)__builtin_ctzll(m);
        free |= sched_of(cpu)->held ? 0 : BIT(cpu);
    }
    cpumask_t active = free ? free : granted;
    WRITE_ONCE(d->active, active);
    /* Those that come back first: threads that are sent away must find a place. */
    for (u32 pass = 0; pass < 2; pass++) {
        for (u32 i = 0; i < d->num_cpus; i++) {
            struct cpu_sched *c = sched_of(d->first_cpu + i);
            bool park = !(active & BIT(c->cpu));
            if (c->online && park == (pass == 1)) {
                park_cpu(c, park);
            }
        }
    }
}

int sched_set_active(u32 domain, u32 count)
{
    if (domain >= num_domains || count == 0 || count > domains[domain].num_cpus) {
        return -EINVAL;
    }
    mutex_lock(&change);
    WRITE_ONCE(active_count[domain], count);
    follow(&domains[domain], count);
    mutex_unlock(&change);
    return 0;
}

int sched_hold(u32 cpu, bool hold)
{
    struct cpu_sched *c = sched_of(cpu);
    struct domain *d = domain_of(cpu);
    int error = 0;
    mutex_lock(&change);
    u32 held = 0;
    for (u32 i = 0; i < d->num_cpus; i++) {
        held += sched_of(d->first_cpu + i)->held;
    }
    if (hold && !c->held && (held + 1) * 2 > sched_active(c->domain)) {
        error = -EBUSY;
    } else {
        c->held = hold;
        follow(d, sched_active(c->domain));
    }
    mutex_unlock(&change);
    return error;
}

void sched_set_capacity(u32 cpu, u32 capacity)
{
    struct cpu_sched *c = sched_of(cpu);
    irqflags_t flags = spin_lock_irq(&c->lock);
    c->delivered = MIN(MAX(capacity, 1u), POLICY_CAPACITY_FULL);
    if (!c->parked) {
        WRITE_ONCE(board[cpu].capacity, c->delivered);
    }
    spin_unlock_irq(&c->lock, flags);
}

u32 sched_capacity(u32 cpu)
{
    return READ_ONCE(board[cpu].capacity);
}
