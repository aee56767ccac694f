/* Choosing the next thread and switching to it.
 *
 * The run-queue lock is taken before the choice and released after the switch, by the thread switched to: between them no
 * other CPU can see a half-made decision.  A thread's context is saved only once its CPU has left its stack, so on_cpu
 * stays set until schedule_finish(); a waker that meets on_cpu sends the thread back to this CPU's wake list instead of to
 * a CPU that might run it too early. */
#include "core/base/trace.h"
#include "sched/thread.h"

struct cpu_sched cpu_scheds[MAX_CPUS];
u32 migration_charge_ns;
struct lock_class runq_lock_class = { .name = "runq", .rank = RANK_RUNQ, .irq = true, .nest_by_address = true };

void sched_request(struct cpu_sched *c)
{
    percpu_of(c->cpu)->need_resched = 1;
}

/* The timers of a CPU that has a thread waiting.  Each runs on until it fires and is armed again only if somebody still waits
 * then, so a queue that comes and goes costs at most one interrupt a period. */
void sched_arm_timers(struct cpu_sched *c, u64 now_ns)
{
    if (!c->slice_timer.armed) {
        timer_arm(&c->slice_timer, now_ns + RUNQ_SLICE_NS);
    }
    if (!c->balance_timer.armed) {
        balance_arm(c, now_ns);
    }
}

void slice_timer_fired(struct timer *timer)
{
    struct cpu_sched *c = container_of(timer, struct cpu_sched, slice_timer);
    spin_acquire_raw(&c->lock);
    u64 now = arch_clock_ns();
    if (c->runq.count) {
        u64 end = c->current->exec_start_ns + RUNQ_SLICE_NS;
        if (now >= end) {
            sched_request(c); /* schedule() arms the timer again */
        } else {
            timer_arm(timer, end);
        }
    }
    spin_release_raw(&c->lock);
}

/* Charges the running thread for the time since the last charge. */
static void account_current(struct cpu_sched *c, struct thread *t, u64 now_ns)
{
    u64 ran = now_ns - t->exec_start_ns;
    t->exec_start_ns = now_ns;
    if (t == c->idle) {
        return;
    }
    t->runtime_ns += ran;
    t->burst_ns += ran;
    STAT_ADD(c, busy_ns, ran);
    if (unlikely(t->quota != NULL)) {
        quota_charge(t->quota, ran, now_ns);
    }
    runq_charge(&c->runq, &t->entity, ran);
}

/* What happens to the thread that had the CPU, by the state it is in. */
static void put_previous(struct cpu_sched *c, struct thread *prev, u64 now_ns)
{
    prev->last_ran_ns = now_ns;
    if (prev == c->idle) {
        return;
    }
    switch (READ_ONCE(prev->state)) {
    case T_RUNNING:
        if (unlikely(!(prev->affinity & BIT(c->cpu)) || (c->parked && park_may_leave(c, prev)))) {
            state_move(&prev->state, T_RUNNING, T_WAKING);
            c->departing = prev;
            return;
        }
        state_move(&prev->state, T_RUNNING, T_RUNNABLE);
        runq_add(&c->runq, &prev->entity, RUNQ_PREEMPT, now_ns);
        break;
    default: /* BLOCKED, WAKING (a waker was quick) or DEAD */
        prev->avg_run_ns += ((i64)MIN(prev->burst_ns, 1ull << 30) - (i64)prev->avg_run_ns) / 8;
        prev->burst_ns = 0;
        break;
    }
}

/* *look_again: there may be work for this CPU elsewhere, in a queue that somebody is changing right now. */
static struct thread *pick_next(struct cpu_sched *c, u64 now_ns, bool *look_again)
{
    for (;;) {
        struct runq_entity *e = runq_pick(&c->runq);
        if (!e) {
            enum pull_result pulled = idle_pull(c, now_ns);
            if (pulled != PULL_GOT_ONE) {
                *look_again = pulled == PULL_CONTENDED;
                return c->idle;
            }
            e = runq_pick(&c->runq);
        }
        struct thread *t = container_of(e, struct thread, entity);
        if (unlikely(t->quota != NULL)) {
            if (quota_throttle(t, now_ns)) {
                continue;
            }
            if (t->quota->quota_ns && !c->quota_timer.armed) {
                timer_arm(&c->quota_timer, now_ns + quota_check_after(t->quota, domain_of(c->cpu)->num_cpus));
            }
        }
        state_move(&t->state, T_RUNNABLE, T_RUNNING);
        return t;
    }
}

