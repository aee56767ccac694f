/* Idle pull: a CPU that has run out of work looks for a waiting thread elsewhere.
 *
 * The filter (the domain's overloaded mask) and the policy's choice read stale data without locks; only the move itself looks
 * again, under both run-queue locks.  The victim's lock is only tried: when many CPUs go idle together, one of them gets it
 * and the others look elsewhere instead of queueing up behind each other.  A try fails only if somebody else is changing that
 * very queue, which is the argument of HotOS'17 for work conservation (lock-free filter, unproved choice, locked steal); so
 * that a queue whose lock was taken by its owner at that moment is not forgotten until the next pass, the idle loop then
 * looks again (schedule()). */
#include "sched/thread.h"

/* CPUs asked for before the idle loop gets its turn: each try is a new choice of the policy. */
#define PULL_TRIES 2

/* Of the victim's threads that are allowed here and cold enough, the one that waits longest.  A running thread is never
 * taken: it is not in the queue. */
static struct thread *choose(struct cpu_sched *victim, struct cpu_sched *here, const struct policy_pull *pull, u64 now_ns)
{
    list_for_each(pos, &victim->runq.order)
    {
        struct thread *t = container_of(list_entry(pos, struct runq_entity, order), struct thread, entity);
        if (t->pinned_kernel || !(t->affinity & BIT(here->cpu))) {
            continue;
        }
        if (now_ns - t->entity.queued_ns < pull->min_wait_ns || now_ns - t->last_ran_ns < pull->min_cold_ns) {
            continue;
        }
        return t;
    }
    return NULL;
}

/* One look at the CPU that the policy names. */
static enum pull_result pull_once(struct cpu_sched *c, struct domain *d, u64 now_ns)
{
    struct policy_pull pull;
    STAT_INC(c, pull_tries);
    policy_pull_from(c, &pull, now_ns);
    if (pull.from == POLICY_NO_CPU) {
        return PULL_NOTHING;
    }
    struct cpu_sched *victim = sched_of(d->first_cpu + (u32)pull.from);
    if (victim == c) {
        return PULL_NOTHING;
    }
    if (!spin_try_raw(&victim->lock)) {
        STAT_INC(c, pull_contended);
        return PULL_CONTENDED;
    }
    /* A CPU that is about to run its only queued thread has nothing to spare. */
    struct thread *t = NULL;
    if (victim->current != victim->idle) {
        t = choose(victim, c, &pull, now_ns);
    }
    if (t) {
        migrate_locked(victim, c, t, MIGRATE_PULL, now_ns);
        STAT_INC(c, pull_hits);
    }
    spin_release_raw(&victim->lock);
    return t ? PULL_GOT_ONE : PULL_NOTHING;
}

bool pull_worth_a_look(const struct cpu_sched *c)
{
    const struct domain *d = domain_of(c->cpu);
    return READ_ONCE(d->overloaded) && READ_ONCE(d->policy)->idle_pull && READ_ONCE(board[c->cpu].capacity);
}

enum pull_result idle_pull(struct cpu_sched *c, u64 now_ns)
{
    struct domain *d = domain_of(c->cpu);
    enum pull_result result = PULL_NOTHING;
    for (u32 try = 0; try < PULL_TRIES; try++) {
        if (likely(!pull_worth_a_look(c))) {
            return PULL_NOTHING;
        }
        result = pull_once(c, d, now_ns);
        if (result != PULL_CONTENDED) {
            break;
        }
    }
    return result;
}

/* Has one of the idle CPUs in `candidates` (domain-relative) look for queues. */
static void call_one(struct domain *d, u64 candidates)
{
    u32 chosen = (u32)__builtin_ctzll(candidates);
    if (!(__atomic_fetch_and(&d->idle, ~BIT(chosen), __ATOMIC_SEQ_CST) & BIT(chosen))) {
        return; /* another has called it: it looks at every queue */
    }
    struct cpu_sched *helper = sched_of(d->first_cpu + chosen);
    STAT_INC(sched_here(), pull_calls);
    __atomic_store_n(&percpu_of(helper->cpu)->need_resched, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&helper->polling, __ATOMIC_SEQ_CST)) {
        sched_kick(helper->cpu);
    }
}

/* Against a CPU that goes idle just now: it sets its bit in the idle mask and then looks for queues (idle_loop()), here the
 * queue is published and then the mask is read, both with a full barrier between: one of the two sees the other. */
void pull_offer(struct cpu_sched *c, const struct thread *t)
{
    struct domain *d = domain_of(c->cpu);
    if (!READ_ONCE(d->policy)->idle_pull || t->pinned_kernel) {
        return;
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    u64 idle = READ_ONCE(d->idle) & t->affinity >> d->first_cpu;
    if (unlikely(idle)) {
        call_one(d, idle);
    }
}

void pull_pass_on(struct cpu_sched *c)
{
    if (likely(!pull_worth_a_look(c))) {
        return;
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    struct domain *d = domain_of(c->cpu);
    u64 idle = READ_ONCE(d->idle);
    if (idle) {
        call_one(d, idle);
    }
}
