/* The periodic balancer, in four separate steps: snapshot -> the policy decides -> validate -> move.
 *
 * A pass runs in the CPU's timer interrupt.  It is armed only while a thread waits in this CPU's run queue: a CPU with nothing to
 * give away has nothing to balance, and stays tickless.  Passes fall on multiples of the interval, staggered over the
 * CPUs so that they do not all look at the same instant. */
#include "core/base/trace.h"
#include "sched/policy_watch.h"
#include "sched/thread.h"

/* Queued threads that a pass looks at, in order of arrival.  A pass moves at most num_cpus (64) threads; twice that leaves
 * room for pinned ones. */
#define BALANCE_CANDIDATES 128

struct balance_scratch {
    struct policy_cpu cpus[MAX_CPUS];
    struct policy_thread threads[BALANCE_CANDIDATES];
    struct thread *who[BALANCE_CANDIDATES];
    u64 affinity[BALANCE_CANDIDATES];
    struct policy_move moves[MAX_CPUS];
};
static struct balance_scratch scratch[MAX_CPUS];

void balance_arm(struct cpu_sched *c, u64 now_ns)
{
    struct domain *d = domain_of(c->cpu);
    const struct policy *policy = READ_ONCE(d->policy);
    u64 interval = READ_ONCE(d->interval_ms) * NSEC_PER_MSEC;
    if (!policy->balance || !interval || d->num_cpus == 1) {
        return;
    }
    u64 offset = interval / d->num_cpus * (c->cpu - d->first_cpu);
    u64 next = (now_ns - offset) / interval * interval + interval + offset;
    if (now_ns < offset) {
        next = offset;
    }
    timer_arm(&c->balance_timer, next);
}

/* Step 1.  Returns the number of candidates. */
static u32 take_snapshot(struct cpu_sched *c, struct domain *d, struct balance_scratch *s, u64 *idle)
{
    for (u32 i = 0; i < d->num_cpus; i++) {
        s->cpus[i] = board[d->first_cpu + i];
    }
    *idle = READ_ONCE(d->idle);
    u32 n = 0;
    list_for_each(pos, &c->runq.order)
    {
        struct thread *t = container_of(list_entry(pos, struct runq_entity, order), struct thread, entity);
        if (t->pinned_kernel || t->affinity == BIT(c->cpu)) {
            continue;
        }
        policy_describe(t, &s->threads[n], d, &s->affinity[n]);
        s->who[n] = t;
        if (++n == BALANCE_CANDIDATES) {
            break;
        }
    }
    return n;
}

static void reject(struct cpu_sched *c, enum move_reject why)
{
    STAT_INC(c, balance_moves_rejected[why]);
}

void migrate_locked(struct cpu_sched *from, struct cpu_sched *to, struct thread *t, enum migrate_reason why, u64 now_ns)
{
    runq_leave(&from->runq, &t->entity);
    t->cpu = to->cpu;
    t->migrations++;
    runq_add(&to->runq, &t->entity, RUNQ_MIGRATE, now_ns);
    STAT_INC(sched_here(), migrations[why]);
    trace(TRACE_CAT_SCHED, TRACE_MIGRATE, (u16)why, t->head.id, from->cpu, to->cpu);
    board_publish(from);
    board_publish(to);
}

static void lock_pair(struct cpu_sched *a, struct cpu_sched *b)
{
    struct cpu_sched *first = a->cpu < b->cpu ? a : b;
    spin_acquire_raw(&first->lock);
    spin_acquire_raw(first == a ? &b->lock : &a->lock);
}

static void unlock_pair(struct cpu_sched *a, struct cpu_sched *b)
{
    spin_release_raw(&a->lock);
    spin_release_raw(&b->lock);
}

/* Does a thread that goes from `from` to `to` still make the larger of their relative loads smaller?  The snapshot that the
 * policy saw may be stale: two CPUs' passes may have chosen the same idle CPU.  Both locks held. */
static bool gains(const struct cpu_sched *from, const struct cpu_sched *to)
{
    const struct policy_cpu *here = &board[from->cpu], *there = &board[to->cpu];
    return policy_less_loaded(policy_load(there) + 1, READ_ONCE(there->capacity), policy_load(here),
                              READ_ONCE(here->capacity));
}

/* Steps 3 and 4 for one move. */
static void carry_out(struct cpu_sched *c, struct domain *d, const struct balance_scratch *s, u32 n,
                      const struct policy_move *move)
{
    if (move->thread >= n || move->to >= d->num_cpus) {
        reject(c, REJECT_BAD_INDEX);
        policy_fault(d, "planned a move of or to something that does not exist");
        return;
    }
    struct thread *t = s->who[move->thread];
    struct cpu_sched *to = sched_of(d->first_cpu + move->to);
    if (to == c) {
        reject(c, REJECT_NO_GAIN);
        return;
    }
    lock_pair(c, to);
    if (t->head.id != s->threads[move->thread].id || t->cpu != c->cpu || !t->entity.queued) {
        reject(c, t->head.id == s->threads[move->thread].id && READ_ONCE(t->state) == T_RUNNING ? REJECT_RUNNING
                                                                                              : REJECT_GONE);
    } else if (!(t->affinity & BIT(to->cpu)) || !READ_ONCE(board[to->cpu].capacity)) {
        reject(c, REJECT_AFFINITY);
    } else if (!gains(c, to)) {
        reject(c, REJECT_NO_GAIN);
    } else {
        bool kick = !READ_ONCE(board[to->cpu].running) || to->runq.count == 0;
        migrate_locked(c, to, t, MIGRATE_BALANCE, arch_clock_ns());
        STAT_INC(c, balance_moves_accepted);
        if (kick) {
            /* Idle: run it.  Busy with an empty queue: it must arm its slice timer. */
            percpu_of(to->cpu)->need_resched = 1;
            sched_kick(to->cpu);
        }
    }
    unlock_pair(c, to);
}

static void balance_pass(struct cpu_sched *c, struct domain *d)
{
    struct balance_scratch *s = &scratch[c->cpu];
    u64 idle;
    spin_acquire_raw(&c->lock);
    wake_list_drain(c);
    u32 n = take_snapshot(c, d, s, &idle);
    spin_release_raw(&c->lock);
    STAT_INC(c, balance_passes);
    if (n == 0) {
        return;
    }
    struct policy_view view = {
        .now_ns = arch_clock_ns(),
        .seed = board_seed(c),
        .num_cpus = d->num_cpus,
        .self = c->cpu - d->first_cpu,
        .cpus = s->cpus,
        .idle = &idle,
        .receive_cpus = d->receive_cpus,
        .num_threads = n,
        .threads = s->threads,
    };
    struct policy_plan plan = { .capacity = d->num_cpus, .moves = s->moves };
    policy_balance(&view, &plan, d, c);
    u64 before = c->stats.balance_moves_accepted;
    for (u32 i = 0; i < plan.num_moves; i++) {
        carry_out(c, d, s, n, &s->moves[i]);
    }
    trace(TRACE_CAT_SCHED, TRACE_BALANCE, (u16)(c->stats.balance_moves_accepted - before), 0, n, plan.num_moves);
}

void balance_timer_fired(struct timer *t)
{
    struct cpu_sched *c = container_of(t, struct cpu_sched, balance_timer);
    struct domain *d = domain_of(c->cpu);
    if (READ_ONCE(d->policy)->balance) {
        balance_pass(c, d);
    }
    spin_acquire_raw(&c->lock);
    if (c->runq.count) {
        balance_arm(c, arch_clock_ns());
    }
    spin_release_raw(&c->lock);
}