/* Keeps the CPU busy for as long as cold caches would: the model of virtual time has none.  Interrupts off, no lock held;
 * the thread is charged like for any instructions of its own. */
static void charge_migration(struct cpu_sched *c)
{
    c->moved_in = false;
    for (u64 end = arch_clock_ns() + migration_charge_ns; arch_clock_ns() < end;) {
        arch_cpu_relax();
    }
}

/* Runs on the new thread's stack: the old one's context is saved now. */
static void schedule_finish(struct cpu_sched *c, struct thread *prev)
{
    bool dead = READ_ONCE(prev->state) == T_DEAD;
    STORE_RELEASE(prev->on_cpu, 0);
    struct thread *departing = c->departing;
    c->departing = NULL;
    spin_release_raw(&c->lock);
    if (unlikely(c->moved_in)) {
        charge_migration(c);
    }
    if (unlikely(departing)) {
        u32 target = policy_place_wake(departing, c->cpu, 0);
        STAT_INC(c, migrations[c->parked ? MIGRATE_PARK : MIGRATE_AFFINITY]);
        wake_send(departing, target, RUNQ_MIGRATE, NULL);
    }
    if (unlikely(dead)) {
        thread_reap(prev);
    }
}

/* The thread that a CPU comes from, handed over the switch. */
static struct thread *switched_from[MAX_CPUS];

_Static_assert((int)T_RUNNABLE == TRACE_STATE_RUNNABLE && (int)T_BLOCKED == TRACE_STATE_BLOCKED &&
                   (int)T_WAKING == TRACE_STATE_WAKING && (int)T_DEAD == TRACE_STATE_DEAD &&
                   (int)T_THROTTLED == TRACE_STATE_THROTTLED && NUM_THREAD_STATES <= 16 && WAIT_OTHER < 16,
               "the trace format has the states of sched/state.h");

void schedule(void)
{
    struct cpu_sched *c = sched_here();
    struct thread *prev = c->current;
    DEBUG_ASSERT(!arch_irqs_on());
    spin_acquire_raw(&c->lock);
    percpu_of(c->cpu)->need_resched = 0;
    u64 now = arch_clock_ns();
    account_current(c, prev, now);
    put_previous(c, prev, now);
    wake_list_drain(c);
    bool look_again = false;
    struct thread *next = pick_next(c, now, &look_again);
    if (next != c->idle) {
        percpu_of(c->cpu)->need_resched = 0; /* what was queued meanwhile was chosen among */
    } else if (look_again) {
        percpu_of(c->cpu)->need_resched = 1; /* the idle loop comes back at once */
    } /* else not cleared: a call to fetch a thread (pull_offer()) may have come since the look */
    next->exec_start_ns = now;
    c->current = next;
    board_publish(c);
    if (prev == c->idle && next != prev) {
        board_idle(c, false);
        pull_pass_on(c);
    }
    if (next != c->idle && c->runq.count) {
        sched_arm_timers(c, now);
    }
    if (next == prev) {
        spin_release_raw(&c->lock);
        return;
    }
    if (next != c->idle) {
        c->moved_in = migration_charge_ns && next->ran && next->last_cpu != c->cpu;
        next->last_cpu = next->cpu = c->cpu;
        next->ran = true;
        next->switches++;
    }
    next->on_cpu = 1;
    STAT_INC(c, switches);
    trace(TRACE_CAT_SCHED, TRACE_SWITCH, TRACE_SWITCH_ARG(READ_ONCE(prev->state), prev->head.wait_kind, c->runq.count),
          next->head.id, prev->head.id, prev->head.wait_object);
    percpu_of(c->cpu)->current = next;
    switched_from[c->cpu] = prev;
    arch_switch(&prev->arch, &next->arch);
    /* prev again, possibly on another CPU */
    c = sched_here();
    schedule_finish(c, switched_from[c->cpu]);
}

void schedule_finish_first(void)
{
    struct cpu_sched *c = sched_here();
    schedule_finish(c, switched_from[c->cpu]);
    arch_irq_enable();
}

void preempt_enable_slow(void)
{
    if (!arch_irqs_on()) {
        return; /* the end of the interrupt or of the locked section looks again */
    }
    arch_irq_disable();
    if (this_cpu_resched_due()) {
        schedule();
    }
    arch_irq_enable();
}

void thread_yield(void)
{
    irqflags_t flags = arch_irq_save();
    schedule();
    arch_irq_restore(flags);
}
